//! Pipe handles, through the C interface, as programs use them that look behind it.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::ptr::null_mut;
use uv as _;

/// The bit of `flags` that uvloop sets by itself.
const READABLE: c_uint = 0x4000;
const UV_ENOTCONN: c_int = -libc::ENOTCONN;
const NOWAIT: c_int = 2;

#[repr(C)]
struct Buf {
    base: *mut c_char,
    len: usize,
}

/// A `uv_pipe_t`: the fields that programs look at, at their offsets.
#[repr(C, align(16))]
struct Pipe {
    data: *mut c_void,
    before_flags: [u64; 10],
    flags: c_uint,
    after_flags: [u32; 43],
}

const _: () = assert!(std::mem::offset_of!(Pipe, flags) == 88 && size_of::<Pipe>() >= 264);

#[repr(C, align(16))]
struct Loop([u8; 848]);

unsafe extern "C" {
    fn uv_loop_init(l: *mut Loop) -> c_int;
    fn uv_loop_close(l: *mut Loop) -> c_int;
    fn uv_run(l: *mut Loop, mode: c_int) -> c_int;
    fn uv_pipe_init(l: *mut Loop, pipe: *mut Pipe, ipc: c_int) -> c_int;
    fn uv_pipe_open(pipe: *mut Pipe, fd: c_int) -> c_int;
    fn uv_is_readable(pipe: *const Pipe) -> c_int;
    fn uv_is_writable(pipe: *const Pipe) -> c_int;
    fn uv_close(pipe: *mut Pipe, cb: Option<unsafe extern "C" fn(*mut Pipe)>);
    fn uv_read_start(
        pipe: *mut Pipe,
        alloc: unsafe extern "C" fn(*mut Pipe, usize, *mut Buf),
        read: unsafe extern "C" fn(*mut Pipe, isize, *const Buf),
    ) -> c_int;
}

unsafe extern "C" fn lend(_: *mut Pipe, _: usize, buf: *mut Buf) {
    static mut ROOM: [u8; 64] = [0; 64];
    // SAFETY: the loop gives us a place for a buffer; the test reads on one thread.
    unsafe {
        (*buf).base = (&raw mut ROOM).cast();
        (*buf).len = 64;
    }
}

unsafe extern "C" fn count_failures(pipe: *mut Pipe, nread: isize, _: *const Buf) {
    if nread < 0 {
        // SAFETY: the test keeps a counter there.
        unsafe { *(*pipe).data.cast::<u32>() += 1 };
    }
}

fn zeroed<T>() -> Box<T> {
    // SAFETY: all the types that the tests use it for are valid as zeroes.
    unsafe { Box::<T>::new_zeroed().assume_init() }
}

/// Opens the writing end of a pipe whose `flags` had `preset` set before.
fn with_writing_end(preset: c_uint, test: impl FnOnce(&mut Loop, &mut Pipe, std::io::PipeReader)) {
    let (reader, writer) = std::io::pipe().unwrap();
    let (mut l, mut pipe) = (zeroed::<Loop>(), zeroed::<Pipe>());
    // SAFETY: loop and handle are initialised before use and outlive the loop's end.
    unsafe {
        assert_eq!(uv_loop_init(&mut *l), 0);
        assert_eq!(uv_pipe_init(&mut *l, &mut *pipe, 0), 0);
        pipe.flags |= preset;
        assert_eq!(uv_pipe_open(&mut *pipe, writer.into_raw_fd()), 0);
        assert_eq!(uv_is_writable(&*pipe), 1);
        test(&mut l, &mut pipe, reader);
        uv_close(&mut *pipe, None);
        assert_eq!(uv_run(&mut *l, 0), 0);
        assert_eq!(uv_loop_close(&mut *l), 0);
    }
}

/// uvloop marks a pipe readable before it opens it, and reads from the writing end to learn
/// that the reader has gone. It must hear nothing before, and an error then.
#[test]
fn writing_end_marked_readable_before_opening_tells_when_the_reader_goes() {
    with_writing_end(READABLE, |l, pipe, reader| {
        let mut failures = 0u32;
        pipe.data = (&raw mut failures).cast();
        assert!(reader.as_raw_fd() >= 0);
        // SAFETY: both are initialised; the counter outlives the reading.
        unsafe {
            assert_eq!(uv_is_readable(pipe), 1);
            assert_eq!(uv_read_start(pipe, lend, count_failures), 0);
            uv_run(l, NOWAIT);
            assert_eq!(*pipe.data.cast::<u32>(), 0, "the reader is still there");
            drop(reader);
            // Reading stops at the error, and then nothing keeps the loop.
            assert_eq!(uv_run(l, 0), 0);
            assert_eq!(*pipe.data.cast::<u32>(), 1);
        }
        pipe.data = null_mut();
    });
}

#[test]
fn writing_end_cannot_be_read_from_otherwise() {
    with_writing_end(0, |_, pipe, _reader| {
        // SAFETY: the pipe is initialised.
        unsafe {
            assert_eq!(uv_is_readable(pipe), 0);
            assert_eq!(uv_read_start(pipe, lend, count_failures), UV_ENOTCONN);
        }
    });
}
