//! `blacklight run`: a program with our library in place of its libuv.
//!
//! The library is preloaded: it bears the name that the program asks for, so the dynamic linker
//! looks no further. That holds for programs with a search path of their own too, and for
//! modules that are loaded later, as Python's and Lua's are.

use crate::library;
use crate::linker::Program;
use anyhow::{Context, Result, ensure};
use blacklight::Mechanism;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What to run, and how.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The poller to run on: select, poll or epoll. The best there is if not given.
    #[arg(long, value_parser = crate::demo::parse_poller)]
    poller: Option<Mechanism>,
    /// Our library, if it does not lie beside this program or in ../lib.
    #[arg(long)]
    library: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// Becomes the program; returns only if that fails.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let (name, arguments) = options.program.split_first().context("no program")?;
    let program = Program::find(name)?;
    let mut command = Command::new(name);
    command.args(arguments);
    match obstacle(&program) {
        Some(reason) => {
            eprintln!("blacklight: {}: {reason}; it runs as it is", name.display());
        }
        None => {
            let library = library::find(options.library.as_deref())?;
            let on = match options.poller {
                Some(poller) => format!("{} with {}", library.display(), poller.name()),
                None => format!("{} with its best poller", library.display()),
            };
            if program.asks_for_libuv() {
                eprintln!("blacklight: {} runs on {on}", name.display());
            } else {
                eprintln!(
                    "blacklight: {} does not load libuv itself; a module that does gets {on}",
                    name.display()
                );
            }
            command.env("LD_PRELOAD", preload(&library)?);
            if let Some(poller) = options.poller {
                command.env("BLACKLIGHT_POLLER", poller.name());
            }
        }
    }
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {}", name.display()))
}

/// Why no other library can take the place of the program's libuv.
pub(crate) fn obstacle(program: &Program) -> Option<&'static str> {
    if !program.elf.is_dynamic {
        return Some("it is linked statically and loads no libuv");
    }
    if program.elf.has_libuv_inside() {
        return Some("it carries a libuv inside and loads none");
    }
    None
}

/// What `LD_PRELOAD` is to be: our library before what the caller wants there.
fn preload(library: &Path) -> Result<OsString> {
    let is_separator = |byte: &u8| matches!(byte, b' ' | b':');
    ensure!(
        !library.as_os_str().as_bytes().iter().any(is_separator),
        "the linker cannot preload {}: its name has a space or a colon",
        library.display()
    );
    let mut list = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD") {
        list.push(":");
        list.push(others);
    }
    Ok(list)
}
