//! Pipe handles: Unix sockets and pipes. A bound handle owns a copy of its path.

use crate::abi::{UV_CONNECT, UV_NAMED_PIPE, uv_connect_cb, uv_connect_t, uv_loop_t, uv_pipe_t};
use crate::{alloc, engine, stream};
use blacklight_engine::{Address, Descriptor, Errno};
use blacklight_sys::fd;
use std::ffi::{CStr, c_char, c_int, c_uint};

/// Refuse names that are too long, which the older functions truncate.
const UV_PIPE_NO_TRUNCATE: c_uint = 1;

/// The longest name that a Unix socket can have. A path that long has no NUL at its end.
const MAX_NAME: usize = 108;

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_pipe_init(
    loop_: *mut uv_loop_t,
    pipe: *mut uv_pipe_t,
    ipc: c_int,
) -> c_int {
    // SAFETY: the caller passes a loop and memory for a handle.
    unsafe {
        let token = engine::token(pipe);
        match engine::with(loop_, |engine| engine.pipe_init(token, ipc != 0)) {
            Ok(key) => engine::init(pipe.cast(), loop_, UV_NAMED_PIPE, key),
            Err(error) => return error.code(),
        }
        stream::init(pipe.cast());
        (*pipe).ipc = ipc;
        (*pipe).pipe_fname = std::ptr::null_mut();
    }
    0
}

/// Frees the name that `uv_pipe_bind` copied.
///
/// # Safety
///
/// `pipe` is closing.
pub(crate) unsafe fn closed(pipe: *mut uv_pipe_t) {
    // SAFETY: the caller upholds the contract; the name came from `alloc`.
    unsafe {
        alloc::free((*pipe).pipe_fname.cast());
        (*pipe).pipe_fname = std::ptr::null_mut();
    }
}

/// Opens any kind of descriptor, with the access mode that it was opened with.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_pipe_open(pipe: *mut uv_pipe_t, file: c_int) -> c_int {
    let flags = match fd::status_flags(file) {
        Ok(flags) => flags & libc::O_ACCMODE,
        Err(error) => return error.code(),
    };
    let (readable, writable) = (flags != libc::O_WRONLY, flags != libc::O_RDONLY);
    // SAFETY: the caller passes a handle and, unless this fails, its descriptor.
    unsafe { stream::open(pipe.cast(), Descriptor::adopt(file), readable, writable) }
}

/// The name in the caller's buffer: `len` bytes, without a NUL if it is a path. For an empty name
/// the kernel chooses an abstract one. `flags` says whether names that are too long are truncated
/// or refused.
///
/// # Safety
///
/// `name` points to `len` bytes.
unsafe fn name<'a>(name: *const c_char, len: usize, flags: c_uint) -> Result<&'a [u8], Errno> {
    if flags & !UV_PIPE_NO_TRUNCATE != 0 || name.is_null() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the caller upholds the contract.
    let name = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), len) };
    let is_path = name.first().is_some_and(|&first| first != 0);
    if is_path && name.contains(&0) {
        return Err(Errno::EINVAL);
    }
    match name.len() > MAX_NAME {
        true if flags & UV_PIPE_NO_TRUNCATE != 0 => Err(Errno::EINVAL),
        true => Ok(&name[..MAX_NAME]),
        false => Ok(name),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_pipe_bind(pipe: *mut uv_pipe_t, path: *const c_char) -> c_int {
    if path.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes a handle and a C string.
    unsafe { uv_pipe_bind2(pipe, path, CStr::from_ptr(path).count_bytes(), 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_pipe_bind2(
    pipe: *mut uv_pipe_t,
    path: *const c_char,
    namelen: usize,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller passes a handle and a name.
    unsafe {
        let name = match name(path, namelen, flags) {
            Ok(name) => name,
            Err(error) => return error.code(),
        };
        let kept = match name.first() {
            None | Some(0) => std::ptr::null_mut(),
            Some(_) => match alloc::c_bytes(name) {
                kept if kept.is_null() => return Errno::ENOMEM.code(),
                kept => kept,
            },
        };
        let bound = engine::with_handle(pipe.cast(), |engine, key| engine.pipe_bind(key, name));
        match bound {
            Ok(()) => (*pipe).pipe_fname = kept,
            Err(_) => alloc::free(kept.cast()),
        }
        stream::mirror(pipe.cast());
        engine::code(bound)
    }
}

/// Returns no error: failures go to the callback.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_pipe_connect(
    req: *mut uv_connect_t,
    pipe: *mut uv_pipe_t,
    path: *const c_char,
    cb: uv_connect_cb,
) {
    // SAFETY: the caller passes a request, a handle and a C string.
    unsafe {
        let path = CStr::from_ptr(path).to_bytes();
        connect(req, pipe, &path[..path.len().min(MAX_NAME)], cb);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_pipe_connect2(
    req: *mut uv_connect_t,
    pipe: *mut uv_pipe_t,
    path: *const c_char,
    namelen: usize,
    flags: c_uint,
    cb: uv_connect_cb,
) -> c_int {
    // SAFETY: the caller passes a request, a handle and a name.
    unsafe {
        match name(path, namelen, flags) {
            Ok([]) => Errno::EINVAL.code(),
            Ok(name) => connect(req, pipe, name, cb),
            Err(error) => error.code(),
        }
    }
}

/// # Safety
///
/// The caller passes a request and a handle.
unsafe fn connect(
    req: *mut uv_connect_t,
    pipe: *mut uv_pipe_t,
    name: &[u8],
    cb: uv_connect_cb,
) -> c_int {
    // SAFETY: the caller guarantees both.
    unsafe {
        let token = engine::token(req);
        let begun = engine::with_handle(pipe.cast(), |engine, key| {
            engine.pipe_connect(key, token, name)
        });
        if begun.is_ok() {
            (*req).req.type_ = UV_CONNECT;
            (*req).cb = cb;
            (*req).handle = pipe.cast();
        }
        stream::mirror(pipe.cast());
        engine::code(begun)
    }
}

/// Copies a socket's name. A path gets a trailing NUL that does not count. If the buffer is too
/// small, `size` receives the required length.
///
/// # Safety
///
/// `buffer` has room for `*size` bytes.
unsafe fn copy_name(address: &Address, buffer: *mut c_char, size: *mut usize) -> Result<(), Errno> {
    let name = address.unix_name();
    let is_path = name.first().is_some_and(|&first| first != 0);
    let needed = name.len() + usize::from(is_path || name.is_empty());
    // SAFETY: the caller guarantees the room.
    unsafe {
        if needed > *size {
            *size = needed;
            return Err(Errno::ENOBUFS);
        }
        buffer
            .cast::<u8>()
            .copy_from_nonoverlapping(name.as_ptr(), name.len());
        if needed > name.len() {
            buffer.add(name.len()).write(0);
        }
        *size = name.len();
    }
    Ok(())
}

/// A socket without a name yields an empty one.
///
/// # Safety
///
/// The caller passes a handle and a buffer.
unsafe fn socket_name(
    pipe: *const uv_pipe_t,
    buffer: *mut c_char,
    size: *mut usize,
    peer: bool,
) -> c_int {
    // SAFETY: the caller guarantees both.
    unsafe {
        if buffer.is_null() || size.is_null() || *size == 0 {
            return Errno::EINVAL.code();
        }
        let address =
            engine::with_handle(pipe.cast(), |engine, key| engine.stream_address(key, peer));
        engine::code(match address {
            Ok(address) => copy_name(&address, buffer, size),
            Err(error) => {
                *size = 0;
                Err(error)
            }
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_pipe_getsockname(
    pipe: *const uv_pipe_t,
    buffer: *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { socket_name(pipe, buffer, size, false) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_pipe_getpeername(
    pipe: *const uv_pipe_t,
    buffer: *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { socket_name(pipe, buffer, size, true) }
}

/// Has a meaning only on Windows.
#[unsafe(no_mangle)]
extern "C" fn uv_pipe_pending_instances(_pipe: *mut uv_pipe_t, _count: c_int) {}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_pipe_pending_count(pipe: *mut uv_pipe_t) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe {
        if (*pipe).ipc == 0 {
            return 0;
        }
        let pending =
            engine::with_handle(pipe.cast(), |engine, key| engine.pending_descriptors(key));
        pending.map_or(0, |(count, _)| count as c_int)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_pipe_pending_type(pipe: *mut uv_pipe_t) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe {
        if (*pipe).ipc == 0 {
            return 0;
        }
        let pending =
            engine::with_handle(pipe.cast(), |engine, key| engine.pending_descriptors(key));
        match pending {
            Ok((_, Some(fd))) => crate::guess::uv_guess_handle(fd),
            _ => 0,
        }
    }
}

/// Gives all users read or write access to a bound pipe, and revokes all other access.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_pipe_chmod(pipe: *mut uv_pipe_t, mode: c_int) -> c_int {
    const UV_READABLE: c_int = 1;
    const UV_WRITABLE: c_int = 2;
    // SAFETY: the caller passes a handle.
    if pipe.is_null() || unsafe { (*pipe).stream.io_watcher.fd } == -1 {
        return Errno::EBADF.code();
    }
    let wanted = match mode {
        UV_READABLE => 0o444,
        UV_WRITABLE => 0o222,
        mode if mode == UV_READABLE | UV_WRITABLE => 0o666,
        _ => return Errno::EINVAL.code(),
    };
    // SAFETY: the caller passes a handle.
    unsafe {
        let address =
            engine::with_handle(pipe.cast(), |engine, key| engine.stream_address(key, false));
        engine::code(address.and_then(|address| fd::set_mode(address.unix_name(), wanted)))
    }
}
