//! What libuv 1.53.0 answers where its documentation is silent, and programs have come to count
//! on it. Each answer here was taken down from the original.

#[path = "support/event_loop.rs"]
mod event_loop;

use event_loop::new_loop;
use std::cell::RefCell;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::io::Write as _;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::ptr::{null, null_mut};
use std::sync::mpsc;
use uv as _;
use uv_binding::*;

const DEFAULT: c_int = 0;
const NO_WAIT: c_int = 2;

thread_local! {
    /// What the callbacks of the test were told.
    static TOLD: RefCell<Vec<c_int>> = const { RefCell::new(Vec::new()) };
}

fn tell(what: c_int) {
    TOLD.with_borrow_mut(|told| told.push(what));
}

fn told() -> Vec<c_int> {
    TOLD.take()
}

/// Closes the handles and then the loop.
fn close(mut lp: Box<uv_loop_t>, handles: &mut [&mut Room]) {
    // SAFETY: the loop and the handles are initialised, and closing twice does nothing.
    unsafe {
        for handle in handles {
            uv_close(*handle, None);
        }
        assert_eq!(uv_run(&mut *lp, DEFAULT), 0);
        assert_eq!(uv_loop_close(&mut *lp), 0);
    }
}

fn localhost() -> libc::sockaddr_in {
    // SAFETY: the address is valid as zeroes, and filled in.
    unsafe {
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        assert_eq!(uv_ip4_addr(c"127.0.0.1".as_ptr(), 0, &mut address), 0);
        address
    }
}

unsafe extern "C" fn nothing(_: *mut Room) {}

unsafe extern "C" fn tell_status(_: *mut Room, status: c_int) {
    tell(status);
}

/// netdata closes its loops until it is told that one is busy.
#[test]
fn a_loop_that_is_closed_already_is_busy() {
    let mut lp = new_loop();
    // SAFETY: the memory of the loop is ours, whether it is open or not.
    unsafe {
        assert_eq!(uv_loop_close(&mut *lp), 0);
        assert_eq!(uv_loop_close(&mut *lp), -libc::EBUSY);
        assert_eq!(uv_loop_close(&mut *lp), -libc::EBUSY);
        assert_eq!(uv_loop_init(&mut *lp), 0);
        assert_eq!(uv_loop_close(&mut *lp), 0);
    }
}

/// Programs stop loops, run them and ask them for the time when they have closed them already.
#[test]
fn a_closed_loop_has_nothing_to_do() {
    let mut lp = new_loop();
    // SAFETY: the memory of the loop is ours, whether it is open or not.
    unsafe {
        let before = uv_now(&*lp);
        assert_eq!(uv_loop_close(&mut *lp), 0);
        uv_stop(&mut *lp);
        uv_update_time(&mut *lp);
        assert!(uv_now(&*lp) >= before);
        for mode in [DEFAULT, 1, 2] {
            assert_eq!(uv_run(&mut *lp, mode), 0);
        }
        assert_eq!(uv_loop_alive(&*lp), 0);
        assert_eq!(uv_backend_fd(&*lp), -1);
        assert_eq!(uv_backend_timeout(&*lp), 0);
        uv_walk(&mut *lp, Some(walked), null_mut());
        assert_eq!(told(), []);
    }
}

unsafe extern "C" fn walked(_: *mut uv_handle_t, _: *mut c_void) {
    tell(1);
}

/// Stops the handle in all ways, and expects it to be stopped.
fn stop_in_all_ways(handle: &mut Room) {
    // SAFETY: the memory is large enough for each kind of handle.
    unsafe {
        let all: [unsafe fn(*mut Room) -> c_int; 10] = [
            uv_idle_stop,
            uv_prepare_stop,
            uv_check_stop,
            uv_timer_stop,
            uv_poll_stop,
            uv_signal_stop,
            uv_fs_event_stop,
            uv_fs_poll_stop,
            uv_read_stop,
            uv_udp_recv_stop,
        ];
        for stop in all {
            assert_eq!(stop(handle), 0);
        }
        uv_timer_set_repeat(handle, 0);
        assert_eq!(uv_tty_set_mode(handle, 0), 0);
        assert_eq!(uv_process_kill(handle, 0), -libc::ESRCH);
        assert_eq!(uv_is_active(handle), 0);
        assert_eq!(uv_has_ref(handle), 0);
    }
}

/// Programs clean up what they may not have got to initialise.
#[test]
fn a_handle_that_was_never_initialised_can_be_stopped() {
    let mut handle = Room::new();
    // SAFETY: zeroes are valid for each of its fields.
    unsafe { std::ptr::from_mut(&mut *handle).write_bytes(0, 1) };
    stop_in_all_ways(&mut handle);
}

#[test]
fn a_closed_handle_can_be_stopped_when_its_loop_is_gone() {
    let (mut lp, mut idle) = (new_loop(), Room::new());
    // SAFETY: the loop is open as long as the handle.
    unsafe {
        assert_eq!(uv_idle_init(&mut *lp, &mut *idle), 0);
        uv_close(&mut *idle, None);
        assert_eq!(uv_run(&mut *lp, DEFAULT), 0);
        assert_eq!(uv_loop_close(&mut *lp), 0);
        // What a program does with freed memory.
        std::ptr::from_mut(&mut *lp).write_bytes(0x55, 1);
        let fields = std::ptr::from_mut(&mut *idle).cast::<u8>();
        let common = size_of::<uv_handle_t>();
        fields
            .add(common)
            .write_bytes(0, size_of::<Room>() - common);
    }
    stop_in_all_ways(&mut idle);
}

#[test]
fn a_closed_stream_takes_no_write_when_its_loop_is_gone() {
    let (mut lp, mut pipe, mut req) = (new_loop(), Room::new(), Room::new());
    // SAFETY: the loop is open as long as the handle.
    unsafe {
        let buffer = uv_buf_init(c"abc".as_ptr().cast_mut(), 3);
        assert_eq!(uv_pipe_init(&mut *lp, &mut *pipe, 0), 0);
        uv_close(&mut *pipe, None);
        assert_eq!(uv_run(&mut *lp, DEFAULT), 0);
        assert_eq!(uv_loop_close(&mut *lp), 0);
        std::ptr::from_mut(&mut *lp).write_bytes(0x55, 1);
        assert_eq!(
            uv_write(&mut *req, &mut *pipe, &buffer, 1, None),
            -libc::EBADF
        );
        assert_eq!(uv_try_write(&mut *pipe, &buffer, 1), -libc::EBADF);
    }
}

/// libwebsockets takes the descriptor from there.
#[test]
fn a_closed_poll_handle_keeps_its_descriptor_and_unknown_events_mean_nothing() {
    let (mut lp, mut room) = (new_loop(), Room::new());
    let (socket, _peer) = UnixStream::pair().unwrap();
    let poll = room.ptr::<uv_poll_t>();
    // SAFETY: loop and handle are open up to the last lines, and their memory is ours.
    unsafe {
        assert_eq!(uv_poll_init(&mut *lp, poll, socket.as_raw_fd()), 0);
        assert_eq!(uv_poll_start(poll, 16 | UV_WRITABLE, Some(polled_once)), 0);
        assert_eq!(uv_run(&mut *lp, NO_WAIT), 1);
        assert_eq!(told(), [UV_WRITABLE]);
        uv_close(poll, None);
        assert_eq!((*poll).io_watcher.fd, socket.as_raw_fd());
        let mut fd = -1;
        assert_eq!(uv_fileno(poll, &mut fd), -libc::EBADF);
        assert_eq!(uv_run(&mut *lp, DEFAULT), 0);
        assert_eq!(uv_loop_close(&mut *lp), 0);
    }
}

unsafe extern "C" fn polled_once(_: *mut uv_poll_t, _: c_int, events: c_int) {
    tell(events);
}

#[test]
fn a_closing_stream_has_no_descriptor_to_reset() {
    let (mut lp, mut tcp) = (new_loop(), Room::new());
    // SAFETY: loop and handle are initialised.
    unsafe {
        assert_eq!(
            uv_tcp_init_ex(&mut *lp, &mut *tcp, libc::AF_INET as c_uint),
            0
        );
        uv_close(&mut *tcp, None);
        assert_eq!(uv_tcp_close_reset(&mut *tcp, None), -libc::EBADF);
    }
    close(lp, &mut [&mut tcp]);
}

unsafe extern "C" fn close_loop_of(handle: *mut Room) {
    // SAFETY: the test has put its loop there.
    tell(unsafe { uv_loop_close((*handle).data.cast()) });
}

#[test]
fn a_loop_is_not_closed_under_its_run() {
    let (mut lp, mut timer) = (new_loop(), Room::new());
    timer.data = (&raw mut *lp).cast();
    // SAFETY: loop and handle live through the run.
    unsafe {
        assert_eq!(uv_timer_init(&mut *lp, &mut *timer), 0);
        uv_close(&mut *timer, Some(close_loop_of));
        assert_eq!(uv_run(&mut *lp, DEFAULT), 0);
        assert_eq!(told(), [-libc::EBUSY]);
        assert_eq!(uv_loop_alive(&*lp), 0);
        assert_eq!(uv_loop_close(&mut *lp), 0);
    }
}

/// Node adopts bound pipes in this way.
#[test]
fn a_stream_is_opened_with_the_descriptor_that_it_has() {
    let (mut lp, mut pipe, mut tcp) = (new_loop(), Room::new(), Room::new());
    let dir = std::env::temp_dir().join(format!("blacklight-own-{}", std::process::id()));
    let name = CString::new(dir.to_str().unwrap()).unwrap();
    let (mut fd, mut other) = (-1, -1);
    // SAFETY: loop and handles are initialised in order.
    unsafe {
        assert_eq!(uv_pipe_init(&mut *lp, &mut *pipe, 0), 0);
        assert_eq!(uv_pipe_bind(&mut *pipe, name.as_ptr()), 0);
        assert_eq!(uv_tcp_init(&mut *lp, &mut *tcp), 0);
        assert_eq!(uv_tcp_bind(&mut *tcp, &localhost(), 0), 0);
        assert_eq!(uv_fileno(&*pipe, &mut fd), 0);
        assert_eq!(uv_fileno(&*tcp, &mut other), 0);
        assert_eq!(uv_pipe_open(&mut *pipe, other), -libc::EBUSY);
        assert_eq!(uv_tcp_open(&mut *tcp, fd), -libc::EBUSY);
        assert_eq!(uv_is_readable(&*pipe), 0);
        assert_eq!(uv_pipe_open(&mut *pipe, fd), 0);
        assert_eq!(uv_tcp_open(&mut *tcp, other), 0);
        for stream in [&mut pipe, &mut tcp] {
            assert_eq!(
                (uv_is_readable(&**stream), uv_is_writable(&**stream)),
                (1, 1)
            );
            assert_eq!(uv_listen(&mut **stream, 1, Some(tell_status)), 0);
        }
        assert_eq!(uv_pipe_open(&mut *pipe, fd), -libc::EEXIST, "it is watched");
        let _client = UnixStream::connect(&dir).unwrap();
        uv_run(&mut *lp, NO_WAIT);
        assert_eq!(told(), [0], "the socket is still the pipe's");
    }
    close(lp, &mut [&mut pipe, &mut tcp]);
}

#[test]
fn changing_a_pipes_mode_sets_it() {
    let (mut lp, mut pipe) = (new_loop(), Room::new());
    let path = std::env::temp_dir().join(format!("blacklight-mode-{}", std::process::id()));
    let name = CString::new(path.to_str().unwrap()).unwrap();
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
    // SAFETY: loop and handle are initialised in order.
    unsafe {
        assert_eq!(uv_pipe_init(&mut *lp, &mut *pipe, 0), 0);
        assert_eq!(uv_pipe_bind(&mut *pipe, name.as_ptr()), 0);
        for (wanted, expected) in [(3, 0o666), (1, 0o444), (2, 0o222)] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            assert_eq!(uv_pipe_chmod(&mut *pipe, wanted), 0);
            assert_eq!(mode(), expected);
        }
    }
    close(lp, &mut [&mut pipe]);
}

unsafe extern "C" fn tell_queue(req: *mut Room, status: c_int) {
    // SAFETY: the test has put the stream there.
    let queued = unsafe { uv_stream_get_write_queue_size((*req).data.cast::<Room>()) };
    tell(status);
    tell(queued as c_int);
}

/// A pipe with a write that does not go, and two small ones behind it.
struct Stuck {
    lp: Box<uv_loop_t>,
    pipe: Box<Room>,
    requests: [Box<Room>; 3],
    _bytes: Vec<u8>,
    _peer: UnixStream,
    queued: usize,
}

impl Stuck {
    fn new() -> Stuck {
        let (near, far) = UnixStream::pair().unwrap();
        let (mut lp, mut pipe) = (new_loop(), Room::new());
        let bytes = vec![0; 1 << 20];
        let mut requests = [(); 3].map(|()| Room::new());
        // SAFETY: loop and handle are initialised in order, and the requests live as long as they.
        unsafe {
            assert_eq!(uv_pipe_init(&mut *lp, &mut *pipe, 0), 0);
            assert_eq!(uv_pipe_open(&mut *pipe, near.into_raw_fd()), 0);
            for (req, len) in requests.iter_mut().zip([bytes.len(), 1000, 2000]) {
                req.data = (&raw mut *pipe).cast();
                let buffer = uv_buf_t::new(&bytes[..len]);
                assert_eq!(
                    uv_write(&mut **req, &mut *pipe, &buffer, 1, Some(tell_queue)),
                    0
                );
            }
            Stuck {
                queued: uv_stream_get_write_queue_size(&*pipe),
                lp,
                pipe,
                requests,
                _bytes: bytes,
                _peer: far,
            }
        }
    }
}

#[test]
fn cancelled_writes_are_queued_until_they_are_reported() {
    let mut stuck = Stuck::new();
    // SAFETY: the handle is open.
    unsafe {
        uv_close(&mut *stuck.pipe, None);
        let queued = uv_stream_get_write_queue_size(&*stuck.pipe);
        assert_eq!(queued, stuck.queued);
    }
    close(stuck.lp, &mut []);
    let cancelled = -libc::ECANCELED;
    assert_eq!(told(), [cancelled, 3000, cancelled, 2000, cancelled, 0]);

    let mut stuck = Stuck::new();
    // SAFETY: the request is queued, and the loop is open.
    unsafe {
        assert_eq!(uv_cancel(&mut *stuck.requests[1]), 0);
        let queued = uv_stream_get_write_queue_size(&*stuck.pipe);
        assert_eq!(queued, stuck.queued, "it has not been reported");
        uv_run(&mut *stuck.lp, NO_WAIT);
        let queued = uv_stream_get_write_queue_size(&*stuck.pipe);
        assert_eq!(queued, stuck.queued - 1000);
        assert_eq!(told(), [cancelled, queued as c_int]);
    }
    close(stuck.lp, &mut [&mut stuck.pipe]);
    assert_eq!(told(), [cancelled, 2000, cancelled, 0]);
}

#[test]
fn writes_that_fail_at_once_are_queued_until_they_are_reported() {
    let (near, far) = UnixStream::pair().unwrap();
    drop(far);
    let (mut lp, mut pipe) = (new_loop(), Room::new());
    let mut reqs = [Room::new(), Room::new()];
    let buffer = uv_buf_t::new(b"bytes");
    // SAFETY: loop and handle are initialised in order; the requests live as long as they.
    unsafe {
        assert_eq!(uv_pipe_init(&mut *lp, &mut *pipe, 0), 0);
        assert_eq!(uv_pipe_open(&mut *pipe, near.into_raw_fd()), 0);
        assert_eq!(uv_try_write(&mut *pipe, &buffer, 1), -libc::EPIPE);
        for (at, req) in reqs.iter_mut().enumerate() {
            req.data = (&raw mut *pipe).cast();
            assert_eq!(
                uv_write(&mut **req, &mut *pipe, &buffer, 1, Some(tell_queue)),
                0
            );
            let queued = uv_stream_get_write_queue_size(&*pipe);
            assert_eq!(queued, 5 * (at + 1));
            assert_eq!(uv_try_write(&mut *pipe, &buffer, 1), -libc::EAGAIN);
        }
        assert_eq!(uv_run(&mut *lp, DEFAULT), 0);
        assert_eq!(uv_try_write(&mut *pipe, &buffer, 1), -libc::EPIPE);
    }
    assert_eq!(told(), [-libc::EPIPE, 5, -libc::EPIPE, 0]);
    close(lp, &mut [&mut pipe]);
}

#[test]
fn trying_to_write_nothing_has_to_wait_too() {
    let mut stuck = Stuck::new();
    // SAFETY: the handle is open, and no buffers are looked at.
    unsafe {
        assert_eq!(uv_try_write(&mut *stuck.pipe, null(), 0), -libc::EAGAIN);
        uv_close(&mut *stuck.pipe, None);
        assert_eq!(uv_try_write(&mut *stuck.pipe, null(), 0), -libc::EAGAIN);
    }
    close(stuck.lp, &mut []);
    told();
    let (near, _far) = UnixStream::pair().unwrap();
    let (mut lp, mut pipe) = (new_loop(), Room::new());
    // SAFETY: loop and handle are initialised in order, and no buffers are looked at.
    unsafe {
        assert_eq!(uv_pipe_init(&mut *lp, &mut *pipe, 0), 0);
        assert_eq!(uv_pipe_open(&mut *pipe, near.into_raw_fd()), 0);
        assert_eq!(uv_try_write(&mut *pipe, null(), 0), -libc::EINVAL);
    }
    close(lp, &mut [&mut pipe]);
}

#[test]
fn a_closing_handle_takes_what_changes_nothing() {
    let mut lp = new_loop();
    let [mut timer, mut idle, mut tcp] = [(); 3].map(|()| Room::new());
    // SAFETY: loop and handles are initialised in order.
    unsafe {
        assert_eq!(uv_timer_init(&mut *lp, &mut *timer), 0);
        assert_eq!(uv_timer_again(&mut *timer), -libc::EINVAL, "never started");
        assert_eq!(uv_timer_start(&mut *timer, Some(nothing), 1000, 1000), 0);
        assert_eq!(uv_idle_init(&mut *lp, &mut *idle), 0);
        assert_eq!(
            uv_tcp_init_ex(&mut *lp, &mut *tcp, libc::AF_INET as c_uint),
            0
        );
        for handle in [&mut timer, &mut idle, &mut tcp] {
            uv_close(&mut **handle, None);
        }
        assert_eq!(uv_timer_again(&mut *timer), 0);
        assert_eq!(
            uv_timer_start(&mut *timer, Some(nothing), 0, 0),
            -libc::EINVAL
        );
        assert_eq!(uv_idle_start(&mut *idle, Some(nothing)), 0);
        assert_eq!(uv_tcp_nodelay(&mut *tcp, 1), 0);
        assert_eq!(uv_tcp_keepalive(&mut *tcp, 1, 10), 0);
        assert_eq!(uv_tcp_keepalive(&mut *tcp, 1, 0), 0);
        assert_eq!(uv_tcp_simultaneous_accepts(&mut *tcp, 1), 0);
        assert_eq!(uv_stream_set_blocking(&mut *tcp, 1), -libc::EBADF);
        for handle in [&timer, &idle, &tcp] {
            assert_eq!(uv_is_active(&**handle), 0);
        }
    }
    close(lp, &mut []);
}

unsafe extern "C" fn tell_exit(_: *mut uv_process_t, status: i64, _: c_int) {
    tell(status as c_int);
}

#[test]
fn flags_of_children_that_nobody_knows_and_less_than_no_descriptors_mean_nothing() {
    let args = [c"sh", c"-c", c"exit 7"].map(|arg| arg.as_ptr());
    let args = [args[0], args[1], args[2], null()];
    for (flags, stdio_count) in [(1 << 8, 0), (1 << 31, 0), (0, -1), (0, c_int::MIN)] {
        let (mut lp, mut process) = (new_loop(), Room::new());
        let options = uv_process_options_t {
            exit_cb: Some(tell_exit),
            file: args[0],
            args: args.as_ptr().cast_mut().cast(),
            flags,
            stdio_count,
            ..zeroed()
        };
        // SAFETY: loop, handle and options are as they should be.
        unsafe {
            assert_eq!(uv_spawn(&mut *lp, &mut *process, &options), 0);
            assert_eq!(uv_run(&mut *lp, DEFAULT), 0);
        }
        assert_eq!(told(), [7]);
        close(lp, &mut [&mut process]);
    }
}

#[test]
fn a_loop_that_was_never_run_is_to_be_run_at_once() {
    let (mut lp, mut timer, mut other) = (new_loop(), Room::new(), Room::new());
    // SAFETY: loop and handles are initialised in order.
    unsafe {
        assert_eq!(uv_async_init(&mut *lp, &mut *other, None), 0);
        assert_eq!(uv_backend_timeout(&*lp), 0);
        assert_eq!(uv_timer_init(&mut *lp, &mut *timer), 0);
        assert_eq!(uv_timer_start(&mut *timer, Some(nothing), 1_000_000, 0), 0);
        assert_eq!(uv_backend_timeout(&*lp), 0);
        uv_run(&mut *lp, NO_WAIT);
        assert!(uv_backend_timeout(&*lp) > 0);
    }
    close(lp, &mut [&mut timer, &mut other]);
}

#[test]
fn a_run_with_nothing_to_do_is_not_the_first_turn() {
    let (mut lp, mut timer) = (new_loop(), Room::new());
    // SAFETY: loop and handle are initialised in order.
    unsafe {
        assert_eq!(uv_run(&mut *lp, NO_WAIT), 0);
        assert_eq!(uv_timer_init(&mut *lp, &mut *timer), 0);
        assert_eq!(uv_timer_start(&mut *timer, Some(nothing), 1_000_000, 0), 0);
        assert_eq!(uv_backend_timeout(&*lp), 0);
        uv_run(&mut *lp, NO_WAIT);
        assert!(uv_backend_timeout(&*lp) > 0);
    }
    close(lp, &mut [&mut timer]);
}

unsafe extern "C" fn wait_for_end(req: *mut Room) {
    // SAFETY: the test keeps the channel until all requests are done.
    let gate = unsafe { &*(*req).data.cast::<std::sync::Mutex<mpsc::Receiver<()>>>() };
    let _ = gate.lock().unwrap().recv();
}

#[test]
fn a_cancelled_request_can_be_cancelled_again() {
    let mut lp = new_loop();
    let (open, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    // However many threads there are, all of them are busy.
    let mut busy: Vec<_> = (0..1100).map(|_| Room::new()).collect();
    // SAFETY: the requests and the gate live until the loop has been run.
    unsafe {
        for req in &mut busy {
            req.data = (&raw const gate).cast_mut().cast();
            assert_eq!(
                uv_queue_work(&mut *lp, &mut **req, Some(wait_for_end), Some(tell_status)),
                0
            );
        }
        let last = &raw mut **busy.last_mut().unwrap();
        let cancelled = [uv_cancel(last), uv_cancel(last), uv_cancel(last)];
        drop(open);
        assert_eq!(uv_run(&mut *lp, DEFAULT), 0);
        assert_eq!(cancelled, [0; 3]);
    }
    let told = told();
    assert_eq!(told.len(), busy.len(), "each is reported once");
    let cancelled = told.iter().filter(|&&status| status == -libc::ECANCELED);
    assert_eq!(cancelled.count(), 1);
    close(lp, &mut []);
}

unsafe extern "C" fn tell_events(_: *mut Room, status: c_int, events: c_int) {
    tell(if status == 0 { events } else { status });
}

/// What a poll handle on `fd` is told in two turns.
fn polled(fd: impl Into<OwnedFd>, wanted: c_int) -> Vec<c_int> {
    let fd = fd.into();
    let (mut lp, mut poll) = (new_loop(), Room::new());
    // SAFETY: loop and handle are initialised in order.
    unsafe {
        assert_eq!(uv_poll_init(&mut *lp, &mut *poll, fd.as_raw_fd()), 0);
        assert_eq!(uv_poll_start(&mut *poll, wanted, Some(tell_events)), 0);
        uv_run(&mut *lp, NO_WAIT);
        uv_run(&mut *lp, NO_WAIT);
    }
    close(lp, &mut [&mut poll]);
    told()
}

fn without_writer() -> OwnedFd {
    let (read, mut write) = std::io::pipe().unwrap();
    write.write_all(b"x").unwrap();
    read.into()
}

fn without_reader() -> OwnedFd {
    std::io::pipe().unwrap().1.into()
}

fn unconnected() -> OwnedFd {
    use std::os::fd::FromRawFd as _;
    // SAFETY: the kernel has made the socket for us alone.
    unsafe { OwnedFd::from_raw_fd(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0)) }
}

fn hung_up_with_data() -> OwnedFd {
    let (near, mut far) = UnixStream::pair().unwrap();
    far.write_all(b"x").unwrap();
    near.into()
}

#[test]
fn a_poll_handle_that_is_hung_up_is_told_all_that_it_wants() {
    for wanted in [1, 2, 3, 4, 5, 7, 8, 9, 15] {
        assert_eq!(polled(without_writer(), wanted), [wanted; 2]);
        assert_eq!(polled(hung_up_with_data(), wanted), [wanted; 2]);
        assert_eq!(polled(unconnected(), wanted), [wanted; 2]);
    }
}

#[test]
fn a_poll_handle_in_error_is_told_once_whatever_it_wants() {
    for wanted in [1, 2, 3, 4, 5, 7, 8, 9, 12, 15] {
        assert_eq!(polled(without_reader(), wanted), [-libc::EBADF]);
    }
}
