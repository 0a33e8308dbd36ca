//! The answers for made-up spans.

use super::*;
use crate::names::{Doing, StallStack};
use crate::span::{Member, PoolSpan};
use crate::wakes::Wakes;
use blacklight_record::read::{Histogram, Now};

const MS: u64 = 1_000_000;
const UNTIL: u64 = 100_000 * MS;

/// Names code after its address, in a way that can be told from a number.
struct Made;

impl Names for Made {
    fn name(&mut self, address: u64) -> String {
        format!("f{address}")
    }
    fn sample(&mut self, _tid: u32) -> Option<StallStack> {
        None
    }
}

fn now(state: State, since_ns: u64) -> Now {
    Now {
        state,
        since_ns,
        phase: 0,
        kind: 1,
        callback: 7,
        token: 0,
        turn: 0,
        until_ns: 0,
        is_torn: false,
    }
}

/// Times as a histogram.
fn histogram(times: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    for ns in times {
        histogram.buckets[64 - ns.leading_zeros() as usize] += 1;
        histogram.sum_ns += ns;
        histogram.longest_ns = histogram.longest_ns.max(*ns);
    }
    histogram
}

/// A loop that sleeps for a second but for `busy_ms` milliseconds.
fn lp(id: u32, busy_ms: u64) -> LoopSpan {
    LoopSpan {
        id,
        name: String::new(),
        poller: "epoll".into(),
        tid: 100 + id,
        now: now(State::Asleep, UNTIL),
        time_ns: [0, 0, busy_ms * MS, (1_000 - busy_ms) * MS, 0],
        turns: 10,
        callbacks: 10,
        is_unused: false,
        requests: 0,
        active: 0,
        handles_lost: 0,
        delay: Histogram::default(),
        late: Histogram::default(),
        by_kind: [Histogram::default(); blacklight_record::layout::KINDS],
        costly: Vec::new(),
        walked_ns: UNTIL,
        wakes: None,
    }
}

fn span(loops: Vec<LoopSpan>) -> Span {
    Span {
        until_ns: UNTIL,
        took_ns: 1_000 * MS,
        loops,
        ..Span::default()
    }
}

fn stall(id: u32, took_ms: u64, ended_ms_ago: u64) -> Stall {
    Stall {
        loop_id: id,
        phase: 0,
        kind: 1,
        address: 7,
        began_ns: UNTIL - (ended_ms_ago + took_ms) * MS,
        took_ns: took_ms * MS,
        is_over: ended_ms_ago > 0,
        samples: Vec::new(),
        refusal: None,
    }
}

fn ask(span: &Span, stalls: &[Stall], handles: Vec<(u32, Vec<Handle>)>) -> Vec<Answer> {
    let facts = Facts {
        span,
        handles: &handles.into_iter().collect(),
        stalls,
        work: None,
        descriptors: &Descriptors::of(0),
        limit_ns: 100 * MS,
    };
    answers(&facts, &mut Made)
}

#[track_caller]
fn says(answer: &Answer, verdict: Verdict, sentence: &str) {
    assert_eq!(answer.sentence, sentence);
    assert_eq!(answer.verdict, verdict);
}

fn handle(kind: &'static str) -> Handle {
    Handle {
        kind,
        is_active: true,
        is_referenced: true,
        made_ns: UNTIL - 5_000 * MS,
        callback: 9,
        ..Handle::default()
    }
}

#[test]
fn the_questions_are_answered_in_their_order() {
    let answers = ask(&span(vec![lp(1, 10)]), &[], vec![]);
    let questions: Vec<&str> = answers.iter().map(|of| of.question.word()).collect();
    let order = ["blocked", "pool", "alive", "time", "headroom", "machine"];
    assert_eq!(questions, order);
    assert!(answers.iter().all(|of| of.sentence.ends_with('.')));
}

#[test]
fn a_process_without_loops_is_no_mistake() {
    let answers = ask(&span(vec![]), &[], vec![]);
    says(
        &answers[0],
        Verdict::Notice,
        "The process has no loop open.",
    );
    says(&answers[1], Verdict::Fine, "The thread pool is not in use.");
}

#[test]
fn a_loop_that_has_not_begun_is_no_mistake() {
    let mut new = lp(1, 0);
    new.is_unused = true;
    let answers = ask(&span(vec![new]), &[], vec![]);
    for question in [0, 2] {
        let said = "The program has not run a loop yet.";
        says(&answers[question], Verdict::Notice, said);
    }
}

#[test]
fn a_callback_that_runs_is_named_with_its_stack() {
    let mut blocked = stall(1, 1_200, 0);
    blocked.samples.push(StallStack {
        addresses: vec![1, 2, 3, 4],
        doing: Doing::Waiting {
            call: "read".into(),
        },
    });
    let answers = ask(&span(vec![lp(1, 10)]), &[blocked], vec![]);
    let said = "The loop is blocked now, for 1.2 s so far: waiting in read in f1 ← f2 ← f3, called by a timer callback (f7).";
    says(&answers[0], Verdict::Bad, said);
    assert!(answers[0].evidence[0].starts_with("1.2 s, now: the loop, waiting in read in f1"));
}

#[test]
fn a_stall_that_is_over_stays_news_for_a_while() {
    let stalls = [
        stall(2, 340, 2_000),
        stall(1, 150, 4_000),
        stall(1, 900, 20_000),
    ];
    let answers = ask(&span(vec![lp(1, 10), lp(2, 10)]), &stalls, vec![]);
    let said = "Loop 2 was blocked for 340 ms, 2 s ago: a timer callback (f7). In the last 10 s 2 callbacks took over 100 ms.";
    says(&answers[0], Verdict::Bad, said);
    let evidence = [
        "340 ms, 2 s ago: loop 2, a timer callback (f7)",
        "2 times, up to 900 ms, the last 4 s ago: loop 1, a timer callback (f7)",
    ];
    assert_eq!(answers[0].evidence, evidence);
}

#[test]
fn a_stall_that_was_seen_says_more_than_a_longer_one() {
    let mut seen = stall(1, 300, 1_000);
    seen.samples.push(StallStack {
        addresses: vec![1],
        doing: Doing::Computing,
    });
    let answers = ask(
        &span(vec![lp(1, 10)]),
        &[seen, stall(1, 350, 3_000)],
        vec![],
    );
    let said = "The loop was blocked for 300 ms, 1 s ago: computing in f1, called by a timer callback (f7). In the last 10 s 2 callbacks took over 100 ms.";
    says(&answers[0], Verdict::Bad, said);
}

#[test]
fn an_old_stall_is_only_mentioned() {
    let mut quiet = lp(1, 10);
    quiet.by_kind[1] = histogram(&[3 * MS]);
    let answers = ask(&span(vec![quiet]), &[stall(1, 900, 60_000)], vec![]);
    let said = "Nothing blocks the loop: no callback took longer than 3 ms. Before that: 1 stall, the longest 900 ms, 60 s ago: a timer callback (f7).";
    says(&answers[0], Verdict::Notice, said);
}

#[test]
fn nothing_blocks_a_loop_that_sleeps() {
    let mut idle = lp(1, 0);
    idle.callbacks = 0;
    let answers = ask(&span(vec![idle.clone()]), &[], vec![]);
    let said = "Nothing blocks the loop; no callback ran in the last 1 s.";
    says(&answers[0], Verdict::Fine, said);
    idle.now = now(State::Outside, UNTIL - 3_000 * MS);
    idle.active = 1;
    let answers = ask(&span(vec![idle]), &[], vec![]);
    let said = "The loop has not been run for 3 s: its thread is outside of it.";
    says(&answers[0], Verdict::Notice, said);
}

/// A pool of four threads with so many requests running and waiting.
fn pool(running: &[(usize, u32)], queued: &[(usize, u32)], oldest: Option<(u64, usize)>) -> Span {
    let mut pool = PoolSpan {
        threads: 4,
        slow_limit: 2,
        oldest,
        ..PoolSpan::default()
    };
    for (kind, number) in running {
        pool.running[*kind] = *number;
        for at in 0..(*number).min(8) {
            pool.members.push(Member {
                tid: at,
                running: Some(*kind),
                for_ns: 1_200 * MS / u64::from(at + 1),
            });
        }
    }
    for (kind, number) in queued {
        pool.queued[*kind] = *number;
    }
    Span {
        pool,
        ..span(vec![lp(1, 10)])
    }
}

#[test]
fn a_starved_pool_is_explained() {
    let starved = pool(&[(1, 4)], &[(3, 10)], Some((830 * MS, 3)));
    let said = "The thread pool is starved: all 4 threads run (4 work requests, the longest for 1.2 s), 10 getaddrinfo requests wait, the oldest for 830 ms. Raise UV_THREADPOOL_SIZE (now 4) or split or move the long work.";
    says(&ask(&starved, &[], vec![])[1], Verdict::Bad, said);
}

#[test]
fn a_full_pool_is_not_starved_yet() {
    let full = pool(&[(2, 4)], &[(2, 1)], Some((MS, 2)));
    let said = "The thread pool is full: all 4 threads run (4 fs requests, the longest for 1.2 s), 1 fs request waits for 1 ms.";
    says(&ask(&full, &[], vec![])[1], Verdict::Fine, said);
}

#[test]
fn lookups_starve_at_their_own_limit() {
    let starved = pool(&[(3, 2)], &[(3, 5), (4, 1)], Some((2_000 * MS, 3)));
    let said = "The thread pool is starved of name lookups: getaddrinfo and getnameinfo may have 2 of its 4 threads, 2 run and 5 getaddrinfo and 1 getnameinfo requests wait, the oldest for 2 s. Raise UV_THREADPOOL_SIZE (now 4; half may look up names) or keep looked-up names.";
    says(&ask(&starved, &[], vec![])[1], Verdict::Bad, said);
}

#[test]
fn a_pool_with_free_threads_keeps_up() {
    let mut free = pool(&[(2, 1)], &[], None);
    free.pool.wait[2] = histogram(&[40_000]);
    free.pool.completed[2] = 1;
    let said = "The thread pool keeps up: 1 of 4 runs 1 fs request, nothing waits; requests wait up to 40 µs for a thread (p99).";
    let answers = ask(&free, &[], vec![]);
    says(&answers[1], Verdict::Fine, said);
    assert_eq!(
        answers[1].evidence,
        [
            "4 threads (UV_THREADPOOL_SIZE), 2 of them for name lookups at most",
            "fs: 1 ended; requests waited up to 40 µs (p99)"
        ]
    );
    free.pool.wait[2] = histogram(&[400 * MS]);
    let answer = &ask(&free, &[], vec![])[1];
    assert_eq!(answer.verdict, Verdict::Bad);
    assert!(
        answer.sentence.contains("was starved"),
        "{}",
        answer.sentence
    );
}

#[test]
fn what_keeps_the_loop_alive_is_counted() {
    let mut server = handle("tcp");
    (server.is_listening, server.number) = (true, Some(12));
    let mut timer = handle("timer");
    (timer.repeat_ns, timer.due_ns) = (500 * MS, UNTIL + 20 * MS);
    let mut unreferenced = handle("signal");
    unreferenced.is_referenced = false;
    let mut held = lp(1, 10);
    (held.active, held.requests) = (3, 2);
    let handles = vec![(1, vec![server, timer.clone(), timer, unreferenced])];
    let answer = &ask(&span(vec![held]), &[], handles)[2];
    let said = "The loop stays alive for 1 TCP server, 2 repeating timers (every 500 ms) and 2 requests in progress.";
    says(answer, Verdict::Fine, said);
    assert_eq!(answer.evidence[0], "1 TCP server, made 5 s ago, calls `f9`");
    let timer = "2 repeating timers, every 500 ms, the first in 20 ms, made 5 s ago, calls `f9`";
    assert_eq!(answer.evidence[1], timer);
}

#[test]
fn handles_that_are_not_named_are_counted() {
    let kinds = ["timer", "signal", "udp", "idle", "idle", "async"];
    let handles = vec![(1, kinds.map(handle).to_vec())];
    let mut held = lp(1, 10);
    held.active = 6;
    let answer = &ask(&span(vec![held]), &[], handles)[2];
    let sentence = &answer.sentence;
    assert!(sentence.ends_with(" and 3 other handles."), "{sentence}");
}

#[test]
fn a_callback_that_has_not_returned_keeps_its_loop() {
    let mut held = lp(1, 10);
    held.active = 1;
    let mut busy = lp(2, 10);
    busy.now = now(State::Callback, UNTIL - MS);
    let handles = vec![(1, vec![handle("timer")])];
    let answer = &ask(&span(vec![held, busy]), &[], handles)[2];
    let said = "Loop 2 stays alive for a timer callback that has not returned. One other loop is kept alive too.";
    says(answer, Verdict::Fine, said);
}

#[test]
fn handles_without_room_in_the_record_are_counted_too() {
    let mut held = lp(3, 10);
    (held.active, held.handles_lost) = (70, 70);
    let loops = vec![lp(1, 10), held];
    let answer = &ask(&span(loops), &[], vec![])[2];
    let said = "Loop 3 stays alive for 70 active handles. Nothing keeps any other loop alive.";
    says(answer, Verdict::Fine, said);
    let answer = &ask(&span(vec![lp(1, 10)]), &[], vec![])[2];
    assert_eq!(answer.verdict, Verdict::Notice);
}

#[test]
fn shares_and_delays_say_where_the_time_goes() {
    let mut busy = lp(1, 370);
    busy.time_ns = [50 * MS, 30 * MS, 340 * MS, 580 * MS, 0];
    busy.delay = histogram(&[MS, MS, 20 * MS]);
    busy.by_kind[9] = histogram(&[170 * MS, 170 * MS]);
    let answers = ask(&span(vec![busy]), &[], vec![]);
    let said = "Time goes to callbacks 34 %, the loop itself 3 %, asleep 58 % and outside of the loop 5 %; ready callbacks wait up to 1 ms (p50), 20 ms (p99).";
    says(&answers[3], Verdict::Notice, said);
    assert_eq!(answers[3].evidence.len(), 1);
    let said = "The loop is busy 37 % of the time: room for 2 times as much.";
    says(&answers[4], Verdict::Fine, said);
}

#[test]
fn of_fifty_loops_the_busiest_is_named() {
    let mut loops: Vec<LoopSpan> = (1..=50).map(|id| lp(id, 10)).collect();
    loops[6].time_ns = [0, 0, 950 * MS, 50 * MS, 0];
    loops[6].name = "worker".into();
    loops[8].delay = histogram(&[300 * MS]);
    let answers = ask(&span(loops), &[], vec![]);
    let said = "The busiest of 50 loops, loop 7 (worker), is busy 95 % of the time: no room left. All together: 3 %.";
    says(&answers[4], Verdict::Bad, said);
    assert_eq!(answers[3].verdict, Verdict::Bad);
    let said = &answers[3].sentence;
    assert!(said.starts_with("Loop 9: callbacks 1 %"), "{said}");
}

#[test]
fn what_wakes_a_loop_is_told_with_its_settings() {
    let mut idle = lp(1, 0);
    let wakes = |count, most| Wakes {
        count,
        over_ns: 10_000 * MS,
        address: 7,
        kind: 1,
        most,
    };
    for (wakes, said) in [
        (
            wakes(480, 470),
            "woken 48 times a second, mostly by a timer callback (f7)",
        ),
        (
            wakes(2, 2),
            "woken 2 times in 10 s, only by a timer callback (f7)",
        ),
        (
            wakes(1, 1),
            "woken 1 time in 10 s, only by a timer callback (f7)",
        ),
    ] {
        idle.wakes = Some(wakes);
        let answer = &ask(&span(vec![idle.clone()]), &[], vec![])[4];
        let busy = "loop 1 is busy 0 %, polls by epoll";
        assert_eq!(answer.evidence, [busy, &format!("loop 1 is {said}")]);
    }
}

#[test]
fn a_stall_without_a_stack_says_why() {
    let mut blind = stall(1, 300, 0);
    blind.refusal = Some("process 4 is already traced by process 5".into());
    let answer = &ask(&span(vec![lp(1, 300)]), &[blind], vec![])[0];
    let said = "The loop is blocked now, for 300 ms so far: a timer callback (f7), without a stack: process 4 is already traced by process 5.";
    says(answer, Verdict::Bad, said);
}

#[test]
fn an_old_list_of_handles_is_said_to_be_old() {
    let mut kept = lp(1, 10);
    (kept.active, kept.walked_ns) = (1, UNTIL - 12_000 * MS);
    let said = |lp: &LoopSpan| {
        let handles = vec![(1, vec![handle("timer")])];
        ask(&span(vec![lp.clone()]), &[], handles)[2]
            .sentence
            .clone()
    };
    let old = "The loop stays alive for 1 timer. Its handles are as of 12 s ago.";
    assert_eq!(said(&kept), old);
    // What was listed before a sleep is so until its end.
    kept.now.since_ns = kept.walked_ns;
    assert_eq!(said(&kept), "The loop stays alive for 1 timer.");
}

#[test]
fn sleeps_that_end_late_are_the_machines() {
    let mut late = lp(1, 10);
    late.late = histogram(&[MS, 8 * MS]);
    let answers = ask(&span(vec![late.clone()]), &[], vec![]);
    let said = "The machine wakes the loop late: by up to 8 ms (p99 of 2 sleeps). Other work has the processors.";
    says(&answers[5], Verdict::Notice, said);
    late.late = histogram(&[MS]);
    let answers = ask(&span(vec![late]), &[], vec![]);
    assert_eq!(answers[5].verdict, Verdict::Fine);
}

#[test]
fn numbers_without_sense_do_no_harm() {
    let mut odd = lp(1, 10);
    odd.now.since_ns = u64::MAX;
    odd.delay.buckets = [u64::MAX; blacklight_record::layout::BUCKETS];
    odd.active = u32::MAX / 2;
    let mut strange = pool(&[(0, u32::MAX)], &[(7, u32::MAX)], Some((u64::MAX, 99)));
    strange.loops = vec![odd];
    let mut stall = stall(9, 100, 10);
    (stall.phase, stall.kind, stall.address) = (99, 99, 0);
    assert_eq!(ask(&strange, &[stall], vec![]).len(), 6);
}
