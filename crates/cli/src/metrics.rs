//! `blacklight metrics`: a record in the text format of OpenMetrics, once or for a scraper.
//!
//! Addresses and symbols are no labels: there may be any number of them.

mod families;
mod page;

use crate::requests::{self, by_kind};
use crate::sample::{snapshot, times_ns};
use crate::serve;
use crate::target::{self, Target};
use crate::words::{print, tell};
use anyhow::{Result, ensure};
use blacklight_record::layout::{CALLBACK_KINDS, HANDLE_KINDS, PHASES, REQUEST_KINDS, State};
use blacklight_record::read::{Error, Handle, Histogram, Loop, Reader, Snapshot};
use families::Family;
use page::{Page, seconds};
use std::collections::HashMap;
use std::process::ExitCode;
use std::rc::Rc;

/// The options of the metrics.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    target: target::Options,
    /// Serve them at <http://127.0.0.1:PORT/metrics>, in place of printing them once; 0 takes any free port.
    #[arg(long, value_name = "PORT")]
    listen: Option<u16>,
}

/// Prints or serves the metrics.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    ensure!(
        options.listen.is_some() || !options.target.is_program(),
        "the metrics of a program that only just starts are all zero: serve them with --listen PORT"
    );
    let target = options.target.open_without_stacks()?;
    let Target { reader, child } = target;
    let pid = reader.pid();
    let reader = Rc::new(reader);
    let mut exporter = Exporter::new(Rc::clone(&reader));
    match options.listen {
        None => print(&exporter.text()?)?,
        Some(port) => {
            serve::metrics(port, move || exporter.text(), || reader.is_alive())?;
            tell(&Error::Gone(pid).to_string());
            if let Some(mut child) = child {
                child.wait()?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes metrics again and again.
pub(crate) struct Exporter {
    reader: Rc<Reader>,
    is_node: bool,
    /// The times that were written last, by loop. Counters must not go back, and a loop that wakes while its
    /// record is copied may seem to have slept less.
    times: HashMap<u32, [u64; 5]>,
}

impl Exporter {
    /// Writes the metrics of this process.
    pub(crate) fn new(reader: Rc<Reader>) -> Exporter {
        let is_node = is_node(reader.pid());
        let times = HashMap::new();
        Exporter {
            reader,
            is_node,
            times,
        }
    }

    /// The metrics of this moment. A process that has ended has none.
    pub(crate) fn text(&mut self) -> Result<String, Error> {
        let snapshot = snapshot(&self.reader)?;
        let handles = snapshot.loops.iter().map(|lp| self.reader.handles(lp));
        let handles = handles.collect::<Result<Vec<_>, _>>()?;
        if !self.reader.is_alive() {
            return Err(Error::Gone(self.reader.pid()));
        }
        self.times
            .retain(|id, _| snapshot.loops.iter().any(|lp| lp.id == *id));
        for lp in &snapshot.loops {
            let known = self.times.entry(lp.id).or_default();
            let times = times_ns(lp, snapshot.taken_ns);
            *known = std::array::from_fn(|state| known[state].max(times[state]));
        }
        let mut page = Page::default();
        self.loops(&mut page, &snapshot, &handles);
        pool(&mut page, &snapshot);
        if self.is_node {
            self.node(&mut page, &snapshot);
        }
        Ok(page.into_text())
    }

    fn time_ns(&self, lp: &Loop, state: State) -> u64 {
        self.times
            .get(&lp.id)
            .map_or(0, |times| times[state as usize])
    }

    fn loops(&self, page: &mut Page, snapshot: &Snapshot, handles: &[Vec<Handle>]) {
        let ids: Vec<String> = snapshot.loops.iter().map(|lp| lp.id.to_string()).collect();
        let loops = || ids.iter().map(String::as_str).zip(&snapshot.loops);
        page.family(&families::INFO);
        for (id, lp) in loops() {
            page.sample(&[id, &lp.name, &lp.poller], 1);
        }
        page.family(&families::ITERATIONS);
        for (id, lp) in loops() {
            page.sample(&[id], lp.turns);
        }
        page.family(&families::TIME);
        for (id, lp) in loops() {
            for state in State::ALL {
                let time = seconds(self.time_ns(lp, state));
                page.sample(&[id, state.name()], time);
            }
        }
        histograms(page, snapshot);
        page.family(&families::HANDLES);
        for ((id, _), handles) in loops().zip(handles) {
            for kind in HANDLE_KINDS.into_iter().skip(1) {
                for (active, is_active) in [("true", true), ("false", false)] {
                    let is_one =
                        |handle: &&Handle| handle.kind == kind && handle.is_active == is_active;
                    let count = handles.iter().filter(is_one).count();
                    page.sample(&[id, kind, active], count);
                }
            }
        }
        page.family(&families::REQUESTS);
        for ((id, lp), handles) in loops().zip(handles) {
            let counts = by_kind(lp, handles);
            for kind in requests::KINDS {
                let count = counts.iter().find(|(of, _)| *of == kind);
                page.sample(&[id, kind], count.map_or(0, |(_, count)| *count));
            }
        }
        page.family(&families::HANDLES_LOST);
        for (id, lp) in loops() {
            page.sample(&[id], lp.handles_lost);
        }
        page.family(&families::REQUESTS_LOST);
        for (id, lp) in loops() {
            page.sample(&[id], lp.requests_lost);
        }
        page.family(&families::REFUSED);
        page.sample(&[], snapshot.refused);
    }

    /// The metrics by which OpenTelemetry knows the loops of Node.js.
    fn node(&self, page: &mut Page, snapshot: &Snapshot) {
        type Figure = (&'static Family, fn(&Histogram) -> u64);
        let figures: [Figure; 7] = [
            (&families::NODE_MIN, shortest_ns),
            (&families::NODE_MAX, |delay| delay.longest_ns),
            (&families::NODE_MEAN, Histogram::mean_ns),
            (&families::NODE_STDDEV, deviation_ns),
            (&families::NODE_P50, |delay| delay.quantile_ns(0.5)),
            (&families::NODE_P90, |delay| delay.quantile_ns(0.9)),
            (&families::NODE_P99, |delay| delay.quantile_ns(0.99)),
        ];
        for (family, figure) in figures {
            page.family(family);
            for lp in snapshot.loops.iter().filter(|lp| lp.delay.count() > 0) {
                page.sample(&[&lp.id.to_string()], seconds(figure(&lp.delay)));
            }
        }
        let times = |lp: &Loop| {
            let time = |state| self.time_ns(lp, state);
            let idle = time(State::Asleep).saturating_add(time(State::Spinning));
            let active = [State::Outside, State::Working, State::Callback].map(time);
            let active = active.into_iter().fold(0, u64::saturating_add);
            (active, idle)
        };
        page.family(&families::NODE_UTILIZATION);
        // A loop that was only made is not busy.
        for lp in snapshot.loops.iter().filter(|lp| lp.turns > 0) {
            let (active, idle) = times(lp);
            let share = active as f64 / (active.saturating_add(idle)).max(1) as f64;
            page.sample(&[&lp.id.to_string()], format!("{share:.6}"));
        }
        page.family(&families::NODE_TIME);
        for lp in &snapshot.loops {
            let (active, idle) = times(lp);
            for (state, time) in [("active", active), ("idle", idle)] {
                page.sample(&[&lp.id.to_string(), state], seconds(time));
            }
        }
    }
}

/// The lower end of the lowest bucket that has counted something.
fn shortest_ns(histogram: &Histogram) -> u64 {
    match histogram.buckets.iter().position(|count| *count > 0) {
        Some(bucket) if bucket > 0 => 1 << (bucket - 1),
        _ => 0,
    }
}

/// The standard deviation, if all times lay in the middles of their buckets.
fn deviation_ns(histogram: &Histogram) -> u64 {
    let mean = histogram.mean_ns() as f64;
    let squares = histogram.buckets.iter().enumerate().map(|(bucket, count)| {
        let upper = Histogram::upper_ns(bucket).min(histogram.longest_ns.max(1));
        let lower = if bucket > 0 { 1_u64 << (bucket - 1) } else { 0 };
        let middle = match bucket {
            0 => 0.0,
            _ => (lower as f64 + upper as f64) / 2.0,
        };
        *count as f64 * (middle - mean).powi(2)
    });
    let variance = squares.sum::<f64>() / histogram.count().max(1) as f64;
    variance.sqrt().round() as u64
}

/// Whether a process is Node.js.
fn is_node(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let called = first.rsplit(|byte| *byte == b'/').next();
    program.file_name().is_some_and(|name| name == "node") || called == Some(b"node")
}

/// How many callbacks were stalls.
fn stalls(histogram: &Histogram) -> u64 {
    let long = histogram.buckets.iter().skip(families::STALL);
    long.fold(0, |sum, count| sum.saturating_add(*count))
}

fn histograms(page: &mut Page, snapshot: &Snapshot) {
    type Single = (&'static Family, fn(&Loop) -> &Histogram);
    let single: [Single; 3] = [
        (&families::ITERATION, |lp| &lp.turn),
        (&families::DELAY, |lp| &lp.delay),
        (&families::LATENESS, |lp| &lp.late),
    ];
    for (family, of) in single {
        page.family(family);
        for lp in &snapshot.loops {
            page.histogram(&[&lp.id.to_string()], of(lp));
        }
    }
    page.family(&families::STALLS);
    for lp in &snapshot.loops {
        let kinds = CALLBACK_KINDS.iter().zip(&lp.by_kind);
        for (kind, histogram) in kinds.filter(|(_, of)| of.count() > 0) {
            page.sample(&[&lp.id.to_string(), kind], stalls(histogram));
        }
    }
    page.family(&families::CALLBACK);
    for lp in &snapshot.loops {
        for (phase, histogram) in PHASES.iter().zip(&lp.by_phase) {
            page.histogram_of_some(&[&lp.id.to_string(), phase], histogram);
        }
    }
    // A family of its own: in one with the phases, sums would count every callback twice.
    page.family(&families::CALLBACK_KIND);
    for lp in &snapshot.loops {
        for (kind, histogram) in CALLBACK_KINDS.iter().zip(&lp.by_kind) {
            page.histogram_of_some(&[&lp.id.to_string(), kind], histogram);
        }
    }
}

fn pool(page: &mut Page, snapshot: &Snapshot) {
    let pool = &snapshot.pool;
    let kinds = || {
        let kinds = REQUEST_KINDS.iter().enumerate();
        kinds.filter(|(_, kind)| **kind != "reserved")
    };
    page.family(&families::POOL_THREADS);
    page.sample(&[], pool.threads);
    page.family(&families::POOL_QUEUED);
    for (at, kind) in kinds() {
        page.sample(&[kind], pool.queued[at]);
    }
    page.family(&families::POOL_RUNNING);
    for (at, kind) in kinds() {
        page.sample(&[kind], pool.running[at]);
    }
    page.family(&families::POOL_WAIT);
    for (at, kind) in kinds() {
        page.histogram_of_some(&[kind], &pool.wait[at]);
    }
    page.family(&families::POOL_RUN);
    for (at, kind) in kinds() {
        page.histogram_of_some(&[kind], &pool.run[at]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A histogram of these times.
    fn histogram(times: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for time in times {
            histogram.buckets[u64::BITS as usize - time.leading_zeros() as usize] += 1;
            histogram.sum_ns += time;
            histogram.longest_ns = histogram.longest_ns.max(*time);
        }
        histogram
    }

    #[test]
    fn stalls_are_counted_from_the_limit_on() {
        let limit = 1 << 27;
        let times = [limit - 1, limit, limit + 1, 1 << 40];
        assert_eq!(stalls(&histogram(&times)), 3);
        assert_eq!(limit / 1_000_000, 134);
    }

    #[test]
    fn the_shortest_time_is_rounded_down() {
        assert_eq!(shortest_ns(&histogram(&[])), 0);
        assert_eq!(shortest_ns(&histogram(&[0, 900])), 0);
        assert_eq!(shortest_ns(&histogram(&[1])), 1);
        assert_eq!(shortest_ns(&histogram(&[1000, 5000])), 512);
        assert_eq!(shortest_ns(&histogram(&[1024])), 1024);
    }

    #[test]
    fn the_deviation_is_near_that_of_the_times() {
        assert_eq!(deviation_ns(&histogram(&[])), 0);
        assert_eq!(deviation_ns(&histogram(&[0, 0])), 0);
        let times: Vec<u64> = (0..1000).map(|at| at * 1000).collect();
        // That of numbers that are spread evenly is their range divided by √12.
        let exact = 1_000_000.0 / 12_f64.sqrt();
        let estimated = deviation_ns(&histogram(&times)) as f64;
        assert!((estimated / exact - 1.0).abs() < 0.1, "{estimated} {exact}");
    }
}
