//! `cargo xtask refusals`: tests of libuv's suite on systems that lack or refuse a system call.
//!
//! For each call, and each way in which systems refuse it, a test must pass that passes with the
//! original on such a system; and no thread may ask for a call again that was refused once. The
//! first needs the suite's tests, the second a trace of them.

use super::{Options, Poller};
use crate::library::Library;
use crate::original::{Header, Original};
use crate::refusal::{Answer, Call, Refusal};
use crate::sandbox::{Job, Sandbox};
use crate::target::Target;
use crate::{compile, selection};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Run tests of libuv's suite with each system call that older systems lack refused in turn.
#[derive(clap::Args)]
pub(crate) struct Choice {
    /// Run the whole suite, not only the tests that come near these calls.
    #[arg(long)]
    all: bool,
    /// Only this call.
    #[arg(long)]
    call: Option<Call>,
    /// For another C library, on this machine's processor: an emulator makes calls of its own, which
    /// would be refused as well.
    #[arg(long)]
    target: Option<Target>,
}

/// Tests that use what the calls are for: files, children, streams, datagrams, timers, waking.
const NEAR: [&str; 19] = [
    "async",
    "fs_copyfile",
    "fs_event_watch_dir",
    "fs_file_sync",
    "fs_futime",
    "fs_stat_batch_multiple",
    "fs_file_async",
    "ipc_send_recv_pipe",
    "kill",
    "loop_configure",
    "pipe_getsockname",
    "poll_duplex",
    "random_sync",
    "spawn_and_kill",
    "spawn_exit_code",
    "tcp_ping_pong",
    "threadpool_queue_work_simple",
    "timer",
    "udp_send_and_recv",
];

/// Calls that more than our library makes, and how often a thread may ask for them: the heap of the
/// C library and the hash tables of Rust's each want random bytes, and glibc starts each thread
/// with `clone3`. Where several are refused at once, a thread may ask for each of them.
const OTHERS: [(Call, Option<usize>); 3] = [
    (Call::Getrandom, Some(3)),
    (Call::Clone3, None),
    (Call::NewerThan418, None),
];

/// Errors by which a call may also refuse what it was asked for: we cannot know that it will do so
/// again.
const AMBIGUOUS: [(Call, Answer); 5] = [
    (Call::CopyFileRange, Answer::Eperm),
    (Call::Sendfile, Answer::Eperm),
    (Call::PidfdSendSignal, Answer::Eperm),
    (Call::Sendmmsg, Answer::Eperm),
    (Call::Recvmmsg, Answer::Eperm),
];

/// Where there is no `statx`, glibc answers in its place, and does not say so. For musl the library asks
/// the kernel itself.
const ANSWERED_BY_GLIBC: (Call, Answer) = (Call::Statx, Answer::Enosys);

/// Runs the chore.
pub(crate) fn run(choice: &Choice) -> Result<ExitCode> {
    if let Some(target) = choice.target {
        ensure!(
            target.emulator().is_none(),
            "{target} runs under an emulator, to which calls would be refused as well"
        );
    }
    let original = Original::obtain_for(choice.target)?;
    let mut faults = 0;
    let mut runs = 0;
    for call in Call::value_variants() {
        if choice.call.is_some_and(|only| only != *call) {
            continue;
        }
        for answer in call.answers() {
            let refusal = Refusal {
                call: *call,
                answer: *answer,
            };
            println!("{call} is refused with {answer}:");
            let passed = super::run(&options(refusal, choice))? == ExitCode::SUCCESS;
            let asked = asked_again(&original, refusal)?;
            for complaint in &asked {
                println!("  {complaint}");
            }
            faults += usize::from(!passed) + asked.len();
            runs += 1;
        }
    }
    println!("{runs} refusals, {faults} faults");
    Ok(match faults {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn options(refusal: Refusal, choice: &Choice) -> Options {
    let names: &[&str] = if choice.all { &[] } else { &NEAR };
    Options {
        poller: None::<Poller>,
        header: Header::Ours,
        library: Library::Ours,
        swap: false,
        jobs: 2 * compile::jobs(),
        under: None,
        target: choice.target,
        without: Some(refusal.call),
        answer: Some(refusal.answer),
        expected: false,
        bless: false,
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// The tests in which a thread asked for a call after it had been refused.
fn asked_again(original: &Original, refusal: Refusal) -> Result<Vec<String>> {
    let limit = match OTHERS.iter().find(|(call, _)| *call == refusal.call) {
        Some((_, Some(limit))) => *limit,
        Some((_, None)) => return Ok(Vec::new()),
        None => 1,
    };
    if cannot_be_known(refusal, original.target()) {
        return Ok(Vec::new());
    }
    let runner = original.test_runner(Header::Ours, None)?;
    let library = Library::Ours.build(original)?;
    let mut sandbox = Sandbox::open(original)?;
    sandbox.refuse(refusal);
    sandbox.trace(&refusal.call.name())?;
    let library_dir = sandbox.adopt(&library, "under-test")?;
    let all = super::list_tests(&sandbox, &runner, &library_dir)?;
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let names = NEAR.map(str::to_owned);
    let mut complaints = Vec::new();
    for test in selection::select(&all, &names)? {
        let run = sandbox
            .run(&Job {
                program: &runner,
                arguments: &[test],
                library_dir: &library_dir,
                environment: &[("UV_USE_IO_URING", "1")],
                tool: None,
                limit: super::LIMIT,
            })
            .with_context(|| format!("cannot trace the test {test}"))?;
        let name = refusal.answer.to_string();
        for (thread, times) in times_refused(&run.reports.concat(), &name) {
            if times > limit {
                complaints.push(format!("{test}: thread {thread} asked {times} times"));
            }
        }
    }
    Ok(complaints)
}

/// Whether the library cannot know from this answer that the call will be refused again.
fn cannot_be_known(refusal: Refusal, target: Option<Target>) -> bool {
    let answer = (refusal.call, refusal.answer);
    let is_musl = target.is_some_and(Target::is_musl);
    AMBIGUOUS.contains(&answer) || (answer == ANSWERED_BY_GLIBC && !is_musl)
}

/// How often each thread was refused a call, in a trace.
fn times_refused<'a>(trace: &'a str, error: &str) -> BTreeMap<&'a str, usize> {
    let mut times = BTreeMap::new();
    let refused = format!("= -1 {error} ");
    for line in trace.lines().filter(|line| line.contains(&refused)) {
        if let Some((thread, _)) = line.split_once(' ') {
            *times.entry(thread).or_default() += 1;
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_thread() {
        let trace = "7 statx(AT_FDCWD, \"a\") = -1 ENOSYS (Function not implemented)\n\
                     8 statx(AT_FDCWD, \"a\") = -1 ENOSYS (Function not implemented)\n\
                     7 statx(AT_FDCWD, \"b\") = -1 ENOENT (No such file or directory)\n\
                     7 statx(AT_FDCWD, \"a\") = -1 ENOSYS (Function not implemented)\n";
        let times = times_refused(trace, "ENOSYS");
        assert_eq!(times, BTreeMap::from([("7", 2), ("8", 1)]));
    }

    #[test]
    fn only_glibc_answers_in_the_place_of_a_call() {
        let of = |call, answer| Refusal { call, answer };
        let statx = of(Call::Statx, Answer::Enosys);
        assert!(cannot_be_known(statx, None));
        assert!(!cannot_be_known(statx, Some(Target::X86_64Musl)));
        assert!(!cannot_be_known(of(Call::Statx, Answer::Eperm), None));
        let sendfile = of(Call::Sendfile, Answer::Eperm);
        assert!(cannot_be_known(sendfile, Some(Target::X86_64Musl)));
    }

    #[test]
    fn the_tests_near_the_calls_pass_otherwise() {
        let expected = include_str!("../../conformance/expected.txt");
        for name in NEAR {
            assert!(expected.lines().any(|line| line == name), "{name}");
        }
    }
}
