//! `blacklight why`: what keeps a loop alive, and what keeps it from being closed, in words.

use crate::descriptor::Descriptors;
use crate::keepers::Describer;
use crate::names::{Living, Names};
use crate::requests::by_kind;
use crate::sample::{age_of_handles, is_unused, name_of, snapshot};
use crate::target::{self, Target};
use crate::words::{count, duration, list, print};
use anyhow::Result;
use blacklight_record::layout::{REQUEST_KINDS, State};
use blacklight_record::read::{Handle, Loop, Pending, Pool, Snapshot, Thread, callback_kind};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How many lines about handles that keep nothing alive are shown of a loop that runs.
const FEW: usize = 4;

/// The options of the view.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    target: target::Options,
    /// List all handles that do not keep their loop alive; those of a loop that runs are else only counted where there are many.
    #[arg(long)]
    all: bool,
    /// How many seconds a program that is started runs before it is asked.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    after: f64,
}

/// Prints what keeps each loop of the process alive.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let mut target = options.target.open(false)?;
    if has_ended(&mut target, options.after)? {
        print("The program has ended by itself: nothing keeps it alive.\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut names = Living::of(target.reader.pid());
    print(&report(&target, options.all, &mut names)?)?;
    // A program that was started here goes on in the foreground.
    if let Some(child) = &mut target.child {
        child.wait()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Lets a program that was started here run for a while. Returns whether it has ended in that time.
fn has_ended(target: &mut Target, seconds: f64) -> Result<bool> {
    let Some(child) = &mut target.child else {
        return Ok(false);
    };
    let time = Duration::try_from_secs_f64(seconds)?;
    let begun = Instant::now();
    while begun.elapsed() < time {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(10).min(time));
    }
    Ok(child.try_wait()?.is_some())
}

/// What keeps each loop alive, as text.
fn report(target: &Target, is_all: bool, names: &mut dyn Names) -> Result<String> {
    let reader = &target.reader;
    let mut snapshot = snapshot(reader)?;
    for lp in &mut snapshot.loops {
        lp.name = name_of(reader.pid(), lp);
    }
    // What is unused is of the least interest.
    snapshot.loops.sort_by_key(|lp| (is_unused(lp), lp.id));
    let descriptors = Descriptors::of(reader.pid());
    let is_library = reader.is_library()?;
    let mut out = String::new();
    if snapshot.loops.is_empty() {
        out.push_str("The process has no loop.\n");
    }
    // All are read before the first is described: reading the names of a large program takes a while.
    let handles: Result<Vec<_>, _> = snapshot.loops.iter().map(|lp| reader.handles(lp)).collect();
    for (lp, handles) in snapshot.loops.iter().zip(handles?) {
        if !out.is_empty() {
            out.push('\n');
        }
        let view = View {
            snapshot: &snapshot,
            lp,
            descriptors: &descriptors,
            is_library,
            is_all,
        };
        out.push_str(&view.text(&handles, names));
    }
    Ok(out)
}

/// One loop, and what is needed to describe it.
struct View<'a> {
    snapshot: &'a Snapshot,
    lp: &'a Loop,
    descriptors: &'a Descriptors,
    is_library: bool,
    is_all: bool,
}

impl View<'_> {
    /// The answer for one loop, its first line first.
    fn text(&self, handles: &[Handle], names: &mut dyn Names) -> String {
        let describer = Describer {
            descriptors: self.descriptors,
            now_ns: self.snapshot.taken_ns,
            since_ns: self.lp.made_ns,
        };
        let mut part = |wanted: fn(&Handle) -> bool| {
            let handles = handles.iter().filter(|handle| wanted(handle));
            describer.groups(&handles.collect::<Vec<_>>(), names)
        };
        let keeping = part(|handle| !handle.is_closing && handle.is_active && handle.is_referenced);
        let closing = part(|handle| handle.is_closing);
        let unreferenced =
            part(|handle| !handle.is_closing && handle.is_active && !handle.is_referenced);
        let inactive = part(|handle| !handle.is_closing && !handle.is_active);

        let mut reasons: Vec<String> = Vec::new();
        for group in &keeping {
            reasons.push(describer.sentence(group, names));
        }
        reasons.extend(self.requests(handles));
        for group in &closing {
            let what = describer.sentence(group, names);
            reasons.push(format!("{what}: closing, until the close callback has run"));
        }
        let known: usize = keeping.iter().map(|group| group.handles.len()).sum();
        let lost = (self.lp.active as usize).saturating_sub(known);
        if self.lp.handles_lost > 0 && lost > 0 {
            let handles = count(lost as u64, "active handle");
            reasons.push(format!("{handles} that the record had no room for"));
        }
        let mut idle: Vec<String> = Vec::new();
        for (groups, why) in [(unreferenced, "unreferenced"), (inactive, "not started")] {
            for group in &groups {
                idle.push(format!("{}: {why}", describer.sentence(group, names)));
            }
        }
        let is_running = self.lp.now.state != State::Outside;
        if idle.len() > FEW && is_running && !self.is_all {
            let number =
                handles.len() - known - closing.iter().map(|of| of.handles.len()).sum::<usize>();
            let said = count(number as u64, "handle");
            idle = vec![format!(
                "{said}, unreferenced or not started; `--all` lists them"
            )];
        }
        self.lay_out(&reasons, &idle, handles.len())
    }

    fn lay_out(&self, reasons: &[String], idle: &[String], handles: usize) -> String {
        let mut out = self.first_line(reasons.len());
        out.push('\n');
        let lay = |out: &mut String, lines: &[String]| {
            for line in lines {
                // Writing to a string does not fail.
                let _ = writeln!(out, "  - {line}");
            }
        };
        lay(&mut out, reasons);
        if !idle.is_empty() {
            out.push_str("These do not keep it alive:\n");
            lay(&mut out, idle);
        }
        let at_ns = self.snapshot.taken_ns;
        if let Some(age) = age_of_handles(self.lp.walked_ns, &self.lp.now, at_ns) {
            let _ = writeln!(
                out,
                "The list of its handles is {age} old: what was made or closed since is not in it."
            );
        }
        if handles > 0 && self.is_library {
            let which = match handles {
                1 => "while its handle is open".to_owned(),
                _ => format!("while any of its {handles} handles is open, active or not"),
            };
            let _ = writeln!(out, "`uv_loop_close` fails with EBUSY {which}.");
        }
        out
    }

    /// The answer in one line.
    fn first_line(&self, reasons: usize) -> String {
        let lp = self.lp;
        let subject = match (self.snapshot.loops.len(), lp.name.is_empty()) {
            (1, _) => "the loop".to_owned(),
            (_, true) => format!("loop {}", lp.id),
            (_, false) => format!("loop {} ({})", lp.id, lp.name),
        };
        let run = if self.is_library {
            "`uv_run`"
        } else {
            "its run"
        };
        let since = duration(self.snapshot.taken_ns.saturating_sub(lp.now.since_ns));
        let reasons_text = count(reasons as u64, "reason");
        let line = match (reasons, lp.now.state) {
            _ if is_unused(lp) => {
                format!("nothing keeps {subject} alive: it has not been run once, for {since}.")
            }
            (0, State::Outside) => format!(
                "nothing keeps {subject} alive, and its thread has been outside of {run} for {since}."
            ),
            (_, State::Outside) => format!(
                "{subject} has {reasons_text} to stay alive, but its thread has been outside of {run} for {since}:"
            ),
            (0, State::Callback) => {
                let kind = callback_kind(lp.now.kind);
                format!(
                    "nothing keeps {subject} alive: it ends when its {kind} callback returns, which has run for {since}."
                )
            }
            (0, _) => format!("nothing keeps {subject} alive: it is about to end."),
            _ => format!("{subject} stays alive for {reasons_text}:"),
        };
        let mut letters = line.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(letters).collect()
    }

    /// The requests of the loop, if there are any.
    fn requests(&self, handles: &[Handle]) -> Option<String> {
        let kinds = by_kind(self.lp, handles);
        let number: u64 = kinds.iter().map(|(_, number)| number).sum();
        if number == 0 {
            return None;
        }
        let parts = kinds.iter().map(|(kind, of)| format!("{of} {kind}"));
        let mut text =
            count(number, "request") + " in progress: " + &list(&parts.collect::<Vec<_>>());
        if let Some(oldest) = self.lp.pending.first() {
            let waits = duration(self.snapshot.taken_ns.saturating_sub(oldest.queued_ns));
            let kind = REQUEST_KINDS[oldest.kind];
            let members = &self.snapshot.pool.members;
            let is_running = |of: &Thread| of.running.is_some() && of.token == oldest.token;
            let state = match members.iter().find(|of| is_running(of)) {
                Some(thread) => {
                    let runs = self.snapshot.taken_ns.saturating_sub(thread.since_ns);
                    format!("runs in thread {} for {}", thread.tid, duration(runs))
                }
                None if is_queued(&self.snapshot.pool, oldest) => "waits for a thread".to_owned(),
                None => "is with the kernel, or waits for the loop".to_owned(),
            };
            let _ = write!(
                text,
                "; the oldest of the thread pool's, {kind}, was made {waits} ago and {state}"
            );
        }
        Some(text)
    }
}

/// Whether a request that no thread runs waits for one: others have run, or are on the kernel's ring.
fn is_queued(pool: &Pool, request: &Pending) -> bool {
    let oldest = pool.oldest.map(|(at_ns, _)| at_ns);
    pool.queued[request.kind] > 0 && oldest.is_none_or(|at_ns| at_ns <= request.queued_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_waits_for_a_thread_if_the_pool_has_it_in_its_queue() {
        let kind = 2;
        let request = |queued_ns| Pending {
            token: 1,
            queued_ns,
            kind,
        };
        let mut pool = Pool::default();
        assert!(!is_queued(&pool, &request(5)), "nothing waits");
        pool.queued[kind] = 1;
        pool.oldest = Some((5, kind));
        assert!(is_queued(&pool, &request(5)));
        assert!(is_queued(&pool, &request(6)));
        assert!(!is_queued(&pool, &request(4)), "it has left the queue");
        pool.oldest = Some((5, 3));
        pool.queued = [0; blacklight_record::layout::REQUESTS];
        pool.queued[3] = 1;
        assert!(!is_queued(&pool, &request(5)), "another kind waits");
    }
}
