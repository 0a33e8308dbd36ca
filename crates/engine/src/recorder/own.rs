//! The record of this process: who makes it, and its end.

use blacklight_record::Record;
use blacklight_sys::per_process::{self, PerProcess};
use blacklight_sys::{clock, own_process};
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

pub(super) static RECORD: PerProcess<Option<Record>> = PerProcess::new();
/// The process whose first thread has begun to make its record: its generation, and one more.
pub(super) static MAKER: AtomicU64 = AtomicU64::new(0);

/// The record of this process, if it has been made.
pub(super) fn own_record() -> Option<&'static Record> {
    RECORD.get()?.as_ref().filter(|record| record.is_own())
}

/// Another thread is making the record of this process.
pub(super) struct InTheMaking;

/// The record of this process, made by the first thread that asks; `None` if there can be none.
pub(super) fn obtain(is_library: bool) -> Result<Option<&'static Record>, InTheMaking> {
    if RECORD.get().is_some() {
        return Ok(own_record());
    }
    per_process::watch_forks();
    let this = per_process::generation() + 1;
    if MAKER.swap(this, AcqRel) == this {
        // That takes a few microseconds, unless the thread is kept from running.
        for _ in 0..1_000 {
            if RECORD.get().is_some() {
                return Ok(own_record());
            }
            std::thread::yield_now();
        }
        return Err(InTheMaking);
    }
    let make = || {
        let runtime = std::env::var("XDG_RUNTIME_DIR").ok();
        Record::make(runtime.as_deref(), is_library, clock::monotonic_ns())
    };
    if !is_library && !IS_REMOVED_AT_EXIT.swap(true, Relaxed) {
        // The C library has an end of its own. Readers remove what is left behind.
        let _ = own_process::at_exit(remove_at_exit);
    }
    let made = RECORD.get_or_make(make);
    if made.is_err() {
        // There is no memory for it, and nothing to wait for: the next loop tries again.
        MAKER.store(0, Release);
    }
    Ok(made.ok().and_then(Option::as_ref))
}

/// The record, if this process records.
#[inline]
pub(crate) fn recording() -> Option<&'static Record> {
    match blacklight_record::is_any_recording() {
        true => own_record().filter(|record| record.is_recording()),
        false => None,
    }
}

/// Whether the record is removed when the process ends, in this process and in those that are
/// forked from it.
static IS_REMOVED_AT_EXIT: AtomicBool = AtomicBool::new(false);

extern "C" fn remove_at_exit() {
    remove_record();
}

/// Removes the record of this process, as at its end.
pub fn remove_record() {
    if let Some(record) = own_record() {
        record.remove();
    }
}
