//! Calling the compiler on a header.

use crate::compile;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One header of one interface, compiled in one way.
#[derive(Clone, Copy)]
pub(super) struct Header<'a> {
    /// The compiler to call.
    pub(super) compiler: &'a str,
    /// The directory that holds `uv.h`.
    pub(super) include: &'a Path,
    /// The header as a program names it: `uv.h`, `uv/errno.h`.
    pub(super) name: &'a str,
    /// Options that select the standard.
    pub(super) flags: &'a [&'a str],
    /// A directory for intermediate files, used by nobody else at the same time.
    pub(super) scratch: &'a Path,
}

impl Header<'_> {
    /// What the preprocessor says about a file that includes the header and goes on with `body`.
    pub(super) fn preprocess(&self, options: &[&str], body: &str) -> Result<String> {
        let source = self.write_source(body)?;
        let mut command = self.gcc();
        command.arg("-E").args(options).arg(&source);
        let output = command
            .output()
            .with_context(|| format!("cannot run {} (is it installed?)", self.compiler))?;
        if !output.status.success() {
            bail!(
                "{command:?} failed:\n{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        String::from_utf8(output.stdout).context("the preprocessor did not write text")
    }

    /// Compiles such a file with debugging information about every type, used or not.
    pub(super) fn compile(&self, body: &str) -> Result<PathBuf> {
        let source = self.write_source(body)?;
        let output = source.with_extension("so");
        let mut command = self.gcc();
        command
            .args([
                "-gdwarf-4",
                "-gno-strict-dwarf",
                "-gz=none",
                "-fno-eliminate-unused-debug-types",
            ])
            .args(["-w", "-shared", "-fPIC", "-nostartfiles", "-o"])
            .arg(&output)
            .arg(&source);
        compile::run_quietly(command)?;
        Ok(output)
    }

    fn gcc(&self) -> Command {
        let mut command = Command::new(self.compiler);
        command.args(self.flags).arg("-I").arg(self.include);
        command
    }

    fn write_source(&self, body: &str) -> Result<PathBuf> {
        fs::create_dir_all(self.scratch)
            .with_context(|| format!("cannot make {}", self.scratch.display()))?;
        let source = self.scratch.join("probe.c");
        fs::write(&source, format!("#include <{}>\n{body}\n", self.name))
            .with_context(|| format!("cannot write {}", source.display()))?;
        Ok(source)
    }
}
