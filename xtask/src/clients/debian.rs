//! Where the clients come from: Debian's packages, installed where they are missing.
//!
//! Node.js is unpacked below the target directory instead: many machines have another Node,
//! which is not ours to replace.

use super::catalogue::Client;
use super::registries;
use crate::compile::run_quietly;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Installs what the client needs; returns where packages were unpacked, if any were.
pub(super) fn provide(client: &Client) -> Result<Option<PathBuf>> {
    let missing: Vec<&str> = client
        .packages
        .iter()
        .copied()
        .filter(|package| !is_installed(package))
        .collect();
    if !missing.is_empty() {
        eprintln!("installing {}", missing.join(" "));
        refresh()?;
        let mut arguments = vec!["install", "-qq", "--yes", "--no-install-recommends"];
        arguments.extend(&missing);
        apt(&arguments, Path::new("/"))?;
    }
    if let Some(carrier) = client.carrier {
        return registries::unpack(carrier).map(Some);
    }
    if client.unpacked.is_empty() {
        return Ok(None);
    }
    unpack(client).map(Some)
}

fn is_installed(package: &str) -> bool {
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat=${db:Status-Status}", package])
        .output();
    output.is_ok_and(|output| output.status.success() && output.stdout == b"installed")
}

/// Reads the lists of packages anew, once in a run.
fn refresh() -> Result<()> {
    static DONE: OnceLock<()> = OnceLock::new();
    if DONE.get().is_none() {
        apt(&["update", "-qq"], Path::new("/"))?;
        DONE.get_or_init(|| ());
    }
    Ok(())
}

fn apt(arguments: &[&str], dir: &Path) -> Result<()> {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .current_dir(dir)
        .env("DEBIAN_FRONTEND", "noninteractive");
    run_quietly(command)
}

fn unpack(client: &Client) -> Result<PathBuf> {
    let root = workspace::target_subdir("clients")?.join(client.name);
    let finished = root.join("unpacked");
    if finished.exists() {
        return Ok(root);
    }
    fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
    refresh()?;
    for package in client.unpacked {
        let wanted = format!("{package}={}", debian_version(package)?);
        apt(&["download", "-qq", &wanted], &root)?;
    }
    for entry in fs::read_dir(&root)?.flatten() {
        let package = entry.path();
        if package
            .extension()
            .is_some_and(|extension| extension == "deb")
        {
            let mut command = Command::new("dpkg");
            command.arg("-x").arg(&package).arg(&root);
            run_quietly(command)?;
            fs::remove_file(&package)?;
        }
    }
    fs::write(&finished, "").with_context(|| format!("cannot write {}", finished.display()))?;
    Ok(root)
}

/// The newest version of a package that is Debian's own: another source may have a package of
/// the same name, and be preferred to Debian's.
fn debian_version(package: &str) -> Result<String> {
    let output = Command::new("apt-cache")
        .args(["madison", package])
        .output()
        .context("cannot run apt-cache")?;
    ensure!(output.status.success(), "apt-cache does not know {package}");
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    newest_of_debian(&listed)
        .map(str::to_owned)
        .with_context(|| format!("Debian has no {package} for this machine"))
}

/// Picks from lines of `package | version | source`, which come newest first.
fn newest_of_debian(listed: &str) -> Option<&str> {
    listed.lines().find_map(|line| {
        let mut columns = line.split('|').map(str::trim);
        let version = columns.nth(1)?;
        let source = columns.next()?;
        (source.contains("/debian") && source.ends_with("Packages")).then_some(version)
    })
}

#[cfg(test)]
mod tests {
    use super::newest_of_debian;

    #[test]
    fn another_source_does_not_count() {
        let listed = "nodejs | 20.1-1nodesource1 | https://deb.nodesource.com/node_20.x nodistro/main amd64 Packages\n\
                      nodejs | 18.2-u3 | http://deb.debian.org/debian-security bookworm-security/main amd64 Packages\n\
                      nodejs | 18.2-u2 | http://deb.debian.org/debian bookworm/main amd64 Packages\n";
        assert_eq!(newest_of_debian(listed), Some("18.2-u3"));
    }
}
