//! A ring that takes file requests to the kernel and returns their results:
//! <https://man7.org/linux/man-pages/man7/io_uring.7.html>.
//!
//! Invariants:
//!
//! - The ring has no kernel thread that polls it: each request is submitted by a system call, with
//!   the caller's credentials at that time. The kernel runs what it can at once inside that call,
//!   and blocking operations on its own threads.
//! - At most [`ENTRIES`] requests exist, including those whose results have not been taken, so that
//!   neither queue can overflow.
//! - After the kernel has refused one request, the ring takes no more: the refused request is still
//!   in the queue, and another call would submit it.
//! - A request's memory belongs to the kernel until the result arrives. Dropping a ring cancels its
//!   requests and waits for them.
//! - A ring belongs to the process that made it. A child made by fork(2) has the ring's memory
//!   mapped and must not touch it.

use super::eventfd::Waker;
use crate::fs::io::Buffer;
use crate::poll::{POLLIN, poll, pollfd};
use crate::{Errno, RawFd, buffer, per_process};
use io_uring::types::{CancelBuilder, Fd, FsyncFlags, Timespec};
use io_uring::{IoUring, Probe, opcode, squeue};
use std::collections::VecDeque;
use std::ffi::c_char;
use std::fmt;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The environment variable by which the user permits rings, under libuv's name.
pub const SETTING: &str = "UV_USE_IO_URING";

/// The most requests that a ring has at a time.
pub const ENTRIES: usize = 256;

/// The newest operation of Linux 6.0. Older kernels cannot cancel all requests at once, and have
/// bugs that would need individual workarounds.
const NEWEST_NEEDED: u8 = opcode::SendZc::CODE;

/// The number that marks a cancellation among the requests.
const CANCELLATION: u64 = u64::MAX;

/// The interval at which a dropped ring cancels its remaining requests again.
const CANCEL_INTERVAL_NS: u64 = 10_000_000;

const CWD: Fd = Fd(libc::AT_FDCWD);

/// An operation for a ring.
///
/// The constructors that take pointers are unsafe: the memory must stay valid, and untouched as the
/// operation requires, until the result has been taken from the ring that the operation was
/// submitted to, or that ring has been dropped. Paths are C strings.
pub struct Operation(squeue::Entry);

/// The kernel's form of a file's metadata: the memory for [`Operation::stat`].
pub type StatBuffer = libc::statx;

// SAFETY: only the kernel follows the pointers, and any thread may submit the operation.
unsafe impl Send for Operation {}

impl Operation {
    /// As [`fs::io::read`](crate::fs::io::read).
    ///
    /// # Safety
    ///
    /// See [`Operation`]: `buffers` points to that many buffers, which are writable.
    pub unsafe fn read(
        fd: RawFd,
        buffers: *const Buffer,
        count: u32,
        offset: Option<i64>,
    ) -> Operation {
        let (fd, offset) = (Fd(fd), offset.unwrap_or(-1) as u64);
        Operation(match count {
            1 => {
                // SAFETY: the caller guarantees the array.
                let Buffer { iov_base, iov_len } = unsafe { *buffers };
                let len = iov_len.min(buffer::MAX_BYTES) as u32;
                let read = opcode::Read::new(fd, iov_base.cast(), len);
                read.offset(offset).build()
            }
            _ => opcode::Readv::new(fd, buffers, count)
                .offset(offset)
                .build(),
        })
    }

    /// As [`fs::io::write`](crate::fs::io::write), except that the kernel may write less.
    ///
    /// # Safety
    ///
    /// See [`Operation`]: `buffers` points to that many buffers, which are readable.
    pub unsafe fn write(
        fd: RawFd,
        buffers: *const Buffer,
        count: u32,
        offset: Option<i64>,
    ) -> Operation {
        let (fd, offset) = (Fd(fd), offset.unwrap_or(-1) as u64);
        Operation(match count {
            1 => {
                // SAFETY: the caller guarantees the array.
                let Buffer { iov_base, iov_len } = unsafe { *buffers };
                let len = iov_len.min(buffer::MAX_BYTES) as u32;
                let write = opcode::Write::new(fd, iov_base.cast_const().cast(), len);
                write.offset(offset).build()
            }
            _ => opcode::Writev::new(fd, buffers, count)
                .offset(offset)
                .build(),
        })
    }

    /// As [`fs::file::sync`](crate::fs::file::sync).
    pub fn sync(fd: RawFd) -> Operation {
        Operation(opcode::Fsync::new(Fd(fd)).build())
    }

    /// As [`fs::file::sync_data`](crate::fs::file::sync_data).
    pub fn sync_data(fd: RawFd) -> Operation {
        let sync = opcode::Fsync::new(Fd(fd));
        Operation(sync.flags(FsyncFlags::DATASYNC).build())
    }

    /// As [`fs::file::close`](crate::fs::file::close), except that an interruption is reported.
    pub fn close(fd: RawFd) -> Operation {
        Operation(opcode::Close::new(Fd(fd)).build())
    }

    /// As [`fs::file::open`](crate::fs::file::open). Always runs on the kernel's threads: the
    /// kernel would otherwise first try `O_NONBLOCK`, which opens a FIFO that has no other end.
    ///
    /// # Safety
    ///
    /// See [`Operation`].
    pub unsafe fn open(path: *const c_char, flags: i32, mode: u32) -> Operation {
        let open = opcode::OpenAt::new(CWD, path).flags(flags | libc::O_CLOEXEC);
        Operation(open.mode(mode).build().flags(squeue::Flags::ASYNC))
    }

    /// As the functions of [`fs::stat`](crate::fs::stat), with statx(2)'s arguments.
    ///
    /// # Safety
    ///
    /// See [`Operation`]: `into` is writable.
    pub unsafe fn stat(
        dir: RawFd,
        path: *const c_char,
        flags: i32,
        into: *mut StatBuffer,
    ) -> Operation {
        let stat = opcode::Statx::new(Fd(dir), path, into.cast());
        Operation(stat.flags(flags).mask(super::stat::MASK).build())
    }

    /// As [`fs::file::truncate`](crate::fs::file::truncate). Some kernels with rings lack it.
    pub fn truncate(fd: RawFd, len: u64) -> Operation {
        Operation(opcode::Ftruncate::new(Fd(fd), len).build())
    }

    /// As [`fs::path::mkdir`](crate::fs::path::mkdir).
    ///
    /// # Safety
    ///
    /// See [`Operation`].
    pub unsafe fn mkdir(path: *const c_char, mode: u32) -> Operation {
        Operation(opcode::MkDirAt::new(CWD, path).mode(mode).build())
    }

    /// As [`fs::path::unlink`](crate::fs::path::unlink).
    ///
    /// # Safety
    ///
    /// See [`Operation`].
    pub unsafe fn unlink(path: *const c_char) -> Operation {
        Operation(opcode::UnlinkAt::new(CWD, path).build())
    }

    /// As [`fs::path::rmdir`](crate::fs::path::rmdir).
    ///
    /// # Safety
    ///
    /// See [`Operation`].
    pub unsafe fn rmdir(path: *const c_char) -> Operation {
        let unlink = opcode::UnlinkAt::new(CWD, path);
        Operation(unlink.flags(libc::AT_REMOVEDIR).build())
    }

    /// As [`fs::path::rename`](crate::fs::path::rename).
    ///
    /// # Safety
    ///
    /// See [`Operation`].
    pub unsafe fn rename(from: *const c_char, to: *const c_char) -> Operation {
        Operation(opcode::RenameAt::new(CWD, from, CWD, to).build())
    }

    /// As [`fs::path::link`](crate::fs::path::link).
    ///
    /// # Safety
    ///
    /// See [`Operation`].
    pub unsafe fn link(from: *const c_char, to: *const c_char) -> Operation {
        Operation(opcode::LinkAt::new(CWD, from, CWD, to).build())
    }

    /// As [`fs::path::symlink`](crate::fs::path::symlink).
    ///
    /// # Safety
    ///
    /// See [`Operation`].
    pub unsafe fn symlink(target: *const c_char, path: *const c_char) -> Operation {
        Operation(opcode::SymlinkAt::new(CWD, target, path).build())
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operation({})", self.0.get_opcode())
    }
}

/// The result of a request, and the number under which it was submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The request's number.
    pub number: u64,
    /// The result that the equivalent system call would have returned.
    pub result: Result<u32, Errno>,
}

/// See the module's documentation.
pub struct Ring {
    ring: IoUring,
    /// A bit for each operation that the kernel has.
    operations: u64,
    /// Requests without a completion so far.
    in_progress: usize,
    completed: VecDeque<Completion>,
    takes_more: bool,
    process: u64,
}

/// Set when the kernel has refused to make a ring, as it will again.
static NO_RINGS: AtomicBool = AtomicBool::new(false);

impl Ring {
    /// Makes a ring that signals `wake` for each completion. Its descriptor is close-on-exec.
    pub fn new(wake: &Waker) -> Result<Ring, Errno> {
        if NO_RINGS.load(Relaxed) {
            return Err(Errno::ENOSYS);
        }
        per_process::watch_forks();
        let ring = IoUring::new(ENTRIES as u32).map_err(|error| {
            let error = Errno::from(error);
            // Administrators forbid rings with EPERM, as sandboxes do.
            if matches!(error, Errno::ENOSYS | Errno::EPERM) {
                NO_RINGS.store(true, Relaxed);
            }
            error
        })?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(NEWEST_NEEDED) {
            return Err(Errno::ENOSYS);
        }
        ring.submitter().register_eventfd(wake.fd())?;
        let mut completed = VecDeque::new();
        completed.try_reserve_exact(ENTRIES)?;
        Ok(Ring {
            ring,
            operations: (0..64).fold(0, |bits, operation| {
                bits | u64::from(probe.is_supported(operation)) << operation
            }),
            in_progress: 0,
            completed,
            takes_more: true,
            process: per_process::generation(),
        })
    }

    /// Whether this process made the ring.
    #[inline]
    pub fn is_ours(&self) -> bool {
        self.process == per_process::generation()
    }

    /// Signals another waker from now on, or the same one after it was renewed.
    pub fn wake_through(&self, wake: &Waker) -> Result<(), Errno> {
        let submitter = self.ring.submitter();
        submitter.unregister_eventfd()?;
        Ok(submitter.register_eventfd(wake.fd())?)
    }

    /// The number of requests that were submitted and whose results have not been taken.
    pub fn requests(&self) -> usize {
        self.in_progress + self.completed.len()
    }

    /// Submits a request, under a number that no other request has and that is not `u64::MAX`.
    /// Returns whether the kernel has taken it.
    pub fn submit(&mut self, operation: Operation, number: u64) -> bool {
        let has_operation = self.operations >> operation.0.get_opcode() & 1 == 1;
        let taken = has_operation
            && self.is_ours()
            && self.requests() < ENTRIES
            && self.enter(operation.0.user_data(number));
        self.in_progress += usize::from(taken);
        taken
    }

    fn enter(&mut self, entry: squeue::Entry) -> bool {
        // SAFETY: the operation's constructor had its caller guarantee the memory until the result
        // is taken or the ring is dropped.
        let queued = self.takes_more && unsafe { self.ring.submission().push(&entry) }.is_ok();
        if queued {
            self.takes_more = loop {
                match self.ring.submit() {
                    Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                    submitted => break submitted.is_ok_and(|count| count == 1),
                }
            };
        }
        queued && self.takes_more
    }

    /// Cancels the request with this number. Fails with `EBUSY` if the kernel is running it or has
    /// completed it; it may still end early, with `ECANCELED` or `EINTR`.
    pub fn cancel(&mut self, number: u64) -> Result<(), Errno> {
        let cancel = opcode::AsyncCancel::new(number).build();
        if !self.is_ours() || !self.enter(cancel.user_data(CANCELLATION)) {
            return Err(Errno::EBUSY);
        }
        match self.reap() {
            Some(Ok(_)) => Ok(()),
            _ => Err(Errno::EBUSY),
        }
    }

    /// Whether there are results to take.
    #[inline]
    pub fn has_completed(&mut self) -> bool {
        self.is_ours() && (!self.completed.is_empty() || !self.ring.completion().is_empty())
    }

    /// Reaps the kernel's completions and returns the number of results to take.
    pub fn collect(&mut self) -> usize {
        if !self.is_ours() {
            return 0;
        }
        self.reap();
        self.completed.len()
    }

    /// Takes the next of the [collected](Ring::collect) results.
    pub fn take(&mut self) -> Option<Completion> {
        self.completed.pop_front()
    }

    /// Moves the kernel's completions to `completed`, except that of a cancellation, whose result
    /// is returned.
    fn reap(&mut self) -> Option<Result<u32, Errno>> {
        let mut cancellation = None;
        for entry in self.ring.completion() {
            let result = outcome(entry.result());
            match entry.user_data() {
                CANCELLATION => cancellation = Some(result),
                number => {
                    self.in_progress -= 1;
                    self.completed.push_back(Completion { number, result });
                }
            }
        }
        cancellation
    }

    /// Cancels all requests and waits until the kernel has completed them.
    #[cold]
    fn finish(&mut self) {
        while self.in_progress > 0 {
            let all = CancelBuilder::any().all();
            // Requests that are not cancelled by now have been interrupted, and are waited for.
            let _ = (self.ring.submitter()).register_sync_cancel(Some(Timespec::new()), all);
            let mut ring = [pollfd {
                fd: self.ring.as_raw_fd(),
                events: POLLIN as i16,
                revents: 0,
            }];
            let _ = poll(&mut ring, Some(CANCEL_INTERVAL_NS), None);
            self.reap();
            self.completed.clear();
        }
    }
}

/// The kernel's result as ours. A ring also returns internal error numbers for interrupted calls,
/// which no system call does.
fn outcome(result: i32) -> Result<u32, Errno> {
    match result {
        0.. => Ok(result as u32),
        -516..=-512 => Err(Errno::EINTR),
        error => Err(Errno::from_code(error)),
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.is_ours() {
            self.finish();
        }
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("fd", &self.ring.as_raw_fd())
            .field("in_progress", &self.in_progress)
            .field("completed", &self.completed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeReader, PipeWriter, Read, Write};

    /// A ring with a pending read of a pipe; `None` where there are no rings.
    fn waiting(room: &mut [u8; 4]) -> Option<(Ring, Waker, PipeReader, PipeWriter)> {
        let wake = Waker::new().unwrap();
        let mut ring = Ring::new(&wake).ok()?;
        let (from, to) = std::io::pipe().unwrap();
        let buffer = Buffer {
            iov_base: room.as_mut_ptr().cast(),
            iov_len: room.len(),
        };
        // SAFETY: the tests keep the buffer until the read is done or the ring is dropped.
        let read = unsafe { Operation::read(from.as_raw_fd(), &buffer, 1, None) };
        assert!(ring.submit(read, 7));
        assert_eq!((ring.requests(), ring.collect()), (1, 0));
        Some((ring, wake, from, to))
    }

    #[test]
    fn a_ring_that_is_dropped_leaves_nothing_behind() {
        let mut room = *b"####";
        let Some((ring, _wake, mut from, mut to)) = waiting(&mut room) else {
            return;
        };
        drop(ring);
        to.write_all(b"text").unwrap();
        let mut text = [0; 4];
        from.read_exact(&mut text).unwrap();
        assert_eq!((&text, &room), (b"text", b"####"));
    }

    #[test]
    fn a_ring_that_is_dropped_waits_for_its_requests() {
        let mut room = *b"####";
        let Some((ring, _wake, from, mut to)) = waiting(&mut room) else {
            return;
        };
        drop(from);
        drop(ring);
        // The request has held the reading end open until now.
        let error = to.write_all(b"text").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_cancelled_request_completes_once() {
        let mut room = *b"####";
        let Some((mut ring, wake, _from, mut to)) = waiting(&mut room) else {
            return;
        };
        assert_eq!(ring.cancel(8), Err(Errno::EBUSY));
        assert_eq!(ring.cancel(7), Ok(()));
        to.write_all(b"text").unwrap();
        let mut wait = [pollfd {
            fd: wake.fd(),
            events: POLLIN as i16,
            revents: 0,
        }];
        while ring.collect() == 0 {
            poll(&mut wait, None, None).unwrap();
            wake.drain();
        }
        let cancelled = Completion {
            number: 7,
            result: Err(Errno::ECANCELED),
        };
        assert_eq!(ring.take(), Some(cancelled));
        assert_eq!(ring.cancel(7), Err(Errno::EBUSY));
        assert_eq!((ring.collect(), ring.requests()), (0, 0));
        assert_eq!(room, *b"####");
    }

    #[test]
    fn interruptions_have_one_number() {
        assert_eq!(outcome(3), Ok(3));
        assert_eq!(outcome(-libc::EBADF), Err(Errno::EBADF));
        for error in [libc::EINTR, 512, 513, 514, 516] {
            assert_eq!(outcome(-error), Err(Errno::EINTR));
        }
    }
}
