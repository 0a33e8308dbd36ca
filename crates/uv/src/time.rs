//! Clocks, sleep, and `uv_buf_init`.

use crate::abi::uv_buf_t;
use blacklight_engine::Errno;
use blacklight_sys::clock;
use std::ffi::{c_char, c_int, c_uint};

/// Seconds and nanoseconds.
#[repr(C)]
pub struct uv_timespec64_t {
    tv_sec: i64,
    tv_nsec: i32,
}

/// Seconds and microseconds.
#[repr(C)]
pub struct uv_timeval64_t {
    tv_sec: i64,
    tv_usec: i32,
}

const UV_CLOCK_MONOTONIC: c_int = 0;
const UV_CLOCK_REALTIME: c_int = 1;

#[unsafe(no_mangle)]
extern "C" fn uv_hrtime() -> u64 {
    clock::monotonic_ns()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_clock_gettime(clock_id: c_int, ts: *mut uv_timespec64_t) -> c_int {
    if ts.is_null() {
        return Errno::EFAULT.code();
    }
    let (tv_sec, tv_nsec) = match clock_id {
        UV_CLOCK_MONOTONIC => clock::monotonic(),
        UV_CLOCK_REALTIME => clock::realtime(),
        _ => return Errno::EINVAL.code(),
    };
    // SAFETY: the caller passes room for the time.
    unsafe { ts.write(uv_timespec64_t { tv_sec, tv_nsec }) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_gettimeofday(tv: *mut uv_timeval64_t) -> c_int {
    if tv.is_null() {
        return Errno::EINVAL.code();
    }
    let (tv_sec, tv_nsec) = clock::realtime();
    let tv_usec = tv_nsec / 1000;
    // SAFETY: the caller passes room for the time.
    unsafe { tv.write(uv_timeval64_t { tv_sec, tv_usec }) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn uv_sleep(msec: c_uint) {
    clock::sleep_ns(msec as u64 * 1_000_000);
}

#[unsafe(no_mangle)]
extern "C" fn uv_buf_init(base: *mut c_char, len: c_uint) -> uv_buf_t {
    uv_buf_t {
        base,
        len: len as usize,
    }
}
