//! Functions that programs use and no test of libuv's own reaches, where no other test of ours
//! does either.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr::{null, null_mut};
use uv as _;
use uv_binding::*;

#[test]
fn names_of_errors_go_into_a_buffer_and_are_cut_to_it() {
    let name = |error: c_int, size: usize| {
        let mut buffer = [b'#' as c_char; 64];
        // SAFETY: there is room for what is said, and more.
        unsafe {
            assert_eq!(
                uv_err_name_r(error, buffer.as_mut_ptr(), size),
                buffer.as_mut_ptr()
            );
            assert_eq!(buffer[size], b'#' as c_char, "wrote beyond");
            CStr::from_ptr(buffer.as_ptr()).to_str().unwrap().to_owned()
        }
    };
    assert_eq!(name(-libc::EACCES, 32), "EACCES");
    assert_eq!(name(-4095, 32), "EOF");
    assert_eq!(name(-libc::EACCES, 4), "EAC");
    assert_eq!(name(-12_345, 40), "Unknown system error -12345");
    assert_eq!(name(-12_345, 8), "Unknown");
}

#[test]
fn the_version_is_the_one_that_we_stand_in_for() {
    // SAFETY: the string is the library's, and for ever.
    let (number, text) = unsafe { (uv_version(), CStr::from_ptr(uv_version_string())) };
    let parts = [number >> 16, number >> 8 & 0xff, number & 0xff];
    assert_eq!(
        text.to_str().unwrap(),
        parts.map(|part| part.to_string()).join(".")
    );
    assert_eq!(text, c"1.53.0");
}

/// What a function prints about a loop.
fn printed(
    lp: *mut uv_loop_t,
    print: unsafe extern "C" fn(*mut uv_loop_t, *mut libc::FILE),
) -> Vec<String> {
    let (mut text, mut len) = (null_mut::<c_char>(), 0);
    // SAFETY: the stream writes to memory of its own, which is ours after it is closed.
    unsafe {
        let stream = libc::open_memstream(&mut text, &mut len);
        print(lp, stream);
        libc::fclose(stream);
        let lines = CStr::from_ptr(text).to_str().unwrap();
        let lines = lines.lines().map(str::to_owned).collect();
        libc::free(text.cast());
        lines
    }
}

unsafe extern "C" fn on_timer(timer: *mut Room) {
    // SAFETY: the timer is open.
    unsafe { uv_close(timer, None) };
}

#[test]
fn a_loop_that_the_library_makes_and_what_is_in_it() {
    let (mut timer, mut idle) = (Room::new(), Room::new());
    // SAFETY: the handles live until they are closed, and the loop until it is deleted.
    unsafe {
        let lp = uv_loop_new();
        assert!(!lp.is_null());
        assert_eq!(printed(lp, uv_print_all_handles), [""; 0]);
        assert_eq!(uv_timer_init(lp, &mut *timer), 0);
        assert_eq!(uv_idle_init(lp, &mut *idle), 0);
        assert_eq!(uv_timer_start(&mut *timer, Some(on_timer), 1, 0), 0);
        uv_unref(&mut *idle);
        let of_timer = format!("[RA-] timer    {:p}", &raw const *timer);
        let of_idle = format!("[---] idle     {:p}", &raw const *idle);
        let mut all = printed(lp, uv_print_all_handles);
        all.sort();
        assert_eq!(all, [of_idle, of_timer.clone()]);
        assert_eq!(printed(lp, uv_print_active_handles), [of_timer]);
        uv_close(&mut *idle, None);
        assert_eq!(uv_run(lp, 0), 0);
        assert_eq!(printed(lp, uv_print_all_handles), [""; 0]);
        uv_loop_delete(lp);
    }
}

unsafe extern "C" fn on_random(request: *mut Room, status: c_int, _: *mut c_void, _: usize) {
    assert_eq!(status, 0);
    // SAFETY: the test has put a number there.
    unsafe { *uv_req_get_data(request).cast::<u32>() += 1 };
}

#[test]
fn requests_carry_what_the_program_gives_them() {
    let (mut request, mut called) = (Room::new(), 0u32);
    let mut bytes = [0u8; 4];
    // SAFETY: all of it lives until the loop has run.
    unsafe {
        let lp = uv_loop_new();
        uv_req_set_data(&mut *request, (&raw mut called).cast());
        assert_eq!(request.data, (&raw mut called).cast());
        let bytes = bytes.as_mut_ptr().cast();
        assert_eq!(
            uv_random(lp, &mut *request, bytes, 4, 0, Some(on_random)),
            0
        );
        assert_eq!(uv_req_get_type(&*request), 10, "UV_RANDOM");
        assert_eq!(uv_run(lp, 0), 0);
        uv_loop_delete(lp);
    }
    assert_eq!(called, 1);
}

/// The descriptor that came with one byte.
fn receive(socket: &UnixStream) -> Option<OwnedFd> {
    let mut byte = [0u8; 1];
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut control = [0usize; 8];
    // SAFETY: all that the message points to lives through the call, and what the kernel puts
    // into the control data is read only if it is what we look for.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        assert_eq!(libc::recvmsg(socket.as_raw_fd(), &mut message, 0), 1);
        let header = libc::CMSG_FIRSTHDR(&message).as_ref()?;
        assert_eq!(header.cmsg_type, libc::SCM_RIGHTS);
        let fd = libc::CMSG_DATA(header).cast::<c_int>().read_unaligned();
        Some(OwnedFd::from_raw_fd(fd))
    }
}

#[test]
fn a_handle_is_sent_at_once_or_not_at_all() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (mut pipe, mut tcp) = (Room::new(), Room::new());
    let buf = uv_buf_t::new(b"!");
    // SAFETY: the handles live until they are closed, and the buffer through each call.
    unsafe {
        let lp = uv_loop_new();
        assert_eq!(uv_pipe_init(lp, &mut *pipe, 1), 0);
        assert_eq!(uv_pipe_open(&mut *pipe, ours.into_raw_fd()), 0);
        assert_eq!(uv_tcp_init_ex(lp, &mut *tcp, libc::AF_INET as c_uint), 0);
        assert_eq!(uv_tcp_simultaneous_accepts(&mut *tcp, 1), 0);
        assert_eq!(uv_tcp_simultaneous_accepts(&mut *tcp, 0), 0);
        for (bufs, count) in [(&raw const buf, 0), (null(), 1)] {
            assert_eq!(
                uv_try_write2(&mut *pipe, bufs, count, &mut *tcp),
                -libc::EINVAL
            );
        }
        assert_eq!(uv_try_write2(&mut *pipe, &buf, 1, &mut *tcp), 1);
        let socket = receive(&theirs).expect("a descriptor came along");
        let socket = std::net::TcpListener::from(socket);
        assert!(socket.local_addr().unwrap().is_ipv4());
        assert_eq!(uv_try_write2(&mut *pipe, &buf, 1, null_mut::<Room>()), 1);
        assert!(receive(&theirs).is_none());
        // A pipe that nobody reads fills up, and then nothing is sent.
        let refused = std::iter::repeat_with(|| uv_try_write2(&mut *pipe, &buf, 1, &mut *tcp))
            .find(|sent| *sent != 1);
        assert_eq!(refused, Some(-libc::EAGAIN));
        uv_close(&mut *tcp, None);
        uv_close(&mut *pipe, None);
        assert_eq!(uv_run(lp, 0), 0);
        uv_loop_delete(lp);
    }
}
