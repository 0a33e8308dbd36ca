//! What to read of each benchmark: where the number stands, its unit, which way is better, and the
//! family that it counts in.

use super::super::family::Family;
use super::super::turns::{Better, Row};
use super::own;
use crate::sandbox::Run;

/// One number that a benchmark yields: a row of the report.
pub(crate) struct Figure {
    /// Added to the benchmark's name where it yields more than one number.
    suffix: &'static str,
    unit: &'static str,
    better: Better,
    pub(crate) family: Family,
    source: Source,
}

enum Source {
    /// The number right before `before`, in the first line that has it and contains `line`.
    Printed {
        line: &'static str,
        before: &'static str,
    },
    /// User and system time.
    ProcessorTime,
    /// What a program of ours prints: the line `label: number unit`, where the label is the
    /// suffix.
    Labelled,
}

impl Figure {
    /// A cost that a program of ours prints.
    pub(crate) const fn cost(family: Family, suffix: &'static str, unit: &'static str) -> Figure {
        Figure {
            suffix,
            unit,
            better: Better::Lower,
            family,
            source: Source::Labelled,
        }
    }
}

const fn rate(
    family: Family,
    unit: &'static str,
    line: &'static str,
    before: &'static str,
) -> Figure {
    Figure {
        suffix: "",
        unit,
        better: Better::Higher,
        family,
        source: Source::Printed { line, before },
    }
}

/// Benchmarks by the beginning of their names; the first that fits decides.
const FIGURES: &[(&str, &[Figure])] = &[
    (
        "loop_count_timed",
        &[rate(Family::Loop, "ticks/s", "loop_count:", " ticks/s)")],
    ),
    (
        "loop_count",
        &[rate(Family::Loop, "ticks/s", "loop_count:", "/s)")],
    ),
    (
        "loop_alive",
        &[rate(Family::Loop, "calls/s", "loop_alive:", "/s)")],
    ),
    (
        "async_pummel_",
        &[rate(
            Family::WakeUps,
            "callbacks/s",
            "async_pummel_",
            "/sec)",
        )],
    ),
    (
        "async",
        &[rate(Family::WakeUps, "pings/s", "async", "/sec)")],
    ),
    (
        "million_async",
        &[rate(Family::WakeUps, "events/s", "async events", "/s,")],
    ),
    // Its timers are due up to ten seconds after the start, so the seconds that it prints
    // have a floor that no library can get under.
    (
        "million_timers",
        &[Figure {
            suffix: "",
            unit: "s CPU",
            better: Better::Lower,
            family: Family::Timers,
            source: Source::ProcessorTime,
        }],
    ),
    (
        "ping_pongs",
        &[rate(
            Family::Streams,
            "roundtrips/s",
            "ping_pongs:",
            " roundtrips/s",
        )],
    ),
    (
        "ping_udp",
        &[rate(
            Family::Udp,
            "roundtrips/s",
            "pingers",
            " roundtrips/s",
        )],
    ),
    (
        "tcp_write_batch",
        &[Figure {
            suffix: "",
            unit: "s",
            better: Better::Lower,
            family: Family::Streams,
            source: Source::Printed {
                line: "write requests in",
                before: "s.",
            },
        }],
    ),
    (
        "tcp_multi_accept",
        &[rate(Family::Streams, "accepts/s", "accept", " accepts/sec")],
    ),
    (
        "tcp4_pound_",
        &[rate(
            Family::Streams,
            "accepts/s",
            "-conn-pound-",
            " accepts/s",
        )],
    ),
    (
        "pipe_pound_",
        &[rate(
            Family::Streams,
            "accepts/s",
            "-conn-pound-",
            " accepts/s",
        )],
    ),
    (
        "tcp_pump",
        &[rate(Family::Streams, "gbit/s", "_client:", " gbit/s")],
    ),
    (
        "pipe_pump",
        &[rate(Family::Streams, "gbit/s", "_client:", " gbit/s")],
    ),
    (
        "udp_",
        &[rate(
            Family::Udp,
            "received/s",
            "udp_pummel_",
            "/s received",
        )],
    ),
    (
        "getaddrinfo",
        &[rate(Family::Dns, "requests/s", "getaddrinfo:", " req/s")],
    ),
    (
        "fs_stat",
        &[
            stats(" sync", "stats (sync)"),
            stats(" 1 at a time", "stats (1 concurrent)"),
            stats(" 4 at a time", "stats (4 concurrent)"),
            stats(" 32 at a time", "stats (32 concurrent)"),
        ],
    ),
    (
        "queue_work",
        &[rate(Family::Pool, "jobs/s", "async jobs", "/s)")],
    ),
    (
        "spawn",
        &[rate(Family::Processes, "spawns/s", "spawn:", " spawns/s")],
    ),
    (
        "thread_create",
        &[rate(Family::Pool, "threads/s", "threads created", "/s)")],
    ),
];

const fn stats(suffix: &'static str, line: &'static str) -> Figure {
    Figure {
        suffix,
        unit: "stats/s",
        better: Better::Higher,
        family: Family::Files,
        source: Source::Printed {
            line,
            before: "/s)",
        },
    }
}

/// What to read of a benchmark, if that is declared.
pub(crate) fn of(name: &str) -> Option<&'static [Figure]> {
    if let Some(own) = own::find(name) {
        return Some(own.figures);
    }
    let found = FIGURES.iter().find(|(prefix, _)| name.starts_with(prefix));
    found.map(|(_, figures)| *figures)
}

impl Figure {
    /// The row of a benchmark's report.
    pub(crate) fn row(&self, benchmark: &str) -> Row {
        Row {
            name: format!("{benchmark}{}", self.suffix),
            unit: self.unit,
            better: self.better,
            family: self.family,
        }
    }

    /// The number in a run, if the run has it.
    pub(crate) fn value(&self, run: &Run) -> Option<f64> {
        match self.source {
            Source::Printed { line, before } => printed(&run.output, line, before),
            Source::ProcessorTime => Some(run.cpu.as_secs_f64()),
            Source::Labelled => self.labelled(&run.output),
        }
    }

    fn labelled(&self, output: &str) -> Option<f64> {
        let label = format!("{}: ", self.suffix.trim_start());
        let number = |line: &str| {
            let rest = line.strip_prefix(&label)?.strip_suffix(self.unit)?;
            rest.trim_end().parse().ok()
        };
        output.lines().find_map(number)
    }
}

fn printed(output: &str, contains: &str, before: &str) -> Option<f64> {
    let mut lines = output.lines().filter(|line| line.contains(contains));
    let (head, _) = lines.find_map(|line| line.split_once(before))?;
    let start = head
        .rfind(|character: char| {
            !character.is_ascii_digit() && character != '.' && character != ','
        })
        .map_or(0, |position| position + 1);
    head[start..].replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Ended;
    use std::time::Duration;

    fn run(output: &str) -> Run {
        Run {
            ended: Ended::Exited(0),
            output: output.to_owned(),
            reports: Vec::new(),
            wall: Duration::from_secs(3),
            cpu: Duration::from_millis(1500),
        }
    }

    fn read(name: &str, output: &str) -> Vec<f64> {
        let run = run(output);
        of(name)
            .unwrap()
            .iter()
            .map(|figure| figure.value(&run).expect(output))
            .collect()
    }

    const PRINTED: &[(&str, &str, f64)] = &[
        (
            "loop_count",
            "loop_count: 2000000 ticks in 0.45s (4434590/s)",
            4_434_590.0,
        ),
        (
            "loop_count_timed",
            "loop_count: 21512880 ticks (4302576 ticks/s)",
            4_302_576.0,
        ),
        (
            "loop_alive",
            "loop_alive: 20000000 ticks in 0.06s (326824371/s)",
            326_824_371.0,
        ),
        ("async4", "async4: 3.01 sec (332,120/sec)", 332_120.0),
        (
            "async_pummel_2",
            "async_pummel_2: 1,000,000 callbacks in 0.45 seconds (2,222,222/sec)",
            2_222_222.0,
        ),
        (
            "million_async",
            "1,234,567 async events in 5.0 seconds (246,913/s, 981,000 unique handles seen)",
            246_913.0,
        ),
        ("ping_pongs", "# ping_pongs: 61844 roundtrips/s", 61_844.0),
        (
            "ping_udp10",
            "ping_pongs: 10 pingers, ~ 180000 roundtrips/s",
            180_000.0,
        ),
        (
            "tcp_write_batch",
            "# 1000000 write requests in 0.52s.",
            0.52,
        ),
        (
            "tcp_multi_accept2",
            "accept2: 51000 accepts/sec (250000 total)\n  thread #0: 1 accepts/sec",
            51_000.0,
        ),
        (
            "tcp4_pound_100",
            "# tcp-conn-pound-100: 21346 accepts/s (0 failed)",
            21_346.0,
        ),
        (
            "pipe_pump1_client",
            "# pipe_pump1_server: 1.0 gbit/s\n# pipe_pump1_client: 23.4 gbit/s",
            23.4,
        ),
        (
            "udp_timed_pummel_1v10",
            "udp_pummel_1v10: 400000/s received, 410000/s sent. 1 received",
            400_000.0,
        ),
        ("getaddrinfo", "getaddrinfo: 18182 req/s", 18_182.0),
        (
            "queue_work",
            "1,000,000 async jobs in 5.0 seconds (200,000/s)",
            200_000.0,
        ),
        ("spawn", "spawn: 1600 spawns/s", 1600.0),
        (
            "thread_create",
            "20000 threads created in 0.35 seconds (57112/s)",
            57_112.0,
        ),
    ];

    #[test]
    fn every_format() {
        for (name, output, value) in PRINTED {
            assert_eq!(read(name, output), [*value], "{name}");
        }
    }

    #[test]
    fn million_timers_counts_processor_time() {
        assert_eq!(read("million_timers", "10.29 seconds total\n"), [1.5]);
    }

    #[test]
    fn fs_stat_yields_one_number_for_each_kind() {
        let output = "1,000,000 stats (sync): 0.70s (1,428,571/s)\n\
            100,000 stats (1 concurrent): 0.90s (111,111/s)\n\
            100,000 stats (4 concurrent): 0.40s (250,000/s)\n\
            100,000 stats (32 concurrent): 0.30s (333,333/s)\n";
        assert_eq!(
            read("fs_stat", output),
            [1_428_571.0, 111_111.0, 250_000.0, 333_333.0]
        );
    }

    #[test]
    fn labels_tell_figures_apart() {
        let output = "8 of 10000: 17 ns/message\n8 of 8: 15.5 ns/message\n";
        assert_eq!(read("idle_connections", output), [15.5, 17.0]);
        let read = &of("fs_read_4k").unwrap()[0];
        assert_eq!(read.value(&run("sync: 3 ns/message")), None);
    }

    #[test]
    fn a_benchmark_that_nobody_declared_is_not_read() {
        assert!(of("brand_new").is_none());
    }

    #[test]
    fn spawn_is_not_taken_for_spawn_large() {
        assert_eq!(
            read("spawn_large", "1 GiB: 2 ns/spawn\nsmall: 1 ns/spawn"),
            [1.0, 2.0]
        );
    }

    #[test]
    fn no_number_is_no_value() {
        assert_eq!(printed("loop_count: oops/s)", "loop_count", "/s)"), None);
        assert_eq!(printed("", "loop_count", "/s)"), None);
    }
}
