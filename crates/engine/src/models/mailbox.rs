//! Sends, completions, sleep, close and fork.

use super::{check, check_bounded, run_until, turn};
use crate::event::Token;
use crate::mailbox::{Mailbox, Ticket};
use crate::sync::{AtomicU32, stopped_after};
use crate::wakeup::Receiver;
use blacklight_sys::fallible::Arc;
use loom::thread::{JoinHandle, spawn};
use std::sync::atomic::Ordering::Relaxed;

/// The most accesses that a send makes without interference.
const SEND: u32 = 11;

/// The bound on preemptions for models with three threads.
const PREEMPTIONS: usize = 3;

/// The cells of two handles.
#[derive(Clone, Copy)]
enum Places {
    /// The same cell twice.
    Same,
    /// Both in the first group, which is the only one of its segment.
    OneGroup,
    /// In two segments, of which the second has banks.
    TwoSegments,
    /// In two groups of different banks.
    TwoBanks,
    /// In one group that shares its bank with another.
    OneBank,
}

/// A loop, and the tickets of two handles. Their tokens are the numbers of the cells.
fn handles(places: Places) -> (Receiver, [Ticket; 2]) {
    let mut receiver = Receiver::new().unwrap();
    let [first, second] = match places {
        Places::Same => [0, 0],
        Places::OneGroup => [0, 1],
        Places::TwoSegments => [0, 6],
        Places::TwoBanks => [7, 10],
        Places::OneBank => [8, 9],
    };
    let last = first.max(second);
    let tickets: Vec<_> = (0..=last)
        .map(|token| receiver.allocate(Token(token)).unwrap())
        .collect();
    (
        receiver,
        [tickets[first as usize], tickets[second as usize]],
    )
}

/// Data that a sender writes before it sends, and that the delivery must see.
struct Letter(Arc<AtomicU32>);

impl Letter {
    fn new() -> Letter {
        Letter(Arc::try_new(AtomicU32::new(0)).unwrap())
    }

    fn is_here(&self) -> bool {
        self.0.load(Relaxed) == 1
    }

    /// A thread that writes the letter and sends.
    fn send(&self, mailbox: &Arc<Mailbox>, ticket: Ticket) -> JoinHandle<()> {
        let (letter, mailbox) = (self.0.clone(), mailbox.clone());
        spawn(move || {
            letter.store(1, Relaxed);
            mailbox.send(ticket);
        })
    }
}

/// Two threads send, and the loop sleeps until it has both letters.
fn deliver_two(name: &'static str, places: Places) {
    check_bounded(name, PREEMPTIONS, move || {
        let (mut receiver, tickets) = handles(places);
        let letters = [Letter::new(), Letter::new()];
        let senders = [0, 1].map(|at| letters[at].send(&receiver.mailbox, tickets[at]));
        let (mut has_come, mut delivered) = ([false; 2], 0);
        run_until(&mut receiver, |token| {
            delivered += 1;
            for at in 0..2 {
                let is_delivered = token.0 == tickets[at].cell.into();
                has_come[at] |= is_delivered && letters[at].is_here();
            }
            has_come == [true; 2]
        });
        for sender in senders {
            sender.join().unwrap();
        }
        // A letter may have been read before its send, which is then delivered as well.
        delivered += turn(&mut receiver).len();
        assert!(delivered <= 2, "more deliveries than sends");
        assert!(receiver.is_quiet());
    });
}

#[test]
fn two_senders_to_one_handle() {
    deliver_two("two senders to one handle", Places::Same);
}

#[test]
fn two_senders_in_one_group() {
    deliver_two("two senders in one group", Places::OneGroup);
}

#[test]
fn two_senders_in_two_segments() {
    deliver_two("two senders in two segments", Places::TwoSegments);
}

#[test]
fn two_senders_in_two_banks() {
    deliver_two("two senders in two banks", Places::TwoBanks);
}

#[test]
fn two_senders_in_one_bank() {
    deliver_two("two senders in one bank", Places::OneBank);
}

#[test]
fn a_thread_sends_to_a_loop_that_sleeps() {
    check("a thread that sends", || {
        let (mut receiver, [ticket, _]) = handles(Places::Same);
        let letter = Letter::new();
        let sender = letter.send(&receiver.mailbox, ticket);
        run_until(&mut receiver, |_| true);
        assert!(letter.is_here());
        sender.join().unwrap();
        assert_eq!(turn(&mut receiver), []);
    });
}

#[test]
fn a_thread_that_sends_again_and_again() {
    check_bounded("a thread that sends three times", PREEMPTIONS + 1, || {
        let (mut receiver, [ticket, _]) = handles(Places::Same);
        let letter = Arc::try_new(AtomicU32::new(0)).unwrap();
        let (mailbox, written) = (receiver.mailbox.clone(), letter.clone());
        let sender = spawn(move || {
            for number in 1..=3 {
                written.store(number, Relaxed);
                mailbox.send(ticket);
            }
        });
        let mut delivered = 0;
        run_until(&mut receiver, |_| {
            delivered += 1;
            letter.load(Relaxed) == 3
        });
        sender.join().unwrap();
        // The delivery of a send may have seen the letter of the next send, which comes later.
        delivered += turn(&mut receiver).len();
        assert!(delivered <= 3, "more deliveries than sends");
    });
}

/// One sender is preempted for ever, at any access. The other sender's send is delivered.
fn stop_one_sender(name: &'static str, places: Places) {
    for accesses in 0..=SEND {
        let name = format!("{name}, after {accesses} accesses");
        check_bounded(&name, PREEMPTIONS, move || {
            let (mut receiver, [slow, fast]) = handles(places);
            let mailbox = receiver.mailbox.clone();
            let stopped = spawn(move || {
                let is_finished = stopped_after(accesses, || mailbox.send(slow));
                assert!(is_finished || accesses < SEND, "a send makes more accesses");
            });
            let letter = Letter::new();
            let sender = letter.send(&receiver.mailbox, fast);
            run_until(&mut receiver, |token| {
                token.0 == fast.cell.into() && letter.is_here()
            });
            sender.join().unwrap();
            stopped.join().unwrap();
        });
    }
}

#[test]
fn a_sender_to_the_same_handle_is_stopped() {
    stop_one_sender("one is stopped, same handle", Places::Same);
}

#[test]
fn a_sender_in_the_same_group_is_stopped() {
    stop_one_sender("one is stopped, same group", Places::OneGroup);
}

#[test]
fn a_sender_in_another_segment_is_stopped() {
    stop_one_sender("one is stopped, other segment", Places::TwoSegments);
}

/// As above, while the loop is delivering an earlier send.
#[test]
fn a_sender_is_stopped_while_the_loop_delivers() {
    for accesses in 0..=SEND {
        let name = format!("one is stopped in a delivery, after {accesses} accesses");
        check_bounded(&name, PREEMPTIONS - 1, move || {
            let (mut receiver, [ticket, _]) = handles(Places::Same);
            receiver.mailbox.send(ticket);
            receiver.collect();
            let mailbox = receiver.mailbox.clone();
            let stopped = spawn(move || {
                stopped_after(accesses, || mailbox.send(ticket));
            });
            let letter = Letter::new();
            let sender = letter.send(&receiver.mailbox, ticket);
            if receiver.next().is_none() || !letter.is_here() {
                run_until(&mut receiver, |_| letter.is_here());
            }
            sender.join().unwrap();
            stopped.join().unwrap();
        });
    }
}

#[test]
fn a_worker_is_stopped_while_it_completes_a_request() {
    for accesses in 0..=6 {
        let name = format!("a worker is stopped after {accesses} accesses");
        check_bounded(&name, PREEMPTIONS, move || {
            let mut receiver = Receiver::new().unwrap();
            let slow = receiver.allocate_request(Token(1)).unwrap();
            let fast = receiver.allocate_request(Token(2)).unwrap();
            let mailbox = receiver.mailbox.clone();
            let stopped = spawn(move || {
                stopped_after(accesses, || mailbox.complete(slow));
            });
            let mailbox = receiver.mailbox.clone();
            let worker = spawn(move || mailbox.complete(fast));
            run_until(&mut receiver, |token| token == Token(2));
            worker.join().unwrap();
            stopped.join().unwrap();
        });
    }
}

#[test]
fn two_workers_complete_requests() {
    check_bounded("two workers complete a request each", PREEMPTIONS, || {
        let mut receiver = Receiver::new().unwrap();
        let workers = [1, 2].map(|token| {
            let cell = receiver.allocate_request(Token(token)).unwrap();
            let mailbox = receiver.mailbox.clone();
            spawn(move || mailbox.complete(cell))
        });
        let mut delivered = Vec::new();
        run_until(&mut receiver, |token| {
            delivered.push(token);
            delivered.len() == 2
        });
        for worker in workers {
            worker.join().unwrap();
        }
        delivered.sort_unstable_by_key(|token| token.0);
        assert_eq!(delivered, [Token(1), Token(2)]);
        assert_eq!(receiver.requests, 0);
        assert!(receiver.is_quiet());
    });
}

#[test]
fn a_worker_completes_while_another_thread_sends() {
    check_bounded("a completion and a send", PREEMPTIONS, || {
        let (mut receiver, [ticket, _]) = handles(Places::Same);
        let cell = receiver.allocate_request(Token(7)).unwrap();
        let mailbox = receiver.mailbox.clone();
        let worker = spawn(move || mailbox.complete(cell));
        let letter = Letter::new();
        let sender = letter.send(&receiver.mailbox, ticket);
        let mut delivered = Vec::new();
        run_until(&mut receiver, |token| {
            delivered.push(token);
            delivered.len() == 2
        });
        assert!(letter.is_here());
        worker.join().unwrap();
        sender.join().unwrap();
    });
}

#[test]
fn a_send_to_a_loop_that_does_not_run_makes_its_descriptor_readable() {
    check("a loop that does not run", || {
        let (mut receiver, [ticket, _]) = handles(Places::Same);
        receiver.awake();
        let letter = Letter::new();
        let sender = letter.send(&receiver.mailbox, ticket);
        if turn(&mut receiver).is_empty() {
            receiver.rest();
            receiver.mailbox.waker.wait();
            receiver.awake();
            assert_eq!(turn(&mut receiver), [Token(0)]);
        }
        assert!(letter.is_here());
        sender.join().unwrap();
    });
}

/// A handle is closed, and its cell may be reused, while a thread sends with the stale ticket.
#[test]
fn a_send_to_a_closed_handle_reaches_no_other() {
    check("a handle is closed while it is sent to", || {
        let (mut receiver, [old, _]) = handles(Places::Same);
        receiver.awake();
        let mailbox = receiver.mailbox.clone();
        let sender = spawn(move || {
            mailbox.send(old);
            mailbox.send(old);
        });
        turn(&mut receiver);
        receiver.retire(old);
        let new = receiver.allocate(Token(2)).unwrap();
        assert_eq!(turn(&mut receiver), []);
        receiver.mailbox.send(new);
        assert_eq!(turn(&mut receiver), [Token(2)]);
        sender.join().unwrap();
        assert_eq!(turn(&mut receiver), []);
        // The old cell is free again.
        let third = receiver.allocate(Token(3)).unwrap();
        assert!([new.cell, third.cell].contains(&old.cell));
        assert!(receiver.is_quiet());
    });
}

/// Senders to two handles race with a close of the first and a sleep until the second's send.
#[test]
fn a_close_loses_no_send_to_a_neighbour() {
    check_bounded("a neighbour is closed", PREEMPTIONS, || {
        let (mut receiver, [closed, other]) = handles(Places::OneGroup);
        receiver.awake();
        let senders = [Letter::new(), Letter::new()];
        let stale = senders[0].send(&receiver.mailbox, closed);
        let sender = senders[1].send(&receiver.mailbox, other);
        receiver.retire(closed);
        run_until(&mut receiver, |token| {
            assert_eq!(token.0, other.cell.into());
            senders[1].is_here()
        });
        stale.join().unwrap();
        sender.join().unwrap();
    });
}

/// The process forks while two threads send; these threads do not exist in the child. There the
/// loop discards their sends and delivers later ones.
fn fork(name: &'static str, places: Places, is_asleep: bool) {
    for accesses in 0..=SEND {
        check(&format!("{name}, after {accesses} accesses"), move || {
            let (mut receiver, tickets) = handles(places);
            if !is_asleep {
                receiver.awake();
            }
            // The parent.
            let mailboxes = [0, 1].map(|_| receiver.mailbox.clone());
            let [first, second] = mailboxes;
            let left_behind = spawn(move || {
                stopped_after(accesses, || first.send(tickets[0]));
            });
            // This send stops half-way; the other one has stopped at any point.
            stopped_after(SEND / 2, || second.send(tickets[1]));
            left_behind.join().unwrap();
            // The child.
            receiver.process = receiver.process.wrapping_sub(1);
            receiver.fork().unwrap();
            let letter = Letter::new();
            let sender = letter.send(&receiver.mailbox, tickets[0]);
            if is_asleep {
                // The send wakes a program that waits for the loop's descriptor.
                receiver.mailbox.waker.wait();
                receiver.awake();
                assert_eq!(turn(&mut receiver), [Token(tickets[0].cell.into())]);
                assert!(letter.is_here());
            } else {
                run_until(&mut receiver, |token| {
                    assert_eq!(token.0, tickets[0].cell.into(), "the parent's send");
                    assert!(letter.is_here());
                    true
                });
            }
            sender.join().unwrap();
            assert_eq!(turn(&mut receiver), []);
            assert!(receiver.is_quiet());
        });
    }
}

#[test]
fn a_fork_while_threads_send_to_one_handle() {
    fork("a fork, one handle", Places::Same, false);
}

#[test]
fn a_fork_while_threads_send_in_one_group() {
    fork("a fork, one group", Places::OneGroup, false);
}

#[test]
fn a_fork_while_threads_wake_the_loop() {
    fork("a fork, asleep", Places::TwoSegments, true);
}

/// A handle is closed, and the process forks, while another thread sends to it.
#[test]
fn a_fork_loses_no_cell_of_a_closed_handle() {
    for accesses in 0..=SEND {
        let name = format!("a fork, closed handle, after {accesses} accesses");
        check(&name, move || {
            let (mut receiver, [closed, _]) = handles(Places::Same);
            let mailbox = receiver.mailbox.clone();
            let left_behind = spawn(move || {
                stopped_after(accesses, || mailbox.send(closed));
            });
            receiver.retire(closed);
            left_behind.join().unwrap();
            receiver.process = receiver.process.wrapping_sub(1);
            receiver.fork().unwrap();
            let new = receiver.allocate(Token(1)).unwrap();
            assert_eq!(new.cell, closed.cell);
            receiver.mailbox.send(new);
            assert_eq!(turn(&mut receiver), [Token(1)]);
        });
    }
}
