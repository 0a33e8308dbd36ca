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
mod deny;
mod differ;
mod dropin;
mod emulation;
mod exports;
mod fuzz;
mod guide;
mod install;
mod instructions;
mod library;
mod loom;
mod measure;
mod msrv;
mod node_order;
mod npm;
mod original;
mod package;
mod packaging;
mod page;
mod platform;
mod portable;
mod program;
mod programs;
mod refusal;
mod release;
mod sandbox;
mod sanitize;
mod selection;
mod semver;
mod swap;
mod sweep;
mod target;
mod test;
mod tokio;
mod tools;
mod views;
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
    /// Build the library and the command for another machine or C library; into target/cross.
    Cross(library::Options),
    /// Call functions in random order with the original and with ours, and compare the answers.
    Differ(differ::Options),
    /// Compile and link a program with other libuvs, and run it on ours.
    Dropin,
    /// Read what the command writes about programs by Perfetto's schema and Prometheus' parser.
    Exports(exports::Options),
    /// Run libFuzzer on what parses bytes and what takes paths, names, messages and options.
    Fuzz(fuzz::Options),
    /// Build the guide as a book, or run its programs and compare what they print.
    Guide(guide::Options),
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
    /// Check the licences, versions and sources of the crates that we depend on.
    Deny(deny::Options),
    /// Check that the workspace compiles with the oldest Rust that it says it needs.
    Msrv,
    /// Record what Node prints for the programs that our scheduling is compared with.
    NodeOrder(node_order::Options),
    /// Make npm packages of the command, for systems with glibc 2.28 or later, or with musl.
    Npm(npm::Options),
    /// Pack the crates as they would be published, and build each from its archive alone.
    Package(package::Options),
    /// Build programs against an installation, install the packages, and run programs with them.
    Packaging(packaging::Options),
    /// Build the page of `blacklight live`, compare it with its sources, or try it in Chromium.
    Page(page::Options),
    /// Measure programs that people use under load, on the libuv they have and on ours, turn about.
    Programs(programs::Options),
    /// Run tests of libuv's suite with each system call that older systems lack refused in turn.
    Refusals(conformance::refusals::Choice),
    /// Make all that a release consists of, with notes and sums.
    Release(release::Options),
    /// Run tests under the address and thread sanitizers.
    Sanitize(sanitize::Options),
    /// Compare the interfaces of the crates with those of an earlier revision.
    Semver(semver::Options),
    /// Put ours in the place of a libuv that programs and modules carry inside.
    Swap(swap::Options),
    /// Make each call of the library into the C library fail in turn.
    Sweep(sweep::Options),
    /// Run everything that must hold before a change is good.
    Test(test::Options),
    /// Measure the crate and tokio on the same programs, turn about.
    Tokio(tokio::Options),
    /// Ask the views about real programs, and read what they answer.
    Views(views::Options),
    /// Make a Python wheel of the command, for systems with glibc 2.28 or later, or with musl.
    Wheel(wheel::Options),
    /// Run a program of another target with its children; started by Cargo.
    #[command(hide = true)]
    Emulated(emulation::Options),
    /// One turn of a program inside a sandbox; started by `programs`.
    #[command(hide = true)]
    ProgramsTurn {
        /// What to start and how to measure it, in JSON.
        spec: String,
    },
    /// The checks inside of their namespaces; started by `views`.
    #[command(hide = true)]
    ViewsInside {
        /// What to check, in JSON.
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
        Chore::Cross(options) => library::run(&options).map(|()| ExitCode::SUCCESS),
        Chore::Clients(options) => clients::run(&options),
        Chore::Differ(options) => differ::run(&options),
        Chore::Emulated(options) => emulation::run(&options).map(|()| ExitCode::SUCCESS),
        Chore::Dropin => dropin::run(),
        Chore::Exports(options) => exports::run(&options),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Guide(options) => guide::run(&options),
        Chore::Install(options) => install::run(&options),
        Chore::Instructions(options) => instructions::run(&options),
        Chore::Measure(options) => measure::run(&options),
        Chore::Loom(options) => loom::run(&options),
        Chore::Deb(options) => deb::run(&options),
        Chore::Deny(options) => deny::run(&options),
        Chore::Msrv => msrv::run(),
        Chore::NodeOrder(options) => node_order::run(&options),
        Chore::Npm(options) => npm::run(&options),
        Chore::Package(options) => package::run(&options),
        Chore::Packaging(options) => packaging::run(&options),
        Chore::Page(options) => page::run(&options),
        Chore::Programs(options) => programs::run(&options),
        Chore::ProgramsTurn { spec } => programs::take_turn(&spec),
        Chore::Refusals(choice) => conformance::refusals::run(&choice),
        Chore::Release(options) => release::run(&options),
        Chore::Semver(options) => semver::run(&options),
        Chore::Sanitize(options) => sanitize::run(&options),
        Chore::Swap(options) => swap::run(&options),
        Chore::Sweep(options) => sweep::run(&options),
        Chore::Tokio(options) => tokio::run(&options),
        Chore::Test(options) => test::run(&options),
        Chore::Abi(options) => abi::run(options).map(|()| ExitCode::SUCCESS),
        Chore::Views(options) => views::run(&options),
        Chore::ViewsInside { spec } => views::run_inside(&spec),
        Chore::Wheel(options) => wheel::run(&options),
        Chore::SandboxInit { spec } => sandbox::init::run(&spec).map(|()| ExitCode::SUCCESS),
    }
}
