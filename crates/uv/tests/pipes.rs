//! uv_pipe_t handles, through the C interface, as programs use them that look behind it.

use std::ffi::c_uint;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::ptr::null_mut;
use uv as _;
use uv_binding::*;

/// The bit of `flags` that uvloop sets by itself.
const READABLE: c_uint = 0x4000;

unsafe extern "C" fn lend(_: *mut uv_pipe_t, _: usize, buf: *mut uv_buf_t) {
    static mut ROOM: [u8; 64] = [0; 64];
    // SAFETY: the loop gives us a place for a buffer; the test reads on one thread.
    unsafe {
        (*buf).base = (&raw mut ROOM).cast();
        (*buf).len = 64;
    }
}

unsafe extern "C" fn count_failures(pipe: *mut uv_pipe_t, nread: isize, _: *const uv_buf_t) {
    if nread < 0 {
        // SAFETY: the test keeps a counter there.
        unsafe { *(*pipe).data.cast::<u32>() += 1 };
    }
}

/// Opens the writing end of a pipe whose `flags` had `preset` set before.
fn with_writing_end(
    preset: c_uint,
    test: impl FnOnce(&mut uv_loop_t, &mut uv_pipe_t, std::io::PipeReader),
) {
    let (reader, writer) = std::io::pipe().unwrap();
    let (mut l, mut pipe) = (Box::new(zeroed()), Box::new(zeroed::<uv_pipe_t>()));
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
            assert_eq!(uv_read_start(pipe, Some(lend), Some(count_failures)), 0);
            uv_run(l, UV_RUN_NOWAIT);
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
            assert_eq!(
                uv_read_start(pipe, Some(lend), Some(count_failures)),
                UV_ENOTCONN
            );
        }
    });
}
