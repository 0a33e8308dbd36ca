//! What libuv's runner says about a test, in words of ours.

use crate::sandbox::{Ended, Run};
use std::fmt;
use std::time::Duration;

/// The verdict on one test.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) outcome: Outcome,
    pub(crate) output: String,
    /// What sanitizers have reported.
    pub(crate) reports: String,
    pub(crate) wall: Duration,
}

/// How a test went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// The test found that it cannot be run here, for the reason it gave.
    Skipped(String),
    /// It does not pass with the original either, run in the same way, and so says nothing of ours.
    AsOriginal,
    /// The test, a helper or the runner calls a function that the library does not have.
    Needs(String),
    TimedOut,
    /// A sanitizer has reported something, which is summed up.
    Reported(String),
    /// The test said no, in the words of the runner.
    Failed(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Passed => formatter.write_str("passed"),
            Outcome::Skipped(reason) => write!(formatter, "skipped: {reason}"),
            Outcome::AsOriginal => formatter.write_str("nor does it pass with the original"),
            Outcome::Needs(function) => write!(formatter, "needs {function}"),
            Outcome::TimedOut => formatter.write_str("timed out"),
            Outcome::Reported(summary) => write!(formatter, "reported: {summary}"),
            Outcome::Failed(reason) => write!(formatter, "failed: {reason}"),
        }
    }
}

impl Verdict {
    pub(crate) fn of(run: Run) -> Verdict {
        Verdict {
            outcome: parse(&run),
            output: run.output,
            reports: run.reports.concat(),
            wall: run.wall,
        }
    }

    pub(crate) fn passed(&self) -> bool {
        self.outcome == Outcome::Passed
    }

    pub(crate) fn skipped(&self) -> bool {
        matches!(self.outcome, Outcome::Skipped(_))
    }

    pub(crate) fn failed(&self) -> bool {
        !self.passed() && !self.skipped() && self.outcome != Outcome::AsOriginal
    }

    /// A function that is missing is missing the next time as well, and what was reported once
    /// is true even if it does not happen again.
    pub(crate) fn deserves_retry(&self) -> bool {
        self.failed() && !matches!(self.outcome, Outcome::Needs(_) | Outcome::Reported(_))
    }
}

/// The names in the output of `run-tests --list`: the first word of each line.
pub(crate) fn parse_list(output: &str) -> Vec<String> {
    let first_word = |line: &str| line.split_whitespace().next().map(str::to_owned);
    output.lines().filter_map(first_word).collect()
}

/// Reads the runner's TAP output for a single test.
fn parse(run: &Run) -> Outcome {
    if let Some(report) = run.reports.first() {
        return Outcome::Reported(summary(report).to_owned());
    }
    let result = run
        .output
        .lines()
        .find(|line| line.starts_with("ok ") || line.starts_with("not ok "));
    match (result, run.ended) {
        (Some(line), Ended::Exited(code)) if line.starts_with("ok ") => {
            match line.split_once("# SKIP") {
                Some((_, reason)) => Outcome::Skipped(reason.trim().to_owned()),
                None if code == 0 => Outcome::Passed,
                None => Outcome::Failed(format!("the runner {}", describe(run.ended))),
            }
        }
        _ => parse_failure(run),
    }
}

/// The line in which a sanitizer sums a report up; its first if it did not come to that.
fn summary(report: &str) -> &str {
    let summed_up = report
        .lines()
        .find_map(|line| line.strip_prefix("SUMMARY: "));
    let first = || {
        report
            .lines()
            .find(|line| !line.trim_matches('=').is_empty())
    };
    summed_up.or_else(first).unwrap_or("nothing")
}

fn parse_failure(run: &Run) -> Outcome {
    if let Some(function) = run.missing_function() {
        return Outcome::Needs(function.to_owned());
    }
    if run.ended == Ended::TimedOut || run.output.lines().any(|line| line == "# timeout") {
        return Outcome::TimedOut;
    }
    let code = run
        .output
        .lines()
        .find_map(|line| line.strip_prefix("# exit code "))
        .and_then(|code| code.trim().parse::<i32>().ok());
    Outcome::Failed(match code {
        Some(status) => describe_status(status),
        None => format!("the runner {}", describe(run.ended)),
    })
}

/// The runner prints a wait status where the test did not exit by itself.
fn describe_status(status: i32) -> String {
    match status {
        4 | 132 => "crashed (SIGILL)".to_owned(),
        6 | 134 => "aborted (SIGABRT)".to_owned(),
        7 | 135 => "crashed (SIGBUS)".to_owned(),
        11 | 139 => "crashed (SIGSEGV)".to_owned(),
        125 => "valgrind has found something".to_owned(),
        _ => format!("exit code {status}"),
    }
}

fn describe(ended: Ended) -> String {
    match ended {
        Ended::Exited(code) => format!("ended with exit code {code}"),
        Ended::Killed(signal) => format!("was killed by signal {signal}"),
        Ended::TimedOut => "hung".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(output: &str, ended: Ended) -> Outcome {
        parse(&Run {
            ended,
            output: output.to_owned(),
            reports: Vec::new(),
            wall: Duration::ZERO,
            cpu: Duration::ZERO,
        })
    }

    #[test]
    fn list_takes_the_first_word_of_each_line() {
        let list =
            "active\nconnection_fail\ndelayed_accept            (helpers: tcp4_echo_server)\n";
        assert_eq!(
            parse_list(list),
            ["active", "connection_fail", "delayed_accept"]
        );
    }

    #[test]
    fn ok_passes() {
        assert_eq!(outcome("ok 1 - timer\n", Ended::Exited(0)), Outcome::Passed);
    }

    #[test]
    fn output_before_and_after_the_result_does_not_matter() {
        let output = "# noise\nok 1 - platform_output\n# Output from process `platform_output`:\n# uname: x\n";
        assert_eq!(outcome(output, Ended::Exited(0)), Outcome::Passed);
    }

    #[test]
    fn skip_keeps_its_reason() {
        let skipped = outcome("ok 1 - tty # SKIP Cannot open /dev/tty\n", Ended::Exited(7));
        assert_eq!(skipped, Outcome::Skipped("Cannot open /dev/tty".to_owned()));
    }

    #[test]
    fn not_ok_tells_why() {
        let output =
            "not ok 1 - timer\n# exit code 6\n# Output from process `timer`:\n# Assertion failed\n";
        assert_eq!(
            outcome(output, Ended::Exited(6)),
            Outcome::Failed("aborted (SIGABRT)".to_owned())
        );
        let output =
            "not ok 1 - timer\n# exit code 1\n# Output from process `timer`: (no output)\n";
        assert_eq!(
            outcome(output, Ended::Exited(1)),
            Outcome::Failed("exit code 1".to_owned())
        );
    }

    #[test]
    fn both_kinds_of_time_out() {
        let output = "not ok 1 - timer\n# timeout\n# Output from process `timer`: (no output)\n";
        assert_eq!(outcome(output, Ended::Exited(255)), Outcome::TimedOut);
        assert_eq!(outcome("", Ended::TimedOut), Outcome::TimedOut);
    }

    #[test]
    fn a_missing_function_is_named() {
        let output = "not ok 1 - timer\n# exit code 127\n# Output from process `timer`:\n\
            # /srv/bin/run-tests: symbol lookup error: /srv/bin/run-tests: undefined symbol: uv_timer_init\n";
        assert_eq!(
            outcome(output, Ended::Exited(127)),
            Outcome::Needs("uv_timer_init".to_owned())
        );
    }

    #[test]
    fn a_report_counts_more_than_what_the_runner_says() {
        let run = |report: &str| {
            Verdict::of(Run {
                ended: Ended::Exited(0),
                output: "ok 1 - timer\n".to_owned(),
                reports: vec![report.to_owned()],
                wall: Duration::ZERO,
                cpu: Duration::ZERO,
            })
        };
        let race = run("==================\nWARNING: data race\nSUMMARY: data race in f\n");
        assert_eq!(race.outcome, Outcome::Reported("data race in f".to_owned()));
        assert!(race.failed() && !race.deserves_retry());
        let cut_short = run("==================\nFATAL: out of memory\n");
        let expected = Outcome::Reported("FATAL: out of memory".to_owned());
        assert_eq!(cut_short.outcome, expected);
    }

    #[test]
    fn a_runner_that_dies_is_a_failure() {
        let died = outcome("", Ended::Killed(11));
        assert_eq!(
            died,
            Outcome::Failed("the runner was killed by signal 11".to_owned())
        );
    }
}
