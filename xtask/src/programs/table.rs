//! The figures of programs as people read them: one line for each program and workload, and a
//! chart of their ratios. The report's own table has a line for each number.

use crate::measure::chart::{self, Bar};
use crate::measure::report::Report;
use crate::measure::statistics::{Ratio, geometric_mean, median_and_spread};
use crate::measure::table::Table;
use crate::measure::turns::{Line, Subject};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// What is added to a workload's name for its processor time and its latencies.
pub(super) const CPU: &str = " processor time";
pub(super) const P50: &str = " p50";
pub(super) const P99: &str = " p99";

/// The figures of one workload.
struct Figures<'a> {
    rate: &'a Line,
    cpu: Option<&'a Line>,
    p50: Option<&'a Line>,
    p99: Option<&'a Line>,
}

impl Figures<'_> {
    /// The program, without its version.
    fn program(&self) -> &str {
        let name = self.rate.row.name.split('/').next().unwrap_or_default();
        name.trim_end_matches(|c: char| c.is_ascii_digit())
    }
}

/// The lines of each workload, which follow one another.
fn by_workload(lines: &[Line]) -> Vec<Figures<'_>> {
    let find = |rate: &Line, suffix: &str| {
        let name = format!("{}{suffix}", rate.row.name);
        lines.iter().find(|line| line.row.name == name)
    };
    let is_rate = |line: &&Line| {
        ![CPU, P50, P99]
            .iter()
            .any(|end| line.row.name.ends_with(end))
    };
    let figures = |rate| Figures {
        rate,
        cpu: find(rate, CPU),
        p50: find(rate, P50),
        p99: find(rate, P99),
    };
    lines.iter().filter(is_rate).map(figures).collect()
}

/// The table: a line for each workload.
fn table(lines: &[Line]) -> String {
    let mut table = Table::new([
        "program/workload",
        "ours, per second",
        "the original",
        "ratio",
        "processor time, ours",
        "the original",
        "ratio",
        "p50, ours / the original",
        "p99, ours / the original",
    ]);
    for figures in by_workload(lines) {
        let rate = |subject: &str| {
            let series = figures.rate.of(subject);
            series.map_or(String::new(), |series| median_and_spread(&series.values))
        };
        let both = |line: Option<&Line>| {
            let [ours, original] = [Subject::OURS, Subject::ORIGINAL].map(|who| median(line, who));
            match line {
                Some(_) => format!("{ours} / {original}"),
                None => String::new(),
            }
        };
        table.push([
            figures.rate.row.name.clone(),
            rate(Subject::OURS),
            rate(Subject::ORIGINAL),
            ratio(figures.rate),
            median(figures.cpu, Subject::OURS),
            median(figures.cpu, Subject::ORIGINAL),
            figures.cpu.map_or(String::new(), ratio),
            both(figures.p50),
            both(figures.p99),
        ]);
    }
    table.markdown()
}

fn median(line: Option<&Line>, subject: &str) -> String {
    let series = line.and_then(|line| line.of(subject));
    series.map_or(String::new(), |series| duration(series.median))
}

fn ratio(line: &Line) -> String {
    let ratio = line.ratio_to(Subject::ORIGINAL);
    ratio.as_ref().map_or(String::new(), Ratio::in_words)
}

/// Microseconds in a unit that suits them.
fn duration(micros: f64) -> String {
    match micros {
        few if few < 10.0 => format!("{few:.2} µs"),
        some if some < 100.0 => format!("{some:.1} µs"),
        some if some < 1000.0 => format!("{some:.0} µs"),
        many if many < 10_000.0 => format!("{:.2} ms", many / 1e3),
        many => format!("{:.1} ms", many / 1e3),
    }
}

/// The chart: a bar for each workload's rate, with a dot where its processor time is.
fn draw(report: &Report) -> String {
    let workloads = by_workload(report.lines());
    let value = |line: &Line| Some(line.ratio_to(Subject::ORIGINAL)?.value);
    let bars: Vec<Bar<'_>> = workloads
        .iter()
        .filter_map(|figures| {
            let cpu = figures
                .cpu
                .and_then(|cpu| Some((cpu.row.name.as_str(), value(cpu)?)));
            Some(Bar {
                name: &figures.rate.row.name,
                ratio: value(figures.rate)?,
                rows: cpu.into_iter().collect(),
            })
        })
        .collect();
    let title = "Programs on Blacklight and on their libuv (bar: per second, dot: processor time; \
                 more than 1: ours is better)";
    chart::draw(title, &bars, None)
}

/// The means of the rates and of the processor times. Each program has one voice, however many
/// workloads it has, and so have the versions of one program together.
fn means(lines: &[Line]) -> String {
    let workloads = by_workload(lines);
    let mut programs: Vec<&str> = workloads.iter().map(Figures::program).collect();
    programs.sort_unstable();
    programs.dedup();
    let mean = |pick: &dyn Fn(&Figures<'_>) -> Option<f64>| {
        let of_program = |program: &&str| {
            let its = workloads
                .iter()
                .filter(|figures| figures.program() == *program);
            geometric_mean(&its.filter_map(pick).collect::<Vec<f64>>())
        };
        let values: Vec<f64> = programs.iter().filter_map(of_program).collect();
        geometric_mean(&values).map_or("–".to_owned(), |mean| format!("{mean:.2}"))
    };
    let value = |line: &Line| Some(line.ratio_to(Subject::ORIGINAL)?.value);
    format!(
        "Geometric means over {} programs, each the mean of its workloads ({} in all; versions of \
         one program count as one): {} times as many per second, with {} times as many for the same \
         processor time.",
        programs.len(),
        workloads.len(),
        mean(&|figures| value(figures.rate)),
        mean(&|figures| value(figures.cpu?)),
    )
}

/// How percentiles are to be read.
const PERCENTILES: &str = "Percentiles of calls are of a step: one call, for `readfile` all 32 \
    at once. Debian's dnsperf tells none. Percentiles of `http` rows are wrk's. For each request that took long it \
    adds those that it would have sent meanwhile at its mean rate, so a pause counts by its length: \
    a p99 is the length of pauses as soon as they fill a hundredth of the time, however few requests \
    have met one, and the more requests are answered per second, the more a pause counts. Seen in a \
    trace of the kernel's scheduler at uvloop/http-1 on ours: of 49,873 requests in 1.2 s four took \
    longer than 300 µs (0.8 to 4.3 ms, while kernel threads had the processor of the server or of \
    wrk, or a packet waited for the clock's tick), and wrk's p99 was 461 µs.";

/// The page: conditions, chart, table, and what is below 1.
fn page(report: &Report, chart: &str) -> String {
    format!(
        "![Ratios of programs on ours and on their libuv]({chart})\n\n{}\n\n{}\n{PERCENTILES}\n\n{}\n\n{}\n",
        report.conditions(),
        table(report.lines()),
        means(report.lines()),
        report.shortfalls().join("\n\n"),
    )
}

fn write_both(report: &Report, page_path: &Path, heading: &str) -> Result<()> {
    let chart_path = page_path.with_file_name("programs.svg");
    let failed = || format!("cannot write {}", page_path.display());
    fs::write(&chart_path, draw(report)).with_context(failed)?;
    fs::write(
        page_path,
        format!("{heading}{}", page(report, "programs.svg")),
    )
    .with_context(failed)
}

/// Prints the table, and writes `programs.md` and `programs.svg` into `dir`.
pub(super) fn write(report: &Report, dir: &Path) -> Result<()> {
    println!("{}\n{}", table(report.lines()), means(report.lines()));
    let path = dir.join("programs.md");
    println!("written to {}", path.display());
    write_both(report, &path, "")
}

/// Writes the page and the chart into the documents.
pub(super) fn publish(report: &Report, root: &Path) -> Result<()> {
    const HEADING: &str = "<!-- Written by `cargo xtask programs --publish`. -->\n\
        # Programs that people use, on ours and on the libuv that they have\n\n";
    write_both(report, &root.join("docs/PROGRAMS.md"), HEADING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::family::Family;
    use crate::measure::turns::{Better, Row, Series};

    fn line(name: &str, better: Better, ours: f64, original: f64) -> Line {
        let series = |subject, value| Series {
            subject,
            is_compared: true,
            median: value,
            values: vec![value; 3],
        };
        Line {
            row: Row {
                name: name.to_owned(),
                unit: "",
                better,
                family: Family::Programs,
            },
            counts: true,
            series: vec![
                series(Subject::OURS, ours),
                series(Subject::ORIGINAL, original),
            ],
        }
    }

    #[test]
    fn a_workload_is_one_line() {
        let lines = [
            line("node/http-1", Better::Higher, 28_400.0, 14_200.0),
            line("node/http-1 processor time", Better::Lower, 32.8, 41.0),
            line("node/http-1 p50", Better::Lower, 33.0, 1200.0),
            line("node/http-1 p99", Better::Lower, 9.5, 12_345.0),
            line("node/stat", Better::Higher, 8.0, 1.0),
            line("node/stat processor time", Better::Lower, 1.0, 5.0),
        ];
        let text = table(&lines);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .skip(2)
            .map(|line| line.split('|').map(str::trim).collect())
            .collect();
        assert_eq!(
            rows[0][1..10],
            [
                "node/http-1",
                "28.4k ±0.0%",
                "14.2k ±0.0%",
                "2.00 ±0.00",
                "32.8 µs",
                "41.0 µs",
                "1.25 ±0.00",
                "33.0 µs / 1.20 ms",
                "9.50 µs / 12.3 ms",
            ]
        );
        assert_eq!(rows[1][8..10], ["", ""]);
        assert_eq!(rows.len(), 2);
        assert!(means(&lines).contains("over 1 programs"));
        assert!(means(&lines).contains(": 4.00 times"));
        assert!(means(&lines).contains("with 2.50 times"));
    }

    #[test]
    fn versions_of_one_program_have_one_voice() {
        let lines = [
            line("node24/stat", Better::Higher, 4.0, 1.0),
            line("node26/stat", Better::Higher, 4.0, 1.0),
            line("node26/spawn", Better::Higher, 4.0, 1.0),
            line("cmake/configure", Better::Higher, 1.0, 1.0),
        ];
        let text = means(&lines);
        assert!(
            text.contains("over 2 programs") && text.contains("(4 in all"),
            "{text}"
        );
        assert!(text.contains(": 2.00 times as many per second"), "{text}");
    }
}
