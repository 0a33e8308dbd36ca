//! UDP handles.
//!
//! The public fields of a `uv_udp_t` are kept up to date here: the two counts of the send queue,
//! the descriptor, and some bits of `flags`. The bit for receiving in batches is also read, before
//! every receive, since a program may copy `flags` from one handle to another. The bound bit is
//! only written: the kernel knows whether a socket is bound.
//!
//! | file | contents |
//! | --- | --- |
//! | `mod.rs` | making, opening, binding, connecting, names, plain options |
//! | `send.rs` | sending |
//! | `receive.rs` | receiving |
//! | `multicast.rs` | groups and interfaces |

mod multicast;
mod receive;
mod send;

pub(crate) use receive::{receive, receive_end, receive_error};
pub(crate) use send::send_done;

use crate::abi::{
    UV_HANDLE_BOUND, UV_HANDLE_IPV6, UV_HANDLE_UDP_CONNECTED, UV_HANDLE_UDP_RECVMMSG, UV_UDP,
    uv_loop_t, uv_udp_t,
};
use crate::engine;
use crate::tcp::copy_address;
use blacklight_engine::{Address, Descriptor, Engine, Errno, Key, UdpBind, UdpReuse};
use libc::{AF_INET6, AF_UNSPEC, sockaddr};
use std::ffi::{c_int, c_uint};

const UV_UDP_IPV6ONLY: c_uint = 1;
const UV_UDP_REUSEADDR: c_uint = 4;
const UV_UDP_LINUX_RECVERR: c_uint = 32;
const UV_UDP_REUSEPORT: c_uint = 64;
const UV_UDP_RECVMMSG: c_uint = 256;

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_init(loop_: *mut uv_loop_t, udp: *mut uv_udp_t) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { uv_udp_init_ex(loop_, udp, AF_UNSPEC as c_uint) }
}

/// The lowest byte of `flags` is the address family.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_init_ex(
    loop_: *mut uv_loop_t,
    udp: *mut uv_udp_t,
    flags: c_uint,
) -> c_int {
    if flags & !(0xff | UV_UDP_RECVMMSG) != 0 {
        return Errno::EINVAL.code();
    }
    let family = match (flags & 0xff) as c_int {
        AF_UNSPEC => None,
        family => Some(family),
    };
    // SAFETY: the caller passes a loop and memory for a handle.
    unsafe {
        let token = engine::token(udp);
        match engine::with(loop_, |engine| engine.udp_init(token, family)) {
            Ok(key) => engine::init(udp.cast(), loop_, UV_UDP, key),
            Err(error) => return error.code(),
        }
        (*udp).send_queue_size = 0;
        (*udp).send_queue_count = 0;
        (*udp).alloc_cb = None;
        (*udp).recv_cb = None;
        if flags & UV_UDP_RECVMMSG != 0 {
            (*udp).handle.flags |= UV_HANDLE_UDP_RECVMMSG;
        }
        mirror(udp);
    }
    0
}

/// Copies the descriptor, the family and the connection into the public fields.
///
/// # Safety
///
/// `udp` is an initialised handle.
pub(crate) unsafe fn mirror(udp: *mut uv_udp_t) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        if !engine::is_known(udp.cast()) {
            return;
        }
        let (fd, family, connected) = engine::with_handle(udp.cast(), |engine, key| {
            let connected = engine.udp_is_connected(key);
            (engine.udp_fd(key), engine.udp_family(key), connected)
        });
        (*udp).io_watcher.fd = fd.unwrap_or(-1);
        let flags = &raw mut (*udp).handle.flags;
        *flags &= !(UV_HANDLE_IPV6 | UV_HANDLE_UDP_CONNECTED);
        *flags |= if family == Some(AF_INET6) {
            UV_HANDLE_IPV6
        } else {
            0
        };
        *flags |= if connected {
            UV_HANDLE_UDP_CONNECTED
        } else {
            0
        };
    }
}

/// Lends the engine to `f`, and updates the public fields if the handle had no socket before: `f`
/// may have created and bound one.
///
/// # Safety
///
/// `udp` is initialised or zeroed.
unsafe fn with_socket<R>(
    udp: *mut uv_udp_t,
    f: impl FnOnce(&mut Engine, Key) -> Result<R, Errno>,
) -> Result<R, Errno> {
    // SAFETY: the caller upholds the contract.
    unsafe {
        let result = engine::with_known(udp.cast(), Err(Errno::EINVAL), f);
        if (*udp).io_watcher.fd == -1 {
            mirror(udp);
            if (*udp).io_watcher.fd != -1 {
                (*udp).handle.flags |= UV_HANDLE_BOUND;
            }
        }
        result
    }
}

/// Resets the public fields of a closing handle.
///
/// # Safety
///
/// `udp` is closing.
pub(crate) unsafe fn closed(udp: *mut uv_udp_t) {
    // SAFETY: the caller upholds the contract.
    unsafe { (*udp).io_watcher.fd = -1 }
}

fn reuse(flags: c_uint) -> UdpReuse {
    UdpReuse {
        address: flags & UV_UDP_REUSEADDR != 0,
        port: flags & UV_UDP_REUSEPORT != 0,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_open(udp: *mut uv_udp_t, sock: c_int) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { uv_udp_open_ex(udp, sock, UV_UDP_REUSEADDR) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_open_ex(udp: *mut uv_udp_t, sock: c_int, flags: c_uint) -> c_int {
    if flags & !(UV_UDP_REUSEADDR | UV_UDP_REUSEPORT) != 0 {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes a handle and, unless this fails, its socket.
    unsafe {
        let sock = Descriptor::adopt(sock);
        let opened = engine::with_handle(udp.cast(), |engine, key| {
            engine.udp_open(key, sock, reuse(flags))
        });
        if let Err((error, sock)) = opened {
            sock.release();
            return error.code();
        }
        mirror(udp);
    }
    0
}

/// The address that a program passes for binding or connecting.
///
/// # Safety
///
/// `addr` points to a socket address of its family's size.
unsafe fn internet_address(addr: *const sockaddr) -> Result<Address, Errno> {
    // SAFETY: the caller upholds the contract.
    let address = unsafe { Address::from_ptr(addr) }?;
    match address.family() {
        libc::AF_UNIX => Err(Errno::EINVAL),
        _ => Ok(address),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_bind(
    udp: *mut uv_udp_t,
    addr: *const sockaddr,
    flags: c_uint,
) -> c_int {
    let known = UV_UDP_IPV6ONLY | UV_UDP_REUSEADDR | UV_UDP_REUSEPORT | UV_UDP_LINUX_RECVERR;
    if addr.is_null() || flags & !known != 0 {
        return Errno::EINVAL.code();
    }
    let options = UdpBind {
        ipv6_only: flags & UV_UDP_IPV6ONLY != 0,
        reuse: reuse(flags),
        errors: flags & UV_UDP_LINUX_RECVERR != 0,
    };
    // SAFETY: the caller passes a handle and an address.
    unsafe {
        let bound = internet_address(addr).and_then(|address| {
            engine::with_handle(udp.cast(), |engine, key| {
                engine.udp_bind(key, &address, options)
            })
        });
        mirror(udp);
        if bound.is_ok() {
            (*udp).handle.flags |= UV_HANDLE_BOUND;
        }
        engine::code(bound)
    }
}

/// A null address disconnects.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_connect(udp: *mut uv_udp_t, addr: *const sockaddr) -> c_int {
    // SAFETY: the caller passes a handle, and an address or null.
    unsafe {
        let result = match addr.is_null() {
            true => engine::with_handle(udp.cast(), |engine, key| engine.udp_disconnect(key)),
            false => internet_address(addr).and_then(|address| {
                with_socket(udp, |engine, key| engine.udp_connect(key, &address))
            }),
        };
        mirror(udp);
        engine::code(result)
    }
}

/// # Safety
///
/// The caller passes a handle, and room for as much of an address as `namelen` says.
unsafe fn address(
    udp: *const uv_udp_t,
    name: *mut sockaddr,
    namelen: *mut c_int,
    peer: bool,
) -> c_int {
    // SAFETY: the caller upholds the contract.
    unsafe {
        let address = engine::with_handle(udp.cast(), |engine, key| engine.udp_address(key, peer));
        engine::code(address.and_then(|address| copy_address(&address, name, namelen)))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_getsockname(
    udp: *const uv_udp_t,
    name: *mut sockaddr,
    namelen: *mut c_int,
) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { address(udp, name, namelen, false) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_getpeername(
    udp: *const uv_udp_t,
    name: *mut sockaddr,
    namelen: *mut c_int,
) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { address(udp, name, namelen, true) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_set_broadcast(udp: *mut uv_udp_t, on: c_int) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe {
        engine::code(engine::with_handle(udp.cast(), |engine, key| {
            engine.udp_set_broadcast(key, on != 0)
        }))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_set_ttl(udp: *mut uv_udp_t, ttl: c_int) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe {
        engine::code(engine::with_handle(udp.cast(), |engine, key| {
            engine.udp_set_ttl(key, ttl)
        }))
    }
}
