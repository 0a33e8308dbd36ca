//! Loops: init, close, configuration and queries.

use crate::abi::{uv_handle_t, uv_loop_t, uv_walk_cb};
use crate::engine::{self, LoopState};
use crate::{alloc, callbacks, handle};
use blacklight_engine::{Engine, Errno, Mechanism, Spinning};
use blacklight_sys::clock;
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

fn new_state() -> Result<*mut LoopState, Errno> {
    let spinning = Spinning::from_environment()?;
    let mut engine = Engine::new(Mechanism::from_environment()?)?;
    engine.set_spinning(spinning);
    engine.record(callbacks::FRONT, "");
    alloc::boxed(LoopState {
        mailbox: engine.mailbox().clone(),
        idle_time: engine.idle_time().clone(),
        runs: 0,
        #[cfg(debug_assertions)]
        is_lent: std::cell::Cell::new(false),
        engine,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_loop_init(loop_: *mut uv_loop_t) -> c_int {
    let state = match new_state() {
        Ok(state) => state,
        Err(error) => return error.code(),
    };
    // SAFETY: the caller passes memory for a loop. `data` is the program's own and may
    // have been set before.
    unsafe {
        let data = (*loop_).data;
        loop_.write_bytes(0, 1);
        (*loop_).data = data;
        (*loop_).internal_fields = state;
        mirror_backend_fd(loop_);
    }
    0
}

/// Returns `UV_EBUSY` for a loop that has handles or requests, for one that is closed already (some
/// programs close a loop until they get that result), and inside a callback of `uv_run`, which
/// needs the loop when the callback returns.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_loop_close(loop_: *mut uv_loop_t) -> c_int {
    // SAFETY: the caller passes a loop, whose memory stays the caller's after it is closed. A loop
    // that is closed, or was never initialised, has no state.
    unsafe {
        let state = (*loop_).internal_fields;
        if state.is_null() || (*state).runs != 0 {
            return Errno::EBUSY.code();
        }
        if !engine::with(loop_, |engine| engine.is_unused()) {
            return Errno::EBUSY.code();
        }
        (*loop_).internal_fields = std::ptr::null_mut();
        (*loop_).backend_fd = -1;
        alloc::unboxed(state);
    }
    // `uv_default_loop` may initialise the default loop again.
    let _ = DEFAULT.compare_exchange(loop_, std::ptr::null_mut(), Relaxed, Relaxed);
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_loop_new() -> *mut uv_loop_t {
    let loop_ = alloc::malloc(size_of::<uv_loop_t>()).cast::<uv_loop_t>();
    if loop_.is_null() {
        return loop_;
    }
    // SAFETY: `alloc` returned memory for a loop; `uv_loop_init` leaves `data` as it is.
    unsafe {
        (*loop_).data = std::ptr::null_mut();
        if uv_loop_init(loop_) != 0 {
            alloc::free(loop_.cast());
            return std::ptr::null_mut();
        }
    }
    loop_
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_loop_delete(loop_: *mut uv_loop_t) {
    let is_default = loop_ == DEFAULT.load(Relaxed);
    // SAFETY: the caller passes a loop from `uv_loop_new` or `uv_default_loop`. A busy loop leaks,
    // as its handles still point to it.
    unsafe {
        if uv_loop_close(loop_) == 0 && !is_default {
            alloc::free(loop_.cast());
        }
    }
}

struct Storage(UnsafeCell<MaybeUninit<uv_loop_t>>);

// SAFETY: the storage is only handed out as a raw pointer, and libuv documents `uv_default_loop` as
// not thread-safe.
unsafe impl Sync for Storage {}

static STORAGE: Storage = Storage(UnsafeCell::new(MaybeUninit::zeroed()));
static DEFAULT: AtomicPtr<uv_loop_t> = AtomicPtr::new(std::ptr::null_mut());

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_default_loop() -> *mut uv_loop_t {
    let open = DEFAULT.load(Relaxed);
    if !open.is_null() {
        return open;
    }
    let loop_ = STORAGE.0.get().cast();
    // SAFETY: the storage is large enough, and is zeroed or has held a loop before.
    if unsafe { uv_loop_init(loop_) } != 0 {
        return std::ptr::null_mut();
    }
    DEFAULT.store(loop_, Relaxed);
    loop_
}

#[unsafe(no_mangle)]
extern "C" fn uv_loop_size() -> usize {
    size_of::<uv_loop_t>()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_loop_alive(loop_: *const uv_loop_t) -> c_int {
    // SAFETY: the caller passes a loop, whose own fields suffice.
    unsafe {
        c_int::from(
            (*loop_).active_handles != 0
                || (*loop_).active_reqs.count != 0
                || !(*loop_).closing_handles.is_null(),
        )
    }
}

/// The options of `uv_loop_configure`.
const UV_LOOP_BLOCK_SIGNAL: c_int = 0;
const UV_METRICS_IDLE_TIME: c_int = 1;
const UV_LOOP_USE_IO_URING_SQPOLL: c_int = 2;

/// Variadic in C, with at most one more argument, an `int`: on the supported platforms that arrives
/// in the same register.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_loop_configure(
    loop_: *mut uv_loop_t,
    option: c_int,
    argument: c_int,
) -> c_int {
    // SAFETY: the caller passes its own loop.
    unsafe {
        engine::with(loop_, |engine| {
            match option {
                UV_LOOP_BLOCK_SIGNAL if argument == libc::SIGPROF => engine.block_sigprof(),
                UV_LOOP_BLOCK_SIGNAL => return Errno::EINVAL.code(),
                UV_METRICS_IDLE_TIME => engine.measure_idle_time(),
                // A permission, not a requirement.
                UV_LOOP_USE_IO_URING_SQPOLL => engine.ring_permit(),
                _ => return Errno::ENOSYS.code(),
            }
            0
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_loop_fork(loop_: *mut uv_loop_t) -> c_int {
    // SAFETY: the caller passes its own loop.
    unsafe {
        let result = engine::with(loop_, |engine| engine.fork());
        mirror_backend_fd(loop_);
        engine::code(result)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_stop(loop_: *mut uv_loop_t) {
    // SAFETY: the caller passes its own loop.
    unsafe {
        if engine::is_open(loop_) {
            engine::with(loop_, |engine| engine.stop());
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_now(loop_: *const uv_loop_t) -> u64 {
    // SAFETY: the caller passes its own loop.
    unsafe {
        match engine::is_open(loop_) {
            true => engine::look(loop_, |engine| engine.now()),
            false => clock::monotonic_ns() / 1_000_000,
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_update_time(loop_: *mut uv_loop_t) {
    // SAFETY: the caller passes its own loop.
    unsafe {
        if engine::is_open(loop_) {
            engine::with(loop_, |engine| engine.update_time());
        }
    }
}

/// Copies the poller's descriptor into the loop's public field.
///
/// # Safety
///
/// The caller owns `loop_`, which is initialised.
unsafe fn mirror_backend_fd(loop_: *mut uv_loop_t) {
    // SAFETY: the caller upholds the contract.
    unsafe { (*loop_).backend_fd = engine::look(loop_, |engine| engine.backend_fd().unwrap_or(-1)) }
}

/// The caller may wait for this descriptor by any means.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_backend_fd(loop_: *const uv_loop_t) -> c_int {
    // SAFETY: the caller passes its own loop.
    unsafe {
        if engine::is_open(loop_) && !engine::look(loop_, |engine| engine.is_embedded()) {
            engine::with(loop_.cast_mut(), |engine| engine.embed());
        }
        (*loop_).backend_fd
    }
}

/// Returns zero until the loop's first iteration, as libuv does, which registers its own
/// descriptors then.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_backend_timeout(loop_: *const uv_loop_t) -> c_int {
    // SAFETY: the caller passes its own loop.
    let timeout = unsafe {
        if !engine::is_open(loop_) {
            return 0;
        }
        engine::with(loop_.cast_mut(), |engine| {
            match engine.metrics().loop_count {
                0 => Some(0),
                _ => engine.backend_timeout(),
            }
        })
    };
    match timeout {
        None => -1,
        // Rounded up, so that the timer is due after a sleep of that length.
        Some(ns) => ns.div_ceil(1_000_000).min(c_int::MAX as u64) as c_int,
    }
}

/// Calls `visit` with every handle of the loop.
///
/// # Safety
///
/// The caller owns the loop.
pub(crate) unsafe fn for_each_handle(
    loop_: *mut uv_loop_t,
    mut visit: impl FnMut(*mut uv_handle_t),
) {
    // SAFETY: the caller guarantees the loop, and `visit` runs with nothing borrowed.
    unsafe {
        if !engine::is_open(loop_) {
            return;
        }
        let mut walk = engine::with(loop_, |engine| engine.walk());
        while let Some(token) = engine::with(loop_, |engine| engine.walk_next(&mut walk)) {
            visit(engine::handle(token));
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_walk(loop_: *mut uv_loop_t, walk_cb: uv_walk_cb, arg: *mut c_void) {
    let Some(walk_cb) = walk_cb else { return };
    // SAFETY: the caller passes its own loop and a function to call.
    unsafe { for_each_handle(loop_, |handle| walk_cb(handle, arg)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_print_all_handles(loop_: *mut uv_loop_t, stream: *mut libc::FILE) {
    // SAFETY: the caller passes its own loop and an open stream.
    unsafe { handle::print(loop_, stream, false) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_print_active_handles(loop_: *mut uv_loop_t, stream: *mut libc::FILE) {
    // SAFETY: the caller passes its own loop and an open stream.
    unsafe { handle::print(loop_, stream, true) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_loop_get_data(loop_: *const uv_loop_t) -> *mut c_void {
    // SAFETY: the caller passes a loop.
    unsafe { (*loop_).data }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_loop_set_data(loop_: *mut uv_loop_t, data: *mut c_void) {
    // SAFETY: the caller passes a loop.
    unsafe { (*loop_).data = data }
}

/// The thread pool and the copy of the program's arguments outlive all loops. The pool's threads
/// finish the queued work and end.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_library_shutdown() {
    blacklight_engine::shut_down_pool();
    // SAFETY: the caller does not use the library, or memory from it, any more.
    unsafe { crate::process_title::release() };
}
