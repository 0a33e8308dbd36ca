//! Descriptors without a loop: pairs of them, and those of the operating system.

use crate::engine::code;
use blacklight_engine::Errno;
use blacklight_sys::pair;
use std::ffi::c_int;

const UV_NONBLOCK_PIPE: c_int = 0x40;

fn nonblocking(flags: [c_int; 2]) -> [bool; 2] {
    flags.map(|flags| flags & UV_NONBLOCK_PIPE != 0)
}

/// # Safety
///
/// `room` is null or has room for two descriptors.
unsafe fn put(room: *mut [c_int; 2], make: impl FnOnce() -> Result<[c_int; 2], Errno>) -> c_int {
    if room.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller upholds the contract.
    code(make().map(|pair| unsafe { room.write(pair) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_pipe(fds: *mut [c_int; 2], read_flags: c_int, write_flags: c_int) -> c_int {
    // SAFETY: the caller passes room for two descriptors.
    unsafe { put(fds, || pair::pipe(nonblocking([read_flags, write_flags]))) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_socketpair(
    kind: c_int,
    protocol: c_int,
    sockets: *mut [c_int; 2],
    flags0: c_int,
    flags1: c_int,
) -> c_int {
    let nonblocking = nonblocking([flags0, flags1]);
    // SAFETY: the caller passes room for two descriptors.
    unsafe { put(sockets, || pair::sockets(kind, protocol, nonblocking)) }
}

/// On all systems but Windows, a file descriptor is the system's own handle.
#[unsafe(no_mangle)]
extern "C" fn uv_get_osfhandle(fd: c_int) -> c_int {
    fd
}

/// The inverse of `uv_get_osfhandle`.
#[unsafe(no_mangle)]
extern "C" fn uv_open_osfhandle(os_fd: c_int) -> c_int {
    os_fd
}
