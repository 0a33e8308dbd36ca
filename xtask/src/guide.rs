//! `cargo xtask guide`: the guide as a book, and its programs, which are run and compared.
//!
//! The book lies in `docs/guide`. Its programs in C, JavaScript and Rust lie in `docs/guide/examples`; beside each is
//! what it prints (`NAME.out`) and, where it has a loop that the recorder sees, what ran in which phase (`NAME.trace`).
//! Both were written by running the program on our library, and a test runs them again.

mod book;
mod phases;
mod programs;

use crate::{clients, library, workspace};
use anyhow::{Context, Result, ensure};
use programs::{Program, Stage};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Build the guide as a book into target/guide/book, or run its programs.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Build no book: check its links, run its programs, and compare what they print.
    #[arg(long)]
    test: bool,
    /// Write what the programs print, and what ran in which phase.
    #[arg(long, conflicts_with = "test")]
    bless: bool,
    /// Programs, as in `c/timers`; all of them otherwise.
    names: Vec<String>,
}

/// Where the book lies.
fn directory() -> PathBuf {
    workspace::root().join("docs/guide")
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if !options.bless {
        book::check(&directory())?;
    }
    if !options.test && !options.bless {
        println!("{}", book::build(&directory())?.display());
        return Ok(ExitCode::SUCCESS);
    }
    let stage = stage()?;
    let programs = programs::list(&directory().join("examples"), &options.names)?;
    let mut differing = Vec::new();
    for program in &programs {
        let found = program.run(&stage);
        let found = found.with_context(|| format!("{} fails", program.name()))?;
        if options.bless {
            found.write(program)?;
        } else if let Err(error) = found.compare(program) {
            println!("{error:#}");
            differing.push(program.name());
            continue;
        }
        println!("{}: ok", program.name());
    }
    println!(
        "{} passed, {} failed",
        programs.len() - differing.len(),
        differing.len()
    );
    ensure!(differing.is_empty(), "differing: {}", differing.join(", "));
    Ok(ExitCode::SUCCESS)
}

/// Builds what the programs run on.
fn stage() -> Result<Stage> {
    let dir = workspace::target_subdir("guide")?;
    // The command finds the library that lies in the folder beside its own.
    let (bin, lib) = (dir.join("bin"), dir.join("lib"));
    fs::create_dir_all(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
    library::snapshot(&library::stage_ours()?.join("libuv.so.1"), &lib)?;
    let command = bin.join("blacklight");
    workspace::copy_into_place(&library::command("dev")?, &command)?;
    let node = clients::official_node()?.join("bin/node");
    Stage::prepare(dir, command, lib, node)
}

/// What a program has done.
#[derive(Debug)]
struct Found {
    output: String,
    trace: Option<String>,
}

impl Found {
    /// What was found, each with the file that has it.
    fn files(&self, program: &Program) -> Vec<(PathBuf, &str)> {
        let mut files = vec![(program.beside("out"), self.output.as_str())];
        if let Some(trace) = &self.trace {
            files.push((program.beside("trace"), trace));
        }
        files
    }

    fn write(&self, program: &Program) -> Result<()> {
        for (path, text) in self.files(program) {
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Fails if that is not what was written.
    fn compare(&self, program: &Program) -> Result<()> {
        for (path, text) in self.files(program) {
            let expected = fs::read_to_string(&path);
            let expected = expected.with_context(|| format!("there is no {}", path.display()))?;
            ensure!(
                expected == text,
                "{}: expected\n{expected}\nand found\n{text}",
                file_name(&path)
            );
        }
        Ok(())
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_does_is_compared_with_what_is_written() {
        let list = programs::list(&directory().join("examples"), &["c/timers".to_owned()]);
        let program = &list.unwrap()[0];
        let read = |end| fs::read_to_string(program.beside(end)).unwrap();
        let mut found = Found {
            output: read("out"),
            trace: Some(read("trace")),
        };
        found.compare(program).unwrap();
        found.trace = Some("nothing".to_owned());
        let error = found.compare(program).unwrap_err().to_string();
        assert!(error.starts_with("timers.trace: expected"), "{error}");
        found.output.clear();
        let error = found.compare(program).unwrap_err().to_string();
        assert!(error.starts_with("timers.out: expected"), "{error}");
    }
}
