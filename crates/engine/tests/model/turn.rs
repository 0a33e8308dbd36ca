//! A run of the loop, step by step.

use crate::oracle::Oracle;
use crate::rules::{Model, Phase, Run};
use blacklight_engine::{Event, Mode, Token};

/// One step of the engine, as it was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) event: Option<Event>,
    /// The cached time afterwards, which is when the step's last wait ended.
    pub(crate) now_ns: u64,
}

/// More phases than any step passes through: each turn without a callback ends in a wait.
const TOO_MANY_PHASES: usize = 1_000;

fn token(id: usize) -> Token {
    Token(id as u64)
}

impl Model {
    pub(crate) fn begin_run(&mut self, mode: Mode) {
        let run = Run::new(mode, Phase::Enter);
        self.outer.push(std::mem::replace(&mut self.run, run));
        self.pending_may_wait = true;
    }

    /// The run is over, or is given up. Whatever it has taken up stays where it is.
    pub(crate) fn leave_run(&mut self) {
        self.run = self.outer.pop().expect("a run has begun");
        self.pending_may_wait = true;
    }

    /// Goes on to the next callback and compares it with the one that was seen.
    pub(crate) fn step(&mut self, seen: Seen, oracle: &mut Oracle) -> Result<(), String> {
        for _ in 0..TOO_MANY_PHASES {
            let expected = match self.run.phase {
                Phase::Done => {
                    return match seen.event {
                        None => Ok(()),
                        Some(event) => Err(format!("{event:?} after the end of the run")),
                    };
                }
                Phase::Io => match self.accept_io(seen.event, oracle)? {
                    true => return Ok(()),
                    false => None,
                },
                Phase::Pending | Phase::PendingAgain => match self.accept_pending(seen.event)? {
                    true => return Ok(()),
                    false => None,
                },
                Phase::Asyncs => (self.next_mail(seen.event)).map(|id| Event::Async(token(id))),
                _ => self.next_callback(),
            };
            if expected.is_some() && expected == seen.event {
                return Ok(());
            }
            if let Some(expected) = expected {
                return Err(format!("{expected:?} was to come in {:?}", self.run.phase));
            }
            self.run.phase = self.following(seen, oracle)?;
        }
        Err("the run goes on and on and calls nobody".to_string())
    }

    /// The next callback of a phase whose order is known.
    fn next_callback(&mut self) -> Option<Event> {
        match self.run.phase {
            Phase::TimersFirst | Phase::Timers => self.next_due().map(|id| Event::Timer(token(id))),
            Phase::Idle => self.idle.next().map(|id| Event::Idle(token(id))),
            Phase::Prepare => self.prepare.next().map(|id| Event::Prepare(token(id))),
            Phase::Check => self.check.next().map(|id| Event::Check(token(id))),
            Phase::Closing => self.next_closed().map(|id| Event::Closed(token(id))),
            _ => None,
        }
    }

    fn following(&mut self, seen: Seen, oracle: &mut Oracle) -> Result<Phase, String> {
        Ok(match self.run.phase {
            Phase::Enter => self.enter(),
            Phase::TimersFirst => Phase::Turn,
            Phase::Turn => self.turn(),
            Phase::Pending => {
                self.idle.begin();
                Phase::Idle
            }
            Phase::Idle => {
                self.prepare.begin();
                Phase::Prepare
            }
            Phase::Prepare => {
                self.poll(seen, oracle)?;
                Phase::Io
            }
            Phase::Io => {
                self.begin_delivering(oracle);
                Phase::Asyncs
            }
            Phase::Asyncs => Phase::PendingAgain,
            Phase::PendingAgain => {
                self.check.begin();
                Phase::Check
            }
            Phase::Check => {
                if self.closing_now.is_empty() {
                    self.closing_now = std::mem::take(&mut self.closing);
                }
                Phase::Closing
            }
            Phase::Closing => {
                self.begin_timers();
                Phase::Timers
            }
            Phase::Timers => {
                self.run.alive = self.is_alive();
                match self.run.mode {
                    Mode::Default => Phase::Turn,
                    _ => self.finish(),
                }
            }
            Phase::Done => Phase::Done,
        })
    }

    fn enter(&mut self) -> Phase {
        self.run.alive = self.is_alive();
        if !self.run.alive {
            self.now_ns = self.world.now_ns;
            return Phase::Turn;
        }
        if self.run.mode == Mode::Default && !self.stop {
            self.begin_timers();
            return Phase::TimersFirst;
        }
        Phase::Turn
    }

    fn turn(&mut self) -> Phase {
        if !self.run.alive || self.stop {
            return self.finish();
        }
        self.run.may_sleep = self.pending.is_empty() && self.idle.is_empty();
        Phase::Pending
    }

    fn finish(&mut self) -> Phase {
        self.stop = false;
        Phase::Done
    }

    /// All timers that are due are taken out first, and are inactive from then on.
    fn begin_timers(&mut self) {
        self.now_ns = self.world.now_ns;
        while let Some(id) = self.next_timer()
            && self.handles[id].due_ns <= self.now_ns
        {
            self.handles[id].active = false;
            self.ready.push((id, self.handles[id].start));
        }
    }

    /// The next of those that has not been stopped, closed or started anew meanwhile. One
    /// that repeats is started again before it is called.
    fn next_due(&mut self) -> Option<usize> {
        while !self.ready.is_empty() {
            let (id, start) = self.ready.remove(0);
            if self.handles[id].start != start {
                continue;
            }
            self.handles[id].start = 0;
            let repeat_ms = self.handles[id].repeat_ms;
            if repeat_ms != 0 {
                self.arm(id, repeat_ms);
            }
            return Some(id);
        }
        None
    }

    /// Takes what has been sent, unless something is left of what was taken before. That may be a
    /// closed handle, which the engine has passed or has not.
    fn begin_delivering(&mut self, oracle: &mut Oracle) {
        let is_open = |&id: &usize| self.handles[id].active;
        if self.delivering.iter().any(is_open) {
            return;
        }
        if self.delivering.is_empty() || oracle.choose(2) == 0 {
            self.delivering = std::mem::take(&mut self.mail);
        }
    }

    /// The next async handle to be called: any of those that were sent to before the phase, so
    /// the one that was seen if it is among them.
    fn next_mail(&mut self, seen: Option<Event>) -> Option<usize> {
        let is_open = |&id: &usize| self.handles[id].active;
        let is_seen = |id: &usize| is_open(id) && seen == Some(Event::Async(token(*id)));
        let at = self.delivering.iter().position(is_seen);
        let at = at.or_else(|| self.delivering.iter().position(is_open));
        if at.is_none() {
            self.delivering.clear();
        }
        at.map(|at| self.delivering.remove(at))
    }

    /// The last closed is the first to be finished.
    fn next_closed(&mut self) -> Option<usize> {
        let id = self.closing_now.pop()?;
        self.bury(id);
        Some(id)
    }
}
