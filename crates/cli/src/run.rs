//! `blacklight run`: runs a program with our library in place of its libuv.
//!
//! Our library is preloaded and has the same name as libuv, so the dynamic linker loads no other.
//! That also holds for programs with their own search path, and for modules that are loaded
//! later, as in Python and Lua. For a program that carries a libuv inside, the swap is preloaded
//! as well, and replaces it.

use crate::elf::hides_libuv;
use crate::known::Entry;
use crate::library;
use crate::linker::Program;
use crate::machine;
use crate::swap::{Preloads, Verdict};
use crate::words::tell;
use anyhow::{Context, Result, bail, ensure};
use blacklight::Mechanism;
use std::borrow::Cow;
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
    /// Fail, and do not run the program, if our library cannot replace its libuv; and end it when it
    /// opens a module whose libuv our library cannot replace.
    #[arg(long)]
    require: bool,
    /// Do not preload our library into the children of the program.
    #[arg(long)]
    only_this: bool,
    /// Append to this file, for every libuv in any process, whether ours replaced it.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Record from the start what the program's loops do, for `blacklight top` and the other views.
    #[arg(long)]
    record: bool,
    /// Keep where each handle is made, as a stack, for `blacklight why` and the other views.
    #[arg(long, requires = "record")]
    origins: bool,
    /// Have Node.js and Python name their functions for stacks, in `/tmp/perf-PID.map`.
    #[arg(long, requires = "record")]
    stacks: bool,
    /// End the program with its parent, which is this process, however that ends.
    #[arg(long, hide = true)]
    bound: Option<i32>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// How the program is run.
enum Way {
    /// Our library is preloaded, with settings for the swap.
    Preload(Preloads, Vec<String>),
    /// The program runs with its own libuv, for this reason.
    AsItIs(String),
}

/// Executes the program in place of this one. Returns only if that fails.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let (name, arguments) = options.program.split_first().context("no program")?;
    let program = Program::find(name)?;
    let mut command = Command::new(name);
    command.args(arguments);
    match way(options, name, &program)? {
        Way::AsItIs(reason) => run_as_it_is(options, name, &reason)?,
        Way::Preload(preloads, words) => {
            preloads.apply(&mut command, &words)?;
            if let Some(poller) = options.poller {
                command.env("BLACKLIGHT_POLLER", poller.name());
            }
        }
    }
    if options.record {
        let setting = if options.origins { "origins" } else { "1" };
        command.env("BLACKLIGHT_RECORD", setting);
    }
    if options.stacks {
        name_functions(&mut command);
    }
    if let Some(parent) = options.bound {
        bind_to(parent)?;
    }
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {}", name.display()))
}

/// Has the system send SIGTERM to this process, and to the program that it becomes, when its parent ends.
pub(crate) fn bind_to(parent: i32) -> Result<()> {
    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // The parent may have ended before the system was asked.
    let is_there = Pid::as_raw(getppid()) == parent;
    ensure!(is_there, "the process that has started it has ended");
    Ok(())
}

/// The options by which Node.js writes a map of the functions that it compiles.
const MAPS: &str = "--perf-basic-prof-only-functions --interpreted-frames-native-stack";

/// Has Node.js and Python write a map of the functions that they compile, and keep frames by which stacks can be followed.
fn name_functions(command: &mut Command) {
    let options = match std::env::var_os("NODE_OPTIONS") {
        None => MAPS.into(),
        Some(mut options) => {
            options.push(" ");
            options.push(MAPS);
            options
        }
    };
    command.env("NODE_OPTIONS", options);
    command.env("PYTHONPERFSUPPORT", "1");
}

/// Whether the user asks for maps or logs of functions, which are the user's then.
pub(crate) fn asks_for_maps(program: &[OsString]) -> bool {
    let options = std::env::var("NODE_OPTIONS").unwrap_or_default();
    let arguments = program.iter().map(|word| word.to_string_lossy());
    let mut words = options
        .split_ascii_whitespace()
        .map(Cow::from)
        .chain(arguments);
    let is_asked = |word: Cow<'_, str>| {
        let options = ["--perf-basic-prof", "--perf-prof", "--logfile", "-Xperf"];
        word == "--prof" || options.iter().any(|option| word.starts_with(option))
    };
    words.any(is_asked) || std::env::var_os("PYTHONPERFSUPPORT").is_some()
}

/// Chooses how to run the program, and prints that unless the swap will.
fn way(options: &Options, name: &OsStr, program: &Program) -> Result<Way> {
    if let Some(reason) = obstacle(program) {
        return Ok(Way::AsItIs(reason.into()));
    }
    let library = library::find(options.library.as_deref())?;
    let preloads = match Preloads::with(library) {
        Ok(preloads) => preloads,
        Err(reason) => return Ok(Way::AsItIs(format!("{reason:#}"))),
    };
    let mut words = Vec::new();
    if options.only_this {
        words.push(only_this(program, &preloads)?);
    }
    if let Some(file) = &options.report {
        words.push(report(file, &preloads)?);
    }
    if options.require && preloads.swap.is_some() {
        words.push(format!("require={}", std::process::id()));
    }
    let library = preloads.library.display();
    let on = match options.poller {
        Some(poller) => format!("{library} with {}", poller.name()),
        None => format!("{library} with its best poller"),
    };
    if program.elf.has_libuv_inside {
        let announcement = announcement(options, name, &preloads);
        let swap = preloads.swap.as_deref();
        let entry = swap.and_then(|swap| Entry::of(program, swap));
        let mut facts = entry.as_ref().and_then(Entry::read);
        let keeps = facts.is_none() && entry.as_ref().is_some_and(Entry::can_be_written);
        if announcement.is_none() || keeps {
            let carried = match preloads.probe(&program.file)? {
                Verdict::Refused(reason) => return Ok(Way::AsItIs(reason)),
                Verdict::Swapped(carried) => carried,
            };
            if let (Some(entry), true) = (&entry, keeps) {
                entry.write(&carried.known);
            }
            if announcement.is_none() {
                let (name, version) = (name.display(), &carried.version);
                tell(&format!(
                    "{name} runs on {on}, in place of the {version} inside it"
                ));
            }
            facts = Some(carried.known);
        }
        words.extend(announcement);
        words.extend(facts.map(|facts| format!("known={facts}")));
        return Ok(Way::Preload(preloads, words));
    }
    let name = name.display();
    if program.asks_for_libuv()? {
        tell(&format!("{name} runs on {on}"));
    } else if program.script.is_some() {
        let file = program.file.display();
        tell(&format!(
            "{name} is a script for {file}; what loads libuv in it gets {on}"
        ));
    } else {
        tell(&format!(
            "{name} does not load libuv itself; a module that does gets {on}"
        ));
    }
    Ok(Way::Preload(preloads, words))
}

/// The setting that makes the swap say what becomes of the program, which this process is about to be. `None` if that must be known before the
/// program is started, or the swap cannot say it: then the program is tried first, which takes some milliseconds. So it is when no facts
/// about it are kept, for the starts after this one.
fn announcement(options: &Options, name: &OsStr, preloads: &Preloads) -> Option<String> {
    let name = name.to_str().filter(|name| !name.contains(';'))?;
    let is_possible = !options.require && preloads.swap.is_some();
    is_possible.then(|| format!("announce={}:{name}", std::process::id()))
}

fn run_as_it_is(options: &Options, name: &OsStr, reason: &str) -> Result<()> {
    if options.require {
        bail!("{}: {reason}", name.display());
    }
    tell(&format!("{}: {reason}; it runs as it is", name.display()));
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
pub(crate) fn obstacle(program: &Program) -> Option<Cow<'static, str>> {
    if let Some(reason) = &program.unknown {
        return Some(reason.clone().into());
    }
    let interpreter = program.elf.interpreter.as_deref();
    let is_musl = interpreter
        .and_then(|path| path.file_name())
        .is_some_and(|name| name.to_string_lossy().starts_with("ld-musl"));
    let mode = program
        .file
        .metadata()
        .map(|metadata| metadata.permissions().mode());
    if !program.elf.is_for_this_machine {
        let name = machine::NAME;
        return Some(format!("it is not made for {name}, and our library is").into());
    }
    if !program.elf.is_dynamic {
        return Some("it is linked statically and loads no libuv".into());
    }
    if is_musl != cfg!(target_env = "musl") {
        let [its, ours] = if is_musl {
            ["musl", "glibc"]
        } else {
            ["glibc", "musl"]
        };
        return Some(format!("it is made for {its}, and our library for {ours}").into());
    }
    if mode.is_ok_and(|mode| mode & 0o6000 != 0) {
        return Some(
            "it is set-uid or set-gid, and nothing is preloaded into such a program".into(),
        );
    }
    if has_capabilities(&program.file) {
        return Some(
            "its file has capabilities, and nothing is preloaded into such a program".into(),
        );
    }
    if program.elf.has_libuv_inside && !machine::HAS_SWAP {
        let name = machine::NAME;
        let with = if cfg!(target_env = "musl") {
            " with musl"
        } else {
            ""
        };
        let reason =
            format!("it carries a libuv inside, which is not replaced on {name}{with} yet");
        return Some(reason.into());
    }
    if hides_its_libuv(program) {
        return Some("it carries a libuv inside and does not export its functions".into());
    }
    None
}

/// Whether the program carries a libuv where it cannot be replaced, and asks for none besides. What
/// takes longest is asked last.
fn hides_its_libuv(program: &Program) -> bool {
    !program.elf.has_libuv_inside
        && !program.elf.asks_for_libuv()
        && hides_libuv(&program.file).unwrap_or(false)
        && !program.asks_for_libuv().unwrap_or(false)
}

/// Whether the file has capabilities, as set by `setcap`.
fn has_capabilities(file: &Path) -> bool {
    // The kernel's largest format has 24 bytes.
    let mut capabilities = [0_u8; 32];
    rustix::fs::getxattr(file, c"security.capability", &mut capabilities[..]).is_ok()
}
