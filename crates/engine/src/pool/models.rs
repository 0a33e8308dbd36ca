//! Models of the pool: loom tries every interleaving of a loop and its workers (see
//! `crate::models`).

use super::{Pool, Task, WorkKind};
use crate::event::Token;
use crate::models::{check, check_bounded, run_until};
use crate::slab::Key;
use crate::sync::AtomicU32;
use crate::wakeup::Receiver;
use blacklight_sys::job::Job;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

loom::lazy_static! {
    static ref POOL: Pool = Pool::new();
}

/// A loop that the pool knows.
struct Loop {
    pool: &'static Pool,
    receiver: Receiver,
    lp: Key,
    /// How many jobs have run.
    ran: Arc<AtomicU32>,
}

impl Loop {
    /// The first loop, which starts this many workers.
    fn with_workers(workers: u32) -> Loop {
        let pool = &*POOL;
        pool.start_workers(&mut pool.lock(), workers).unwrap();
        Loop::join(pool)
    }

    fn join(pool: &'static Pool) -> Loop {
        let receiver = Receiver::new().unwrap();
        Loop {
            pool,
            lp: pool.add_loop(&receiver.mailbox).unwrap(),
            receiver,
            ran: Arc::new(AtomicU32::new(0)),
        }
    }

    fn submit(&mut self, kind: WorkKind, may_spin: bool) -> super::Number {
        let token = Token(u64::from(self.receiver.submitted));
        let (cell, ran) = (
            self.receiver.allocate_request(token).unwrap(),
            self.ran.clone(),
        );
        let task = Task {
            job: Job::new(move || {
                ran.fetch_add(1, Relaxed);
            }),
            kind,
            lp: self.lp,
            cell,
            queued_ns: 0,
            may_spin,
            name: super::Name::default(),
            is_recorded: false,
        };
        self.pool.submit(task).unwrap()
    }

    /// Sleeps until all requests have been completed, each once.
    fn await_all(&mut self) {
        let mut left = self.receiver.requests;
        if left > 0 {
            run_until(&mut self.receiver, |_| {
                left -= 1;
                left == 0
            });
        }
        assert_eq!(self.receiver.requests, 0);
        assert!(self.receiver.is_quiet());
    }

    /// Ends the loop and the pool.
    fn end(self) {
        self.pool.remove_loop(self.lp, self.receiver.requests);
        self.pool.shut_down();
        let metrics = self.pool.lock().metrics();
        assert_eq!((metrics.queued, metrics.running), (0, 0));
        assert_eq!(metrics.submitted, metrics.completed + metrics.cancelled);
    }
}

#[test]
fn a_loop_sleeps_until_its_request_is_done() {
    check("a request, one worker", || {
        let mut lp = Loop::with_workers(1);
        lp.submit(WorkKind::FastIo, true);
        lp.await_all();
        assert_eq!(lp.ran.load(Relaxed), 1);
        lp.end();
    });
}

#[test]
fn a_worker_does_what_is_submitted() {
    check_bounded("two requests, one worker", 5, || {
        let mut lp = Loop::with_workers(1);
        for _ in 0..2 {
            lp.submit(WorkKind::Cpu, false);
        }
        lp.await_all();
        assert_eq!(lp.ran.load(Relaxed), 2);
        lp.end();
    });
}

#[test]
fn a_request_is_submitted_when_the_one_before_is_done() {
    check_bounded("a request after a request, spinning", 5, || {
        let mut lp = Loop::with_workers(1);
        lp.submit(WorkKind::FastIo, true);
        lp.await_all();
        lp.submit(WorkKind::FastIo, true);
        lp.await_all();
        assert_eq!(lp.ran.load(Relaxed), 2);
        lp.end();
    });
}

#[test]
fn a_worker_spins_while_a_request_is_submitted() {
    check_bounded("a request while a worker spins", 5, || {
        let mut lp = Loop::with_workers(1);
        lp.submit(WorkKind::FastIo, true);
        lp.submit(WorkKind::FastIo, true);
        lp.await_all();
        assert_eq!(lp.ran.load(Relaxed), 2);
        lp.end();
    });
}

#[test]
fn two_workers_share_fast_requests() {
    check_bounded("two requests, two workers", 3, || {
        let mut lp = Loop::with_workers(2);
        lp.submit(WorkKind::Cpu, false);
        lp.submit(WorkKind::Cpu, false);
        lp.await_all();
        assert_eq!(lp.ran.load(Relaxed), 2);
        lp.end();
    });
}

#[test]
fn slow_requests_wait_for_each_other_and_fast_ones_do_not() {
    check_bounded("two slow requests and a fast one", 4, || {
        let mut lp = Loop::with_workers(1);
        lp.submit(WorkKind::SlowIo, false);
        lp.submit(WorkKind::SlowIo, false);
        lp.submit(WorkKind::Cpu, false);
        lp.await_all();
        assert_eq!(lp.ran.load(Relaxed), 3);
        lp.end();
    });
}

#[test]
fn a_request_is_cancelled_or_done() {
    check("a request is cancelled", || {
        let mut lp = Loop::with_workers(1);
        let number = lp.submit(WorkKind::Cpu, false);
        let taken_back = lp.pool.cancel(number, lp.lp);
        if let Some(task) = &taken_back {
            lp.receiver.cancel_request(task.cell);
        }
        assert!(lp.pool.cancel(number, lp.lp).is_none(), "cancelled twice");
        lp.await_all();
        let ran = lp.ran.load(Relaxed);
        assert_eq!(ran, u32::from(taken_back.is_none()), "done or cancelled");
        lp.end();
    });
}

#[test]
fn the_second_of_two_requests_is_cancelled() {
    check_bounded("the second of two requests is cancelled", 5, || {
        let mut lp = Loop::with_workers(1);
        lp.submit(WorkKind::Cpu, true);
        let number = lp.submit(WorkKind::Cpu, true);
        let taken_back = lp.pool.cancel(number, lp.lp);
        if let Some(task) = &taken_back {
            lp.receiver.cancel_request(task.cell);
        }
        lp.await_all();
        let ran = lp.ran.load(Relaxed);
        assert_eq!(ran, 1 + u32::from(taken_back.is_none()));
        lp.end();
    });
}

#[test]
fn a_pool_that_is_shut_down_drains_its_queues() {
    check("shut down with two requests queued", || {
        let mut lp = Loop::with_workers(1);
        lp.submit(WorkKind::Cpu, true);
        lp.submit(WorkKind::SlowIo, true);
        lp.pool.shut_down();
        assert_eq!(lp.ran.load(Relaxed), 2);
        lp.await_all();
        lp.end();
    });
}

#[test]
fn two_workers_are_shut_down() {
    check_bounded("two workers are shut down", 4, || {
        let mut lp = Loop::with_workers(2);
        lp.submit(WorkKind::Cpu, true);
        lp.pool.shut_down();
        assert_eq!(lp.ran.load(Relaxed), 1);
        lp.await_all();
        lp.end();
    });
}

#[test]
fn a_loop_is_dropped_with_requests_in_progress() {
    check("a loop is dropped", || {
        let mut lp = Loop::with_workers(1);
        lp.submit(WorkKind::Cpu, false);
        lp.submit(WorkKind::Cpu, false);
        lp.end();
    });
}

#[test]
fn two_loops_submit_to_one_worker() {
    check_bounded("two loops, one worker", 3, || {
        let mut lp = Loop::with_workers(1);
        let pool = lp.pool;
        let other = loom::thread::spawn(move || {
            let mut other = Loop::join(pool);
            other.submit(WorkKind::Cpu, false);
            other.await_all();
            assert_eq!(other.ran.load(Relaxed), 1);
            pool.remove_loop(other.lp, 0);
        });
        lp.submit(WorkKind::Cpu, false);
        lp.await_all();
        assert_eq!(lp.ran.load(Relaxed), 1);
        other.join().unwrap();
        lp.end();
    });
}
