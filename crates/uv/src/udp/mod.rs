//! UDP handles.
//!
//! What programs may look at of a `uv_udp_t` is kept true here: the two counts of the send
//! queue, the descriptor, and some bits of `flags`. One of these is more than a mirror:
//! whether datagrams are received in batches is decided by the bit in `flags`, each time, for a
//! program may copy that word from one handle to another. Whether a handle is bound is for
//! the kernel to know, and nobody here looks at the bit.
//!
//! | file | what it owns |
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
    // SAFETY: the caller's duties are the same.
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
    // SAFETY: the caller gives us a loop and memory for a handle.
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

/// Writes the descriptor, the family and the connection where programs look for them.
///
/// # Safety
///
/// `udp` is an initialised handle.
pub(crate) unsafe fn mirror(udp: *mut uv_udp_t) {
    // SAFETY: the caller vouches for it.
    unsafe {
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

/// Does what a call needs the engine for, and mirrors what that has changed if the handle had
/// no socket before: it may have got one, which is then bound.
///
/// # Safety
///
/// `udp` is an initialised handle.
unsafe fn with_socket<R>(udp: *mut uv_udp_t, f: impl FnOnce(&mut Engine, Key) -> R) -> R {
    // SAFETY: the caller vouches for it.
    unsafe {
        let result = engine::with_handle(udp.cast(), f);
        if (*udp).io_watcher.fd == -1 {
            mirror(udp);
            if (*udp).io_watcher.fd != -1 {
                (*udp).handle.flags |= UV_HANDLE_BOUND;
            }
        }
        result
    }
}

/// What `uv_close` leaves behind of a handle.
///
/// # Safety
///
/// `udp` is closing.
pub(crate) unsafe fn closed(udp: *mut uv_udp_t) {
    // SAFETY: the caller vouches for it.
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
    // SAFETY: the caller's duties are the same.
    unsafe { uv_udp_open_ex(udp, sock, UV_UDP_REUSEADDR) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_open_ex(udp: *mut uv_udp_t, sock: c_int, flags: c_uint) -> c_int {
    if flags & !(UV_UDP_REUSEADDR | UV_UDP_REUSEPORT) != 0 {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller gives us a handle and, unless this fails, its socket.
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

/// An address that a program wants to use for binding or connecting.
///
/// # Safety
///
/// `addr` points to a socket address of its family's size.
unsafe fn internet_address(addr: *const sockaddr) -> Result<Address, Errno> {
    // SAFETY: the caller vouches for it.
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
    // SAFETY: the caller gives us a handle and an address.
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

/// No address is the end of the connection.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_connect(udp: *mut uv_udp_t, addr: *const sockaddr) -> c_int {
    // SAFETY: the caller gives us a handle, and an address or null.
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
/// The caller gives us a handle, and room for as much of an address as `namelen` says.
unsafe fn address(
    udp: *const uv_udp_t,
    name: *mut sockaddr,
    namelen: *mut c_int,
    peer: bool,
) -> c_int {
    // SAFETY: the caller vouches for it.
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
    // SAFETY: the caller's duties are the same.
    unsafe { address(udp, name, namelen, false) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_getpeername(
    udp: *const uv_udp_t,
    name: *mut sockaddr,
    namelen: *mut c_int,
) -> c_int {
    // SAFETY: the caller's duties are the same.
    unsafe { address(udp, name, namelen, true) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_set_broadcast(udp: *mut uv_udp_t, on: c_int) -> c_int {
    // SAFETY: the caller gives us a handle.
    unsafe {
        engine::code(engine::with_handle(udp.cast(), |engine, key| {
            engine.udp_set_broadcast(key, on != 0)
        }))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_set_ttl(udp: *mut uv_udp_t, ttl: c_int) -> c_int {
    // SAFETY: the caller gives us a handle.
    unsafe {
        engine::code(engine::with_handle(udp.cast(), |engine, key| {
            engine.udp_set_ttl(key, ttl)
        }))
    }
}
