//! Streams: the functions that TCP, pipe and terminal handles share.
//!
//! The public fields (descriptor, directions, bytes queued) mirror the engine's state, and are updated
//! after every call that may change it.

use crate::abi::{
    UV_HANDLE_READABLE, UV_HANDLE_WRITABLE, UV_NAMED_PIPE, UV_SHUTDOWN, UV_TCP, UV_UDP, UV_WRITE,
    uv_alloc_cb, uv_buf_t, uv_connect_t, uv_connection_cb, uv_handle_t, uv_loop_t, uv_read_cb,
    uv_shutdown_cb, uv_shutdown_t, uv_stream_t, uv_write_cb, uv_write_t,
};
use crate::{alloc, engine};
use blacklight_engine::{Buffers, Descriptor, Errno, Key};
use blacklight_sys::buffer::MAX_BYTES;
use blacklight_sys::socket;
use std::ffi::{c_int, c_uint};
use std::mem::MaybeUninit;

/// The buffer size suggested to the alloc callback.
const SUGGESTED_SIZE: usize = 64 * 1024;

/// Fills in the fields that streams have beyond handles.
///
/// # Safety
///
/// `stream` is a handle that was just initialised.
pub(crate) unsafe fn init(stream: *mut uv_stream_t) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        (*stream).write_queue_size = 0;
        (*stream).queued_bytes = 0;
        (*stream).alloc_cb = None;
        (*stream).read_cb = None;
        (*stream).connection_cb = None;
        (*stream).io_watcher.fd = -1;
    }
}

/// Copies the descriptor and the directions into the public fields.
///
/// # Safety
///
/// `stream` is an initialised stream.
pub(crate) unsafe fn mirror(stream: *mut uv_stream_t) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        if !engine::is_known(stream.cast()) {
            return;
        }
        let (fd, readable, writable) = engine::with_handle(stream.cast(), |engine, key| {
            (
                engine.stream_fd(key),
                engine.is_readable(key),
                engine.is_writable(key),
            )
        });
        (*stream).io_watcher.fd = fd.unwrap_or(-1);
        let flags = &raw mut (*stream).handle.flags;
        *flags &= !(UV_HANDLE_READABLE | UV_HANDLE_WRITABLE);
        *flags |= if readable { UV_HANDLE_READABLE } else { 0 };
        *flags |= if writable { UV_HANDLE_WRITABLE } else { 0 };
    }
}

/// Opens a stream on the program's descriptor, which the program keeps on failure.
///
/// # Safety
///
/// `stream` is an initialised stream.
pub(crate) unsafe fn open(
    stream: *mut uv_stream_t,
    fd: Descriptor,
    readable: bool,
    writable: bool,
) -> c_int {
    // SAFETY: the caller upholds the contract.
    unsafe {
        // uvloop marks the writing end of a pipe as readable before it opens it: by reading, it
        // learns that the other end has closed.
        let readable = readable || (*stream).handle.flags & UV_HANDLE_READABLE != 0;
        let opened = engine::with_handle(stream.cast(), |engine, key| {
            engine.stream_open(key, fd, readable, writable)
        });
        if let Err((error, fd)) = opened {
            fd.release();
            return error.code();
        }
        mirror(stream);
    }
    0
}

/// Resets the public fields of a closing stream.
///
/// # Safety
///
/// `stream` is a stream that is closing.
pub(crate) unsafe fn closed(stream: *mut uv_stream_t) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        (*stream).io_watcher.fd = -1;
        (*stream).handle.flags &= !(UV_HANDLE_READABLE | UV_HANDLE_WRITABLE);
        if (*stream).handle.type_ == crate::abi::UV_NAMED_PIPE {
            crate::pipe::closed(stream.cast());
        }
    }
}

/// Changes the public count of queued bytes by as much as the engine's has changed.
///
/// # Safety
///
/// `stream` is an initialised stream.
#[inline]
unsafe fn mirror_queue(stream: *mut uv_stream_t, queued: usize) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        let change = queued.wrapping_sub((*stream).queued_bytes);
        (*stream).write_queue_size = (*stream).write_queue_size.wrapping_add(change);
        (*stream).queued_bytes = queued;
    }
}

/// Updates the public counts of streams that the engine has written to on its own.
///
/// # Safety
///
/// The caller owns the loop.
#[inline]
pub(crate) unsafe fn mirror_progress(loop_: *mut uv_loop_t) {
    // SAFETY: the caller guarantees the loop, and the engine yields open handles.
    unsafe {
        if !(*(*loop_).internal_fields).engine.has_progress() {
            return;
        }
        while let Some((token, queued)) = engine::with(loop_, |engine| engine.next_progress()) {
            mirror_queue(engine::handle(token), queued);
        }
    }
}

/// Handles a readable stream: asks the program for a buffer, reads, and calls the callback.
///
/// # Safety
///
/// `stream` is reading.
pub(crate) unsafe fn read(stream: *mut uv_stream_t) {
    let mut buf = uv_buf_t {
        base: std::ptr::null_mut(),
        len: 0,
    };
    // SAFETY: the stream is open, and the program keeps it valid until it is closed. The program
    // passed the callbacks to `uv_read_start`.
    unsafe {
        if let Some(alloc) = (*stream).alloc_cb {
            alloc(stream.cast(), SUGGESTED_SIZE, &mut buf);
        }
        let nread = if buf.base.is_null() || buf.len == 0 {
            Err(Errno::ENOBUFS)
        } else {
            // Neither the kernel nor a slice can take more at once.
            let len = buf.len.min(isize::MAX as usize);
            let room = std::slice::from_raw_parts_mut(buf.base.cast::<MaybeUninit<u8>>(), len);
            engine::with_handle(stream.cast(), |engine, key| engine.stream_read(key, room))
        };
        let nread = match nread {
            Ok(count) => count as isize,
            Err(Errno::EAGAIN) => 0,
            Err(error) => error.code() as isize,
        };
        if nread < 0 {
            mirror(stream);
        }
        if let Some(cb) = (*stream).read_cb {
            cb(stream, nread, &buf);
        }
    }
}

/// Reports the end of a stream, or a fatal error.
///
/// # Safety
///
/// `stream` is open.
pub(crate) unsafe fn read_end(stream: *mut uv_stream_t, error: Errno) {
    let none = uv_buf_t {
        base: std::ptr::null_mut(),
        len: 0,
    };
    // SAFETY: as in `read`.
    unsafe {
        mirror(stream);
        if let Some(cb) = (*stream).read_cb {
            cb(stream, error.code() as isize, &none);
        }
    }
}

/// Completes a write.
///
/// # Safety
///
/// `req` was passed to `uv_write`, and this is its completion.
pub(crate) unsafe fn write_done(req: *mut uv_write_t, status: c_int, written: usize) {
    // SAFETY: the program keeps the request and its stream valid up to the callback.
    unsafe {
        release_bufs(req);
        (*req).req.nwritten = written;
        (*req).error = status;
        if let Some(cb) = (*req).cb {
            cb(req, status);
        }
    }
}

/// Completes a connection attempt.
///
/// # Safety
///
/// `req` was passed to a connect function, and this is its completion.
#[inline(always)]
pub(crate) unsafe fn connect_done(req: *mut uv_connect_t, status: c_int) {
    // SAFETY: the program keeps the request valid up to the callback.
    unsafe {
        if let Some(cb) = (*req).cb {
            cb(req, status);
        }
    }
}

/// Completes a shutdown.
///
/// # Safety
///
/// `req` was passed to `uv_shutdown`, and this is its completion.
#[inline(always)]
pub(crate) unsafe fn shutdown_done(req: *mut uv_shutdown_t, status: c_int) {
    // SAFETY: the program keeps the request valid up to the callback.
    unsafe {
        if let Some(cb) = (*req).cb {
            cb(req, status);
        }
    }
}

/// Calls the callback of a server with a pending connection, or an error.
///
/// # Safety
///
/// `server` is listening.
#[inline(always)]
pub(crate) unsafe fn connection(server: *mut uv_stream_t, status: c_int) {
    // SAFETY: the caller guarantees the handle, which the callback may close.
    unsafe {
        if let Some(cb) = (*server).connection_cb {
            cb(server, status);
        }
    }
}

/// Frees the copy of the array of buffers, where it did not fit into the request.
///
/// # Safety
///
/// `req` has an array.
unsafe fn release_bufs(req: *mut uv_write_t) {
    // SAFETY: the caller upholds the contract; `copy_bufs` made the array.
    unsafe {
        if (*req).bufs != (&raw mut (*req).bufsml).cast() {
            alloc::free((*req).bufs.cast());
        }
        (*req).bufs = std::ptr::null_mut();
    }
}

/// Copies the array of buffers into the request, or into memory of its own if it is long.
///
/// # Safety
///
/// `bufs` points to `nbufs` buffers.
unsafe fn copy_bufs(
    req: *mut uv_write_t,
    bufs: *const uv_buf_t,
    nbufs: usize,
) -> Result<Buffers, Errno> {
    // SAFETY: the caller guarantees its array, and the copy is large enough. The program keeps the
    // request and the buffers' memory unchanged until the write is reported done.
    unsafe {
        let small = (&raw mut (*req).bufsml).cast::<uv_buf_t>();
        (*req).bufs = match nbufs <= (*req).bufsml.len() {
            true => small,
            false => {
                let size = nbufs
                    .checked_mul(size_of::<uv_buf_t>())
                    .ok_or(Errno::ENOMEM)?;
                alloc::malloc(size).cast()
            }
        };
        if (*req).bufs.is_null() {
            return Err(Errno::ENOMEM);
        }
        match nbufs {
            1 => (*req).bufs.write(bufs.read()),
            _ => (*req).bufs.copy_from_nonoverlapping(bufs, nbufs),
        }
        (*req).nbufs = nbufs as c_uint;
        let buffers = Buffers::new((*req).bufs.cast(), nbufs);
        if buffers.bytes() > MAX_BYTES {
            release_bufs(req);
            return Err(Errno::EINVAL);
        }
        Ok(buffers)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_listen(
    stream: *mut uv_stream_t,
    backlog: c_int,
    cb: uv_connection_cb,
) -> c_int {
    // SAFETY: the caller passes a stream.
    unsafe {
        let listening = engine::with_known(stream.cast(), Err(Errno::EINVAL), |engine, key| {
            engine.stream_listen(key, backlog)
        });
        if listening.is_ok() {
            (*stream).connection_cb = cb;
        }
        mirror(stream);
        engine::code(listening)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_accept(server: *mut uv_stream_t, client: *mut uv_stream_t) -> c_int {
    // SAFETY: the caller passes two handles.
    unsafe {
        if (*server).handle.loop_ != (*client).handle.loop_ {
            return Errno::EINVAL.code();
        }
        let to = Key::from_bits((*client).handle.key);
        let accepted = engine::with_known(server.cast(), Err(Errno::EINVAL), |engine, key| {
            engine.stream_accept(key, to)
        });
        match (*client).handle.type_ {
            UV_UDP => crate::udp::mirror(client.cast()),
            _ => mirror(client),
        }
        engine::code(accepted)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_read_start(
    stream: *mut uv_stream_t,
    alloc_cb: uv_alloc_cb,
    read_cb: uv_read_cb,
) -> c_int {
    if stream.is_null() || alloc_cb.is_none() || read_cb.is_none() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes a stream.
    unsafe {
        let marked_readable = (*stream).handle.flags & UV_HANDLE_READABLE != 0;
        let started = engine::with_known(stream.cast(), Err(Errno::EINVAL), |engine, key| {
            if marked_readable {
                engine.set_readable(key);
            }
            engine.read_start(key)
        });
        if started.is_ok() {
            (*stream).alloc_cb = alloc_cb;
            (*stream).read_cb = read_cb;
        }
        engine::code(started)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_read_stop(stream: *mut uv_stream_t) -> c_int {
    // SAFETY: the caller passes a stream.
    unsafe { engine::with_known(stream.cast(), (), |engine, key| engine.read_stop(key)) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_write(
    req: *mut uv_write_t,
    stream: *mut uv_stream_t,
    bufs: *const uv_buf_t,
    nbufs: c_uint,
    cb: uv_write_cb,
) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { uv_write2(req, stream, bufs, nbufs, std::ptr::null_mut(), cb) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_write2(
    req: *mut uv_write_t,
    stream: *mut uv_stream_t,
    bufs: *const uv_buf_t,
    nbufs: c_uint,
    send_handle: *mut uv_stream_t,
    cb: uv_write_cb,
) -> c_int {
    // A negative number of buffers arrives as a huge one.
    if nbufs == 0 || nbufs > c_int::MAX as c_uint || bufs.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes a request, a stream and buffers that stay valid until the
    // request is reported done.
    unsafe {
        // A handle with a descriptor is known: most are, and need not be asked more.
        if (*stream).io_watcher.fd < 0 && !engine::is_known(stream.cast()) {
            return Errno::EBADF.code();
        }
        let buffers = match copy_bufs(req, bufs, nbufs as usize) {
            Ok(buffers) => buffers,
            Err(error) => return error.code(),
        };
        (*req).req.type_ = UV_WRITE;
        (*req).req.nwritten = 0;
        (*req).cb = cb;
        (*req).handle = stream;
        (*req).send_handle = send_handle;
        (*req).error = 0;
        let passes = passed_key(send_handle);
        let token = engine::token(req);
        let written = engine::with_handle(stream.cast(), |engine, key| {
            engine.stream_write(key, token, buffers, passes)
        });
        match written {
            Ok((write, queued)) => {
                (*req).req.key = write.to_bits();
                mirror_queue(stream, queued);
                0
            }
            Err(error) => {
                release_bufs(req);
                Errno::code(error)
            }
        }
    }
}

/// The key of a handle to be sent over a pipe, if there is one.
///
/// # Safety
///
/// `handle` is null or an initialised handle.
unsafe fn passed_key(handle: *mut uv_stream_t) -> Option<Key> {
    // SAFETY: the caller upholds the contract.
    (!handle.is_null()).then(|| Key::from_bits(unsafe { (*handle).handle.key }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_try_write(
    stream: *mut uv_stream_t,
    bufs: *const uv_buf_t,
    nbufs: c_uint,
) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { uv_try_write2(stream, bufs, nbufs, std::ptr::null_mut()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_try_write2(
    stream: *mut uv_stream_t,
    bufs: *const uv_buf_t,
    nbufs: c_uint,
    send_handle: *mut uv_stream_t,
) -> c_int {
    // SAFETY: the caller passes a stream and buffers, which are only read, and only during this
    // call.
    unsafe {
        // Writes that failed and have not been reported are before this one too.
        if (*stream).write_queue_size != 0 {
            return Errno::EAGAIN.code();
        }
        if nbufs == 0 || nbufs > c_int::MAX as c_uint || bufs.is_null() {
            // libuv reports a busy stream before bad arguments.
            let is_busy = engine::with_known(stream.cast(), false, |engine, key| {
                engine.stream_has_to_wait(key)
            });
            return match is_busy {
                true => Errno::EAGAIN.code(),
                false => Errno::EINVAL.code(),
            };
        }
        let buffers = Buffers::new(bufs.cast_mut().cast(), nbufs as usize);
        if buffers.bytes() > MAX_BYTES {
            return Errno::EINVAL.code();
        }
        let passes = passed_key(send_handle);
        let written = engine::with_known(stream.cast(), Err(Errno::EBADF), |engine, key| {
            engine.stream_try_write(key, &buffers, passes)
        });
        match written {
            Ok(count) => count.min(c_int::MAX as usize) as c_int,
            Err(error) => error.code(),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_write_nwritten(req: *const uv_write_t) -> usize {
    // SAFETY: the caller passes a request.
    unsafe { (*req).req.nwritten }
}

/// Cancels a write.
///
/// # Safety
///
/// `req` was passed to `uv_write` and has not been reported done.
pub(crate) unsafe fn cancel(req: *mut uv_write_t) -> c_int {
    // SAFETY: the caller upholds the contract.
    unsafe {
        let write = Key::from_bits((*req).req.key);
        let loop_ = (*(*req).handle).handle.loop_;
        let cancelled = engine::code(engine::with(loop_, |engine| engine.write_cancel(write)));
        mirror_progress(loop_);
        cancelled
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_shutdown(
    req: *mut uv_shutdown_t,
    stream: *mut uv_stream_t,
    cb: uv_shutdown_cb,
) -> c_int {
    // SAFETY: the caller passes a request and a stream.
    unsafe {
        let token = engine::token(req);
        let begun = engine::with_known(stream.cast(), Err(Errno::ENOTCONN), |engine, key| {
            engine.stream_shutdown(key, token)
        });
        if begun.is_ok() {
            (*req).req.type_ = UV_SHUTDOWN;
            (*req).handle = stream;
            (*req).cb = cb;
            (*stream).handle.flags &= !UV_HANDLE_WRITABLE;
        }
        engine::code(begun)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_is_readable(stream: *const uv_stream_t) -> c_int {
    // SAFETY: the caller passes a stream.
    unsafe { c_int::from((*stream).handle.flags & UV_HANDLE_READABLE != 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_is_writable(stream: *const uv_stream_t) -> c_int {
    // SAFETY: the caller passes a stream.
    unsafe { c_int::from((*stream).handle.flags & UV_HANDLE_WRITABLE != 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_stream_set_blocking(stream: *mut uv_stream_t, blocking: c_int) -> c_int {
    // SAFETY: the caller passes a stream.
    unsafe {
        let unknown = Err(Errno::EBADF);
        engine::code(engine::with_known(stream.cast(), unknown, |engine, key| {
            engine.stream_set_blocking(key, blocking != 0)
        }))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_stream_get_write_queue_size(stream: *const uv_stream_t) -> usize {
    // SAFETY: the caller passes a stream.
    unsafe { (*stream).write_queue_size }
}

/// Gets or sets the size of one of the kernel's buffers.
///
/// # Safety
///
/// The caller passes a handle and a value.
unsafe fn buffer_size(
    handle: *mut uv_handle_t,
    direction: socket::Direction,
    value: *mut c_int,
) -> c_int {
    if handle.is_null() || value.is_null() {
        return Errno::EINVAL.code();
    }
    let mut fd = -1;
    // SAFETY: the caller guarantees both.
    unsafe {
        if !matches!((*handle).type_, UV_TCP | UV_NAMED_PIPE | UV_UDP) {
            return Errno::ENOTSUP.code();
        }
        let found = crate::handle::uv_fileno(handle, &mut fd);
        if found != 0 {
            return found;
        }
        match *value {
            0 => match socket::buffer_size(fd, direction) {
                Ok(size) => *value = size,
                Err(error) => return error.code(),
            },
            size => {
                if let Err(error) = socket::set_buffer_size(fd, direction, size) {
                    return error.code();
                }
            }
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_send_buffer_size(handle: *mut uv_handle_t, value: *mut c_int) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { buffer_size(handle, socket::Direction::Send, value) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_recv_buffer_size(handle: *mut uv_handle_t, value: *mut c_int) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { buffer_size(handle, socket::Direction::Receive, value) }
}
