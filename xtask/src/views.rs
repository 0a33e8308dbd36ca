//! `cargo xtask views`: what the views say of real programs.
//!
//! Node's own builds, uvloop's wheel, Neovim, a program in C and one in Rust do something that people look for: they compute for too long, wait
//! in a file, starve the pool, forget an interval. A check starts one of them as its user would, asks
//! a view, and reads the answer. Other checks ask what cannot be answered, and see that the answer is one sentence
//! and that the program does not notice.
//!
//! All happens in namespaces with a network, processes and file systems of their own ([`stage`]); the programs lie in `xtask/views`.

mod native;
mod node;
mod others;
mod refusals;
mod report;
mod stage;

use crate::clients;
use crate::compile::run_quietly;
use crate::{library, selection, workspace};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use stage::{Stage, User};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What to check.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Checks: `stall`, `refusals/*`. All if none is named.
    names: Vec<String>,
    /// How the command is built: the one that is installed, or one that is built in less time.
    #[arg(long, default_value = "release")]
    profile: String,
    /// Only list the checks.
    #[arg(long)]
    list: bool,
}

/// Directories outside that appear inside, by name.
type Rooms = Vec<(String, PathBuf)>;

/// What the inside is told.
#[derive(Serialize, Deserialize)]
struct Spec {
    rooms: Rooms,
    checks: Vec<String>,
}

/// Something that a view must say.
struct Check {
    name: &'static str,
    users: &'static [User],
    run: fn(&Stage) -> Result<()>,
}

const BOTH: &[User] = &[User::Root, User::Ordinary];
const ORDINARY: &[User] = &[User::Ordinary];

/// A check by one kind of user or by both.
const fn check(name: &'static str, users: &'static [User], run: fn(&Stage) -> Result<()>) -> Check {
    Check { name, users, run }
}

/// All of them.
const CHECKS: [Check; 29] = [
    check("node/stall", BOTH, node::stall),
    check("node/stall_in_node22", ORDINARY, node::stall_in_node22),
    check("node/waiting", ORDINARY, node::waiting),
    check("node/pool", BOTH, node::pool),
    check("node/forgotten", ORDINARY, node::forgotten),
    check("node/many", BOTH, node::many),
    check("node/late", BOTH, node::late),
    check("node/elsewhere", BOTH, node::elsewhere),
    check("node/never", ORDINARY, node::never),
    check("uvloop/stall", ORDINARY, others::uvloop_stall),
    check("uvloop/waiting", ORDINARY, others::uvloop_waiting),
    check("uvloop/pool", ORDINARY, others::uvloop_pool),
    check("neovim/alive", ORDINARY, others::neovim_alive),
    check("neovim/stall", ORDINARY, others::neovim_stall),
    check("neovim/waiting", ORDINARY, others::neovim_waiting),
    check("neovim/pool", ORDINARY, others::neovim_pool),
    check("c", BOTH, native::c),
    check("c_in_namespace", &[User::Root], native::c_in_namespace),
    check("c_without_names", ORDINARY, native::c_without_names),
    check("rust", ORDINARY, native::rust),
    check("rust_without_lines", ORDINARY, native::rust_without_lines),
    check("refusals/no_process", ORDINARY, refusals::no_process),
    check("refusals/other_user", BOTH, refusals::other_user),
    check("refusals/not_here", ORDINARY, refusals::not_here),
    check("refusals/gone", BOTH, refusals::gone),
    check("refusals/other_version", ORDINARY, refusals::other_version),
    check("refusals/damaged", ORDINARY, refusals::damaged),
    check("refusals/full", ORDINARY, refusals::full),
    check("refusals/no_place", ORDINARY, refusals::no_place),
];

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let all: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    let chosen = match options.names.is_empty() {
        true => all,
        false => selection::select(&all, &options.names)?,
    };
    if options.list {
        chosen.iter().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    ensure!(
        nix::unistd::geteuid().is_root(),
        "the checks need namespaces and mounts: run this as root"
    );
    workspace::require_tool("unshare", "util-linux")?;
    workspace::require_tool("ip", "iproute2")?;
    clients::provide("neovim")?;
    let dir = workspace::target_subdir("views")?;
    let spec = Spec {
        rooms: rooms(&dir, &options.profile)?,
        checks: chosen.into_iter().map(str::to_owned).collect(),
    };
    let spec = serde_json::to_string(&spec).context("cannot describe the checks")?;
    let status = Command::new("unshare")
        .args(["--net", "--mount", "--pid", "--ipc", "--fork"])
        .args(["--kill-child", "--mount-proc", "--"])
        .arg(std::env::current_exe().context("cannot find this program")?)
        .args(["views-inside", &spec])
        .status()
        .context("cannot run unshare")?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Makes and fetches all that the checks need.
fn rooms(dir: &Path, profile: &str) -> Result<Rooms> {
    let (bin, lib) = (dir.join("bin"), dir.join("lib"));
    let staged = library::stage_ours()?;
    library::snapshot(&staged.join("libuv.so.1"), &lib)?;
    std::fs::create_dir_all(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
    workspace::copy_into_place(&library::command(profile)?, &bin.join("blacklight"))?;
    native::build(&bin, &lib)?;
    let room = |name: &str, path: PathBuf| (name.to_owned(), path);
    Ok(vec![
        room("app", workspace::root().join("xtask/views")),
        room("bin", bin),
        room("lib", lib),
        room("node26", clients::node("node26")?),
        room("node22", clients::node("node22")?),
        room("uvloop", clients::node("uvloop-wheel")?),
    ])
}

/// Compiles a program in C of this chore.
fn compile(source: &str, program: &Path, options: &[&str], lib: &Path) -> Result<()> {
    let mut command = Command::new("gcc");
    command
        .args(["-O1", "-Wall", "-Wextra", "-o"])
        .arg(program)
        .args(options)
        .arg(workspace::root().join("xtask/views").join(source))
        .arg("-I")
        .arg(workspace::include_dir())
        .arg("-L")
        .arg(lib)
        .arg("-luv");
    run_quietly(command)
}

/// The inside: runs the checks one after the other, and says how each has ended.
pub(crate) fn run_inside(spec: &str) -> Result<ExitCode> {
    let spec: Spec = serde_json::from_str(spec).context("cannot understand the description")?;
    stage::furnish(&spec.rooms)?;
    let (mut passed, mut failed) = (0, 0);
    for check in CHECKS
        .iter()
        .filter(|check| spec.checks.iter().any(|name| name == check.name))
    {
        for user in check.users {
            let name = format!("{} as {}", check.name, user.name());
            match Stage::new(*user).and_then(|stage| (check.run)(&stage)) {
                Ok(()) => {
                    println!("{name}: ok");
                    passed += 1;
                }
                Err(error) => {
                    let error = format!("{error:#}");
                    println!(
                        "{name}: FAILED\n    {}",
                        error.trim().replace('\n', "\n    ")
                    );
                    failed += 1;
                }
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
