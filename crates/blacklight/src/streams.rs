//! Directory entries, file changes, signals and ticks as streams of the `futures` crate.

use crate::fs::ReadDir;
use crate::fs_event::{FsChange, FsChanges};
use crate::fs_poll::{StatChange, StatChanges};
use crate::signal::{SignalKind, Signals};
use crate::time::Interval;
use futures_core::Stream;
use std::fs::DirEntry;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A stream whose items a function polls for.
pub(crate) struct PollFn<F>(pub(crate) F);

impl<T, F: FnMut(&mut Context<'_>) -> Poll<Option<T>> + Unpin> Stream for PollFn<F> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        (self.0)(context)
    }
}

macro_rules! endless {
    ($($source:ident, $poll:ident, $item:ty;)*) => {$(
        /// Never ends.
        impl Stream for $source {
            type Item = $item;

            fn poll_next(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<Option<$item>> {
                self.$poll(context).map(Some)
            }
        }
    )*};
}

endless! {
    Signals, poll_recv, SignalKind;
    FsChanges, poll_recv, io::Result<FsChange>;
    StatChanges, poll_recv, StatChange;
    Interval, poll_tick, ();
}

impl Stream for ReadDir {
    type Item = io::Result<DirEntry>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<DirEntry>>> {
        self.poll_next_entry(context).map(Result::transpose)
    }
}
