//! A report: what was measured in one run, under which conditions, and what it comes to.
//!
//! Rows that share a reference, the original for instance, form one table with one list of family
//! means. The mean at the end of that list is over the families, not over the rows.

use super::chart;
use super::family::Family;
use super::machine::Machine;
use super::statistics::{Ratio, median_and_spread};
use super::table::Table;
use super::turns::{self, Line, Measurement, Outcome, Turn};
use crate::workspace;
use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// With fewer rounds a spread says nothing.
const ENOUGH_ROUNDS: usize = 3;

/// All that was measured in one run.
#[derive(Serialize)]
pub(crate) struct Report {
    /// Where its files go.
    #[serde(skip)]
    dir: PathBuf,
    time: String,
    /// The same for every row.
    rounds: usize,
    machine: Machine,
    /// What a reader has to know besides, in whole sentences.
    remarks: Vec<String>,
    lines: Vec<Line>,
    means: Vec<Means>,
    left_out: Vec<LeftOut>,
    /// The turns of each measurement in the order in which they were taken.
    turns: BTreeMap<String, Vec<Turn>>,
}

#[derive(Serialize)]
struct LeftOut {
    name: String,
    reason: String,
    is_ours: bool,
}

/// The means of the ratios to one subject.
#[derive(Serialize)]
struct Means {
    reference: &'static str,
    to: &'static str,
    families: Vec<FamilyMean>,
    /// Over the families.
    mean: Ratio,
}

#[derive(Serialize)]
struct FamilyMean {
    family: Family,
    rows: usize,
    ratio: Ratio,
}

impl Means {
    /// `None` if no line that counts is compared with `to`.
    fn new(reference: &'static str, to: &'static str, lines: &[&Line]) -> Option<Means> {
        let mut by_family: BTreeMap<Family, Vec<Ratio>> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.counts) {
            let ratios = by_family.entry(line.row.family).or_default();
            ratios.extend(line.ratio_to(to));
        }
        let families: Vec<FamilyMean> = by_family
            .into_iter()
            .filter_map(|(family, ratios)| {
                Some(FamilyMean {
                    family,
                    rows: ratios.len(),
                    ratio: Ratio::mean(&ratios)?,
                })
            })
            .collect();
        let ratios: Vec<Ratio> = families.iter().map(|mean| mean.ratio.clone()).collect();
        Some(Means {
            reference,
            to,
            mean: Ratio::mean(&ratios)?,
            families,
        })
    }

    fn rows(&self) -> usize {
        self.families.iter().map(|family| family.rows).sum()
    }
}

/// The lines that share a reference.
struct Group<'a> {
    reference: Option<&'static str>,
    lines: Vec<&'a Line>,
}

impl<'a> Group<'a> {
    fn new(reference: Option<&'static str>, lines: &'a [Line]) -> Group<'a> {
        let lines = lines.iter().filter(|line| line.reference() == reference);
        let mut lines: Vec<&Line> = lines.collect();
        lines.sort_by_key(|line| line.row.family);
        Group { reference, lines }
    }

    /// The subjects of all its lines, in the order in which they first appear.
    fn subjects(&self) -> Vec<&'static str> {
        let all = self.lines.iter().flat_map(|line| &line.series);
        distinct(all.map(|series| series.subject))
    }

    /// The subjects that the judged one is compared with.
    fn compared_with(&self) -> Vec<&'static str> {
        distinct(self.lines.iter().flat_map(|line| line.compared_with()))
    }

    fn table(&self) -> Table {
        let (subjects, others) = (self.subjects(), self.compared_with());
        let mut heading = vec!["row".to_owned(), "family".to_owned(), "unit".to_owned()];
        heading.extend(subjects.iter().map(|subject| (*subject).to_owned()));
        for other in &others {
            heading.push(format!("ratio to {other}"));
            heading.push("of rounds".to_owned());
        }
        let mut table = Table::new(heading);
        for line in &self.lines {
            let row = &line.row;
            let mut cells = vec![
                row.name.clone(),
                row.family.to_string(),
                row.unit.to_owned(),
            ];
            cells.extend(subjects.iter().map(|subject| {
                let series = line.of(subject);
                series.map_or(String::new(), |series| median_and_spread(&series.values))
            }));
            for other in &others {
                let ratio = line.ratio_to(other);
                cells.push(ratio.as_ref().map_or(String::new(), Ratio::in_words));
                cells.push(ratio.as_ref().map_or(String::new(), Ratio::range));
            }
            table.push(cells);
        }
        table
    }
}

fn distinct(names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

impl Report {
    /// Begins a report of so many rounds for every row, whose files go into `dir`.
    pub(crate) fn begin(dir: PathBuf, rounds: usize, remarks: Vec<String>) -> Result<Report> {
        ensure!(rounds > 0, "nothing can be measured in no rounds");
        let date = Command::new("date")
            .args(["-u", "+%Y%m%dT%H%M%SZ"])
            .output()
            .context("cannot ask for the date")?;
        Ok(Report {
            dir,
            time: String::from_utf8_lossy(&date.stdout).trim().to_owned(),
            rounds,
            machine: Machine::describe(),
            remarks,
            lines: Vec::new(),
            means: Vec::new(),
            left_out: Vec::new(),
            turns: BTreeMap::new(),
        })
    }

    /// Takes all rounds of all measurements, one measurement after the other, and prints each row
    /// as it comes. After each measurement the record is written anew, so that a run which is
    /// interrupted after hours has not been for nothing.
    pub(crate) fn measure(&mut self, measurements: &[Box<dyn Measurement>]) -> Result<()> {
        println!("{}", self.conditions());
        if self.machine.is_busy() {
            println!("The machine is busy: look at the spread, not only at the ratio.");
        }
        let rounds = self.rounds;
        let turns = |measurement: &dyn Measurement| (rounds * measurement.subjects().len()) as u64;
        let steps: u64 = measurements.iter().map(|one| turns(one.as_ref())).sum();
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({eta} left)")
            .expect("a valid template");
        let bar = ProgressBar::new(steps).with_style(style);
        for measurement in measurements {
            bar.set_message(measurement.name().to_owned());
            let end = bar.position() + turns(measurement.as_ref());
            let outcome = turns::take(measurement.as_ref(), rounds, || bar.inc(1));
            bar.set_position(end);
            bar.suspend(|| self.add(measurement.name(), outcome));
            self.record()?;
        }
        bar.finish_and_clear();
        self.finish();
        Ok(())
    }

    /// Takes in what came of a measurement, and prints it.
    fn add(&mut self, name: &str, outcome: Outcome) {
        match outcome {
            Outcome::Measured { lines, turns } => {
                lines.iter().for_each(print);
                self.lines.extend(lines);
                self.turns.insert(name.to_owned(), turns);
            }
            Outcome::Failed { reason, is_ours } => {
                println!("{name:<32} {reason}");
                self.left_out.push(LeftOut {
                    name: name.to_owned(),
                    reason,
                    is_ours,
                });
            }
        }
    }

    fn finish(&mut self) {
        self.machine.finish();
        let groups = self.groups();
        let means = groups.iter().flat_map(|group| {
            let others = group.compared_with().into_iter();
            others.filter_map(|to| Means::new(group.reference?, to, &group.lines))
        });
        self.means = means.collect();
    }

    fn groups(&self) -> Vec<Group<'_>> {
        let mut references: Vec<Option<&'static str>> = Vec::new();
        for line in &self.lines {
            if !references.contains(&line.reference()) {
                references.push(line.reference());
            }
        }
        let group = |reference| Group::new(reference, &self.lines);
        references.into_iter().map(group).collect()
    }

    /// Where and how it was measured.
    pub(crate) fn conditions(&self) -> String {
        let rounds = match self.rounds {
            1 => "one round".to_owned(),
            rounds => format!("{rounds} rounds"),
        };
        let mut sentences = vec![format!(
            "{}. Medians of {rounds} of every row, turn about; ± is the median distance from the \
             median. A ratio above 1: ours is better.",
            self.machine.in_words(),
        )];
        sentences.extend(self.remarks.iter().cloned());
        sentences.join(" ")
    }

    /// All rows with their figures.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// What is behind, what was left out, and the means.
    pub(crate) fn verdict(&self) -> Vec<String> {
        let mut sentences = self.shortfalls();
        sentences.extend(self.lines.iter().filter_map(|line| {
            let added = median_and_spread(&line.recording_adds()?);
            let (name, unit) = (&line.row.name, line.row.unit);
            Some(format!("Recording adds {added} {unit} to {name}."))
        }));
        sentences.extend(self.means.iter().map(|means| {
            format!(
                "Geometric mean over {} ({}), ratio to {}: {}.",
                counted(means.families.len(), "family", "families"),
                counted(means.rows(), "row", "rows"),
                means.to,
                means.mean.in_words()
            )
        }));
        sentences
    }

    /// What is behind, and what was left out.
    pub(crate) fn shortfalls(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.rounds < ENOUGH_ROUNDS {
            sentences.push(format!(
                "What is below 1 takes {ENOUGH_ROUNDS} rounds to tell from noise."
            ));
        } else {
            for group in self.groups() {
                let others = group.compared_with().into_iter();
                sentences.extend(others.map(|other| self.losses(&group, other)));
            }
        }
        for left_out in &self.left_out {
            sentences.push(format!(
                "Left out: {} ({}).",
                left_out.name, left_out.reason
            ));
        }
        sentences
    }

    /// The families and rows of a group that are behind another subject.
    fn losses(&self, group: &Group<'_>, other: &str) -> String {
        let rows = group.lines.iter().filter_map(|line| {
            let ratio = line.ratio_to(other)?;
            let loss = format!("{} ({})", line.row.name, ratio.in_words());
            ratio.is_worse().then_some(loss)
        });
        let means = self
            .means
            .iter()
            .filter(|means| Some(means.reference) == group.reference && means.to == other);
        let families = means.flat_map(|means| &means.families).filter_map(|mean| {
            let loss = format!("the family {} ({})", mean.family, mean.ratio.in_words());
            mean.ratio.is_worse().then_some(loss)
        });
        let losses: Vec<String> = families.chain(rows).collect();
        match losses.is_empty() {
            true => format!("Behind {other} by more than its own spread: no row and no family."),
            false => format!(
                "Behind {other} by more than their own spread: {}.",
                losses.join(", ")
            ),
        }
    }

    /// The means of the families, and the mean over them: a table for each reference.
    pub(crate) fn family_tables(&self) -> String {
        let tables = self.groups().into_iter().filter_map(|group| {
            let reference = group.reference?;
            let means = |means: &&Means| means.reference == reference;
            let columns: Vec<&Means> = self.means.iter().filter(means).collect();
            (!columns.is_empty()).then(|| family_table(&columns).markdown())
        });
        tables.collect::<Vec<_>>().join("\n")
    }

    /// All rows: a table for each reference.
    pub(crate) fn row_tables(&self) -> String {
        let groups = self.groups();
        let tables = groups.iter().map(|group| group.table().markdown());
        tables.collect::<Vec<_>>().join("\n")
    }

    /// The families and their rows, compared with the first reference.
    pub(crate) fn chart(&self) -> String {
        let groups = self.groups();
        let group = groups.iter().find_map(|group| {
            let to = group.reference?;
            Some((group, self.means.iter().find(|means| means.to == to)?))
        });
        let Some((group, means)) = group else {
            return chart::draw("Nothing was compared", &[], None);
        };
        let bars: Vec<chart::Bar<'_>> = means
            .families
            .iter()
            .map(|mean| {
                let lines = group.lines.iter();
                let rows = lines.filter(|line| line.counts && line.row.family == mean.family);
                chart::Bar {
                    name: mean.family.name(),
                    ratio: mean.ratio.value,
                    rows: rows
                        .filter_map(|line| {
                            Some((line.row.name.as_str(), line.ratio_to(means.to)?.value))
                        })
                        .collect(),
                }
            })
            .collect();
        let title = format!(
            "Blacklight compared with {}, medians of {} rounds (more than 1: ours is better; a dot is a row)",
            means.to, self.rounds
        );
        chart::draw(&title, &bars, Some(means.mean.value))
    }

    /// The whole report in Markdown.
    fn markdown(&self) -> String {
        format!(
            "{}\n\n{}\n{}\n{}\n",
            self.conditions(),
            self.row_tables(),
            self.family_tables(),
            self.verdict().join("\n\n")
        )
    }

    /// Prints the tables and the verdict, and writes `<time>.json` and `latest.{json,md,svg}`. What
    /// fails with ours alone is a failure of the run.
    pub(crate) fn conclude(&self) -> Result<ExitCode> {
        println!("\n{}", self.markdown());
        let json = self.record()?;
        workspace::copy_into_place(&json, &self.dir.join("latest.json"))?;
        let page = self.write("latest.md", &self.markdown())?;
        self.write("latest.svg", &self.chart())?;
        println!("written to {} and {}", json.display(), page.display());
        let fails = self.left_out.iter().any(|left_out| left_out.is_ours);
        Ok(match fails {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        })
    }

    /// Writes all that was measured so far into `<time>.json`.
    fn record(&self) -> Result<PathBuf> {
        let text = serde_json::to_string_pretty(self).context("cannot write the numbers")?;
        self.write(&format!("{}.json", self.time), &text)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn family_table(columns: &[&Means]) -> Table {
    let mut heading = vec!["family".to_owned(), "rows".to_owned()];
    heading.extend(columns.iter().map(|means| format!("ratio to {}", means.to)));
    let mut table = Table::new(heading);
    let first = columns[0];
    for mean in &first.families {
        let mut cells = vec![mean.family.to_string(), mean.rows.to_string()];
        cells.extend(columns.iter().map(|means| {
            let same = means.families.iter().find(|one| one.family == mean.family);
            same.map_or(String::new(), |one| one.ratio.in_words())
        }));
        table.push(cells);
    }
    let mut cells = vec![
        "**mean over families**".to_owned(),
        first.rows().to_string(),
    ];
    cells.extend(columns.iter().map(|means| means.mean.in_words()));
    table.push(cells);
    table
}

fn print(line: &Line) {
    let figures = line.series.iter().map(|series| {
        let figure = median_and_spread(&series.values);
        format!("{} {figure}", series.subject)
    });
    let figures = figures.collect::<Vec<_>>().join(", ");
    let ratios = line.compared_with().filter_map(|other| {
        let ratio = line.ratio_to(other)?;
        Some(format!("{} of {other}", ratio.in_words()))
    });
    let ratios = ratios.collect::<Vec<_>>().join(", ");
    println!(
        "{:<32} {ratios}  ({figures} {})",
        line.row.name, line.row.unit
    );
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::turns::tests::MadeUp;
    use super::super::turns::{Better, Row, Series, Subject};
    use super::*;

    fn line(name: &str, family: Family, ours: &[f64], others: &[(&'static str, &[f64])]) -> Line {
        let series = |subject, values: &[f64]| Series {
            subject,
            is_compared: subject != Subject::BARE,
            median: super::super::statistics::median(values),
            values: values.to_vec(),
        };
        let others = others.iter().map(|(name, values)| series(name, values));
        Line {
            row: Row {
                name: name.to_owned(),
                unit: "ns",
                better: Better::Lower,
                family,
            },
            counts: true,
            series: [series("ours", ours)].into_iter().chain(others).collect(),
        }
    }

    /// A finished report with the given lines.
    pub(crate) fn report(lines: Vec<Line>) -> Report {
        let rounds = lines.first().map_or(3, |line| line.series[0].values.len());
        // Tests run at the same time, each in a thread that has its name.
        let test = std::thread::current().name().unwrap().replace(':', "-");
        let dir = workspace::target_subdir(format!("measure/tests/{test}")).unwrap();
        let mut report = Report::begin(dir, rounds, Vec::new()).unwrap();
        report.lines = lines;
        report.finish();
        report
    }

    const ORIGINAL: &str = "the original";

    #[test]
    fn many_rows_of_a_family_count_as_one() {
        let twice = |name: &str| line(name, Family::Udp, &[1.0; 3], &[(ORIGINAL, &[2.0; 3])]);
        let mut lines: Vec<Line> = ["a", "b", "c", "d"].map(twice).into();
        let half = line("e", Family::Dns, &[2.0; 3], &[(ORIGINAL, &[1.0; 3])]);
        lines.push(half);
        let report = report(lines);
        let means = &report.means[0];
        assert_eq!(means.families.len(), 2);
        let of = |family| means.families.iter().find(|mean| mean.family == family);
        assert_eq!(of(Family::Udp).unwrap().rows, 4);
        assert!((of(Family::Udp).unwrap().ratio.value - 2.0).abs() < 1e-12);
        assert!((means.mean.value - 1.0).abs() < 1e-12);
        assert_eq!(means.rows(), 5);
        assert!(
            report
                .family_tables()
                .contains("| **mean over families** |    5 |")
        );
        assert_eq!(
            report.verdict(),
            [
                "Behind the original by more than their own spread: the family DNS (0.50 ±0.00), \
                 e (0.50 ±0.00).",
                "Geometric mean over 2 families (5 rows), ratio to the original: 1.00 ±0.00."
            ]
        );
    }

    #[test]
    fn rows_of_a_study_are_given_but_do_not_count() {
        let twice = line("a", Family::Udp, &[1.0; 3], &[(ORIGINAL, &[2.0; 3])]);
        let mut study = line("b", Family::Udp, &[4.0; 3], &[(ORIGINAL, &[1.0; 3])]);
        study.counts = false;
        let both = report(vec![twice, study.clone()]);
        assert_eq!(both.means[0].rows(), 1);
        assert!((both.means[0].mean.value - 2.0).abs() < 1e-12);
        assert_eq!(both.row_tables().lines().count(), 4);
        let alone = report(vec![study]);
        assert!(alone.means.is_empty() && alone.family_tables().is_empty());
        // It is behind all the same.
        assert_eq!(
            alone.verdict(),
            ["Behind the original by more than their own spread: b (0.25 ±0.00)."]
        );
    }

    #[test]
    fn before_and_after_stand_in_one_report() {
        let lines = vec![
            line(
                "noisy",
                Family::Loop,
                &[0.9, 1.1, 2.0],
                &[(ORIGINAL, &[1.0; 3]), ("before", &[3.0; 3])],
            ),
            line(
                "slower",
                Family::Udp,
                &[2.0, 2.0, 2.0],
                &[
                    (ORIGINAL, &[4.0; 3]),
                    ("before", &[1.0, 1.0, 1.01]),
                    (Subject::BARE, &[0.5; 3]),
                ],
            ),
        ];
        let report = report(lines);
        let to: Vec<&str> = report.means.iter().map(|means| means.to).collect();
        assert_eq!(to, [ORIGINAL, "before"]);
        let verdict = report.verdict().join("\n");
        // 0.91 is not behind by more than a spread of 0.20.
        assert!(verdict.contains("Behind the original by more than its own spread: no row"));
        assert!(verdict.contains(
            "Behind before by more than their own spread: the family UDP (0.50 ±0.00), \
             slower (0.50 ±0.00)."
        ));
        let table = report.row_tables();
        let heading = table.lines().next().unwrap().split('|').map(str::trim);
        assert_eq!(
            heading.collect::<Vec<_>>(),
            [
                "",
                "row",
                "family",
                "unit",
                "ours",
                ORIGINAL,
                "before",
                "bare loop",
                "ratio to the original",
                "of rounds",
                "ratio to before",
                "of rounds",
                "",
            ]
        );
        assert_eq!(table.lines().count(), 4);
        let families = report.family_tables();
        assert!(families.starts_with("| family"), "{families}");
        assert!(families.contains("| ratio to before |"), "{families}");
    }

    #[test]
    fn another_reference_has_a_table_of_its_own() {
        let report = report(vec![
            line("a", Family::Loop, &[1.0; 3], &[(ORIGINAL, &[2.0; 3])]),
            line("b", Family::Loop, &[1.0; 3], &[("tokio", &[1.0; 3])]),
            line("c", Family::Loop, &[1.0; 3], &[(ORIGINAL, &[2.0; 3])]),
        ]);
        assert_eq!(report.row_tables().split("\n\n").count(), 2);
        assert_eq!(report.means.len(), 2);
        assert_eq!(report.means[0].rows(), 2);
        assert!((report.means[1].mean.value - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_fails_is_left_out_and_named() {
        let mut report = report(Vec::new());
        let fails = MadeUp::new(&["ours", ORIGINAL], |_, _| None);
        report.measure(&[Box::new(fails)]).unwrap();
        let reason = "fails by itself, with ours and with the original: no more";
        assert_eq!(report.verdict(), [format!("Left out: made_up ({reason}).")]);
        assert!(report.chart().contains("Nothing was compared"));
    }

    #[test]
    fn a_run_that_is_interrupted_leaves_what_it_has_measured() -> Result<()> {
        /// Looks into the directory of the report while it is being made.
        struct Last(PathBuf);
        impl Measurement for Last {
            fn name(&self) -> &str {
                "last"
            }
            fn rows(&self) -> Vec<Row> {
                Vec::new()
            }
            fn subjects(&self) -> Vec<Subject> {
                vec![Subject::without_library("ours")]
            }
            fn read(&self, _: &Subject) -> Result<turns::Reading> {
                let text = fs::read_to_string(&self.0)?;
                ensure!(text.contains("made_up rate"), "nothing is kept: {text}");
                Ok(Vec::new().into())
            }
        }
        let mut report = report(Vec::new());
        let record = report.dir.join(format!("{}.json", report.time));
        let first = MadeUp::new(&["ours", ORIGINAL], |_, _| Some([1.0; 2]));
        report.measure(&[Box::new(first), Box::new(Last(record))])?;
        assert!(report.left_out.is_empty(), "{:?}", report.verdict());
        Ok(())
    }

    #[test]
    fn what_fails_with_ours_alone_fails_the_run() -> Result<()> {
        let mut good = report(Vec::new());
        let works = MadeUp::new(&["ours", ORIGINAL], |_, _| Some([1.0; 2]));
        good.measure(&[Box::new(works)])?;
        assert_eq!(good.conclude()?, ExitCode::SUCCESS);
        let json: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(good.dir.join("latest.json"))?)?;
        assert_eq!(json["rounds"], 3);
        assert_eq!(json["lines"][0]["name"], "made_up rate");
        assert_eq!(json["lines"][0]["family"], "loop");
        let values = json["lines"][1]["series"][1]["values"].as_array().unwrap();
        assert_eq!(values.len(), 3);
        assert_eq!(json["turns"]["made_up"].as_array().unwrap().len(), 6);
        assert_eq!(json["means"][0]["families"][1]["family"], "udp");

        let mut bad = report(Vec::new());
        let breaks = MadeUp::new(&["ours", ORIGINAL], |name, _| {
            (name != "ours").then_some([1.0; 2])
        });
        bad.measure(&[Box::new(breaks)])?;
        assert_eq!(bad.conclude()?, ExitCode::FAILURE);
        Ok(())
    }

    #[test]
    fn conditions_state_machine_load_and_rounds() {
        let mut report = report(Vec::new());
        report
            .remarks
            .push("`before` is the library in /tmp.".to_owned());
        let conditions = report.conditions();
        assert!(conditions.contains(" processors, Linux "), "{conditions}");
        assert!(conditions.contains(" before and "), "{conditions}");
        assert!(conditions.contains("Medians of 3 rounds of every row"));
        assert!(conditions.ends_with("`before` is the library in /tmp."));
        assert!(Report::begin(PathBuf::new(), 0, Vec::new()).is_err());
    }
}
