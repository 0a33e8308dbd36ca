//! What a loop tells of itself.

use crate::abi::{uv_loop_t, uv_metrics_t};
use crate::engine;
use blacklight_engine::Errno;
use blacklight_sys::clock;
use std::ffi::c_int;

/// May be called from any thread, so it must stay away from the engine.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_metrics_idle_time(loop_: *mut uv_loop_t) -> u64 {
    // SAFETY: the caller gives us an open loop; the state's place and this field of it do
    // not change while it is open.
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
    // SAFETY: the caller gives us a loop of its own and room for the counters.
    unsafe {
        let counted = engine::with(loop_, |engine| engine.metrics());
        (*metrics).loop_count = counted.loop_count;
        (*metrics).events = counted.events;
        (*metrics).events_waiting = counted.events_waiting;
    }
    0
}
