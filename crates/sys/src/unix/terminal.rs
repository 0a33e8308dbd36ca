//! Terminals: their settings and size, and opening them a second time.
//! <https://man7.org/linux/man-pages/man3/termios.3.html>
//!
//! The settings of one terminal are remembered for the whole process, so that a program can restore
//! them when it ends, even from a signal handler. A flag guards them. [`reset`] never waits for the
//! flag: a signal handler that finds it set may have interrupted the thread that has set it.

use crate::fd::{self, Descriptor};
use crate::{Errno, RawFd, check, platform};
use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

/// A terminal's settings.
#[derive(Clone, Copy)]
pub struct Settings(libc::termios);

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Settings(termios) = self;
        write!(
            f,
            "Settings(input {:o}, output {:o}, control {:o}, local {:o})",
            termios.c_iflag, termios.c_oflag, termios.c_cflag, termios.c_lflag
        )
    }
}

impl Settings {
    /// The terminal's present settings.
    pub fn of(fd: RawFd) -> Result<Settings, Errno> {
        let mut termios = MaybeUninit::uninit();
        // SAFETY: tcgetattr fills `termios` or fails.
        retry(|| unsafe { libc::tcgetattr(fd, termios.as_mut_ptr()) })?;
        // SAFETY: tcgetattr succeeded and has filled it.
        Ok(Settings(unsafe { termios.assume_init() }))
    }

    /// Applies the settings at once, without waiting for pending output.
    pub fn apply(&self, fd: RawFd) -> Result<(), Errno> {
        // SAFETY: the settings live through the call.
        retry(|| unsafe { libc::tcsetattr(fd, libc::TCSANOW, &self.0) })
    }

    /// These settings in raw mode: for a program that reads single keys and draws its own echo. A
    /// line feed in its output still starts a new line at the left.
    pub fn raw(mut self) -> Settings {
        let Settings(termios) = &mut self;
        termios.c_iflag &= !(libc::BRKINT | libc::ICRNL | libc::INPCK | libc::ISTRIP | libc::IXON);
        termios.c_oflag |= libc::ONLCR;
        termios.c_cflag |= libc::CS8;
        termios.c_lflag &= !(libc::ECHO | libc::ICANON | libc::IEXTEN | libc::ISIG);
        termios.c_cc[libc::VMIN] = 1;
        termios.c_cc[libc::VTIME] = 0;
        self
    }

    /// These settings in binary mode: bytes pass unchanged in both directions.
    pub fn binary(mut self) -> Settings {
        // SAFETY: the settings are valid, and stay so.
        unsafe { libc::cfmakeraw(&mut self.0) };
        self
    }
}

/// Repeats a call while signals interrupt it.
fn retry(mut call: impl FnMut() -> libc::c_int) -> Result<(), Errno> {
    loop {
        match check(call()) {
            Err(Errno::EINTR) => {}
            result => return result.map(drop),
        }
    }
}

/// The number of columns and rows.
pub fn size(fd: RawFd) -> Result<(u16, u16), Errno> {
    let mut size = MaybeUninit::<libc::winsize>::uninit();
    // SAFETY: TIOCGWINSZ fills `size` or fails.
    retry(|| unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, size.as_mut_ptr()) })?;
    // SAFETY: the call succeeded and has filled it.
    let size = unsafe { size.assume_init() };
    Ok((size.ws_col, size.ws_row))
}

/// Opens the terminal behind a descriptor a second time, with the same access mode, so that making
/// the new descriptor non-blocking does not affect processes that have inherited the old one.
///
/// `None` if that is impossible: the controlling side of a pseudo-terminal cannot be opened again,
/// and the terminal may belong to another user.
pub fn reopen(fd: RawFd) -> Option<Descriptor> {
    if platform::terminal::is_controller(fd) {
        return None;
    }
    let direction = fd::status_flags(fd).ok()? & libc::O_ACCMODE;
    let flags = direction | libc::O_NOCTTY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let path = platform::terminal::path_of(fd);
    path.and_then(|path| open(path.as_c_str(), flags))
        .or_else(|| {
            let mut room = [0; 256];
            open(name(fd, &mut room)?, flags)
        })
}

fn open(path: &CStr, flags: libc::c_int) -> Option<Descriptor> {
    // SAFETY: the path is a C string.
    let opened = check(unsafe { libc::open(path.as_ptr(), flags) }).ok()?;
    // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
    Some(unsafe { Descriptor::adopt(opened) })
}

fn name(fd: RawFd, room: &mut [u8]) -> Option<&CStr> {
    // SAFETY: the buffer has the size given.
    let failed = unsafe { libc::ttyname_r(fd, room.as_mut_ptr().cast(), room.len()) };
    match failed {
        0 => CStr::from_bytes_until_nul(room).ok(),
        _ => None,
    }
}

/// The first terminal that the process has changed, and its settings before that.
struct Remembered {
    taken: AtomicBool,
    terminal: UnsafeCell<Option<(RawFd, Settings)>>,
}

// SAFETY: only the thread that has set `taken` accesses the terminal.
unsafe impl Sync for Remembered {}

static REMEMBERED: Remembered = Remembered {
    taken: AtomicBool::new(false),
    terminal: UnsafeCell::new(None),
};

impl Remembered {
    /// Passes the terminal to `f`, or returns `None` if it is in use. Async-signal-safe if `f` is.
    fn try_with<R>(&self, f: impl FnOnce(&mut Option<(RawFd, Settings)>) -> R) -> Option<R> {
        if self.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: this thread has just set the flag, so nothing else accesses the terminal until it
        // is cleared.
        let result = f(unsafe { &mut *self.terminal.get() });
        self.taken.store(false, Ordering::Release);
        Some(result)
    }

    /// Passes the terminal to `f`, which takes only a few instructions.
    fn with<R>(&self, mut f: impl FnMut(&mut Option<(RawFd, Settings)>) -> R) -> R {
        loop {
            if let Some(result) = self.try_with(&mut f) {
                return result;
            }
            std::thread::yield_now();
        }
    }
}

/// Remembers a terminal's original settings, unless a terminal is remembered already.
pub fn remember(fd: RawFd, settings: Settings) {
    REMEMBERED.with(|terminal| {
        terminal.get_or_insert((fd, settings));
    });
}

/// Forgets the terminal, if it is the remembered one: its number may soon be reused. Returns
/// whether it was.
pub fn forget(fd: RawFd) -> bool {
    REMEMBERED.with(|terminal| terminal.take_if(|(known, _)| *known == fd).is_some())
}

/// Restores the remembered terminal's settings, if there is one. Async-signal-safe: it takes no
/// lock and preserves `errno`. `EBUSY` if the settings are in use at this moment.
pub fn reset() -> Result<(), Errno> {
    let errno = platform::errno::location();
    // SAFETY: the address is valid on the calling thread; the value is restored below.
    let saved = unsafe { *errno };
    let result = REMEMBERED.try_with(|terminal| match terminal {
        Some((fd, settings)) => settings.apply(*fd),
        None => Ok(()),
    });
    // SAFETY: as above.
    unsafe { *errno = saved };
    result.unwrap_or(Err(Errno::EBUSY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_that_interrupts_a_change_is_busy() {
        let interrupted = REMEMBERED.try_with(|_| reset());
        assert_eq!(interrupted, Some(Err(Errno::EBUSY)));
        assert_eq!(reset(), Ok(()), "nothing is remembered");
    }

    #[test]
    fn a_file_that_is_no_terminal_has_no_settings() {
        let file = fd::open_reserve().unwrap();
        assert_eq!(Settings::of(file.raw()).unwrap_err(), Errno::ENOTTY);
        assert_eq!(size(file.raw()), Err(Errno::ENOTTY));
        assert_eq!(size(-1), Err(Errno::EBADF));
    }
}
