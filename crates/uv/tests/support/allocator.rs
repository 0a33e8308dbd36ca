//! An allocator that counts what it gives out, and refuses on order. It is the whole process's,
//! so tests that install it are programs of their own.
#![allow(dead_code, reason = "each test program uses the part that it needs")]

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};

/// How many allocations are granted before one is refused; negative: none is.
static GRANTED: AtomicIsize = AtomicIsize::new(-1);
/// How many pieces of memory are given out.
static OUT: AtomicIsize = AtomicIsize::new(0);

/// Every allocation is granted.
const ALL: isize = -1;
/// None is, until something else is said.
const NONE: isize = isize::MIN;

fn grants() -> bool {
    let before = GRANTED.load(SeqCst);
    if before >= 0 {
        GRANTED.store(before - 1, SeqCst);
    }
    let granted = before != 0 && before != NONE;
    if granted {
        OUT.fetch_add(1, SeqCst);
    }
    granted
}

pub(crate) unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    match grants() {
        // SAFETY: libc takes any size.
        true => unsafe { libc::malloc(size) },
        false => null_mut(),
    }
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match grants() {
        // SAFETY: libc takes any size.
        true => unsafe { libc::calloc(count, size) },
        false => null_mut(),
    }
}

unsafe extern "C" fn realloc(_: *mut c_void, _: usize) -> *mut c_void {
    unreachable!("nothing is ever resized")
}

pub(crate) unsafe extern "C" fn free(memory: *mut c_void) {
    if !memory.is_null() {
        OUT.fetch_sub(1, SeqCst);
    }
    // SAFETY: it came from one of the above.
    unsafe { libc::free(memory) }
}

/// Makes this the allocator of the library, which must not have been used before.
pub(crate) fn install() {
    // SAFETY: the functions are those of an allocator, and nothing was allocated before.
    let status = unsafe {
        uv_binding::uv_replace_allocator(Some(malloc), Some(realloc), Some(calloc), Some(free))
    };
    assert_eq!(status, 0);
}

/// How many pieces of memory are given out.
pub(crate) fn outstanding() -> isize {
    OUT.load(SeqCst)
}

/// Runs `call` with so many allocations granted and the next refused; whether it came to that.
pub(crate) fn refusing<R>(granted: usize, call: impl FnOnce() -> R) -> (R, bool) {
    GRANTED.store(granted as isize, SeqCst);
    let result = call();
    (result, GRANTED.swap(ALL, SeqCst) < 0)
}

/// Runs `call` while there is no memory at all. It keeps none either.
pub(crate) fn exhausted<R>(call: impl FnOnce() -> R) -> R {
    let before = outstanding();
    GRANTED.store(NONE, SeqCst);
    let result = call();
    GRANTED.store(ALL, SeqCst);
    assert_eq!(outstanding(), before);
    result
}
