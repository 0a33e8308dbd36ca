//! Receiving.
//!
//! Every buffer from the program's alloc callback goes back to the program in exactly one callback
//! that ends its use: the one that brings a datagram, an error or nothing; or, where several
//! datagrams came into one buffer, a last one with `UV_UDP_MMSG_FREE`. The exception is libuv's: a
//! program that stops receiving during such a batch gets no further callback for it.

use crate::abi::{UV_HANDLE_UDP_RECVMMSG, uv_alloc_cb, uv_buf_t, uv_udp_recv_cb, uv_udp_t};
use crate::engine;
use crate::udp::{UV_UDP_LINUX_RECVERR, with_socket};
use blacklight_engine::{AddressRef, Errno, Inbox, SenderRoom};
use libc::sockaddr;
use std::ffi::{c_int, c_uint};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

const UV_UDP_PARTIAL: c_uint = 2;
const UV_UDP_MMSG_CHUNK: c_uint = 8;
const UV_UDP_MMSG_FREE: c_uint = 16;

/// The largest datagram: the size suggested to the alloc callback, and that of each piece of a
/// buffer for several datagrams.
const MAX_DATAGRAM: usize = 64 * 1024;

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_recv_start(
    udp: *mut uv_udp_t,
    alloc_cb: uv_alloc_cb,
    recv_cb: uv_udp_recv_cb,
) -> c_int {
    if udp.is_null() || alloc_cb.is_none() || recv_cb.is_none() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes a handle.
    unsafe {
        let started = with_socket(udp, |engine, key| engine.udp_receive_start(key));
        if started.is_ok() {
            (*udp).alloc_cb = alloc_cb;
            (*udp).recv_cb = recv_cb;
        }
        engine::code(started)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_recv_stop(udp: *mut uv_udp_t) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe {
        engine::with_known(udp.cast(), (), |engine, key| engine.udp_receive_stop(key));
        (*udp).alloc_cb = None;
        (*udp).recv_cb = None;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_using_recvmmsg(udp: *const uv_udp_t) -> c_int {
    // SAFETY: the caller passes a handle.
    c_int::from(unsafe { (*udp).handle.flags } & UV_HANDLE_UDP_RECVMMSG != 0)
}

/// Calls the handle's callback, if it has one.
///
/// # Safety
///
/// `udp` is an initialised handle, and nothing of the engine is borrowed.
unsafe fn call_back(
    udp: *mut uv_udp_t,
    nread: isize,
    buf: &uv_buf_t,
    addr: *const sockaddr,
    flags: c_uint,
) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        if let Some(cb) = (*udp).recv_cb {
            cb(udp, nread, buf, addr, flags);
        }
    }
}

/// An error as a callback's number of bytes; `EAGAIN` is zero.
fn no_bytes(error: Errno) -> isize {
    match error {
        Errno::EAGAIN => 0,
        error => error.code() as isize,
    }
}

/// Asks the program for a buffer. Without one, reports `UV_ENOBUFS`.
///
/// # Safety
///
/// `udp` is receiving, and nothing of the engine is borrowed.
unsafe fn alloc_buffer(udp: *mut uv_udp_t) -> Option<uv_buf_t> {
    let mut buf = uv_buf_t {
        base: null_mut(),
        len: 0,
    };
    // SAFETY: the caller upholds the contract; the callbacks were given to `uv_udp_recv_start`.
    unsafe {
        if let Some(alloc) = (*udp).alloc_cb {
            alloc(udp.cast(), MAX_DATAGRAM, &mut buf);
        }
        if buf.base.is_null() || buf.len == 0 {
            call_back(udp, no_bytes(Errno::ENOBUFS), &buf, null(), 0);
            return None;
        }
    }
    Some(buf)
}

/// The program's buffer as a slice to receive into.
///
/// # Safety
///
/// The alloc callback has just returned the buffer.
unsafe fn as_slice<'a>(buf: &uv_buf_t) -> &'a mut [MaybeUninit<u8>] {
    // Neither the kernel nor a slice can take more at once.
    let len = buf.len.min(isize::MAX as usize);
    // SAFETY: the caller upholds the contract.
    unsafe { std::slice::from_raw_parts_mut(buf.base.cast(), len) }
}

/// Handles a readable socket: asks the program for a buffer, receives, and calls the callback.
///
/// # Safety
///
/// `udp` is receiving.
pub(crate) unsafe fn receive(udp: *mut uv_udp_t) {
    // SAFETY: the handle is open, and the program keeps it valid until it is closed.
    unsafe {
        let Some(buf) = alloc_buffer(udp) else {
            return;
        };
        if (*udp).handle.flags & UV_HANDLE_UDP_RECVMMSG != 0 {
            return receive_batch(udp, &buf);
        }
        let mut sender = SenderRoom::new();
        let received = engine::with_handle(udp.cast(), |engine, key| {
            engine.udp_receive(key, as_slice(&buf), &mut sender)
        });
        match received {
            Ok(datagram) => {
                let addr = datagram.sender.map_or(null(), AddressRef::as_ptr);
                let flags = if datagram.truncated {
                    UV_UDP_PARTIAL
                } else {
                    0
                };
                call_back(udp, datagram.len as isize, &buf, addr, flags);
            }
            Err(error) => call_back(udp, no_bytes(error), &buf, null(), 0),
        }
    }
}

/// Receives several datagrams into the pieces of one buffer and calls the callback for each, then
/// once more to return the buffer. Stopping in between ends the callbacks.
///
/// # Safety
///
/// `udp` is receiving, and the alloc callback has just returned the buffer.
unsafe fn receive_batch(udp: *mut uv_udp_t, buf: &uv_buf_t) {
    if buf.len < MAX_DATAGRAM {
        // SAFETY: the caller guarantees the handle.
        return unsafe { call_back(udp, no_bytes(Errno::EINVAL), buf, null(), 0) };
    }
    let mut inbox = Inbox::new();
    // SAFETY: the caller guarantees both. A handle that the program closes meanwhile stays valid
    // until the closing phase.
    unsafe {
        let received = engine::with_handle(udp.cast(), |engine, key| {
            engine.udp_receive_batch(key, as_slice(buf), MAX_DATAGRAM, &mut inbox)
        });
        let count = match received {
            Ok(count) => count,
            Err(error) => return call_back(udp, no_bytes(error), buf, null(), 0),
        };
        for at in 0..count {
            let Some(datagram) = inbox.get(at) else {
                break;
            };
            let chunk = uv_buf_t {
                base: buf.base.add(at * MAX_DATAGRAM),
                len: MAX_DATAGRAM,
            };
            let addr = datagram.sender.map_or(null(), AddressRef::as_ptr);
            let partial = if datagram.truncated {
                UV_UDP_PARTIAL
            } else {
                0
            };
            let flags = UV_UDP_MMSG_CHUNK | partial;
            call_back(udp, datagram.len as isize, &chunk, addr, flags);
        }
        call_back(udp, 0, buf, null(), UV_UDP_MMSG_FREE);
    }
}

/// Handles a socket with a pending error of an earlier datagram: asks the program for a buffer,
/// receives, and calls the callback. Every callback returns the buffer to the program, even where
/// datagrams are received in batches.
///
/// # Safety
///
/// `udp` is receiving.
pub(crate) unsafe fn receive_error(udp: *mut uv_udp_t) {
    // SAFETY: the handle is open, and the program keeps it valid until it is closed.
    unsafe {
        let Some(buf) = alloc_buffer(udp) else {
            return;
        };
        let received = engine::with_handle(udp.cast(), |engine, key| {
            engine.udp_receive_error(key, as_slice(&buf))
        });
        match received {
            Ok(report) => {
                let from = report.from.as_ref().map(AddressRef::from);
                let addr = from.map_or(null(), AddressRef::as_ptr);
                let nread = report.error.code() as isize;
                call_back(udp, nread, &buf, addr, UV_UDP_LINUX_RECVERR);
            }
            Err(error) => call_back(udp, no_bytes(error), &buf, null(), 0),
        }
    }
}

/// Reports that a handle cannot receive any more.
///
/// # Safety
///
/// `udp` is open.
pub(crate) unsafe fn receive_end(udp: *mut uv_udp_t, error: Errno) {
    let none = uv_buf_t {
        base: null_mut(),
        len: 0,
    };
    // SAFETY: the caller upholds the contract.
    unsafe { call_back(udp, error.code() as isize, &none, null(), 0) }
}
