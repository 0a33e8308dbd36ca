//! Closing an async handle while other threads send to it. A model sends as `uv_async_send` does:
//! it enters the gate, accesses the memory behind it, and leaves.

use super::{check, check_bounded};
use crate::gate::Gate;
use loom::cell::UnsafeCell;
use loom::thread::spawn;
use std::rc::Rc;

/// A handle, and the memory that its senders access. loom reports an access that races with a
/// write.
struct Handle {
    gate: Gate,
    mailbox: UnsafeCell<u32>,
}

impl Handle {
    fn with(gate: Gate) -> Rc<Handle> {
        Rc::new(Handle {
            gate,
            mailbox: UnsafeCell::new(0),
        })
    }

    fn open() -> Rc<Handle> {
        let handle = Handle::with(Gate::default());
        handle.gate.open();
        handle
    }

    /// Sends. Returns whether the gate admitted the sender.
    fn send(&self) -> bool {
        let is_admitted = self.gate.enter();
        if is_admitted {
            self.mailbox.with(|_| ());
            self.gate.leave();
        }
        is_admitted
    }

    /// Closes the handle and frees the memory that its senders have accessed.
    fn close(&self) {
        self.gate.close();
        self.mailbox.with_mut(|_| ());
    }
}

#[test]
fn a_handle_is_closed_while_two_threads_send() {
    check("a close against two senders", || {
        let handle = Handle::open();
        let senders = [0, 1].map(|_| {
            let handle = handle.clone();
            spawn(move || handle.send())
        });
        handle.close();
        for sender in senders {
            sender.join().unwrap();
        }
        assert!(!handle.send(), "it is closed");
    });
}

#[test]
fn a_handle_is_closed_while_a_thread_sends_again_and_again() {
    check("a close against a sender of three", || {
        let handle = Handle::open();
        let own = handle.clone();
        let sender = spawn(move || {
            let admitted = [own.send(), own.send(), own.send()];
            assert!(admitted.is_sorted_by(|before, after| before >= after));
        });
        handle.close();
        sender.join().unwrap();
    });
}

#[test]
fn a_handle_is_made_again_in_the_same_memory_while_threads_send() {
    check_bounded("a handle is closed, made and closed again", 4, || {
        let handle = Handle::open();
        let senders = [0, 1].map(|_| {
            let handle = handle.clone();
            spawn(move || handle.send())
        });
        handle.close();
        handle.gate.open();
        handle.close();
        for sender in senders {
            sender.join().unwrap();
        }
        assert!(!handle.send(), "it is closed");
    });
}

#[test]
fn a_child_closes_a_handle_that_threads_of_its_parent_were_sending_to() {
    check("a close in a child", || {
        let handle = Handle::with(Gate::inherited());
        let own = handle.clone();
        let sender = spawn(move || (own.send(), own.send()));
        handle.close();
        sender.join().unwrap();
        assert!(!handle.send(), "it is closed");
    });
}

#[test]
fn a_child_sends_to_a_handle_that_its_parent_was_sending_to() {
    check("senders in a child", || {
        let handle = Handle::with(Gate::inherited());
        let senders = [0, 1].map(|_| {
            let handle = handle.clone();
            spawn(move || assert!(handle.send()))
        });
        for sender in senders {
            sender.join().unwrap();
        }
        handle.close();
    });
}
