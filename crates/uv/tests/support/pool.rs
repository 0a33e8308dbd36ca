//! What the tests on the thread pool share: libuv's functions as C declares them, and a loop
//! and requests to use them with.
#![allow(dead_code, reason = "each test program uses the part that it needs")]

use libc::{addrinfo, sockaddr};
use std::ffi::{c_char, c_int, c_uint, c_void};
use uv as _;

pub(crate) const UV_EAI_CANCELED: c_int = -3003;
pub(crate) const UV_EAI_NONAME: c_int = -3008;

/// A `uv_loop_t`.
#[repr(C, align(16))]
pub(crate) struct Loop([u8; 848]);

/// A request with room for the largest, of which `data` and `type` are looked at. What lies
/// behind is filled with rubbish, as memory from `malloc` may be.
#[repr(C, align(16))]
pub(crate) struct Request {
    pub(crate) data: *mut c_void,
    pub(crate) type_: c_int,
    rest: [u8; 1320],
}

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
        unsafe {
            (&raw const *self)
                .byte_add(144)
                .cast::<*mut addrinfo>()
                .read()
        }
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
        (text(252), text(1277))
    }
}

pub(crate) type WorkCb = unsafe extern "C" fn(*mut Request);
pub(crate) type AfterCb = unsafe extern "C" fn(*mut Request, c_int);
pub(crate) type RandomCb = unsafe extern "C" fn(*mut Request, c_int, *mut c_void, usize);
pub(crate) type AddrInfoCb = unsafe extern "C" fn(*mut Request, c_int, *mut addrinfo);
pub(crate) type NameInfoCb =
    unsafe extern "C" fn(*mut Request, c_int, *const c_char, *const c_char);

unsafe extern "C" {
    pub(crate) fn uv_loop_init(lp: *mut Loop) -> c_int;
    pub(crate) fn uv_loop_close(lp: *mut Loop) -> c_int;
    pub(crate) fn uv_loop_fork(lp: *mut Loop) -> c_int;
    pub(crate) fn uv_loop_alive(lp: *const Loop) -> c_int;
    pub(crate) fn uv_run(lp: *mut Loop, mode: c_int) -> c_int;
    pub(crate) fn uv_library_shutdown();
    pub(crate) fn uv_cancel(req: *mut Request) -> c_int;
    pub(crate) fn uv_queue_work(
        lp: *mut Loop,
        req: *mut Request,
        work: Option<WorkCb>,
        after: Option<AfterCb>,
    ) -> c_int;
    pub(crate) fn uv_random(
        lp: *mut Loop,
        req: *mut Request,
        buf: *mut c_void,
        len: usize,
        flags: c_uint,
        cb: Option<RandomCb>,
    ) -> c_int;
    pub(crate) fn uv_getaddrinfo(
        lp: *mut Loop,
        req: *mut Request,
        cb: Option<AddrInfoCb>,
        node: *const c_char,
        service: *const c_char,
        hints: *const addrinfo,
    ) -> c_int;
    pub(crate) fn uv_freeaddrinfo(list: *mut addrinfo);
    pub(crate) fn uv_getnameinfo(
        lp: *mut Loop,
        req: *mut Request,
        cb: Option<NameInfoCb>,
        address: *const sockaddr,
        flags: c_int,
    ) -> c_int;
    pub(crate) fn uv_fs_stat(
        lp: *mut Loop,
        req: *mut Request,
        path: *const c_char,
        cb: Option<WorkCb>,
    ) -> c_int;
    pub(crate) fn uv_fs_req_cleanup(req: *mut Request);
}

pub(crate) fn new_loop() -> Box<Loop> {
    let mut lp = Box::new(Loop([0; 848]));
    // SAFETY: there is room for a loop.
    assert_eq!(unsafe { uv_loop_init(&mut *lp) }, 0);
    lp
}

/// Runs a loop until nothing is alive in it.
pub(crate) fn run(lp: &mut Loop) {
    // SAFETY: the loop is open and this thread's.
    assert_eq!(unsafe { uv_run(lp, 0) }, 0);
}

/// Closes a loop in which nothing is left.
pub(crate) fn close(mut lp: Box<Loop>) {
    // SAFETY: the loop is open and this thread's.
    assert_eq!(unsafe { uv_loop_close(&mut *lp) }, 0);
}
