//! A loop's metrics.

use crate::abi::{uv_loop_t, uv_metrics_t};
use crate::engine;
use blacklight_engine::Errno;
use blacklight_sys::clock;
use std::ffi::c_int;

/// Any thread may call this, so it must not touch the engine.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_metrics_idle_time(loop_: *mut uv_loop_t) -> u64 {
    // SAFETY: the caller passes an open loop; the address of its state does not change while it is
    // open, and `idle_time` is atomic.
    unsafe {
        (*(*loop_).internal_fields)
            .idle_time
            .total_ns(clock::monotonic_ns())
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_metrics_info(loop_: *mut uv_loop_t, metrics: *mut uv_metrics_t) -> c_int {
    if metrics.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes its own loop and room for the counters.
    unsafe {
        let counted = engine::with(loop_, |engine| engine.metrics());
        (*metrics).loop_count = counted.loop_count;
        (*metrics).events = counted.events;
        (*metrics).events_waiting = counted.events_waiting;
    }
    0
}
