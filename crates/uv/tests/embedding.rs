//! Loops that somebody else waits for, by their descriptor and time-out, through the C interface.
//! Some programs ask whether the descriptor is readable; others take events from it.

use std::cell::Cell;
use std::ffi::{CString, c_int};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::ptr::null;
use uv as _;
use uv_binding::*;

const NOWAIT: c_int = 2;
const UV_READABLE: c_int = 1;

/// Longer than anything here takes: whoever is asleep until then would be for ever.
const GUARD_MS: c_int = 60_000;

/// A way to wait for a descriptor for so many milliseconds; whether there was something.
type Wait = fn(c_int, c_int) -> bool;

/// Whether a call reports something. A signal of a child that has ended may interrupt it.
fn reports(mut call: impl FnMut() -> c_int) -> bool {
    loop {
        match call() {
            -1 => assert_eq!(
                std::io::Error::last_os_error().raw_os_error(),
                Some(libc::EINTR)
            ),
            count => return count == 1,
        }
    }
}

fn by_looking(fd: c_int, timeout_ms: c_int) -> bool {
    let mut poll = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: there is one to look at.
    reports(|| unsafe { libc::poll(&mut poll, 1, timeout_ms) })
}

/// As the kernel tells some events once, this one keeps them from the loop.
fn by_taking(fd: c_int, timeout_ms: c_int) -> bool {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: there is room for one event.
    reports(|| unsafe { libc::epoll_wait(fd, &mut event, 1, timeout_ms) })
}

/// Runs the loop as one does who embeds it, until `is_done`.
fn drive(lp: &mut uv_loop_t, wait: Wait, is_done: impl Fn() -> bool) {
    while !is_done() {
        // SAFETY: the loop is initialised.
        unsafe {
            assert_eq!(uv_loop_alive(lp), 1);
            match uv_backend_timeout(lp) {
                -1 => assert!(wait(uv_backend_fd(lp), GUARD_MS), "asleep for ever"),
                timeout_ms => drop(wait(uv_backend_fd(lp), timeout_ms)),
            }
            uv_run(lp, NOWAIT);
        }
    }
}

/// Gives `test` a loop, unless the loop has no descriptor, and closes it; then the handles that
/// it is given may go.
fn with_loop(test: impl Fn(&mut uv_loop_t, Wait) -> Vec<Box<Room>>) {
    for wait in [by_looking as Wait, by_taking as Wait] {
        let mut lp = Box::new(garbage());
        // SAFETY: the loop is initialised before use.
        unsafe {
            assert_eq!(uv_loop_init(&mut *lp), 0);
            let mechanism = std::env::var("BLACKLIGHT_POLLER");
            let handles = match mechanism.is_ok_and(|name| name != "epoll") {
                true => Vec::new(),
                false => test(&mut lp, wait),
            };
            assert_eq!(uv_run(&mut *lp, 0), 0);
            assert_eq!(uv_loop_close(&mut *lp), 0);
            drop(handles);
        }
    }
}

/// The counter that a handle's `data` points to.
///
/// # Safety
///
/// It does.
unsafe fn count<'a>(handle: *const impl Holds<uv_handle_t>) -> &'a Cell<u32> {
    // SAFETY: the caller vouches for it.
    unsafe { &*uv_handle_get_data(handle).cast::<Cell<u32>>() }
}

unsafe extern "C" fn on_ready(poll: *mut Room, status: c_int, _: c_int) {
    assert_eq!(status, 0);
    // SAFETY: the test keeps a counter there.
    unsafe {
        count(poll).set(1);
        uv_close(poll, None);
    }
}

#[test]
fn what_was_started_before_the_first_run_is_heard_of() {
    with_loop(|lp, wait| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"x").unwrap();
        let (mut poll, heard) = (Room::new(), Cell::new(0));
        poll.data = (&raw const heard).cast_mut().cast();
        // SAFETY: loop and handle are initialised, and the handle outlives the loop.
        unsafe {
            assert_eq!(uv_poll_init(lp, &mut *poll, reader.as_raw_fd()), 0);
            assert_eq!(uv_poll_start(&mut *poll, UV_READABLE, Some(on_ready)), 0);
            assert_eq!(uv_backend_timeout(lp), 0, "nobody has told the kernel");
        }
        drive(lp, wait, || heard.get() == 1);
        vec![poll]
    });
}

unsafe extern "C" fn lend(_: *mut Room, _: usize, buf: *mut uv_buf_t) {
    thread_local!(static ROOM: Cell<[u8; 64]> = const { Cell::new([0; 64]) });
    // SAFETY: the loop gives us a place for a buffer, and uses it on this thread.
    unsafe {
        (*buf).base = ROOM.with(|room| room.as_ptr().cast());
        (*buf).len = 64;
    }
}

/// Answers what it is told.
unsafe extern "C" fn answer(stream: *mut Room, nread: isize, buf: *const uv_buf_t) {
    // SAFETY: the test keeps a counter there; what was read is in the buffer.
    unsafe {
        if nread < 0 {
            return uv_close(stream, None);
        }
        count(stream).set(count(stream).get() + nread as u32);
        let said = uv_buf_t {
            base: (*buf).base,
            len: nread as usize,
        };
        assert_eq!(uv_try_write(stream, &said, 1), nread as c_int);
    }
}

/// The server's `data` is its client.
unsafe extern "C" fn let_in(server: *mut Room, status: c_int) {
    assert_eq!(status, 0);
    // SAFETY: the client is initialised and not open.
    unsafe {
        let client = (*server).data.cast::<Room>();
        assert_eq!(uv_accept(server, client), 0);
        assert_eq!(uv_read_start(client, Some(lend), Some(answer)), 0);
        uv_close(server, None);
    }
}

#[test]
fn every_message_of_a_connection_is_heard() {
    with_loop(|lp, wait| {
        let (mut server, mut client) = (Room::new(), Room::new());
        let heard = Cell::new(0);
        client.data = (&raw const heard).cast_mut().cast();
        server.data = (&raw mut *client).cast();
        let mut len = size_of::<libc::sockaddr_in>() as c_int;
        // SAFETY: loop and handles are initialised, and the handles outlive the loop.
        let port = unsafe {
            let mut address: libc::sockaddr_in = std::mem::zeroed();
            assert_eq!(uv_ip4_addr(c"127.0.0.1".as_ptr(), 0, &mut address), 0);
            assert_eq!(uv_tcp_init(lp, &mut *server), 0);
            assert_eq!(uv_tcp_init(lp, &mut *client), 0);
            assert_eq!(uv_tcp_bind(&mut *server, &address, 0), 0);
            assert_eq!(uv_listen(&mut *server, 8, Some(let_in)), 0);
            assert_eq!(uv_tcp_getsockname(&*server, &mut address, &mut len), 0);
            u16::from_be(address.sin_port)
        };
        let mut peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
        for message in 1..=5 {
            peer.write_all(b"x").unwrap();
            drive(lp, wait, || heard.get() == message);
            let mut echo = [0];
            peer.read_exact(&mut echo).unwrap();
        }
        vec![server, client]
    });
}

unsafe extern "C" fn on_exit(process: *mut uv_process_t, status: i64, _: c_int) {
    assert_eq!(status, 7);
    // SAFETY: the test keeps a counter there.
    unsafe {
        count(process).set(1);
        uv_close(process, None);
    }
}

/// Whether or not the loop had told the kernel of the child before somebody else waited.
#[test]
fn the_end_of_a_child_is_heard() {
    for runs_first in [false, true] {
        with_loop(|lp, wait| {
            let (mut process, ended) = (Room::new(), Cell::new(0));
            process.data = (&raw const ended).cast_mut().cast();
            let (reader, writer) = std::io::pipe().unwrap();
            let held = format!("/proc/{}/fd/{}", std::process::id(), reader.as_raw_fd());
            let script = CString::new(format!("read x < {held}; exit 7")).unwrap();
            let args = [c"sh".as_ptr(), c"-c".as_ptr(), script.as_ptr(), null()];
            let options = uv_process_options_t {
                exit_cb: Some(on_exit),
                file: c"sh".as_ptr(),
                args: args.as_ptr().cast_mut().cast(),
                ..zeroed()
            };
            // SAFETY: the loop is initialised, and the handle outlives it.
            unsafe {
                assert_eq!(uv_spawn(lp, &mut *process, &options), 0);
                if runs_first {
                    uv_run(lp, NOWAIT);
                }
                assert!(uv_backend_fd(lp) >= 0);
            }
            drop(writer);
            drive(lp, wait, || ended.get() == 1);
            vec![process]
        });
    }
}
