//! The record: what the event loops of a process do, for other processes of the same user to read.
//!
//! A process that runs on Blacklight has a [`Record`]: a file in memory, mapped and written by the
//! process itself, and read by the `blacklight` command. [`layout`] says what lies where,
//! [`directory`] where the files are, `write` fills them and `read` takes them apart again.
//!
//! The process that is watched makes no system call for a callback, starts no thread and opens no
//! socket. A process that nobody watches has one page of memory in which a reader may ask it to
//! record.

pub mod directory;
pub mod layout;
mod map;
pub mod read;
mod write;

pub use write::{
    Callback, HandleInfo, LoopWriter, Record, Request, ThreadWriter, WakerOffer, is_any_recording,
    pool_oldest, pool_queued, pool_taken, thread_id,
};

/// The beginning of a text, at most this many bytes of it, cut at a character.
pub fn beginning(text: &str, length: usize) -> &str {
    let mut end = text.len().min(length);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// What an event in a ring is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum What {
    /// A callback.
    Callback = 1,
    /// The loop slept.
    Sleep = 2,
    /// The loop polled in a loop, in place of going to sleep.
    Spin = 3,
    /// A run of the loop.
    Run = 4,
    /// A request was submitted to the thread pool.
    Submit = 5,
    /// A thread of the pool ran a request.
    Job = 6,
}

impl What {
    /// The event with this number.
    pub fn from_number(number: u8) -> Option<What> {
        [
            What::Callback,
            What::Sleep,
            What::Spin,
            What::Run,
            What::Submit,
            What::Job,
        ]
        .into_iter()
        .find(|what| *what as u8 == number)
    }
}
