//! A random program, run on the engine and on the model side by side.
//!
//! After every step and every operation the two are compared. Where the rules leave
//! something open there are several models, one for each way in which it may have gone;
//! those that turn out to be wrong are dropped, and one must always be left.

use crate::coverage::Coverage;
use crate::ops::{FDS, Op, WATCHDOG, some_favourite, some_op};
use crate::picture::Picture;
use crate::random::Random;
use crate::rules::{Life, Model, Phase};
use crate::turn::Seen;
use crate::watch::MOMENT_NS;
use crate::world::Act;
use blacklight_engine::{
    Action, Engine, Errno, Event, Faults, HandleKind, Key, Mechanism, Mode, Run, Sender, Sim, Token,
};

/// An entry of the trace, which is printed after a failure.
#[derive(Debug)]
#[allow(dead_code, reason = "the trace is for readers")]
enum Entry {
    Did(Op, Result<(), Errno>),
    Run(Mode),
    GivenUp,
    Event(Event),
    Visited(Token),
    WalkOver,
    RunOver { alive: bool },
}

/// Walks are started inside walks, but no deeper than that.
const DEEPEST_WALK: usize = 2;

/// Callbacks run the loop again, but no deeper than that.
const DEEPEST_RUN: usize = 3;

const MODES: [Mode; 3] = [Mode::Default, Mode::Once, Mode::NoWait];

/// More ways in which a program may have gone than any has had so far.
const TOO_MANY_STATES: usize = 512;

pub(crate) struct Program<'a> {
    seed: u64,
    random: Random,
    favourite: Option<HandleKind>,
    engine: Engine,
    models: Vec<Model>,
    keys: Vec<Key>,
    senders: Vec<Option<Sender>>,
    /// How often each handle's closing was finished.
    closed: Vec<u32>,
    measures_idle_time: bool,
    /// Whether callbacks run the loop again and give runs up.
    is_restless: bool,
    trace: Vec<Entry>,
    coverage: &'a mut Coverage,
}

/// Most programs have a kernel that behaves, so that the model knows all that happens.
fn some_faults(random: &mut Random) -> Faults {
    let mut faults = Faults::default();
    match random.below(16) {
        0 | 1 => faults.interrupt = 100,
        2 => faults.spurious = 100,
        3 | 4 => faults.refuse = 80,
        5 | 6 => faults.break_down = 60,
        7 => {
            faults = Faults {
                interrupt: 40,
                refuse: 40,
                break_down: 40,
                spurious: 40,
                ..Faults::default()
            }
        }
        _ => {}
    }
    faults
}

impl<'a> Program<'a> {
    pub(crate) fn new(seed: u64, coverage: &'a mut Coverage) -> Program<'a> {
        let engine = Engine::new(Some(Mechanism::Sim(seed))).expect("a simulated loop");
        let model = Model::new(engine.now_ns());
        let mut random = Random::new(seed);
        Program {
            seed,
            favourite: some_favourite(&mut random),
            random,
            engine,
            models: vec![model],
            keys: Vec::new(),
            senders: Vec::new(),
            closed: Vec::new(),
            measures_idle_time: false,
            is_restless: false,
            trace: Vec::new(),
            coverage,
        }
    }

    pub(crate) fn run_all(&mut self) {
        self.perform(Op::Init(HandleKind::Async));
        self.perform(Op::Unreference(WATCHDOG));
        for fd in FDS {
            self.perform(Op::OpenFd(fd));
        }
        let faults = some_faults(&mut self.random);
        self.perform(Op::SetFaults(faults));
        if self.random.chance(1, 2) {
            self.perform(Op::MakeSleepDear);
        }
        if self.random.chance(1, 4) {
            self.engine.measure_idle_time();
            self.measures_idle_time = true;
        }
        self.is_restless = self.random.chance(1, 2);
        self.some_ops(40, None);
        for _ in 0..4 + self.random.below(6) {
            let mode = self.random.pick(&MODES);
            let callbacks = 1 + self.random.below(40);
            self.run(mode, callbacks);
            self.some_ops(6, None);
        }
        self.tear_down();
    }

    /// Closes everything, and sees to it that all of it is closed once.
    fn tear_down(&mut self) {
        self.perform(Op::SetFaults(Faults::default()));
        let mut open: Vec<usize> = (0..self.keys.len())
            .filter(|&id| self.models[0].handles[id].life == Life::Open)
            .collect();
        while !open.is_empty() {
            let at = self.random.below(open.len() as u64) as usize;
            self.perform(Op::Close(open.swap_remove(at)));
        }
        // The first of these runs may have been stopped before it began, and the next one may
        // only finish what was left of a closing phase.
        for _ in 0..3 {
            let mode = self.random.pick(&MODES);
            self.run(mode, 0);
        }
        let tally = self.sim().tally();
        self.coverage.tally.add(&tally);
        let closed_once = self.closed.iter().all(|&times| times == 1);
        if !closed_once || !self.engine.is_unused() || self.engine.is_alive() {
            self.fail(&[format!("something is left: closed {:?}", self.closed)]);
        }
    }

    /// One run of the loop. Callbacks do something up to the given number of them, and then
    /// the loop is stopped. If the run is given up: how many of those around it are too.
    fn run(&mut self, mode: Mode, callbacks: u64) -> Option<u64> {
        self.trace.push(Entry::Run(mode));
        let mut run = Run::new(mode);
        for model in &mut self.models {
            model.begin_run(mode);
        }
        for called in 0.. {
            self.keep_watch();
            let event = self.engine.next(&mut run);
            self.step(event);
            let Some(event) = event else { break };
            if called >= callbacks {
                self.perform(Op::Stop);
                continue;
            }
            self.callback(event);
            if let Some(outer) = self.run_again_or_give_up() {
                self.trace.push(Entry::GivenUp);
                self.leave_run();
                return outer.checked_sub(1);
            }
        }
        let alive = run.alive();
        self.trace.push(Entry::RunOver { alive });
        self.narrow(|model| match model.run.alive == alive {
            true => Ok(()),
            false => Err(format!("the run was to leave alive = {}", model.run.alive)),
        });
        if let Some(event) = self.engine.next(&mut run) {
            self.fail(&[format!("{event:?} from a run that is over")]);
        }
        self.leave_run();
        None
    }

    fn leave_run(&mut self) {
        for model in &mut self.models {
            model.leave_run();
        }
        self.compare();
    }

    /// In a callback: perhaps runs the loop once more. If the run in progress is then to be given
    /// up: how many of those around it are too.
    fn run_again_or_give_up(&mut self) -> Option<u64> {
        if !self.is_restless {
            return None;
        }
        let around = self.models[0].outer.len() - 1;
        if around < DEEPEST_RUN && self.random.chance(1, 10) {
            self.coverage.nested += 1;
            let mode = self.random.pick(&MODES);
            let callbacks = self.random.below(8);
            return self.run(mode, callbacks);
        }
        let gives_up = self.random.chance(1, 16);
        gives_up.then(|| {
            let outer = self.random.below(around as u64 + 1);
            self.coverage.given_up += 1;
            self.coverage.went_on += u64::from(outer < around as u64);
            outer
        })
    }

    /// The simulated kernel has no patience with a loop that sleeps for ever, and a clock
    /// that has run to its end is good for nothing.
    fn keep_watch(&mut self) {
        let act = Act::Send(WATCHDOG);
        let is_watched = |model: &Model| model.world.has_scheduled(act);
        let is_open = self.models[0].handles[WATCHDOG].life == Life::Open;
        if is_open && !self.models.iter().all(is_watched) {
            let delays_ns = [1, 3_000_000, 7_000_000, 20_000_000, 1_500_000_000];
            let delay_ns = self.random.pick(&delays_ns);
            self.perform(Op::ScheduleSend(delay_ns, WATCHDOG));
        }
    }

    fn callback(&mut self, event: Event) {
        let (Event::Timer(token)
        | Event::Idle(token)
        | Event::Prepare(token)
        | Event::Check(token)
        | Event::Async(token)
        | Event::Poll(token, _)
        | Event::Closed(token)) = event
        else {
            unreachable!("the model would have refused {event:?}");
        };
        self.some_ops(3, Some(token.0 as usize));
    }

    fn some_ops(&mut self, at_most: u64, running: Option<usize>) {
        for _ in 0..self.random.below(at_most + 1) {
            let op = some_op(&mut self.random, self.favourite, &self.models[0], running);
            match op {
                Op::Walk if self.models[0].walks.len() < DEEPEST_WALK => self.walk(),
                Op::Walk => {}
                op => self.perform(op),
            }
        }
    }

    /// A whole walk, with something done at some of its steps.
    fn walk(&mut self) {
        self.coverage.walks[self.models[0].walks.len()] += 1;
        let mut walk = self.engine.walk();
        self.trace.push(Entry::Did(Op::Walk, Ok(())));
        self.narrow(|model| model.apply(Op::Walk).map_err(|error| error.to_string()));
        loop {
            let visited = self.engine.walk_next(&mut walk);
            self.trace
                .push(visited.map_or(Entry::WalkOver, Entry::Visited));
            self.narrow(|model| {
                let expected = model.walk_next().map(|id| Token(id as u64));
                match expected == visited {
                    true => Ok(()),
                    false => Err(format!("the walk was to go on with {expected:?}")),
                }
            });
            let Some(Token(token)) = visited else { return };
            if self.random.chance(1, 4) {
                self.some_ops(2, Some(token as usize));
            }
        }
    }

    /// Goes on in the models as the engine has gone on, and compares.
    fn step(&mut self, event: Option<Event>) {
        if let Some(event) = event {
            self.trace.push(Entry::Event(event));
            self.coverage
                .event(event, self.models[0].run.phase == Phase::Closing);
            if let Event::Closed(Token(token)) = event {
                self.closed[token as usize] += 1;
            }
        }
        let seen = Seen {
            event,
            now_ns: self.engine.now_ns(),
        };
        let mut found = Vec::new();
        let mut refuted = Vec::new();
        for model in &self.models {
            model.explore(
                |model, oracle| model.step(seen, oracle),
                &mut found,
                &mut refuted,
            );
        }
        if found.is_empty() || found.len() > TOO_MANY_STATES {
            self.fail(&refuted);
        }
        self.coverage.states = self.coverage.states.max(found.len());
        self.models = found;
        self.compare();
    }

    /// Drops the models that disagree.
    fn narrow(&mut self, mut check: impl FnMut(&mut Model) -> Result<(), String>) {
        let mut refuted = Vec::new();
        self.models.retain_mut(|model| match check(model) {
            Ok(()) => true,
            Err(why) => {
                refuted.push(why);
                false
            }
        });
        if self.models.is_empty() {
            self.fail(&refuted);
        }
    }

    fn perform(&mut self, op: Op) {
        let result = self.apply(op);
        self.trace.push(Entry::Did(op, result));
        if let Err(error) = result {
            self.coverage.error(error);
        }
        self.narrow(|model| {
            let expected = model.apply(op);
            match expected == result {
                true => Ok(()),
                false => Err(format!("{op:?} was to be {expected:?}")),
            }
        });
        self.compare();
    }

    fn sim(&mut self) -> &mut Sim {
        self.engine.sim().expect("the kernel is simulated")
    }

    fn add(&mut self, key: Key, sender: Option<Sender>) {
        self.keys.push(key);
        self.senders.push(sender);
        self.closed.push(0);
    }

    fn init(&mut self, kind: HandleKind) -> Result<(), Errno> {
        let token = Token(self.keys.len() as u64);
        let key = match kind {
            HandleKind::Timer => self.engine.timer_init(token)?,
            HandleKind::Idle => self.engine.idle_init(token)?,
            HandleKind::Prepare => self.engine.prepare_init(token)?,
            HandleKind::Check => self.engine.check_init(token)?,
            HandleKind::Async => {
                let (key, ticket) = self.engine.async_init(token)?;
                let sender = self.engine.async_sender(ticket);
                self.add(key, Some(sender));
                return Ok(());
            }
            kind => unreachable!("a {kind:?} handle needs more than a token"),
        };
        self.add(key, None);
        Ok(())
    }

    /// Does the operation on the engine.
    fn apply(&mut self, op: Op) -> Result<(), Errno> {
        let key = |id: usize| self.keys[id];
        match op {
            Op::Init(kind) => return self.init(kind),
            Op::PollInit(fd) => {
                let token = Token(self.keys.len() as u64);
                let key = self.engine.poll_init(token, fd)?;
                self.add(key, None);
            }
            Op::TimerStart(id, timeout_ms, repeat_ms) => {
                return self.engine.timer_start(key(id), timeout_ms, repeat_ms);
            }
            Op::TimerStop(id) => return self.engine.timer_stop(key(id)),
            Op::TimerAgain(id) => return self.engine.timer_again(key(id)),
            Op::TimerSetRepeat(id, ms) => return self.engine.timer_set_repeat(key(id), ms),
            Op::LoopWatcherStart(id) => return self.engine.loop_watcher_start(key(id)),
            Op::LoopWatcherStop(id) => return self.engine.loop_watcher_stop(key(id)),
            Op::PollStart(id, wanted) => return self.engine.poll_start(key(id), wanted),
            Op::PollStop(id) => return self.engine.poll_stop(key(id)),
            Op::Send(id) => self.sender(id).send(),
            Op::Close(id) => return self.engine.close(key(id)),
            Op::Reference(id) => self.engine.reference(key(id)),
            Op::Unreference(id) => self.engine.unreference(key(id)),
            Op::Stop => self.engine.stop(),
            Op::UpdateTime => self.engine.update_time(),
            Op::Fork => return self.engine.fork(),
            Op::Walk => unreachable!("a walk is more than one operation"),
            Op::Advance(ns) => self.sim().advance(ns),
            Op::OpenFd(fd) => self.sim().open(fd),
            Op::CloseFd(fd) => self.sim().close(fd),
            Op::SetReady(fd, mask) => self.sim().set_ready(fd, mask),
            Op::ScheduleReady(delay_ns, fd, mask) => {
                self.sim().schedule(delay_ns, Action::Ready(fd, mask));
            }
            Op::ScheduleSend(delay_ns, id) => {
                let send = Action::Send(self.sender(id));
                self.sim().schedule(delay_ns, send);
            }
            Op::SetFaults(faults) => self.sim().set_faults(faults),
            Op::MakeSleepDear => {
                self.sim().set_price_of_sleep(10_000);
                self.sim().set_moment(MOMENT_NS);
            }
        }
        Ok(())
    }

    fn sender(&self, id: usize) -> Sender {
        self.senders[id]
            .clone()
            .expect("only async handles are sent to")
    }

    /// Asks the engine everything that can be asked, and the models too.
    fn compare(&mut self) {
        let timed = self.measures_idle_time;
        let picture = Picture::of_engine(&mut self.engine, &self.keys, timed);
        self.narrow(|model| {
            let expected = Picture::of_model(model, timed);
            picture.difference(&expected).map_or(Ok(()), Err)
        });
    }

    fn fail(&self, refuted: &[String]) -> ! {
        let mut why = refuted.to_vec();
        why.sort();
        why.dedup();
        panic!("the engine breaks the rules: {}", why.join("; or: "));
    }
}

impl Drop for Program<'_> {
    /// Also when the engine itself has panicked, the way there is told.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (step, entry) in self.trace.iter().enumerate() {
                eprintln!("{step:4}  {entry:?}");
            }
            eprintln!(
                "seed {0}, step {1}; repeat it with\n    \
                 BLACKLIGHT_SEED={0} cargo test -p blacklight-engine --test model",
                self.seed,
                self.trace.len(),
            );
        }
    }
}
