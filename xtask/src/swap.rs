//! `cargo xtask swap`: programs that carry the original libuv inside run on ours.
//!
//! One C program, linked with the original's objects in many ways, prints which library its calls
//! get to, from its main thread, from another thread and from a child. Where ours cannot take the
//! original's place the program must run as it would alone, and `blacklight run` say why, in
//! one line.

mod doctoring;
mod modules;
mod programs;
mod starting;

use crate::compile::run_quietly;
use crate::original::Original;
use crate::target::{Processor, Target};
use crate::{library, selection, workspace};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

/// What a process that may not do what a check needs ends with.
const SKIPPED: i32 = 77;

/// How many seconds a program may take on a machine that is busy with other things.
const LIMIT: &str = "300";

/// Which checks to make.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Names of checks. All if none is named.
    names: Vec<String>,
    /// Only list the checks.
    #[arg(long)]
    list: bool,
    /// Build for another machine, and make the checks there, under an emulator.
    #[arg(long)]
    target: Option<Target>,
}

/// What a check needs.
struct Kit {
    /// The original, for the target.
    original: Original,
    /// The machine that is not this one.
    target: Option<Target>,
    /// Where programs are built.
    dir: PathBuf,
    /// Our library and the swap.
    lib: PathBuf,
    /// The `blacklight` command.
    command: PathBuf,
}

/// What has a program start with the library and the swap in `lib`.
pub(crate) fn environment(lib: &Path) -> [(&'static str, String); 2] {
    let library = lib.join("libuv.so.1").display().to_string();
    let swap = lib.join(library::SWAP).display().to_string();
    [
        ("LD_PRELOAD", format!("{library}:{swap}")),
        ("BLACKLIGHT_SWAP", format!("library={library}")),
    ]
}

type Check = fn(&Kit) -> Result<()>;

const CHECKS: [(&str, Check); 48] = [
    ("a_program_at_a_fixed_address", programs::fixed_address),
    ("a_program_at_any_address", programs::any_address),
    ("a_program_with_landing_pads", programs::landing_pads),
    ("a_stripped_program", programs::stripped),
    ("a_program_with_an_old_table", programs::old_hash_table),
    ("one_function_more", programs::one_more),
    ("a_newer_version", programs::newer),
    ("another_size", programs::other_size),
    ("functions_without_room", programs::without_room),
    ("link_time_optimisation", programs::link_time_optimisation),
    ("functions_that_are_folded", programs::folded),
    ("functions_that_are_not_libuv's", programs::stubs),
    ("another_compiler", programs::other_compiler),
    ("the_tripwire", programs::tripwire),
    ("a_child_with_the_same_build_id", programs::same_build_id),
    ("another_preload", programs::other_preload),
    ("a_preload_with_threads", programs::threads),
    ("code_that_may_not_be_changed", programs::forbidden),
    (
        "code_that_may_not_be_run_any_more",
        programs::forbidden_late,
    ),
    ("code_that_is_lost", programs::forbidden_for_good),
    ("require", starting::require),
    ("only_this", starting::only_this),
    (
        "another_program_in_its_place",
        starting::another_in_its_place,
    ),
    ("run_inside_run", starting::run_inside_run),
    (
        "children_of_a_program_left_alone",
        starting::children_left_alone,
    ),
    ("a_separator_in_the_name", starting::a_separator_in_the_name),
    ("separators_in_the_path", starting::separators_in_the_path),
    ("our_library_is_broken", starting::our_library_is_broken),
    ("facts_are_kept", starting::facts_are_kept),
    ("report", starting::report),
    ("a_script", starting::script),
    ("scripts_of_all_kinds", starting::scripts_of_all_kinds),
    ("nothing_is_preloaded", starting::nothing_is_preloaded),
    ("a_module", modules::module),
    ("a_module_that_calls_directly", modules::direct_module),
    ("a_module_with_guarded_code", modules::guarded_module),
    ("a_module_that_is_linked", modules::linked_module),
    ("a_module_bound_to_itself", modules::deepbound_module),
    ("a_module_that_binds_lazily", modules::lazy_module),
    ("a_module_with_one_function_more", modules::newer_module),
    ("a_module_opened_by_its_name", modules::by_name),
    ("a_module_with_a_tripwire", modules::tripwire_in_module),
    ("a_module_that_must_run_on_ours", modules::require_module),
    (
        "modules_that_threads_open_and_close",
        modules::reopened_module,
    ),
    ("a_module_optimised_at_link_time", modules::optimised_module),
    ("a_native_addon", modules::addon),
    ("doctor", doctoring::doctor),
    ("obstacles", doctoring::obstacles),
];

/// Checks of what other machines have and this one has not.
const ONLY_ELSEWHERE: [&str; 1] = ["a_module_with_guarded_code"];

/// Checks that are not made for another machine, and why.
const ONLY_HERE: [(&str, &str); 6] = [
    ("a_script", SCRIPTS),
    ("scripts_of_all_kinds", SCRIPTS),
    ("code_that_may_not_be_changed", FILTERS),
    ("code_that_may_not_be_run_any_more", FILTERS),
    ("code_that_is_lost", FILTERS),
    ("obstacles", "it is about files of other machines"),
];

const SCRIPTS: &str = "`env` and `sh` are programs of this machine";
const FILTERS: &str = "an emulator knows no filters of system calls";

/// Why a check is not made for a target, if it is not.
fn left_out(name: &str, target: Option<Target>) -> Option<&'static str> {
    match target {
        None => ONLY_ELSEWHERE
            .contains(&name)
            .then_some("this machine has no such code"),
        Some(_) => ONLY_HERE
            .iter()
            .find_map(|(other, why)| (*other == name).then_some(*why)),
    }
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let all: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
    let chosen = if options.names.is_empty() {
        all
    } else {
        selection::select(&all, &options.names)?
    };
    if options.list {
        chosen.iter().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    let kit = Kit::of(options.target)?;
    let mut failed = 0;
    let mut count_left_out = 0;
    for (name, check) in CHECKS.iter().filter(|(name, _)| chosen.contains(name)) {
        if let Some(why) = left_out(name, options.target) {
            println!("{name}: left out: {why}");
            count_left_out += 1;
            continue;
        }
        match check(&kit) {
            Ok(()) => println!("{name}: ok"),
            Err(error) => {
                println!(
                    "{name}: FAILED\n    {}",
                    format!("{error:#}").replace('\n', "\n    ")
                );
                failed += 1;
            }
        }
    }
    println!(
        "{} passed, {failed} failed, {count_left_out} left out",
        chosen.len() - failed - count_left_out
    );
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Kit {
    /// Builds what the checks need. With a target, the kernel starts the emulator for what they run
    /// from then on.
    fn of(target: Option<Target>) -> Result<Kit> {
        let original = Original::obtain_for(target)?;
        let Some(target) = target else {
            return Ok(Kit {
                original,
                target: None,
                dir: workspace::target_subdir("swap")?,
                lib: library::stage_ours()?,
                command: library::command("dev")?,
            });
        };
        ensure!(target.has_swap(), "there is no swap for {target}");
        let kit = Kit {
            original,
            target: Some(target),
            dir: workspace::target_subdir(Path::new("swap").join(target.triple()))?,
            lib: library::stage_for(target)?,
            command: library::command_for(target)?,
        };
        if let Some(emulator) = target.emulator() {
            emulator.entry()?.enter()?;
        }
        Ok(kit)
    }

    /// A command that starts a program that was built for the target.
    fn start(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        if let Some(root) = self.target.and_then(Target::root) {
            command.env("QEMU_LD_PREFIX", root);
        }
        command
    }

    fn processor(&self) -> Processor {
        self.target.map_or(Processor::X86_64, Target::processor)
    }

    /// Flags that have another compiler than the original's build for the target.
    fn flags_of_clang(&self) -> Vec<String> {
        let target = self.target.map(|target| format!("--target={target}"));
        target.into_iter().collect()
    }

    /// Links `sources` and the original, compiled in the way called `objects`, with `flags`.
    fn link(
        &self,
        name: &str,
        source: &str,
        objects: &[PathBuf],
        flags: &[&str],
    ) -> Result<PathBuf> {
        self.link_by(self.original.compiler(), name, source, objects, flags)
    }

    /// As [`Kit::link`], with another compiler.
    fn link_by(
        &self,
        compiler: &str,
        name: &str,
        source: &str,
        objects: &[PathBuf],
        flags: &[&str],
    ) -> Result<PathBuf> {
        let program = self.dir.join(name);
        let mut command = Command::new(compiler);
        command
            .args(["-O2", "-Wall", "-Wextra", "-o"])
            .arg(&program)
            .arg(workspace::root().join("xtask/swap").join(source))
            .arg("-I")
            .arg(self.original.include_dir())
            .args(objects)
            .args(flags)
            .args(["-lpthread", "-ldl"]);
        run_quietly(command)?;
        Ok(program)
    }

    /// A program that carries the original as everybody builds it, and exports it.
    fn carrier(&self, name: &str, flags: &[&str]) -> Result<PathBuf> {
        let objects = self.original.objects("library", &["-O3"])?;
        self.link(
            name,
            "program.c",
            &objects,
            &[&["-rdynamic"], flags].concat(),
        )
    }

    /// A module that carries the original and exports it, and a program that opens it.
    fn module(&self, name: &str, flags: &[&str]) -> Result<(PathBuf, PathBuf)> {
        let objects = self.original.objects("library", &["-O3"])?;
        let shared = ["-shared", "-fPIC", "-Dmain=module_main"];
        let module = self.link(name, "program.c", &objects, &[&shared, flags].concat())?;
        Ok((self.link("host", "host.c", &[], &[])?, module))
    }

    /// `blacklight run`, on a poller by which our loops are told from the original's.
    fn run(&self, options: &[&str]) -> Command {
        self.run_with(&self.lib, options)
    }

    /// As [`Kit::run`], with the library in another directory.
    fn run_with(&self, lib: &Path, options: &[&str]) -> Command {
        // `timeout` is a program of this machine, for which nothing of another's can be preloaded.
        let mut command = match self.target {
            None => Command::new("timeout"),
            Some(_) => self.start(&self.command),
        };
        if self.target.is_none() {
            command.arg(LIMIT).arg(&self.command);
        }
        command
            .args(["run", "--poller", "poll", "--library"])
            .arg(lib)
            .args(options)
            .arg("--")
            .env_remove("LD_PRELOAD")
            .env("XDG_CACHE_HOME", self.dir.join("cache"));
        command
    }
}

/// What a program has written, with what `blacklight run` has said before.
struct Said {
    status: Option<i32>,
    program: String,
    lines: Vec<String>,
}

fn said(command: &mut Command) -> Result<Said> {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    let lines = String::from_utf8_lossy(&stderr);
    Ok(Said {
        status: status.code(),
        program: String::from_utf8_lossy(&stdout).into_owned(),
        lines: lines.lines().map(str::to_owned).collect(),
    })
}

impl Said {
    /// The program ended well, got to these libraries, and one line was said that has `words` in it.
    fn is(&self, libraries: &[&str], words: &str) -> Result<()> {
        self.got_to(libraries)?;
        self.said_only(words)
    }

    fn got_to(&self, libraries: &[&str]) -> Result<()> {
        ensure!(
            self.status == Some(0),
            "it ended with {:?}: {}",
            self.status,
            self.all()
        );
        let is_about_one = |line: &&str| !line.starts_with("timers ");
        let mut found: Vec<&str> = self.program.lines().filter(is_about_one).collect();
        found.sort_unstable();
        ensure!(
            found == libraries,
            "it got to {found:?}, not {libraries:?}: {}",
            self.all()
        );
        Ok(())
    }

    fn said_only(&self, words: &str) -> Result<()> {
        let [line] = &self.lines[..] else {
            bail!("more or less than one line was said: {}", self.all());
        };
        ensure!(
            line.starts_with("blacklight: ") && line.contains(words),
            "{words:?} was not said: {line}"
        );
        Ok(())
    }

    fn all(&self) -> String {
        format!("\n{}{}", self.program, self.lines.join("\n"))
    }
}

const OURS: [&str; 3] = ["child: ours", "main: ours", "thread: ours"];
const CARRIED: [&str; 3] = ["child: carried", "main: carried", "thread: carried"];

/// A copy without symbols, as linking again with `-s` makes it, which takes longer.
fn stripped_copy(kit: &Kit, file: &Path) -> Result<PathBuf> {
    let mut copy = file.as_os_str().to_owned();
    copy.push("-stripped");
    let copy = PathBuf::from(copy);
    let mut strip = Command::new(kit.original.compiler().replace("gcc", "strip"));
    strip.arg("-o").arg(&copy).arg(file);
    run_quietly(strip)?;
    Ok(copy)
}

fn is_swapped(kit: &Kit, program: &Path) -> Result<()> {
    said(kit.run(&[]).arg(program))?.is(&OURS, "in place of the 1.53.0 inside it")
}

/// The program runs on its own library, and this is given as the reason.
fn is_left_alone(kit: &Kit, program: &Path, reason: &str) -> Result<()> {
    said(kit.run(&[]).arg(program))?.is(&CARRIED, &format!("{reason}; it runs as it is"))
}
