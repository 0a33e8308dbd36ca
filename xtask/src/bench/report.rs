//! The outcome of a comparison: medians, ratios, the table, and the files.

use super::readings::{Better, Reading};
use super::rounds::{self, Rounds};
use super::{Measured, chart};
use crate::sandbox::Run;
use crate::workspace;
use anyhow::{Context, Result};
use serde::{Serialize, Serializer};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What one library yielded, round by round.
#[derive(Default, Serialize)]
pub(crate) struct Series {
    values: Vec<f64>,
    /// What no library can be below, where the benchmark measures that as well.
    floors: Vec<f64>,
    wall_s: Vec<f64>,
    cpu_s: Vec<f64>,
}

impl Series {
    pub(crate) fn push(&mut self, value: f64, floor: Option<f64>, run: &Run) {
        self.values.push(value);
        self.floors.extend(floor);
        self.wall_s.push(run.wall.as_secs_f64());
        self.cpu_s.push(run.cpu.as_secs_f64());
    }

    fn median(&self) -> f64 {
        median(&self.values)
    }

    /// The spread in per cent of the median.
    fn spread_percent(&self) -> f64 {
        100.0 * spread(&self.values) / self.median()
    }
}

/// The ratios of the rounds, each taken by itself.
pub(crate) fn ratios(better: Better, ours: &Series, original: &Series) -> Vec<f64> {
    let rounds = ours.values.iter().zip(&original.values);
    rounds
        .map(|(ours, original)| better.ratio(*ours, *original))
        .collect()
}

/// One line of the table.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    unit: &'static str,
    better: Better,
    /// How many times as good as the original; above 1 ours is better.
    pub(crate) ratio: f64,
    /// How far the ratios of the rounds, taken by themselves, typically are from their middle.
    ratio_spread: f64,
    /// The worst and the best of them.
    ratio_range: [f64; 2],
    /// What no library can be below, over the rounds of both sides.
    floor_median: Option<f64>,
    ours_median: f64,
    ours_spread_percent: f64,
    original_median: f64,
    original_spread_percent: f64,
    ours: Series,
    original: Series,
}

impl Row {
    pub(crate) fn new(name: String, reading: &Reading, ours: Series, original: Series) -> Row {
        let ratios = ratios(reading.better, &ours, &original);
        let floors = [&ours.floors[..], &original.floors[..]].concat();
        Row {
            name,
            unit: reading.unit,
            better: reading.better,
            ratio: reading.better.ratio(ours.median(), original.median()),
            ratio_spread: spread(&ratios),
            ratio_range: [
                ratios.iter().copied().fold(f64::INFINITY, f64::min),
                ratios.iter().copied().fold(0.0, f64::max),
            ],
            floor_median: (!floors.is_empty()).then(|| median(&floors)),
            ours_median: ours.median(),
            ours_spread_percent: ours.spread_percent(),
            original_median: original.median(),
            original_spread_percent: original.spread_percent(),
            ours,
            original,
        }
    }

    /// How many rounds it rests on.
    fn rounds(&self) -> usize {
        self.ours.values.len()
    }

    /// Whether ours is worse by more than the rounds differ among themselves.
    fn is_worse(&self) -> bool {
        self.ratio + self.ratio_spread < 1.0
    }

    fn ours(&self) -> String {
        side(self.ours_median, self.ours_spread_percent)
    }

    fn original(&self) -> String {
        side(self.original_median, self.original_spread_percent)
    }

    fn ratio(&self) -> String {
        format!("{:.2} ±{:.2}", self.ratio, self.ratio_spread)
    }

    fn print(&self) {
        print!(
            "{:<27} {:>20} {:>20} {:<13} {:>6} {:>11} {:>6.2}–{:<6.2} {:>7.2} {:>7.2}",
            self.name,
            self.ours(),
            self.original(),
            self.unit,
            self.rounds(),
            self.ratio(),
            self.ratio_range[0],
            self.ratio_range[1],
            median(&self.ours.cpu_s),
            median(&self.original.cpu_s),
        );
        match self.floor_median {
            Some(floor) => println!("  floor {}", readable(floor)),
            None => println!(),
        }
    }

    fn markdown(&self) -> String {
        let floor = self.floor_median.map_or(String::new(), readable);
        format!(
            "| {} | {} | {} | {} | {floor} | {} | {} | {:.2}–{:.2} |\n",
            self.name,
            self.unit,
            self.ours(),
            self.original(),
            self.rounds(),
            self.ratio(),
            self.ratio_range[0],
            self.ratio_range[1],
        )
    }
}

/// All that was measured in one run of the chore.
#[derive(Serialize)]
pub(crate) struct Summary {
    time: String,
    library: String,
    rounds: Rounds,
    machine: String,
    /// How many processes wanted a processor when it began, over the last minute.
    load_average: Option<f64>,
    geometric_mean: Option<f64>,
    #[serde(serialize_with = "with_rounds")]
    rows: Vec<Row>,
    /// Benchmarks that could not be compared, and why.
    not_compared: Vec<(String, String)>,
}

/// The files that a summary was written to.
pub(crate) struct Files {
    json: PathBuf,
    table: PathBuf,
    chart: PathBuf,
}

impl Summary {
    pub(crate) fn new(library: String, rounds: Rounds) -> Result<Summary> {
        let date = Command::new("date")
            .args(["-u", "+%Y%m%dT%H%M%SZ"])
            .output()
            .context("cannot ask for the date")?;
        Ok(Summary {
            time: String::from_utf8_lossy(&date.stdout).trim().to_owned(),
            library,
            rounds,
            machine: describe_machine(),
            load_average: load_average(),
            geometric_mean: None,
            rows: Vec::new(),
            not_compared: Vec::new(),
        })
    }

    pub(crate) fn print_opening(&self) {
        println!("{}", self.conditions());
        if self.library != "ours" {
            println!("ours stands for {}", self.library);
        }
        if let Some(load) = self.load_average.filter(|load| *load > 0.5) {
            println!(
                "the machine is busy (load {load}): look at the spread, not only at the ratio"
            );
        }
        println!(
            "{:<27} {:>20} {:>20} {:<13} {:>6} {:>11} {:^13} {:>15}",
            "benchmark",
            "ours",
            "original",
            "unit",
            "rounds",
            "ratio",
            "of rounds",
            "CPU s ours, or."
        );
    }

    /// Where and how it was measured, in a sentence or two.
    pub(crate) fn conditions(&self) -> String {
        let load = self.load_average.unwrap_or(f64::NAN);
        format!(
            "{}, load {load:.2} before; medians of {} turn about; ± is the median distance from \
             the median. Ratio above 1: ours is better.",
            self.machine,
            self.rounds_in_words()
        )
    }

    /// How many rounds the rows rest on; before there are any, how many they will.
    fn rounds_in_words(&self) -> String {
        let counts = || self.rows.iter().map(Row::rounds);
        rounds::in_words(
            counts().min().unwrap_or(self.rounds.fewest()),
            counts().max().unwrap_or(self.rounds.most),
        )
    }

    /// Takes in what came of a benchmark, and prints it.
    pub(crate) fn add(&mut self, name: &str, measured: Measured) {
        match measured {
            Measured::Rows(rows) => {
                rows.iter().for_each(Row::print);
                self.rows.extend(rows);
            }
            Measured::Nothing(reason) => {
                println!("{name:<27} {reason}");
                self.not_compared.push((name.to_owned(), reason));
            }
        }
        let ratios: Vec<f64> = self.rows.iter().map(|row| row.ratio).collect();
        self.geometric_mean = geometric_mean(&ratios);
    }

    /// The mean, what is worse than the original beyond its own spread, and what was left out.
    pub(crate) fn verdict(&self) -> String {
        let Some(mean) = self.geometric_mean else {
            return "nothing could be compared".to_owned();
        };
        let mut lines = vec![format!(
            "Geometric mean of {} ratios: {mean:.3}.",
            self.rows.len()
        )];
        let worse = self.rows.iter().filter(|row| row.is_worse());
        let worse: Vec<String> = worse
            .map(|row| format!("{} ({})", row.name, row.ratio()))
            .collect();
        lines.push(match worse.len() {
            _ if self.rounds.most < rounds::ENOUGH => format!(
                "What is below 1 takes {} rounds to tell from noise.",
                rounds::ENOUGH
            ),
            0 => "No row is below 1 beyond its own spread.".to_owned(),
            _ => format!("Below 1 beyond their own spread: {}.", worse.join(", ")),
        });
        for (name, reason) in &self.not_compared {
            lines.push(format!(
                "Left out: {name} ({}).",
                reason.trim_end_matches('.')
            ));
        }
        lines.join("\n")
    }

    /// The rows as a table.
    pub(crate) fn markdown(&self) -> String {
        let head = "| benchmark | unit | ours | the original | bare loop | rounds | ratio | of rounds |\n\
                    | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |\n";
        let rows = self.rows.iter().map(Row::markdown);
        rows.fold(head.to_owned(), |table, row| table + &row)
    }

    /// The ratios as a picture.
    pub(crate) fn chart(&self) -> String {
        let bars = self.rows.iter().map(|row| (row.name.as_str(), row.ratio));
        let title = format!(
            "Blacklight compared with libuv, medians of {}",
            self.rounds_in_words()
        );
        chart::draw(&title, &bars.collect::<Vec<_>>(), self.geometric_mean)
    }

    pub(crate) fn print_closing(&self, files: &Files) {
        println!("{}", self.verdict());
        println!(
            "written to {}, {} and {}",
            files.json.display(),
            files.table.display(),
            files.chart.display()
        );
    }

    /// Writes the JSON, under its date and as the latest, the table and the chart.
    pub(crate) fn write(&self, dir: &Path) -> Result<Files> {
        let write = |name: &str, text: String| -> Result<PathBuf> {
            let path = dir.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(path)
        };
        let text = serde_json::to_string_pretty(self).context("cannot write the numbers")?;
        let json = write(&format!("{}.json", self.time), text)?;
        workspace::copy_into_place(&json, &dir.join("latest.json"))?;
        Ok(Files {
            json,
            table: write(
                "latest.md",
                format!("{}\n{}\n", self.markdown(), self.verdict()),
            )?,
            chart: write("latest.svg", self.chart())?,
        })
    }
}

/// The load of the last minute.
fn load_average() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// The processor, how many there are, and the kernel.
fn describe_machine() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| {
            rest.trim_start_matches([' ', '\t', ':'])
        });
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{processor}, {} processors, Linux {}",
        crate::compile::jobs(),
        kernel.trim()
    )
}

/// Writes the rows with their numbers of rounds, which the series only imply.
fn with_rounds<S: Serializer>(rows: &[Row], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Counted<'a> {
        rounds: usize,
        #[serde(flatten)]
        row: &'a Row,
    }
    serializer.collect_seq(rows.iter().map(|row| Counted {
        rounds: row.rounds(),
        row,
    }))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The median distance from the median, which a single wild round does not move.
fn spread(values: &[f64]) -> f64 {
    let middle = median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&distances)
}

fn side(value: f64, spread_percent: f64) -> String {
    format!("{} ±{spread_percent:.1}%", readable(value))
}

fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    if ratios.is_empty() {
        return None;
    }
    let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    Some((logarithms / ratios.len() as f64).exp())
}

/// A number with as many digits as one can take in.
fn readable(value: f64) -> String {
    match value.abs() {
        size if size >= 1e8 => format!("{:.0}M", value / 1e6),
        size if size >= 1e6 => format!("{:.2}M", value / 1e6),
        size if size >= 1e4 => format!("{:.1}k", value / 1e3),
        size if size >= 100.0 => format!("{value:.0}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn geometric_mean_balances_twice_and_half() {
        assert!((geometric_mean(&[2.0, 0.5]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }

    const UP_TO_5: Rounds = Rounds {
        most: 5,
        until_clear: true,
    };

    fn row(name: &str, ours: &[f64], original: &[f64]) -> Row {
        let series = |values: &[f64]| Series {
            values: values.to_vec(),
            floors: vec![0.5],
            wall_s: vec![1.0],
            cpu_s: vec![1.0],
        };
        let reading = &super::super::readings::of("million_timers")[0];
        Row::new(name.to_owned(), reading, series(ours), series(original))
    }

    #[test]
    fn lower_is_better_turns_the_ratio() {
        assert_eq!(row("million_timers", &[1.0], &[2.0]).ratio, 2.0);
    }

    #[test]
    fn a_wild_round_does_not_move_the_spread() {
        assert_eq!(spread(&[1.0, 1.5, 0.5, 50.0, 1.0]), 0.5);
        assert_eq!(spread(&[7.0]), 0.0);
    }

    #[test]
    fn verdict_names_what_is_worse_beyond_its_spread_and_what_was_left_out() {
        let mut summary = Summary::new("ours".to_owned(), UP_TO_5).unwrap();
        assert_eq!(summary.verdict(), "nothing could be compared");
        summary.add(
            "some",
            Measured::Rows(vec![
                row("noisy", &[1.0, 1.1, 2.0], &[1.0, 1.0, 1.0]),
                row("slow", &[2.0, 2.0, 2.0], &[1.0, 1.0, 1.01]),
                row("fast", &[1.0, 1.0, 1.0], &[4.0, 4.0, 4.0]),
            ]),
        );
        summary.add("odd", Measured::Nothing("broken by itself".to_owned()));
        assert_eq!(
            summary.verdict(),
            "Geometric mean of 3 ratios: 1.221.\n\
             Below 1 beyond their own spread: slow (0.50 ±0.00).\n\
             Left out: odd (broken by itself)."
        );
        summary.rounds.most = 2;
        assert!(summary.verdict().contains("takes 3 rounds"));
        assert_eq!(summary.markdown().lines().count(), 5);
        assert!(
            summary
                .markdown()
                .contains("| fast | s CPU | 1.000 ±0.0% |")
        );
        assert!(summary.markdown().contains("| 0.500 | 3 | 4.00 ±0.00 |"));
    }

    #[test]
    fn rows_tell_how_many_rounds_they_rest_on() {
        let mut summary = Summary::new("ours".to_owned(), UP_TO_5).unwrap();
        assert!(summary.conditions().contains("medians of 2 to 5 rounds"));
        let fast = row("fast", &[1.0; 2], &[2.0, 9.0]);
        summary.add("fast", Measured::Rows(vec![fast]));
        assert!(summary.conditions().contains("medians of 2 rounds"));
        assert!(summary.verdict().contains("No row is below 1"));
        let even = row("even", &[1.0; 4], &[1.0; 4]);
        summary.add("even", Measured::Rows(vec![even]));
        assert!(summary.conditions().contains("medians of 2 to 4 rounds"));
        assert!(summary.chart().contains("medians of 2 to 4 rounds"));
        assert!(summary.markdown().contains("| 2 | 5.50 ±3.50 |"));
        assert!(summary.markdown().contains("| 4 | 1.00 ±0.00 |"));

        let json = serde_json::to_value(&summary).unwrap();
        let rows = json["rows"].as_array().unwrap();
        let counts: Vec<_> = rows.iter().map(|row| &row["rounds"]).collect();
        assert_eq!(counts, [2, 4]);
        assert_eq!(json["rows"][0]["name"], "fast");
        assert_eq!(json["rounds"]["most"], 5);
    }
}
