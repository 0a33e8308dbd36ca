//! Objects that a program opens later, as Python and Lua do with modules.
//!
//! `dlopen` searches for a plain name by what its caller says of itself, so such a call goes on to
//! the real function without a trace of us. A module is opened by its path, which does not
//! depend on the caller; then what has come with it is looked at before the call returns. Objects in
//! other namespaces (`dlmopen`) have a C library of their own and are left alone.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The real function, once it was looked for.
static REAL: AtomicUsize = AtomicUsize::new(0);

/// Stands before the real function.
///
/// # Safety
///
/// As for the real function.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {way}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        way = sym way,
    )
}

/// Which function is to do it: the real one, or [`open_and_look`].
unsafe extern "C" fn way(path: *const c_char) -> usize {
    // SAFETY: the caller gives a string or a null pointer.
    let has_path = !path.is_null() && unsafe { CStr::from_ptr(path) }.to_bytes().contains(&b'/');
    if has_path && crate::looks_at_modules() {
        open_and_look as *const () as usize
    } else {
        real()
    }
}

fn real() -> usize {
    let known = REAL.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: the name is a string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr()) } as usize;
    REAL.store(found, Ordering::Relaxed);
    found
}

unsafe extern "C" fn open_and_look(path: *const c_char, flags: c_int) -> *mut c_void {
    type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
    // SAFETY: the address is that of the C library's function, which has this type, and what it is
    // given comes from our caller.
    let handle = unsafe { core::mem::transmute::<usize, Open>(real())(path, flags) };
    if !handle.is_null() {
        crate::look_at_modules();
    }
    handle
}
