//! Interposes `dlopen`, to examine the objects that a program opens later, such as modules of
//! Python and Lua.
//!
//! The real `dlopen` searches for a plain name in the search path of its caller, which it finds
//! by the return address. So a call with a plain name jumps to the real function, with the return
//! address intact. A call with a path, as for a module, does not depend on the caller; new
//! objects are examined before that call returns. Objects in other namespaces (`dlmopen`) have
//! their own C library and are left alone.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The address of the real `dlopen`, or 0 before the first use.
static REAL: AtomicUsize = AtomicUsize::new(0);

/// Replaces the real `dlopen`, and jumps to the function that [`target`] returns.
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
        "call {target}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        target = sym target,
    )
}

/// Chooses the function to run: the real one, or [`open_and_examine`].
unsafe extern "C" fn target(path: *const c_char) -> usize {
    // SAFETY: the caller gives a string or a null pointer.
    let has_path = !path.is_null() && unsafe { CStr::from_ptr(path) }.to_bytes().contains(&b'/');
    if has_path && crate::examines_modules() {
        open_and_examine as *const () as usize
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

unsafe extern "C" fn open_and_examine(path: *const c_char, flags: c_int) -> *mut c_void {
    type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
    // SAFETY: the address is that of the C library's function, which has this type, and the
    // arguments come from our caller.
    let handle = unsafe { core::mem::transmute::<usize, Open>(real())(path, flags) };
    if !handle.is_null() {
        crate::examine_modules();
    }
    handle
}
