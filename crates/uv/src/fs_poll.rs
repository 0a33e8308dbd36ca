//! `uv_fs_poll_t`: watching a file by asking about it again and again.
//!
//! To the engine this is a custom handle: it is walked over, referenced and closed like any
//! other. What it does is in a [`Watch`], made by each start: a hidden timer and a request that
//! take turns. The timer runs for what is left of the interval; then the request asks a worker
//! about the file; then the answer is compared, and the timer runs again.
//!
//! A watch belongs to its handle until that is stopped. If its request is on its way then, or
//! its callback is running, it is an *orphan* and frees itself at the end of that; meanwhile it
//! holds the handle, so that the handle's close callback comes after the last request is done.
//!
//! What the callback hears: nothing about the first answer unless it is an error; then every
//! change from one answer to another that differs, every error after something else, and every
//! answer after an error. What was last known of the file stays known through errors.

use crate::abi::{UV_FS_POLL, uv_handle_t, uv_loop_t, uv_timer_t};
use crate::fs::abi::{uv_fs_t, uv_stat_t};
use crate::{alloc, engine, fs, work};
use blacklight_engine::{Errno, Key};
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::mem::{offset_of, zeroed};
use std::ptr::null_mut;

/// Called when something has changed: the status, what was known before, and what is now.
pub type uv_fs_poll_cb =
    Option<unsafe extern "C" fn(*mut uv_fs_poll_t, c_int, *const uv_stat_t, *const uv_stat_t)>;

/// A handle that watches a file by asking.
#[repr(C)]
pub struct uv_fs_poll_t {
    handle: uv_handle_t,
    /// What the handle does while it is started, else null.
    pub(crate) watch: *mut Watch,
}

/// What a worker has last said about the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    None,
    /// It is in `Watch::known`.
    File,
    Error(c_int),
}

/// What a started handle does. The path follows in the same memory.
#[repr(C)]
pub(crate) struct Watch {
    handle: *mut uv_fs_poll_t,
    /// As C programs know timers, since that is what the loop calls; the engine's is hidden.
    timer: uv_timer_t,
    req: uv_fs_t,
    cb: uv_fs_poll_cb,
    interval_ms: u64,
    /// When the last round began.
    began_ms: u64,
    last: Answer,
    known: uv_stat_t,
    /// Whether the request is on its way or the callback is running.
    busy: bool,
    /// Whether the handle has let go of it.
    orphan: bool,
    path_len: usize,
    path: [c_char; 0],
}

/// What is known of a file that is not there.
static NOTHING: uv_stat_t = uv_stat_t::ZERO;

/// The watch around one of its parts.
///
/// # Safety
///
/// `part` is the part of a watch at that offset.
unsafe fn watch_of<T>(part: *mut T, offset: usize) -> *mut Watch {
    // SAFETY: the caller vouches for it.
    unsafe { part.byte_sub(offset).cast() }
}

impl Watch {
    /// Makes a watch with its own copy of the path, and its timer.
    ///
    /// # Safety
    ///
    /// The handle is initialised, and the path is a C string.
    unsafe fn new(
        handle: *mut uv_fs_poll_t,
        cb: uv_fs_poll_cb,
        path: &CStr,
        interval_ms: u64,
    ) -> Result<*mut Watch, Errno> {
        let text = path.to_bytes_with_nul();
        let size = size_of::<Watch>() + text.len();
        let watch = alloc::malloc(size).cast::<Watch>();
        if watch.is_null() {
            return Err(Errno::ENOMEM);
        }
        // SAFETY: there is room for the watch and the path behind it. All zeros are valid for
        // the C structs; the caller vouches for the handle.
        unsafe {
            let loop_ = (*handle).handle.loop_;
            watch.write(Watch {
                handle,
                timer: zeroed(),
                req: zeroed(),
                cb,
                interval_ms,
                began_ms: 0,
                last: Answer::None,
                known: NOTHING,
                busy: false,
                orphan: false,
                path_len: path.count_bytes(),
                path: [],
            });
            let copy = Watch::path(watch).cast_mut().cast::<u8>();
            copy.copy_from_nonoverlapping(text.as_ptr(), text.len());
            let timer = &raw mut (*watch).timer;
            let token = engine::token(timer);
            match engine::with(loop_, |engine| engine.hidden_timer_init(token)) {
                Ok(key) => (*timer).handle.key = key.to_bits(),
                Err(error) => {
                    alloc::free(watch.cast());
                    return Err(error);
                }
            }
            (*timer).handle.loop_ = loop_;
            (*timer).timer_cb = Some(timer_due);
        }
        Ok(watch)
    }

    /// # Safety
    ///
    /// The watch is there.
    unsafe fn path(watch: *mut Watch) -> *const c_char {
        // SAFETY: the path is behind the watch.
        unsafe { (&raw const (*watch).path).cast() }
    }

    /// Sends the request on its way, which holds the handle meanwhile.
    ///
    /// # Safety
    ///
    /// The watch is not busy and no orphan.
    unsafe fn ask(watch: *mut Watch) -> Result<(), Errno> {
        // SAFETY: the caller vouches for it; the path and the request live until the request is
        // done, as the watch does.
        unsafe {
            let handle = (&raw mut (*(*watch).handle).handle).cast_const();
            (*watch).began_ms = engine::with_handle(handle, |engine, key| {
                engine.custom_hold(key)?;
                Ok::<_, Errno>(engine.now())
            })?;
            let req = &raw mut (*watch).req;
            let sent = fs::stat_for(req, (*handle).loop_, Watch::path(watch), answered);
            match sent {
                0 => (*watch).busy = true,
                _ => Watch::let_go(watch),
            }
            match sent {
                0 => Ok(()),
                error => Err(Errno::from_code(error)),
            }
        }
    }

    /// Lets the handle go that the request has held.
    ///
    /// # Safety
    ///
    /// The watch holds its handle.
    unsafe fn let_go(watch: *mut Watch) {
        // SAFETY: the caller vouches for it, so the handle is still there.
        unsafe {
            let handle = (&raw mut (*(*watch).handle).handle).cast_const();
            let released = engine::with_handle(handle, |engine, key| engine.custom_release(key));
            debug_assert!(released.is_ok(), "a handle was forgotten while it was held");
        }
    }

    /// Starts the timer for what is left of the interval.
    ///
    /// # Safety
    ///
    /// The watch is no orphan.
    unsafe fn rest(watch: *mut Watch) {
        // SAFETY: the caller vouches for it.
        unsafe {
            let (began, interval) = ((*watch).began_ms, (*watch).interval_ms);
            let timer = &raw const (*watch).timer.handle;
            let started = engine::with_handle(timer, |engine, key| {
                let passed = engine.now().saturating_sub(began) % interval;
                engine.timer_start(key, interval - passed, 0)
            });
            if started.is_err() && !(*watch).busy {
                // There is no memory to wait; to ask too early is better than never again.
                let _ = Watch::ask(watch);
            }
        }
    }

    /// Takes the handle away: nothing happens from now on, except what is on its way.
    ///
    /// # Safety
    ///
    /// The watch is its handle's no more.
    unsafe fn abandon(watch: *mut Watch) {
        // SAFETY: the caller vouches for it.
        unsafe {
            engine::with_handle(&raw const (*watch).timer.handle, |engine, key| {
                engine.hidden_timer_remove(key);
            });
            if (*watch).busy {
                (*watch).orphan = true;
                // If no worker has it yet, none needs to.
                work::uv_cancel((&raw mut (*watch).req).cast());
            } else {
                alloc::free(watch.cast());
            }
        }
    }

    /// Compares an answer with the one before, and says what the callback is to hear.
    ///
    /// # Safety
    ///
    /// The watch's request is done.
    unsafe fn compare(watch: *mut Watch) -> Option<c_int> {
        // SAFETY: the caller vouches for it.
        unsafe {
            let answer = match (*watch).req.result {
                error if error < 0 => Answer::Error(error as c_int),
                _ => Answer::File,
            };
            match (std::mem::replace(&mut (*watch).last, answer), answer) {
                (before, Answer::Error(error)) => (before != answer).then_some(error),
                (Answer::None, _) => None,
                (Answer::Error(_), _) => Some(0),
                (Answer::File, _) => differs(&(*watch).known, &(*watch).req.statbuf).then_some(0),
            }
        }
    }
}

/// Whether something about the file has changed. Reading it is no change, so the access time
/// does not count; nor do the blocks, which the kernel may arrange as it likes, and whatever
/// cannot change without the change time.
fn differs(before: &uv_stat_t, now: &uv_stat_t) -> bool {
    let what = |stat: &uv_stat_t| {
        let times = [stat.st_mtim, stat.st_ctim, stat.st_birthtim];
        let file = [stat.st_dev, stat.st_ino, stat.st_mode, stat.st_size];
        (times, file, [stat.st_uid, stat.st_gid])
    };
    what(before) != what(now)
}

/// The interval is over.
unsafe extern "C" fn timer_due(timer: *mut uv_timer_t) {
    // SAFETY: only watches have timers with this callback, and one that is removed is not due.
    unsafe {
        let watch = watch_of(timer, offset_of!(Watch, timer));
        if Watch::ask(watch).is_err() {
            // There is no memory to ask now; perhaps there is later.
            Watch::rest(watch);
        }
    }
}

/// A worker has answered, or the request was cancelled.
unsafe extern "C" fn answered(req: *mut uv_fs_t) {
    // SAFETY: only watches have requests with this callback, and live until it is done. The
    // handle is held, so that it is still there.
    unsafe {
        let watch = watch_of(req, offset_of!(Watch, req));
        if !(*watch).orphan {
            if let Some(status) = Watch::compare(watch) {
                tell(watch, status);
            }
            if (*watch).last == Answer::File {
                (*watch).known = (*watch).req.statbuf;
            }
        }
        Watch::let_go(watch);
        (*watch).busy = false;
        match (*watch).orphan {
            true => alloc::free(watch.cast()),
            false => Watch::rest(watch),
        }
    }
}

/// Calls the program, which may stop or close the handle.
///
/// # Safety
///
/// The watch is busy and no orphan.
unsafe fn tell(watch: *mut Watch, status: c_int) {
    // SAFETY: the caller vouches for it; a busy watch outlives the call.
    unsafe {
        let now = match status {
            0 => &raw const (*watch).req.statbuf,
            _ => &raw const NOTHING,
        };
        if let Some(cb) = (*watch).cb {
            cb((*watch).handle, status, &raw const (*watch).known, now);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_poll_init(loop_: *mut uv_loop_t, handle: *mut uv_fs_poll_t) -> c_int {
    // SAFETY: the caller gives us a loop and memory for a handle.
    unsafe {
        let token = engine::token(handle);
        match engine::with(loop_, |engine| engine.custom_init(token)) {
            Ok(key) => engine::init(handle.cast(), loop_, UV_FS_POLL, key),
            Err(error) => return error.code(),
        }
        (*handle).watch = null_mut();
    }
    0
}

/// Starting a handle that is started does nothing, whatever it is asked to watch.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_poll_start(
    handle: *mut uv_fs_poll_t,
    poll_cb: uv_fs_poll_cb,
    path: *const c_char,
    interval: c_uint,
) -> c_int {
    // SAFETY: the caller gives us a handle and a path.
    unsafe {
        let key = Key::from_bits((*handle).handle.key);
        let loop_ = (*handle).handle.loop_;
        if engine::with(loop_, |engine| engine.is_active(key)) {
            return 0;
        }
        if path.is_null() || engine::with(loop_, |engine| engine.is_closing(key)) {
            return Errno::EINVAL.code();
        }
        let interval_ms = u64::from(interval).max(1);
        let watch = match Watch::new(handle, poll_cb, CStr::from_ptr(path), interval_ms) {
            Ok(watch) => watch,
            Err(error) => return error.code(),
        };
        if let Err(error) = Watch::ask(watch) {
            Watch::abandon(watch);
            return error.code();
        }
        (*handle).watch = watch;
        engine::code(engine::with(loop_, |engine| {
            engine.custom_set_active(key, true)
        }))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_poll_stop(handle: *mut uv_fs_poll_t) -> c_int {
    // SAFETY: the caller gives us a handle.
    unsafe {
        let _ = engine::with_handle(handle.cast(), |engine, key| {
            engine.custom_set_active(key, false)
        });
        closed(handle);
    }
    0
}

/// The handle's own part of stopping and closing.
///
/// # Safety
///
/// The handle is initialised and, to the engine, not active any more.
pub(crate) unsafe fn closed(handle: *mut uv_fs_poll_t) {
    // SAFETY: the caller vouches for it.
    unsafe {
        let watch = std::mem::replace(&mut (*handle).watch, null_mut());
        if !watch.is_null() {
            Watch::abandon(watch);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_poll_getpath(
    handle: *mut uv_fs_poll_t,
    buffer: *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller gives us a handle, and a buffer of that size.
    unsafe {
        let watch = (*handle).watch;
        if watch.is_null() {
            *size = 0;
            return Errno::EINVAL.code();
        }
        let len = (*watch).path_len;
        if len >= *size {
            *size = len + 1;
            return Errno::ENOBUFS.code();
        }
        buffer.copy_from_nonoverlapping(Watch::path(watch), len + 1);
        *size = len;
    }
    0
}
