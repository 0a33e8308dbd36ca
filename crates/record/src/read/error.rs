//! Why a record cannot be read.

use crate::layout::VERSION;
use std::fmt;
use std::io;

/// Why a record cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no such process.
    NoProcess(u32),
    /// The process belongs to somebody else.
    OtherUser(u32),
    /// The process does not run on Blacklight, has made no loop yet, forbids watching, or has found
    /// no place for a record.
    NotHere(u32),
    /// The process has ended.
    Gone(u32),
    /// The record has another version of the layout.
    OtherVersion {
        /// The process.
        pid: u32,
        /// The version of its record.
        found: u32,
    },
    /// The record contradicts itself.
    Damaged(&'static str),
    /// The process has been asked to record, and the system has refused it the memory.
    Refused(u32),
    /// The process has been asked to record and has not begun to.
    NotRecording(u32),
    /// The system refuses to read it.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoProcess(pid) => write!(f, "there is no process {pid}"),
            Error::OtherUser(pid) => write!(f, "process {pid} belongs to another user"),
            Error::NotHere(pid) => write!(
                f,
                "process {pid} has no record: it does not run on Blacklight, has made no loop, forbids watching (BLACKLIGHT_RECORD=never), or has found no room in memory for one"
            ),
            Error::Gone(pid) => write!(f, "process {pid} has ended"),
            Error::OtherVersion { pid, found } => write!(
                f,
                "the record of process {pid} has version {found}, and this command reads version {VERSION}"
            ),
            Error::Damaged(what) => write!(f, "the record is damaged: {what}"),
            Error::NotRecording(pid) => write!(
                f,
                "process {pid} was asked to record and has not begun: its loops are asleep, and begin when they wake"
            ),
            Error::Refused(pid) => write!(
                f,
                "process {pid} cannot record: the file system that its record is on is full, its system refuses memory for it, or it has changed its user or its root since it began"
            ),
            Error::Io(error) => write!(f, "cannot read the record: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::Damaged("it is too short"),
            // The system refuses places that no file can have.
            io::ErrorKind::InvalidInput => Error::Damaged("a part of it lies nowhere"),
            _ => Error::Io(error),
        }
    }
}
