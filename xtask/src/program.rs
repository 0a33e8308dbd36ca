//! A C program of a chore's own, which runs with the original and with ours.

use crate::compile::run_quietly;
use crate::original::Original;
use crate::{library, workspace};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that finds either library when it starts.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// Where the original is to be found.
    pub(crate) original: PathBuf,
    /// Where ours is to be found.
    pub(crate) ours: PathBuf,
}

impl Program {
    /// Builds both libraries, and a program called `name` of the C files in `xtask/<chore>`.
    pub(crate) fn build(chore: &str, name: &str) -> Result<Program> {
        let ours = library::stage_ours()?;
        let original = Original::obtain()?.library()?;
        let original = original.parent().context("a library without a directory")?;
        Ok(Program {
            path: compile(chore, name, &ours)?,
            original: original.to_owned(),
            ours,
        })
    }
}

/// Compiles a program called `name` of the C files in `xtask/<chore>`, against the library in `lib`.
pub(crate) fn compile(chore: &str, name: &str, lib: &Path) -> Result<PathBuf> {
    let path = workspace::target_subdir(chore)?.join(name);
    let mut sources = Vec::new();
    for entry in workspace::root().join("xtask").join(chore).read_dir()? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "c") {
            sources.push(file);
        }
    }
    let mut command = Command::new("gcc");
    command
        .args(["-O2", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-o"])
        .arg(&path)
        .args(sources)
        .arg("-I")
        .arg(workspace::include_dir())
        .arg("-L")
        .arg(lib)
        .args(["-luv", "-lpthread"]);
    run_quietly(command)?;
    Ok(path)
}
