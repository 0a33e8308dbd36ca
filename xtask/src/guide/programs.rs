//! The programs of the guide: how each is built and run, by its language.

use super::phases::{self, Symbols};
use super::{Found, file_name};
use crate::compile::run_quietly;
use crate::workspace;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How many seconds a program may take on a machine that is busy with other things.
const LIMIT: &str = "300";

/// What the programs run on.
pub(super) struct Stage {
    dir: PathBuf,
    /// The command, which has the library and the swap in `../lib`.
    command: PathBuf,
    lib: PathBuf,
    /// Node's own build, and its functions.
    node: PathBuf,
    node_symbols: Symbols,
    /// What is preloaded into programs in C that are traced, and into those in Rust.
    hold: PathBuf,
    hold_rust: PathBuf,
    /// Where the examples in Rust lie.
    rust: PathBuf,
}

impl Stage {
    pub(super) fn prepare(
        dir: PathBuf,
        command: PathBuf,
        lib: PathBuf,
        node: PathBuf,
    ) -> Result<Stage> {
        let hold = compile_hold(&dir, "hold")?;
        let hold_rust = compile_hold(&dir, "hold_rust")?;
        let mut cargo = workspace::cargo();
        cargo
            .args(["build", "--quiet", "--examples", "--package"])
            .arg("blacklight-guide")
            .current_dir(workspace::root());
        run_quietly(cargo)?;
        let node_symbols = Symbols::read(&node)?;
        let rust = workspace::target_dir()?.join("debug/examples");
        Ok(Stage {
            dir,
            command,
            lib,
            node,
            node_symbols,
            hold,
            hold_rust,
            rust,
        })
    }
}

/// Compiles what is preloaded into programs that are traced.
fn compile_hold(dir: &Path, name: &str) -> Result<PathBuf> {
    let hold = dir.join(name).with_extension("so");
    let source = workspace::root().join("xtask/guide").join(name);
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"])
        .args(["-shared", "-fPIC", "-o"])
        .arg(&hold)
        .arg(source.with_extension("c"))
        .arg("-I")
        .arg(workspace::include_dir());
    run_quietly(gcc)?;
    Ok(hold)
}

/// A program of the guide.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    source: PathBuf,
    language: Language,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    C,
    JavaScript,
    Rust,
}

/// The programs below `dir` that are named; all of them if none is.
pub(super) fn list(dir: &Path, names: &[String]) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for (folder, language, end) in [
        ("c", Language::C, "c"),
        ("js", Language::JavaScript, "js"),
        ("rust", Language::Rust, "rs"),
    ] {
        let folder = dir.join(folder);
        let entries = fs::read_dir(&folder);
        for entry in entries.with_context(|| format!("cannot list {}", folder.display()))? {
            let source = entry?.path();
            if source.extension().is_some_and(|extension| extension == end) {
                programs.push(Program { source, language });
            }
        }
    }
    programs.sort_by_key(Program::name);
    for name in names {
        let is_there = programs.iter().any(|program| program.name() == *name);
        ensure!(is_there, "there is no program {name}");
    }
    if !names.is_empty() {
        programs.retain(|program| names.contains(&program.name()));
    }
    Ok(programs)
}

impl Program {
    /// Its name, as in `c/timers`.
    pub(super) fn name(&self) -> String {
        let folder = self.source.parent().map(file_name).unwrap_or_default();
        format!("{folder}/{}", self.stem())
    }

    fn stem(&self) -> String {
        let stem = self.source.file_stem().unwrap_or_default();
        stem.display().to_string()
    }

    /// The file beside it with this ending.
    pub(super) fn beside(&self, extension: &str) -> PathBuf {
        self.source.with_extension(extension)
    }

    /// Runs it, and finds out what it prints and what ran in which phase.
    pub(super) fn run(&self, stage: &Stage) -> Result<Found> {
        match self.language {
            Language::C => self.run_c(stage),
            Language::JavaScript => self.run_javascript(stage),
            Language::Rust => self.run_rust(stage),
        }
    }

    fn run_c(&self, stage: &Stage) -> Result<Found> {
        let program = self.compile(stage)?;
        let source = fs::read_to_string(&self.source)?;
        let has_loop = source.contains("uv_run(");
        let may_choose = has_loop && !source.contains("uv_backend_fd(");
        let output = on_each_poller(&program, &stage.lib, may_choose)?;
        if !has_loop {
            let trace = None;
            return Ok(Found { output, trace });
        }
        let mut command = Command::new(&program);
        command
            .env("LD_LIBRARY_PATH", &stage.lib)
            .env("LD_PRELOAD", &stage.hold)
            .env("BLACKLIGHT_RECORD", "1");
        let traced = trace(command, stage, &output)?;
        let trace = Some(traced.of_c(&Symbols::read(&program)?));
        Ok(Found { output, trace })
    }

    /// The crate has the loop inside of the program, and records it itself.
    fn run_rust(&self, stage: &Stage) -> Result<Found> {
        let program = stage.rust.join(format!("guide-{}", self.stem()));
        let source = fs::read_to_string(&self.source)?;
        let output = on_each_poller(&program, &stage.lib, !source.contains("backend_fd("))?;
        let symbols = Symbols::read(&program)?;
        let stop_at = symbols.tear_down();
        let stop_at = stop_at.context("it has no function that tears a loop down")?;
        let mut command = Command::new(&program);
        command
            .current_dir(workspace::root())
            .env("LD_PRELOAD", &stage.hold_rust)
            .env("GUIDE_STOP_AT", stop_at.to_string())
            .env("BLACKLIGHT_RECORD", "1");
        let traced = trace(command, stage, &output)?;
        let trace = Some(traced.of_rust(&symbols));
        Ok(Found { output, trace })
    }

    fn compile(&self, stage: &Stage) -> Result<PathBuf> {
        let program = stage.dir.join(self.stem());
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"])
            // What prints is called as it is written, so that it can be told when.
            .args(["-fno-builtin-printf", "-U_FORTIFY_SOURCE", "-o"])
            .arg(&program)
            .arg(&self.source)
            .arg("-I")
            .arg(workspace::include_dir())
            .arg("-L")
            .arg(&stage.lib)
            .arg("-luv");
        run_quietly(gcc)?;
        Ok(program)
    }

    fn run_javascript(&self, stage: &Stage) -> Result<Found> {
        let mut command = Command::new("timeout");
        command
            .arg(LIMIT)
            .arg(&stage.command)
            .args(["run", "--require", "--"])
            .args([&stage.node, &self.source]);
        let output = output_of(&mut command)?;
        let mut command = Command::new(&stage.command);
        command
            .args(["run", "--require", "--record", "--"])
            .arg(&stage.node)
            .arg("--require")
            .arg(workspace::root().join("xtask/guide/hold.js"))
            .arg(&self.source);
        let traced = trace(command, stage, &output)?;
        Ok(Found {
            output,
            trace: Some(traced.of_javascript(&stage.node_symbols)),
        })
    }
}

/// What a program prints, which is the same on each poller. Only epoll has a descriptor that a program can
/// wait for, so one that does (`may_choose` is false) runs on that.
fn on_each_poller(program: &Path, lib: &Path, may_choose: bool) -> Result<String> {
    let on = |poller: &str| {
        let mut command = Command::new("timeout");
        command.arg(LIMIT).arg(program);
        command.env("LD_LIBRARY_PATH", lib);
        output_of(command.env("BLACKLIGHT_POLLER", poller))
    };
    let output = on("epoll")?;
    for poller in ["poll", "select"].into_iter().filter(|_| may_choose) {
        let same = on(poller)?;
        ensure!(same == output, "it prints on {poller}\n{same}");
    }
    Ok(output)
}

/// Runs a program that has printed this before, and finds out what ran in which phase.
fn trace(command: Command, stage: &Stage, output: &str) -> Result<phases::Traced> {
    let traced = phases::trace(command, &stage.dir.join("stamps"))?;
    ensure!(
        traced.output == output,
        "it prints another thing each time:\n{output}\nand\n{}",
        traced.output
    );
    Ok(traced)
}

/// What a command prints; it must succeed.
fn output_of(command: &mut Command) -> Result<String> {
    let output = command.current_dir(workspace::root()).output();
    let output = output.with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} ended with {}:\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    String::from_utf8(output.stdout).context("it prints no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_their_language() {
        let dir = super::super::directory().join("examples");
        let all = list(&dir, &[]).unwrap();
        for name in ["c/timers", "js/promises", "rust/phases"] {
            assert!(all.iter().any(|program| program.name() == name), "{name}");
            let one = list(&dir, &[name.to_owned()]).unwrap();
            assert_eq!(one.len(), 1);
            assert!(one[0].beside("out").exists());
        }
        let error = list(&dir, &["c/nothing".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "there is no program c/nothing");
    }

    #[test]
    fn every_program_in_rust_is_an_example_of_the_crate() {
        let manifest = include_str!("../../../crates/guide/Cargo.toml");
        let dir = super::super::directory().join("examples");
        for program in list(&dir, &[]).unwrap() {
            if program.language == Language::Rust {
                let name = format!("name = \"guide-{}\"\n", program.stem());
                assert!(manifest.contains(&name), "{name}");
                assert!(program.beside("trace").exists(), "{name} has no trace");
            }
        }
    }
}
