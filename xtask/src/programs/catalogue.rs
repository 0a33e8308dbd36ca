//! The programs, and what each is measured at.

use super::load::Load;
use super::turn::Work;
use crate::clients;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's Python, which the wheels are chosen for.
const PYTHON: &str = "/usr/bin/python3";

/// uvicorn and what it imports, as on PyPI; uvloop comes from the clients.
const UVICORN: [(&str, &str); 4] = [
    ("uvicorn", "0.54.0"),
    ("httptools", "0.9.0"),
    ("h11", "0.16.0"),
    ("click", "8.5.1"),
];

/// A program that people run.
#[derive(Clone, Copy)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// The client of `cargo xtask clients` that it comes from.
    client: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    OfficialNode,
    DebianNode,
    Uvloop,
    Uvicorn,
    Bind,
    Neovim,
    CMake,
}

pub(super) const PROGRAMS: [Program; 8] = [
    program("node26", "node26", Kind::OfficialNode),
    program("node24", "node24", Kind::OfficialNode),
    program("node18", "node", Kind::DebianNode),
    program("uvloop", "uvloop-wheel", Kind::Uvloop),
    program("uvicorn", "uvloop-wheel", Kind::Uvicorn),
    program("bind", "bind", Kind::Bind),
    program("neovim", "neovim", Kind::Neovim),
    program("cmake", "cmake", Kind::CMake),
];

const fn program(name: &'static str, client: &'static str, kind: Kind) -> Program {
    Program { name, client, kind }
}

/// What a program is measured at: the words that follow the program itself, and what is done.
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) arguments: Vec<String>,
    pub(super) work: Work,
}

impl Program {
    /// Whether it has a libuv inside and loads none.
    pub(super) fn is_carrier(&self) -> bool {
        matches!(self.kind, Kind::OfficialNode | Kind::Uvloop | Kind::Uvicorn)
    }

    pub(super) fn workloads(&self, scripts: &Path) -> Vec<Workload> {
        let script = |name: &str| scripts.join(name).display().to_string();
        match self.kind {
            Kind::OfficialNode => {
                let mut all = node_workloads(&script);
                all.push(starts("start-by-run", &["-e", "0"], true));
                all
            }
            Kind::DebianNode => node_workloads(&script),
            Kind::Uvloop => http_workloads(&[&script("server.py")], "ready"),
            Kind::Uvicorn => {
                let scripts = scripts.display().to_string();
                let words = "-m uvicorn app:app --loop uvloop --http httptools --no-access-log";
                let mut words: Vec<&str> = words.split(' ').collect();
                words.extend(["--port", "8000", "--app-dir", &scripts]);
                http_workloads(&words, "Uvicorn running")
            }
            Kind::Bind => bind_workloads(&script),
            Kind::Neovim => {
                let words = ["--headless", "--clean", "-c", "qall!"];
                vec![starts("start", &words, false)]
            }
            Kind::CMake => {
                let words = ["-S", &script("configure"), "-B", "."];
                vec![starts("configure", &words, false)]
            }
        }
    }

    /// Installs or unpacks the program, if it is not there.
    pub(super) fn provide(&self) -> Result<Installed> {
        let root = clients::provide(self.client)?;
        let root = || root.as_deref().context("the program is not unpacked");
        let installed = |program: PathBuf| Installed {
            program,
            library_dirs: Vec::new(),
            python_dirs: Vec::new(),
        };
        Ok(match self.kind {
            Kind::OfficialNode => installed(root()?.join("bin/node")),
            Kind::DebianNode => Installed {
                library_dirs: vec![root()?.join("usr/lib/x86_64-linux-gnu")],
                ..installed(root()?.join("usr/bin/node"))
            },
            Kind::Uvloop => Installed {
                python_dirs: vec![root()?.to_owned()],
                ..installed(PYTHON.into())
            },
            Kind::Uvicorn => {
                let wheels = UVICORN
                    .iter()
                    .map(|(name, version)| clients::wheel(name, version));
                let mut dirs = wheels.collect::<Result<Vec<_>>>()?;
                dirs.push(root()?.to_owned());
                Installed {
                    python_dirs: dirs,
                    ..installed(PYTHON.into())
                }
            }
            Kind::Bind => installed("/bin/sh".into()),
            Kind::Neovim => installed("/usr/bin/nvim".into()),
            Kind::CMake => installed("/usr/bin/cmake".into()),
        })
    }

    /// What the program calls itself, and which libuv it carries, if it does.
    pub(super) fn describe(&self, installed: &Installed) -> Result<String> {
        let ask = |arguments: &[&str]| installed.ask(arguments);
        let python = "import sys, uvloop.loop, uvloop\n\
            v = uvloop.loop.libuv_get_version()\n\
            print('uvloop %s in Python %s, which carries libuv %d.%d.%d' % (\
            uvloop.__version__, sys.version.split()[0], v >> 16, v >> 8 & 255, v & 255))";
        let node = "`Node.js ${process.versions.node}, which carries libuv ${process.versions.uv}`";
        let first_line = |text: String| text.lines().next().unwrap_or_default().to_owned();
        Ok(match self.kind {
            Kind::OfficialNode => ask(&["-p", node])?,
            Kind::DebianNode => ask(&["-p", "`Debian's Node.js ${process.versions.node}`"])?,
            Kind::Uvloop => ask(&["-c", python])?,
            Kind::Uvicorn => format!("uvicorn {} on the same uvloop", UVICORN[0].1),
            Kind::Bind => first_line(ask(&["-c", "/usr/sbin/named -v"])?),
            Kind::Neovim | Kind::CMake => first_line(ask(&["--version"])?),
        })
    }
}

/// Where a program lies.
pub(super) struct Installed {
    pub(super) program: PathBuf,
    /// Where it finds libraries of its own.
    pub(super) library_dirs: Vec<PathBuf>,
    /// Where it finds Python's modules.
    pub(super) python_dirs: Vec<PathBuf>,
}

impl Installed {
    /// What it prints when it is run with these arguments.
    fn ask(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(&self.program)
            .args(arguments)
            .env("PYTHONPATH", join(&self.python_dirs))
            .env("LD_LIBRARY_PATH", join(&self.library_dirs))
            .output()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        ensure!(output.status.success(), "it says {output:?}");
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// A search path.
pub(super) fn join(dirs: &[PathBuf]) -> String {
    let dirs: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    dirs.join(":")
}

fn node_workloads(script: &dyn Fn(&str) -> String) -> Vec<Workload> {
    let mut all = http_workloads(&[&script("server.js"), "http"], "ready");
    for name in ["readfile", "stat", "randombytes", "spawn", "lookup"] {
        all.push(Workload {
            name,
            arguments: vec![script("calls.js"), name.to_owned()],
            work: Work::Call,
        });
    }
    for (name, outstanding) in [("udp-1", 1), ("udp-64", 64)] {
        let load = Load::Udp { outstanding };
        all.push(serves(name, &[&script("server.js"), "udp"], "ready", load));
    }
    all.push(starts("start", &["-e", "0"], false));
    all
}

fn http_workloads(words: &[&str], ready: &str) -> Vec<Workload> {
    let loads = [
        ("http-1", 1, true),
        ("http-64", 64, true),
        ("http-close-1", 1, false),
        ("http-close-64", 64, false),
    ];
    let workloads = loads.map(|(name, connections, keep_alive)| {
        let load = Load::Http {
            connections,
            keep_alive,
        };
        serves(name, words, ready, load)
    });
    workloads.into()
}

/// With a single query outstanding dnsperf sends some fifty in a second, whatever answers them.
fn bind_workloads(script: &dyn Fn(&str) -> String) -> Vec<Workload> {
    let loads = [("udp-64", 64, false), ("tcp-64", 64, true)];
    let workloads = loads.map(|(name, outstanding, tcp)| {
        let load = Load::Dns {
            outstanding,
            tcp,
            queries: script("queries"),
        };
        serves(name, &[&script("named.sh")], "all zones loaded", load)
    });
    workloads.into()
}

fn serves(name: &'static str, words: &[&str], ready: &str, load: Load) -> Workload {
    Workload {
        name,
        arguments: owned(words),
        work: Work::Serve {
            ready: ready.to_owned(),
            load,
        },
    }
}

fn starts(name: &'static str, words: &[&str], by_launcher: bool) -> Workload {
    Workload {
        name,
        arguments: owned(words),
        work: Work::Start { by_launcher },
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn every_script_is_there() {
        let scripts = workspace::root().join("xtask/programs");
        let of_ours = |word: &&String| word.starts_with(&*scripts.to_string_lossy());
        let mut found = 0;
        for program in PROGRAMS {
            for workload in program.workloads(&scripts) {
                for script in workload.arguments.iter().filter(of_ours) {
                    assert!(Path::new(script).exists(), "{script}");
                    found += 1;
                }
            }
        }
        assert!(found > 0);
    }
}
