//! Threads by pthread identifier: their names, affinity and priorities.

use crate::engine::code;
use blacklight_engine::Errno;
use blacklight_sys::thread::{self, CPU_SETSIZE, CpuSet, Entry, NAME_SIZE, Priority, ThreadId};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

const UV_THREAD_HAS_STACK_SIZE: c_uint = 1;

/// Options for a thread. A field is valid if its flag is set.
#[repr(C)]
pub struct uv_thread_options_t {
    flags: c_uint,
    stack_size: usize,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_thread_create(
    tid: *mut ThreadId,
    entry: Option<Entry>,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { create(tid, 0, entry, arg) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_thread_create_ex(
    tid: *mut ThreadId,
    params: *const uv_thread_options_t,
    entry: Option<Entry>,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the caller passes options, of which only the fields with a set flag are read.
    unsafe {
        let stack_size = match (*params).flags & UV_THREAD_HAS_STACK_SIZE {
            0 => 0,
            _ => (*params).stack_size,
        };
        create(tid, stack_size, entry, arg)
    }
}

/// # Safety
///
/// `tid` has room for an identifier, and `entry` may be called with `arg` on another thread.
unsafe fn create(
    tid: *mut ThreadId,
    stack_size: usize,
    entry: Option<Entry>,
    arg: *mut c_void,
) -> c_int {
    let (false, Some(entry)) = (tid.is_null(), entry) else {
        return Errno::EINVAL.code();
    };
    // SAFETY: the caller guarantees both.
    unsafe { code(thread::create(stack_size, entry, arg).map(|created| tid.write(created))) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_thread_join(tid: *mut ThreadId) -> c_int {
    // SAFETY: the caller names a thread.
    code(unsafe { thread::join(*tid) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_thread_detach(tid: *mut ThreadId) -> c_int {
    // SAFETY: the caller names a thread.
    code(unsafe { thread::detach(*tid) })
}

#[unsafe(no_mangle)]
extern "C" fn uv_thread_self() -> ThreadId {
    thread::current()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_thread_equal(t1: *const ThreadId, t2: *const ThreadId) -> c_int {
    // SAFETY: the caller passes two identifiers, which on Linux are equal if their threads are.
    c_int::from(unsafe { *t1 == *t2 })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_thread_setname(name: *const c_char) -> c_int {
    if name.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes a C string.
    code(thread::set_name(unsafe { CStr::from_ptr(name) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_thread_getname(
    tid: *mut ThreadId,
    name: *mut c_char,
    size: usize,
) -> c_int {
    if tid.is_null() || name.is_null() || size == 0 {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller names a thread.
    let mut found = match unsafe { thread::name(*tid) } {
        Ok(found) => found,
        Err(error) => return error.code(),
    };
    let len = size.min(NAME_SIZE);
    found[len - 1] = 0;
    // SAFETY: the caller passes room for `size` bytes.
    unsafe {
        name.cast::<u8>()
            .copy_from_nonoverlapping(found.as_ptr(), len)
    };
    0
}

/// A mask in C has a byte for each processor.
#[unsafe(no_mangle)]
extern "C" fn uv_cpumask_size() -> c_int {
    CPU_SETSIZE as c_int
}

/// # Safety
///
/// `tid` names a thread, and `cpumask` has room for a byte for each processor.
unsafe fn get_affinity(tid: *mut ThreadId, cpumask: *mut c_char) -> Result<(), Errno> {
    // SAFETY: the caller guarantees both.
    unsafe {
        let set = thread::affinity(*tid)?;
        for cpu in 0..CPU_SETSIZE {
            cpumask.add(cpu).write(c_char::from(set.contains(cpu)));
        }
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_thread_getaffinity(
    tid: *mut ThreadId,
    cpumask: *mut c_char,
    mask_size: usize,
) -> c_int {
    if tid.is_null() || cpumask.is_null() || mask_size < CPU_SETSIZE {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller names a thread and gives us room for a mask.
    code(unsafe { get_affinity(tid, cpumask) })
}

/// The old mask is written before the new one is read, which matters if both are the same memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_thread_setaffinity(
    tid: *mut ThreadId,
    cpumask: *mut c_char,
    oldmask: *mut c_char,
    mask_size: usize,
) -> c_int {
    if tid.is_null() || cpumask.is_null() || mask_size < CPU_SETSIZE {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller names a thread and gives us one mask, and room for another or null.
    unsafe {
        if !oldmask.is_null()
            && let Err(error) = get_affinity(tid, oldmask)
        {
            return error.code();
        }
        let mut set = CpuSet::new();
        for cpu in 0..CPU_SETSIZE {
            if *cpumask.add(cpu) != 0 {
                set.insert(cpu);
            }
        }
        code(thread::set_affinity(*tid, &set))
    }
}

#[unsafe(no_mangle)]
extern "C" fn uv_thread_getcpu() -> c_int {
    match thread::current_cpu() {
        Ok(cpu) => cpu,
        Err(error) => error.code(),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_thread_getpriority(tid: ThreadId, priority: *mut c_int) -> c_int {
    if priority.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller names a thread and gives us room for a number.
    unsafe { code(thread::priority(tid).map(|found| priority.write(found))) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_thread_setpriority(tid: ThreadId, priority: c_int) -> c_int {
    // The C numbers go from −2 to 2.
    let index = priority
        .checked_add(2)
        .and_then(|index| usize::try_from(index).ok());
    let Some(&priority) = index.and_then(|index| Priority::ALL.get(index)) else {
        return Errno::EINVAL.code();
    };
    // SAFETY: the caller names a thread.
    code(unsafe { thread::set_priority(tid, priority) })
}
