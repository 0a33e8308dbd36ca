//! `cargo xtask package`: the crates as they would be published, and each builds from its archive alone.
//!
//! What Cargo itself would build of an archive lies below the target directory, where it still finds the workspace's
//! settings. So the archives are unpacked in a folder that has nothing around it, and each is built there, with the
//! others that it needs taken from their archives.

use crate::compile::run_quietly;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What every archive has, beside the sources.
const FILES: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// What crates.io and docs.rs show of a package, or find it by.
const FIELDS: [&str; 6] = [
    "description",
    "license",
    "readme",
    "rust_version",
    "keywords",
    "categories",
];

/// Pack the crates, and build each from its archive alone.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Pack them also if files are changed that are not committed.
    #[arg(long)]
    allow_dirty: bool,
}

/// A package that is published.
pub(crate) struct Published {
    name: String,
    version: String,
    /// Whether it is a program, and has no interface.
    is_program: bool,
}

impl Published {
    /// The name of its archive without the ending, and of the folder inside.
    fn stem(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// Its archive.
    pub(crate) fn archive(&self) -> Result<PathBuf> {
        let name = format!("{}.crate", self.stem());
        Ok(workspace::target_dir()?.join("package").join(name))
    }
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let packages = pack(options.allow_dirty)?;
    // Outside of the workspace, and so of its manifest and its settings.
    let target = workspace::target_subdir("packed")?;
    let name = target.to_string_lossy().replace('/', "-");
    let dir = std::env::temp_dir().join(format!("blacklight{name}"));
    let built = unpack(&packages, &dir).and_then(|()| build(&packages, &dir, &target));
    let removed = fs::remove_dir_all(&dir);
    built?;
    removed.with_context(|| format!("cannot remove {}", dir.display()))?;
    println!("{} passed, 0 failed", packages.len());
    Ok(ExitCode::SUCCESS)
}

/// Packs the packages that are published, without building them; returns them.
pub(crate) fn pack(allow_dirty: bool) -> Result<Vec<Published>> {
    let packages = all()?;
    let mut command = workspace::cargo();
    command
        .args(["package", "--quiet", "--no-verify"])
        .args(packages.iter().flat_map(|each| ["--package", &each.name]))
        .current_dir(workspace::root());
    if allow_dirty {
        command.arg("--allow-dirty");
    }
    run_quietly(command)?;
    Ok(packages)
}

/// The names of the libraries that are published.
pub(crate) fn libraries() -> Result<Vec<String>> {
    let libraries = all()?.into_iter().filter(|package| !package.is_program);
    Ok(libraries.map(|package| package.name).collect())
}

/// Our packages that are published.
fn all() -> Result<Vec<Published>> {
    let manifest = workspace::root().join("Cargo.toml");
    published(&workspace::cargo_metadata(&manifest, &["--no-deps"])?)
}

/// The packages of a workspace that are published, each of which says of itself what it should.
fn published(metadata: &Value) -> Result<Vec<Published>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut packages = Vec::new();
    for package in metadata["packages"].as_array().context("no packages")? {
        // An empty list of registries is `publish = false`.
        if package["publish"].as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        let name = text(&package["name"]).context("a package without a name")?;
        for field in FIELDS {
            let value = &package[field];
            let is_missing = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            ensure!(!is_missing, "{name} has no {field}");
        }
        let docs = &package["metadata"]["docs"]["rs"];
        let is_program = package["targets"][0]["kind"][0] == "bin";
        ensure!(
            is_program || !docs.is_null(),
            "{name} has no settings for docs.rs"
        );
        let version = text(&package["version"]).context("a package without a version")?;
        packages.push(Published {
            name,
            version,
            is_program,
        });
    }
    ensure!(!packages.is_empty(), "nothing is published");
    Ok(packages)
}

/// Unpacks the archives below `dir`, and checks that nothing is missing.
fn unpack(packages: &[Published], dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    for package in packages {
        let mut tar = Command::new("tar");
        // All files of an archive are equally old, and Cargo builds again what is younger than what it has built.
        tar.arg("-xzmf").arg(package.archive()?).arg("-C").arg(dir);
        run_quietly(tar)?;
        for file in FILES {
            let path = dir.join(package.stem()).join(file);
            // A link would lead to nowhere on another machine.
            let is_file = path.symlink_metadata().is_ok_and(|about| about.is_file());
            ensure!(is_file, "{} has no {file}", package.stem());
        }
    }
    Ok(())
}

/// Builds each package from what was unpacked, and the others that it needs from theirs.
fn build(packages: &[Published], dir: &Path, target: &Path) -> Result<()> {
    for package in packages {
        let mut command = workspace::cargo();
        command.args(["build", "--quiet", "--all-features", "--manifest-path"]);
        command.arg(dir.join(package.stem()).join("Cargo.toml"));
        for other in packages.iter().filter(|other| other.name != package.name) {
            let path = dir.join(other.stem());
            // Debug formatting quotes as TOML does.
            command.arg("--config").arg(format!(
                "patch.crates-io.{}.path={:?}",
                other.name,
                path.display().to_string()
            ));
        }
        command.arg("--target-dir").arg(target).current_dir(dir);
        run_quietly(command)?;
        println!("{} builds alone", package.stem());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package() -> Value {
        json!({
            "name": "lamp", "version": "1.0.0", "publish": null, "description": "It shines.",
            "license": "MIT", "readme": "README.md", "rust_version": "1.92",
            "keywords": ["lamp"], "categories": ["light"],
            "metadata": { "docs": { "rs": {} } }, "targets": [{ "kind": ["lib"] }],
        })
    }

    fn names(package: Value) -> Result<Vec<String>> {
        let packages = published(&json!({ "packages": [package] }))?;
        Ok(packages.iter().map(Published::stem).collect())
    }

    #[test]
    fn what_is_not_published_is_passed_over() {
        assert_eq!(names(package()).unwrap(), ["lamp-1.0.0"]);
        let mut own = package();
        own["publish"] = json!([]);
        let error = names(own).unwrap_err().to_string();
        assert_eq!(error, "nothing is published");
    }

    #[test]
    fn a_package_without_a_field_is_refused() {
        for field in FIELDS {
            for nothing in [json!(null), json!([])] {
                let mut package = package();
                package[field] = nothing;
                let error = names(package).err().map(|error| error.to_string());
                assert_eq!(error, Some(format!("lamp has no {field}")));
            }
        }
    }

    #[test]
    fn a_library_without_settings_for_its_documentation_is_refused() {
        let mut package = package();
        package["metadata"] = json!(null);
        assert!(names(package.clone()).is_err());
        package["targets"] = json!([{ "kind": ["bin"] }]);
        assert!(names(package).is_ok());
    }
}
