//! The addresses of the program's callbacks, for the record.
//!
//! The recorder asks right before a callback is called, and for handles that are not closed: their memory is valid then.

use crate::abi::{
    LoopWatcher, UV_FS, UV_GETADDRINFO, UV_GETNAMEINFO, UV_RANDOM, UV_WORK, uv_async_t,
    uv_connect_t, uv_fs_event_t, uv_getaddrinfo_t, uv_getnameinfo_t, uv_handle_t, uv_poll_t,
    uv_process_t, uv_random_t, uv_req_t, uv_shutdown_t, uv_signal_t, uv_stream_t, uv_timer_t,
    uv_udp_send_t, uv_udp_t, uv_work_t, uv_write_t,
};
use crate::engine::handle;
use crate::fs::abi::uv_fs_t;
use blacklight_engine::{Called, Event, Front, HandleKind, Token};
use std::ffi::c_int;

/// What the recorder knows of this library.
pub(crate) const FRONT: Front = Front {
    is_library: true,
    callback_of,
};

/// The address of a callback, or 0 for none: a C function's, in an `Option`.
fn address<F: Copy>(callback: Option<F>) -> u64 {
    const { assert!(size_of::<Option<F>>() == size_of::<usize>()) };
    // SAFETY: function pointers are as large as addresses, and none is null.
    unsafe { std::mem::transmute_copy::<Option<F>, usize>(&callback) as u64 }
}

fn callback_of(called: Called<'_>) -> u64 {
    // SAFETY: tokens are the addresses of handles and requests of the kinds named, which the program
    // keeps valid until their last callback has been called.
    unsafe {
        match called {
            Called::By(event) => by(event),
            Called::For(kind, token) => of_handle(kind, token),
        }
    }
}

/// # Safety
///
/// The event is about to be handed out.
unsafe fn by(event: &Event) -> u64 {
    // SAFETY: the caller upholds the contract.
    unsafe {
        match *event {
            Event::Timer(token) => of_handle(HandleKind::Timer, token),
            Event::Idle(token) | Event::Prepare(token) | Event::Check(token) => {
                of_handle(HandleKind::Idle, token)
            }
            Event::Async(token) => of_handle(HandleKind::Async, token),
            Event::Poll(token, _) => of_handle(HandleKind::Poll, token),
            Event::Work(token, _) | Event::Ring(token, _) => of_request(handle(token)),
            Event::Read(token) | Event::ReadEnd(token, _) => {
                address((*handle::<uv_stream_t>(token)).read_cb)
            }
            Event::Write(token, ..) => address((*handle::<uv_write_t>(token)).cb),
            Event::Connect(token, _) => address((*handle::<uv_connect_t>(token)).cb),
            Event::Shutdown(token, _) => address((*handle::<uv_shutdown_t>(token)).cb),
            Event::Connection(token, _) => address((*handle::<uv_stream_t>(token)).connection_cb),
            Event::Receive(token) | Event::ReceiveError(token) | Event::ReceiveEnd(token, _) => {
                of_handle(HandleKind::Udp, token)
            }
            Event::Send(token, ..) => address((*handle::<uv_udp_send_t>(token)).send_cb),
            Event::Signal(token, _) => of_handle(HandleKind::Signal, token),
            Event::Exit(token, ..) => of_handle(HandleKind::Process, token),
            Event::FsEvent(token, _) => of_handle(HandleKind::FsEvent, token),
            Event::Closed(token) => address((*handle::<uv_handle_t>(token)).close_cb),
            Event::Writable(_) | Event::TurnedAway(..) => 0,
        }
    }
}

/// # Safety
///
/// The token is that of a request to the thread pool, or on the ring, which is complete.
unsafe fn of_request(request: *mut uv_req_t) -> u64 {
    // SAFETY: the type says what the request is.
    unsafe {
        match (*request).type_ {
            UV_WORK => address((*request.cast::<uv_work_t>()).after_work_cb),
            UV_FS => address((*request.cast::<uv_fs_t>()).cb),
            UV_GETADDRINFO => address((*request.cast::<uv_getaddrinfo_t>()).cb),
            UV_GETNAMEINFO => address((*request.cast::<uv_getnameinfo_t>()).cb),
            UV_RANDOM => address((*request.cast::<uv_random_t>()).cb),
            _ => 0,
        }
    }
}

/// # Safety
///
/// The token is that of a handle of this kind that is not closed.
unsafe fn of_handle(kind: HandleKind, token: Token) -> u64 {
    // SAFETY: the caller upholds the contract.
    unsafe {
        match kind {
            HandleKind::Timer => address((*handle::<uv_timer_t>(token)).timer_cb),
            HandleKind::Idle | HandleKind::Prepare | HandleKind::Check => {
                address((*handle::<LoopWatcher>(token)).cb)
            }
            HandleKind::Async => address((*handle::<uv_async_t>(token)).async_cb),
            HandleKind::Poll => address((*handle::<uv_poll_t>(token)).poll_cb),
            HandleKind::Tcp | HandleKind::Pipe | HandleKind::Tty => {
                let stream = handle::<uv_stream_t>(token);
                match address((*stream).connection_cb) {
                    0 => address((*stream).read_cb),
                    callback => callback,
                }
            }
            HandleKind::FsEvent => address((*handle::<uv_fs_event_t>(token)).cb),
            HandleKind::Udp => address((*handle::<uv_udp_t>(token)).recv_cb),
            HandleKind::Signal => address((*handle::<uv_signal_t>(token)).signal_cb),
            HandleKind::Process => address((*handle::<uv_process_t>(token)).exit_cb),
            HandleKind::Custom => 0,
        }
    }
}

/// What the record calls a request of this type: an index into its kinds of requests.
pub(crate) fn request_kind(type_: c_int) -> u8 {
    match type_ {
        UV_WORK => 1,
        UV_FS => 2,
        UV_GETADDRINFO => 3,
        UV_GETNAMEINFO => 4,
        UV_RANDOM => 5,
        _ => 0,
    }
}
