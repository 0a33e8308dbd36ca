//! The tasks that wait for one event of an object.

use crate::code::Code;
use std::cell::Cell;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
enum Waiting {
    #[default]
    Nobody,
    One(Waker),
    /// In the order in which they came.
    Many(Vec<Waker>),
}

/// The wakers of the tasks that wait. One task, as there is in most cases, costs no allocation.
#[derive(Default)]
pub(crate) struct Waiter {
    waiting: Cell<Waiting>,
    /// The code of the task that waited last.
    code: Cell<Code>,
}

impl Waiter {
    /// Adds the task, unless it waits already.
    pub(crate) fn set(&self, context: &Context<'_>) {
        self.code.set(Code::polled());
        let waker = context.waker();
        let waiting = match self.waiting.take() {
            Waiting::Nobody => Waiting::One(waker.clone()),
            Waiting::One(other) if other.will_wake(waker) => Waiting::One(other),
            Waiting::One(other) => Waiting::Many(vec![other, waker.clone()]),
            Waiting::Many(mut others) => {
                if !others.iter().any(|other| other.will_wake(waker)) {
                    others.push(waker.clone());
                }
                Waiting::Many(others)
            }
        };
        self.waiting.set(waiting);
    }

    pub(crate) fn code(&self) -> Code {
        self.code.get()
    }

    /// Wakes all tasks, and returns whether one was waiting.
    pub(crate) fn wake(&self) -> bool {
        match self.waiting.take() {
            Waiting::Nobody => return false,
            Waiting::One(waker) => waker.wake(),
            Waiting::Many(wakers) => wakers.into_iter().for_each(Waker::wake),
        }
        true
    }

    /// Waits with a function that polls, and [adds](Waiter::set) the task where it is pending.
    ///
    /// A future that is dropped leaves its waker behind, which nothing would take away from an
    /// object that is never ready. So it wakes the others, which come back, and it does not.
    pub(crate) async fn wait<T>(&self, poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        let mut leave = Leave(Some(self));
        let done = poll_fn(poll).await;
        leave.0 = None;
        done
    }
}

/// Tells the other tasks if a future is dropped while it waits.
struct Leave<'a>(Option<&'a Waiter>);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let Some(waiter) = self.0 else { return };
        match waiter.waiting.take() {
            Waiting::Many(wakers) => wakers.into_iter().for_each(Waker::wake),
            // The next task takes the place of one that is gone, or is the second.
            few => waiter.waiting.set(few),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::Wake;

    struct Task;

    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn futures_that_are_dropped_leave_no_wakers_behind() {
        let waiter = Waiter::default();
        let mut gone = Vec::new();
        for _ in 0..100 {
            let task = Arc::new(Task);
            gone.push(Arc::downgrade(&task));
            let waker = Waker::from(task);
            let mut context = Context::from_waker(&waker);
            let wait = pin!(waiter.wait(|context| {
                waiter.set(context);
                Poll::<()>::Pending
            }));
            assert!(wait.poll(&mut context).is_pending());
        }
        let left = gone.iter().filter(|task| task.strong_count() > 0).count();
        assert!(left <= 1, "{left} of 100");
    }
}
