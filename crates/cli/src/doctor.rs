//! `blacklight doctor`: reports which libuv a program would load, and whether ours can replace
//! it.

use crate::elf::Functions;
use crate::library;
use crate::linker::{Libraries, Program};
use crate::python;
use crate::run::obstacle;
use crate::swap::{Preloads, Verdict};
use crate::words;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The oldest libuv whose structures and constants are those of ours, as the swap has it.
const OLDEST: [u8; 2] = [1, 44];

/// The options of the doctor.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Our library, if it is not beside this program or in ../lib.
    #[arg(long)]
    library: Option<PathBuf>,
    /// List the functions, not only their number.
    #[arg(long)]
    symbols: bool,
    /// The program, or a library or module of one. Arguments of the program do not matter.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// Prints the report. The exit code is a failure if ours lacks a function that the program needs.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let program = Program::find(options.program.first().context("no program")?)?;
    if let Some(script) = &program.script {
        let interpreter = program.file.display();
        say(&format!(
            "{} is a script for {interpreter}",
            script.display()
        ))?;
    }
    examine(options, &program)
}

/// Reports on a file.
fn examine(options: &Options, program: &Program) -> Result<ExitCode> {
    let name = program.file.display();
    if let Some(reason) = obstacle(program) {
        say(&format!("{name}: {reason}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if program.elf.has_libuv_inside {
        return inside(options, program);
    }
    let libraries = program.libraries()?;
    match libraries.libuv() {
        Some(path) => say(&format!("{name} loads {}", real_name(path)))?,
        None if libraries.lack_libuv() => {
            say(&format!("{name} asks for libuv, and this machine has none"))?;
        }
        None if python::is_python(program) => return interpreter(options, program),
        None => say(&format!(
            "{name} loads no libuv when it starts; its modules may"
        ))?,
    }
    let needed = needed(program, &libraries)?;
    if needed.is_empty() {
        say("it needs no function of libuv")?;
        return Ok(ExitCode::SUCCESS);
    }
    let library = library::find(options.library.as_deref())?;
    let ours = Functions::read(&library)?;
    report(&needed, &ours, &library, options.symbols)
}

/// Reports on an interpreter of Python by the modules that it finds.
fn interpreter(options: &Options, program: &Program) -> Result<ExitCode> {
    let name = program.file.display();
    let modules = python::modules_with_libuv(&program.file)?;
    if modules.is_empty() {
        say(&format!(
            "{name} loads no libuv when it starts, and finds no module that uses one"
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    say(&format!(
        "{name} loads no libuv when it starts; what it finds and may import:"
    ))?;
    let mut code = ExitCode::SUCCESS;
    for module in &modules {
        let reported = examine(options, &Program::find(module.as_os_str())?)?;
        if reported != ExitCode::SUCCESS {
            code = reported;
        }
    }
    Ok(code)
}

/// Reports on a program or module that carries a libuv, and how ours would replace it.
fn inside(options: &Options, program: &Program) -> Result<ExitCode> {
    let name = program.file.display();
    let carried = Functions::read(&program.file)?;
    let version = carried.version.map_or("of some version".to_owned(), dotted);
    let count = carried.has.len();
    say(&format!(
        "{name} carries a libuv {version} inside and exports {count} of its functions"
    ))?;
    let preloads = Preloads::with(library::find(options.library.as_deref())?)?;
    if program.elf.interpreter.is_none() {
        return module(options, program, &carried, &preloads);
    }
    match preloads.probe(&program.file)? {
        Verdict::Swapped(carried) => {
            let (version, functions) = (&carried.version, &carried.functions);
            say(&format!(
                "its {functions} functions would be replaced by jumps to ours"
            ))?;
            say(&format!(
                "{} takes the place of {version}",
                preloads.library.display()
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Verdict::Refused(reason) => {
            say(&format!("it would run as it is: {reason}"))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Reports on a module, as far as its file shows: it may need a program that opens it.
fn module(
    options: &Options,
    program: &Program,
    carried: &Functions,
    preloads: &Preloads,
) -> Result<ExitCode> {
    let ours = Functions::read(&preloads.library)?;
    if let (Some(its), Some(own)) = (carried.version, ours.version)
        && (its[..2] < OLDEST[..] || its[..2] > own[..2])
    {
        let [major, minor] = OLDEST;
        let newest = dotted(own);
        say(&format!(
            "it would run as it is: ours stands in for {major}.{minor}.0 to {newest}"
        ))?;
        return Ok(ExitCode::FAILURE);
    }
    if carried.is_interposable {
        say("it calls them through its linkage table, where the linker puts ours")?;
    } else {
        say("it calls them directly; they would be replaced by jumps to ours")?;
    }
    say("sizes, and what its linker has optimised, are looked at when a program opens it")?;
    let user = |symbol: &String| (symbol.clone(), program.file.clone());
    let needed = carried.has.iter().map(user).collect();
    report(&needed, &ours, &preloads.library, options.symbols)
}

fn dotted([major, minor, patch]: [u8; 3]) -> String {
    format!("{major}.{minor}.{patch}")
}

/// The functions of libuv that the program and its libraries need, each with the first file that
/// needs it.
fn needed(program: &Program, libraries: &Libraries) -> Result<BTreeMap<String, PathBuf>> {
    let mut needed = BTreeMap::new();
    for path in std::iter::once(&program.file).chain(&libraries.found) {
        for symbol in Functions::read(path)?.needs {
            needed.entry(symbol).or_insert_with(|| path.clone());
        }
    }
    Ok(needed)
}

fn report(
    needed: &BTreeMap<String, PathBuf>,
    ours: &Functions,
    library: &Path,
    list: bool,
) -> Result<ExitCode> {
    let lacking: Vec<_> = needed
        .iter()
        .filter(|(symbol, _)| !ours.has.contains(*symbol))
        .collect();
    if list {
        for (symbol, user) in needed {
            say(&format!("    {symbol} ({})", user.display()))?;
        }
    }
    say(&format!("it needs {} functions of libuv", needed.len()))?;
    if lacking.is_empty() {
        say(&format!("{} has all of them", library.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    say(&format!(
        "{} lacks {} of them:",
        library.display(),
        lacking.len()
    ))?;
    for (symbol, user) in lacking {
        say(&format!("    {symbol}, needed by {}", user.display()))?;
    }
    Ok(ExitCode::FAILURE)
}

/// Prints a line of the report.
fn say(line: &str) -> io::Result<()> {
    words::print(&format!("{line}\n"))
}

/// The path of a library and, if that is a link, the file that it leads to.
fn real_name(path: &Path) -> String {
    match path.canonicalize() {
        Ok(real) if real != path => format!("{} ({})", path.display(), real.display()),
        _ => path.display().to_string(),
    }
}
