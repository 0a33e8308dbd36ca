//! All metrics: what they are called, and what each of them means. `docs/METRICS.md` has the same table.

/// Metrics of one name.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    /// The type, as OpenMetrics calls it.
    pub(super) kind: &'static str,
    /// The unit, with which the name ends; nothing for counts.
    pub(super) unit: &'static str,
    pub(super) labels: &'static [&'static str],
    /// What it means, in one sentence.
    pub(super) help: &'static str,
}

/// The bucket of a histogram from which on callbacks are stalls: it begins at 2²⁷ ns.
pub(super) const STALL: usize = 28;

macro_rules! families {
    ($($name:ident: $kind:literal, $unit:literal, [$($label:literal),*], $text:literal, $help:literal;)*) => {
        $(
            #[doc = $help]
            pub(super) const $name: Family = Family {
                name: $text,
                kind: $kind,
                unit: $unit,
                labels: &[$($label),*],
                help: $help,
            };
        )*

        /// All of them, in the order in which they are written.
        #[cfg(test)]
        pub(super) const ALL: &[&Family] = &[$(&$name),*];
    };
}

families! {
    INFO: "info", "", ["loop", "name", "poller"], "libuv_loop",
        "The loops of the process that are open, with their names and their pollers.";
    ITERATIONS: "counter", "", ["loop"], "libuv_loop_iterations",
        "Turns of the loop: passes through all of its phases.";
    TIME: "counter", "seconds", ["loop", "state"], "libuv_loop_time_seconds",
        "The time that the loop's thread has spent in each state since it is recorded.";
    ITERATION: "histogram", "seconds", ["loop"], "libuv_loop_iteration_duration_seconds",
        "How long turns took, without the time in which the loop waited for events.";
    DELAY: "histogram", "seconds", ["loop"], "libuv_loop_delay_seconds",
        "How long callbacks waited in the loop: a timer's since it was due, one of the poll phase since the poller has reported its event.";
    LATENESS: "histogram", "seconds", ["loop"], "libuv_loop_sleep_lateness_seconds",
        "How much later than asked for the system has ended sleeps that no event ended.";
    STALLS: "counter", "", ["loop", "kind"], "libuv_loop_stalls",
        "Callbacks that took 134 ms (2²⁷ ns) or longer, by their kind, counted when they return.";
    CALLBACK: "histogram", "seconds", ["loop", "phase"], "libuv_callback_duration_seconds",
        "How long callbacks took, by the phase of the turn.";
    CALLBACK_KIND: "histogram", "seconds", ["loop", "kind"], "libuv_callback_kind_duration_seconds",
        "How long callbacks took, by their kind.";
    HANDLES: "gauge", "", ["loop", "kind", "active"], "libuv_handles",
        "Handles that are not closed, by their kind and by whether they are started.";
    REQUESTS: "gauge", "", ["loop", "kind"], "libuv_requests",
        "Requests in progress, by their kind.";
    HANDLES_LOST: "gauge", "", ["loop"], "libuv_record_handles_lost",
        "Handles that the record has no room for.";
    REQUESTS_LOST: "counter", "", ["loop"], "libuv_record_requests_lost",
        "Requests that the record had no room for; they are counted as of the kind `other`.";
    REFUSED: "counter", "", [], "libuv_record_refused",
        "Parts of the record that the system had no memory for.";
    POOL_THREADS: "gauge", "", [], "libuv_pool_threads",
        "Threads of the pool; none before its first request.";
    POOL_QUEUED: "gauge", "", ["kind"], "libuv_pool_queued",
        "Requests that wait for a thread of the pool, by their kind.";
    POOL_RUNNING: "gauge", "", ["kind"], "libuv_pool_running",
        "Requests that a thread of the pool runs, by their kind.";
    POOL_WAIT: "histogram", "seconds", ["kind"], "libuv_pool_wait_seconds",
        "How long requests waited for a thread of the pool, by their kind.";
    POOL_RUN: "histogram", "seconds", ["kind"], "libuv_pool_run_seconds",
        "How long a thread of the pool ran requests, by their kind.";
    NODE_MIN: "gauge", "seconds", ["loop"], "nodejs_eventloop_delay_min_seconds",
        "The shortest delay since the loop is recorded, rounded down to a power of two of nanoseconds.";
    NODE_MAX: "gauge", "seconds", ["loop"], "nodejs_eventloop_delay_max_seconds",
        "The longest delay since the loop is recorded.";
    NODE_MEAN: "gauge", "seconds", ["loop"], "nodejs_eventloop_delay_mean_seconds",
        "The mean delay since the loop is recorded.";
    NODE_STDDEV: "gauge", "seconds", ["loop"], "nodejs_eventloop_delay_stddev_seconds",
        "The standard deviation of delays since the loop is recorded, estimated from the middles of the histogram's buckets.";
    NODE_P50: "gauge", "seconds", ["loop"], "nodejs_eventloop_delay_p50_seconds",
        "A time that 50 % of the delays did not exceed, rounded up to a power of two of nanoseconds.";
    NODE_P90: "gauge", "seconds", ["loop"], "nodejs_eventloop_delay_p90_seconds",
        "A time that 90 % of the delays did not exceed, rounded up to a power of two of nanoseconds.";
    NODE_P99: "gauge", "seconds", ["loop"], "nodejs_eventloop_delay_p99_seconds",
        "A time that 99 % of the delays did not exceed, rounded up to a power of two of nanoseconds.";
    NODE_UTILIZATION: "gauge", "ratio", ["loop"], "nodejs_eventloop_utilization_ratio",
        "The share of the time since the loop is recorded in which it did not wait for events, from 0 to 1.";
    NODE_TIME: "counter", "seconds", ["loop", "nodejs_eventloop_state"], "nodejs_eventloop_time_seconds",
        "The time in which the loop waited for events (`idle`), and in which it did not (`active`).";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_the_same_table() {
        let text = include_str!("../../../../docs/METRICS.md");
        let rows: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("| `libuv_") || line.starts_with("| `nodejs_"))
            .collect();
        let expected: Vec<String> = ALL
            .iter()
            .map(|family| {
                let labels: Vec<String> = family
                    .labels
                    .iter()
                    .map(|label| format!("`{label}`"))
                    .collect();
                let (name, kind, unit) = (family.name, family.kind, family.unit);
                let (labels, help) = (labels.join(", "), family.help);
                let row = format!("| `{name}` | {kind} | {unit} | {labels} | {help} |");
                // An empty cell has one space.
                row.replace("|  |", "| |").replace("|  |", "| |")
            })
            .collect();
        assert_eq!(rows, expected, "\n{}\n", expected.join("\n"));
    }

    #[test]
    fn names_are_as_the_format_wants_them() {
        for family in ALL {
            assert!(family.unit.is_empty() || family.name.ends_with(family.unit));
            assert!(!family.name.ends_with("_total") && family.help.ends_with('.'));
            let same = ALL.iter().filter(|of| of.name == family.name);
            assert_eq!(same.count(), 1, "{}", family.name);
        }
    }
}
