//! Programs go on to use the descriptor of a stream that they have given away: they connect it
//! again, or put another file in its place.

#[path = "support/each_mechanism.rs"]
mod each_mechanism;

use blacklight_engine::{Address, Buffers, Engine, Errno, Event, Key, Mechanism, Mode, Token};
use each_mechanism::{GUARD, guarded_engine_on, on_each_mechanism, run, told};
use std::io::{Read, Write};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

on_each_mechanism!(
    a_connected_stream_that_connects_again_writes_and_shuts_down,
    a_connected_stream_connects_again_while_writes_wait,
    what_was_not_read_is_read_after_connecting_again,
    a_file_put_in_the_place_of_a_stopped_one_is_read,
    a_file_put_in_place_by_another_thread_is_read_and_written,
    stopping_and_starting_reads_every_byte_once,
);

/// The events that are handed out, up to the one that is waited for.
fn until(engine: &mut Engine, last: Event) -> Vec<Event> {
    let mut events = Vec::new();
    while events.last() != Some(&last) {
        run(engine, Mode::Once, |_, event| {
            assert_ne!(event, Event::Timer(GUARD), "after {events:?}");
            events.push(event);
        });
    }
    events
}

fn read(engine: &mut Engine, key: Key) -> Result<usize, Errno> {
    engine.stream_read(key, &mut [MaybeUninit::uninit(); 64][..])
}

/// As [`read`], with nothing for what the kernel has not after all.
fn read_some(engine: &mut Engine, key: Key) -> usize {
    match read(engine, key) {
        Err(Errno::EAGAIN) => 0,
        result => result.unwrap(),
    }
}

/// Runs until as many bytes have been read.
fn read_bytes(engine: &mut Engine, key: Key, bytes: usize) {
    let mut count = 0;
    while count < bytes {
        run(engine, Mode::Once, |engine, event| match event {
            Event::Read(Token(1)) => count += read_some(engine, key),
            event => panic!("{event:?} after {count} bytes"),
        });
    }
    assert_eq!(count, bytes);
}

fn connect(engine: &mut Engine, listener: &TcpListener) -> (Key, Address, TcpStream) {
    let address = Address::from(listener.local_addr().unwrap());
    let client = engine.tcp_init(Token(1), None).unwrap();
    engine.tcp_connect(client, Token(2), &address).unwrap();
    until(engine, Event::Connect(Token(2), Ok(())));
    (client, address, listener.accept().unwrap().0)
}

/// The kernel says nothing new of a socket that is connected already. What it said before was
/// forgotten, so that writes made meanwhile waited until the handle was closed.
fn a_connected_stream_that_connects_again_writes_and_shuts_down(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (client, address, mut theirs) = connect(&mut engine, &listener);
    engine.tcp_connect(client, Token(3), &address).unwrap();
    let word = Buffers::owned(b"word".to_vec());
    engine.stream_write(client, Token(4), word, None).unwrap();
    engine.stream_shutdown(client, Token(5)).unwrap();
    let end = Event::Shutdown(Token(5), Ok(()));
    let expected = [
        Event::Connect(Token(3), Ok(())),
        Event::Write(Token(4), Ok(()), 4),
        end,
    ];
    assert_eq!(until(&mut engine, end), expected);
    let mut received = String::new();
    theirs.read_to_string(&mut received).unwrap();
    assert_eq!(received, "word");
}

/// Nobody ever makes room for the writes that wait.
fn a_connected_stream_connects_again_while_writes_wait(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (client, address, mut theirs) = connect(&mut engine, &listener);
    const MANY: usize = 64 << 20;
    let many = Buffers::owned(vec![0; MANY]);
    engine.stream_write(client, Token(3), many, None).unwrap();
    assert_eq!(told(&mut engine), [], "there is no room");
    engine.tcp_connect(client, Token(4), &address).unwrap();
    until(&mut engine, Event::Connect(Token(4), Ok(())));
    let reader = std::thread::spawn(move || theirs.read_exact(&mut vec![1; MANY]));
    until(&mut engine, Event::Write(Token(3), Ok(()), MANY));
    reader.join().unwrap().unwrap();
}

fn what_was_not_read_is_read_after_connecting_again(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (client, address, mut theirs) = connect(&mut engine, &listener);
    engine.read_start(client).unwrap();
    theirs.write_all(&[7; 100]).unwrap();
    let mut first = 0;
    while first == 0 {
        run(&mut engine, Mode::Once, |engine, event| {
            assert_eq!(event, Event::Read(Token(1)));
            first = read(engine, client).unwrap();
            engine.read_stop(client);
        });
    }
    engine.tcp_connect(client, Token(3), &address).unwrap();
    until(&mut engine, Event::Connect(Token(3), Ok(())));
    // The poller is asked nothing anew for this one, which does not keep the loop alive.
    engine.read_start_quietly(client).unwrap();
    let keeper = engine.timer_init(GUARD).unwrap();
    engine.timer_start(keeper, 10_000, 0).unwrap();
    read_bytes(&mut engine, client, 100 - first);
}

/// The kind of file that a stream has.
#[derive(Clone, Copy)]
enum Kind {
    Tcp,
    Unix,
    Pipe,
}
use Kind::{Pipe, Tcp, Unix};

impl Kind {
    /// An end to read from, and one to write to.
    fn ends(self) -> (OwnedFd, Box<dyn Write>) {
        match self {
            Tcp => {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                (listener.accept().unwrap().0.into(), Box::new(theirs))
            }
            Unix => {
                let (ours, theirs) = UnixStream::pair().unwrap();
                (ours.into(), Box::new(theirs))
            }
            Pipe => {
                let (ours, theirs) = std::io::pipe().unwrap();
                (ours.into(), Box::new(theirs))
            }
        }
    }
}

/// A stream that reads.
fn reading(engine: &mut Engine, kind: Kind) -> (Key, Box<dyn Write>) {
    let (ours, theirs) = kind.ends();
    let key = match kind {
        Tcp => engine.tcp_init(Token(1), None).unwrap(),
        Unix | Pipe => engine.pipe_init(Token(1), false).unwrap(),
    };
    engine.stream_open(key, ours.into(), true, true).unwrap();
    engine.read_start(key).unwrap();
    (key, theirs)
}

/// Puts another file in the place of a stream's.
fn replace(fd: i32, file: OwnedFd) {
    // SAFETY: the descriptor stays open, and is the engine's to close.
    let mut place = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(fd) });
    rustix::io::dup2(&file, &mut place).unwrap();
    rustix::io::ioctl_fionbio(&file, true).unwrap();
}

/// Epoll knows files and not numbers: what it knew went with the old file, and stopping and
/// starting again was thought to need no word to it.
fn a_file_put_in_the_place_of_a_stopped_one_is_read(mechanism: Mechanism) {
    let exchanges = [
        (Tcp, Tcp),
        (Unix, Unix),
        (Pipe, Pipe),
        (Pipe, Unix),
        (Unix, Pipe),
    ];
    for (before, after) in exchanges {
        for (takes_a_turn, keeps_old) in [(false, false), (true, false), (false, true)] {
            let mut engine = guarded_engine_on(mechanism);
            let (stream, mut old) = reading(&mut engine, before);
            old.write_all(b"old").unwrap();
            read_bytes(&mut engine, stream, 3);
            engine.read_stop(stream);
            if takes_a_turn {
                assert_eq!(told(&mut engine), []);
            }
            let fd = engine.stream_fd(stream).unwrap();
            let (ours, mut new) = after.ends();
            // A copy of the old file is enough for epoll to keep it.
            // SAFETY: the engine has it open.
            let kept = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
            let kept = kept.ok().filter(|_| keeps_old);
            replace(fd, ours);
            engine.read_start(stream).unwrap();
            new.write_all(b"new one").unwrap();
            read_bytes(&mut engine, stream, 7);
            drop(kept);
        }
    }
}

fn a_file_put_in_place_by_another_thread_is_read_and_written(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let (stream, mut old) = reading(&mut engine, Unix);
    let fd = engine.stream_fd(stream).unwrap();
    old.write_all(b"old").unwrap();
    read_bytes(&mut engine, stream, 3);
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(b"new").unwrap();
    std::thread::spawn(move || replace(fd, ours.into()))
        .join()
        .unwrap();
    // Nobody has said that the file is another one, so all that may happen is that it is not read.
    run(&mut engine, Mode::NoWait, |engine, event| {
        assert_eq!(event, Event::Read(Token(1)));
        assert!(matches!(read(engine, stream), Ok(3) | Err(Errno::EAGAIN)));
    });
    let answer = Buffers::owned(b"answer".to_vec());
    engine.stream_write(stream, Token(2), answer, None).unwrap();
    until(&mut engine, Event::Write(Token(2), Ok(()), 6));
    let mut received = [0; 6];
    theirs.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"answer");
    engine.read_stop(stream);
    engine.read_start(stream).unwrap();
    theirs.write_all(b"more").unwrap();
    let mut bytes = 0;
    while bytes < 4 {
        run(&mut engine, Mode::Once, |engine, event| {
            assert_eq!(event, Event::Read(Token(1)));
            bytes += read_some(engine, stream);
        });
    }
}

/// Asking the kernel anew brings what it has said already once more. That must not make a stream
/// that has been stopped read, nor one that reads wait.
fn stopping_and_starting_reads_every_byte_once(mechanism: Mechanism) {
    for kind in [Tcp, Unix, Pipe] {
        let mut engine = guarded_engine_on(mechanism);
        let (stream, mut theirs) = reading(&mut engine, kind);
        for round in 0..40 {
            theirs.write_all(&[7; 100]).unwrap();
            let mut bytes = 0;
            while bytes < 100 {
                run(&mut engine, Mode::Once, |engine, event| {
                    assert_eq!(event, Event::Read(Token(1)));
                    bytes += read_some(engine, stream);
                    engine.read_stop(stream);
                    if round % 2 == 0 {
                        engine.read_start(stream).unwrap();
                    }
                });
                if round % 2 == 1 {
                    assert_eq!(told(&mut engine), [], "it has been stopped");
                    engine.read_start(stream).unwrap();
                }
            }
            assert_eq!(bytes, 100);
        }
        assert_eq!(told(&mut engine), [], "all has been read");
    }
}
