//! `uv_fs_poll_t`: watches a file by calling `stat` at an interval.
//!
//! To the engine this is a custom handle, which is walked, referenced and closed like any other.
//! Each start makes a [`Watch`]: a hidden timer and a request that alternate. The timer runs for
//! the rest of the interval; then the request has a worker call `stat`; then the result is compared
//! with the last one, and the timer starts again.
//!
//! A watch belongs to its handle until the handle stops. A watch whose request is pending then, or
//! whose callback is running, becomes an *orphan* and frees itself afterwards; until then it holds
//! the handle, so that the handle's close callback comes after the last request is done.
//!
//! The callback is not called for the first result unless that is an error. It is then called for
//! every change between two results, every error that differs from the last result, and every
//! success after an error. The metadata last seen is kept through errors.

use crate::abi::{UV_FS_POLL, uv_handle_t, uv_loop_t, uv_timer_t};
use crate::fs::abi::{uv_fs_t, uv_stat_t};
use crate::{alloc, engine, fs, work};
use blacklight_engine::{Errno, Key};
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::mem::{offset_of, zeroed};
use std::ptr::null_mut;

/// Called for a change: the status, the previous metadata, and the present one.
pub type uv_fs_poll_cb =
    Option<unsafe extern "C" fn(*mut uv_fs_poll_t, c_int, *const uv_stat_t, *const uv_stat_t)>;

/// A handle that polls a file's metadata.
#[repr(C)]
pub struct uv_fs_poll_t {
    handle: uv_handle_t,
    /// The watch of a started handle, else null.
    pub(crate) watch: *mut Watch,
}

/// The last result of `stat`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    None,
    /// The metadata is in `Watch::known`.
    File,
    Error(c_int),
}

/// The state of a started handle. The path follows in the same memory.
#[repr(C)]
pub(crate) struct Watch {
    handle: *mut uv_fs_poll_t,
    /// A C timer, since that is the type that the loop dispatches; the engine's timer is hidden.
    timer: uv_timer_t,
    req: uv_fs_t,
    cb: uv_fs_poll_cb,
    interval_ms: u64,
    /// When the last round began.
    began_ms: u64,
    last: Outcome,
    known: uv_stat_t,
    /// Whether the request is pending or the callback is running.
    busy: bool,
    /// Whether the handle has given up the watch.
    orphan: bool,
    path_len: usize,
    path: [c_char; 0],
}

/// The metadata of a file that does not exist.
static NOTHING: uv_stat_t = uv_stat_t::ZERO;

/// The watch around one of its parts.
///
/// # Safety
///
/// `part` is the part of a watch at that offset.
unsafe fn watch_of<T>(part: *mut T, offset: usize) -> *mut Watch {
    // SAFETY: the caller upholds the contract.
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
        // SAFETY: there is room for the watch and the path behind it. All zeros are valid for the C
        // structs; the caller guarantees the handle.
        unsafe {
            let loop_ = (*handle).handle.loop_;
            watch.write(Watch {
                handle,
                timer: zeroed(),
                req: zeroed(),
                cb,
                interval_ms,
                began_ms: 0,
                last: Outcome::None,
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
    /// `watch` is valid.
    unsafe fn path(watch: *mut Watch) -> *const c_char {
        // SAFETY: the path is behind the watch.
        unsafe { (&raw const (*watch).path).cast() }
    }

    /// Submits the request, which holds the handle until it is done.
    ///
    /// # Safety
    ///
    /// The watch is neither busy nor an orphan.
    unsafe fn submit(watch: *mut Watch) -> Result<(), Errno> {
        // SAFETY: the caller upholds the contract; a busy watch, and with it the path and the
        // request, lives until the request is done.
        unsafe {
            let handle = (&raw mut (*(*watch).handle).handle).cast_const();
            (*watch).began_ms = engine::with_handle(handle, |engine, key| {
                engine.custom_hold(key)?;
                Ok::<_, Errno>(engine.now())
            })?;
            let req = &raw mut (*watch).req;
            let sent = fs::stat_for(req, (*handle).loop_, Watch::path(watch), stat_done);
            match sent {
                0 => (*watch).busy = true,
                _ => Watch::release_handle(watch),
            }
            match sent {
                0 => Ok(()),
                error => Err(Errno::from_code(error)),
            }
        }
    }

    /// Releases the handle that the request has held.
    ///
    /// # Safety
    ///
    /// The watch holds its handle.
    unsafe fn release_handle(watch: *mut Watch) {
        // SAFETY: the caller guarantees that the watch holds its handle, so the handle still
        // exists.
        unsafe {
            let handle = (&raw mut (*(*watch).handle).handle).cast_const();
            let released = engine::with_handle(handle, |engine, key| engine.custom_release(key));
            debug_assert!(released.is_ok(), "a handle was forgotten while it was held");
        }
    }

    /// Starts the timer for the rest of the interval.
    ///
    /// # Safety
    ///
    /// The watch is not an orphan.
    unsafe fn start_timer(watch: *mut Watch) {
        // SAFETY: the caller upholds the contract.
        unsafe {
            let (began, interval) = ((*watch).began_ms, (*watch).interval_ms);
            let timer = &raw const (*watch).timer.handle;
            let started = engine::with_handle(timer, |engine, key| {
                let passed = engine.now().saturating_sub(began) % interval;
                engine.timer_start(key, interval - passed, 0)
            });
            if started.is_err() && !(*watch).busy {
                // The timer has no memory; polling too early is better than never again.
                let _ = Watch::submit(watch);
            }
        }
    }

    /// Separates the watch from its handle: cancels what is pending, and frees the watch when it is
    /// idle.
    ///
    /// # Safety
    ///
    /// The handle does not point to the watch any more.
    unsafe fn abandon(watch: *mut Watch) {
        // SAFETY: the caller upholds the contract.
        unsafe {
            engine::with_handle(&raw const (*watch).timer.handle, |engine, key| {
                engine.hidden_timer_remove(key);
            });
            if (*watch).busy {
                (*watch).orphan = true;
                // Has no effect once a worker has begun the request.
                work::uv_cancel((&raw mut (*watch).req).cast());
            } else {
                alloc::free(watch.cast());
            }
        }
    }

    /// Compares a result with the last one. Returns the status for the callback, if it is to be
    /// called.
    ///
    /// # Safety
    ///
    /// The watch's request is done.
    unsafe fn compare(watch: *mut Watch) -> Option<c_int> {
        // SAFETY: the caller upholds the contract.
        unsafe {
            let outcome = match (*watch).req.result {
                error if error < 0 => Outcome::Error(error as c_int),
                _ => Outcome::File,
            };
            match (std::mem::replace(&mut (*watch).last, outcome), outcome) {
                (before, Outcome::Error(error)) => (before != outcome).then_some(error),
                (Outcome::None, _) => None,
                (Outcome::Error(_), _) => Some(0),
                (Outcome::File, _) => differs(&(*watch).known, &(*watch).req.statbuf).then_some(0),
            }
        }
    }
}

/// Whether the file has changed. The access time does not count, since reading is no change; nor do
/// the blocks, which the kernel may rearrange, nor fields that cannot change without the change
/// time.
fn differs(before: &uv_stat_t, now: &uv_stat_t) -> bool {
    let fields = |stat: &uv_stat_t| {
        let times = [stat.st_mtim, stat.st_ctim, stat.st_birthtim];
        let file = [stat.st_dev, stat.st_ino, stat.st_mode, stat.st_size];
        (times, file, [stat.st_uid, stat.st_gid])
    };
    fields(before) != fields(now)
}

/// The interval has elapsed.
unsafe extern "C" fn timer_due(timer: *mut uv_timer_t) {
    // SAFETY: only watches have timers with this callback, and a removed timer does not fire.
    unsafe {
        let watch = watch_of(timer, offset_of!(Watch, timer));
        if Watch::submit(watch).is_err() {
            // There is no memory for the request; try again after the interval.
            Watch::start_timer(watch);
        }
    }
}

/// The request is done or was cancelled.
unsafe extern "C" fn stat_done(req: *mut uv_fs_t) {
    // SAFETY: only watches have requests with this callback, and a busy watch lives until it
    // returns. The watch holds the handle, which therefore still exists.
    unsafe {
        let watch = watch_of(req, offset_of!(Watch, req));
        if !(*watch).orphan {
            if let Some(status) = Watch::compare(watch) {
                call_back(watch, status);
            }
            if (*watch).last == Outcome::File {
                (*watch).known = (*watch).req.statbuf;
            }
        }
        Watch::release_handle(watch);
        (*watch).busy = false;
        match (*watch).orphan {
            true => alloc::free(watch.cast()),
            false => Watch::start_timer(watch),
        }
    }
}

/// Calls the program's callback, which may stop or close the handle.
///
/// # Safety
///
/// The watch is busy and not an orphan.
unsafe fn call_back(watch: *mut Watch, status: c_int) {
    // SAFETY: the caller upholds the contract; a busy watch outlives the call.
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
    // SAFETY: the caller passes a loop and memory for a handle.
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

/// Starting a handle that is started does nothing, even with another path.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_poll_start(
    handle: *mut uv_fs_poll_t,
    poll_cb: uv_fs_poll_cb,
    path: *const c_char,
    interval: c_uint,
) -> c_int {
    // SAFETY: the caller passes a handle and a path.
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
        if let Err(error) = Watch::submit(watch) {
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
    // SAFETY: the caller passes a handle.
    unsafe {
        let _ = engine::with_known(handle.cast(), Ok(()), |engine, key| {
            engine.custom_set_active(key, false)
        });
        closed(handle);
    }
    0
}

/// Gives up the handle's watch, for stopping and closing.
///
/// # Safety
///
/// The handle is initialised and, to the engine, not active.
pub(crate) unsafe fn closed(handle: *mut uv_fs_poll_t) {
    // SAFETY: the caller upholds the contract.
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
    // SAFETY: the caller passes a handle, and a buffer of that size.
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
