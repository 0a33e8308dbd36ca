//! Sending.
//!
//! A datagram that is sent at once allocates nothing. The array of its buffers is copied only if it
//! has to be queued.

use crate::abi::{UV_UDP_SEND, uv_buf_t, uv_udp_send_cb, uv_udp_send_t, uv_udp_t};
use crate::udp::with_socket;
use crate::{alloc, engine};
use blacklight_engine::{AddressRef, BATCH, Buffers, Errno, Outbox};
use libc::sockaddr;
use std::ffi::{c_int, c_uint};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

/// The destination of a datagram, which may be null.
///
/// # Safety
///
/// `addr` is null, or points to a socket address that stays unchanged while the result is used.
unsafe fn destination<'a>(addr: *const sockaddr) -> Result<Option<AddressRef<'a>>, Errno> {
    match addr.is_null() {
        true => Ok(None),
        // SAFETY: the caller upholds the contract.
        false => unsafe { AddressRef::from_ptr(addr) }.map(Some),
    }
}

/// Buffers that are only read, during a call. Fails with `EINVAL` without buffers; a negative
/// number of them arrives as a huge one.
///
/// # Safety
///
/// `bufs` points to `nbufs` buffers, which stay unchanged while the result is used.
unsafe fn borrowed(bufs: *const uv_buf_t, nbufs: c_uint) -> Result<Buffers, Errno> {
    if bufs.is_null() || nbufs == 0 || nbufs > c_int::MAX as c_uint {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the caller guarantees them. Nothing advances them, so they are not written to.
    let buffers = unsafe { Buffers::new(bufs.cast_mut().cast(), nbufs as usize) };
    match buffers.bytes() > blacklight_sys::buffer::MAX_BYTES {
        true => Err(Errno::EINVAL),
        false => Ok(buffers),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_send(
    req: *mut uv_udp_send_t,
    udp: *mut uv_udp_t,
    bufs: *const uv_buf_t,
    nbufs: c_uint,
    addr: *const sockaddr,
    send_cb: uv_udp_send_cb,
) -> c_int {
    // SAFETY: the caller passes a request, a handle and an address, and buffers whose contents stay
    // unchanged until the request is reported done.
    unsafe {
        let parts = borrowed(bufs, nbufs).and_then(|buffers| Ok((buffers, destination(addr)?)));
        let (buffers, to) = match parts {
            Ok(parts) => parts,
            Err(error) => return error.code(),
        };
        let token = engine::token(req);
        (*req).bufs = null_mut();
        let sent = with_socket(udp, |engine, key| engine.udp_send(key, token, &buffers, to));
        let sent = match sent {
            Ok(true) => Ok(()),
            Ok(false) => send_later(req, udp, bufs, nbufs, to),
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            return error.code();
        }
        (*req).req.type_ = UV_UDP_SEND;
        (*req).handle = udp;
        (*req).send_cb = send_cb;
        (*udp).send_queue_size = (*udp).send_queue_size.wrapping_add(buffers.bytes());
        (*udp).send_queue_count = (*udp).send_queue_count.wrapping_add(1);
    }
    0
}

/// Queues a datagram, after copying the array of its buffers into the request, or into memory of
/// its own if it is long.
///
/// # Safety
///
/// As for `uv_udp_send`.
#[cold]
unsafe fn send_later(
    req: *mut uv_udp_send_t,
    udp: *mut uv_udp_t,
    bufs: *const uv_buf_t,
    nbufs: c_uint,
    to: Option<AddressRef<'_>>,
) -> Result<(), Errno> {
    let count = nbufs as usize;
    // SAFETY: the caller guarantees its array, and the copy is large enough. The program keeps the
    // request and the buffers' memory unchanged until the send is reported done.
    unsafe {
        let copy = match count <= (*req).bufsml.len() {
            true => (&raw mut (*req).bufsml).cast::<uv_buf_t>(),
            false => {
                let size = count.checked_mul(size_of::<uv_buf_t>());
                alloc::malloc(size.ok_or(Errno::ENOMEM)?).cast()
            }
        };
        if copy.is_null() {
            return Err(Errno::ENOMEM);
        }
        copy.copy_from_nonoverlapping(bufs, count);
        (*req).nbufs = nbufs;
        (*req).bufs = copy;
        let token = engine::token(req);
        let buffers = Buffers::new(copy.cast(), count);
        engine::with_handle(udp.cast(), |engine, key| {
            engine.udp_send_later(key, token, buffers, to)
        })
        .inspect_err(|_| release_bufs(req))
    }
}

/// Frees the copy of the array of buffers, where it did not fit into the request.
///
/// # Safety
///
/// `uv_udp_send` has filled in `req`.
unsafe fn release_bufs(req: *mut uv_udp_send_t) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        if (*req).bufs != (&raw mut (*req).bufsml).cast() {
            alloc::free((*req).bufs.cast());
        }
        (*req).bufs = null_mut();
    }
}

/// Completes a send, sent or failed.
///
/// # Safety
///
/// `req` was passed to `uv_udp_send`, and this is its completion.
pub(crate) unsafe fn send_done(req: *mut uv_udp_send_t, status: c_int, bytes: usize) {
    // SAFETY: the program keeps the request and its handle valid up to the callback.
    unsafe {
        release_bufs(req);
        let udp = (*req).handle;
        (*udp).send_queue_size = (*udp).send_queue_size.wrapping_sub(bytes);
        (*udp).send_queue_count = (*udp).send_queue_count.wrapping_sub(1);
        if let Some(cb) = (*req).send_cb {
            cb(req, status);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_try_send(
    udp: *mut uv_udp_t,
    bufs: *const uv_buf_t,
    nbufs: c_uint,
    addr: *const sockaddr,
) -> c_int {
    // SAFETY: the caller passes a handle, an address, and buffers, which are only read.
    unsafe {
        let sent = borrowed(bufs, nbufs).and_then(|buffers| {
            let to = destination(addr)?;
            with_socket(udp, |engine, key| engine.udp_try_send(key, &buffers, to))
        });
        match sent {
            Ok(count) => count as c_int,
            Err(error) => error.code(),
        }
    }
}

/// Sends several datagrams, each with its own buffers and destination. Nothing is sent unless all
/// of them are well-formed.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_try_send2(
    udp: *mut uv_udp_t,
    count: c_uint,
    bufs: *const *mut uv_buf_t,
    nbufs: *const c_uint,
    addrs: *const *mut sockaddr,
    flags: c_uint,
) -> c_int {
    if count == 0 || flags != 0 || bufs.is_null() || nbufs.is_null() {
        return Errno::EINVAL.code();
    }
    let count = count as usize;
    // SAFETY: the caller passes a handle and arrays of that length; for a connected handle the
    // array of addresses may be null.
    unsafe {
        let addr = |at: usize| match addrs.is_null() {
            true => null(),
            false => (*addrs.add(at)).cast_const(),
        };
        let connected = engine::with_handle(udp.cast(), |engine, key| engine.udp_is_connected(key));
        for at in 0..count {
            let checked = borrowed(*bufs.add(at), *nbufs.add(at))
                .and_then(|_| destination(addr(at)))
                .and_then(|to| match (connected, to) {
                    (true, Some(_)) => Err(Errno::EISCONN),
                    (false, None) => Err(Errno::EDESTADDRREQ),
                    _ => Ok(()),
                });
            if let Err(error) = checked {
                return error.code();
            }
        }
        let mut sent = 0;
        while sent < count {
            let wanted = (count - sent).min(BATCH);
            match try_send_batch(udp, wanted, bufs.add(sent), nbufs.add(sent), |at| {
                addr(sent + at)
            }) {
                Ok(went) => {
                    sent += went;
                    if went < wanted {
                        break;
                    }
                }
                Err(error) if sent == 0 => return error.code(),
                Err(_) => break,
            }
        }
        sent as c_int
    }
}

/// Sends up to a batch of datagrams and returns how many were sent.
///
/// # Safety
///
/// The arrays have `count` entries, which the caller has checked.
unsafe fn try_send_batch(
    udp: *mut uv_udp_t,
    count: usize,
    bufs: *const *mut uv_buf_t,
    nbufs: *const c_uint,
    addr: impl Fn(usize) -> *const sockaddr,
) -> Result<usize, Errno> {
    // SAFETY: the caller guarantees the arrays.
    unsafe {
        let mut all: [MaybeUninit<Buffers>; BATCH] = [const { MaybeUninit::uninit() }; BATCH];
        let mut outbox = Outbox::new();
        for (at, buffers) in all.iter_mut().enumerate().take(count) {
            let buffers = buffers.write(borrowed(*bufs.add(at), *nbufs.add(at))?);
            outbox.push(buffers, destination(addr(at))?);
        }
        engine::with_handle(udp.cast(), |engine, key| {
            engine.udp_try_send_batch(key, &mut outbox)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_get_send_queue_size(udp: *const uv_udp_t) -> usize {
    // SAFETY: the caller passes a handle.
    unsafe { (*udp).send_queue_size }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_get_send_queue_count(udp: *const uv_udp_t) -> usize {
    // SAFETY: the caller passes a handle.
    unsafe { (*udp).send_queue_count }
}
