//! The recorder and a probe hear of the same loop: what the record counts and adds up must be what
//! the probe has seen. Programs decided by a seed run loops with nested runs, runs that are given
//! up, and callbacks that take their time.

#[path = "support/random.rs"]
mod random;

use blacklight_engine::{
    Boundary, Called, Engine, Event, Front, Job, Key, Mechanism, Mode, Phase, Probe, Run, Token,
    WorkKind,
};
use blacklight_record::What;
use blacklight_record::layout::{CALLBACK_KINDS, KINDS, PHASE_COUNT, State};
use blacklight_record::read::{Loop, Reader};
use random::Random;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

type Log = Rc<RefCell<Vec<(u64, Boundary)>>>;

#[derive(Debug)]
struct Spy(Log);

impl Probe for Spy {
    fn cross(&mut self, at_ns: u64, boundary: Boundary) {
        self.0.borrow_mut().push((at_ns, boundary));
    }
}

const FRONT: Front = Front {
    is_library: false,
    callback_of: |called| match called {
        Called::By(event) => 0x1000 + event.token().0 * 16,
        Called::For(_, token) => token.0,
    },
};

/// Lets tests take turns: a process has one record.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    static SETTING: Once = Once::new();
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    SETTING.call_once(|| {
        // SAFETY: the tests take turns, and nobody else uses the environment.
        unsafe { std::env::set_var("BLACKLIGHT_RECORD", "1") };
    });
    guard
}

/// A loop that is recorded and observed.
fn observed(mechanism: Mechanism) -> (Engine, Log) {
    let mut engine = Engine::new(Some(mechanism)).unwrap();
    let log = Log::default();
    engine.set_probe(Some(Box::new(Spy(log.clone()))));
    engine.record(FRONT, "observed");
    (engine, log)
}

/// What the record says of the only loop.
fn recorded() -> (Reader, Loop) {
    let reader = Reader::open(std::process::id()).unwrap();
    let mut loops = reader.snapshot().unwrap().loops;
    assert_eq!(loops.len(), 1);
    (reader, loops.remove(0))
}

fn kind_of(event: &Event) -> usize {
    let name = match event {
        Event::Timer(_) => "timer",
        Event::Idle(_) => "idle",
        Event::Prepare(_) => "prepare",
        Event::Check(_) => "check",
        Event::Async(_) => "async",
        Event::Work(..) => "work",
        Event::Closed(_) => "close",
        event => panic!("{event:?}"),
    };
    let found = CALLBACK_KINDS.iter().position(|kind| *kind == name);
    found.expect("there is such a kind")
}

/// What follows from the boundaries.
#[derive(Default, Debug)]
struct Account {
    /// How many callbacks of each phase and kind have ended, and how long they took.
    by_phase: [(u64, u64); PHASE_COUNT],
    by_kind: [(u64, u64); KINDS],
    time_ns: [u64; 5],
    sleeps: u64,
    delays: u64,
    runs: u64,
    callbacks: u64,
    ended: Vec<(u64, u64, Token, u64)>,
}

impl Account {
    fn ends(&mut self, now_ns: u64, callback: (u64, Phase, u64, Event)) {
        let (began_ns, phase, turn, event) = callback;
        let took_ns = now_ns - began_ns;
        for slot in [
            &mut self.by_phase[phase as usize],
            &mut self.by_kind[kind_of(&event)],
        ] {
            slot.0 += 1;
            slot.1 += took_ns;
        }
        self.callbacks += 1;
        self.ended.push((began_ns, took_ns, event.token(), turn));
    }

    fn of(log: &[(u64, Boundary)], begun_ns: u64) -> Account {
        let mut account = Account::default();
        // Runs (`None`) and callbacks that have begun and not ended.
        let mut open: Vec<Option<(u64, Phase, u64, Event)>> = Vec::new();
        let (mut state, mut since_ns) = (State::Outside, begun_ns);
        for &(at_ns, boundary) in log {
            account.time_ns[state as usize] += at_ns - since_ns;
            since_ns = at_ns;
            state = match boundary {
                Boundary::RunBegins(_) => {
                    open.push(None);
                    State::Working
                }
                Boundary::CallbackBegins { phase, turn, event } => {
                    open.push(Some((at_ns, phase, turn, event)));
                    let waits = phase == Phase::Poll || matches!(event, Event::Timer(_));
                    account.delays += u64::from(waits);
                    State::Callback
                }
                Boundary::CallbackEnds => {
                    let ended = open.pop().flatten().expect("a callback is open");
                    account.ends(at_ns, ended);
                    State::Working
                }
                Boundary::RunEnds => {
                    while let Some(Some(ended)) = open.pop() {
                        account.ends(at_ns, ended);
                    }
                    account.runs += 1;
                    match open.last() {
                        Some(_) => State::Callback,
                        None => State::Outside,
                    }
                }
                Boundary::SpinBegins => State::Spinning,
                Boundary::SleepBegins { .. } => {
                    account.sleeps += 1;
                    State::Asleep
                }
                Boundary::SpinEnds { .. } | Boundary::SleepEnds => State::Working,
            };
        }
        assert!(open.is_empty() && state == State::Outside);
        account
    }
}

fn compare(log: &Log, turns: u64) {
    let (reader, lp) = recorded();
    let account = Account::of(&log.borrow(), lp.made_ns);
    assert_eq!(lp.time_ns, account.time_ns, "time in each state");
    let sums = |of: &[blacklight_record::read::Histogram]| -> Vec<(u64, u64)> {
        of.iter().map(|of| (of.count(), of.sum_ns)).collect()
    };
    assert_eq!(sums(&lp.by_phase), account.by_phase);
    assert_eq!(sums(&lp.by_kind), account.by_kind);
    assert_eq!(lp.callbacks, account.callbacks);
    assert_eq!(lp.sleep.count(), account.sleeps);
    assert_eq!(lp.sleep.sum_ns, account.time_ns[State::Asleep as usize]);
    assert_eq!(lp.delay.count(), account.delays);
    assert_eq!((lp.turns, lp.turn.count()), (turns, turns));
    // Waiting apart, turns are all that runs consist of; runs that have not polled have no turn.
    let busy_ns =
        account.time_ns[State::Working as usize] + account.time_ns[State::Callback as usize];
    assert!(lp.turn.sum_ns <= busy_ns);
    let events = reader.events(lp.ring(), 0).unwrap();
    let callbacks = events
        .events
        .iter()
        .filter(|event| event.what == What::Callback);
    let told: Vec<_> = callbacks
        .map(|of| (of.at_ns, of.took_ns, Token(of.token), u64::from(of.turn)))
        .collect();
    let last = account.ended.len() - told.len();
    assert_eq!(told, account.ended[last..]);
    let runs = events.events.iter().filter(|event| event.what == What::Run);
    assert!(events.lost > 0 || runs.count() as u64 == account.runs);
    let costs: u64 = lp.costly.iter().map(|costly| costly.count).sum();
    assert!(costs <= account.callbacks);
}

/// A program: handles that are started and stopped by chance, and time that passes by chance.
struct Program {
    engine: Engine,
    random: Random,
    timers: Vec<Key>,
    watchers: Vec<Key>,
    asyncs: Vec<(Key, blacklight_engine::Ticket)>,
    nested: u32,
    given_up: u32,
    is_simulated: bool,
}

impl Program {
    fn new(mut engine: Engine, seed: u64, is_simulated: bool) -> Program {
        let timers = (0..4).map(|token| engine.timer_init(Token(token)).unwrap());
        let timers = timers.collect();
        let watchers = vec![
            engine.idle_init(Token(5)).unwrap(),
            engine.prepare_init(Token(6)).unwrap(),
            engine.check_init(Token(7)).unwrap(),
        ];
        let asyncs = vec![engine.async_init(Token(8)).unwrap()];
        // A run for one event always has something to wait for.
        let guard = engine.timer_init(Token(10)).unwrap();
        engine.timer_start(guard, 1, 1).unwrap();
        Program {
            engine,
            random: Random::new(seed),
            timers,
            watchers,
            asyncs,
            nested: 0,
            given_up: 0,
            is_simulated,
        }
    }

    fn act(&mut self) {
        match self.random.below(9) {
            0..3 => {
                let timer = self.random.pick(&self.timers);
                let (timeout, repeat) = (self.random.below(3), self.random.below(2));
                self.engine.timer_start(timer, timeout, repeat).unwrap();
            }
            3 => {
                let timer = self.random.pick(&self.timers);
                self.engine.timer_stop(timer).unwrap();
            }
            4 => {
                let watcher = self.random.pick(&self.watchers);
                self.engine.loop_watcher_start(watcher).unwrap();
            }
            5 => {
                let watcher = self.random.pick(&self.watchers);
                self.engine.loop_watcher_stop(watcher).unwrap();
            }
            6 => {
                let (_, ticket) = self.asyncs[0];
                self.engine.mailbox().send(ticket);
            }
            7 if !self.is_simulated => {
                let job = Job::new(|| ());
                let kind = self.random.pick(&[WorkKind::Cpu, WorkKind::SlowIo]);
                self.engine.work_submit(Token(9), kind, job).unwrap();
            }
            _ => {
                let timer = self.engine.timer_init(Token(4)).unwrap();
                self.engine.timer_start(timer, 0, 0).unwrap();
                self.engine.close(timer).unwrap();
            }
        }
    }

    /// Time passes.
    fn pass(&mut self) {
        let ns = self.random.below(700_000);
        if let Some(sim) = self.engine.sim() {
            sim.advance(ns);
        }
    }

    /// Runs the loop; `false` if a run inside was given up with all around it.
    fn run(&mut self, mode: Mode, depth: u32) -> bool {
        let mut run = Run::new(mode);
        while self.engine.next(&mut run).is_some() {
            self.pass();
            if self.random.chance(1, 3) {
                self.act();
            }
            if depth < 4 && self.random.chance(1, 15) {
                self.nested += 1;
                if !self.run(self.inner_mode(), depth + 1) && self.random.chance(1, 2) {
                    self.engine.give_up_run();
                    return false;
                }
            }
            if self.random.chance(1, 200) {
                self.given_up += 1;
                self.engine.give_up_run();
                return false;
            }
            if self.random.chance(1, 10) {
                self.engine.end_callback(&mut run);
                self.pass();
            }
        }
        true
    }

    fn inner_mode(&self) -> Mode {
        Mode::NoWait
    }
}

fn run_programs(mechanism: impl Fn(u64) -> Mechanism, is_simulated: bool) {
    let _alone = alone();
    let (mut nested, mut given_up) = (0, 0);
    for seed in 0..40 {
        let (engine, log) = observed(mechanism(seed));
        let mut program = Program::new(engine, seed, is_simulated);
        for _ in 0..120 {
            program.act();
            program.pass();
            let mode = program.random.pick(&[Mode::Once, Mode::NoWait]);
            program.run(mode, 0);
        }
        let turns = program.engine.metrics().loop_count;
        println!("seed {seed}: {turns} turns");
        compare(&log, turns);
        nested += program.nested;
        given_up += program.given_up;
        if !is_simulated {
            // Requests that are still in progress end before the next program counts.
            while program.engine.active_requests() > 0 {
                let mut run = Run::new(Mode::NoWait);
                while program.engine.next(&mut run).is_some() {}
            }
        }
    }
    assert!(
        nested > 100 && given_up > 20,
        "{nested} nested, {given_up} given up"
    );
}

#[test]
fn the_record_adds_up_to_what_a_probe_sees_by_a_simulated_clock() {
    run_programs(Mechanism::Sim, true);
}

#[test]
fn the_record_adds_up_to_what_a_probe_sees() {
    run_programs(|_| Mechanism::Epoll, false);
    run_programs(|_| Mechanism::Poll, false);
}

/// What delay means: a timer's since it was due, and a poll's since the poller returned.
#[test]
fn delay_is_the_time_that_a_callback_waits_in_the_loop() {
    let _alone = alone();
    let (mut engine, _log) = observed(Mechanism::Sim(1));
    for token in 0..2 {
        let timer = engine.timer_init(Token(token)).unwrap();
        engine.timer_start(timer, 2 + token, 0).unwrap();
    }
    let (_, ticket) = engine.async_init(Token(5)).unwrap();
    let (_, other) = engine.async_init(Token(6)).unwrap();
    let mut run = Run::new(Mode::Once);
    // The first timer takes 5 ms, so that the second, which was due 1 ms after it, waits for 4 ms.
    assert_eq!(engine.next(&mut run), Some(Event::Timer(Token(0))));
    engine.sim().unwrap().advance(5_000_000);
    while engine.next(&mut run).is_some() {}
    let mut run = Run::new(Mode::NoWait);
    assert_eq!(engine.next(&mut run), Some(Event::Timer(Token(1))));
    while engine.next(&mut run).is_some() {}
    let (_, lp) = recorded();
    assert_eq!(
        (lp.delay.count(), lp.delay.sum_ns, lp.delay.longest_ns),
        (2, 4_000_000, 4_000_000)
    );
    // Two sends come with one poll: the second waits while the first is called back.
    engine.mailbox().send(ticket);
    engine.mailbox().send(other);
    let mut run = Run::new(Mode::NoWait);
    while engine.next(&mut run).is_some() {
        engine.sim().unwrap().advance(300_000);
    }
    let (_, lp) = recorded();
    assert_eq!((lp.delay.count(), lp.delay.sum_ns), (4, 4_300_000));
}

/// The first and the last call for a handle in each walk.
type Walks = Vec<(Instant, Instant)>;

std::thread_local! {
    static WALKS: RefCell<Walks> = const { RefCell::new(Vec::new()) };
    static IS_OTHER_WALK: Cell<bool> = const { Cell::new(true) };
}

/// Notes when handles are asked for, which happens in walks only.
const CLOCKED: Front = Front {
    is_library: false,
    callback_of: |called| {
        if let Called::For(..) = called {
            let now = Instant::now();
            WALKS.with_borrow_mut(|walks| match walks.last_mut() {
                Some(walk) if !IS_OTHER_WALK.get() => walk.1 = now,
                _ => walks.push((now, now)),
            });
            IS_OTHER_WALK.set(false);
        }
        0
    },
};

/// Turns that would sleep if there were nothing to do, with ten thousand active handles: the walks
/// over them take a five-hundredth of the time. The share is a matter of the recorder's own accounts,
/// and not of how fast the machine is: it begins no walk before the last one is paid for.
#[test]
fn walks_over_many_handles_take_their_share_of_the_time() {
    let _alone = alone();
    let mut engine = Engine::new(Some(Mechanism::Epoll)).unwrap();
    for token in 0..10_000 {
        let timer = engine.timer_init(Token(token)).unwrap();
        engine.timer_start(timer, 1 << 40, 0).unwrap();
    }
    let (_, ticket) = engine.async_init(Token(10_000)).unwrap();
    let begun = Instant::now();
    engine.record(CLOCKED, "many");
    for _ in 0..5_000 {
        engine.mailbox().send(ticket);
        let mut run = Run::new(Mode::Once);
        while engine.next(&mut run).is_some() {}
        IS_OTHER_WALK.set(true);
    }
    let took = begun.elapsed();
    // One that took longer than this was held up by the system, and the recorder knows it.
    let longest = Duration::from_millis(50);
    let walks = WALKS.take();
    let walks: Vec<_> = (walks.iter().map(|(from, to)| (*to - *from).min(longest))).collect();
    let (last, earlier) = walks.split_last().expect("there was a walk");
    let (spent, saved) = (earlier.iter().sum::<Duration>(), Duration::from_millis(5));
    println!("{} walks, the last for {last:?}", walks.len());
    assert!(spent <= took / 500 + saved, "{spent:?} of {took:?}");
    assert_eq!(recorded().1.handles_lost, 0);
}

/// A reader takes the rings of threads before those of loops, so what a thread does has been submitted.
#[test]
fn a_job_finds_its_own_submission_in_the_record() {
    let _alone = alone();
    let mut engine = Engine::new(None).unwrap();
    engine.record(FRONT, "submits");
    let ring = recorded().1.ring();
    for token in 0..500 {
        let found = Arc::new(AtomicBool::new(false));
        let finds = found.clone();
        let job = Job::new(move || {
            let reader = Reader::open(std::process::id()).unwrap();
            let events = reader.events(ring, 0).unwrap().events;
            let mut submitted = events.iter().filter(|event| event.what == What::Submit);
            finds.store(submitted.any(|event| event.token == token), Relaxed);
        });
        engine
            .work_submit(Token(token), WorkKind::Cpu, job)
            .unwrap();
        let mut run = Run::new(Mode::Default);
        while engine.next(&mut run).is_some() {}
        assert!(found.load(Relaxed), "request {token}");
    }
}

/// The files in a directory of records.
fn records(directory: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(directory.join("blacklight"));
    entries.map_or(0, Iterator::count)
}

/// This program starts itself once more, as the one that ends.
#[test]
fn a_rust_program_that_ends_removes_its_record() {
    const PLACE: &str = "XDG_RUNTIME_DIR";
    const ROLE: &str = "BLACKLIGHT_TEST_ROLE";
    if std::env::var_os(ROLE).is_some() {
        let place = std::env::var_os(PLACE).unwrap();
        let mut engine = Engine::new(None).unwrap();
        engine.record(FRONT, "ends");
        assert_eq!(records(place.as_ref()), 1);
        return;
    }
    let place = format!("/dev/shm/blacklight-test-{}-ends", std::process::id());
    // Numbers of processes are used again, and one that was killed has left its own.
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir(&place).unwrap();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_rust_program_that_ends_removes_its_record"])
        .env(PLACE, &place)
        .env(ROLE, "ends")
        .output()
        .unwrap();
    let left = records(place.as_ref());
    std::fs::remove_dir_all(&place).unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
    assert_eq!(left, 0);
}
