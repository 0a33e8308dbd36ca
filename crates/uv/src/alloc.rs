//! Memory that C callers see or free, from the allocator that the program chose.
//!
//! The four functions are stored one by one: libuv's documentation requires a program to replace
//! them before it calls anything else, on one thread. Memory must be freed by the allocator that it
//! came from, so a later replacement is the program's own risk.

use blacklight_engine::Errno;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);

static MALLOC: AtomicPtr<c_void> = AtomicPtr::new(libc::malloc as *mut c_void);
static REALLOC: AtomicPtr<c_void> = AtomicPtr::new(libc::realloc as *mut c_void);
static CALLOC: AtomicPtr<c_void> = AtomicPtr::new(libc::calloc as *mut c_void);
static FREE: AtomicPtr<c_void> = AtomicPtr::new(libc::free as *mut c_void);

/// Memory for `size` bytes, or null.
pub(crate) fn malloc(size: usize) -> *mut c_void {
    // SAFETY: the pointer is libc's malloc, or the one that the program passed to
    // `uv_replace_allocator` as such.
    unsafe { std::mem::transmute::<*mut c_void, Malloc>(MALLOC.load(Relaxed))(size) }
}

/// Frees memory; null is allowed.
///
/// # Safety
///
/// `memory` came from this module and is not used again.
pub(crate) unsafe fn free(memory: *mut c_void) {
    if !memory.is_null() {
        // SAFETY: as in `malloc`; the caller guarantees that `memory` came from it.
        unsafe { std::mem::transmute::<*mut c_void, Free>(FREE.load(Relaxed))(memory) }
    }
}

/// Moves a value into memory of its own, or drops it and fails with `ENOMEM`.
pub(crate) fn boxed<T>(value: T) -> Result<*mut T, Errno> {
    const { assert!(align_of::<T>() <= 16, "malloc aligns to 16") };
    let memory = malloc(size_of::<T>()).cast::<T>();
    if memory.is_null() {
        return Err(Errno::ENOMEM);
    }
    // SAFETY: the allocator returned memory for a T, aligned for any C type.
    unsafe { memory.write(value) };
    Ok(memory)
}

/// Drops a value made by [`boxed`] and frees its memory.
///
/// # Safety
///
/// `value` came from [`boxed`] and is not used again.
pub(crate) unsafe fn unboxed<T>(value: *mut T) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        value.drop_in_place();
        free(value.cast());
    }
}

/// A copy of `text`, which need not be UTF-8, with a NUL at its end, or null.
pub(crate) fn c_bytes(text: &[u8]) -> *mut std::ffi::c_char {
    let memory = malloc(text.len() + 1).cast::<u8>();
    if !memory.is_null() {
        // SAFETY: there is room for the text and one byte more.
        unsafe {
            memory.copy_from_nonoverlapping(text.as_ptr(), text.len());
            memory.add(text.len()).write(0);
        }
    }
    memory.cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_replace_allocator(
    malloc: Option<Malloc>,
    realloc: Option<Realloc>,
    calloc: Option<Calloc>,
    free: Option<Free>,
) -> c_int {
    let (Some(malloc), Some(realloc), Some(calloc), Some(free)) = (malloc, realloc, calloc, free)
    else {
        return Errno::EINVAL.code();
    };
    MALLOC.store(malloc as *mut c_void, Relaxed);
    REALLOC.store(realloc as *mut c_void, Relaxed);
    CALLOC.store(calloc as *mut c_void, Relaxed);
    FREE.store(free as *mut c_void, Relaxed);
    0
}
