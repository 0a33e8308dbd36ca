//! Programs that Cargo builds from crates.io for a chore, once, below the target directory.

use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::PathBuf;

/// A package with a program of the same name.
#[derive(Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

impl Tool {
    /// Where it is installed.
    fn root(self) -> Result<PathBuf> {
        let name = format!("{}-{}", self.name, self.version);
        Ok(workspace::target_subdir("tools")?.join(name))
    }

    /// The program, if it was built before.
    fn built(self) -> Result<Option<PathBuf>> {
        let program = self.root()?.join("bin").join(self.name);
        Ok(program.exists().then_some(program))
    }

    /// Whether it was built before.
    pub(crate) fn is_built(self) -> bool {
        self.built().is_ok_and(|program| program.is_some())
    }

    /// The program, which is built now if it was not before.
    pub(crate) fn get(self) -> Result<PathBuf> {
        if let Some(program) = self.built()? {
            return Ok(program);
        }
        let Tool { name, version } = self;
        eprintln!("building {name} {version}, which takes a minute, once");
        let root = self.root()?;
        let draft = root.with_file_name(format!("{name}.draft-{}", std::process::id()));
        let status = workspace::cargo()
            .args(["install", "--locked", "--quiet", "--version", version])
            .arg("--root")
            .arg(&draft)
            .arg(name)
            // It runs for seconds, and building it well takes minutes.
            .envs([
                ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
                ("CARGO_PROFILE_RELEASE_LTO", "off"),
                ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "64"),
            ])
            // Not as a part of the workspace, whose settings are for its own programs.
            .current_dir("/")
            .status()
            .context("cannot run cargo install")?;
        ensure!(status.success(), "{name} {version} does not build");
        fs::rename(&draft, &root).with_context(|| format!("cannot make {}", root.display()))?;
        self.built()?.context("the package has no such program")
    }
}
