//! How the cost of one operation grows with the number of handles that have nothing to do with it:
//! that a wake-up costs the same however many async handles there are, and how a timer's restart grows.

use super::command;
use super::family::Family;
use super::libraries::Libraries;
use super::turns::{Better, Measurement, Reading, Row, Subject};
use crate::program;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;

/// How many handles there are in each line that the program prints.
const HANDLES: [u32; 3] = [1_000, 100_000, 1_000_000];

/// What the numbers of a line are, after that of the handles.
const COLUMNS: [(&str, Family); 3] = [
    ("wake-up", Family::WakeUps),
    ("restart, random time-outs", Family::Timers),
    ("restart, same time-out", Family::Timers),
];

pub(crate) struct Scaling {
    program: PathBuf,
    subjects: Vec<Subject>,
}

impl Scaling {
    pub(crate) const NAME: &str = "scaling";

    pub(crate) fn build(libraries: &Libraries) -> Result<Scaling> {
        Ok(Scaling {
            program: program::compile("scaling", "scaling", &libraries.ours())?,
            subjects: libraries.subjects(),
        })
    }
}

impl Measurement for Scaling {
    fn name(&self) -> &str {
        Scaling::NAME
    }

    fn rows(&self) -> Vec<Row> {
        let row = |handles: u32, (what, family): (&str, Family)| Row {
            name: format!("{} {what}, {handles} handles", Scaling::NAME),
            unit: "ns",
            better: Better::Lower,
            family,
        };
        let of = |handles| COLUMNS.map(|column| row(handles, column));
        HANDLES.into_iter().flat_map(of).collect()
    }

    fn subjects(&self) -> Vec<Subject> {
        self.subjects.clone()
    }

    fn counts(&self) -> bool {
        false
    }

    fn read(&self, subject: &Subject) -> Result<Reading> {
        let text = command::output(&mut command::run(&self.program, subject))?;
        numbers(&text).map(Reading::from)
    }
}

/// The numbers of all lines, without those of the handles.
fn numbers(text: &str) -> Result<Vec<f64>> {
    let mut numbers = Vec::new();
    for (line, handles) in text.lines().zip(HANDLES) {
        let words: Result<Vec<f64>, _> = line.split(' ').map(str::parse).collect();
        let words = words.with_context(|| format!("the program says {line:?}"))?;
        ensure!(
            words.len() == 1 + COLUMNS.len() && words[0] == f64::from(handles),
            "the program says {line:?}"
        );
        numbers.extend(&words[1..]);
    }
    ensure!(
        numbers.len() == HANDLES.len() * COLUMNS.len(),
        "the program says {text:?}"
    );
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_in_the_order_of_the_rows() {
        let text = "1000 1 2 3\n100000 4 5 6\n1000000 7 8 9\n";
        let nine: Vec<f64> = (1..10).map(f64::from).collect();
        assert_eq!(numbers(text).unwrap(), nine);
        assert!(numbers("1000 1 2 3\n").is_err());
        assert!(numbers(&text.replace("100000 ", "100 ")).is_err());
    }
}
