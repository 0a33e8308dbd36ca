//! Poll handles on real descriptors, the same tests on select, poll and epoll.

#[path = "support/each_mechanism.rs"]
mod each_mechanism;

use blacklight_engine::{Engine, Errno, Event, Key, Mechanism, Mode, RawFd, Readiness, Token};
use each_mechanism::{alone, engine_on, on_each_mechanism, run, told};
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

const READABLE: Readiness = Readiness::READABLE;
const WRITABLE: Readiness = Readiness::WRITABLE;
const DISCONNECT: Readiness = Readiness::DISCONNECT;
const PRIORITIZED: Readiness = Readiness::PRIORITIZED;

on_each_mechanism!(
    a_socket_tells_what_it_is_asked_for,
    disconnection_alone_is_not_woken_by_data,
    urgent_data_are_told,
    both_ends_of_a_pipe,
    a_hang_up_is_told_as_all_that_is_wanted,
    an_error_is_told_once_whatever_is_wanted,
    the_mask_follows_what_is_wanted,
    stopping_and_starting_within_a_turn_changes_nothing,
    a_number_opened_again_in_the_same_batch_is_another_descriptor,
    a_handle_started_again_in_the_same_batch_hears_nothing_old,
    a_closed_handle_hears_nothing_of_the_batch,
    a_descriptor_closed_behind_the_back,
    a_number_opened_again_behind_the_back,
    a_file_that_comes_back_under_its_number,
    a_descriptor_closed_before_it_is_watched,
    what_cannot_be_watched_is_refused,
    a_descriptor_has_one_watcher,
    high_numbers,
    many_at_once,
    nobody_starves,
    a_new_poller_knows_what_was_started,
    timers_are_never_early,
);

fn socket_pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .expect("a pair of sockets")
}

fn write(fd: impl AsFd) {
    assert_eq!(rustix::io::write(fd, b"!"), Ok(1));
}

fn read(fd: impl AsFd) {
    assert_eq!(rustix::io::read(fd, &mut [0u8; 64]), Ok(1));
}

fn ready(token: u64, readiness: Readiness) -> Event {
    Event::Poll(Token(token), Ok(readiness))
}

fn failed(token: u64, error: Errno) -> Event {
    Event::Poll(Token(token), Err(error))
}

/// A poll handle that watches.
fn watch(engine: &mut Engine, token: u64, fd: &impl AsRawFd, wanted: Readiness) -> Key {
    let key = engine.poll_init(Token(token), fd.as_raw_fd()).unwrap();
    engine.poll_start(key, wanted).unwrap();
    key
}

fn a_socket_tells_what_it_is_asked_for(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, theirs) = socket_pair();
    let key = watch(&mut engine, 1, &ours, READABLE | WRITABLE | DISCONNECT);
    assert_eq!(told(&mut engine), [ready(1, WRITABLE)]);
    write(&theirs);
    for _ in 0..3 {
        // Nobody reads, so it stays readable.
        assert_eq!(told(&mut engine), [ready(1, READABLE | WRITABLE)]);
    }
    read(&ours);
    assert_eq!(told(&mut engine), [ready(1, WRITABLE)]);
    engine.poll_start(key, READABLE | DISCONNECT).unwrap();
    assert_eq!(told(&mut engine), []);
    rustix::net::shutdown(&theirs, Shutdown::Write).unwrap();
    assert_eq!(told(&mut engine), [ready(1, READABLE | DISCONNECT)]);
    drop(theirs);
    assert_eq!(told(&mut engine), [ready(1, READABLE | DISCONNECT)]);
    engine.poll_start(key, WRITABLE).unwrap();
    assert_eq!(told(&mut engine), [ready(1, WRITABLE)]);
    engine.poll_stop(key).unwrap();
    // Something else keeps the loop asking.
    let timer = engine.timer_init(Token(2)).unwrap();
    engine.timer_start(timer, u64::MAX, 0).unwrap();
    let before = engine.metrics();
    assert_eq!(told(&mut engine), []);
    let after = engine.metrics();
    assert_eq!(after.loop_count, before.loop_count + 1);
    assert_eq!(
        after.events, before.events,
        "the kernel has stopped watching"
    );
}

fn disconnection_alone_is_not_woken_by_data(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, theirs) = socket_pair();
    watch(&mut engine, 1, &ours, DISCONNECT);
    write(&theirs);
    assert_eq!(told(&mut engine), []);
    rustix::net::shutdown(&theirs, Shutdown::Write).unwrap();
    assert_eq!(told(&mut engine), [ready(1, DISCONNECT)]);
}

fn urgent_data_are_told(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    let key = watch(&mut engine, 1, &ours, PRIORITIZED);
    assert_eq!(told(&mut engine), []);
    assert_eq!(rustix::net::send(&theirs, b"!", SendFlags::OOB), Ok(1));
    let mut heard = Vec::new();
    run(&mut engine, Mode::Once, |_, event| heard.push(event));
    assert_eq!(heard, [ready(1, PRIORITIZED)]);
    engine.poll_start(key, READABLE).unwrap();
    assert_eq!(
        told(&mut engine),
        [],
        "urgent data are not among the others"
    );
}

fn both_ends_of_a_pipe(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let key = watch(&mut engine, 1, &reader, READABLE);
    assert_eq!(told(&mut engine), []);
    write(&writer);
    assert_eq!(told(&mut engine), [ready(1, READABLE)]);
    read(&reader);
    drop(writer);
    // A bare hang-up: the owner finds the end by reading.
    assert_eq!(told(&mut engine), [ready(1, READABLE)]);

    engine.poll_stop(key).unwrap();
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let key = watch(&mut engine, 2, &writer, WRITABLE);
    assert_eq!(told(&mut engine), [ready(2, WRITABLE)]);
    drop(reader);
    assert_eq!(told(&mut engine), [failed(2, Errno::EBADF)]);
    assert!(
        !engine.is_active(key),
        "nobody will ever read: it is stopped"
    );
}

/// All masks, of those for select that have one of the bits that it is woken for.
fn masks(mechanism: Mechanism, woken_for: Readiness) -> impl Iterator<Item = Readiness> {
    let is_told = move |wanted: &Readiness| {
        mechanism != Mechanism::Select || wanted.bits() & woken_for.bits() != 0
    };
    (1..16).filter_map(Readiness::from_bits).filter(is_told)
}

fn a_hang_up_is_told_as_all_that_is_wanted(mechanism: Mechanism) {
    for wanted in masks(mechanism, READABLE | DISCONNECT) {
        let mut engine = engine_on(mechanism);
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        write(&writer);
        drop(writer);
        watch(&mut engine, 1, &reader, wanted);
        assert_eq!(told(&mut engine), [ready(1, wanted)], "with data");
        read(&reader);
        assert_eq!(told(&mut engine), [ready(1, wanted)], "without data");
    }
}

fn an_error_is_told_once_whatever_is_wanted(mechanism: Mechanism) {
    for wanted in masks(mechanism, READABLE | WRITABLE | DISCONNECT) {
        let mut engine = engine_on(mechanism);
        let (_, writer) = rustix::pipe::pipe().unwrap();
        watch(&mut engine, 1, &writer, wanted);
        assert_eq!(told(&mut engine), [failed(1, Errno::EBADF)], "{wanted:?}");
        assert_eq!(told(&mut engine), [], "{wanted:?}");
    }
}

fn the_mask_follows_what_is_wanted(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, theirs) = socket_pair();
    let key = watch(&mut engine, 1, &ours, READABLE);
    write(&theirs);
    let mut heard = Vec::new();
    for wanted in [
        WRITABLE,
        READABLE | WRITABLE,
        READABLE,
        WRITABLE | DISCONNECT,
    ] {
        // Changed from within the callback, where the last turn's mask is still in place.
        run(&mut engine, Mode::NoWait, |engine, event| {
            heard.push(event);
            engine.poll_start(key, wanted).unwrap();
        });
    }
    heard.extend(told(&mut engine));
    let expected = [READABLE, WRITABLE, READABLE | WRITABLE, READABLE, WRITABLE];
    assert_eq!(heard, expected.map(|readiness| ready(1, readiness)));
    engine.poll_start(key, Readiness::default()).unwrap();
    assert!(!engine.is_active(key), "to want nothing is to stop");
    assert_eq!(told(&mut engine), []);
}

fn stopping_and_starting_within_a_turn_changes_nothing(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, theirs) = socket_pair();
    let key = watch(&mut engine, 1, &ours, READABLE);
    write(&theirs);
    for _ in 0..3 {
        let mut heard = Vec::new();
        run(&mut engine, Mode::NoWait, |engine, event| {
            heard.push(event);
            engine.poll_stop(key).unwrap();
            engine.poll_start(key, READABLE).unwrap();
        });
        assert_eq!(heard, [ready(1, READABLE)]);
    }
}

/// One turn with two handles, 0 and 1, that are ready in one batch: the first to be called
/// does something to the other. Returns all that was told.
fn first_acts_on_second(
    engine: &mut Engine,
    mut act: impl FnMut(&mut Engine, usize),
) -> Vec<Event> {
    let mut heard = Vec::new();
    run(engine, Mode::NoWait, |engine, event| {
        if let Event::Poll(Token(token @ (0 | 1)), _) = event
            && heard.is_empty()
        {
            act(engine, 1 - token as usize);
        }
        heard.push(event);
    });
    heard
}

fn a_number_opened_again_in_the_same_batch_is_another_descriptor(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let ((mut a, a_peer), (mut b, b_peer)) = (socket_pair(), socket_pair());
    let (fresh, fresh_peer) = socket_pair();
    let numbers = [a.as_raw_fd(), b.as_raw_fd()];
    let keys = [
        watch(&mut engine, 0, &a, READABLE),
        watch(&mut engine, 1, &b, READABLE),
    ];
    write(&a_peer);
    write(&b_peer);
    let heard = first_acts_on_second(&mut engine, |engine, other| {
        engine.close(keys[other]).unwrap();
        // Closes what was there and puts the fresh socket under the same number.
        rustix::io::dup2(&fresh, if other == 0 { &mut a } else { &mut b }).unwrap();
        watch(engine, 2, &numbers[other], READABLE);
    });
    assert!(
        matches!(heard[..], [Event::Poll(..), Event::Closed(_)]),
        "{heard:?}"
    );
    write(&fresh_peer);
    let heard = told(&mut engine);
    assert!(heard.contains(&ready(2, READABLE)), "{heard:?}");
}

fn a_handle_started_again_in_the_same_batch_hears_nothing_old(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let ((mut a, a_peer), (mut b, b_peer)) = (socket_pair(), socket_pair());
    let (fresh, fresh_peer) = socket_pair();
    let keys = [
        watch(&mut engine, 0, &a, READABLE),
        watch(&mut engine, 1, &b, READABLE),
    ];
    write(&a_peer);
    write(&b_peer);
    let mut first = None;
    let heard = first_acts_on_second(&mut engine, |engine, other| {
        engine.poll_stop(keys[other]).unwrap();
        rustix::io::dup2(&fresh, if other == 0 { &mut a } else { &mut b }).unwrap();
        engine.poll_start(keys[other], READABLE).unwrap();
        first = Some(1 - other as u64);
    });
    let first = first.expect("one of them is called");
    assert_eq!(heard, [ready(first, READABLE)]);
    assert_eq!(told(&mut engine), [ready(first, READABLE)]);
    write(&fresh_peer);
    let heard = told(&mut engine);
    assert!(heard.contains(&ready(1 - first, READABLE)), "{heard:?}");
}

fn a_closed_handle_hears_nothing_of_the_batch(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let ((a, a_peer), (b, b_peer)) = (socket_pair(), socket_pair());
    let keys = [
        watch(&mut engine, 0, &a, READABLE),
        watch(&mut engine, 1, &b, READABLE),
    ];
    write(&a_peer);
    write(&b_peer);
    let heard = first_acts_on_second(&mut engine, |engine, other| {
        engine.close(keys[other]).unwrap();
    });
    let [Event::Poll(Token(first), Ok(_)), closed] = heard[..] else {
        panic!("one is called and the other closed: {heard:?}");
    };
    assert_eq!(closed, Event::Closed(Token(1 - first)));
}

fn a_descriptor_closed_behind_the_back(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let ((closed, _closed_peer), (ours, theirs)) = (socket_pair(), socket_pair());
    let key = watch(&mut engine, 1, &closed, READABLE);
    watch(&mut engine, 2, &ours, READABLE);
    assert_eq!(told(&mut engine), []);
    drop(closed);
    write(&theirs);
    // select tells in one turn which of its descriptors are bad, and in the next the rest.
    let mut heard = told(&mut engine);
    heard.extend(told(&mut engine));
    let is_told = heard.contains(&failed(1, Errno::EBADF));
    match mechanism {
        // The kernel has forgotten the descriptor with its closing.
        Mechanism::Epoll => assert!(!is_told && engine.is_active(key), "{heard:?}"),
        _ => assert!(is_told && !engine.is_active(key), "{heard:?}"),
    }
    assert!(heard.contains(&ready(2, READABLE)), "{heard:?}");
    engine.close(key).unwrap();
    assert!(told(&mut engine).contains(&Event::Closed(Token(1))));
    assert!(
        told(&mut engine).contains(&ready(2, READABLE)),
        "the loop goes on"
    );
}

fn a_number_opened_again_behind_the_back(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let ((mut ours, _theirs), (fresh, fresh_peer)) = (socket_pair(), socket_pair());
    let key = watch(&mut engine, 1, &ours, READABLE);
    assert_eq!(told(&mut engine), []);
    rustix::io::dup2(&fresh, &mut ours).unwrap();
    // Whether the loop has noticed or not, now it has something to say to the kernel.
    engine.poll_start(key, READABLE | WRITABLE).unwrap();
    assert_eq!(told(&mut engine), [ready(1, WRITABLE)]);
    write(&fresh_peer);
    assert_eq!(told(&mut engine), [ready(1, READABLE | WRITABLE)]);
}

fn a_file_that_comes_back_under_its_number(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, theirs) = socket_pair();
    let key = watch(&mut engine, 1, &ours, READABLE);
    assert_eq!(told(&mut engine), []);
    let number = ours.as_raw_fd();
    let survivor = rustix::io::dup(&ours).unwrap();
    drop(ours);
    // Too late for epoll, which knows the number no more but has kept the open file.
    engine.poll_stop(key).unwrap();
    let back = rustix::io::fcntl_dupfd_cloexec(&survivor, number).unwrap();
    assert_eq!(back.as_raw_fd(), number);
    engine.poll_start(key, READABLE).unwrap();
    write(&theirs);
    assert_eq!(told(&mut engine), [ready(1, READABLE)]);
}

fn a_descriptor_closed_before_it_is_watched(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let ((closed, _closed_peer), (ours, theirs)) = (socket_pair(), socket_pair());
    let check = engine.check_init(Token(3)).unwrap();
    engine.loop_watcher_start(check).unwrap();
    let key = watch(&mut engine, 1, &closed, READABLE);
    watch(&mut engine, 2, &ours, READABLE);
    drop(closed);
    write(&theirs);
    let mut heard = told(&mut engine);
    assert_eq!(
        heard.pop(),
        Some(Event::Check(Token(3))),
        "the error comes before the next phase"
    );
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(heard.contains(&failed(1, Errno::EBADF)) && heard.contains(&ready(2, READABLE)));
    assert!(!engine.is_active(key), "a refused handle is stopped");
    assert_eq!(
        told(&mut engine),
        [ready(2, READABLE), Event::Check(Token(3))]
    );
}

fn what_cannot_be_watched_is_refused(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let directory = std::fs::File::open(std::env::temp_dir()).unwrap();
    let (closed, _) = socket_pair();
    let number = closed.as_raw_fd();
    drop(closed);
    let mut refusal = |fd: RawFd| engine.poll_init(Token(1), fd).unwrap_err();
    assert_eq!(refusal(file.as_raw_fd()), Errno::EPERM);
    assert_eq!(refusal(directory.as_raw_fd()), Errno::EPERM);
    assert_eq!(refusal(number), Errno::EBADF);
    assert_eq!(refusal(-1), Errno::EBADF);
    assert!(engine.is_unused(), "nothing is left of what was refused");
}

fn a_descriptor_has_one_watcher(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, theirs) = socket_pair();
    let stopped = engine.poll_init(Token(1), ours.as_raw_fd()).unwrap();
    let first = watch(&mut engine, 2, &ours, READABLE);
    let taken = Err(Errno::EEXIST);
    assert_eq!(engine.poll_init(Token(3), ours.as_raw_fd()), taken);
    assert_eq!(engine.poll_start(stopped, READABLE), Err(Errno::EEXIST));
    write(&theirs);
    assert_eq!(told(&mut engine), [ready(2, READABLE)]);
    engine.poll_stop(first).unwrap();
    engine.poll_start(stopped, READABLE).unwrap();
    assert_eq!(told(&mut engine), [ready(1, READABLE)]);
}

/// Sees to it that so many descriptors may be open.
fn allow_descriptors(count: u64) {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < count) {
        limit.current = Some(count);
        setrlimit(Resource::Nofile, limit).expect("the system allows that many descriptors");
    }
}

fn high_numbers(mechanism: Mechanism) {
    allow_descriptors(2_000);
    let mut engine = engine_on(mechanism);
    let (low, theirs) = socket_pair();
    let high = rustix::io::fcntl_dupfd_cloexec(&low, 1_500).unwrap();
    if mechanism == Mechanism::Select {
        let refusal = engine.poll_init(Token(1), high.as_raw_fd());
        assert_eq!(refusal, Err(Errno::EINVAL));
        return;
    }
    watch(&mut engine, 1, &high, READABLE);
    write(&theirs);
    assert_eq!(told(&mut engine), [ready(1, READABLE)]);
}

/// Descriptors that are ready, and a handle for each, which watches. They are more than fit
/// into one batch, except for select, which takes no more than that.
fn many_ready(engine: &mut Engine) -> Vec<OwnedFd> {
    let count = match engine.mechanism() {
        Mechanism::Select => 900,
        _ => 1_500,
    };
    allow_descriptors(count + 100);
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let fds: Vec<_> = (0..count).map(|_| eventfd(1, flags).unwrap()).collect();
    for (token, fd) in fds.iter().enumerate() {
        watch(engine, token as u64, fd, READABLE);
    }
    fds
}

fn many_at_once(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let fds = many_ready(&mut engine);
    let check = engine.check_init(Token(u64::MAX)).unwrap();
    engine.loop_watcher_start(check).unwrap();
    for _ in 0..3 {
        let mut heard = vec![0; fds.len()];
        let mut turns = 0;
        run(&mut engine, Mode::NoWait, |_, event| match event {
            Event::Poll(Token(token), Ok(READABLE)) => {
                heard[token as usize] += 1;
                rustix::io::read(&fds[token as usize], &mut [0u8; 8]).unwrap();
            }
            Event::Check(_) => turns += 1,
            event => panic!("{event:?}"),
        });
        assert_eq!(turns, 1);
        let once = heard.iter().all(|&times| times == 1);
        assert!(once, "each is told once in the turn");
        for fd in &fds {
            rustix::io::write(fd, &1u64.to_ne_bytes()).unwrap();
        }
    }
}

/// Even where nobody reads and every batch is full.
fn nobody_starves(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let fds = many_ready(&mut engine);
    let mut heard = vec![false; fds.len()];
    for event in told(&mut engine) {
        let Event::Poll(Token(token), Ok(READABLE)) = event else {
            panic!("{event:?}");
        };
        heard[token as usize] = true;
    }
    assert!(heard.iter().all(|&heard| heard));
}

fn a_new_poller_knows_what_was_started(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let ((a, a_peer), (b, b_peer)) = (socket_pair(), socket_pair());
    watch(&mut engine, 1, &a, READABLE);
    let stopped = watch(&mut engine, 2, &b, READABLE);
    assert_eq!(told(&mut engine), []);
    engine.poll_stop(stopped).unwrap();
    // A child process calls this first. The test needs no real child.
    engine.fork().unwrap();
    write(&a_peer);
    write(&b_peer);
    assert_eq!(told(&mut engine), [ready(1, READABLE)]);
    engine.poll_start(stopped, READABLE).unwrap();
    assert_eq!(told(&mut engine).len(), 2);
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn timers_are_never_early(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let timers: Vec<_> = (0..8)
        .map(|token| engine.timer_init(Token(token)).unwrap())
        .collect();
    let mut begun_ns = vec![0; timers.len()];
    for round in 0..10 {
        for (timer, begun_ns) in timers.iter().zip(&mut begun_ns) {
            *begun_ns = monotonic_ns();
            // The time that the loop remembers is never a whole number of milliseconds.
            engine.update_time();
            engine.timer_start(*timer, 1 + round % 3, 0).unwrap();
        }
        let mut fired = 0;
        run(&mut engine, Mode::Default, |_, event| {
            let Event::Timer(Token(token)) = event else {
                panic!("{event:?}");
            };
            let passed_ns = monotonic_ns() - begun_ns[token as usize];
            let timeout_ns = (1 + round % 3) * 1_000_000;
            assert!(
                passed_ns >= timeout_ns,
                "{passed_ns} ns are less than {timeout_ns}"
            );
            fired += 1;
        });
        assert_eq!(fired, timers.len());
    }
}

/// epoll goes on reporting an open file under a descriptor that has been closed, as long
/// as somebody else has the file open. That must not reach whoever is there now.
#[test]
fn what_epoll_says_of_a_forgotten_descriptor_reaches_nobody() {
    alone(|| {
        let mut engine = engine_on(Mechanism::Epoll);
        let (ours, theirs) = socket_pair();
        let _survivor = rustix::io::dup(&ours).unwrap();
        let old = watch(&mut engine, 1, &ours, READABLE);
        assert_eq!(told(&mut engine), []);
        drop(ours);
        engine.close(old).unwrap();
        assert_eq!(told(&mut engine), [Event::Closed(Token(1))]);

        let (new, new_peer) = socket_pair();
        watch(&mut engine, 2, &new, READABLE);
        assert_eq!(told(&mut engine), []);
        write(&theirs);
        assert_eq!(told(&mut engine), []);
        write(&new_peer);
        assert_eq!(told(&mut engine), [ready(2, READABLE)]);
    });
}
