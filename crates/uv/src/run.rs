//! `uv_run`: takes events from the engine and calls the program's callbacks.
//!
//! A callback may call `uv_run` again, and may leave it for good by `longjmp`: only the [`Run`] is
//! kept here, and dropping it without notice loses nothing. The next run goes on with the engine's
//! state. After a `longjmp` the loop counts as running, so senders do not wake a program that waits
//! for `uv_backend_fd`, until the program calls `uv_backend_timeout` or `uv_run`.

use crate::abi::uv_loop_t;
use crate::{async_, engine, handle, loop_watcher, poll, process, signal, stream, timer, udp};
use blacklight_engine::{Event, Mode, Run};
use std::ffi::c_int;

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_run(loop_: *mut uv_loop_t, mode: c_int) -> c_int {
    let mode = match mode {
        0 => Mode::Default,
        1 => Mode::Once,
        // libuv treats any other number as this mode.
        _ => Mode::NoWait,
    };
    // SAFETY: the caller passes a loop, perhaps one that is closed, in which nothing is left to be run.
    if unsafe { !engine::is_open(loop_) } {
        return 0;
    }
    let mut run = Run::new(mode);
    // SAFETY: the caller passes its own loop, which cannot be closed while `runs` is not zero.
    unsafe { (*(*loop_).internal_fields).runs += 1 };
    // SAFETY: the caller passes its own loop; `next` calls no user code.
    while let Some(event) = unsafe { engine::with(loop_, |engine| engine.next(&mut run)) } {
        // SAFETY: the engine returns events of handles that are not closed, whose memory the
        // program keeps valid until then, and nothing is borrowed now.
        unsafe {
            stream::mirror_progress(loop_);
            dispatch(event);
        }
    }
    // SAFETY: the loop is still open, since `runs` is not zero.
    unsafe { (*(*loop_).internal_fields).runs -= 1 };
    c_int::from(run.alive())
}

/// Calls the callback of an event.
///
/// # Safety
///
/// The engine of a loop that the caller owns has just returned the event.
#[inline(always)]
unsafe fn dispatch(event: Event) {
    // SAFETY: each token is the address of a handle or request of the event's type.
    unsafe {
        match event {
            Event::Timer(token) => {
                timer::due(engine::handle(token));
            }
            Event::Idle(token) | Event::Prepare(token) | Event::Check(token) => {
                loop_watcher::due(engine::handle(token));
            }
            Event::Async(token) => {
                async_::received(engine::handle(token));
            }
            Event::Work(token, result) => {
                crate::work::done(engine::handle(token), engine::code(result));
            }
            Event::Ring(token, result) => crate::fs::ring::done(engine::handle(token), result),
            Event::Poll(token, result) => {
                poll::ready(engine::handle(token), result);
            }
            Event::Read(token) => stream::read(engine::handle(token)),
            Event::ReadEnd(token, error) => stream::read_end(engine::handle(token), error),
            Event::Write(token, result, written) => {
                stream::write_done(engine::handle(token), engine::code(result), written);
            }
            // The C interface never requests this event.
            Event::Writable(_) => {}
            Event::Connect(token, result) => {
                stream::connect_done(engine::handle(token), engine::code(result));
            }
            Event::Shutdown(token, result) => {
                stream::shutdown_done(engine::handle(token), engine::code(result));
            }
            Event::Connection(token, result) => {
                stream::connection(engine::handle(token), engine::code(result));
            }
            // libuv does not report refused connections.
            Event::TurnedAway(..) => {}
            Event::Receive(token) => udp::receive(engine::handle(token)),
            Event::ReceiveError(token) => udp::receive_error(engine::handle(token)),
            Event::ReceiveEnd(token, error) => udp::receive_end(engine::handle(token), error),
            Event::Send(token, result, bytes) => {
                udp::send_done(engine::handle(token), engine::code(result), bytes);
            }
            Event::FsEvent(token, result) => {
                crate::fs_event::changed(engine::handle(token), result);
            }
            Event::Signal(token, signum) => signal::caught(engine::handle(token), signum),
            Event::Exit(token, status, signum) => {
                process::ended(engine::handle(token), status, signum);
            }
            Event::Closed(token) => {
                handle::closed(engine::handle(token));
            }
        }
    }
}
