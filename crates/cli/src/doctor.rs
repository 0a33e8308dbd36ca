//! `blacklight doctor`: reports which libuv a program would load, and whether ours can replace
//! it.

use crate::elf::Elf;
use crate::library;
use crate::linker::Program;
use crate::run::obstacle;
use crate::swap::{Preloads, Verdict};
use anyhow::Result;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The options of the doctor.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Our library, if it is not beside this program or in ../lib.
    #[arg(long)]
    library: Option<PathBuf>,
    /// List the functions, not only their number.
    #[arg(long)]
    symbols: bool,
    /// The program, or a library or module of one.
    program: OsString,
}

/// Prints the report. The exit code is a failure if ours lacks a function that the program needs.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let program = Program::find(&options.program)?;
    if let Some(script) = &program.script {
        let interpreter = program.file.display();
        println!("{} is a script for {interpreter}", script.display());
    }
    let name = program.file.display();
    if let Some(reason) = obstacle(&program) {
        println!("{name}: {reason}");
        return Ok(ExitCode::SUCCESS);
    }
    if program.elf.has_libuv_inside() {
        return inside(options, &program);
    }
    match program.libuv() {
        Some(path) => println!("{name} loads {}", real_name(path)),
        None if program
            .missing
            .iter()
            .any(|name| name.starts_with("libuv.so")) =>
        {
            println!("{name} asks for libuv, and this machine has none");
        }
        None => println!("{name} loads no libuv when it starts; its modules may"),
    }
    let needed = needed(&program)?;
    if needed.is_empty() {
        println!("it needs no function of libuv");
        return Ok(ExitCode::SUCCESS);
    }
    let library = library::find(options.library.as_deref())?;
    let ours = Elf::read(&library)?;
    Ok(report(&needed, &ours, &library, options.symbols))
}

/// Reports on a program or module that carries a libuv, and how ours would replace it.
fn inside(options: &Options, program: &Program) -> Result<ExitCode> {
    let name = program.file.display();
    let elf = &program.elf;
    let version = elf.carried_version.as_deref().unwrap_or("of some version");
    let count = elf.has.len();
    println!("{name} carries a libuv {version} inside and exports {count} of its functions");
    let preloads = Preloads::with(library::find(options.library.as_deref())?);
    if elf.interpreter.is_some() {
        match preloads.probe(&program.file)? {
            Verdict::Swapped(carried) => {
                let (version, functions) = (&carried.version, &carried.functions);
                println!("its {functions} functions would be replaced by jumps to ours");
                println!(
                    "{} takes the place of {version}",
                    preloads.library.display()
                );
            }
            Verdict::Refused(reason) => {
                println!("it would run as it is: {reason}");
                return Ok(ExitCode::FAILURE);
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    if elf.is_interposable {
        println!("it calls them through its linkage table, where the linker puts ours");
    } else {
        println!("it calls them directly; they would be replaced by jumps to ours");
    }
    let user = |symbol: &String| (symbol.clone(), program.file.clone());
    let needed = elf.has.iter().map(user).collect();
    let ours = Elf::read(&preloads.library)?;
    Ok(report(&needed, &ours, &preloads.library, options.symbols))
}

/// The functions of libuv that the program and its libraries need, each with the first file that
/// needs it.
fn needed(program: &Program) -> Result<BTreeMap<String, PathBuf>> {
    let mut needed = BTreeMap::new();
    for symbol in &program.elf.needs {
        needed.insert(symbol.clone(), program.file.clone());
    }
    for path in &program.libraries {
        for symbol in Elf::read(path)?.needs {
            needed.entry(symbol).or_insert_with(|| path.clone());
        }
    }
    Ok(needed)
}

fn report(needed: &BTreeMap<String, PathBuf>, ours: &Elf, library: &Path, list: bool) -> ExitCode {
    let lacking: Vec<_> = needed
        .iter()
        .filter(|(symbol, _)| !ours.has.contains(*symbol))
        .collect();
    if list {
        for (symbol, user) in needed {
            println!("    {symbol} ({})", user.display());
        }
    }
    println!("it needs {} functions of libuv", needed.len());
    if lacking.is_empty() {
        println!("{} has all of them", library.display());
        return ExitCode::SUCCESS;
    }
    println!("{} lacks {} of them:", library.display(), lacking.len());
    for (symbol, user) in lacking {
        println!("    {symbol}, needed by {}", user.display());
    }
    ExitCode::FAILURE
}

/// The path of a library and, if that is a link, the file that it leads to.
fn real_name(path: &Path) -> String {
    match path.canonicalize() {
        Ok(real) if real != path => format!("{} ({})", path.display(), real.display()),
        _ => path.display().to_string(),
    }
}
