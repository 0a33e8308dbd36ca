//! Processors: their models, speeds and times.

use crate::alloc;
use crate::engine::code;
use crate::packed::Packed;
use blacklight_engine::Errno;
use blacklight_sys::cpu;
use std::ffi::{c_char, c_int, c_uint};

/// The time that a processor has spent in each state, in milliseconds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_cpu_times_t {
    user: u64,
    nice: u64,
    sys: u64,
    idle: u64,
    irq: u64,
}

/// A processor.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_cpu_info_t {
    model: *mut c_char,
    speed: c_int,
    cpu_times: uv_cpu_times_t,
}

fn pack(cpus: &[cpu::Cpu]) -> Result<*mut uv_cpu_info_t, Errno> {
    let bytes = cpus.iter().map(|cpu| cpu.model.len() + 1).sum();
    let mut packed = Packed::new(cpus.len(), bytes)?;
    for cpu in cpus {
        let info = uv_cpu_info_t {
            model: packed.text(cpu.model.as_bytes()),
            speed: cpu.speed_mhz as c_int,
            cpu_times: uv_cpu_times_t {
                user: cpu.times.user,
                nice: cpu.times.nice,
                sys: cpu.times.system,
                idle: cpu.times.idle,
                irq: cpu.times.irq,
            },
        };
        packed.push(info);
    }
    Ok(packed.finish())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_cpu_info(infos: *mut *mut uv_cpu_info_t, count: *mut c_int) -> c_int {
    if infos.is_null() || count.is_null() {
        return Errno::EINVAL.code();
    }
    let found = cpu::all().and_then(|cpus| Ok((pack(&cpus)?, cpus.len())));
    code(found.map(|(array, len)| {
        // SAFETY: the caller passes room for both.
        unsafe {
            *infos = array;
            *count = len as c_int;
        }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_free_cpu_info(infos: *mut uv_cpu_info_t, _count: c_int) {
    // SAFETY: the caller passes the array that `uv_cpu_info` returned.
    unsafe { alloc::free(infos.cast()) }
}

#[unsafe(no_mangle)]
extern "C" fn uv_available_parallelism() -> c_uint {
    cpu::parallelism() as c_uint
}
