//! What has happened and waits for somebody who awaits it.

use crate::stream::Waiter;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// A queue between a callback, which pushes, and one future, which takes.
///
/// It is not in the loop's table, so nothing of the user's may be in it but his waker, which
/// goes as soon as it is used; and a waker owns no future.
pub(crate) struct Queue<T> {
    items: RefCell<VecDeque<T>>,
    waiter: Waiter,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Queue<T> {
        Queue {
            items: RefCell::default(),
            waiter: Waiter::default(),
        }
    }

    /// Adds to what waits, as `update` does it, and wakes who waits for it.
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
