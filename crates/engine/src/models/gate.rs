//! How an async handle is closed while others send to it. `uv_async_send` is modelled by what it does
//! with the gate and with the memory behind it.

use super::{check, check_bounded};
use crate::gate::Gate;
use loom::cell::UnsafeCell;
use loom::thread::spawn;
use std::rc::Rc;

/// A handle, and the memory that its senders use. loom reports an access beside a writer.
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

    /// Whether the send was let in.
    fn send(&self) -> bool {
        let is_in = self.gate.enter();
        if is_in {
            self.mailbox.with(|_| ());
            self.gate.leave();
        }
        is_in
    }

    /// Closes the handle and frees what its senders have used.
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
            let let_in = [own.send(), own.send(), own.send()];
            assert!(let_in.is_sorted_by(|before, after| before >= after));
        });
        handle.close();
        sender.join().unwrap();
    });
}

#[test]
fn a_handle_is_made_again_in_the_same_memory_while_others_send() {
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
fn a_child_sends_where_its_parent_did() {
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
