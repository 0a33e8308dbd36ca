//! `blacklight run`: a program with our library in place of its libuv.
//!
//! The library is preloaded: it bears the name that the program asks for, so the dynamic linker
//! looks no further. That holds for programs with a search path of their own too, and for
//! modules that are loaded later, as Python's and Lua's are. A program that carries a libuv inside gets
//! ours by the swap, which is preloaded with it.

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

/// What to run, and how.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The poller to run on: select, poll or epoll. The best there is if not given.
    #[arg(long, value_parser = crate::demo::parse_poller)]
    poller: Option<Mechanism>,
    /// Our library, if it does not lie beside this program or in ../lib.
    #[arg(long)]
    library: Option<PathBuf>,
    /// Fail where our library cannot take the place of the program's, and do not run it.
    #[arg(long)]
    require: bool,
    /// Do not pass our library on to the programs that this one starts.
    #[arg(long)]
    only_this: bool,
    /// Add a line to this file for every libuv, in any process, that ours takes the place of or not.
    #[arg(long)]
    report: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// How the program gets our library.
enum Way {
    /// Ours is preloaded; the word, if any, is for the swap.
    Preload(Option<String>),
    /// It does not, for this reason.
    AsItIs(String),
}

/// Becomes the program; returns only if that fails.
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

/// Decides how, and says so.
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

/// The word that has the swap keep all of this from the program's children.
fn only_this(program: &Program, preloads: &Preloads) -> Result<String> {
    let file = program.file.canonicalize();
    let file = file.with_context(|| format!("cannot find {}", program.file.display()))?;
    word("only-this", &file, preloads)
}

/// The word that has the swap write to a file what came of it.
fn report(file: &Path, preloads: &Preloads) -> Result<String> {
    let file = std::path::absolute(file);
    word("report", &file.context("no file to report to")?, preloads)
}

/// A word for the swap that has a path in it.
fn word(name: &str, path: &Path, preloads: &Preloads) -> Result<String> {
    ensure!(
        preloads.swap.is_some(),
        "--{name} needs the swap, which is not beside {}",
        preloads.library.display()
    );
    let text = path.to_str().filter(|path| !path.contains(';'));
    let text = text.with_context(|| format!("cannot name {} to the swap", path.display()))?;
    Ok(format!("{name}={text}"))
}

/// Why no other library can take the place of the program's libuv, as far as its file tells.
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

/// Whether the file gives rights to whoever runs it, as `setcap` has it.
fn has_capabilities(file: &Path) -> bool {
    // The kernel's largest form has 24 bytes.
    let mut capabilities = [0_u8; 32];
    rustix::fs::getxattr(file, c"security.capability", &mut capabilities[..]).is_ok()
}
