//! Lookups with an allocator that refuses: each is made with the first, the second, …
//! allocation refused, until it needs no more. It must then say `UV_ENOMEM` and nothing else,
//! leave nothing behind, and work as ever afterwards. The allocator is the whole process's, so
//! all of it is one test in a program of its own.

#[path = "support/pool.rs"]
mod support;

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};
use support::*;

/// How many allocations are granted before one is refused; negative: none is.
static GRANTED: AtomicIsize = AtomicIsize::new(-1);
/// How many pieces of memory are given out.
static OUT: AtomicIsize = AtomicIsize::new(0);

fn grants() -> bool {
    let granted = GRANTED.load(SeqCst);
    if granted >= 0 {
        GRANTED.store(granted - 1, SeqCst);
    }
    if granted != 0 {
        OUT.fetch_add(1, SeqCst);
    }
    granted != 0
}

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    match grants() {
        // SAFETY: libc takes any size.
        true => unsafe { libc::malloc(size) },
        false => null_mut(),
    }
}

unsafe extern "C" fn realloc(_: *mut c_void, _: usize) -> *mut c_void {
    unreachable!("nothing is ever resized")
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match grants() {
        // SAFETY: libc takes any size.
        true => unsafe { libc::calloc(count, size) },
        false => null_mut(),
    }
}

unsafe extern "C" fn free(memory: *mut c_void) {
    OUT.fetch_sub(1, SeqCst);
    // SAFETY: it came from one of the above.
    unsafe { libc::free(memory) }
}

unsafe extern "C" {
    fn uv_replace_allocator(
        malloc: unsafe extern "C" fn(usize) -> *mut c_void,
        realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
        calloc: unsafe extern "C" fn(usize, usize) -> *mut c_void,
        free: unsafe extern "C" fn(*mut c_void),
    ) -> c_int;
}

static CALLED: AtomicIsize = AtomicIsize::new(0);

unsafe extern "C" fn found(req: *mut Request, status: c_int, list: *mut libc::addrinfo) {
    // SAFETY: the list is ours to free.
    unsafe {
        assert_eq!(((*req).addrinfo(), status), (list, 0));
        uv_freeaddrinfo(list);
    }
    CALLED.fetch_add(1, SeqCst);
}

unsafe extern "C" fn named(_: *mut Request, status: c_int, _: *const c_char, _: *const c_char) {
    assert_eq!(status, 0);
    CALLED.fetch_add(1, SeqCst);
}

unsafe extern "C" fn filled(_: *mut Request, status: c_int, _: *mut c_void, _: usize) {
    assert_eq!(status, 0);
    CALLED.fetch_add(1, SeqCst);
}

unsafe extern "C" fn work(_: *mut Request) {}

unsafe extern "C" fn after(_: *mut Request, status: c_int) {
    assert_eq!(status, 0);
    CALLED.fetch_add(1, SeqCst);
}

/// Makes a request with each of its allocations refused in turn; how many it has needed.
fn with_each_refused(lp: &mut Loop, ask: impl Fn(&mut Loop, &mut Request) -> c_int) -> isize {
    let before = OUT.load(SeqCst);
    for granted in 0.. {
        let mut request = Request::new();
        GRANTED.store(granted, SeqCst);
        let started = ask(lp, &mut request);
        GRANTED.store(-1, SeqCst);
        CALLED.store(0, SeqCst);
        run(lp);
        let called = CALLED.load(SeqCst);
        assert_eq!(OUT.load(SeqCst), before, "nothing is left behind");
        if started == 0 {
            assert_eq!(called, 1);
            return granted;
        }
        assert_eq!((started, called), (-libc::ENOMEM, 0));
    }
    unreachable!("no request needs that much")
}

#[test]
fn refused_memory_is_an_error_and_nothing_else() {
    // SAFETY: nothing of the library has been used yet, and the four belong together.
    assert_eq!(
        // SAFETY: the functions are those of an allocator, and nothing was allocated before.
        unsafe { uv_replace_allocator(malloc, realloc, calloc, free) },
        0
    );
    let mut lp = new_loop();
    // SAFETY: all zeros is what unused hints are to be.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_flags = libc::AI_NUMERICHOST;
    let host = c"127.0.0.1".as_ptr();
    let mut buffer = [0u8; 16];
    let buffer = buffer.as_mut_ptr().cast();
    // SAFETY: all that a request is given lives until the loop has run.
    unsafe {
        let needed = with_each_refused(&mut lp, |lp, request| {
            uv_getaddrinfo(lp, request, Some(found), host, c"80".as_ptr(), &hints)
        });
        assert_eq!(needed, 1, "one piece for all copies");
        let needed = with_each_refused(&mut lp, |lp, request| {
            uv_getaddrinfo(lp, request, Some(found), null(), c"80".as_ptr(), null())
        });
        assert_eq!(needed, 1);
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        address.sin_family = libc::AF_INET as _;
        let address = (&raw const address).cast();
        let needed = with_each_refused(&mut lp, |lp, request| {
            uv_getnameinfo(lp, request, Some(named), address, libc::NI_NUMERICHOST)
        });
        assert_eq!(needed, 0);
        let needed = with_each_refused(&mut lp, |lp, request| {
            uv_random(lp, request, buffer, 16, 0, Some(filled))
        });
        assert_eq!(needed, 0);
        let needed = with_each_refused(&mut lp, |lp, request| {
            uv_queue_work(lp, request, Some(work), Some(after))
        });
        assert_eq!(needed, 0);
    }
    close(lp);
    assert_eq!(OUT.load(SeqCst), 0);
}
