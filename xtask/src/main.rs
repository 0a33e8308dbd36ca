//! The project's chore runner: `cargo xtask <chore>`.
//!
//! Each chore is a module named after what it judges or makes. The modules they share:
//! [`workspace`] knows where things lie, [`original`] obtains and builds the library that
//! Blacklight is measured against, [`library`] builds ours, and [`sandbox`] runs one
//! program of either in a machine of its own.
#![forbid(unsafe_code)]

mod abi;
mod clients;
mod compile;
mod conformance;
mod deb;
mod differ;
mod dropin;
mod fuzz;
mod install;
mod instructions;
mod library;
mod loom;
mod measure;
mod msrv;
mod node_order;
mod npm;
mod original;
mod packaging;
mod portable;
mod program;
mod programs;
mod sandbox;
mod sanitize;
mod selection;
mod swap;
mod sweep;
mod test;
mod wheel;
mod workspace;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about, bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run libuv's own test suite against the library, each test in a sandbox.
    Conformance(conformance::Options),
    /// Compare headers and exported symbols with the original's.
    Abi(abi::Options),
    /// Run programs that people use on the library: Neovim, Node.js, BIND and others.
    Clients(clients::Options),
    /// Call functions in random order with the original and with ours, and compare the answers.
    Differ(differ::Options),
    /// Compile and link a program with other libuvs, and run it on ours.
    Dropin,
    /// Run libFuzzer on what parses bytes and what takes paths, names, messages and options.
    Fuzz(fuzz::Options),
    /// Install the library, its headers, and files for pkg-config and CMake.
    Install(install::Options),
    /// Count the instructions of the loop's pure parts, and compare with what they were.
    Instructions(instructions::Options),
    /// Try all interleavings of threads that share a mailbox, a gate or the pool.
    Loom(loom::Options),
    /// Compare our library with the original and others, turn about, by medians of rounds.
    Measure(measure::Options),
    /// Build Debian packages in place of libuv1 and libuv1-dev.
    Deb(deb::Options),
    /// Check that the workspace compiles with the oldest Rust that it says it needs.
    Msrv,
    /// Record what Node prints for the programs that our scheduling is compared with.
    NodeOrder(node_order::Options),
    /// Make npm packages of the command, for systems with glibc 2.28 or later.
    Npm(npm::Options),
    /// Build programs against an installation, install the packages, and run programs with them.
    Packaging,
    /// Measure programs that people use under load, on the libuv they have and on ours, turn about.
    Programs(programs::Options),
    /// Run tests under the address and thread sanitizers.
    Sanitize(sanitize::Options),
    /// Put ours in the place of a libuv that programs and modules carry inside.
    Swap(swap::Options),
    /// Make each call of the library into the C library fail in turn.
    Sweep(sweep::Options),
    /// Run everything that must hold before a change is good.
    Test(test::Options),
    /// Make a Python wheel of the command, for systems with glibc 2.28 or later.
    Wheel(wheel::Options),
    /// One turn of a program inside a sandbox; started by `programs`.
    #[command(hide = true)]
    ProgramsTurn {
        /// What to start and how to measure it, in JSON.
        spec: String,
    },
    /// The first process inside a sandbox; started by the other chores.
    #[command(hide = true)]
    SandboxInit {
        /// The description of what to set up and run.
        spec: PathBuf,
    },
}

fn main() -> ExitCode {
    match dispatch(Arguments::parse().chore) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(chore: Chore) -> Result<ExitCode> {
    match chore {
        Chore::Conformance(options) => conformance::run(&options),
        Chore::Clients(options) => clients::run(&options),
        Chore::Differ(options) => differ::run(&options),
        Chore::Dropin => dropin::run(),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Install(options) => install::run(&options),
        Chore::Instructions(options) => instructions::run(&options),
        Chore::Measure(options) => measure::run(&options),
        Chore::Loom(options) => loom::run(&options),
        Chore::Deb(options) => deb::run(&options),
        Chore::Msrv => msrv::run(),
        Chore::NodeOrder(options) => node_order::run(&options),
        Chore::Npm(options) => npm::run(&options),
        Chore::Packaging => packaging::run(),
        Chore::Programs(options) => programs::run(&options),
        Chore::ProgramsTurn { spec } => programs::take_turn(&spec),
        Chore::Sanitize(options) => sanitize::run(&options),
        Chore::Swap(options) => swap::run(&options),
        Chore::Sweep(options) => sweep::run(&options),
        Chore::Test(options) => test::run(&options),
        Chore::Abi(options) => abi::run(options).map(|()| ExitCode::SUCCESS),
        Chore::Wheel(options) => wheel::run(&options),
        Chore::SandboxInit { spec } => sandbox::init::run(&spec).map(|()| ExitCode::SUCCESS),
    }
}
