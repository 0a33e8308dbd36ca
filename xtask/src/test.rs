//! `cargo xtask test`: everything that must hold before a change is good.
//!
//! Each step is a command of its own, run as one would run it by hand and printed so that it
//! can be. The first that fails ends the run. Many steps drive real programs on a machine that does other things too, so a step has
//! three goes, and the end of the run names those that did not pass at the first.

use crate::conformance::under::Under;
use crate::msrv;
use crate::sanitize::Sanitizer;
use crate::semver;
use crate::target::{Purpose, Target};
use crate::workspace;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Run all tests: format, lints, unit and integration tests, documentation, ABI, interleavings of
/// threads, conformance on every poller, on other machines and on older kernels, the answers of random programs and to what fuzzing has
/// found, failing calls, drop-in, swap, views, exports, the page in a browser, the guide's programs, packaging, the crates' archives, dependencies, promises of the last release, the oldest Rust, sanitizers.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Leave out what takes long: interleavings, conformance, random programs, failing calls,
    /// drop-in, swap, views, exports, the page in a browser, the guide's programs, packaging, the crates' archives, dependencies, promises of the last release, the oldest Rust and sanitizers.
    #[arg(long)]
    quick: bool,
    /// Go on after a step that fails, to learn of all that do.
    #[arg(long, conflicts_with = "target")]
    keep_going: bool,
    /// Run the tests of the crates, and nothing else, on another machine or C library, under an
    /// emulator if need be.
    #[arg(long, conflicts_with = "quick")]
    target: Option<Target>,
    /// With `--target`, under an emulator: the size of a page.
    #[arg(long, requires = "target")]
    pages: Option<Pages>,
    /// With `--target`: arguments of Cargo's that choose the tests.
    #[arg(last = true, requires = "target")]
    cargo: Vec<String>,
}

/// The crates that are tested on other machines, if none is named: what runs inside of programs.
const CRATES: [&str; 5] = [
    "blacklight-sys",
    "blacklight-record",
    "blacklight-engine",
    "blacklight-uv",
    "blacklight",
];

/// The one of them whose tests run its examples, which Cargo builds by itself only if nothing says what to build.
const WITH_EXAMPLES: &str = "blacklight";

/// A size of a page other than the 4 KiB that are usual.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Pages {
    #[value(name = "16k")]
    Small,
    #[value(name = "64k")]
    Large,
}

/// Tests that the emulator cannot do, by the reason.
const BEYOND_THE_EMULATOR: [(&str, &[&str]); 11] = [
    (
        "QEMU says in /proc/self/stat that a process began later than the kernel says, and so its \
         record is taken for that of another process",
        &[
            "a_job_finds_its_own_submission_in_the_record",
            "a_killed_program_is_gone_and_its_record_is_reaped",
            "a_loop_is_known_by_the_thread_that_runs_it",
            "a_record_is_removed_at_the_end_and_told_to_be_gone",
            "a_record_is_replaced_by_exec",
            "delay_is_the_time_that_a_callback_waits_in_the_loop",
            "loops_come_and_go_on_threads_while_readers_read_and_wake",
            "no_limit_harms_the_program_watched",
            "recording_allocates_nothing_either",
            "the_record_adds_up_to_what_a_probe_sees",
            "the_record_adds_up_to_what_a_probe_sees_by_a_simulated_clock",
            "walks_over_many_handles_take_their_share_of_the_time",
        ],
    ),
    (
        "QEMU says in /proc/self/stat that a process has no memory",
        &[
            "linux::memory::tests::free_memory_is_part_of_the_total",
            "memory_adds_up",
        ],
    ),
    (
        "QEMU has no supervisors of system calls",
        &[
            "a_directory_that_has_vanished",
            "a_directory_that_is_closed_to_us",
            "a_file_system_that_is_full",
            "a_full_pool_only_delays",
            "a_loop_that_stops_tells_when_it_runs_again",
            "a_watch_that_is_refused_memory",
            "cancelled_when_done_but_not_told",
            "cancelled_while_queued",
            "cancelled_while_running",
            "names_that_are_too_long",
            "refused_by_the_kernel",
            "refused_memory",
            "what_is_cancelled_is_not_done",
        ],
    ),
    (
        "QEMU has no descriptors of processes, and the test wants to see what they alone lead to",
        &["nothing_is_lost_on_a_kernel_that_misbehaves"],
    ),
    (
        "QEMU has threads of its own, with which it enters no user namespace and forks no process",
        &[
            "a_child_writes_nothing_to_its_parents_record",
            "a_stuck_resolver_does_not_delay_files",
        ],
    ),
    (
        "the kernel tells in which system call a thread is by this machine's numbers",
        &[
            "a_loop_that_sleeps_describes_its_handles_on_request",
            "a_pool_that_was_busy_before_is_seen",
            "a_run_for_one_event_sleeps_on_when_a_reader_comes",
        ],
    ),
    (
        "QEMU keeps limits of memory and arguments to itself, and the kernel has its own",
        &["a_limit_of_the_process_constrains_its_memory", "the_title"],
    ),
    (
        "QEMU keeps 12 bytes for each page of address space, and the test asks for 64 TiB of it",
        &["stacks_that_cannot_be_are_refused"],
    ),
    (
        "QEMU does not know IP_MULTICAST_IF",
        &[
            "groups_are_heard_of_by_their_members_and_from_their_sources_only",
            "multicast_reaches_the_members_of_its_group",
        ],
    ),
    (
        "QEMU does not know TCGETS2, by which the test looks at a terminal",
        &["a_terminal_gives_lines_and_raw_bytes"],
    ),
    (
        "QEMU looks at paths and buffers before the kernel does",
        &[
            "descriptors_that_are_none_are_refused",
            "linux::stat::tests::statx_and_fstatat_agree",
        ],
    ),
];

/// Runs tests of the crates for a target.
fn run_for(target: Target, pages: Option<Pages>, arguments: &[String]) -> Result<ExitCode> {
    if arguments.is_empty() || arguments.iter().any(|argument| argument == WITH_EXAMPLES) {
        let mut examples = target.cargo("build", Purpose::Program)?;
        examples.args(target.for_tests()?);
        examples.args(["--package", WITH_EXAMPLES, "--examples"]);
        let status = examples.status().context("cannot run the nightly cargo")?;
        ensure!(status.success(), "cannot build the examples");
    }
    let mut command = target.cargo("test", Purpose::Program)?;
    command.args(target.for_tests()?);
    if arguments.is_empty() {
        command.args(CRATES.iter().flat_map(|name| ["--package", name]));
        command.args(["--no-fail-fast", "--lib", "--tests"]);
    }
    if let Some(pages) = pages {
        ensure!(
            target.emulator().is_some(),
            "{target} runs here, with the pages of this machine"
        );
        let size = match pages {
            Pages::Small => "16384",
            Pages::Large => "65536",
        };
        command.env("QEMU_PAGESIZE", size);
        // With such pages the standard library faults when it takes a backtrace, of an expected panic as well.
        command.env("RUST_BACKTRACE", "0");
    }
    command.args(arguments);
    if target.emulator().is_some() {
        if !arguments.iter().any(|argument| argument == "--") {
            command.args(["--", "--exact"]);
        }
        // QEMU forks with whatever locks of its own other threads hold, and the child waits for them
        // for ever. So while a test forks, no other runs.
        command.arg("--test-threads=1");
        for (reason, names) in BEYOND_THE_EMULATOR {
            println!("left out, since {reason}: {}", names.join(", "));
            command.args(names.iter().flat_map(|name| ["--skip", name]));
        }
    }
    let status = command.status();
    let status = status.context("cannot run the nightly cargo")?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// A step takes minutes at most, so one that takes as long as this hangs.
const LIMIT: Duration = Duration::from_secs(25 * 60);

/// How many goes a step has.
const GOES: usize = 3;

/// A step: its name, and the command that it is.
struct Step {
    name: String,
    command: Command,
}

fn cargo(name: &str, arguments: &[&str]) -> Step {
    let mut command = workspace::cargo();
    command.args(arguments);
    Step {
        name: name.to_owned(),
        command,
    }
}

/// Frees the disk of what no later step needs.
fn remove(name: &str) -> Result<Step> {
    let mut command = Command::new("rm");
    command.arg("-rf").arg(workspace::target_dir()?.join(name));
    Ok(Step {
        name: format!("remove {name}"),
        command,
    })
}

/// Another chore of this very program.
fn chore(arguments: &[&str]) -> Result<Step> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.args(arguments);
    Ok(Step {
        name: arguments.join(" "),
        command,
    })
}

fn has_component(name: &str) -> bool {
    let output = workspace::cargo().args([name, "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

fn steps(options: &Options) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    // A toolchain without these two can build and test all the same.
    if has_component("fmt") {
        steps.push(cargo("format", &["fmt", "--all", "--check"]));
    }
    if has_component("clippy") {
        let lints = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--quiet",
        ];
        steps.push(cargo(
            "lints",
            &[&lints[..], &["--", "-D", "warnings"]].concat(),
        ));
    }
    steps.push(cargo(
        "tests",
        &["test", "--workspace", "--all-features", "--quiet"],
    ));
    let mut documentation = cargo(
        "documentation",
        &[
            "doc",
            "--workspace",
            "--all-features",
            "--no-deps",
            "--quiet",
        ],
    );
    documentation.command.env("RUSTDOCFLAGS", "-D warnings");
    steps.push(documentation);
    steps.push(chore(&["abi"])?);
    if options.quick {
        return Ok(steps);
    }
    steps.push(chore(&["loom"])?);
    for header in ["ours", "original"] {
        for poller in ["epoll", "poll", "select"] {
            let run = [
                "conformance",
                "--expected",
                "--header",
                header,
                "--poller",
                poller,
            ];
            steps.push(chore(&run)?);
        }
    }
    steps.push(chore(&["conformance", "--expected", "--swap"])?);
    steps.extend(elsewhere()?);
    // A machine that builds once has no use for what no later step needs.
    let builds_once = std::env::var_os("CI").is_some();
    if builds_once {
        steps.push(remove("cross")?);
    }
    steps.push(chore(&["differ", "--seeds", "100"])?);
    steps.push(chore(&["sweep"])?);
    steps.push(chore(&["sweep", "--poller", "poll", "--cases", "500"])?);
    steps.push(chore(&["fuzz", "--replay"])?);
    steps.push(chore(&["dropin"])?);
    steps.push(chore(&["swap"])?);
    steps.push(chore(&["exports"])?);
    steps.push(chore(&["views"])?);
    steps.push(chore(&["instructions"])?);
    steps.push(chore(&["page", "--check", "--test"])?);
    steps.push(chore(&["guide", "--test"])?);
    steps.push(chore(&["packaging"])?);
    if builds_once {
        for name in ["debug/deps", "portable", "packaging"] {
            steps.push(remove(name)?);
        }
    }
    steps.push(chore(&["package", "--allow-dirty"])?);
    if builds_once {
        steps.push(remove("packed")?);
    }
    steps.push(chore(&["deny"])?);
    match semver::lacks() {
        None => steps.push(chore(&["semver"])?),
        Some(what) => println!("`cargo xtask semver` is left out: {what}"),
    }
    // A machine that cannot fetch toolchains has its own only.
    match msrv::lacks_toolchain()? {
        None => steps.push(chore(&["msrv"])?),
        Some(version) => {
            println!("`cargo xtask msrv` is left out: Rust {version} is not installed")
        }
    }
    steps.push(chore(&["sanitize"])?);
    for under in [Under::Tsan, Under::Asan] {
        if under.sanitizer().and_then(Sanitizer::lacks).is_none() {
            steps.push(chore(&["conformance", "--under", under.name()])?);
        }
    }
    Ok(steps)
}

/// Tests of libuv's suite that come near what depends on the machine and on the C library: layouts,
/// sizes, numbers of system calls, stacks of threads, names, metadata.
const NEAR_THE_MACHINE: [&str; 14] = [
    "async",
    "env_vars",
    "fs_file_sync",
    "fs_futime",
    "fs_stat_batch_multiple",
    "getnameinfo_basic_ip4",
    "ipc_send_recv_pipe",
    "pipe_ping_pong",
    "signal_pending_on_close",
    "spawn_and_kill",
    "tcp_ping_pong",
    "thread_stack_size",
    "timer",
    "udp_send_and_recv",
];

/// What is fast of the tests for other machines, other C libraries and older kernels.
fn elsewhere() -> Result<Vec<Step>> {
    let mut steps = vec![chore(&["refusals"])?];
    for target in Target::value_variants() {
        steps.push(chore(&[
            "abi",
            "--headers-only",
            "--target",
            target.triple(),
        ])?);
    }
    if !Target::can_be_built_for() {
        println!(
            "without a nightly toolchain that has rust-src, nothing is built for other machines"
        );
        return Ok(steps);
    }
    let tests = ["streams", "pollers", "udp", "wakeups", "pool", "edges"];
    let tests = tests.map(|name| ["--test", name]);
    for target in [Target::Aarch64Gnu, Target::X86_64Musl] {
        let engine = ["test", "--target", target.triple(), "--"];
        let engine = [&engine[..], &["-p", "blacklight-engine"]].concat();
        steps.push(chore(&[&engine[..], tests.as_flattened()].concat())?);
        let suite = ["conformance", "--target", target.triple()];
        steps.push(chore(&[&suite[..], &NEAR_THE_MACHINE].concat())?);
        if target.has_swap() {
            let inside = [&suite[..], &["--swap"], &NEAR_THE_MACHINE].concat();
            steps.push(chore(&inside)?);
        }
    }
    Ok(steps)
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if let Some(target) = options.target {
        return run_for(target, options.pages, &options.cargo);
    }
    let steps = steps(options)?;
    let count = steps.len();
    let (mut failed, mut unsteady) = (Vec::new(), Vec::new());
    let mut skipped = 0;
    for (at, mut step) in steps.into_iter().enumerate() {
        println!("\n== {} of {count}: {}", at + 1, step.name);
        match step.goes()? {
            Some(1) => {}
            Some(goes) => unsteady.push(format!("{} at go {goes}", step.name)),
            None => {
                failed.push(step.name);
                if !options.keep_going {
                    skipped = count - at - 1;
                    break;
                }
            }
        }
    }
    let passed = count - failed.len() - skipped;
    println!(
        "\n{passed} passed, {} failed, {skipped} skipped",
        failed.len()
    );
    if !unsteady.is_empty() {
        println!(
            "did not pass at the first go, which is a defect to be found: {}",
            unsteady.join("; ")
        );
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join("; "));
    Ok(ExitCode::SUCCESS)
}

impl Step {
    /// Runs the step until it passes. Returns the number of the go at which it did, if at any.
    fn goes(&mut self) -> Result<Option<usize>> {
        for go in 1..=GOES {
            if go > 1 {
                println!("== once more: {}", self.name);
            }
            if self.passes()? {
                return Ok(Some(go));
            }
        }
        Ok(None)
    }

    /// Runs the step. One that hangs fails.
    fn passes(&mut self) -> Result<bool> {
        let begun = Instant::now();
        let child = self.command.current_dir(workspace::root()).spawn();
        let mut child = child.with_context(|| format!("cannot run {:?}", self.command))?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if begun.elapsed() > LIMIT {
                println!("== {} has not ended after {LIMIT:?}", self.name);
                child.kill()?;
                break child.wait()?;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        println!("== {} took {:.0?}", self.name, begun.elapsed());
        if !status.success() {
            println!("== {} failed: {:?}", self.name, self.command);
        }
        Ok(status.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_passes_if_its_command_succeeds() {
        for (program, succeeds) in [("true", true), ("false", false)] {
            let command = Command::new(program);
            let name = program.to_owned();
            assert_eq!(Step { name, command }.passes().unwrap(), succeeds);
        }
        let (name, command) = ("none".to_owned(), Command::new("/no/such/program"));
        assert!(Step { name, command }.passes().is_err());
    }

    #[test]
    fn a_step_has_three_goes() {
        let dir = workspace::target_subdir(format!("goes-{}", std::process::id())).unwrap();
        for (passes_at, expected) in [(1, Some(1)), (2, Some(2)), (3, Some(3)), (4, None)] {
            let log = dir.join(passes_at.to_string());
            // It notes each go, and passes when there are as many.
            let script = r#"echo go >> "$0"; [ "$(wc -l < "$0")" -ge "$1" ]"#;
            let mut command = Command::new("sh");
            command.args(["-c", script]).arg(&log);
            command.arg(passes_at.to_string());
            let name = format!("passes at go {passes_at}");
            assert_eq!(Step { name, command }.goes().unwrap(), expected);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_whole_run_has_what_this_machine_can_do_and_the_quick_one_has_not() {
        let names = |quick| {
            let options = Options {
                quick,
                keep_going: false,
                target: None,
                pages: None,
                cargo: Vec::new(),
            };
            let steps = steps(&options).unwrap();
            steps.into_iter().map(|step| step.name).collect::<Vec<_>>()
        };
        let (whole, quick) = (names(false), names(true));
        let is_in = |names: &[String], name: &str| names.iter().any(|step| step == name);
        assert_eq!(is_in(&whole, "semver"), semver::lacks().is_none());
        let lacks_oldest = msrv::lacks_toolchain().unwrap().is_some();
        assert_eq!(is_in(&whole, "msrv"), !lacks_oldest);
        assert!(is_in(&whole, "deny") && is_in(&quick, "abi"));
        for name in ["semver", "msrv", "deny"] {
            assert!(!is_in(&quick, name), "{name}");
        }
    }
}
