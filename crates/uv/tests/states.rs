//! What is answered in states that programs should not ask in, and do.

use std::ffi::{c_char, c_int, c_uint};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use uv as _;
use uv_binding::*;

const NO_TRUNCATE: c_uint = 1;

type Callback = unsafe extern "C" fn(*mut Room, c_int);

/// Gives `test` a loop and a handle to initialise, and closes both. What it returns is checked
/// after that, with the handle.
fn with_handle(test: impl FnOnce(&mut uv_loop_t, &mut Room)) -> Box<Room> {
    let (mut lp, mut handle) = (Box::new(garbage()), Room::new());
    // SAFETY: the loop is initialised before use, the handle by the test.
    unsafe {
        assert_eq!(uv_loop_init(&mut *lp), 0);
        test(&mut lp, &mut handle);
        uv_close(&mut *handle, None);
        assert_eq!(uv_run(&mut *lp, 0), 0);
        assert_eq!(uv_loop_close(&mut *lp), 0);
    }
    handle
}

fn localhost(port: u16) -> libc::sockaddr_in {
    // SAFETY: the address is valid as zeroes, and filled in.
    unsafe {
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        assert_eq!(
            uv_ip4_addr(c"127.0.0.1".as_ptr(), c_int::from(port), &mut address),
            0
        );
        address
    }
}

fn option(tcp: &Room, level: c_int, name: c_int) -> c_int {
    let (mut fd, mut value) = (-1, -1);
    let mut size = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the handle is initialised and open, and the value as large as we say.
    unsafe {
        assert_eq!(uv_fileno(tcp, &mut fd), 0);
        let value = (&raw mut value).cast();
        assert_eq!(libc::getsockopt(fd, level, name, value, &mut size), 0);
    }
    value
}

/// Whether a connection is probed, and after how many seconds.
fn probing(tcp: &Room) -> (bool, c_int) {
    let is_on = option(tcp, libc::SOL_SOCKET, libc::SO_KEEPALIVE) == 1;
    (is_on, option(tcp, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE))
}

/// Node turns keep-alive on like this unless it is told a delay, and does not look at the answer.
#[test]
fn keepalive_without_a_delay_is_on() {
    with_handle(|lp, tcp| {
        // SAFETY: loop and handle are initialised.
        unsafe {
            assert_eq!(uv_tcp_init_ex(lp, tcp, libc::AF_INET as c_uint), 0);
            let (_, default) = probing(tcp);
            assert_eq!(uv_tcp_keepalive(tcp, 1, 0), -libc::EINVAL);
            assert_eq!(probing(tcp), (true, default));
            assert_eq!(uv_tcp_keepalive(tcp, 0, 0), 0);
            for (idle, interval, count) in [(5, 0, 3), (5, 3, 0), (c_uint::MAX, 1, 1)] {
                let set = uv_tcp_keepalive_ex(tcp, 1, idle, interval, count);
                assert_eq!(set, -libc::EINVAL);
                assert_eq!(probing(tcp), (true, default));
            }
        }
    });
    for (delay, expected) in [(0, 60), (77, 77)] {
        with_handle(|lp, tcp| {
            // SAFETY: likewise.
            unsafe {
                assert_eq!(uv_tcp_init(lp, tcp), 0);
                assert_eq!(uv_tcp_keepalive(tcp, 1, delay), 0, "there is no socket yet");
                assert_eq!(uv_tcp_bind(tcp, &localhost(0), 0), 0);
                assert_eq!(probing(tcp), (true, expected));
            }
        });
    }
}

unsafe extern "C" fn never(_: *mut Room, _: c_int) {}

#[test]
fn an_address_in_use_stays_in_use() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = localhost(other.local_addr().unwrap().port());
    with_handle(|lp, tcp| {
        let mut address = localhost(0);
        let mut len = size_of::<libc::sockaddr_in>() as c_int;
        // SAFETY: loop and handle are initialised.
        unsafe {
            assert_eq!(uv_tcp_init(lp, tcp), 0);
            assert_eq!(uv_tcp_bind(tcp, &taken, 0), 0);
            for _ in 0..3 {
                assert_eq!(uv_listen(tcp, 8, Some(never)), -libc::EADDRINUSE);
                let named = uv_tcp_getsockname(tcp, &mut address, &mut len);
                assert_eq!(named, -libc::EADDRINUSE);
            }
            assert_eq!(uv_tcp_bind(tcp, &localhost(0), 0), 0);
            assert_eq!(uv_listen(tcp, 8, Some(never)), 0);
            uv_close(tcp, None);
            let named = uv_tcp_getsockname(tcp, &mut address, &mut len);
            assert_eq!(named, -libc::EBADF);
        }
    });
}

#[test]
fn a_closed_handle_is_asked_when_its_loop_is_gone() {
    let mut timer = with_handle(|lp, timer| {
        // SAFETY: the loop is initialised.
        unsafe { assert_eq!(uv_timer_init(lp, timer), 0) }
    });
    let mut tcp = with_handle(|lp, tcp| {
        // SAFETY: likewise.
        unsafe { assert_eq!(uv_tcp_init_ex(lp, tcp, libc::AF_INET as c_uint), 0) }
    });
    let mut fd = -1;
    for (handle, no_descriptor) in [(&mut *timer, libc::EINVAL), (&mut *tcp, libc::EBADF)] {
        // SAFETY: the handle was initialised and closed.
        unsafe {
            uv_ref(handle);
            uv_unref(handle);
            uv_close(handle, None);
            assert_eq!(uv_is_active(handle), 0);
            assert_eq!(uv_has_ref(handle), 0);
            assert_eq!(uv_is_closing(handle), 1);
            assert_eq!(uv_fileno(handle, &mut fd), -no_descriptor);
        }
    }
}

#[test]
fn only_sockets_have_buffers() {
    with_handle(|lp, timer| {
        let mut value = 0;
        // SAFETY: loop and handle are initialised.
        unsafe {
            assert_eq!(uv_timer_init(lp, timer), 0);
            assert_eq!(uv_send_buffer_size(timer, &mut value), -libc::ENOTSUP);
            assert_eq!(uv_recv_buffer_size(timer, &mut value), -libc::ENOTSUP);
            assert_eq!(uv_send_buffer_size(timer, null_mut()), -libc::EINVAL);
        }
    });
}

/// The name of a bound pipe, or the error, and what is said of its length.
fn name_of(pipe: &Room, room: usize) -> Result<Vec<u8>, (c_int, usize)> {
    let (mut name, mut size) = (vec![b'#'; 200], room);
    // SAFETY: the handle is initialised, and there is more room than we say.
    let status = unsafe { uv_pipe_getsockname(pipe, name.as_mut_ptr().cast(), &mut size) };
    match status {
        0 => Ok(name[..size].to_vec()),
        error => Err((error, size)),
    }
}

/// The kernel takes paths that fill its field, without a NUL at their end.
#[test]
fn a_path_may_be_as_long_as_the_kernel_has_room() {
    let dir = std::env::temp_dir().join(format!("states-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut path = dir.join("").as_os_str().as_bytes().to_vec();
    path.resize(120, b'x');
    path.push(0);
    let name = path.as_ptr().cast::<c_char>();
    for len in [106, 107, 108] {
        with_handle(|lp, pipe| {
            // SAFETY: loop and handle are initialised, and the name is longer than that.
            unsafe {
                assert_eq!(uv_pipe_init(lp, pipe, 0), 0);
                assert_eq!(name_of(pipe, 50), Err((-libc::EBADF, 0)), "nothing is open");
                assert_eq!(uv_pipe_bind2(pipe, name, len, NO_TRUNCATE), 0);
                assert_eq!(name_of(pipe, 200), Ok(path[..len].to_vec()));
                assert_eq!(name_of(pipe, len), Err((-libc::ENOBUFS, len + 1)));
            }
        });
    }
    with_handle(|lp, pipe| {
        // SAFETY: likewise; the name ends in a NUL.
        unsafe {
            assert_eq!(uv_pipe_init(lp, pipe, 0), 0);
            let bound = uv_pipe_bind2(pipe, name, 109, NO_TRUNCATE);
            assert_eq!(bound, -libc::EINVAL);
            assert_eq!(uv_pipe_bind(pipe, name), 0, "what is too long is cut");
            assert_eq!(name_of(pipe, 200), Ok(path[..108].to_vec()));
        }
    });
    let left: Vec<_> = std::fs::read_dir(&dir).unwrap().collect();
    assert!(left.is_empty(), "a pipe takes its name along: {left:?}");
    std::fs::remove_dir(&dir).unwrap();
}

static STATUS: AtomicI32 = AtomicI32::new(1);

unsafe extern "C" fn keep_status(_: *mut Room, status: c_int) {
    STATUS.store(status, Relaxed);
}

/// What the callback is told in one turn, with nobody else's beside it.
fn told(lp: &mut uv_loop_t, begin: impl FnOnce(&mut uv_loop_t, Callback)) -> c_int {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    STATUS.store(1, Relaxed);
    begin(lp, keep_status);
    // SAFETY: an initialised loop.
    unsafe { uv_run(lp, 2) };
    STATUS.load(Relaxed)
}

#[test]
fn only_a_bound_path_has_a_mode() {
    with_handle(|lp, pipe| {
        // SAFETY: an initialised loop and handle.
        unsafe {
            assert_eq!(uv_pipe_init(lp, pipe, 0), 0);
            assert_eq!(uv_pipe_chmod(pipe, 0), -libc::EBADF);
            assert_eq!(uv_pipe_bind(pipe, c"".as_ptr()), 0);
            assert_eq!(uv_pipe_chmod(pipe, 1), -libc::ENOENT);
            assert_eq!(uv_pipe_chmod(pipe, 4), -libc::EINVAL);
        }
    });
}

#[test]
fn a_pipe_that_has_not_connected_cannot_listen() {
    with_handle(|lp, pipe| {
        let mut request = Room::new();
        // SAFETY: an initialised loop and handle, and a request that lives until it is reported.
        unsafe {
            assert_eq!(uv_pipe_init(lp, pipe, 0), 0);
            let status = told(lp, |_, cb| {
                uv_pipe_connect(&mut *request, pipe, c"".as_ptr(), Some(cb));
            });
            assert_eq!(status, -libc::EINVAL);
            assert_eq!(uv_fileno(pipe, &mut 0), -libc::EBADF, "nothing was made");
            let status = told(lp, |_, cb| {
                uv_pipe_connect(&mut *request, pipe, c"/missing/socket".as_ptr(), Some(cb));
                assert_eq!(uv_listen(pipe, 1, Some(cb)), -libc::EINVAL);
            });
            assert_eq!(status, -libc::ENOENT);
        }
    });
}

#[test]
fn who_tries_to_connect_is_open_both_ways() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = localhost(listener.local_addr().unwrap().port());
    with_handle(|lp, tcp| {
        let mut request = Room::new();
        // SAFETY: an initialised loop and handle; the request is not taken.
        unsafe {
            assert_eq!(uv_tcp_init(lp, tcp), 0);
            assert_eq!(uv_listen(tcp, 1, Some(keep_status)), 0);
            assert_eq!((uv_is_readable(tcp), uv_is_writable(tcp)), (0, 0));
            let connected = uv_tcp_connect(&mut *request, tcp, &address, Some(keep_status));
            assert_eq!(connected, -libc::EISCONN);
            assert_eq!((uv_is_readable(tcp), uv_is_writable(tcp)), (1, 1));
        }
    });
}

#[test]
fn a_pipe_has_no_direction_to_shut() {
    with_handle(|lp, pipe| {
        let (mut ends, mut request) = ([0; 2], Room::new());
        // SAFETY: an initialised loop and handle, and a request that lives until it is reported.
        unsafe {
            assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
            assert_eq!(uv_pipe_init(lp, pipe, 0), 0);
            assert_eq!(uv_pipe_open(pipe, ends[1]), 0);
            let status = told(lp, |_, cb| {
                assert_eq!(uv_shutdown(&mut *request, pipe, Some(cb)), 0);
            });
            assert_eq!(status, -libc::ENOTSOCK);
            libc::close(ends[0]);
        }
    });
}

#[test]
fn where_nobody_waits_it_does_not_matter_who_accepts() {
    with_handle(|lp, client| {
        let mut server = Room::new();
        // SAFETY: an initialised loop and handles, which are closed before they go.
        unsafe {
            assert_eq!(uv_tcp_init(lp, client), 0);
            assert_eq!(uv_tcp_init(lp, &mut *server), 0);
            uv_close(&mut *server, None);
            assert_eq!(uv_accept(client, &mut *server), -libc::EAGAIN);
            uv_run(lp, 2);
        }
    });
}

#[test]
fn what_is_not_watched_has_a_path_of_no_length() {
    with_handle(|lp, handle| {
        let (mut path, mut size) = ([0; 8], 8);
        // SAFETY: an initialised loop and handle, and a buffer of that size.
        unsafe {
            assert_eq!(uv_fs_event_init(lp, handle), 0);
            let found = uv_fs_event_getpath(handle, path.as_mut_ptr(), &mut size);
            assert_eq!((found, size), (-libc::EINVAL, 0));
        }
    });
}

#[test]
fn a_source_that_is_no_address_makes_no_socket() {
    with_handle(|lp, udp| {
        let (group, source) = (c"239.1.2.3".as_ptr(), c"nonsense".as_ptr());
        // SAFETY: an initialised loop and handle, and C strings.
        unsafe {
            assert_eq!(uv_udp_init(lp, udp), 0);
            let joined = uv_udp_set_source_membership(udp, group, null(), source, 1);
            assert_eq!(joined, -libc::EINVAL);
            assert_eq!(uv_fileno(udp, &mut 0), -libc::EBADF);
        }
    });
}
