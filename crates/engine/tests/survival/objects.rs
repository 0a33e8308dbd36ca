//! The things that a program waits for. Each is set off when it is made, expects what must follow
//! of that, and closes its handles when it has heard of everything.

use crate::desk::Desk;
use crate::ledger::Kind;
use blacklight_engine::{
    Action, Command, Engine, Errno, Event, Job, Key, Operation, Readiness, StringsBuf, Token,
    WorkKind,
};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::fs;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

pub(crate) trait Object {
    /// An event for one of the object's tokens.
    fn told(&mut self, desk: &mut Desk, event: Event);
}

pub(crate) struct Timer {
    key: Key,
    left: u32,
    delay_ms: u64,
    repeats: bool,
}

impl Timer {
    pub(crate) fn new(desk: &mut Desk) -> Timer {
        let token = desk.new_token();
        let key = desk.engine.timer_init(token).unwrap();
        let left = desk.up_to(3);
        let delay_ms = desk.random.below(3);
        let repeats = desk.random.chance(1, 2);
        let repeat_ms = u64::from(repeats);
        desk.engine.timer_start(key, delay_ms, repeat_ms).unwrap();
        desk.expect(token, Kind::Timer, left);
        Timer {
            key,
            left,
            delay_ms,
            repeats,
        }
    }
}

impl Object for Timer {
    fn told(&mut self, desk: &mut Desk, event: Event) {
        let Event::Timer(token) = event else {
            return;
        };
        self.left -= 1;
        if self.left == 0 {
            desk.engine.timer_stop(self.key).unwrap();
            desk.close(self.key, token);
        } else if !self.repeats {
            desk.engine.timer_start(self.key, self.delay_ms, 0).unwrap();
        }
    }
}

/// A prepare and a check handle that are to be called so many times, and an idle handle that
/// keeps the loop turning until then.
pub(crate) struct LoopWatchers {
    idle: (Key, Token),
    others: Vec<(Key, Token, u32)>,
}

impl LoopWatchers {
    pub(crate) fn new(desk: &mut Desk) -> LoopWatchers {
        let token = desk.new_token();
        let idle = desk.engine.idle_init(token).unwrap();
        desk.engine.loop_watcher_start(idle).unwrap();
        type Init = fn(&mut Engine, Token) -> Result<Key, Errno>;
        let kinds: [(Kind, Init); 2] = [
            (Kind::Prepare, Engine::prepare_init),
            (Kind::Check, Engine::check_init),
        ];
        let mut others = Vec::new();
        for (kind, init) in kinds {
            let (token, calls) = (desk.new_token(), desk.up_to(3));
            let key = init(&mut desk.engine, token).unwrap();
            desk.engine.loop_watcher_start(key).unwrap();
            desk.expect(token, kind, calls);
            others.push((key, token, calls));
        }
        LoopWatchers {
            idle: (idle, token),
            others,
        }
    }
}

impl Object for LoopWatchers {
    fn told(&mut self, desk: &mut Desk, event: Event) {
        if matches!(event, Event::Idle(_) | Event::Closed(_)) {
            return;
        }
        let is_it = |other: &(Key, Token, u32)| other.1 == event.token();
        let at = self.others.iter().position(is_it).expect("one of ours");
        self.others[at].2 -= 1;
        if self.others[at].2 == 0 {
            let (key, token, _) = self.others.remove(at);
            desk.engine.loop_watcher_stop(key).unwrap();
            desk.close(key, token);
        }
        if self.others.is_empty() {
            desk.engine.loop_watcher_stop(self.idle.0).unwrap();
            desk.close(self.idle.0, self.idle.1);
        }
    }
}

/// A prepare handle that does not keep the loop alive, nor from sleeping. It is called before every
/// poll, so that runs begin and are given up in front of a sleep.
pub(crate) struct BeforeSleep;

impl BeforeSleep {
    pub(crate) fn new(desk: &mut Desk) -> BeforeSleep {
        let token = desk.new_token();
        let key = desk.engine.prepare_init(token).unwrap();
        desk.engine.loop_watcher_start(key).unwrap();
        desk.ledger().allow(token, Kind::Prepare);
        desk.close_late_only(key, token);
        BeforeSleep
    }
}

impl Object for BeforeSleep {
    fn told(&mut self, _: &mut Desk, event: Event) {
        assert!(matches!(event, Event::Prepare(_) | Event::Closed(_)));
    }
}

/// Check handles that are called in the same phase, once each, and an idle handle that keeps the
/// loop from sleeping until the phase begins.
pub(crate) struct Checks {
    idle: Option<(Key, Token)>,
    checks: Vec<(Key, Token)>,
}

impl Checks {
    pub(crate) fn new(desk: &mut Desk) -> Checks {
        let token = desk.new_token();
        let idle = desk.engine.idle_init(token).unwrap();
        desk.engine.loop_watcher_start(idle).unwrap();
        let mut checks = Vec::new();
        for _ in 0..1 + desk.up_to(3) {
            let token = desk.new_token();
            let key = desk.engine.check_init(token).unwrap();
            desk.engine.loop_watcher_start(key).unwrap();
            desk.expect(token, Kind::Check, 1);
            checks.push((key, token));
        }
        Checks {
            idle: Some((idle, token)),
            checks,
        }
    }
}

impl Object for Checks {
    fn told(&mut self, desk: &mut Desk, event: Event) {
        if let Event::Check(token) = event {
            let called = self.checks.iter().find(|check| check.1 == token);
            let &(key, _) = called.expect("one of ours");
            for (key, token) in self.idle.take().into_iter().chain([(key, token)]) {
                desk.engine.loop_watcher_stop(key).unwrap();
                desk.close(key, token);
            }
        }
    }
}

/// Requests of the thread pool.
pub(crate) struct Work;

impl Work {
    pub(crate) fn new(desk: &mut Desk) -> Work {
        for _ in 0..desk.up_to(3) {
            let token = desk.new_token();
            let (done, is_done) = std::sync::mpsc::channel();
            let job = Job::new(move || {
                // Mostly nobody waits for it.
                let _ = done.send(());
            });
            let kind = desk
                .random
                .pick(&[WorkKind::Cpu, WorkKind::FastIo, WorkKind::SlowIo]);
            let request = desk.engine.work_submit(token, kind, job).unwrap();
            desk.expect(token, Kind::Work, 1);
            match desk.random.below(4) {
                0 => drop(desk.engine.work_cancel(request)),
                1 => is_done.recv().expect("the pool has threads"),
                _ => {}
            }
        }
        Work
    }
}

impl Object for Work {
    fn told(&mut self, _: &mut Desk, event: Event) {
        let Event::Work(_, result) = event else {
            panic!("{event:?}");
        };
        assert!(matches!(result, Ok(()) | Err(Errno::ECANCELED)));
    }
}

/// Requests on the loop's ring, if it has one.
pub(crate) struct OnRing {
    _file: fs::File,
}

impl OnRing {
    pub(crate) fn new(desk: &mut Desk) -> OnRing {
        let name = format!("blacklight-survival-{}-file", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = fs::File::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        for _ in 0..desk.up_to(3) {
            let token = desk.new_token();
            let sync = Operation::sync(file.as_raw_fd());
            if desk.engine.ring_submit(token, sync) {
                desk.expect(token, Kind::Ring, 1);
            }
        }
        OnRing { _file: file }
    }
}

impl Object for OnRing {
    fn told(&mut self, _: &mut Desk, event: Event) {
        let Event::Ring(_, result) = event else {
            panic!("{event:?}");
        };
        assert_eq!(result, Ok(0));
    }
}

/// An async handle to which is sent again when the last send has been told of.
pub(crate) struct Sends {
    key: Key,
    sender: blacklight_engine::Sender,
    left: u32,
}

impl Sends {
    pub(crate) fn new(desk: &mut Desk) -> Sends {
        let token = desk.new_token();
        let (key, ticket) = desk.engine.async_init(token).unwrap();
        let left = desk.up_to(3);
        desk.expect(token, Kind::Async, left);
        let sends = Sends {
            key,
            sender: desk.engine.async_sender(ticket),
            left,
        };
        sends.send(desk);
        sends
    }

    fn send(&self, desk: &mut Desk) {
        let sender = self.sender.clone();
        let delay_ns = desk.random.below(30_000);
        match (desk.random.below(3), desk.engine.sim()) {
            (0, _) => drop(std::thread::spawn(move || sender.send())),
            (1, Some(sim)) => sim.schedule(delay_ns, Action::Send(sender)),
            _ => sender.send(),
        }
    }
}

impl Object for Sends {
    fn told(&mut self, desk: &mut Desk, event: Event) {
        if let Event::Async(token) = event {
            self.left -= 1;
            match self.left {
                0 => desk.close(self.key, token),
                _ => self.send(desk),
            }
        }
    }
}

/// Handles that are closed at once.
pub(crate) struct Closings;

impl Closings {
    pub(crate) fn new(desk: &mut Desk) -> Closings {
        for _ in 0..desk.up_to(3) {
            let token = desk.new_token();
            let key = match desk.random.below(3) {
                0 => desk.engine.timer_init(token),
                1 => desk.engine.tcp_init(token, None),
                _ => desk.engine.async_init(token).map(|(key, _)| key),
            };
            desk.close_now(key.unwrap(), token);
        }
        Closings
    }
}

impl Object for Closings {
    fn told(&mut self, _: &mut Desk, event: Event) {
        assert!(matches!(event, Event::Closed(_)));
    }
}

/// A pipe under a poll handle, with a byte to read.
pub(crate) struct Polled {
    key: Key,
    reader: PipeReader,
    writer: PipeWriter,
    left: u32,
}

impl Polled {
    pub(crate) fn new(desk: &mut Desk) -> Polled {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let token = desk.new_token();
        let key = desk.engine.poll_init(token, reader.as_raw_fd()).unwrap();
        desk.engine.poll_start(key, Readiness::READABLE).unwrap();
        writer.write_all(b"x").unwrap();
        let left = desk.up_to(3);
        desk.expect(token, Kind::Arrival, left);
        Polled {
            key,
            reader,
            writer,
            left,
        }
    }
}

impl Object for Polled {
    fn told(&mut self, desk: &mut Desk, event: Event) {
        let Event::Poll(token, result) = event else {
            return;
        };
        assert_eq!(result, Ok(Readiness::READABLE));
        if desk.leaves_it() {
            return;
        }
        self.reader.read_exact(&mut [0]).unwrap();
        desk.meet(token, Kind::Arrival);
        self.left -= 1;
        match self.left {
            0 => desk.close(self.key, token),
            _ => self.writer.write_all(b"x").unwrap(),
        }
    }
}

/// A signal that is raised again when the last one has been told of.
pub(crate) struct Raised {
    key: Key,
    signal: Signal,
    left: u32,
}

const SIGNALS: [Signal; 6] = [
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::URG,
    Signal::HUP,
    Signal::ALARM,
];

impl Raised {
    pub(crate) fn new(desk: &mut Desk) -> Raised {
        let token = desk.new_token();
        let key = desk.engine.signal_init(token).unwrap();
        // No two objects share one, since each would be told of the other's.
        let signal = SIGNALS[desk.object as usize];
        let left = desk.up_to(2);
        let one_shot = left == 1 && desk.random.chance(1, 2);
        let started = desk.engine.signal_start(key, signal.as_raw(), one_shot);
        started.unwrap();
        desk.expect(token, Kind::Signal, left);
        let raised = Raised { key, signal, left };
        raised.raise();
        raised
    }

    fn raise(&self) {
        rustix::process::kill_process(rustix::process::getpid(), self.signal).unwrap();
    }
}

impl Object for Raised {
    fn told(&mut self, desk: &mut Desk, event: Event) {
        if let Event::Signal(token, signum) = event {
            assert_eq!(signum, self.signal.as_raw());
            self.left -= 1;
            match self.left {
                0 => desk.close(self.key, token),
                _ => self.raise(),
            }
        }
    }
}

/// A child that ends by itself.
pub(crate) struct Child(Key);

impl Child {
    pub(crate) fn new(desk: &mut Desk) -> Child {
        let token = desk.new_token();
        let key = desk.engine.process_init(token).unwrap();
        let args: StringsBuf<'_> = [c"false"].into_iter().collect();
        let env: StringsBuf<'_> = [].into_iter().collect();
        let command = Command {
            file: c"false",
            args: args.strings(),
            env: env.strings(),
            cwd: None,
            detached: false,
            uid: None,
            gid: None,
            stdio: &[],
        };
        let pid = desk.engine.process_spawn(key, &command).unwrap();
        desk.expect(token, Kind::Exit, 1);
        if desk.random.chance(1, 2) {
            // It has ended before the loop looks.
            let pid = Pid::from_raw(pid).expect("a child's number");
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            rustix::process::waitid(WaitId::Pid(pid), options).unwrap();
        }
        Child(key)
    }
}

impl Object for Child {
    fn told(&mut self, desk: &mut Desk, event: Event) {
        if let Event::Exit(token, status, signum) = event {
            assert_eq!((status, signum), (1, 0));
            desk.close(self.0, token);
        }
    }
}

/// A directory in which another is made.
pub(crate) struct Watched {
    key: Key,
    dir: PathBuf,
    left: u32,
}

impl Watched {
    pub(crate) fn new(desk: &mut Desk) -> Watched {
        let token = desk.new_token();
        let name = format!("blacklight-survival-{}-{}", std::process::id(), token.0);
        let dir = std::env::temp_dir().join(name);
        // A run that was killed, and had the same process number, may have left its own behind.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let key = desk.engine.fs_event_init(token).unwrap();
        let path = std::ffi::CString::new(dir.as_os_str().as_bytes()).unwrap();
        desk.engine.fs_event_start(key, &path, false).unwrap();
        let left = desk.up_to(3);
        for number in 0..left {
            fs::create_dir(dir.join(number.to_string())).unwrap();
        }
        desk.expect(token, Kind::FsEvent, left);
        Watched { key, dir, left }
    }
}

impl Object for Watched {
    fn told(&mut self, desk: &mut Desk, event: Event) {
        if let Event::FsEvent(token, result) = event {
            assert!(result.is_ok());
            self.left -= 1;
            if self.left == 0 {
                desk.close(self.key, token);
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // It is in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.dir);
    }
}
