//! Terminal handles, through the C interface, on pseudo-terminals.

#[path = "support/event_loop.rs"]
mod event_loop;

use event_loop::{alone, new_loop};
use std::ffi::{c_char, c_int, c_uint};
use uv as _;
use uv_binding::*;

const BLOCKING_WRITES: c_uint = 0x10_0000;
const NORMAL: c_int = 0;
const RAW: c_int = 1;
const IO: c_int = 2;
const RAW_VT: c_int = 3;

fn close_loop(mut l: Box<uv_loop_t>) {
    // SAFETY: the loop was initialised.
    unsafe {
        assert_eq!(uv_run(&mut *l, 0), 0);
        assert_eq!(uv_loop_close(&mut *l), 0);
    }
}

fn new_tty() -> Box<uv_tty_t> {
    Box::new(zeroed())
}

/// A pseudo-terminal: the controlling side and the terminal itself.
fn open_pty() -> (c_int, c_int) {
    let (mut master, mut slave) = (-1, -1);
    let null = std::ptr::null_mut();
    // SAFETY: there is room for two descriptors, and nothing else is asked for.
    let opened = unsafe { libc::openpty(&mut master, &mut slave, null, null.cast(), null.cast()) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    (master, slave)
}

fn close_fd(fd: c_int) {
    // SAFETY: the test's own descriptor.
    assert_eq!(unsafe { libc::close(fd) }, 0);
}

fn status_flags(fd: c_int) -> c_int {
    // SAFETY: no pointers.
    unsafe { libc::fcntl(fd, libc::F_GETFL) }
}

fn settings(fd: c_int) -> libc::termios {
    // SAFETY: tcgetattr fills it or fails.
    unsafe {
        let mut termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(fd, &mut termios), 0);
        termios
    }
}

fn flags(fd: c_int) -> (u32, u32, u32, u32) {
    let termios = settings(fd);
    (
        termios.c_iflag,
        termios.c_oflag,
        termios.c_cflag,
        termios.c_lflag,
    )
}

fn set_mode(tty: &mut uv_tty_t, mode: c_int) -> c_int {
    // SAFETY: an initialised handle.
    unsafe { uv_tty_set_mode(tty, mode) }
}

fn close_tty(tty: &mut uv_tty_t) {
    // SAFETY: an initialised handle that outlives its loop.
    unsafe { uv_close(tty, None) }
}

fn init(l: &mut uv_loop_t, fd: c_int) -> Box<uv_tty_t> {
    let mut tty = new_tty();
    // SAFETY: an initialised loop, and memory for a handle.
    assert_eq!(unsafe { uv_tty_init(l, &mut *tty, fd, 0) }, 0);
    tty
}

#[test]
fn the_terminal_is_opened_anew_and_others_stay_blocking() {
    let _alone = alone();
    let (master, slave) = open_pty();
    let mut l = new_loop();
    let mut tty = init(&mut l, slave);
    // SAFETY: an initialised handle.
    unsafe {
        let mut own = -1;
        assert_eq!(uv_fileno(&*tty, &mut own), 0);
        assert_ne!(own, slave);
        assert_eq!(
            status_flags(slave) & libc::O_NONBLOCK,
            0,
            "the program's stays as it was"
        );
        assert_ne!(status_flags(own) & libc::O_NONBLOCK, 0);
        assert_eq!(libc::fcntl(own, libc::F_GETFD), libc::FD_CLOEXEC);
        assert_eq!(tty.flags & BLOCKING_WRITES, 0);
        assert_eq!(uv_handle_get_type(&*tty), UV_TTY);
        assert_eq!(uv_handle_size(UV_TTY), 312);
        assert_eq!((uv_is_readable(&*tty), uv_is_writable(&*tty)), (1, 1));
        close_tty(&mut tty);
        assert_eq!((uv_is_readable(&*tty), uv_is_writable(&*tty)), (0, 0));
        assert_eq!(uv_fileno(&*tty, &mut own), -libc::EBADF);
        let (mut width, mut height) = (0, 0);
        let size = uv_tty_get_winsize(&mut *tty, &mut width, &mut height);
        assert_eq!(size, -libc::EBADF);
        assert_eq!(set_mode(&mut tty, 1), -libc::EBADF);
    }
    close_loop(l);
    close_fd(slave);
    close_fd(master);
}

#[test]
fn the_controlling_side_is_not_opened_anew() {
    let _alone = alone();
    let (master, slave) = open_pty();
    let mut l = new_loop();
    let mut tty = init(&mut l, master);
    let mut own = -1;
    // SAFETY: an initialised handle.
    unsafe { assert_eq!(uv_fileno(&*tty, &mut own), 0) };
    assert_eq!(own, master);
    assert_eq!(tty.flags & BLOCKING_WRITES, BLOCKING_WRITES);
    assert_eq!(status_flags(master) & libc::O_NONBLOCK, 0);
    close_tty(&mut tty);
    close_loop(l);
    close_fd(slave);
    // SAFETY: the handle owned it, and has closed it.
    assert_eq!(unsafe { libc::fcntl(master, libc::F_GETFD) }, -1);
}

#[test]
fn the_directions_are_the_descriptors() {
    let _alone = alone();
    let (master, slave) = open_pty();
    let path = std::fs::read_link(format!("/proc/self/fd/{slave}")).unwrap();
    let mut l = new_loop();
    for (write, expected) in [(false, (1, 0)), (true, (0, 1))] {
        use std::os::fd::AsRawFd;
        let file = std::fs::File::options()
            .read(!write)
            .write(write)
            .open(&path)
            .unwrap();
        let mut tty = init(&mut l, file.as_raw_fd());
        // SAFETY: an initialised handle.
        let found = unsafe { (uv_is_readable(&*tty), uv_is_writable(&*tty)) };
        assert_eq!(found, expected);
        close_tty(&mut tty);
        // SAFETY: the loop was initialised; the handle must outlive its closing.
        unsafe { uv_run(&mut *l, 0) };
    }
    close_loop(l);
    close_fd(slave);
    close_fd(master);
}

#[test]
fn files_and_devices_are_refused_and_pipes_are_not() {
    use std::os::fd::{AsRawFd, IntoRawFd};
    let _alone = alone();
    let mut l = new_loop();
    let mut tty = new_tty();
    for path in ["/dev/null", "/dev/zero", "/etc/passwd", "/tmp"] {
        let file = std::fs::File::open(path).unwrap();
        // SAFETY: an initialised loop, and memory for a handle.
        let made = unsafe { uv_tty_init(&mut *l, &mut *tty, file.as_raw_fd(), 1) };
        assert_eq!(made, UV_EINVAL, "{path}");
        assert!(file.metadata().is_ok(), "the program keeps it");
    }
    // SAFETY: as above.
    assert_eq!(unsafe { uv_tty_init(&mut *l, &mut *tty, -1, 1) }, UV_EINVAL);
    let (reader, writer) = std::io::pipe().unwrap();
    let mut tty = init(&mut l, reader.into_raw_fd());
    let (mut width, mut height) = (0, 0);
    assert_eq!(set_mode(&mut tty, RAW), -libc::ENOTTY);
    // SAFETY: an initialised handle.
    let size = unsafe { uv_tty_get_winsize(&mut *tty, &mut width, &mut height) };
    assert_eq!(size, -libc::ENOTTY);
    close_tty(&mut tty);
    close_loop(l);
    drop(writer);
}

#[test]
fn modes_change_the_settings_and_normal_brings_them_back() {
    let _alone = alone();
    let (master, slave) = open_pty();
    let before = flags(slave);
    let mut l = new_loop();
    let mut tty = init(&mut l, slave);
    assert_eq!(set_mode(&mut tty, -1), UV_EINVAL);
    assert_eq!(set_mode(&mut tty, 4), UV_EINVAL);
    assert_eq!(flags(slave), before);
    for mode in [RAW, RAW_VT] {
        assert_eq!(set_mode(&mut tty, mode), 0);
        assert_eq!(tty.mode, RAW, "both are the same here");
        let (input, output, _, local) = flags(slave);
        assert_eq!(input & (libc::ICRNL | libc::IXON | libc::BRKINT), 0);
        assert_eq!(
            output & (libc::ONLCR | libc::OPOST),
            libc::ONLCR | libc::OPOST
        );
        assert_eq!(
            local & (libc::ECHO | libc::ICANON | libc::ISIG | libc::IEXTEN),
            0
        );
        assert_eq!(settings(slave).c_cc[libc::VMIN], 1);
    }
    assert_eq!(set_mode(&mut tty, IO), 0);
    let (_, output, _, local) = flags(slave);
    assert_eq!(output & libc::OPOST, 0, "output is not touched, either");
    assert_eq!(local & (libc::ECHO | libc::ICANON), 0);
    assert_eq!(set_mode(&mut tty, NORMAL), 0);
    assert_eq!(flags(slave), before);
    close_tty(&mut tty);
    close_loop(l);
    close_fd(slave);
    close_fd(master);
}

#[test]
fn reset_restores_the_first_terminal_and_leaves_errno_alone() {
    let _alone = alone();
    let (master, slave) = open_pty();
    let (other_master, other_slave) = open_pty();
    let before = flags(slave);
    let mut l = new_loop();
    let mut tty = init(&mut l, slave);
    let mut other = init(&mut l, other_slave);
    assert_eq!(set_mode(&mut tty, RAW), 0);
    assert_eq!(set_mode(&mut other, RAW), 0);
    let other_raw = flags(other_slave);
    // SAFETY: errno is the thread's own.
    unsafe {
        *libc::__errno_location() = 123;
        assert_eq!(uv_tty_reset_mode(), 0);
        assert_eq!(uv_tty_reset_mode(), 0);
        assert_eq!(*libc::__errno_location(), 123);
    }
    assert_eq!(flags(slave), before);
    assert_eq!(flags(other_slave), other_raw, "only one is remembered");
    close_tty(&mut tty);
    close_tty(&mut other);
    close_loop(l);
    for fd in [master, slave, other_master, other_slave] {
        close_fd(fd);
    }
}

#[test]
fn closing_restores_and_forgets_the_terminal() {
    let _alone = alone();
    let (master, slave) = open_pty();
    let before = flags(slave);
    let mut l = new_loop();
    let mut tty = init(&mut l, slave);
    assert_eq!(set_mode(&mut tty, RAW), 0);
    assert_ne!(flags(slave), before);
    close_tty(&mut tty);
    assert_eq!(flags(slave), before);
    // Another terminal gets the number that was closed.
    let (next_master, next_slave) = open_pty();
    let mut settings = settings(next_slave);
    settings.c_lflag &= !libc::ECHO;
    // SAFETY: the settings live through the call; resetting touches nothing of ours.
    unsafe {
        assert_eq!(libc::tcsetattr(next_slave, libc::TCSANOW, &settings), 0);
        assert_eq!(uv_tty_reset_mode(), 0);
    }
    assert_eq!(
        flags(next_slave).3,
        settings.c_lflag,
        "it is not the one that was changed"
    );
    close_loop(l);
    for fd in [master, slave, next_master, next_slave] {
        close_fd(fd);
    }
}

extern "C" fn reset_in_handler(_signal: c_int) {
    let result = uv_tty_reset_mode();
    assert!(result == 0 || result == -libc::EBUSY || result == -libc::EIO);
}

#[test]
fn reset_in_a_signal_handler_never_hangs() {
    let _alone = alone();
    let (master, slave) = open_pty();
    let mut l = new_loop();
    let mut tty = init(&mut l, slave);
    let handler: extern "C" fn(c_int) = reset_in_handler;
    // SAFETY: the handler is async-signal-safe; the timer is disarmed below.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(
            libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()),
            0
        );
        let thread = uv_thread_self();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    libc::pthread_kill(thread as _, libc::SIGUSR1);
                    std::thread::yield_now();
                }
            });
            for _ in 0..2000 {
                assert_eq!(uv_tty_set_mode(&mut *tty, RAW), 0);
                assert_eq!(uv_tty_set_mode(&mut *tty, NORMAL), 0);
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
    close_tty(&mut tty);
    close_loop(l);
    close_fd(slave);
    close_fd(master);
}

#[test]
fn the_window_has_a_size() {
    let _alone = alone();
    let (master, slave) = open_pty();
    let size = libc::winsize {
        ws_row: 43,
        ws_col: 132,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the size lives through the call.
    assert_eq!(unsafe { libc::ioctl(master, libc::TIOCSWINSZ, &size) }, 0);
    let mut l = new_loop();
    let mut tty = init(&mut l, slave);
    let (mut width, mut height) = (0, 0);
    // SAFETY: an initialised handle.
    let found = unsafe { uv_tty_get_winsize(&mut *tty, &mut width, &mut height) };
    assert_eq!((found, width, height), (0, 132, 43));
    close_tty(&mut tty);
    close_loop(l);
    close_fd(slave);
    close_fd(master);
}

#[test]
fn virtual_terminals_are_for_windows() {
    let mut state = 7;
    // SAFETY: there is room for a state.
    unsafe {
        uv_tty_set_vterm_state(0);
        assert_eq!(uv_tty_get_vterm_state(&mut state), -libc::ENOTSUP);
    }
    assert_eq!(state, 7);
}

static mut ROOM: [c_char; 1000] = [0; 1000];

unsafe extern "C" fn alloc(_: *mut uv_tty_t, _: usize, buf: *mut uv_buf_t) {
    // SAFETY: one test reads, on one thread.
    unsafe {
        *buf = uv_buf_t {
            base: (&raw mut ROOM).cast(),
            len: 1000,
        };
    }
}

unsafe extern "C" fn collect(tty: *mut uv_tty_t, nread: isize, buf: *const uv_buf_t) {
    // SAFETY: `data` points to the test's vector, and `buf` to what was read.
    unsafe {
        let found = &mut *(*tty).data.cast::<Vec<u8>>();
        match nread {
            0 => {}
            1.. => found.extend_from_slice(std::slice::from_raw_parts(
                (*buf).base.cast(),
                nread as usize,
            )),
            _ => uv_close(tty, None),
        }
    }
}

unsafe extern "C" fn written(_: *mut uv_write_t, status: c_int) {
    assert_eq!(status, 0);
}

#[test]
fn bytes_pass_in_both_directions_until_the_terminal_is_gone() {
    let _alone = alone();
    let (master, slave) = open_pty();
    let mut l = new_loop();
    let mut tty = init(&mut l, slave);
    let mut control = init(&mut l, master);
    let mut found = Vec::<u8>::new();
    control.data = (&raw mut found).cast();
    assert_eq!(set_mode(&mut tty, IO), 0);
    // Larger than the kernel's buffer, so that the write has to wait for the reader.
    let mut text: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
    let buf = uv_buf_t {
        base: text.as_mut_ptr().cast(),
        len: text.len(),
    };
    let mut req: Box<uv_write_t> = Box::new(zeroed());
    // SAFETY: everything outlives the run.
    unsafe {
        assert_eq!(uv_read_start(&mut *control, Some(alloc), Some(collect)), 0);
        assert_eq!(uv_write(&mut *req, &mut *tty, &buf, 1, Some(written)), 0);
        while found.len() < text.len() {
            uv_run(&mut *l, 1);
        }
    }
    assert_eq!(found, text);
    // The other side hears of the end when the last descriptor goes.
    close_tty(&mut tty);
    close_fd(slave);
    close_loop(l);
}
