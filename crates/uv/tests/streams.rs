//! Streams through the C interface: how they end, and callbacks that run the loop again or close
//! what it is dealing with.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr::{null, null_mut};
use uv as _;
use uv_binding::*;

const DEFAULT: c_int = 0;
const ONCE: c_int = 1;
const NO_WAIT: c_int = 2;
const EOF: isize = -4095;

/// What a callback was told: of whom, and the number.
type Told = (&'static str, usize, isize);

thread_local! {
    static TOLD: RefCell<Vec<Told>> = const { RefCell::new(Vec::new()) };
    static LOOP: Cell<*mut uv_loop_t> = const { Cell::new(null_mut()) };
    /// All handles of the test.
    static HANDLES: RefCell<Vec<*mut Room>> = const { RefCell::new(Vec::new()) };
    /// What callbacks do besides.
    static DEED: Cell<Deed> = const { Cell::new(Deed::Nothing) };
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deed {
    Nothing,
    RunAgain(c_int),
    CloseAll,
    CloseAllAndRunAgain(c_int),
    CloseOwn,
}

/// What callbacks do that bring trouble to a loop.
const DEEDS: [Deed; 9] = [
    Deed::Nothing,
    Deed::RunAgain(DEFAULT),
    Deed::RunAgain(ONCE),
    Deed::RunAgain(NO_WAIT),
    Deed::CloseAll,
    Deed::CloseAllAndRunAgain(DEFAULT),
    Deed::CloseAllAndRunAgain(ONCE),
    Deed::CloseAllAndRunAgain(NO_WAIT),
    Deed::CloseOwn,
];

unsafe extern "C" fn closed(handle: *mut Room) {
    tell("closed", handle, 0);
}

/// # Safety
///
/// The handle is initialised.
unsafe fn close(handle: *mut Room) {
    // SAFETY: as the caller says.
    unsafe {
        if uv_is_closing(handle) == 0 {
            uv_close(handle, Some(closed));
        }
    }
}

fn tell(what: &'static str, whom: *mut Room, number: isize) {
    // SAFETY: all handles and requests of these tests have a number for their data.
    let whom = unsafe { (*whom).data as usize };
    TOLD.with_borrow_mut(|told| told.push((what, whom, number)));
}

/// Does what the test asks of its callbacks, as the last thing that a callback does.
///
/// # Safety
///
/// The handle is initialised.
unsafe fn act(own: *mut Room) {
    let all = || HANDLES.with_borrow(|handles| handles.clone());
    // SAFETY: the loop and the handles are those of the test that runs.
    unsafe {
        match DEED.get() {
            Deed::Nothing => {}
            Deed::RunAgain(mode) => {
                uv_run(LOOP.get(), mode);
            }
            Deed::CloseAll => all().into_iter().for_each(|handle| close(handle)),
            Deed::CloseAllAndRunAgain(mode) => {
                all().into_iter().for_each(|handle| close(handle));
                uv_run(LOOP.get(), mode);
            }
            Deed::CloseOwn => close(own),
        }
    }
}

unsafe extern "C" fn lend(_: *mut Room, _: usize, buffer: *mut uv_buf_t) {
    // Of its own, since the loop may be run again before it has been looked at.
    let room: &'static mut [u8; 64] = Box::leak(Box::new([0; 64]));
    // SAFETY: the loop gives us a place for a buffer.
    unsafe {
        (*buffer).base = room.as_mut_ptr().cast();
        (*buffer).len = room.len();
    }
}

unsafe extern "C" fn read(stream: *mut Room, count: isize, buffer: *const uv_buf_t) {
    // SAFETY: the buffer is the one of above, which nobody else has.
    unsafe {
        if !(*buffer).base.is_null() {
            drop(Box::from_raw((*buffer).base.cast::<[u8; 64]>()));
        }
        if count != 0 {
            tell("read", stream, count);
            act(stream);
        }
    }
}

unsafe extern "C" fn done(request: *mut Room, status: c_int) {
    tell("done", request, status as isize);
}

/// The data of a request of the test below is its number and, above that, that of its stream.
unsafe extern "C" fn written(request: *mut Room, status: c_int) {
    tell("written", request, status as isize);
    // SAFETY: the stream of that number is the test's.
    unsafe {
        let stream = (*request).data as usize / 100;
        act(HANDLES.with_borrow(|handles| handles[stream]));
    }
}

/// A loop on which a test does something, and closes it.
fn on_a_loop(deed: Deed, test: impl FnOnce(*mut uv_loop_t)) -> Vec<Told> {
    let mut lp = Box::new(garbage());
    // SAFETY: this is memory for a loop.
    assert_eq!(unsafe { uv_loop_init(&mut *lp) }, 0);
    LOOP.set(&mut *lp);
    DEED.set(deed);
    test(&mut *lp);
    let handles = HANDLES.take();
    // SAFETY: the handles were made by `handle` and initialised by the test; closing them ends
    // the use of their memory.
    unsafe {
        handles.iter().for_each(|&handle| close(handle));
        DEED.set(Deed::Nothing);
        assert_eq!(uv_run(&mut *lp, DEFAULT), 0);
        assert_eq!(uv_loop_close(&mut *lp), 0);
        for handle in handles {
            drop(Box::from_raw(handle));
        }
    }
    TOLD.take()
}

/// Memory for a handle, with its number, for as long as the loop lives.
fn handle() -> *mut Room {
    let handle = Box::into_raw(Room::new());
    HANDLES.with_borrow_mut(|handles| {
        // SAFETY: it was made just now.
        unsafe { (*handle).data = handles.len() as *mut _ };
        handles.push(handle);
    });
    handle
}

/// A handle on one's own end of a connection.
fn stream(lp: *mut uv_loop_t, end: impl Into<OwnedFd>, is_tcp: bool) -> *mut Room {
    let stream = handle();
    let fd = end.into().into_raw_fd();
    // SAFETY: loop and handle are the test's.
    unsafe {
        match is_tcp {
            true => {
                assert_eq!(uv_tcp_init(lp, stream), 0);
                assert_eq!(uv_tcp_open(stream, fd), 0);
            }
            false => {
                assert_eq!(uv_pipe_init(lp, stream, 0), 0);
                assert_eq!(uv_pipe_open(stream, fd), 0);
            }
        }
    }
    stream
}

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (ours, listener.accept().unwrap().0)
}

/// What is told of a stream that is read to its end.
fn story(end: impl Into<OwnedFd>, is_tcp: bool) -> Vec<isize> {
    let told = on_a_loop(Deed::Nothing, |lp| {
        let stream = stream(lp, end, is_tcp);
        // SAFETY: it has been opened.
        unsafe {
            assert_eq!(uv_read_start(stream, Some(lend), Some(read)), 0);
            assert_eq!(uv_run(lp, DEFAULT), 0);
        }
    });
    let (end, reads) = told.split_last().unwrap();
    assert_eq!(*end, ("closed", 0, 0));
    reads.iter().map(|&(_, _, count)| count).collect()
}

#[test]
fn a_reset_after_data_is_not_the_end() {
    let reset = -(libc::ECONNRESET as isize);
    for is_tcp in [true, false] {
        let (mut ours, mut theirs) = tcp_pair();
        ours.write_all(b"a request that nobody reads").unwrap();
        theirs.write_all(b"half an ans").unwrap();
        drop(theirs);
        assert_eq!(story(ours, is_tcp), [11, reset]);
    }
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    ours.write_all(b"a request that nobody reads").unwrap();
    theirs.write_all(b"half an ans").unwrap();
    drop(theirs);
    assert_eq!(story(ours, false), [11, reset]);
}

#[test]
fn the_controlling_side_of_a_terminal_that_nobody_has_open_is_at_its_end() {
    for len in [0, 10, 64] {
        let (mut master, mut slave) = (0, 0);
        // SAFETY: both are written to, and new.
        let (master, mut slave) = unsafe {
            let opened = libc::openpty(&mut master, &mut slave, null_mut(), null(), null());
            assert_eq!(opened, 0);
            (
                OwnedFd::from_raw_fd(master),
                std::fs::File::from_raw_fd(slave),
            )
        };
        slave.write_all(&vec![b'x'; len]).unwrap();
        drop(slave);
        let expected: &[isize] = match len {
            0 => &[EOF],
            len => &[len as isize, EOF],
        };
        assert_eq!(story(master, false), expected);
    }
}

/// Three streams with something to read and an end behind it. Whatever a callback does, everybody
/// who is not closed is told everything once, and whoever is closed nothing after that.
#[test]
fn read_callbacks_may_run_the_loop_again_and_close_streams() {
    for deed in DEEDS {
        for is_tcp in [true, false] {
            let told = on_a_loop(deed, |lp| {
                for _ in 0..3 {
                    let (end, mut theirs): (OwnedFd, Box<dyn std::io::Write>) = match is_tcp {
                        true => tcp_ends(),
                        false => unix_ends(),
                    };
                    theirs.write_all(&[7; 100]).unwrap();
                    let stream = stream(lp, end, is_tcp);
                    // SAFETY: it has been opened.
                    assert_eq!(unsafe { uv_read_start(stream, Some(lend), Some(read)) }, 0);
                }
                // SAFETY: the loop is the test's.
                unsafe { uv_run(lp, DEFAULT) };
            });
            for stream in 0..3 {
                let of_stream: Vec<_> = (told.iter())
                    .filter(|&&(_, whom, _)| whom == stream)
                    .map(|&(what, _, number)| (what, number))
                    .collect();
                let (last, reads) = of_stream.split_last().unwrap();
                assert_eq!(*last, ("closed", 0), "{deed:?}: {told:?}");
                let is_closed_early = !matches!(deed, Deed::Nothing | Deed::RunAgain(_));
                if !is_closed_early {
                    let expected = [("read", 64), ("read", 36), ("read", EOF)];
                    assert_eq!(reads, expected, "{deed:?}: {told:?}");
                }
            }
            match deed {
                Deed::CloseAll | Deed::CloseAllAndRunAgain(_) => assert_eq!(told.len(), 4),
                Deed::CloseOwn => assert_eq!(told.len(), 6),
                Deed::Nothing | Deed::RunAgain(_) => assert_eq!(told.len(), 12),
            }
        }
    }
}

fn tcp_ends() -> (OwnedFd, Box<dyn std::io::Write>) {
    let (ours, theirs) = tcp_pair();
    (ours.into(), Box::new(theirs))
}

fn unix_ends() -> (OwnedFd, Box<dyn std::io::Write>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (ours.into(), Box::new(theirs))
}

/// Three streams with four writes each, of which some go at once and others wait.
#[test]
fn write_callbacks_may_run_the_loop_again_and_close_streams() {
    const BIG: usize = 4 << 20;
    let bytes = vec![b'x'; BIG];
    for deed in DEEDS {
        let mut requests: Vec<_> = (0..12).map(|_| Room::new()).collect();
        let mut readers = Vec::new();
        let told = on_a_loop(deed, |lp| {
            for number in 0..3 {
                let (ours, mut theirs) = UnixStream::pair().unwrap();
                readers.push(std::thread::spawn(move || {
                    std::io::copy(&mut theirs, &mut std::io::sink()).unwrap()
                }));
                let stream = stream(lp, ours, false);
                for at in 0..4 {
                    let request = &mut *requests[4 * number + at];
                    request.data = (100 * number + at) as *mut _;
                    let buffer = uv_buf_t::new(&bytes[..if at == 2 { BIG } else { 1 }]);
                    // SAFETY: request and memory outlive the loop.
                    let begun = unsafe { uv_write(request, stream, &buffer, 1, Some(written)) };
                    assert_eq!(begun, 0);
                }
            }
            // SAFETY: the loop is the test's.
            unsafe { uv_run(lp, DEFAULT) };
        });
        for number in 0..3 {
            let of_stream: Vec<_> = (told.iter())
                .filter(|&&(what, whom, _)| what == "written" && whom / 100 == number)
                .map(|&(_, whom, status)| (whom % 100, status))
                .collect();
            let order: Vec<_> = of_stream.iter().map(|&(at, _)| at).collect();
            assert_eq!(order, [0, 1, 2, 3], "{deed:?}: {told:?}");
            // Of a stream that is closed, those that had gone before stay so.
            let may_fail = !matches!(deed, Deed::Nothing | Deed::RunAgain(_));
            let cancelled = -(libc::ECANCELED as isize);
            let is_right = |status| status == 0 || may_fail && status == cancelled;
            let all_right = of_stream.iter().all(|&(_, status)| is_right(status));
            assert!(all_right, "{deed:?}: {told:?}");
        }
        let closed = told.iter().filter(|&&(what, ..)| what == "closed");
        assert_eq!(closed.count(), 3, "{deed:?}");
        for reader in readers {
            reader.join().unwrap();
        }
    }
}

/// The server's handle is the first; those of its connections follow.
unsafe extern "C" fn connection(server: *mut Room, status: c_int) {
    tell("connection", server, status as isize);
    let client = handle();
    // SAFETY: the loop and the handles are the test's.
    unsafe {
        assert_eq!(uv_tcp_init(LOOP.get(), client), 0);
        assert_eq!(uv_accept(server, client), 0);
        let is_last = HANDLES.with_borrow(|handles| handles.len()) == 4;
        if is_last {
            // Else a run inside of this one would wait for more.
            close(server);
        }
        act(server);
    }
}

#[test]
fn connection_callbacks_may_run_the_loop_again_and_close_the_server() {
    for deed in DEEDS {
        let told = on_a_loop(deed, |lp| {
            let server = handle();
            // SAFETY: loop and handle are the test's; the address is filled in.
            let clients = unsafe {
                let mut address: libc::sockaddr_in = std::mem::zeroed();
                assert_eq!(uv_ip4_addr(c"127.0.0.1".as_ptr(), 0, &mut address), 0);
                assert_eq!(uv_tcp_init(lp, server), 0);
                assert_eq!(uv_tcp_bind(server, &address, 0), 0);
                assert_eq!(uv_listen(server, 8, Some(connection)), 0);
                let mut len = size_of_val(&address) as c_int;
                assert_eq!(uv_tcp_getsockname(server, &mut address, &mut len), 0);
                let port = u16::from_be(address.sin_port);
                [(); 3].map(|()| TcpStream::connect(("127.0.0.1", port)).unwrap())
            };
            // SAFETY: as above.
            unsafe { uv_run(lp, DEFAULT) };
            drop(clients);
        });
        let connections = told.iter().filter(|told| **told == ("connection", 0, 0));
        let expected = match deed {
            Deed::Nothing | Deed::RunAgain(_) => 3,
            _ => 1,
        };
        assert_eq!(connections.count(), expected, "{deed:?}: {told:?}");
        let closed = told.iter().filter(|&&(what, ..)| what == "closed");
        assert_eq!(closed.count(), expected + 1, "{deed:?}: {told:?}");
    }
}

/// As libuv does them.
#[test]
fn writes_and_shutdowns_after_a_second_connect_are_done() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut requests: Vec<_> = (0..4).map(|_| Room::new()).collect();
    for (number, request) in requests.iter_mut().enumerate() {
        request.data = (10 + number) as *mut _;
    }
    let told = on_a_loop(Deed::Nothing, |lp| {
        let client = handle();
        let port = listener.local_addr().unwrap().port();
        // SAFETY: all of it is the test's and outlives the loop.
        unsafe {
            let mut address: libc::sockaddr_in = std::mem::zeroed();
            uv_ip4_addr(c"127.0.0.1".as_ptr(), port.into(), &mut address);
            assert_eq!(uv_tcp_init(lp, client), 0);
            assert_eq!(
                uv_tcp_connect(&mut *requests[0], client, &address, Some(done)),
                0
            );
            uv_run(lp, DEFAULT);
            assert_eq!(
                uv_tcp_connect(&mut *requests[1], client, &address, Some(done)),
                0
            );
            let buffer = uv_buf_t::new(b"word");
            assert_eq!(
                uv_write(&mut *requests[2], client, &buffer, 1, Some(done)),
                0
            );
            assert_eq!(uv_shutdown(&mut *requests[3], client, Some(done)), 0);
            assert_eq!(uv_run(lp, DEFAULT), 0);
        }
        let mut received = String::new();
        let (mut theirs, _) = listener.accept().unwrap();
        theirs.read_to_string(&mut received).unwrap();
        assert_eq!(received, "word");
    });
    let expected = [10, 11, 12, 13].map(|number| ("done", number, 0));
    assert_eq!(told[..4], expected);
}

#[test]
fn a_file_put_in_the_place_of_a_stopped_stream_s_is_read() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let (mut other, other_end) = UnixStream::pair().unwrap();
    let told = on_a_loop(Deed::Nothing, |lp| {
        let stream = stream(lp, ours, false);
        theirs.write_all(b"old").unwrap();
        // SAFETY: the stream is the test's, and its descriptor stays open.
        unsafe {
            assert_eq!(uv_read_start(stream, Some(lend), Some(read)), 0);
            uv_run(lp, ONCE);
            assert_eq!(uv_read_stop(stream), 0);
            let mut fd = -1;
            assert_eq!(uv_fileno(stream, &mut fd), 0);
            assert_eq!(libc::dup2(other_end.as_raw_fd(), fd), fd);
            drop(other_end);
            other.write_all(b"new one").unwrap();
            drop(other);
            assert_eq!(uv_read_start(stream, Some(lend), Some(read)), 0);
            assert_eq!(uv_run(lp, DEFAULT), 0);
        }
    });
    let expected = [("read", 0, 3), ("read", 0, 7), ("read", 0, EOF)];
    assert_eq!(told[..3], expected);
}
