//! The `blacklight` command: run, watch and measure event loops.

#![forbid(unsafe_code)]

mod demo;

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
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Demo(options) => demo::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("blacklight: {error}");
            ExitCode::FAILURE
        }
    }
}
