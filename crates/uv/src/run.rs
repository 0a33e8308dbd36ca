//! `uv_run`: asks the engine for the next thing to call, and calls it.
//!
//! A callback may call `uv_run` again, and may leave it by `longjmp` for good: nothing is kept here
//! but the [`Run`], which has nothing to lose. The next run goes on with what the engine holds. Until
//! then the loop is taken for running, so that senders do not wake whoever waits for
//! `uv_backend_fd`; asking for `uv_backend_timeout` before such a wait ends that.

use crate::abi::{LoopWatcher, UV_HANDLE_CLOSED, uv_async_t, uv_handle_t, uv_loop_t, uv_poll_t};
use crate::abi::{uv_connect_t, uv_shutdown_t, uv_stream_t, uv_timer_t};
use crate::{engine, process, signal, stream, udp};
use blacklight_engine::{Event, Mode, Run};
use std::ffi::c_int;

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_run(loop_: *mut uv_loop_t, mode: c_int) -> c_int {
    let mode = match mode {
        0 => Mode::Default,
        1 => Mode::Once,
        // libuv takes any other number for this one, which is the harmless choice.
        _ => Mode::NoWait,
    };
    let mut run = Run::new(mode);
    // SAFETY: the caller gives us a loop of its own, which stays open as long as this is counted.
    unsafe { (*(*loop_).internal_fields).runs += 1 };
    // SAFETY: the caller gives us a loop of its own; `next` calls no user code.
    while let Some(event) = unsafe { engine::with(loop_, |engine| engine.next(&mut run)) } {
        // SAFETY: the engine names handles that are not closed, whose memory the caller
        // keeps valid until they are, and nothing is borrowed now.
        unsafe {
            stream::mirror_progress(loop_);
            dispatch(event);
        }
    }
    // SAFETY: as above.
    unsafe { (*(*loop_).internal_fields).runs -= 1 };
    c_int::from(run.alive())
}

/// Calls the callback that an event is for.
///
/// # Safety
///
/// The event is fresh from the engine of a loop that the caller may use.
#[inline(always)]
unsafe fn dispatch(event: Event) {
    // SAFETY: each token is the address of the handle that it was made for, and of its type.
    unsafe {
        match event {
            Event::Timer(token) => {
                let timer = engine::handle::<uv_timer_t>(token);
                if (*timer).repeat != 0 {
                    crate::timer::mirror(timer, (*timer).repeat);
                }
                if let Some(cb) = (*timer).timer_cb {
                    cb(timer);
                }
            }
            Event::Idle(token) | Event::Prepare(token) | Event::Check(token) => {
                let watcher = engine::handle::<LoopWatcher>(token);
                if let Some(cb) = (*watcher).cb {
                    cb(watcher);
                }
            }
            Event::Async(token) => {
                let async_ = engine::handle::<uv_async_t>(token);
                if let Some(cb) = (*async_).async_cb {
                    cb(async_);
                }
            }
            Event::Work(token, result) => {
                crate::work::done(engine::handle(token), engine::code(result));
            }
            Event::Ring(token, result) => crate::fs::ring::done(engine::handle(token), result),
            Event::Poll(token, result) => {
                let poll = engine::handle::<uv_poll_t>(token);
                let (status, events) = match result {
                    Ok(events) => (0, events.bits() as c_int),
                    Err(error) => (error.code(), 0),
                };
                if let Some(cb) = (*poll).poll_cb {
                    cb(poll, status, events);
                }
            }
            Event::Read(token) => stream::read(engine::handle(token)),
            Event::ReadEnd(token, error) => stream::read_end(engine::handle(token), error),
            Event::Write(token, result, written) => {
                stream::write_done(engine::handle(token), engine::code(result), written);
            }
            // Nobody asks for it here.
            Event::Writable(_) => {}
            Event::Connect(token, result) => {
                let req = engine::handle::<uv_connect_t>(token);
                if let Some(cb) = (*req).cb {
                    cb(req, engine::code(result));
                }
            }
            Event::Shutdown(token, result) => {
                let req = engine::handle::<uv_shutdown_t>(token);
                if let Some(cb) = (*req).cb {
                    cb(req, engine::code(result));
                }
            }
            Event::Connection(token, result) => {
                let server = engine::handle::<uv_stream_t>(token);
                if let Some(cb) = (*server).connection_cb {
                    cb(server, engine::code(result));
                }
            }
            // libuv does not report it either.
            Event::TurnedAway(..) => {}
            Event::Receive(token) => udp::receive(engine::handle(token)),
            Event::ReceiveError(token) => udp::receive_error(engine::handle(token)),
            Event::ReceiveEnd(token, error) => udp::receive_end(engine::handle(token), error),
            Event::Send(token, result, bytes) => {
                udp::send_done(engine::handle(token), engine::code(result), bytes);
            }
            Event::FsEvent(token, result) => {
                crate::fs_event::happened(engine::handle(token), result);
            }
            Event::Signal(token, signum) => signal::caught(engine::handle(token), signum),
            Event::Exit(token, status, signum) => {
                process::ended(engine::handle(token), status, signum);
            }
            Event::Closed(token) => {
                let handle = engine::handle::<uv_handle_t>(token);
                (*handle).flags |= UV_HANDLE_CLOSED;
                if let Some(cb) = (*handle).close_cb {
                    cb(handle);
                }
            }
        }
    }
}
