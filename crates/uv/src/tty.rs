//! Terminal handles: modes and window size, beyond what all streams have.

use crate::abi::{
    UV_FILE, UV_HANDLE_BLOCKING_WRITES, UV_TTY, UV_UNKNOWN_HANDLE, uv_loop_t, uv_tty_t,
};
use crate::{engine, guess, stream};
use blacklight_engine::{Descriptor, Errno, TtyMode, reset_terminal};
use std::ffi::c_int;

/// The modes in libuv's order. The last is for Windows; elsewhere it means raw.
const MODES: [TtyMode; 4] = [TtyMode::Normal, TtyMode::Raw, TtyMode::Binary, TtyMode::Raw];

/// The directions come from the descriptor; the caller's argument is ignored.
///
/// If possible the terminal is opened a second time, and the handle owns the new descriptor; the
/// program's descriptor stays its own, unchanged. Otherwise the handle owns the program's
/// descriptor, as other streams do.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tty_init(
    loop_: *mut uv_loop_t,
    tty: *mut uv_tty_t,
    fd: c_int,
    _unused: c_int,
) -> c_int {
    if matches!(guess::uv_guess_handle(fd), UV_FILE | UV_UNKNOWN_HANDLE) {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes a loop, memory for a handle and, on success, ownership of its
    // descriptor.
    unsafe {
        let token = engine::token(tty);
        let fd = Descriptor::adopt(fd);
        let made = engine::with(loop_, |engine| {
            let (key, given) = engine.tty_init(token, fd)?;
            Ok((key, given, engine.tty_is_blocking(key)))
        });
        let (key, given, blocking) = match made {
            Ok(made) => made,
            Err((error, fd)) => {
                fd.release();
                return Errno::code(error);
            }
        };
        given.map(Descriptor::release);
        engine::init(tty.cast(), loop_, UV_TTY, key);
        stream::init(tty.cast());
        stream::mirror(tty.cast());
        if blocking {
            (*tty).stream.handle.flags |= UV_HANDLE_BLOCKING_WRITES;
        }
        (*tty).mode = 0;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tty_set_mode(tty: *mut uv_tty_t, mode: c_int) -> c_int {
    let wanted = usize::try_from(mode).ok().and_then(|mode| MODES.get(mode));
    let Some(&wanted) = wanted else {
        return Errno::EINVAL.code();
    };
    // SAFETY: the caller passes a terminal handle.
    unsafe {
        let unknown = match (*tty).mode == wanted as c_int {
            true => Ok(()),
            false => Err(Errno::EBADF),
        };
        let set = engine::with_known(tty.cast(), unknown, |engine, key| {
            engine.tty_set_mode(key, wanted)
        });
        if set.is_ok() {
            (*tty).mode = wanted as c_int;
        }
        engine::code(set)
    }
}

/// Async-signal-safe.
#[unsafe(no_mangle)]
extern "C" fn uv_tty_reset_mode() -> c_int {
    engine::code(reset_terminal())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_tty_get_winsize(
    tty: *mut uv_tty_t,
    width: *mut c_int,
    height: *mut c_int,
) -> c_int {
    // SAFETY: the caller passes a terminal handle and room for two numbers.
    unsafe {
        let unknown = Err(Errno::EBADF);
        let size = engine::with_known(tty.cast(), unknown, |engine, key| engine.tty_size(key));
        engine::code(size.map(|(columns, rows)| {
            *width = c_int::from(columns);
            *height = c_int::from(rows);
        }))
    }
}

/// Has a meaning only on Windows.
#[unsafe(no_mangle)]
extern "C" fn uv_tty_set_vterm_state(_state: c_int) {}

/// Has a meaning only on Windows.
#[unsafe(no_mangle)]
extern "C" fn uv_tty_get_vterm_state(_state: *mut c_int) -> c_int {
    Errno::ENOTSUP.code()
}
