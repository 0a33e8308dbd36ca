//! `cargo xtask release`: all that a release consists of, in `target/release-VERSION`.
//!
//! The packages for npm, pip and Debian, the crates' archives, the notes (a section of CHANGELOG.md), and the sums of all. Nothing is
//! uploaded. What is made is what is committed: with other changes lying about there is no release.

use crate::compile::run_quietly;
use crate::{deb, npm, package, platform, portable, wheel, workspace};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The files that people check what they have downloaded with, and read.
const SUMS: &str = "SHA256SUMS";
const NOTES: &str = "NOTES.md";

/// Make all that a release consists of.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Take the notes from what CHANGELOG.md has as unreleased, to see what would become of it.
    #[arg(long)]
    draft: bool,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    ensure_clean(workspace::root())?;
    let title = if options.draft { "Unreleased" } else { VERSION };
    let changes = workspace::root().join("CHANGELOG.md");
    let changes = fs::read_to_string(changes).context("cannot read CHANGELOG.md")?;
    let notes = section(&changes, title);
    let notes = notes.with_context(|| format!("CHANGELOG.md has no section {title}"))?;
    let dir = workspace::target_dir()?.join(format!("release-{VERSION}"));
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot clear {}", dir.display()))?;
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    for file in packages()? {
        let name = file.file_name().context("a package without a name")?;
        workspace::copy_into_place(&file, &dir.join(name))?;
    }
    fs::write(dir.join(NOTES), notes).context("cannot write the notes")?;
    for line in sum_up(&dir)?.lines() {
        println!("{line}");
    }
    println!("{}", dir.display());
    Ok(ExitCode::SUCCESS)
}

/// Makes all packages, for all platforms.
fn packages() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for published in package::pack(false)? {
        files.push(published.archive()?);
    }
    let [npm, wheel, deb] = ["npm", "wheel", "deb"].map(workspace::target_subdir);
    let (npm, wheel, deb) = (npm?, wheel?, deb?);
    let mut mains = Vec::new();
    for platform in &platform::ALL {
        let stage = portable::stage(platform)?;
        let [main, binaries] = npm::build(platform, &stage, &npm)?;
        mains.push(main);
        files.push(binaries);
        files.push(wheel::build(platform, &stage, &wheel)?);
        if platform.debian().is_ok() {
            files.extend(deb::build(platform, &stage, &deb)?);
        }
    }
    // The package that people install is the same each time.
    files.extend(mains.pop());
    Ok(files)
}

/// Fails if a checkout has changes that are not committed.
fn ensure_clean(checkout: &Path) -> Result<()> {
    let mut git = Command::new("git");
    git.args(["status", "--porcelain"]).current_dir(checkout);
    let output = git.output().context("cannot run git")?;
    ensure!(output.status.success(), "this is no checkout of git's");
    let changes = String::from_utf8_lossy(&output.stdout);
    ensure!(changes.is_empty(), "not committed:\n{changes}");
    Ok(())
}

/// The section with this title, which may have a date behind it, without its heading.
fn section<'a>(changes: &'a str, title: &str) -> Option<&'a str> {
    let mut sections = changes.split("\n## ").skip(1);
    let body = sections.find_map(|section| {
        let (heading, body) = section.split_once('\n')?;
        let first = heading.split_whitespace().next()?;
        (first == title).then_some(body.trim())
    })?;
    (!body.is_empty()).then_some(body)
}

/// Writes the sums of all files of a directory, which has no others below it; returns them.
fn sum_up(dir: &Path) -> Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        names.push(entry?.file_name());
    }
    names.sort();
    let mut command = Command::new("sha256sum");
    let output = command.arg("--").args(names).current_dir(dir).output();
    let output = output.context("cannot run sha256sum")?;
    ensure!(output.status.success(), "sha256sum fails: {output:?}");
    let sums = String::from_utf8(output.stdout)?;
    fs::write(dir.join(SUMS), &sums).context("cannot write the sums")?;
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--strict", SUMS]).current_dir(dir);
    run_quietly(check)?;
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_found_by_its_version() {
        let changes = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.2.0 (2026-12-01)\n\n- more\n\n## 0.1.0\n\n- all\n";
        assert_eq!(section(changes, "Unreleased"), Some("- new"));
        assert_eq!(section(changes, "0.2.0"), Some("- more"));
        assert_eq!(section(changes, "0.1.0"), Some("- all"));
        assert_eq!(section(changes, "0.1"), None);
        assert_eq!(
            section("# Changelog\n\n## 1.0.0\n\n## 0.9.0\n\n- a\n", "1.0.0"),
            None
        );
    }

    /// A directory that is gone at the end of the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let name = format!("blacklight-release-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            fs::create_dir_all(&dir).unwrap();
            Scratch(dir)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_checkout_with_changes_is_refused() {
        let scratch = Scratch::new("dirty");
        let error = ensure_clean(&scratch.0).unwrap_err().to_string();
        assert_eq!(error, "this is no checkout of git's");
        let mut git = Command::new("git");
        git.args(["init", "--quiet"]).current_dir(&scratch.0);
        run_quietly(git).unwrap();
        ensure_clean(&scratch.0).unwrap();
        fs::write(scratch.0.join("left"), "over").unwrap();
        let error = ensure_clean(&scratch.0).unwrap_err().to_string();
        assert!(error.contains("left"), "{error}");
    }

    #[test]
    fn files_are_summed_up() {
        let scratch = Scratch::new("sums");
        fs::write(scratch.0.join("b.txt"), "abc").unwrap();
        fs::write(scratch.0.join("a.txt"), "").unwrap();
        let sums = sum_up(&scratch.0).unwrap();
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.txt\n\
             ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b.txt\n";
        assert_eq!(sums, expected);
        assert_eq!(fs::read_to_string(scratch.0.join(SUMS)).unwrap(), expected);
    }
}
