//! The amounts of memory, in bytes.

use crate::engine::code;
use blacklight_engine::Errno;
use blacklight_sys::memory;
use std::ffi::c_int;

#[unsafe(no_mangle)]
extern "C" fn uv_get_free_memory() -> u64 {
    memory::free()
}

#[unsafe(no_mangle)]
extern "C" fn uv_get_total_memory() -> u64 {
    memory::total()
}

#[unsafe(no_mangle)]
extern "C" fn uv_get_constrained_memory() -> u64 {
    memory::constrained()
}

#[unsafe(no_mangle)]
extern "C" fn uv_get_available_memory() -> u64 {
    memory::available()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_resident_set_memory(rss: *mut usize) -> c_int {
    if rss.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes room for a number.
    code(memory::resident_set().map(|bytes| unsafe { rss.write(bytes) }))
}
