//! `cargo xtask npm`: the command with its libraries as npm packages.
//!
//! People install one package, which has a script that starts the command. The binaries are in
//! another, an optional dependency that says which platform it is for; npm installs it there and
//! nowhere else, and nothing is downloaded or built on installation.

use crate::compile::run_quietly;
use crate::portable::{self, FILES};
use crate::workspace;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The package that people install; the name `blacklight` belongs to somebody else.
pub(crate) const NAME: &str = "blacklight-uv";

/// The package with the binaries.
pub(crate) const PLATFORM: &str = "blacklight-uv-linux-x64";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the packages go.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The directory for the packages; `target/npm` if not given.
    #[arg(long)]
    output: Option<PathBuf>,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let output = match &options.output {
        Some(output) => output.clone(),
        None => workspace::target_subdir("npm")?,
    };
    for package in build(&portable::stage()?, &output)? {
        println!("{}", package.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the packages from the files in `stage`; returns that which people install, and that with
/// the binaries.
pub(crate) fn build(stage: &Path, output: &Path) -> Result<[PathBuf; 2]> {
    let source = workspace::root().join("xtask/packaging/npm/blacklight.js");
    let script = fs::read_to_string(&source)
        .with_context(|| format!("cannot read {}", source.display()))?
        .replace("@PLATFORM_PACKAGE@", PLATFORM);
    let main = Package::new(NAME, output)?;
    main.add("bin/blacklight.js", script.as_bytes(), 0o755)?;
    let platform = Package::new(PLATFORM, output)?;
    for file in FILES {
        let path = stage.join(file);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        platform.add(file, &bytes, 0o755)?;
    }
    let mut about = about(
        NAME,
        "Runs programs on Blacklight, libuv's event loop rewritten in Rust.",
    );
    about["bin"] = json!({ "blacklight": "bin/blacklight.js", NAME: "bin/blacklight.js" });
    about["optionalDependencies"] = json!({ PLATFORM: VERSION });
    about["engines"] = json!({ "node": ">=14" });
    let main = main.pack(&about)?;
    let description = format!("The binaries of {NAME} for Linux with glibc on x86-64.");
    let mut about = self::about(PLATFORM, &description);
    about["os"] = json!(["linux"]);
    about["cpu"] = json!(["x64"]);
    about["libc"] = json!(["glibc"]);
    // They must be files that the system can load, also for a package manager that keeps archives.
    about["preferUnplugged"] = json!(true);
    Ok([main, platform.pack(&about)?])
}

/// What every package says of itself.
fn about(name: &str, description: &str) -> Value {
    let mut about = json!({
        "name": name,
        "version": VERSION,
        "description": description,
        "license": env!("CARGO_PKG_LICENSE"),
        "keywords": ["libuv", "event-loop", "performance"],
        "files": ["bin", "lib"],
    });
    let repository = env!("CARGO_PKG_REPOSITORY");
    if !repository.is_empty() {
        about["repository"] = json!({ "type": "git", "url": repository });
    }
    about
}

/// A package while it is made: the directory `package` of its archive.
struct Package {
    root: PathBuf,
    archive: PathBuf,
}

impl Package {
    fn new(name: &str, output: &Path) -> Result<Package> {
        let root = output.join("staging").join(name);
        if root.exists() {
            fs::remove_dir_all(&root)
                .with_context(|| format!("cannot clear {}", root.display()))?;
        }
        let package = Package {
            root,
            archive: output.join(format!("{name}-{VERSION}.tgz")),
        };
        for (file, source) in [
            ("README.md", "crates/cli/README.md"),
            ("LICENSE-MIT", "LICENSE-MIT"),
            ("LICENSE-APACHE", "LICENSE-APACHE"),
        ] {
            let source = workspace::root().join(source);
            let bytes =
                fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?;
            package.add(file, &bytes, 0o644)?;
        }
        Ok(package)
    }

    fn add(&self, name: &str, bytes: &[u8], mode: u32) -> Result<()> {
        let path = self.root.join("package").join(name);
        let dir = path.parent().context("a file without a directory")?;
        fs::create_dir_all(dir)
            .and_then(|()| fs::write(&path, bytes))
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Makes the archive; the same bytes for the same files, wherever and whenever it is made.
    fn pack(self, about: &Value) -> Result<PathBuf> {
        let about = format!("{about:#}\n");
        self.add("package.json", about.as_bytes(), 0o644)?;
        let mut tar = Command::new("tar");
        tar.args([
            "--create",
            "--format=ustar",
            "--sort=name",
            "--mode=go=rX,u+w",
        ])
        .args(["--owner=0", "--group=0", "--numeric-owner"])
        // The date that npm itself gives to files.
        .args(["--mtime=1985-10-26T08:15:00Z", "--use-compress-program"])
        .arg("gzip --no-name --best")
        .arg("--file")
        .arg(&self.archive)
        .arg("--directory")
        .arg(&self.root)
        .arg("package");
        run_quietly(tar)?;
        fs::remove_dir_all(&self.root)
            .with_context(|| format!("cannot clear {}", self.root.display()))?;
        Ok(self.archive)
    }
}
