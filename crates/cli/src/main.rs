//! The `blacklight` command: run, watch and measure event loops.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, reason = "only the reading of stacks uses it")
)]

mod answers;
mod calls;
mod closures;
mod demo;
mod descriptor;
mod doctor;
mod echo;
mod elf;
mod keepers;
mod known;
mod library;
mod linker;
mod live;
mod machine;
mod maps;
mod metrics;
mod names;
mod pool_work;
mod ps;
mod python;
mod requests;
mod run;
mod sample;
mod serve;
mod span;
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    path = "stack_unknown.rs"
)]
mod stack;
mod stack_sample;
mod stalls;
mod swap;
mod symbols;
mod target;
mod threads;
mod top;
mod trace;
mod wakes;
mod why;
mod words;

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
    /// Lists the processes that run on Blacklight, and how their loops are.
    Ps(ps::Options),
    /// Tells what keeps the loops of a process alive, and what keeps them from being closed.
    Why(why::Options),
    /// Shows what the loops of a process do: what blocks them, and where the time goes.
    Top(top::Options),
    /// Opens a page in the browser that shows the loops of a process as they turn.
    Live(live::Options),
    /// The program that `live --demo` shows.
    #[command(hide = true)]
    LiveDemo {
        /// The process that has started it, with which it ends.
        parent: i32,
    },
    /// The process between `live` and the program that it starts.
    #[command(hide = true)]
    LiveReaper(live::Reaper),
    /// The program of load tests: 50 loops with 200 handles each.
    #[command(hide = true)]
    LiveLoad,
    /// Writes what the loops and the thread pool of a process do as a trace for Perfetto.
    Trace(trace::Options),
    /// Prints or serves what the loops of a process do, in the format of OpenMetrics.
    Metrics(metrics::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Demo(options) => demo::run(&options)
            .map(|()| ExitCode::SUCCESS)
            .map_err(anyhow::Error::from),
        Command::Run(options) => run::run(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::Live(options) => live::run(&options),
        Command::LiveDemo { parent } => live::demo(parent),
        Command::LiveReaper(options) => live::reap(&options),
        Command::LiveLoad => live::load(),
        Command::Metrics(options) => metrics::run(&options),
        Command::Ps(options) => ps::run(&options),
        Command::Why(options) => why::run(&options),
        Command::Top(options) => top::run(&options),
        Command::Trace(options) => trace::run(&options),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            words::tell(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
