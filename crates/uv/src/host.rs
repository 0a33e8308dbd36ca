//! The machine: its names, its uptime and its load.

use crate::text;
use blacklight_engine::Errno;
use blacklight_sys::host;
use std::ffi::{CStr, c_char, c_double, c_int};

/// The names of the system.
#[repr(C)]
pub struct uv_utsname_t {
    sysname: [c_char; 256],
    release: [c_char; 256],
    version: [c_char; 256],
    machine: [c_char; 256],
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_uname(buffer: *mut uv_utsname_t) -> c_int {
    if buffer.is_null() {
        return Errno::EINVAL.code();
    }
    let names = host::names();
    let put = |name: &CStr, room: *mut [c_char; 256]| {
        // SAFETY: Linux has names of up to 64 bytes. The caller's fields have 256.
        unsafe { text::write(room.cast(), &name.to_bytes()[..name.count_bytes().min(255)]) }
    };
    // SAFETY: the caller passes room for the names.
    unsafe {
        put(names.sysname(), &raw mut (*buffer).sysname);
        put(names.release(), &raw mut (*buffer).release);
        put(names.version(), &raw mut (*buffer).version);
        put(names.machine(), &raw mut (*buffer).machine);
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_gethostname(buffer: *mut c_char, size: *mut usize) -> c_int {
    // SAFETY: the caller upholds the contracts buffer.
    unsafe { text::fill(buffer, size, host::hostname) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_uptime(uptime: *mut c_double) -> c_int {
    if uptime.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes room for a number.
    unsafe { uptime.write(host::uptime()) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_loadavg(averages: *mut [c_double; 3]) {
    // SAFETY: the caller passes room for three numbers.
    unsafe { averages.write(host::load_averages()) }
}
