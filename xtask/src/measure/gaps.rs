//! What spinning costs and gains, by how far messages are apart.
//!
//! One connection carries one message at a time, and the client pauses between an answer and the
//! next message. The figures are the server's processor time for a message, sleeping and waking
//! included, and the median and 99th percentile of the time to the answer.

use super::echo::{Echo, two_numbers};
use super::family::Family;
use super::libraries::Libraries;
use super::turns::{Better, Measurement, Reading, Row, Subject};
use anyhow::Result;

/// Pauses between messages, in microseconds.
const GAPS_US: [u32; 7] = [0, 10, 30, 60, 100, 300, 1000];

/// About how long the messages of one pause take, if an answer takes 30 µs.
const RUN_US: u32 = 1_000_000;

const FIGURES: [&str; 3] = ["processor", "answer", "answer, 99 %"];

/// Our library, told never to spin.
const NEVER_SPINS: &str = "ours, `BLACKLIGHT_SPIN=0`";

pub(crate) struct Gaps {
    echo: Echo,
    subjects: Vec<Subject>,
}

impl Gaps {
    pub(crate) const NAME: &str = "gaps";

    pub(crate) fn build(libraries: &Libraries) -> Result<Gaps> {
        let mut subjects = libraries.subjects();
        let never_spins = Subject {
            name: NEVER_SPINS,
            ..subjects[0].clone()
        };
        subjects.push(never_spins.with("BLACKLIGHT_SPIN", "0").only_shown());
        Ok(Gaps {
            echo: Echo::build(libraries)?,
            subjects,
        })
    }
}

impl Measurement for Gaps {
    fn name(&self) -> &str {
        Gaps::NAME
    }

    fn rows(&self) -> Vec<Row> {
        let row = |gap_us: u32, figure: &str| Row {
            name: format!("{} {gap_us} µs: {figure}", Gaps::NAME),
            unit: "µs",
            better: Better::Lower,
            family: Family::Streams,
        };
        let rows = |gap_us| FIGURES.map(|figure| row(gap_us, figure));
        GAPS_US.into_iter().flat_map(rows).collect()
    }

    fn subjects(&self) -> Vec<Subject> {
        self.subjects.clone()
    }

    fn counts(&self) -> bool {
        false
    }

    fn read(&self, subject: &Subject) -> Result<Reading> {
        let mut values = Vec::new();
        for gap_us in GAPS_US {
            let messages = RUN_US / (gap_us + 30);
            let client = ["gap", &gap_us.to_string()];
            let said = self.echo.run(subject, &[], 1, messages, &client)?;
            let (processor, _turns) = said.server;
            let (answer, answer_99) = two_numbers(&said.client)?;
            values.extend([processor, answer, answer_99].map(|ns| ns / 1000.0));
        }
        Ok(Reading::from(values))
    }
}
