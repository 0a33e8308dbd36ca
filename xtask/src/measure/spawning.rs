//! What many children cost their parent: the processor time that the loop takes for each exit when
//! many end, at once or one after the other, and how long `uv_spawn` holds the loop up, in a small
//! process and in a large one.

use super::command;
use super::family::Family;
use super::libraries::Libraries;
use super::turns::{Better, Measurement, Reading, Row, Subject};
use crate::program;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// The rows, and the program's arguments for each.
const ROWS: [(&str, [&str; 2]); 8] = [
    ("exit, 100 at once", ["exits", "100"]),
    ("exit, 1000 at once", ["exits", "1000"]),
    ("exit, 4000 at once", ["exits", "4000"]),
    ("exit, 1 of 100", ["apart", "100"]),
    ("exit, 1 of 1000", ["apart", "1000"]),
    ("exit, 1 of 4000", ["apart", "4000"]),
    ("spawn", ["spawn", "0"]),
    ("spawn beside 1 GiB", ["spawn", "1024"]),
];

pub(crate) struct Spawning {
    program: PathBuf,
    subjects: Vec<Subject>,
}

impl Spawning {
    pub(crate) const NAME: &str = "spawning";

    pub(crate) fn build(libraries: &Libraries) -> Result<Spawning> {
        Ok(Spawning {
            program: program::compile("spawning", "program", &libraries.ours())?,
            subjects: libraries.subjects(),
        })
    }
}

impl Measurement for Spawning {
    fn name(&self) -> &str {
        Spawning::NAME
    }

    fn rows(&self) -> Vec<Row> {
        let row = |(what, _): (&str, [&str; 2])| Row {
            name: format!("{} {what}", Spawning::NAME),
            unit: "µs",
            better: Better::Lower,
            family: Family::Processes,
        };
        ROWS.map(row).into()
    }

    fn subjects(&self) -> Vec<Subject> {
        self.subjects.clone()
    }

    fn counts(&self) -> bool {
        false
    }

    fn read(&self, subject: &Subject) -> Result<Reading> {
        let value = |(_, arguments): &(&str, [&str; 2])| -> Result<f64> {
            let mut command = command::run(&self.program, subject);
            let text = command::output(command.args(arguments))?;
            let number = text.trim().parse();
            number.with_context(|| format!("the program says {text:?}"))
        };
        let values: Result<Vec<f64>> = ROWS.iter().map(value).collect();
        values.map(Reading::from)
    }
}
