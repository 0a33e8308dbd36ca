//! `cargo xtask semver`: no crate breaks what it has promised with its version, by cargo-semver-checks.
//!
//! What is compared with is a revision of this repository: the newest tag of a release, or one that is named.

use crate::package;
use crate::tools::Tool;
use crate::workspace;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::{Command, ExitCode};

const CARGO_SEMVER_CHECKS: Tool = Tool {
    name: "cargo-semver-checks",
    version: "0.51.0",
};

/// Compare the interfaces of the crates with those of an earlier revision.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The revision to compare with. The default is the newest tag of a release.
    #[arg(long)]
    baseline_rev: Option<String>,
}

/// What is missing for a comparison that takes no minutes of building before: a tool. Without a release there is nothing to compare,
/// and nothing is missing.
pub(crate) fn lacks() -> Option<String> {
    let Tool { name, version } = CARGO_SEMVER_CHECKS;
    let is_needed = newest_release(workspace::root()).is_some();
    let is_missing = is_needed && !CARGO_SEMVER_CHECKS.is_built();
    is_missing.then(|| format!("{name} {version} was not built yet"))
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let Some(baseline) = options
        .baseline_rev
        .clone()
        .or_else(|| newest_release(workspace::root()))
    else {
        println!(
            "nothing is released yet, so there is nothing to compare with; --baseline-rev names a revision"
        );
        return Ok(ExitCode::SUCCESS);
    };
    let mut command = Command::new(CARGO_SEMVER_CHECKS.get()?);
    command.args(["semver-checks", "--baseline-rev", &baseline]);
    for name in package::libraries()? {
        command.args(["--package", &name]);
    }
    let status = command
        .env("CARGO_TARGET_DIR", workspace::target_subdir("semver")?)
        .current_dir(workspace::root())
        .status();
    let status = status.context("cannot run cargo-semver-checks")?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The newest tag of a release that the revision of a checkout descends from.
fn newest_release(checkout: &Path) -> Option<String> {
    let mut git = Command::new("git");
    git.args(["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]);
    let output = git.current_dir(checkout).output().ok()?;
    let tag = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !tag.is_empty()).then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::run_quietly;

    #[test]
    fn the_newest_release_is_found_by_its_tag() {
        let dir = std::env::temp_dir().join(format!("blacklight-semver-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=a", "-c", "user.email=a@localhost"]);
            git.args(arguments).current_dir(&dir);
            run_quietly(git).unwrap();
        };
        let mut seen = Vec::new();
        git(&["init", "--quiet"]);
        for tag in ["other", "v0.1.0", "v0.2.0"] {
            git(&["commit", "--quiet", "--allow-empty", "--message", tag]);
            git(&["tag", tag]);
            seen.push(newest_release(&dir));
        }
        std::fs::remove_dir_all(&dir).unwrap();
        let expected = [None, Some("v0.1.0"), Some("v0.2.0")];
        assert_eq!(seen, expected.map(|tag| tag.map(str::to_owned)));
    }
}
