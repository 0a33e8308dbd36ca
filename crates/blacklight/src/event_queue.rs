//! Events that wait for the task that awaits them.

use crate::stream::Waiter;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// A queue between a callback, which pushes, and one future, which pops.
///
/// The loop's table does not own the queue, so the queue must not own user values. The one
/// exception is a waker, which is dropped once it is used and owns no future.
pub(crate) struct EventQueue<T> {
    items: RefCell<VecDeque<T>>,
    waiter: Waiter,
}

impl<T> EventQueue<T> {
    pub(crate) fn new() -> EventQueue<T> {
        EventQueue {
            items: RefCell::default(),
            waiter: Waiter::default(),
        }
    }

    /// Changes the queue with `update`, and wakes the task that waits for an item.
    pub(crate) fn update(&self, update: impl FnOnce(&mut VecDeque<T>)) {
        update(&mut self.items.borrow_mut());
        self.waiter.wake();
    }

    pub(crate) fn poll_pop(&self, context: &Context<'_>) -> Poll<T> {
        match self.items.borrow_mut().pop_front() {
            Some(item) => Poll::Ready(item),
            None => {
                self.waiter.set(context);
                Poll::Pending
            }
        }
    }

    pub(crate) async fn pop(&self) -> T {
        poll_fn(|context| self.poll_pop(context)).await
    }
}
