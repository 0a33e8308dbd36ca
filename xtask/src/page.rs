//! The page of `blacklight live`: built from `web`, compared with what is checked in, and tried in Chromium.
//!
//! Sources are copied below the target directory and built there, by Node's own build and the versions that `package-lock.json` pins. The
//! result is checked in, so that building the command needs neither Node nor a network.

use crate::compile::run_quietly;
use crate::{clients, library, workspace};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Where the page is checked in.
const PAGE: &str = "crates/cli/src/live/page";
/// Where the screenshots are checked in.
const SCREENS: &str = "docs/screens";
/// What is copied of `web`.
const SOURCES: [&str; 9] = [
    "package.json",
    "package-lock.json",
    ".npmrc",
    "tsconfig.json",
    "vite.config.ts",
    "index.html",
    "src",
    "public",
    "test",
];

/// Build the page of `blacklight live` from its sources, and write it where the command embeds it.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing: fail if the page is not what its sources build to.
    #[arg(long)]
    check: bool,
    /// Try the page in Chromium, with Node.js as the program that it shows.
    #[arg(long)]
    test: bool,
    /// Let it show fifty loops and ten thousand handles for a while: no task of the page may take 50 ms, page and server may not grow, the
    /// page must be drawn often enough, and may cost the program little. Wants a machine that does nothing else.
    #[arg(long)]
    load: bool,
    /// How long the load lasts.
    #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = parse_time, requires = "load")]
    time: Duration,
    /// Take the screenshots of the documents anew.
    #[arg(long)]
    screens: bool,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let web = Web::prepare()?;
    if options.check {
        web.check()?;
    }
    if options.test {
        for script in ["units.test.mjs", "page.test.mjs", "ways.test.mjs"] {
            web.drive("dev", script, &[])?;
        }
        // Others may work on the machine: what is judged is how much there is, and no time.
        web.drive("dev", "load.mjs", &["60"])?;
    }
    if options.load {
        let seconds = options.time.as_secs().to_string();
        web.drive("release", "load.mjs", &[&seconds, "strict"])?;
    }
    if options.screens {
        web.drive("release", "screens.mjs", &[])?;
    }
    if !(options.check || options.test || options.load || options.screens) {
        web.write()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The sources of the page with the packages that they need.
struct Web {
    dir: PathBuf,
    node: PathBuf,
}

impl Web {
    /// Copies the sources and installs what they need, unless that was done before.
    fn prepare() -> Result<Web> {
        workspace::require_tool("npm", "npm")?;
        let node = clients::official_node()?;
        let dir = workspace::target_subdir("page/web")?;
        let from = workspace::root().join("web");
        for name in SOURCES {
            let to = dir.join(name);
            if to.is_dir() {
                fs::remove_dir_all(&to)
                    .with_context(|| format!("cannot remove {}", to.display()))?;
            }
            copy(&from.join(name), &to)?;
        }
        let web = Web { dir, node };
        web.install()?;
        Ok(web)
    }

    /// Installs the packages of the lock file.
    fn install(&self) -> Result<()> {
        let lock = fs::read_to_string(self.dir.join("package-lock.json"))?;
        let hint = "; npm writes none with omit-lockfile-registry-resolved";
        ensure!(
            !lock.contains("\"resolved\""),
            "package-lock.json has addresses of a registry{hint}"
        );
        let stamp = self.dir.join("installed");
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
            return Ok(());
        }
        let mut npm = self.command("npm");
        npm.args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--silent",
        ]);
        run_quietly(npm)?;
        fs::write(&stamp, lock).context("cannot note what was installed")
    }

    /// A command that finds Node's own build first.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command.current_dir(&self.dir).env(
            "PATH",
            format!("{}:{path}", self.node.join("bin").display()),
        );
        command
    }

    /// A script of an installed package.
    fn package(&self, script: &str, arguments: &[&str]) -> Result<()> {
        let mut command = self.command(self.node.join("bin/node"));
        command
            .arg(self.dir.join("node_modules").join(script))
            .args(arguments);
        run_quietly(command)
    }

    /// Checks the types and builds the page. Returns where it lies.
    fn build(&self) -> Result<PathBuf> {
        self.package("typescript/bin/tsc", &["--noEmit"])?;
        let out = self.dir.join("built");
        let arguments = [
            "build",
            "--logLevel",
            "error",
            "--outDir",
            "built",
            "--emptyOutDir",
        ];
        self.package("vite/bin/vite.js", &arguments)?;
        Ok(out)
    }

    /// Writes the page where the command embeds it.
    fn write(&self) -> Result<()> {
        let built = self.build()?;
        let page = workspace::root().join(PAGE);
        let old = files(&page)?;
        for name in files(&built)? {
            workspace::copy_into_place(&built.join(&name), &page.join(&name))?;
        }
        for name in old {
            if !built.join(&name).exists() {
                fs::remove_file(page.join(&name))?;
            }
        }
        println!("{PAGE} is written");
        Ok(())
    }

    /// Fails if the page is not what its sources build to.
    fn check(&self) -> Result<()> {
        let built = self.build()?;
        let page = workspace::root().join(PAGE);
        let (new, old) = (files(&built)?, files(&page)?);
        ensure!(
            new == old,
            "the page has the files {old:?}, and its sources build to {new:?}"
        );
        for name in &new {
            let is_same = fs::read(built.join(name))? == fs::read(page.join(name))?;
            ensure!(
                is_same,
                "{PAGE}/{name} is not what `web` builds to: run `cargo xtask page`"
            );
        }
        println!("the page is what its sources build to");
        Ok(())
    }

    /// Runs a script that drives Chromium, which finds all that it needs in its environment: the command of a profile, for one.
    fn drive(&self, profile: &str, script: &str, arguments: &[&str]) -> Result<()> {
        workspace::require_tool("chromium", "chromium")?;
        let blacklight = library::command(profile)?;
        build_libraries(profile)?;
        let screens = workspace::root().join(SCREENS);
        fs::create_dir_all(&screens).context("cannot make the directory of screenshots")?;
        let mut node = self.command(self.node.join("bin/node"));
        if script.ends_with(".test.mjs") {
            node.args([
                "--test",
                "--test-concurrency=1",
                "--test-reporter=spec",
                "--test-force-exit",
            ]);
        }
        node.arg(self.dir.join("test").join(script))
            .args(arguments)
            .env("BLACKLIGHT", blacklight)
            .env("NODE", self.node.join("bin/node"))
            .env("SCREENS", screens)
            .env_remove("NODE_OPTIONS");
        let status = node.status().context("cannot run Node.js")?;
        ensure!(status.success(), "the page does not do what it must");
        Ok(())
    }
}

/// Builds the library and the swap beside the command, which puts them into Node.js.
fn build_libraries(profile: &str) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args([
        "build",
        "--quiet",
        "--package",
        "blacklight-uv",
        "--package",
        "blacklight-swap",
        "--profile",
        profile,
    ]);
    let status = cargo.current_dir(workspace::root()).status();
    let status = status.context("cannot run cargo build")?;
    ensure!(status.success(), "the library does not build");
    Ok(())
}

/// A time like `10m` or `90s`.
fn parse_time(text: &str) -> Result<Duration, String> {
    let parts = text.split_at_checked(text.len().saturating_sub(1));
    let (number, unit) = parts.ok_or("a number and `s` or `m`")?;
    let number: u64 = number.parse().map_err(|_| "a number and `s` or `m`")?;
    match unit {
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number * 60)),
        _ => Err("the unit is `s` or `m`".into()),
    }
}

/// The names of the files in a directory, in their order.
fn files(dir: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<Result<_>>()?;
    names.sort_unstable();
    Ok(names)
}

/// Copies a file, or a directory with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for name in files(from)? {
        copy(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}
