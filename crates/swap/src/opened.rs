//! Interposes `dlopen`, to examine the objects that a program opens later, such as modules of
//! Python and Lua.
//!
//! New objects are examined before `dlopen` returns, when no thread has got hold of them, so it
//! does not matter how many threads the program has. Objects in other namespaces (`dlmopen`) have
//! their own C library and are left alone.
//!
//! The real `dlopen` finds its caller by the return address, and some callers have a search path
//! of their own. A call for which that matters jumps to the real function, with the return address
//! intact, and the objects that it opens are never examined: when they could be, the program may
//! be using them already.

use crate::modules;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The address of the real `dlopen`, or 0 before the first use.
static REAL: AtomicUsize = AtomicUsize::new(0);

/// Whether there may be objects that were opened and not examined.
static HAS_PASSED_CALLS_ON: AtomicBool = AtomicBool::new(false);

/// Chooses the function that a call of `dlopen` is to run: the real one, or [`open_and_examine`].
/// [`machine::dlopen`](crate::machine::dlopen), which replaces the real one, jumps there.
pub(crate) unsafe extern "C" fn target(path: *const c_char, caller: usize) -> usize {
    // A null pointer stands for the program itself.
    if path.is_null() || !modules::are_watched() {
        return real();
    }
    // SAFETY: the caller gives a string.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    // The linker takes `$ORIGIN` for the directory of the caller. For the libraries that the object
    // asks for it does not search where the caller has it search, so that a path is the same for us.
    let is_same_for_us =
        !path.contains(&b'$') && (path.contains(&b'/') || modules::have_common_search_path(caller));
    if is_same_for_us {
        return open_and_examine as *const () as usize;
    }
    HAS_PASSED_CALLS_ON.store(true, Ordering::SeqCst);
    real()
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
    let mut before = Vec::new();
    if HAS_PASSED_CALLS_ON.load(Ordering::SeqCst) {
        before = modules::leave_alone();
    }
    // SAFETY: the address is that of the C library's function, which has this type, and the
    // arguments come from our caller.
    let handle = unsafe { core::mem::transmute::<usize, Open>(real())(path, flags) };
    if let Some(base) = base_of(handle) {
        modules::examine(base, &before);
    }
    handle
}

/// The address of the object that was opened.
fn base_of(handle: *mut c_void) -> Option<usize> {
    /// The part of `struct link_map` that every version has.
    #[repr(C)]
    struct LinkMap {
        base: usize,
    }
    if handle.is_null() {
        return None;
    }
    let mut map: *const LinkMap = core::ptr::null();
    // SAFETY: the handle is open, and the request writes a pointer.
    unsafe {
        let found = libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast());
        (found == 0).then(|| (*map).base)
    }
}
