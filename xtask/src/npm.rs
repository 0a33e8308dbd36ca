//! `cargo xtask npm`: the command with its libraries as npm packages.
//!
//! People install one package, which has a script that starts the command. The binaries are in
//! others, one for each platform, optional dependencies that say what they are for; npm installs the one that
//! fits, and nothing is downloaded or built on installation.

use crate::compile::run_quietly;
use crate::platform::{self, Platform};
use crate::portable;
use crate::target::Target;
use crate::workspace;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The package that people install; the name `blacklight` belongs to somebody else.
pub(crate) const NAME: &str = "blacklight-uv";

/// The name of the package with the binaries for a platform.
pub(crate) fn package_for(platform: &Platform) -> String {
    format!("{NAME}-{}", platform.suffix)
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the packages go.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The directory for the packages; `target/npm` if not given.
    #[arg(long)]
    output: Option<PathBuf>,
    /// The machine and the C library that the binaries are for, if not those of this machine.
    #[arg(long)]
    target: Option<Target>,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let output = match &options.output {
        Some(output) => output.clone(),
        None => workspace::target_subdir("npm")?,
    };
    let platform = Platform::of(options.target);
    for package in build(platform, &portable::stage(platform)?, &output)? {
        println!("{}", package.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// What `blacklight.js` chooses among: the packages by processor and C library.
fn choice() -> Value {
    let entry = |platform: &Platform| {
        let [cpu, libc] = platform.npm;
        let about = json!({ "name": package_for(platform), "linker": platform.linker });
        (format!("{cpu}-{libc}"), about)
    };
    Value::Object(platform::ALL.iter().map(entry).collect())
}

/// Makes the packages from the files in `stage`; returns that which people install, and that with
/// the binaries for a platform.
pub(crate) fn build(platform: &Platform, stage: &Path, output: &Path) -> Result<[PathBuf; 2]> {
    let source = workspace::root().join("xtask/packaging/npm/blacklight.js");
    let script = fs::read_to_string(&source)
        .with_context(|| format!("cannot read {}", source.display()))?
        .replace("@PACKAGES@", &choice().to_string());
    let main = Package::new(NAME, output)?;
    main.add("bin/blacklight.js", script.as_bytes(), 0o755)?;
    let name = package_for(platform);
    let binaries = Package::new(&name, output)?;
    for file in portable::files(platform) {
        let path = stage.join(file);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        binaries.add(file, &bytes, 0o755)?;
    }
    let mut about = about(
        NAME,
        "Runs programs on Blacklight, libuv's event loop rewritten in Rust.",
    );
    about["bin"] = json!({ "blacklight": "bin/blacklight.js", NAME: "bin/blacklight.js" });
    about["optionalDependencies"] = platform::ALL
        .iter()
        .map(|platform| (package_for(platform), Value::from(VERSION)))
        .collect();
    about["engines"] = json!({ "node": ">=14" });
    let main = main.pack(&about)?;
    let mut description = format!("The binaries of {NAME} for {}.", platform.label);
    if !platform.has_swap() {
        description += " They do not replace a libuv inside a program, as those for glibc on x86-64 and ARM64 do.";
    }
    let mut about = self::about(&name, &description);
    let [cpu, libc] = platform.npm;
    about["os"] = json!(["linux"]);
    about["cpu"] = json!([cpu]);
    about["libc"] = json!([libc]);
    // They must be files that the system can load, also for a package manager that keeps archives.
    about["preferUnplugged"] = json!(true);
    Ok([main, binaries.pack(&about)?])
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
