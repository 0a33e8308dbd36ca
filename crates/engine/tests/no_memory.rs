//! Handles whose making fails for want of memory leave nothing behind, and once they are made the
//! loop queues what it needs for them without asking for more.

#[path = "support/each_mechanism.rs"]
mod each_mechanism;

use blacklight_engine::{Descriptor, Engine, Errno, Event, Mechanism, Mode, Run, Spinning, Token};
use each_mechanism::{alone, engine_on, on_each_mechanism, run};
use rustix::process::{Signal, getpid, kill_process};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;

/// The system's allocator, which refuses one request of a thread that asks for that.
struct Refusing;

thread_local! {
    /// How many requests are granted before one is refused.
    static GRANTED: Cell<Option<u32>> = const { Cell::new(None) };
}

fn is_refused() -> bool {
    let refused = GRANTED.try_with(|granted| {
        let left = granted.get();
        granted.set(left.and_then(|left| left.checked_sub(1)));
        left == Some(0)
    });
    refused.unwrap_or(false)
}

// SAFETY: every call is passed on as it is to the system's allocator, which keeps the contract,
// or refused, as the contract allows; deciding that does not allocate.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_refused() {
            true => std::ptr::null_mut(),
            // SAFETY: the caller keeps `alloc`'s contract, which is the same.
            false => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match is_refused() {
            true => std::ptr::null_mut(),
            // SAFETY: the caller keeps `realloc`'s contract, which is the same.
            false => unsafe { System.realloc(at, layout, size) },
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract, which is the same.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

on_each_mechanism!(
    pending_callbacks_of_closed_handles_take_no_room,
    signals_of_stopped_handles_take_no_room,
);

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_tcp_handle_that_cannot_be_made_is_forgotten() {
    alone(a_tcp_handle_is_refused_at_each_request);
}

fn a_tcp_handle_is_refused_at_each_request() {
    const AF_INET: i32 = 2;
    for granted in 0.. {
        let mut engine = Engine::new(Some(Mechanism::Poll)).unwrap();
        let before = open_descriptors();
        GRANTED.set(Some(granted));
        let made = engine.tcp_init(Token(1), Some(AF_INET));
        let refused = GRANTED.take().is_none();
        assert_eq!(
            engine.is_unused(),
            made.is_err(),
            "after {granted} requests"
        );
        match made {
            Ok(_) => {
                assert!(!refused, "the refused request was needed for nothing");
                assert!(granted > 2, "the socket's table was asked for as well");
                return;
            }
            Err(error) => assert_eq!(error, Errno::ENOMEM),
        }
        assert_eq!(open_descriptors(), before);
    }
}

/// Calls something that must not ask for memory. A request would be refused, and end the test.
fn without_memory<R>(call: impl FnOnce() -> R) -> R {
    GRANTED.set(Some(0));
    let result = call();
    assert!(GRANTED.take().is_some(), "a refused request was survived");
    result
}

/// Each takes the place of the one before, which was closed with its callback pending.
fn pending_callbacks_of_closed_handles_take_no_room(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    for _ in 0..100 {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let pipe = engine.pipe_init(Token(1), false).unwrap();
        // SAFETY: the socket is given away.
        let socket = unsafe { Descriptor::adopt(ours.into_raw_fd()) };
        engine.stream_open(pipe, socket, true, true).unwrap();
        without_memory(|| engine.stream_shutdown(pipe, Token(2))).unwrap();
        engine.close(pipe).unwrap();
    }
    let mut told = Vec::new();
    run(&mut engine, Mode::NoWait, |_, event| told.push(event));
    let expected = [
        Event::Shutdown(Token(2), Err(Errno::ECANCELED)),
        Event::Closed(Token(1)),
    ];
    assert_eq!(told, expected.repeat(100));
}

fn signals_of_stopped_handles_take_no_room(mechanism: Mechanism) {
    const SIGNAL: i32 = Signal::USR2.as_raw();
    let mut engine = engine_on(mechanism);
    // A loop that may spin asks the system how many processors there are.
    engine.set_spinning(Spinning::Never);
    let start = |engine: &mut Engine, key| engine.signal_start(key, SIGNAL, false).unwrap();
    let keys: Vec<_> = (0..5)
        .map(|_| engine.signal_init(Token(1)).unwrap())
        .collect();
    keys.iter().for_each(|&key| start(&mut engine, key));
    let told = Some(Event::Signal(Token(1), SIGNAL));
    for _ in 0..10 {
        kill_process(getpid(), Signal::USR2).unwrap();
        // Any thread may catch it, so that it may take a moment.
        let mut run = Run::new(Mode::Once);
        let next = without_memory(|| engine.next(&mut run));
        assert_eq!(next, told);
        for &key in &keys {
            engine.signal_stop(key).unwrap();
            start(&mut engine, key);
        }
    }
}
