//! The text format of OpenMetrics.

use super::families::Family;
use blacklight_record::read::Histogram;
use std::fmt::{Display, Write as _};

/// The buckets of the record that become buckets of a histogram: from a microsecond to 17 seconds. Shorter times are
/// in the first, longer ones in `+Inf`.
const BUCKETS: std::ops::RangeInclusive<usize> = 10..=34;

/// Nanoseconds as seconds, exactly.
pub(super) fn seconds(ns: u64) -> String {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let short = text.trim_end_matches('0');
    let end = if short.ends_with('.') { "0" } else { "" };
    format!("{short}{end}")
}

/// The text of all metrics, in which one family is being written.
#[derive(Default)]
pub(super) struct Page {
    text: String,
    family: Option<&'static Family>,
}

impl Page {
    /// Begins a family; its samples follow.
    pub(super) fn family(&mut self, family: &'static Family) {
        self.family = Some(family);
        let (name, kind, unit, help) = (family.name, family.kind, family.unit, family.help);
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {}", escaped(help));
    }

    /// Adds a sample of the family, with the values of its labels.
    pub(super) fn sample(&mut self, values: &[&str], value: impl Display) {
        let suffix = match self.family.map(|family| family.kind) {
            Some("counter") => "_total",
            Some("info") => "_info",
            _ => "",
        };
        self.write(suffix, values, None, value);
    }

    fn write(&mut self, suffix: &str, values: &[&str], bound: Option<&str>, value: impl Display) {
        let Some(family) = self.family else {
            return;
        };
        debug_assert_eq!(values.len(), family.labels.len(), "{}", family.name);
        let labels = family.labels.iter().copied().zip(values.iter().copied());
        let labels = labels.chain(bound.map(|bound| ("le", bound)));
        let _ = write!(self.text, "{}{suffix}", family.name);
        let mut end = "";
        for (name, value) in labels {
            let begin = if end.is_empty() { '{' } else { ',' };
            let _ = write!(self.text, "{begin}{name}=\"{}\"", escaped(value));
            end = "}";
        }
        let _ = writeln!(self.text, "{end} {value}");
    }

    /// Adds a histogram of the family.
    pub(super) fn histogram(&mut self, values: &[&str], histogram: &Histogram) {
        let mut below = 0_u64;
        for (bucket, count) in histogram.buckets.iter().enumerate() {
            below = below.saturating_add(*count);
            if BUCKETS.contains(&bucket) {
                let bound = seconds(Histogram::upper_ns(bucket));
                self.write("_bucket", values, Some(&bound), below);
            }
        }
        self.write("_bucket", values, Some("+Inf"), below);
        self.write("_sum", values, None, seconds(histogram.sum_ns));
        self.write("_count", values, None, below);
    }

    /// Adds a histogram that has counted something; most kinds of callbacks never occur in a program.
    pub(super) fn histogram_of_some(&mut self, values: &[&str], histogram: &Histogram) {
        if histogram.count() > 0 {
            self.histogram(values, histogram);
        }
    }

    /// The text, to its end.
    pub(super) fn into_text(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

/// Text in which quotes, backslashes and newlines are escaped.
fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\");
    value.replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds(0), "0.0");
        assert_eq!(seconds(1024), "0.000001024");
        assert_eq!(seconds(1 << 34), "17.179869184");
        assert_eq!(seconds(5_000_000_000), "5.0");
    }

    static NAMED: Family = Family {
        name: "a",
        kind: "gauge",
        unit: "",
        labels: &["name"],
        help: "b",
    };

    #[test]
    fn labels_cannot_end_early() {
        let mut page = Page::default();
        page.family(&NAMED);
        page.sample(&["x\"} 1\n\\"], 2);
        let last = page.text.lines().last();
        assert_eq!(last, Some(r#"a{name="x\"} 1\n\\"} 2"#));
    }

    static TIMES: Family = Family {
        name: "a",
        kind: "histogram",
        unit: "",
        labels: &[],
        help: "b",
    };

    #[test]
    fn a_time_longer_than_the_last_bucket_is_counted_once() {
        let mut histogram = Histogram::default();
        histogram.buckets[3] = 2;
        histogram.buckets[40] = 1;
        let mut page = Page::default();
        page.family(&TIMES);
        page.histogram(&[], &histogram);
        let text = &page.text;
        assert!(text.contains("a_bucket{le=\"0.000001024\"} 2\n"), "{text}");
        assert!(text.contains("a_bucket{le=\"17.179869184\"} 2\n"), "{text}");
        assert!(text.contains("a_bucket{le=\"+Inf\"} 3\n"), "{text}");
        assert!(text.contains("a_count 3\n"), "{text}");
    }
}
