//! What the tests on the thread pool share: a loop, and a request with room for any kind.
#![allow(dead_code, reason = "each test program uses the part that it needs")]

use libc::addrinfo;
use std::ffi::{c_char, c_int, c_void};
use uv as _;
pub(crate) use uv_binding::*;

/// A request with room for the largest, of which `data` and `type` are looked at. What lies
/// behind is filled with rubbish, as memory from `malloc` may be.
#[repr(C, align(16))]
pub(crate) struct Request {
    pub(crate) data: *mut c_void,
    pub(crate) type_: c_int,
    rest: [u8; 1320],
}

// SAFETY: it is plain memory, and has room for any request.
unsafe impl<T: Plain> Holds<T> for Request {}

impl Request {
    pub(crate) fn new() -> Request {
        Request {
            data: std::ptr::null_mut(),
            type_: 0x2222,
            rest: [0xEE; 1320],
        }
    }

    pub(crate) fn with_data<T>(data: &T) -> Request {
        Request {
            data: std::ptr::from_ref(data).cast_mut().cast(),
            ..Request::new()
        }
    }

    /// What the program has put into the request.
    ///
    /// # Safety
    ///
    /// It was made by [`Request::with_data`] with a `T` that still lives.
    pub(crate) unsafe fn data<'a, T>(request: *mut Request) -> &'a T {
        // SAFETY: the caller vouches for it.
        unsafe { &*(*request).data.cast::<T>() }
    }

    /// The field of a `uv_getaddrinfo_t` that programs read.
    pub(crate) fn addrinfo(&self) -> *mut addrinfo {
        // SAFETY: the offset is within the struct and aligned; any bytes are a pointer.
        unsafe { (*(&raw const *self).cast::<uv_getaddrinfo_t>()).addrinfo }
    }

    /// `host` and `service` of a `uv_getnameinfo_t`.
    pub(crate) fn names(&self) -> (String, String) {
        let text = |at: usize| {
            // SAFETY: the offsets are within the struct, where the library has put texts.
            let text = unsafe { (&raw const *self).byte_add(at).cast::<c_char>() };
            // SAFETY: as above; the texts end in a NUL.
            let text = unsafe { std::ffi::CStr::from_ptr(text) };
            text.to_str().unwrap().to_owned()
        };
        let host = std::mem::offset_of!(uv_getnameinfo_t, host);
        let service = std::mem::offset_of!(uv_getnameinfo_t, service);
        (text(host), text(service))
    }
}

pub(crate) type WorkCb = unsafe extern "C" fn(*mut Request);
pub(crate) type AfterCb = unsafe extern "C" fn(*mut Request, c_int);
pub(crate) type RandomCb = unsafe extern "C" fn(*mut Request, c_int, *mut c_void, usize);
pub(crate) type AddrInfoCb = unsafe extern "C" fn(*mut Request, c_int, *mut addrinfo);
pub(crate) type NameInfoCb =
    unsafe extern "C" fn(*mut Request, c_int, *const c_char, *const c_char);

pub(crate) fn new_loop() -> Box<uv_loop_t> {
    let mut lp = Box::new(zeroed::<uv_loop_t>());
    // SAFETY: there is room for a loop.
    assert_eq!(unsafe { uv_loop_init(&mut *lp) }, 0);
    lp
}

/// Runs a loop until nothing is alive in it.
pub(crate) fn run(lp: &mut uv_loop_t) {
    // SAFETY: the loop is open and this thread's.
    assert_eq!(unsafe { uv_run(lp, 0) }, 0);
}

/// Closes a loop in which nothing is left.
pub(crate) fn close(mut lp: Box<uv_loop_t>) {
    // SAFETY: the loop is open and this thread's.
    assert_eq!(unsafe { uv_loop_close(&mut *lp) }, 0);
}
