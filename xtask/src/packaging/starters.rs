//! What npm and pip install starts programs on our library, and ends as they end.
//!
//! The packages are installed from their files, into a project and an environment in which nothing
//! else is, and without the network.

use crate::compile::run_quietly;
use crate::platform::Platform;
use crate::portable::Needs;
use crate::{clients, npm, portable, wheel, workspace};
use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PYTHON: &str = "/usr/bin/python3";

/// A way to start the installed command.
struct Starter {
    name: &'static str,
    words: Vec<OsString>,
    dir: PathBuf,
    environment: Vec<(&'static str, OsString)>,
}

/// Makes the packages, installs them and uses them; returns how many checks there were.
pub(super) fn check(dir: &Path) -> Result<usize> {
    workspace::require_tool("npm", "npm")?;
    workspace::require_tool("pip", "python3-pip")?;
    let platform = Platform::this();
    let stage = portable::stage(platform)?;
    let (tarballs, wheel) = pack_twice(&stage, dir)?;
    let node = clients::official_node()?.join("bin/node");
    let mut checks = 1 + portable::files(platform).len() * 2;

    let project = fresh(&dir.join("npm-project"))?;
    install_with_npm(&tarballs, &project)?;
    let modules = project.join("node_modules");
    ensure_old_glibc_is_enough(&modules.join(npm::package_for(platform)))?;
    let starters = starters_of_npm(&project, &node);
    for starter in &starters {
        starter.runs_on_ours(&node, "app.js")?;
        starter.is_faithful()?;
    }
    checks += starters.len() * 2;
    says_what_is_missing(&project, &node)?;
    checks += 1;

    let environment = fresh(&dir.join("python-environment"))?;
    let site = install_with_pip(&wheel, &environment)?;
    ensure_old_glibc_is_enough(&site.join("blacklight"))?;
    let starters = starters_of_pip(&environment)?;
    for starter in &starters {
        starter.runs_on_ours(&environment.join("bin/python"), "server.py")?;
        starter.is_faithful()?;
    }
    Ok(checks + starters.len() * 2)
}

/// Packs the same files two times, which must give the same bytes.
fn pack_twice(stage: &Path, dir: &Path) -> Result<([PathBuf; 2], PathBuf)> {
    let pack = |name: &str| {
        let dir = fresh(&dir.join(name))?;
        let platform = Platform::this();
        anyhow::Ok((
            npm::build(platform, stage, &dir)?,
            wheel::build(platform, stage, &dir)?,
        ))
    };
    let (tarballs, wheel) = pack("packages")?;
    let (tarballs_again, wheel_again) = pack("packages-again")?;
    let again = tarballs_again.iter().chain([&wheel_again]);
    for (first, second) in tarballs.iter().chain([&wheel]).zip(again) {
        let is_same = fs::read(first)? == fs::read(second)?;
        ensure!(is_same, "{} is another each time", first.display());
    }
    println!("packed two times: ok");
    Ok((tarballs, wheel))
}

/// An empty directory.
pub(super) fn fresh(dir: &Path) -> Result<PathBuf> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("cannot clear {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    Ok(dir.to_owned())
}

/// Keeps npm in `project`, and to what this test is about.
pub(super) fn npm_settings(project: &Path) -> Vec<(&'static str, OsString)> {
    vec![
        ("npm_config_cache", project.join("cache").into()),
        ("npm_config_offline", "true".into()),
        ("npm_config_audit", "false".into()),
        ("npm_config_update_notifier", "false".into()),
    ]
}

fn install_with_npm(tarballs: &[PathBuf], project: &Path) -> Result<()> {
    for (arguments, files) in [
        (["init", "--yes"], &[][..]),
        (["install", "--quiet"], tarballs),
    ] {
        let mut npm = Command::new("npm");
        npm.args(arguments).args(files).current_dir(project);
        npm.envs(npm_settings(project));
        run_quietly(npm)?;
    }
    Ok(())
}

/// Returns where pip has put the modules.
fn install_with_pip(wheel: &Path, environment: &Path) -> Result<PathBuf> {
    let mut venv = Command::new(PYTHON);
    venv.args(["-m", "venv", "--without-pip"]).arg(environment);
    run_quietly(venv)?;
    let python = environment.join("bin/python");
    let mut pip = Command::new(PYTHON);
    pip.args(["-m", "pip", "--python"])
        .arg(&python)
        .args(["install", "--quiet", "--no-index", "--no-cache-dir"])
        .arg(wheel);
    run_quietly(pip)?;
    let program = "import sysconfig; print(sysconfig.get_path('platlib'))";
    let output = Command::new(python).args(["-c", program]).output();
    let output = output.context("cannot run the environment's Python")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().into())
}

/// With `npx`, and with Node where it can become the command and where it cannot.
fn starters_of_npm(project: &Path, node: &Path) -> Vec<Starter> {
    let script = project.join("node_modules/.bin/blacklight");
    let cannot = workspace::root().join("xtask/packaging/without_execve.js");
    let starter = |name, words: &[&OsStr]| Starter {
        name,
        words: words.iter().map(|&word| word.to_owned()).collect(),
        dir: project.to_owned(),
        environment: npm_settings(project),
    };
    let (node, script) = (node.as_os_str(), script.as_os_str());
    vec![
        starter("npx", &["npx".as_ref(), npm::NAME.as_ref()]),
        starter("node, becoming the command", &[node, script]),
        starter(
            "node, waiting for the command",
            &[node, "--require".as_ref(), cannot.as_ref(), script],
        ),
    ]
}

fn starters_of_pip(environment: &Path) -> Result<[Starter; 2]> {
    let uvloop = clients::provide("uvloop-wheel")?.context("there is no wheel of uvloop")?;
    let starter = |name, program: &str, words: &[&str]| Starter {
        name,
        words: std::iter::once(environment.join("bin").join(program).into())
            .chain(words.iter().map(OsString::from))
            .collect(),
        dir: environment.to_owned(),
        environment: vec![("PYTHONPATH", uvloop.clone().into())],
    };
    Ok([
        starter("python -m", "python", &["-m", "blacklight"]),
        starter("the console script", "blacklight", &[]),
    ])
}

/// The installed files are those that were checked when they were built.
fn ensure_old_glibc_is_enough(installed: &Path) -> Result<()> {
    let platform = Platform::this();
    for file in portable::files(platform) {
        let needs = Needs::read(&installed.join(file))?;
        needs.check(platform)?;
        println!("{file} needs glibc {:?}: ok", needs.glibc());
    }
    Ok(())
}

/// Without the package that has the binaries.
fn says_what_is_missing(project: &Path, node: &Path) -> Result<()> {
    let name = npm::package_for(Platform::this());
    let package = project.join("node_modules").join(&name);
    fs::remove_dir_all(&package).with_context(|| format!("cannot remove {}", package.display()))?;
    for starter in starters_of_npm(project, node) {
        let output = starter.command(&["doctor", "sh"]).output()?;
        let told = String::from_utf8_lossy(&output.stderr);
        let wanted = format!("blacklight: the package {name} is not installed");
        ensure!(
            output.status.code() == Some(1) && told.contains(&wanted),
            "{}: {} without the binaries: {told}",
            starter.name,
            output.status
        );
    }
    println!("without the binaries: ok");
    Ok(())
}

/// The command ends well and says just this.
fn said(command: &mut Command, wanted: &str) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && text == wanted,
        "{command:?}: {} and {text:?}, not {wanted:?}:\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

impl Starter {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .args(arguments)
            .current_dir(&self.dir)
            .env_remove("LD_PRELOAD")
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn is_npx(&self) -> bool {
        self.words[0] == "npx"
    }

    /// A program that carries a libuv runs on ours, and without the starter on what it carries.
    fn runs_on_ours(&self, interpreter: &Path, program: &str) -> Result<()> {
        let file = workspace::root().join("xtask/packaging").join(program);
        let mut alone = Command::new(interpreter);
        alone.arg(&file).envs(self.environment.clone());
        said(&mut alone, "served\ncarried\n")?;
        let mut command = self.command(&["run", "--poller", "poll", "--"]);
        command.arg(interpreter).arg(&file);
        said(&mut command, "served\nours\n")
            .with_context(|| format!("started by {}", self.name))?;
        println!("{}, {program} runs on ours: ok", self.name);
        Ok(())
    }

    /// Streams, status and signals are the program's.
    fn is_faithful(&self) -> Result<()> {
        let checks = [
            Starter::streams,
            Starter::ends_as_the_program,
            Starter::passes_signals_on,
            Starter::ignores_no_signals,
        ];
        for check in checks {
            check(self).with_context(|| format!("started by {}", self.name))?;
        }
        println!("{}, ends as the program ends: ok", self.name);
        Ok(())
    }

    fn streams(&self) -> Result<()> {
        let mut child = self
            .command(&["run", "--", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut input = child.stdin.take().context("there is no input")?;
        input.write_all(b"passed through")?;
        drop(input);
        let output = child.wait_with_output()?;
        ensure!(
            output.stdout == b"passed through",
            "the input has not come back"
        );
        Ok(())
    }

    fn ends_as_the_program(&self) -> Result<()> {
        let status = |program: &str| {
            let mut command = self.command(&["run", "--", "sh", "-c", program]);
            command.stderr(Stdio::null()).status()
        };
        let exited = status("exit 7")?;
        ensure!(exited.code() == Some(7), "status 7 has become {exited}");
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            let number = signal as i32;
            let killed = status(&format!("kill -{number} $$"))?;
            // npm has a shell between, and ends with a status itself.
            let is_status = self.is_npx() && killed.code() == Some(128 + number);
            ensure!(
                killed.signal() == Some(number) || is_status,
                "death by {signal} has become {killed}"
            );
        }
        Ok(())
    }

    /// Node ignores some signals itself, and what is ignored stays so in what a process becomes.
    fn ignores_no_signals(&self) -> Result<()> {
        let output = self
            .command(&["run", "--", "grep", "SigIgn", "/proc/self/status"])
            .stderr(Stdio::null())
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let mask = said.trim().rsplit('\t').next().unwrap_or_default();
        let ignored = u64::from_str_radix(mask, 16).with_context(|| format!("it says {said:?}"))?;
        let bit = 1 << (Signal::SIGXFSZ as u64 - 1);
        ensure!(ignored & bit == 0, "the program ignores SIGXFSZ: {said}");
        Ok(())
    }

    /// A signal for the process that was started gets to the program, which ends in its own way.
    fn passes_signals_on(&self) -> Result<()> {
        if self.is_npx() {
            // npm tells the shell that it has between, and the shell tells nobody.
            return Ok(());
        }
        let program = "import signal, sys\n\
                       signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\n\
                       signal.alarm(300)\n\
                       print('ready', flush=True)\n\
                       signal.sigwait({signal.SIGTERM})\n\
                       sys.exit(3)";
        let mut child = self
            .command(&["run", "--", PYTHON, "-c", program])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        let output = child.stdout.take().context("there is no output")?;
        BufReader::new(output).read_line(&mut line)?;
        ensure!(line == "ready\n", "the program has not begun: {line:?}");
        kill(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGTERM)?;
        let status = child.wait()?;
        ensure!(status.code() == Some(3), "the signal has led to {status}");
        Ok(())
    }
}
