//! What `cargo xtask conformance` prints.

use super::Tested;
use super::outcome::Outcome;
use super::topics::topic;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// How many lines of a failed test's output are shown.
const LINES_SHOWN: usize = 4;

/// How many lines of a sanitizer's reports are shown: the first report is what matters.
const REPORT_LINES_SHOWN: usize = 60;

/// Prints the table by topic, the failures, and what is reported apart.
pub(crate) fn print(judged: &[Tested], apart: &[Tested], took: Duration, log: &Path) {
    print_failures(judged);
    print_missing_functions(judged);
    print_table(judged);
    for test in judged.iter().filter(|test| test.flaky) {
        println!("{}: flaky: {} on retry", test.name, test.verdict.outcome);
    }
    if !apart.is_empty() {
        let passed = apart.iter().filter(|test| test.verdict.passed()).count();
        println!(
            "apart, as they never reach the library: {passed} of {} passed",
            apart.len()
        );
    }
    println!(
        "took {:.0} s, whole output in {}",
        took.as_secs_f64(),
        log.display()
    );
}

/// Names the expected passes that are passes no more.
pub(crate) fn print_broken(broken: &[&Tested]) {
    if broken.is_empty() {
        return;
    }
    println!("expected to pass, but did not:");
    for test in broken {
        println!("  {}: {}", test.name, test.verdict.outcome);
    }
}

/// The line that other programs read.
pub(crate) fn print_closing_line(judged: &[Tested]) {
    let Counts {
        passed,
        failed,
        skipped,
    } = Counts::of(judged);
    println!("{passed} passed, {failed} failed, {skipped} skipped");
}

#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Counts {
    fn of<'a>(tests: impl IntoIterator<Item = &'a Tested>) -> Counts {
        let mut counts = Counts::default();
        for test in tests {
            counts.add(test);
        }
        counts
    }

    fn add(&mut self, test: &Tested) {
        match test.verdict.outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Skipped(_) | Outcome::AsOriginal => self.skipped += 1,
            _ => self.failed += 1,
        }
    }
}

fn print_failures(judged: &[Tested]) {
    for test in judged.iter().filter(|test| test.verdict.failed()) {
        println!(
            "{}: {} ({:.1} s)",
            test.name,
            test.verdict.outcome,
            test.verdict.wall.as_secs_f64()
        );
        if matches!(test.verdict.outcome, Outcome::Needs(_)) {
            continue;
        }
        let lines: Vec<&str> = test
            .verdict
            .output
            .lines()
            .filter(|line| !line.is_empty())
            .collect();
        for line in &lines[lines.len().saturating_sub(LINES_SHOWN)..] {
            println!("    {line}");
        }
        for line in test.verdict.reports.lines().take(REPORT_LINES_SHOWN) {
            println!("    {line}");
        }
    }
    for test in judged.iter().filter(|test| test.verdict.skipped()) {
        println!("{}: {}", test.name, test.verdict.outcome);
    }
    let as_original = |test: &&Tested| test.verdict.outcome == Outcome::AsOriginal;
    let names: Vec<&str> = judged
        .iter()
        .filter(as_original)
        .map(|test| test.name.as_str())
        .collect();
    if !names.is_empty() {
        println!("do not pass with the original either: {}", names.join(", "));
    }
}

/// Which functions to write next: those that stop the most tests come first.
fn print_missing_functions(judged: &[Tested]) {
    let mut needed: BTreeMap<&str, usize> = BTreeMap::new();
    for test in judged {
        if let Outcome::Needs(function) = &test.verdict.outcome {
            *needed.entry(function).or_default() += 1;
        }
    }
    if needed.is_empty() {
        return;
    }
    let mut needed: Vec<_> = needed.into_iter().collect();
    needed.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words: Vec<String> = needed
        .iter()
        .map(|(function, count)| format!("{function} ({count})"))
        .collect();
    println!(
        "missing functions and how many tests stop at them: {}",
        words.join(", ")
    );
}

fn print_table(judged: &[Tested]) {
    let mut topics: BTreeMap<&str, Counts> = BTreeMap::new();
    for test in judged {
        topics.entry(topic(&test.name)).or_default().add(test);
    }
    println!(
        "{:<12} {:>6} {:>6} {:>7}",
        "topic", "passed", "failed", "skipped"
    );
    for (
        topic,
        Counts {
            passed,
            failed,
            skipped,
        },
    ) in &topics
    {
        println!("{topic:<12} {passed:>6} {failed:>6} {skipped:>7}");
    }
}
