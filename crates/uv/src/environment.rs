//! The environment. libuv requires C programs to keep other threads from changing it during these
//! calls.

use crate::engine::code;
use crate::packed::Packed;
use crate::{alloc, text};
use blacklight_engine::Errno;
use blacklight_sys::env;
use std::borrow::Cow;
use std::ffi::{c_char, c_int};

/// A variable.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_env_item_t {
    name: *mut c_char,
    value: *mut c_char,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_getenv(
    name: *const c_char,
    buffer: *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller upholds the contracts name, its buffer and the environment.
    unsafe {
        text::fill(buffer, size, || {
            env::get(text::read(name)?)?.ok_or(Errno::ENOENT)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_setenv(name: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: the caller passes C strings and guarantees the environment.
    let set = || unsafe { env::set(text::read(name)?, text::read(value)?) };
    code(set())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_unsetenv(name: *const c_char) -> c_int {
    // SAFETY: the caller passes a C string and guarantees the environment.
    let unset = || unsafe { env::unset(text::read(name)?) };
    code(unset())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_environ(items: *mut *mut uv_env_item_t, count: *mut c_int) -> c_int {
    if items.is_null() || count.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller guarantees the environment.
    let variables = match unsafe { env::all() } {
        Ok(variables) => variables,
        Err(error) => return error.code(),
    };
    // A variable's `=` leaves a byte for the NUL of its name.
    let bytes = variables.iter().map(|variable| variable.text.len() + 1);
    let packed = Packed::new(variables.len(), bytes.sum());
    let filled = packed.map(|mut packed| {
        for variable in &variables {
            let (name, value) = variable.text.split_at(variable.name_len);
            let item = uv_env_item_t {
                name: packed.text(name),
                value: packed.text(&value[1..]),
            };
            packed.push(item);
        }
        // SAFETY: the caller passes room for both.
        unsafe {
            *items = packed.finish();
            *count = variables.len() as c_int;
        }
    });
    code(filled)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_free_environ(items: *mut uv_env_item_t, _count: c_int) {
    // SAFETY: the caller passes the items that `uv_os_environ` returned.
    unsafe { alloc::free(items.cast()) }
}

/// The value of the first of these variables that is set.
///
/// # Safety
///
/// No other thread changes the environment meanwhile.
unsafe fn first(names: &[&std::ffi::CStr]) -> Result<Option<Vec<u8>>, Errno> {
    // SAFETY: the caller upholds the contract.
    let mut values = names.iter().map(|name| unsafe { env::get(name) });
    values.find_map(Result::transpose).transpose()
}

/// A variable that is set, even to nothing, takes precedence over the user database.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_homedir(buffer: *mut c_char, size: *mut usize) -> c_int {
    // SAFETY: the caller upholds the contracts buffer and the environment.
    unsafe {
        text::fill(buffer, size, || match first(&[c"HOME"])? {
            Some(home) => Ok(home),
            None => blacklight_sys::user::User::effective().map(|user| user.home),
        })
    }
}

/// The name does not end in a slash, but the size required with `UV_ENOBUFS` counts the slash.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_tmpdir(buffer: *mut c_char, size: *mut usize) -> c_int {
    // SAFETY: the caller upholds the contracts buffer and the environment.
    unsafe {
        let status = text::fill(buffer, size, || {
            let directory = first(&[c"TMPDIR", c"TMP", c"TEMP", c"TEMPDIR"])?;
            Ok(directory.map_or(Cow::Borrowed(&b"/tmp"[..]), Cow::Owned))
        });
        if status == 0 && *size > 1 && *buffer.add(*size - 1) == b'/' as c_char {
            *size -= 1;
            *buffer.add(*size) = 0;
        }
        status
    }
}
