//! The events that the engine hands to its front end.

use crate::readiness::Readiness;
use blacklight_sys::Errno;

/// The front end's name for a handle or request: in C an address, in Rust an index. The engine
/// stores it and gives it back, and never interprets it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token(pub u64);

/// The next thing to call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A timer has come due.
    Timer(Token),
    /// An idle handle runs.
    Idle(Token),
    /// A prepare handle runs, right before the loop polls.
    Prepare(Token),
    /// A check handle runs, right after the loop has polled.
    Check(Token),
    /// An async handle has been sent to.
    Async(Token),
    /// A request of the thread pool is done, or was cancelled (`ECANCELED`).
    Work(Token, Result<(), Errno>),
    /// A request on the loop's ring is done, with the result that the system call would have had.
    Ring(Token, Result<u32, Errno>),
    /// A watched descriptor is ready, or watching it has failed.
    Poll(Token, Result<Readiness, Errno>),
    /// A stream has something to read: find room for it and call
    /// [`stream_read`](crate::Engine::stream_read).
    Read(Token),
    /// A stream has ended (`EOF`) or failed. No more events for reading follow until reading is
    /// started again.
    ReadEnd(Token, Errno),
    /// A write request is done, after this many bytes.
    Write(Token, Result<(), Errno>, usize),
    /// A stream or UDP handle can be written to, as its front end
    /// [asked to be notified](crate::Engine::stream_want_writable).
    Writable(Token),
    /// A connect request is done.
    Connect(Token, Result<(), Errno>),
    /// A shutdown request is done.
    Shutdown(Token, Result<(), Errno>),
    /// A server has a connection to be accepted, or could not get one.
    Connection(Token, Result<(), Errno>),
    /// A server has closed its pending connections, since there are no descriptors left (`EMFILE`
    /// or `ENFILE`). It goes on listening.
    TurnedAway(Token, Errno),
    /// A datagram may have arrived: find room for it and call
    /// [`udp_receive`](crate::Engine::udp_receive).
    Receive(Token),
    /// The socket's error queue may have the error of an earlier send: find room and call
    /// [`udp_receive_error`](crate::Engine::udp_receive_error).
    ReceiveError(Token),
    /// A UDP handle cannot receive any more, and has stopped.
    ReceiveEnd(Token, Errno),
    /// A datagram of this many bytes has been sent, or could not be.
    Send(Token, Result<(), Errno>, usize),
    /// A signal handle's signal, by its number, was caught.
    Signal(Token, i32),
    /// A child has exited: its status, and the signal that ended it or zero.
    Exit(Token, i64, i32),
    /// A watched file or directory, or an entry of the directory, has changed:
    /// [`fs_event_name`](crate::Engine::fs_event_name) returns which, until the next event is
    /// asked for. After an error the handle goes on watching whatever it can.
    FsEvent(Token, Result<crate::fs_event::Change, Errno>),
    /// A handle has been closed; the engine has removed it.
    Closed(Token),
}

impl Event {
    /// The token of the handle or request that the event is for.
    pub fn token(&self) -> Token {
        match *self {
            Event::Timer(token)
            | Event::Idle(token)
            | Event::Prepare(token)
            | Event::Check(token)
            | Event::Async(token)
            | Event::Work(token, _)
            | Event::Ring(token, _)
            | Event::Poll(token, _)
            | Event::Read(token)
            | Event::ReadEnd(token, _)
            | Event::Write(token, ..)
            | Event::Writable(token)
            | Event::Connect(token, _)
            | Event::Shutdown(token, _)
            | Event::Connection(token, _)
            | Event::TurnedAway(token, _)
            | Event::Receive(token)
            | Event::ReceiveError(token)
            | Event::ReceiveEnd(token, _)
            | Event::Send(token, ..)
            | Event::Signal(token, _)
            | Event::Exit(token, ..)
            | Event::FsEvent(token, _)
            | Event::Closed(token) => token,
        }
    }
}
