//! The outcome of a comparison: medians, ratios, the table, and the files.

use super::readings::{Better, Reading};
use super::{Measured, chart};
use crate::sandbox::Run;
use crate::workspace;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What one library yielded, round by round.
#[derive(Default, Serialize)]
pub(crate) struct Series {
    values: Vec<f64>,
    wall_s: Vec<f64>,
    cpu_s: Vec<f64>,
}

impl Series {
    pub(crate) fn push(&mut self, value: f64, run: &Run) {
        self.values.push(value);
        self.wall_s.push(run.wall.as_secs_f64());
        self.cpu_s.push(run.cpu.as_secs_f64());
    }

    fn median(&self) -> f64 {
        median(&self.values)
    }

    /// The median distance from the median, in per cent of it.
    fn spread_percent(&self) -> f64 {
        let middle = self.median();
        let distances: Vec<f64> = self
            .values
            .iter()
            .map(|value| (value - middle).abs())
            .collect();
        100.0 * median(&distances) / middle
    }
}

/// One line of the table.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    unit: &'static str,
    better: Better,
    /// How many times as good as the original; above 1 ours is better.
    pub(crate) ratio: f64,
    /// The worst and the best of the rounds taken by themselves.
    ratio_range: [f64; 2],
    ours_median: f64,
    ours_spread_percent: f64,
    original_median: f64,
    original_spread_percent: f64,
    ours: Series,
    original: Series,
}

impl Row {
    pub(crate) fn new(name: String, reading: &Reading, ours: Series, original: Series) -> Row {
        let ratio = |ours: f64, original: f64| match reading.better {
            Better::Higher => ours / original,
            Better::Lower => original / ours,
        };
        let rounds = ours.values.iter().zip(&original.values);
        let ratios: Vec<f64> = rounds
            .map(|(ours, original)| ratio(*ours, *original))
            .collect();
        Row {
            name,
            unit: reading.unit,
            better: reading.better,
            ratio: ratio(ours.median(), original.median()),
            ratio_range: [
                ratios.iter().copied().fold(f64::INFINITY, f64::min),
                ratios.iter().copied().fold(0.0, f64::max),
            ],
            ours_median: ours.median(),
            ours_spread_percent: ours.spread_percent(),
            original_median: original.median(),
            original_spread_percent: original.spread_percent(),
            ours,
            original,
        }
    }

    fn print(&self) {
        let side = |value: f64, spread: f64| format!("{} ±{spread:.1}%", readable(value));
        println!(
            "{:<27} {:>20} {:>20} {:<13} {:>6.2} {:>6.2}–{:<6.2} {:>7.2} {:>7.2}",
            self.name,
            side(self.ours_median, self.ours_spread_percent),
            side(self.original_median, self.original_spread_percent),
            self.unit,
            self.ratio,
            self.ratio_range[0],
            self.ratio_range[1],
            median(&self.ours.cpu_s),
            median(&self.original.cpu_s),
        );
    }
}

/// All that was measured in one run of the chore.
#[derive(Serialize)]
pub(crate) struct Summary {
    time: String,
    library: String,
    rounds: usize,
    machine: String,
    geometric_mean: Option<f64>,
    rows: Vec<Row>,
    /// Benchmarks that could not be compared, and why.
    not_compared: Vec<(String, String)>,
}

/// The files that a summary was written to.
pub(crate) struct Files {
    json: PathBuf,
    chart: PathBuf,
}

impl Summary {
    pub(crate) fn new(library: String, rounds: usize) -> Result<Summary> {
        let date = Command::new("date")
            .args(["-u", "+%Y%m%dT%H%M%SZ"])
            .output()
            .context("cannot ask for the date")?;
        Ok(Summary {
            time: String::from_utf8_lossy(&date.stdout).trim().to_owned(),
            library,
            rounds,
            machine: describe_machine(),
            geometric_mean: None,
            rows: Vec::new(),
            not_compared: Vec::new(),
        })
    }

    pub(crate) fn print_opening(&self) {
        println!(
            "{}; medians of {}; ratio above 1: ours is better",
            self.machine,
            rounds(self.rounds)
        );
        println!(
            "{:<27} {:>20} {:>20} {:<13} {:>6} {:^13} {:>15}",
            "benchmark", self.library, "original", "unit", "ratio", "of rounds", "CPU s ours, or."
        );
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

    pub(crate) fn print_closing(&self, files: &Files) {
        if let Some(mean) = self.geometric_mean {
            println!("geometric mean of {} ratios: {mean:.3}", self.rows.len());
        }
        println!(
            "written to {} and {}",
            files.json.display(),
            files.chart.display()
        );
    }

    /// Writes the JSON, under its date and as the latest, and the chart.
    pub(crate) fn write(&self, dir: &Path) -> Result<Files> {
        let dated = dir.join(format!("{}.json", self.time));
        let text = serde_json::to_string_pretty(self).context("cannot write the numbers")?;
        fs::write(&dated, text).with_context(|| format!("cannot write {}", dated.display()))?;
        workspace::copy_into_place(&dated, &dir.join("latest.json"))?;
        let bars: Vec<(&str, f64)> = self
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.ratio))
            .collect();
        let chart = dir.join("latest.svg");
        let title = format!(
            "Blacklight compared with libuv, medians of {}",
            rounds(self.rounds)
        );
        fs::write(&chart, chart::draw(&title, &bars, self.geometric_mean))
            .with_context(|| format!("cannot write {}", chart.display()))?;
        Ok(Files { json: dated, chart })
    }
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

fn rounds(count: usize) -> String {
    if count == 1 {
        "1 round".to_owned()
    } else {
        format!("{count} rounds")
    }
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

    #[test]
    fn lower_is_better_turns_the_ratio() {
        let series = |value: f64| Series {
            values: vec![value],
            wall_s: vec![1.0],
            cpu_s: vec![1.0],
        };
        let reading = &super::super::readings::of("million_timers")[0];
        let row = Row::new(
            "million_timers".to_owned(),
            reading,
            series(1.0),
            series(2.0),
        );
        assert_eq!(row.ratio, 2.0);
    }
}
