//! UDP handles, and other sockets that carry datagrams.
//!
//! Receiving is a dialogue, as with streams: the engine hands out [`Event::Receive`], the
//! front end finds room and calls [`Engine::udp_receive`] or, for several datagrams at once,
//! [`Engine::udp_receive_batch`]. Sending is the engine's own business once it has the buffers.
//!
//! What happens on one handle is dealt with step by step, by a [`Cursor`] that survives from
//! one event handed out to the next: a callback may stop or close the handle, and the cursor
//! finds it as it then is.
//!
//! Sends are in one of two lists: `queue`, to be sent in order, and `done`, to be reported in
//! order. Each is a request, which keeps the loop alive until it is reported, and none is
//! reported from within the call that made it. A handle is active while it receives or has
//! sends in either list.
//!
//! | file | what it owns |
//! | --- | --- |
//! | `mod.rs` | the state, making and closing, the cursor |
//! | `socket.rs` | opening, binding, connecting, options |
//! | `send.rs` | sending |
//! | `receive.rs` | receiving |
//!
//! [`Event::Receive`]: crate::Event::Receive

mod receive;
mod send;
mod socket;

pub use socket::{UdpBind, UdpReuse};

use crate::driver::{Owner, Pending};
use crate::engine::Engine;
use crate::event::{Event, Token};
use crate::handle::Kind;
use crate::list::List;
use crate::slab::{Key, Slab};
use blacklight_sys::fd::{Descriptor, SharedFd};
use blacklight_sys::poll::{POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT};
use blacklight_sys::{Errno, RawFd};
use send::Send;

/// How many datagrams one handle may receive in a turn, so that a fast peer does not starve
/// the others. A batch that begins within the limit may end beyond it.
const MAX_PER_TURN: u32 = 32;

#[derive(Debug)]
pub(crate) struct Udp {
    handle: u32,
    watcher: u32,
    fd: Option<Descriptor>,
    /// The socket's address family.
    family: i32,
    /// The socket tells a datagram's real length, which spares us the long way.
    quick: bool,
    /// The front end wants to hear once when it can send.
    tells_writable: bool,
    connected: bool,
    receiving: bool,
    /// Receiving does not make the handle active.
    quiet: bool,
    /// The last attempt to receive has brought something, so there may be more.
    more: bool,
    /// How many datagrams may yet be received in this turn.
    budget: u32,
    queue: List,
    done: List,
    /// Bytes in both lists.
    queued_bytes: usize,
}

/// All UDP handles of a loop, and their sends.
#[derive(Debug)]
pub(crate) struct Udps {
    slab: Slab<Udp>,
    sends: Slab<Send>,
}

impl Udps {
    pub(crate) fn new() -> Udps {
        Udps {
            slab: Slab::new(),
            sends: Slab::new(),
        }
    }
}

/// Where the dealing with one handle stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    udp: u32,
    /// The handle as it was when this began: it may be closed meanwhile.
    handle: Key,
    mask: u32,
    step: Step,
    /// Finished sends to report; those that finish meanwhile wait for the next time.
    reports_left: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// The descriptor cannot be watched, or is none.
    Broken(Errno),
    Receive,
    Errors,
    Send,
    Report,
}

impl Engine {
    /// Makes a UDP handle, with a socket if `family` says of which family.
    pub fn udp_init(&mut self, token: Token, family: Option<i32>) -> Result<Key, Errno> {
        let socket = family.map(socket::udp_socket).transpose()?;
        let watcher = self.driver.add(-1, Owner::Udp(0))?;
        let udp = Udp {
            handle: 0,
            watcher,
            fd: None,
            family: 0,
            quick: false,
            tells_writable: false,
            connected: false,
            receiving: false,
            quiet: false,
            more: false,
            budget: 0,
            queue: List::EMPTY,
            done: List::EMPTY,
            queued_bytes: 0,
        };
        let inserted = self.udps.slab.insert(udp).and_then(|udp| {
            let key = self.handles.insert(Kind::Udp(udp.index), token);
            key.map(|key| (udp.index, key))
                .inspect_err(|_| self.udps.slab.remove(udp.index))
        });
        let (udp, key) = inserted.inspect_err(|_| self.driver.remove(watcher))?;
        self.udps.slab[udp].handle = key.index;
        self.driver.set_owner(watcher, Owner::Udp(udp));
        if let (Some(socket), Some(family)) = (socket, family)
            && let Err(error) = self.udp_attach(udp, socket, family, true)
        {
            self.release_udp(key.index, udp);
            self.udps.slab.remove(udp);
            self.handles.finish_close(key.index);
            return Err(error);
        }
        Ok(key)
    }

    fn udp(&self, index: u32) -> &Udp {
        &self.udps.slab[index]
    }

    fn udp_mut(&mut self, index: u32) -> &mut Udp {
        &mut self.udps.slab[index]
    }

    /// The UDP handle behind a key, if that is an open one.
    fn open_udp(&self, key: Key) -> Result<u32, Errno> {
        match self.handles[self.handles.open(key)?].kind {
            Kind::Udp(udp) => Ok(udp),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The handle's descriptor; `EBADF` if it has none or is closing.
    pub fn udp_fd(&self, key: Key) -> Result<RawFd, Errno> {
        let index = self.open_udp(key).map_err(|_| Errno::EBADF)?;
        self.udp_raw_fd(index)
    }

    /// A hold on the handle's socket, which stays open until that is let go of.
    pub fn udp_share_fd(&mut self, key: Key) -> Result<SharedFd, Errno> {
        let index = self.open_udp(key).map_err(|_| Errno::EBADF)?;
        let fd = self.udp_mut(index).fd.as_mut();
        fd.ok_or(Errno::EBADF)?.share()
    }

    fn udp_raw_fd(&self, index: u32) -> Result<RawFd, Errno> {
        let fd = self.udp(index).fd.as_ref();
        fd.map(Descriptor::raw).ok_or(Errno::EBADF)
    }

    /// A handle is active while it has something to do.
    fn udp_update_active(&mut self, index: u32) {
        let udp = self.udp(index);
        let active = udp.receiving && !udp.quiet || !udp.queue.is_empty() || !udp.done.is_empty();
        self.handles.set_active(udp.handle, active);
    }

    /// Closes a handle's socket. What it was to send is cancelled in the closing phase.
    pub(crate) fn release_udp(&mut self, handle: u32, index: u32) {
        self.driver.remove(self.udp(index).watcher);
        self.handles.set_active(handle, false);
        let udp = self.udp_mut(index);
        udp.receiving = false;
        udp.connected = false;
        udp.fd = None;
    }

    /// Cancels the next send of a closed handle; `None` after the last, when the handle is
    /// forgotten.
    pub(crate) fn cancel_next_send(&mut self, index: u32) -> Option<Event> {
        self.fail_sends(index, Errno::ECANCELED);
        let event = self.report_send(index);
        if event.is_none() {
            self.udps.slab.remove(index);
        }
        event
    }

    fn udp_cursor(&self, udp: u32, mask: u32, step: Step) -> Cursor {
        Cursor {
            udp,
            handle: self.handles.key(self.udp(udp).handle),
            mask,
            step,
            reports_left: 0,
        }
    }

    /// Begins to deal with what the poller says of a handle.
    #[inline]
    pub(crate) fn udp_ready(&mut self, udp: u32, mask: u32) -> Cursor {
        let step = if mask & POLLNVAL != 0 {
            Step::Broken(Errno::EBADF)
        } else if mask & (POLLIN | POLLERR | POLLHUP) != 0 {
            self.begin_receiving(udp);
            Step::Receive
        } else {
            Step::Send
        };
        self.udp_cursor(udp, mask, step)
    }

    /// Begins to deal with a handle in a pending phase.
    pub(crate) fn udp_pending(&mut self, udp: u32, why: Pending) -> Cursor {
        match why {
            Pending::Fed => self.udp_cursor(udp, POLLOUT, Step::Send),
            Pending::Refused(error) => self.udp_cursor(udp, 0, Step::Broken(error)),
        }
    }

    /// Goes on with the handle in hand up to the next thing to call, or to its end. It may have
    /// been closed by a callback.
    #[inline]
    pub(crate) fn next_of_udp(&mut self, cursor: &mut Cursor) -> Option<Event> {
        self.handles.open(cursor.handle).ok()?;
        self.go_on_with_udp(cursor)
    }

    /// The next thing to call for an open handle; `None` when it has been dealt with.
    fn go_on_with_udp(&mut self, cursor: &mut Cursor) -> Option<Event> {
        let index = cursor.udp;
        loop {
            match cursor.step {
                Step::Broken(error) => {
                    // Nobody will say when there is room; whoever sends now finds out anew.
                    self.driver.unwant(self.udp(index).watcher, POLLOUT);
                    self.fail_sends(index, error);
                    cursor.reports_left = self.udp(index).done.len();
                    cursor.step = Step::Report;
                    let event = self.receiving_failed(index, error);
                    if event.is_some() {
                        return event;
                    }
                }
                Step::Receive => {
                    if let Some(token) = self.may_receive(index) {
                        return Some(Event::Receive(token));
                    }
                    cursor.step = Step::Send;
                    if cursor.mask & POLLERR != 0 {
                        self.begin_receiving(index);
                        cursor.step = Step::Errors;
                    }
                }
                Step::Errors => {
                    if let Some(token) = self.may_receive(index) {
                        return Some(Event::ReceiveError(token));
                    }
                    cursor.step = Step::Send;
                }
                Step::Send => {
                    if cursor.mask & (POLLOUT | POLLERR | POLLHUP) == 0 {
                        return None;
                    }
                    self.flush_sends(index);
                    if cursor.mask & POLLERR != 0 {
                        self.discard_unheard_errors(index);
                    }
                    cursor.reports_left = self.udp(index).done.len();
                    cursor.step = Step::Report;
                }
                Step::Report => {
                    if cursor.reports_left > 0 {
                        cursor.reports_left -= 1;
                        if let Some(event) = self.report_send(index) {
                            return Some(event);
                        }
                    }
                    return self.after_reports(index);
                }
            }
        }
    }
}
