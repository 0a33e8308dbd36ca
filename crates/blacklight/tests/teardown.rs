//! Loops, handles and tasks that go in any order, and own each other in all ways.

#[path = "support/teardown.rs"]
mod teardown;

use blacklight::{
    Async, AsyncFd, Check, Idle, Loop, LoopHandle, Mode, Pipe, Prepare, Readiness, Timer,
};
use blacklight::{TcpListener, TcpStream, UdpSocket};
use std::cell::{Cell, RefCell};
use std::future::pending;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;
use teardown::{Counted, Random, seeds};

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn a_handle_owned_by_its_own_callback_goes_with_the_loop() {
    let lp = Loop::new().unwrap();
    let owned = Rc::new(());
    let weak = Rc::downgrade(&owned);
    let own: Rc<RefCell<Option<Timer>>> = Rc::default();
    let cycle = own.clone();
    let timer = Timer::new().unwrap();
    timer
        .start(LONG, move |_, _| {
            let _ = (&cycle, &owned);
        })
        .unwrap();
    *own.borrow_mut() = Some(timer);
    drop(own);
    assert!(weak.upgrade().is_some(), "the loop keeps it");
    drop(lp);
    assert!(weak.upgrade().is_none());
}

#[test]
fn callbacks_are_dropped_with_their_handle() {
    let lp = Loop::new().unwrap();
    let owned = Rc::new(());
    let weak = Rc::downgrade(&owned);
    let timer = Timer::new().unwrap();
    timer.start(LONG, move |_, _| drop(owned.clone())).unwrap();
    drop(timer);
    assert!(weak.upgrade().is_none());
    assert!(lp.is_alive(), "its closing is to be finished");
    assert!(!lp.run(Mode::Default));
}

#[test]
fn detached_handles_and_tasks_go_with_the_loop() {
    let lp = Loop::new().unwrap();
    let owned = Rc::new(());
    let weak = Rc::downgrade(&owned);
    let timer = Timer::new().unwrap();
    let held = owned.clone();
    timer.start(LONG, move |_, _| drop(held.clone())).unwrap();
    timer.detach();
    let other = Timer::new().unwrap();
    let held = owned.clone();
    let task = lp.spawn(async move {
        let _held = (held, other);
        pending::<()>().await;
    });
    drop(owned);
    lp.run(Mode::NoWait);
    assert_eq!(weak.strong_count(), 2);
    drop(lp);
    assert_eq!(weak.strong_count(), 0);
    task.abort();
    assert!(task.is_finished());
}

#[test]
fn a_handle_without_its_loop_does_nothing() {
    let lp = Loop::new().unwrap();
    let timer = Timer::new().unwrap();
    let (near, far) = UnixStream::pair().unwrap();
    let poll = AsyncFd::new(near).unwrap();
    let sender = Async::new(|_, _| ()).unwrap().sender();
    drop(lp);
    let owned = Rc::new(());
    let weak = Rc::downgrade(&owned);
    let _ = timer.start(LONG, move |_, _| drop(owned.clone()));
    assert!(weak.upgrade().is_none(), "nobody would ever take it back");
    timer.stop();
    timer.unref();
    sender.send();
    let _ = poll.start(Readiness::READABLE, |_, _| ());
    drop(poll);
    // The descriptor was closed with its handle.
    let mut byte = [0];
    assert_eq!(std::io::Read::read(&mut &far, &mut byte).unwrap(), 0);
}

#[test]
fn the_loops_that_tasks_and_callbacks_are_given_do_not_keep_it() {
    let lp = Loop::new().unwrap();
    let owned = Rc::new(());
    let weak = Rc::downgrade(&owned);
    let held = owned.clone();
    drop(lp.spawn(async move {
        let _held = (
            held,
            blacklight::try_current(),
            blacklight::current().clone(),
        );
        pending::<()>().await;
    }));
    let timer = Timer::new().unwrap();
    let kept = Rc::new(RefCell::new(None));
    let keeps = kept.clone();
    timer
        .start(Duration::ZERO, move |lp, _| {
            let _ = &owned;
            *keeps.borrow_mut() = Some(lp.clone());
            lp.stop();
        })
        .unwrap();
    lp.run(Mode::Default);
    assert_eq!(weak.strong_count(), 2);
    drop(lp);
    assert_eq!(weak.strong_count(), 0);
    // What is left of the loop makes nothing any more.
    let gone = kept.borrow_mut().take().unwrap();
    assert!(gone.enter(Timer::new).is_err());
    assert!(gone.work(|| (), |_, _| ()).is_err());
    let task = gone.spawn(async {});
    let other = Loop::new().unwrap();
    assert!(other.block_on(task).unwrap_err().is_cancelled());
    assert!(gone.is_gone() && gone.downgrade().upgrade().is_none());
}

/// Does something with the loop when it is dropped.
struct Busy(Timer);

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.start(LONG, |_, _| ());
        assert!(blacklight::try_current().is_none());
    }
}

#[test]
fn what_is_dropped_with_the_loop_may_use_its_handles() {
    let lp = Loop::new().unwrap();
    let busy = Busy(Timer::new().unwrap());
    let timer = Timer::new().unwrap();
    timer
        .start(LONG, move |_, _| assert!(busy.0.is_active()))
        .unwrap();
    let busy = Busy(Timer::new().unwrap());
    drop(lp.spawn(async move {
        pending::<()>().await;
        drop(busy);
    }));
    lp.run(Mode::NoWait);
    timer.detach();
}

/// Something of a loop's that can be dropped at any time.
#[allow(dead_code, reason = "it is there to be dropped")]
enum Thing {
    Timer(Timer),
    Idle(Idle),
    Prepare(Prepare),
    Check(Check),
    Async(Async),
    AsyncFd(AsyncFd<UnixStream>),
    Task(blacklight::JoinHandle<()>),
    Sleep(blacklight::Sleep),
    Work(blacklight::Blocking<()>),
    Stream(blacklight::UnixStream),
    Pipe(Pipe),
    Listener(TcpListener),
    Socket(UdpSocket),
    Loop(Loop),
}

type Things = Rc<RefCell<Vec<Thing>>>;

/// What every callback does: drops, makes and moves things at random.
fn stir(lp: &LoopHandle, things: &Things, random: &Rc<Random>, count: &Rc<Cell<usize>>) {
    let choice = random.below(8);
    if choice < 4 {
        let len = things.borrow().len();
        if len > 0 {
            let at = random.below(len);
            let thing = things.borrow_mut().swap_remove(at);
            if let (Thing::Task(task), 0) = (&thing, choice) {
                task.abort();
            }
            drop(thing);
        }
    }
    if things.borrow().len() < 24 {
        make(lp, things, random, count);
    }
    if choice == 7 {
        lp.stop();
    }
}

fn make(lp: &LoopHandle, things: &Things, random: &Rc<Random>, count: &Rc<Cell<usize>>) {
    // Callbacks own a way to the things, so that there are cycles everywhere; and what
    // they own themselves is counted.
    let owned = Counted::new(count);
    let (its, random2, count2) = (things.clone(), random.clone(), count.clone());
    let act = move |lp: &LoopHandle| {
        let _ = &owned;
        stir(lp, &its, &random2, &count2);
    };
    let kind = random.below(14);
    let ms = random.below(3) as u64;
    let thing = match kind {
        0 => {
            let timer = Timer::new().unwrap();
            let time = Duration::from_millis(ms);
            timer.start_repeating(time, move |lp, _| act(lp)).unwrap();
            Thing::Timer(timer)
        }
        1 => {
            let idle = Idle::new().unwrap();
            idle.start(move |lp, _| act(lp)).unwrap();
            Thing::Idle(idle)
        }
        2 => {
            let prepare = Prepare::new().unwrap();
            prepare.start(move |lp, _| act(lp)).unwrap();
            Thing::Prepare(prepare)
        }
        3 => {
            let check = Check::new().unwrap();
            check.start(move |lp, _| act(lp)).unwrap();
            Thing::Check(check)
        }
        4 => {
            let wakeup = Async::new(move |lp, _| act(lp)).unwrap();
            wakeup.sender().send();
            Thing::Async(wakeup)
        }
        5 => {
            let (near, far) = UnixStream::pair().unwrap();
            drop(far);
            let poll = AsyncFd::new(near).unwrap();
            poll.start(Readiness::READABLE, move |lp, _| act(lp))
                .unwrap();
            Thing::AsyncFd(poll)
        }
        6 => Thing::Task(lp.spawn(async move {
            for _ in 0..5 {
                blacklight::sleep(Duration::from_micros(100 * ms)).await;
                act(&blacklight::current());
            }
        })),
        7 => Thing::Sleep(blacklight::sleep(Duration::from_millis(ms))),
        8 => {
            lp.work(|| (), move |lp, _| act(lp)).unwrap();
            Thing::Work(lp.spawn_blocking(|| ()))
        }
        9 => {
            let (near, far) = blacklight::UnixStream::pair().unwrap();
            near.read_start(move |lp, _, _| act(lp)).unwrap();
            far.write_then(vec![1; 1000], |_, _| ()).unwrap();
            things.borrow_mut().push(Thing::Stream(far));
            Thing::Stream(near)
        }
        10 => {
            // More than goes at once, so that it is cancelled in the end.
            let (near, far) = blacklight::UnixStream::pair().unwrap();
            far.write_then(vec![1; 1 << 20], move |lp, _| act(lp))
                .unwrap();
            far.shutdown_then(|_, _| ()).unwrap();
            things.borrow_mut().push(Thing::Stream(far));
            Thing::Stream(near)
        }
        11 => {
            let listener =
                TcpListener::from_std(std::net::TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
            let address = listener.local_addr().unwrap();
            listener.accept_start(move |lp, _, _| act(lp)).unwrap();
            // It fails if the listener goes first.
            let detach = |_: &LoopHandle, stream: std::io::Result<TcpStream>| {
                let _ = stream.map(TcpStream::detach);
            };
            TcpStream::connect_then(address, detach).unwrap();
            Thing::Listener(listener)
        }
        12 => {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let socket = UdpSocket::from_std(socket).unwrap();
            let own = socket.local_addr().unwrap();
            socket.recv_start(move |lp, _, _| act(lp)).unwrap();
            socket.send_to_then("x", own, |_, _| ()).unwrap();
            Thing::Socket(socket)
        }
        _ => {
            let (reader, writer) = std::io::pipe().unwrap();
            let reader = Pipe::from_fd(reader.into()).unwrap();
            let writer = Pipe::from_fd(writer.into()).unwrap();
            things.borrow_mut().push(Thing::Pipe(reader.clone()));
            things.borrow_mut().push(Thing::Pipe(writer.clone()));
            Thing::Task(lp.spawn(async move {
                while reader.read(&mut [0; 3]).await.is_ok_and(|count| count > 0) {
                    act(&blacklight::current());
                    let _ = writer.try_write(b"more");
                }
            }))
        }
    };
    things.borrow_mut().push(thing);
}

#[test]
fn things_dropped_at_random_points_leave_nothing_behind() {
    for seed in seeds(1..200) {
        let random = Rc::new(Random::new(seed));
        let count = Rc::new(Cell::new(0));
        let things = Things::default();
        let lp = Loop::new().unwrap();
        things.borrow_mut().push(Thing::Loop(Loop::new().unwrap()));
        for _ in 0..6 {
            lp.enter(|| make(&lp, &things, &random, &count));
        }
        for _ in 0..10 {
            lp.run(Mode::NoWait);
        }
        drop(lp);
        // Callbacks are gone with their loop; what was dropped by hand was gone before.
        assert_eq!(count.get(), 0);
        let left = std::mem::take(&mut *things.borrow_mut());
        drop(left);
        assert_eq!(Rc::strong_count(&things), 1);
    }
}
