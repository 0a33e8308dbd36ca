//! TCP handles: sockets, addresses and options, beyond what all streams have.

use crate::abi::{
    UV_CONNECT, UV_TCP, uv_close_cb, uv_connect_cb, uv_connect_t, uv_loop_t, uv_tcp_t,
};
use crate::{engine, handle, stream};
use blacklight_engine::{Address, BindOptions, Descriptor, Engine, Errno, KeepAlive, Key};
use std::ffi::{c_int, c_uint};

/// Flags of `uv_tcp_bind`.
const UV_TCP_IPV6ONLY: c_uint = 1;
const UV_TCP_REUSEPORT: c_uint = 2;

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tcp_init(loop_: *mut uv_loop_t, tcp: *mut uv_tcp_t) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { uv_tcp_init_ex(loop_, tcp, libc::AF_UNSPEC as c_uint) }
}

/// The lower eight bits of `flags` are the address family; the others are reserved.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tcp_init_ex(
    loop_: *mut uv_loop_t,
    tcp: *mut uv_tcp_t,
    flags: c_uint,
) -> c_int {
    if flags & !0xff != 0 {
        return Errno::EINVAL.code();
    }
    let family = match (flags & 0xff) as c_int {
        libc::AF_UNSPEC => None,
        family => Some(family),
    };
    // SAFETY: the caller passes a loop and memory for a handle.
    unsafe {
        let token = engine::token(tcp);
        match engine::with(loop_, |engine| engine.tcp_init(token, family)) {
            Ok(key) => engine::init(tcp.cast(), loop_, UV_TCP, key),
            Err(error) => return error.code(),
        }
        stream::init(tcp);
        stream::mirror(tcp);
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tcp_open(tcp: *mut uv_tcp_t, sock: c_int) -> c_int {
    // SAFETY: the caller passes a handle and, unless this fails, its socket.
    unsafe { stream::open(tcp, Descriptor::adopt(sock), true, true) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tcp_bind(
    tcp: *mut uv_tcp_t,
    addr: *const libc::sockaddr,
    flags: c_uint,
) -> c_int {
    if addr.is_null() || flags & !(UV_TCP_IPV6ONLY | UV_TCP_REUSEPORT) != 0 {
        return Errno::EINVAL.code();
    }
    let options = BindOptions {
        ipv6_only: flags & UV_TCP_IPV6ONLY != 0,
        reuse_port: flags & UV_TCP_REUSEPORT != 0,
    };
    // SAFETY: the caller passes a handle and an address.
    unsafe {
        let bound = Address::from_ptr(addr).and_then(|address| {
            if address.family() == libc::AF_UNIX {
                return Err(Errno::EINVAL);
            }
            engine::with_handle(tcp.cast(), |engine, key| {
                engine.tcp_bind(key, &address, options)
            })
        });
        stream::mirror(tcp);
        engine::code(bound)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tcp_connect(
    req: *mut uv_connect_t,
    tcp: *mut uv_tcp_t,
    addr: *const libc::sockaddr,
    cb: uv_connect_cb,
) -> c_int {
    if addr.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes a request, a handle and an address.
    unsafe {
        let token = engine::token(req);
        let begun = Address::from_ptr(addr).and_then(|address| {
            if address.family() == libc::AF_UNIX {
                return Err(Errno::EINVAL);
            }
            let address = address.with_scope();
            engine::with_handle(tcp.cast(), |engine, key| {
                engine.tcp_connect(key, token, &address)
            })
        });
        if begun.is_ok() {
            (*req).req.type_ = UV_CONNECT;
            (*req).cb = cb;
            (*req).handle = tcp;
        }
        stream::mirror(tcp);
        engine::code(begun)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tcp_getsockname(
    tcp: *const uv_tcp_t,
    name: *mut libc::sockaddr,
    namelen: *mut c_int,
) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { address(tcp, name, namelen, false) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tcp_getpeername(
    tcp: *const uv_tcp_t,
    name: *mut libc::sockaddr,
    namelen: *mut c_int,
) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { address(tcp, name, namelen, true) }
}

/// # Safety
///
/// The caller passes a handle, and room for as much of an address as `namelen` says.
unsafe fn address(
    tcp: *const uv_tcp_t,
    name: *mut libc::sockaddr,
    namelen: *mut c_int,
    peer: bool,
) -> c_int {
    // SAFETY: the caller upholds the contract.
    unsafe {
        let address =
            engine::with_handle(tcp.cast(), |engine, key| engine.stream_address(key, peer));
        engine::code(address.and_then(|address| copy_address(&address, name, namelen)))
    }
}

/// Copies an address, truncated to the caller's buffer, and stores its full length.
///
/// # Safety
///
/// `name` has room for `*namelen` bytes.
pub(crate) unsafe fn copy_address(
    address: &Address,
    name: *mut libc::sockaddr,
    namelen: *mut c_int,
) -> Result<(), Errno> {
    let bytes = address.bytes();
    // SAFETY: the caller guarantees the room.
    unsafe {
        let room = usize::try_from(*namelen).map_err(|_| Errno::EINVAL)?;
        name.cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len().min(room));
        *namelen = bytes.len() as c_int;
    }
    Ok(())
}

/// Sets an option. Succeeds and does nothing for a closing handle, as in libuv, where such a handle
/// has no socket and the option would apply to its next one.
///
/// # Safety
///
/// The caller passes a handle.
unsafe fn set_option(
    tcp: *mut uv_tcp_t,
    set: impl FnOnce(&mut Engine, Key) -> Result<(), Errno>,
) -> c_int {
    // SAFETY: the caller upholds the contract.
    unsafe {
        engine::code(engine::with_known(
            tcp.cast(),
            Ok(()),
            |engine, key| match engine.is_closing(key) {
                true => Ok(()),
                false => set(engine, key),
            },
        ))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tcp_nodelay(tcp: *mut uv_tcp_t, enable: c_int) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe { set_option(tcp, |engine, key| engine.tcp_nodelay(key, enable != 0)) }
}

/// The interval is one second and the number of probes ten, as in libuv.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tcp_keepalive(tcp: *mut uv_tcp_t, enable: c_int, delay: c_uint) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { uv_tcp_keepalive_ex(tcp, enable, delay, 1, 10) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tcp_keepalive_ex(
    tcp: *mut uv_tcp_t,
    on: c_int,
    idle: c_uint,
    intvl: c_uint,
    cnt: c_uint,
) -> c_int {
    let keepalive = (on != 0).then_some(KeepAlive {
        idle,
        interval: intvl,
        count: cnt,
    });
    // SAFETY: the caller passes a handle.
    unsafe { set_option(tcp, |engine, key| engine.tcp_keepalive(key, keepalive)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tcp_simultaneous_accepts(tcp: *mut uv_tcp_t, enable: c_int) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe {
        set_option(tcp, |engine, key| {
            engine.tcp_simultaneous_accepts(key, enable != 0)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tcp_close_reset(tcp: *mut uv_tcp_t, close_cb: uv_close_cb) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe {
        let set = engine::with_handle(tcp.cast(), |engine, key| engine.tcp_reset_on_close(key));
        if set.is_ok() {
            handle::uv_close(tcp.cast(), close_cb);
        }
        engine::code(set)
    }
}
