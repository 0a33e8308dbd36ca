//! Reads and writes byte streams, without raising SIGPIPE.

use crate::buffer::{Buffers, Space};
use crate::platform::buffer::IOV_MAX;
use crate::{Errno, RawFd, platform};
use std::mem::MaybeUninit;

/// The kind of file behind a stream, which decides the calls for reading and writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// A socket, where a flag prevents SIGPIPE.
    Socket,
    /// A socket that preserves message boundaries.
    Messages,
    /// A pipe or FIFO, where writing without a reader raises SIGPIPE.
    Pipe,
    /// A terminal or some other device.
    Device,
}

impl Transport {
    /// The kind of an open descriptor.
    pub fn of(fd: RawFd) -> Result<Transport, Errno> {
        Ok(match crate::fd::file_type(fd)? {
            libc::S_IFSOCK => match crate::socket::option(fd, libc::SOL_SOCKET, libc::SO_TYPE)? {
                libc::SOCK_STREAM => Transport::Socket,
                _ => Transport::Messages,
            },
            libc::S_IFIFO => Transport::Pipe,
            _ => Transport::Device,
        })
    }

    /// Whether it is a socket of either kind.
    #[inline]
    pub fn is_socket(self) -> bool {
        matches!(self, Transport::Socket | Transport::Messages)
    }
}

/// Repeats a call while signals interrupt it.
#[inline]
pub(crate) fn retry(mut call: impl FnMut() -> isize) -> Result<usize, Errno> {
    loop {
        match call() {
            -1 if Errno::last() == Errno::EINTR => {}
            -1 => return Err(Errno::last()),
            count => return Ok(count as usize),
        }
    }
}

/// Reads once into `room`. Zero is the end. For a socket, `recv` is a shorter path through the
/// kernel than `read`, which is the fallback if the program has replaced the socket by another
/// file.
#[inline]
pub fn read<'a>(
    fd: RawFd,
    room: impl Into<Space<'a>>,
    transport: Transport,
) -> Result<usize, Errno> {
    let room = room.into();
    if transport.is_socket() {
        // SAFETY: the buffer is writable.
        match retry(|| unsafe { libc::recv(fd, room.base(), room.len(), 0) }) {
            Err(Errno::ENOTSOCK) => {}
            received => return received,
        }
    }
    // SAFETY: as above.
    retry(|| unsafe { libc::read(fd, room.base(), room.len()) })
}

/// Writes once from the front of `buffers` and returns the number of bytes written. The buffers
/// stay unchanged.
#[inline]
pub fn write(fd: RawFd, buffers: &Buffers, transport: Transport) -> Result<usize, Errno> {
    let iovecs = buffers.iovecs();
    write_iovecs(fd, &iovecs[..iovecs.len().min(IOV_MAX)], transport)
}

/// The most buffers of several writes that are joined for one call.
const JOINED: usize = 64;

/// As [`write()`], from all of `several` in order, or from as many of their buffers as one call
/// takes.
pub fn write_joined<'a>(
    fd: RawFd,
    several: impl Iterator<Item = &'a Buffers>,
    transport: Transport,
) -> Result<usize, Errno> {
    let mut joined = [const { EMPTY }; JOINED];
    let all = several.flat_map(|buffers| buffers.iovecs());
    let count = joined
        .iter_mut()
        .zip(all)
        .map(|(to, from)| *to = *from)
        .count();
    write_iovecs(fd, &joined[..count], transport)
}

const EMPTY: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// As [`write()`], but at most `limit` bytes, as if the kernel had room for no more.
#[cold]
pub fn write_part(
    fd: RawFd,
    buffers: &Buffers,
    transport: Transport,
    limit: usize,
) -> Result<usize, Errno> {
    let full = |iovec: &&libc::iovec| iovec.iov_len > 0;
    let Some(&first) = buffers.iovecs().iter().find(full) else {
        return write(fd, buffers, transport);
    };
    let part = libc::iovec {
        iov_len: first.iov_len.min(limit),
        ..first
    };
    write_iovecs(fd, &[part], transport)
}

/// Inlined into every write for speed, and so is `send`.
#[inline(always)]
fn write_iovecs(fd: RawFd, iovecs: &[libc::iovec], transport: Transport) -> Result<usize, Errno> {
    match transport {
        Transport::Socket | Transport::Messages => match send(fd, iovecs) {
            // The program has replaced the socket by another file.
            Err(Errno::ENOTSOCK) => write_to_pipe(fd, iovecs),
            sent => sent,
        },
        Transport::Pipe => write_to_pipe(fd, iovecs),
        // SAFETY: `Buffers::new`'s caller guarantees the buffers.
        Transport::Device => retry(|| unsafe { writev(fd, iovecs) }),
    }
}

#[inline(always)]
fn send(fd: RawFd, iovecs: &[libc::iovec]) -> Result<usize, Errno> {
    if let [one] = iovecs {
        // SAFETY: `Buffers::new`'s caller guarantees the buffers.
        return retry(|| unsafe { libc::send(fd, one.iov_base, one.iov_len, libc::MSG_NOSIGNAL) });
    }
    // SAFETY: all zeros are a valid message.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = iovecs.as_ptr().cast_mut();
    message.msg_iovlen = iovecs.len() as _;
    // SAFETY: as above, and the message lives through the call.
    retry(|| unsafe { libc::sendmsg(fd, &message, libc::MSG_NOSIGNAL) })
}

/// # Safety
///
/// The buffers are readable.
unsafe fn writev(fd: RawFd, iovecs: &[libc::iovec]) -> isize {
    // SAFETY: the caller guarantees the buffers.
    unsafe { libc::writev(fd, iovecs.as_ptr(), iovecs.len() as libc::c_int) }
}

#[inline(never)]
fn write_to_pipe(fd: RawFd, iovecs: &[libc::iovec]) -> Result<usize, Errno> {
    // SAFETY: `Buffers::new`'s caller guarantees the buffers.
    if let Some(written) = unsafe { platform::stream::write_without_sigpipe(fd, iovecs) } {
        return written;
    }
    // SAFETY: `Buffers::new`'s caller guarantees the buffers.
    without_sigpipe(|| retry(|| unsafe { writev(fd, iovecs) }))
}

/// Blocks SIGPIPE during a call, and discards it if the call has raised it.
fn without_sigpipe(call: impl FnOnce() -> Result<usize, Errno>) -> Result<usize, Errno> {
    let mut sigpipe = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: the sets are filled before they are read.
    let was_pending = unsafe {
        libc::sigemptyset(sigpipe.as_mut_ptr());
        libc::sigaddset(sigpipe.as_mut_ptr(), libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, sigpipe.as_ptr(), before.as_mut_ptr());
        let mut pending = MaybeUninit::uninit();
        libc::sigpending(pending.as_mut_ptr());
        libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 1
    };
    let result = call();
    // SAFETY: as above. A signal that was pending before the call stays pending.
    unsafe {
        if result == Err(Errno::EPIPE) && !was_pending {
            let now = crate::timespec(0);
            libc::sigtimedwait(sigpipe.as_ptr(), std::ptr::null_mut(), &now);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a call fail with each of the errors in turn, and then succeed.
    fn failing(errors: &[libc::c_int]) -> (Result<usize, Errno>, usize) {
        let mut calls = 0;
        let result = retry(|| {
            let error = errors.get(calls);
            calls += 1;
            error.map_or(7, |&error| {
                // SAFETY: the address is that of this thread's errno.
                unsafe { *crate::platform::errno::location() = error };
                -1
            })
        });
        (result, calls)
    }

    #[test]
    fn an_interrupted_call_is_made_again() {
        assert_eq!(failing(&[]), (Ok(7), 1));
        assert_eq!(failing(&[libc::EINTR, libc::EINTR]), (Ok(7), 3));
        let reset = [libc::EINTR, libc::ECONNRESET];
        assert_eq!(failing(&reset), (Err(Errno::ECONNRESET), 2));
    }

    #[test]
    fn a_part_is_written_from_the_first_buffer_that_has_some() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let text = *b"black light";
        let piece = |at: usize, len| libc::iovec {
            iov_base: text.as_ptr().wrapping_add(at) as *mut _,
            iov_len: len,
        };
        let mut array = [piece(0, 0), piece(0, 5), piece(5, 6)];
        // SAFETY: the array and the text outlive the buffers.
        let mut buffers = unsafe { Buffers::new(array.as_mut_ptr(), 3) };
        let fd = std::os::fd::AsRawFd::as_raw_fd(&writer);
        for (limit, expected) in [(3, 3), (100, 2), (6, 6)] {
            let written = write_part(fd, &buffers, Transport::Pipe, limit);
            assert_eq!(written, Ok(expected));
            buffers.advance(expected);
        }
        drop(writer);
        let mut read = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut read).unwrap();
        assert_eq!(read, text);
    }
}
