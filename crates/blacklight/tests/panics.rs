//! A callback panics, the program catches that and runs the loop again: whoever was to be called is
//! called all the same, exactly once, in every mode of running and with nothing else to keep the loop
//! alive.
//!
//! For each kind of callback there are three that are due at the same time. Each case runs in a thread
//! of its own, so that a loop which sleeps for ever is a failure and not the end of the test run.

use blacklight::process::{Child, Command};
use blacklight::{
    Async, AsyncFd, Check, FsEvent, Idle, Loop, LoopHandle, Mechanism, Mode, Phase, Prepare,
    Readiness, Signal, SignalKind, TcpListener, TcpStream, Timer, UdpSocket,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

/// How many of each kind.
const EACH: usize = 3;

/// A case that is not over by then hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Which of the callbacks panic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Panicking {
    First,
    All,
}

/// What a case has, and what has been told in it.
struct Case {
    lp: Loop,
    panicking: Panicking,
    told: RefCell<Vec<&'static str>>,
    panics: Cell<usize>,
    /// Handles and peers that have to outlive the setting up.
    kept: RefCell<Vec<Box<dyn Any>>>,
}

impl Case {
    /// To be called by a callback as the last thing that it does.
    fn tell(&self, what: &'static str) {
        self.told.borrow_mut().push(what);
        if self.panicking == Panicking::All || self.told.borrow().len() == 1 {
            self.panics.set(self.panics.get() + 1);
            // Without the message that a panic prints.
            resume_unwind(Box::new(()));
        }
    }

    fn keep(&self, what: impl Any) {
        self.kept.borrow_mut().push(Box::new(what));
    }

    /// Runs the loop to its end, however often a panic interrupts it; how often one did.
    fn run(&self, mode: Mode) -> usize {
        let mut panics = 0;
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.lp.run(mode))) {
                Err(_) => panics += 1,
                Ok(true) => {}
                Ok(false) => return panics,
            }
        }
    }
}

type SetUp = fn(&Rc<Case>);

/// Runs a case for each mode and mechanism, with one callback that panics and with all of them.
fn nobody_is_lost(kinds: &'static [(&'static str, SetUp)]) {
    for mechanism in [Mechanism::Epoll, Mechanism::Poll] {
        for mode in [Mode::Default, Mode::Once, Mode::NoWait] {
            for panicking in [Panicking::First, Panicking::All] {
                let (over, is_over) = mpsc::channel();
                let case = std::thread::spawn(move || {
                    play(kinds, mechanism, mode, panicking);
                    let _ = over.send(());
                });
                if is_over.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
                    panic!("{mechanism:?}, {mode:?}, {panicking:?}: hangs");
                }
                let played = case.join();
                assert!(played.is_ok(), "{mechanism:?}, {mode:?}, {panicking:?}");
            }
        }
    }
}

fn play(kinds: &[(&'static str, SetUp)], mechanism: Mechanism, mode: Mode, panicking: Panicking) {
    let lp = Loop::builder().poller(mechanism).build().unwrap();
    let case = Rc::new(Case {
        lp,
        panicking,
        told: RefCell::default(),
        panics: Cell::new(0),
        kept: RefCell::default(),
    });
    for (_, set_up) in kinds {
        set_up(&case);
    }
    let caught = case.run(mode);
    let mut told = case.told.take();
    told.sort_unstable();
    let mut due: Vec<&str> = kinds.iter().flat_map(|(what, _)| [*what; EACH]).collect();
    due.sort_unstable();
    assert_eq!(told, due);
    assert_eq!(caught, case.panics.get(), "each panic ends one run");
    // The loop is as good as new.
    case.kept.borrow_mut().clear();
    case.lp.block_on(blacklight::sleep(Duration::ZERO));
    assert!(!case.lp.run(Mode::Default));
}

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn timers(case: &Rc<Case>) {
    for _ in 0..EACH {
        let (timer, its) = (Timer::new().unwrap(), case.clone());
        timer
            .start(Duration::ZERO, move |_, _| its.tell("timer"))
            .unwrap();
        case.keep(timer);
    }
}

fn sleeps(case: &Rc<Case>) {
    for _ in 0..EACH {
        let (sleep, its) = (blacklight::sleep(Duration::from_millis(1)), case.clone());
        // What panics here is the task, and a task's panic is for whoever joins it.
        let task = case.lp.spawn(async move {
            sleep.await;
            let told = catch_unwind(AssertUnwindSafe(|| its.tell("sleep")));
            if told.is_err() {
                its.panics.set(its.panics.get() - 1);
                resume_unwind(Box::new(()));
            }
        });
        case.keep(task);
    }
}

macro_rules! loop_watchers {
    ($set_up:ident, $handle:ident, $name:literal) => {
        fn $set_up(case: &Rc<Case>) {
            for _ in 0..EACH {
                let (handle, its) = ($handle::new().unwrap(), case.clone());
                let callback = move |_: &LoopHandle, handle: &$handle| {
                    handle.stop();
                    its.tell($name);
                };
                handle.start(callback).unwrap();
                case.keep(handle);
            }
        }
    };
}

loop_watchers!(idles, Idle, "idle");
loop_watchers!(prepares, Prepare, "prepare");
loop_watchers!(check_handles, Check, "check");

/// Checks alone do not keep a loop from sleeping before it gets to them. An idle handle does, for as
/// long as there are some left.
fn checks(case: &Rc<Case>) {
    check_handles(case);
    let (idle, its) = (Idle::new().unwrap(), case.clone());
    let callback = move |_: &LoopHandle, idle: &Idle| {
        let told = its
            .told
            .borrow()
            .iter()
            .filter(|told| **told == "check")
            .count();
        if told == EACH {
            idle.stop();
        }
    };
    idle.start(callback).unwrap();
    case.keep(idle);
}

fn asyncs(case: &Rc<Case>) {
    for _ in 0..EACH {
        let its = case.clone();
        let callback = move |_: &LoopHandle, handle: &Async| {
            let its = its.clone();
            handle.close();
            its.tell("async");
        };
        let handle = Async::new(callback).unwrap();
        handle.sender().send();
        case.keep(handle);
    }
}

fn accepts(case: &Rc<Case>) {
    let listener = case.lp.block_on(TcpListener::bind(any_port())).unwrap();
    for _ in 0..EACH {
        let peer = std::net::TcpStream::connect(listener.local_addr().unwrap());
        case.keep(peer.unwrap());
    }
    let (its, left) = (case.clone(), Cell::new(EACH));
    listener
        .accept_start(move |_, listener, accepted| {
            its.keep(accepted.unwrap());
            let its = its.clone();
            left.set(left.get() - 1);
            if left.get() == 0 {
                listener.close();
            }
            its.tell("accept");
        })
        .unwrap();
    case.keep(listener);
}

/// A stream of the loop, and its peer.
fn connected() -> (TcpStream, std::net::TcpStream) {
    let listener = std::net::TcpListener::bind(any_port()).unwrap();
    let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let stream = TcpStream::from_std(listener.accept().unwrap().0).unwrap();
    (stream, peer)
}

fn reads(case: &Rc<Case>) {
    for _ in 0..EACH {
        let (stream, mut peer) = connected();
        peer.write_all(b"x").unwrap();
        let its = case.clone();
        let callback = move |_: &LoopHandle, stream: &TcpStream, bytes: std::io::Result<&[u8]>| {
            let its = its.clone();
            assert_eq!(bytes.unwrap(), b"x");
            stream.read_stop();
            its.tell("read");
        };
        stream.read_start(callback).unwrap();
        case.keep((stream, peer));
    }
}

fn writes(case: &Rc<Case>) {
    for _ in 0..EACH {
        let (stream, peer) = connected();
        let its = case.clone();
        let written = move |_: &LoopHandle, written: std::io::Result<()>| {
            written.unwrap();
            its.tell("write");
        };
        stream.write_then("x", written).unwrap();
        case.keep((stream, peer));
    }
}

fn connects(case: &Rc<Case>) {
    let listener = std::net::TcpListener::bind(any_port()).unwrap();
    for _ in 0..EACH {
        let its = case.clone();
        let address = listener.local_addr().unwrap();
        let connected = move |_: &LoopHandle, stream: std::io::Result<TcpStream>| {
            its.keep(stream.unwrap());
            its.tell("connect");
        };
        TcpStream::connect_then(address, connected).unwrap();
    }
    case.keep(listener);
}

fn receives(case: &Rc<Case>) {
    for _ in 0..EACH {
        let (socket, its) = (
            case.lp.block_on(UdpSocket::bind(any_port())).unwrap(),
            case.clone(),
        );
        let own = socket.local_addr().unwrap();
        assert_eq!(socket.try_send_to(b"x", own).unwrap(), 1);
        let callback =
            move |_: &LoopHandle,
                  socket: &UdpSocket,
                  datagram: std::io::Result<blacklight::Datagram<'_>>| {
                datagram.unwrap();
                let its = its.clone();
                socket.recv_stop();
                its.tell("receive");
            };
        socket.recv_start(callback).unwrap();
        case.keep(socket);
    }
}

fn sends(case: &Rc<Case>) {
    for _ in 0..EACH {
        let (socket, its) = (
            case.lp.block_on(UdpSocket::bind(any_port())).unwrap(),
            case.clone(),
        );
        let own = socket.local_addr().unwrap();
        let sent = move |_: &LoopHandle, sent: std::io::Result<()>| {
            sent.unwrap();
            its.tell("send");
        };
        socket.send_to_then("x", own, sent).unwrap();
        case.keep(socket);
    }
}

fn polls(case: &Rc<Case>) {
    for _ in 0..EACH {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"x").unwrap();
        let (poll, its) = (Rc::new(AsyncFd::new(reader).unwrap()), case.clone());
        let handle = Rc::downgrade(&poll);
        let callback = move |_: &LoopHandle, ready: std::io::Result<Readiness>| {
            ready.unwrap();
            handle.upgrade().unwrap().stop();
            its.tell("poll");
        };
        poll.start(Readiness::READABLE, callback).unwrap();
        case.keep((poll, writer));
    }
}

fn signals(case: &Rc<Case>) {
    let kind = SignalKind::SIGWINCH;
    for _ in 0..EACH {
        let (signal, its) = (Signal::new().unwrap(), case.clone());
        let callback = move |_: &LoopHandle, signal: &Signal, _: SignalKind| {
            let its = its.clone();
            signal.stop();
            its.tell("signal");
        };
        signal.start(kind, callback).unwrap();
        case.keep(signal);
    }
    blacklight::process::kill(std::process::id(), kind).unwrap();
}

fn exits(case: &Rc<Case>) {
    let children: [Child; EACH] = std::array::from_fn(|_| Command::new("true").spawn().unwrap());
    for child in children {
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), ended).unwrap();
        let its = case.clone();
        child.on_exit(move |_, status| {
            assert!(status.unwrap().success());
            its.tell("exit");
        });
        case.keep(child);
    }
}

fn fs_events(case: &Rc<Case>) {
    let name = format!("blacklight-panics-{:?}", std::thread::current().id());
    let dir = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for _ in 0..EACH {
        let (watcher, its) = (FsEvent::new().unwrap(), case.clone());
        let callback = move |_: &LoopHandle, watcher: &FsEvent, change: std::io::Result<_>| {
            let _: blacklight::FsChange = change.unwrap();
            let its = its.clone();
            watcher.stop();
            its.tell("fs event");
        };
        watcher.start(&dir, callback).unwrap();
        case.keep(watcher);
    }
    std::fs::write(dir.join("new"), "").unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

fn works(case: &Rc<Case>) {
    for _ in 0..EACH {
        let its = case.clone();
        let after = move |_: &LoopHandle, done: Result<(), _>| {
            let _: Result<(), blacklight::JoinError> = done;
            its.tell("work");
        };
        case.lp.work(|| (), after).unwrap();
    }
}

macro_rules! cases {
    ($($test:ident: $name:literal, $set_up:ident;)*) => {
        $(#[test]
        fn $test() {
            nobody_is_lost(&[($name, $set_up)]);
        })*

        #[test]
        fn kinds_that_are_due_together() {
            nobody_is_lost(&[$(($name, $set_up),)*]);
        }
    };
}

cases! {
    timers_are_called: "timer", timers;
    sleeps_end: "sleep", sleeps;
    idles_are_called: "idle", idles;
    prepares_are_called: "prepare", prepares;
    checks_are_called: "check", checks;
    sends_to_asyncs_are_delivered: "async", asyncs;
    connections_are_accepted: "accept", accepts;
    connections_are_told: "connect", connects;
    reads_are_told: "read", reads;
    writes_are_told: "write", writes;
    datagrams_are_received: "receive", receives;
    sent_datagrams_are_told: "send", sends;
    descriptors_are_told: "poll", polls;
    signals_are_told: "signal", signals;
    exits_of_children_are_told: "exit", exits;
    changes_of_files_are_told: "fs event", fs_events;
    work_is_told: "work", works;
}

#[test]
fn handles_are_closed() {
    for mode in [Mode::Default, Mode::Once, Mode::NoWait] {
        let (over, is_over) = mpsc::channel();
        std::thread::spawn(move || {
            let lp = Loop::new().unwrap();
            drop([(); EACH].map(|()| Timer::new().unwrap()));
            for left in (0..EACH).rev() {
                // Nobody but an observer is called when a handle has been closed.
                lp.observe(|dispatch| {
                    assert_eq!(dispatch.phase, Phase::Closing);
                    resume_unwind(Box::new(()));
                });
                assert!(catch_unwind(AssertUnwindSafe(|| lp.run(mode))).is_err());
                assert_eq!(lp.is_alive(), left > 0, "{mode:?}");
            }
            assert!(!lp.run(mode));
            over.send(()).unwrap();
        });
        assert_eq!(is_over.recv_timeout(LIMIT), Ok(()), "{mode:?}");
    }
}

/// Whether the descriptor that others wait for becomes readable.
fn is_signalled(fd: &OwnedFd) -> bool {
    let limit = Timespec {
        tv_sec: LIMIT.as_secs() as i64,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

/// A loop that runs need not be woken, and one whose run a panic has ended did not say so.
#[test]
fn who_waits_for_a_loop_is_woken_after_a_panic() {
    for sends_before in [true, false] {
        let lp = Loop::new().unwrap();
        let fd = lp.try_clone_backend_fd().unwrap().unwrap();
        let heard = Rc::new(Cell::new(0));
        let its = heard.clone();
        let wakeup = Async::new(move |_, _| its.set(its.get() + 1)).unwrap();
        let sender = wakeup.sender();
        let timer = Timer::new().unwrap();
        let its = sender.clone();
        let callback = move |_: &LoopHandle, _: &Timer| {
            if sends_before {
                its.send();
            }
            resume_unwind(Box::new(()));
        };
        timer.start(Duration::ZERO, callback).unwrap();
        while catch_unwind(AssertUnwindSafe(|| lp.run(Mode::NoWait))).is_ok() {}
        if !sends_before {
            std::thread::spawn(move || sender.send()).join().unwrap();
        }
        assert!(is_signalled(&fd), "{sends_before}");
        lp.run(Mode::NoWait);
        assert_eq!(heard.get(), 1);
    }
}

/// Tasks that were woken, and had not run when the panic came, were not known to the engine.
#[test]
fn who_waits_for_a_loop_hears_of_tasks_that_a_panic_has_left() {
    for in_block_on in [true, false] {
        let lp = Loop::new().unwrap();
        let fd = lp.try_clone_backend_fd().unwrap().unwrap();
        let has_run = Rc::new(Cell::new(false));
        let its = has_run.clone();
        let spawn = move |lp: &LoopHandle| {
            lp.spawn(async move { its.set(true) });
            resume_unwind(Box::new(()));
        };
        let caught = match in_block_on {
            true => catch_unwind(AssertUnwindSafe(|| lp.block_on(async { spawn(&lp) }))),
            false => {
                let timer = Timer::new().unwrap();
                let mut spawn = Some(spawn);
                let callback = move |lp: &LoopHandle, _: &Timer| spawn.take().unwrap()(lp);
                timer.start(Duration::ZERO, callback).unwrap();
                catch_unwind(AssertUnwindSafe(|| lp.block_on(std::future::pending())))
            }
        };
        assert!(caught.is_err());
        assert!(!has_run.get());
        assert_eq!(lp.backend_timeout(), Some(Duration::ZERO), "{in_block_on}");
        assert!(is_signalled(&fd));
        lp.run(Mode::NoWait);
        assert!(has_run.get());
    }
}
