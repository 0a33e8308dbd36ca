//! How a measurement is taken: its subjects take turns, round by round.
//!
//! A [`Measurement`] declares its rows and its subjects, and takes one reading of one subject;
//! everything else is the same for all of them. In each round every subject has one turn. The
//! order changes from round to round so that whatever else the machine does, and whoever ran
//! just before, meets all subjects alike. All rows have the same number of rounds.

use super::family::Family;
use super::statistics::{Ratio, median};
use anyhow::Result;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What a row's number is called, what it counts, and what it exercises.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    pub(crate) family: Family,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    Higher,
    Lower,
}

impl Better {
    /// How many times as good as another's figure the judged one is.
    pub(crate) fn ratio(self, judged: f64, other: f64) -> f64 {
        match self {
            Better::Higher => judged / other,
            Better::Lower => other / judged,
        }
    }
}

/// Whoever takes a turn. The first subject of a measurement is the one that is judged.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Subject {
    /// The heading of its column.
    pub(crate) name: &'static str,
    /// Whether the judged subject is compared with it, in a column of ratios. The first subject
    /// that is compared is the reference: the means are of the ratios to it.
    pub(crate) is_compared: bool,
    /// The directory with its `libuv.so.1`, if it runs on one.
    pub(crate) library: Option<PathBuf>,
    /// What its processes find in their environment besides.
    pub(crate) environment: Vec<(&'static str, &'static str)>,
}

impl Subject {
    pub(crate) const OURS: &'static str = "ours";
    pub(crate) const RECORDING: &'static str = "ours, recording";
    pub(crate) const ORIGINAL: &'static str = "the original";
    pub(crate) const BEFORE: &'static str = "before";
    pub(crate) const BARE: &'static str = "bare loop";

    /// A subject that runs on a library in `dir`, and that the judged one is compared with.
    pub(crate) fn on_library(name: &'static str, dir: PathBuf) -> Subject {
        Subject {
            library: Some(dir),
            ..Subject::without_library(name)
        }
    }

    /// A subject that needs no libuv.
    pub(crate) fn without_library(name: &'static str) -> Subject {
        Subject {
            name,
            is_compared: true,
            library: None,
            environment: Vec::new(),
        }
    }

    /// The same subject with a variable in its environment.
    pub(crate) fn with(mut self, variable: &'static str, value: &'static str) -> Subject {
        self.environment.push((variable, value));
        self
    }

    /// The same subject, with a column for its figures but none for ratios to it.
    pub(crate) fn only_shown(mut self) -> Subject {
        self.is_compared = false;
        self
    }
}

/// What one turn of one subject yielded.
pub(crate) struct Reading {
    /// A value for each row, in their order.
    pub(crate) values: Vec<f64>,
    /// The processor time of all its processes, where it is known.
    pub(crate) cpu: Option<Duration>,
}

impl From<Vec<f64>> for Reading {
    fn from(values: Vec<f64>) -> Reading {
        Reading { values, cpu: None }
    }
}

/// Something that can be measured.
pub(crate) trait Measurement {
    /// What it is chosen by.
    fn name(&self) -> &str;

    fn rows(&self) -> Vec<Row>;

    /// Who takes turns; the judged one first.
    fn subjects(&self) -> Vec<Subject>;

    /// Whether its rows count in the means of their families. Those of a study, which looks at one
    /// thing from many sides, do not.
    fn counts(&self) -> bool {
        true
    }

    /// Takes one reading of one of the subjects.
    fn read(&self, subject: &Subject) -> Result<Reading>;
}

/// What one subject yielded for one row, round by round.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    pub(crate) subject: &'static str,
    pub(crate) is_compared: bool,
    pub(crate) median: f64,
    pub(crate) values: Vec<f64>,
}

/// A row with its figures.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    #[serde(flatten)]
    pub(crate) row: Row,
    /// Whether it counts in the mean of its family.
    pub(crate) counts: bool,
    /// One for each subject, the judged one first.
    pub(crate) series: Vec<Series>,
}

impl Line {
    pub(crate) fn of(&self, subject: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.subject == subject)
    }

    /// The first subject that the judged one is compared with.
    pub(crate) fn reference(&self) -> Option<&'static str> {
        self.compared_with().next()
    }

    /// All subjects that the judged one is compared with.
    pub(crate) fn compared_with(&self) -> impl Iterator<Item = &'static str> {
        let others = self.series.iter().skip(1);
        others
            .filter(|series| series.is_compared)
            .map(|series| series.subject)
    }

    /// How much more ours takes while it records, round by round, if that was measured.
    pub(crate) fn recording_adds(&self) -> Option<Vec<f64>> {
        let off = self.of(Subject::OURS)?;
        let on = self.of(Subject::RECORDING)?;
        let rounds = on.values.iter().zip(&off.values);
        (self.row.better == Better::Lower).then(|| rounds.map(|(on, off)| on - off).collect())
    }

    /// How many times as good as `other` the judged subject is.
    pub(crate) fn ratio_to(&self, other: &str) -> Option<Ratio> {
        let (judged, other) = (self.series.first()?, self.of(other)?);
        let better = self.row.better;
        let rounds = judged.values.iter().zip(&other.values);
        let rounds = rounds.map(|(judged, other)| better.ratio(*judged, *other));
        Some(Ratio::new(
            better.ratio(judged.median, other.median),
            rounds.collect(),
        ))
    }
}

/// One turn, for the record.
#[derive(Serialize)]
pub(crate) struct Turn {
    pub(crate) round: usize,
    pub(crate) subject: &'static str,
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: Option<f64>,
}

/// What came of a measurement.
pub(crate) enum Outcome {
    Measured {
        lines: Vec<Line>,
        turns: Vec<Turn>,
    },
    Failed {
        reason: String,
        /// Whether the judged subject failed and its reference did not.
        is_ours: bool,
    },
}

/// The order of the turns in a round.
///
/// Every other round goes backwards, and after two rounds the next subject begins. Within twice as
/// many rounds as there are subjects each has had each place equally often, and
/// three subjects have had all their orders.
pub(crate) fn order(round: usize, subjects: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..subjects).collect();
    order.rotate_left((round / 2) % subjects.max(1));
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// Takes all rounds of a measurement; `progress` is called after each turn.
pub(crate) fn take(
    measurement: &dyn Measurement,
    rounds: usize,
    mut progress: impl FnMut(),
) -> Outcome {
    let (rows, subjects) = (measurement.rows(), measurement.subjects());
    let mut values = vec![vec![Vec::new(); subjects.len()]; rows.len()];
    let mut turns = Vec::new();
    for round in 0..rounds {
        for at in order(round, subjects.len()) {
            let subject = &subjects[at];
            let begun = Instant::now();
            let reading = match measurement.read(subject) {
                Ok(reading) => reading,
                Err(error) => return failure(measurement, &subjects, at, &error),
            };
            assert_eq!(reading.values.len(), rows.len(), "a value for each row");
            for (row, value) in reading.values.into_iter().enumerate() {
                values[row][at].push(value);
            }
            turns.push(Turn {
                round,
                subject: subject.name,
                wall_s: begun.elapsed().as_secs_f64(),
                cpu_s: reading.cpu.map(|cpu| cpu.as_secs_f64()),
            });
            progress();
        }
    }
    let series = |subject: &Subject, values: Vec<f64>| Series {
        subject: subject.name,
        is_compared: subject.is_compared,
        median: median(&values),
        values,
    };
    let lines = rows.into_iter().zip(values).map(|(row, values)| Line {
        row,
        counts: measurement.counts(),
        series: subjects
            .iter()
            .zip(values)
            .map(|(subject, values)| series(subject, values))
            .collect(),
    });
    Outcome::Measured {
        lines: lines.collect(),
        turns,
    }
}

/// Tells a measurement that fails by itself from one that fails with a single subject, by one
/// more turn of another subject.
fn failure(
    measurement: &dyn Measurement,
    subjects: &[Subject],
    failed: usize,
    error: &anyhow::Error,
) -> Outcome {
    let other = &subjects[if failed == 0 {
        subjects.len().min(2) - 1
    } else {
        0
    }];
    let name = subjects[failed].name;
    let other_fails = other.name != name && measurement.read(other).is_err();
    let who = match other_fails {
        true => format!("fails by itself, with {name} and with {}", other.name),
        false => format!("fails with {name}"),
    };
    Outcome::Failed {
        reason: format!("{who}: {}", format!("{error:#}").trim_end_matches('.')),
        is_ours: failed == 0 && !other_fails,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use anyhow::bail;
    use std::cell::RefCell;

    /// A measurement of two rows, whose values are made up.
    pub(crate) struct MadeUp {
        pub(crate) subjects: Vec<Subject>,
        pub(crate) families: [Family; 2],
        /// The values of both rows for each turn of each subject; none where the turn fails.
        pub(crate) values: fn(&str, usize) -> Option<[f64; 2]>,
        pub(crate) calls: RefCell<Vec<&'static str>>,
    }

    impl MadeUp {
        pub(crate) fn new(
            names: &[&'static str],
            values: fn(&str, usize) -> Option<[f64; 2]>,
        ) -> MadeUp {
            MadeUp {
                subjects: names
                    .iter()
                    .map(|name| Subject::without_library(name))
                    .collect(),
                families: [Family::Loop, Family::Udp],
                values,
                calls: RefCell::default(),
            }
        }
    }

    impl Measurement for MadeUp {
        fn name(&self) -> &str {
            "made_up"
        }

        fn rows(&self) -> Vec<Row> {
            let row = |name: &str, better, family| Row {
                name: name.to_owned(),
                unit: "things",
                better,
                family,
            };
            vec![
                row("made_up rate", Better::Higher, self.families[0]),
                row("made_up cost", Better::Lower, self.families[1]),
            ]
        }

        fn subjects(&self) -> Vec<Subject> {
            self.subjects.clone()
        }

        fn read(&self, subject: &Subject) -> Result<Reading> {
            let mut calls = self.calls.borrow_mut();
            let turn = calls.iter().filter(|name| **name == subject.name).count();
            calls.push(subject.name);
            match (self.values)(subject.name, turn) {
                Some(values) => Ok(Reading::from(values.to_vec())),
                None => bail!("no more."),
            }
        }
    }

    #[test]
    fn two_subjects_take_turns() {
        let orders: Vec<_> = (0..4).map(|round| order(round, 2)).collect();
        assert_eq!(orders, [[0, 1], [1, 0], [1, 0], [0, 1]]);
    }

    #[test]
    fn three_subjects_have_all_orders_in_six_rounds() {
        let mut orders: Vec<_> = (0..6).map(|round| order(round, 3)).collect();
        orders.sort();
        orders.dedup();
        assert_eq!(orders.len(), 6);
    }

    #[test]
    fn every_subject_has_every_place_equally_often() {
        for subjects in 1..6 {
            for place in 0..subjects {
                for subject in 0..subjects {
                    let has_place = |round: &usize| order(*round, subjects)[place] == subject;
                    assert_eq!((0..2 * subjects).filter(has_place).count(), 2);
                }
            }
        }
    }

    #[test]
    fn every_row_has_all_rounds_of_every_subject() {
        let made_up = MadeUp::new(&["ours", "the original", "before"], |name, turn| {
            let value = if name == "ours" { 4.0 } else { 2.0 };
            Some([value + turn as f64, value])
        });
        let mut steps = 0;
        let Outcome::Measured { lines, turns } = take(&made_up, 3, || steps += 1) else {
            panic!("it cannot fail");
        };
        assert_eq!((steps, turns.len()), (9, 9));
        assert_eq!(
            made_up.calls.borrow()[..6],
            [
                "ours",
                "the original",
                "before",
                "before",
                "the original",
                "ours"
            ]
        );
        for line in &lines {
            assert!(line.series.iter().all(|series| series.values.len() == 3));
        }
        let rate = lines[0].ratio_to("the original").unwrap();
        assert_eq!(rate.value, 5.0 / 3.0);
        assert_eq!(rate.rounds, [2.0, 5.0 / 3.0, 1.5]);
        // A cost twice as high is half as good.
        assert_eq!(lines[1].ratio_to("before").unwrap().value, 0.5);
        assert_eq!(lines[1].reference(), Some("the original"));
        assert_eq!(lines[1].ratio_to("nobody"), None);
    }

    fn failed(values: fn(&str, usize) -> Option<[f64; 2]>) -> (String, bool) {
        match take(&MadeUp::new(&["ours", "the original"], values), 2, || ()) {
            Outcome::Failed { reason, is_ours } => (reason, is_ours),
            Outcome::Measured { .. } => panic!("it cannot be measured"),
        }
    }

    #[test]
    fn whose_failure_it_is_is_found_out() {
        let by_itself = failed(|_, _| None);
        assert_eq!(
            by_itself,
            (
                "fails by itself, with ours and with the original: no more".to_owned(),
                false
            )
        );
        let ours = failed(|name, _| (name != "ours").then_some([1.0; 2]));
        assert_eq!(ours, ("fails with ours: no more".to_owned(), true));
        let original = failed(|name, turn| (name == "ours" || turn == 0).then_some([1.0; 2]));
        assert_eq!(
            original,
            ("fails with the original: no more".to_owned(), false)
        );
    }
}
