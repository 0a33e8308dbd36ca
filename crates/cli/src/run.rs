//! `blacklight run`: runs a program with our library in place of its libuv.
//!
//! Our library is preloaded and has the same name as libuv, so the dynamic linker loads no other.
//! That also holds for programs with their own search path, and for modules that are loaded
//! later, as in Python and Lua. For a program that carries a libuv inside, the swap is preloaded
//! as well, and replaces it.

use crate::library;
use crate::linker::Program;
use crate::swap::{Preloads, Verdict};
use anyhow::{Context, Result, bail, ensure};
use blacklight::Mechanism;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The poller to run on: select, poll or epoll. The default is the best available.
    #[arg(long, value_parser = crate::demo::parse_poller)]
    poller: Option<Mechanism>,
    /// Our library, if it is not beside this program or in ../lib.
    #[arg(long)]
    library: Option<PathBuf>,
    /// Fail, and do not run the program, if our library cannot replace its libuv.
    #[arg(long)]
    require: bool,
    /// Do not preload our library into the children of the program.
    #[arg(long)]
    only_this: bool,
    /// Append to this file, for every libuv in any process, whether ours replaced it.
    #[arg(long)]
    report: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// How the program is run.
enum Way {
    /// Our library is preloaded, with an optional setting for the swap.
    Preload(Option<String>),
    /// The program runs with its own libuv, for this reason.
    AsItIs(String),
}

/// Executes the program in place of this one. Returns only if that fails.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let (name, arguments) = options.program.split_first().context("no program")?;
    let program = Program::find(name)?;
    let mut command = Command::new(name);
    command.args(arguments);
    if let Some(reason) = obstacle(&program) {
        run_as_it_is(options, name, reason)?;
    } else {
        let preloads = Preloads::with(library::find(options.library.as_deref())?);
        match way(options, name, &program, &preloads)? {
            Way::AsItIs(reason) => run_as_it_is(options, name, &reason)?,
            Way::Preload(word) => {
                let mut words: Vec<String> = word.into_iter().collect();
                if options.only_this {
                    words.push(only_this(&program, &preloads)?);
                }
                if let Some(file) = &options.report {
                    words.push(report(file, &preloads)?);
                }
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                preloads.apply(&mut command, &words)?;
                if let Some(poller) = options.poller {
                    command.env("BLACKLIGHT_POLLER", poller.name());
                }
            }
        }
    }
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {}", name.display()))
}

/// Chooses how to run the program, and prints that.
fn way(options: &Options, name: &OsStr, program: &Program, preloads: &Preloads) -> Result<Way> {
    let library = preloads.library.display();
    let on = match options.poller {
        Some(poller) => format!("{library} with {}", poller.name()),
        None => format!("{library} with its best poller"),
    };
    let name = name.display();
    if program.elf.has_libuv_inside() {
        return Ok(match preloads.probe(&program.file)? {
            Verdict::Refused(reason) => Way::AsItIs(reason),
            Verdict::Swapped(carried) => {
                let version = &carried.version;
                eprintln!("blacklight: {name} runs on {on}, in place of the {version} inside it");
                Way::Preload(Some(carried.word()))
            }
        });
    }
    if program.asks_for_libuv() {
        eprintln!("blacklight: {name} runs on {on}");
    } else {
        eprintln!("blacklight: {name} does not load libuv itself; a module that does gets {on}");
    }
    Ok(Way::Preload(None))
}

fn run_as_it_is(options: &Options, name: &OsStr, reason: &str) -> Result<()> {
    if options.require {
        bail!("{}: {reason}", name.display());
    }
    eprintln!("blacklight: {}: {reason}; it runs as it is", name.display());
    Ok(())
}

/// The setting that makes the swap remove the preloads from the environment of the program's
/// children.
fn only_this(program: &Program, preloads: &Preloads) -> Result<String> {
    let file = program.file.canonicalize();
    let file = file.with_context(|| format!("cannot find {}", program.file.display()))?;
    path_setting("only-this", &file, preloads)
}

/// The setting that makes the swap write its results to a file.
fn report(file: &Path, preloads: &Preloads) -> Result<String> {
    let file = std::path::absolute(file);
    path_setting("report", &file.context("no file to report to")?, preloads)
}

/// A setting of the swap whose value is a path.
fn path_setting(name: &str, path: &Path, preloads: &Preloads) -> Result<String> {
    ensure!(
        preloads.swap.is_some(),
        "--{name} needs the swap, which is not beside {}",
        preloads.library.display()
    );
    let text = path.to_str().filter(|path| !path.contains(';'));
    let text = text.with_context(|| format!("cannot name {} to the swap", path.display()))?;
    Ok(format!("{name}={text}"))
}

/// Returns why no other library can replace the program's libuv, as far as its file shows.
pub(crate) fn obstacle(program: &Program) -> Option<&'static str> {
    let interpreter = program.elf.interpreter.as_deref();
    let is_musl = interpreter
        .and_then(|path| path.file_name())
        .is_some_and(|name| name.to_string_lossy().starts_with("ld-musl"));
    let mode = program
        .file
        .metadata()
        .map(|metadata| metadata.permissions().mode());
    if !program.elf.is_x86_64 {
        return Some("it is not made for x86-64, and our library is");
    }
    if !program.elf.is_dynamic {
        return Some("it is linked statically and loads no libuv");
    }
    if is_musl {
        return Some("it is made for musl, and our library for glibc");
    }
    if mode.is_ok_and(|mode| mode & 0o6000 != 0) {
        return Some("it is set-uid or set-gid, and nothing is preloaded into such a program");
    }
    if has_capabilities(&program.file) {
        return Some("its file has capabilities, and nothing is preloaded into such a program");
    }
    if program.elf.hides_libuv && !program.asks_for_libuv() {
        return Some("it carries a libuv inside and does not export its functions");
    }
    None
}

/// Whether the file has capabilities, as set by `setcap`.
fn has_capabilities(file: &Path) -> bool {
    // The kernel's largest format has 24 bytes.
    let mut capabilities = [0_u8; 32];
    rustix::fs::getxattr(file, c"security.capability", &mut capabilities[..]).is_ok()
}
