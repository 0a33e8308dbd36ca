//! The `blacklight` command: run, watch and measure event loops.

#![forbid(unsafe_code)]

mod demo;
mod doctor;
mod echo;
mod elf;
mod library;
mod linker;
mod run;
mod swap;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// libuv's event loop, rewritten in Rust: see what it does.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a small program on the loop and draws what ran in which phase.
    Demo(demo::Options),
    /// Runs a program with our library in place of its libuv.
    Run(run::Options),
    /// Reports which libuv a program would load, and whether ours has the functions that it
    /// needs.
    Doctor(doctor::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Demo(options) => demo::run(&options)
            .map(|()| ExitCode::SUCCESS)
            .map_err(anyhow::Error::from),
        Command::Run(options) => run::run(&options),
        Command::Doctor(options) => doctor::run(&options),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("blacklight: {error:#}");
            ExitCode::FAILURE
        }
    }
}
