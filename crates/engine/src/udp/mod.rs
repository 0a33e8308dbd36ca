//! UDP handles, and other sockets that carry datagrams.
//!
//! Receiving takes two steps, as with streams: the engine delivers [`Event::Receive`], and the front
//! end finds room and calls [`Engine::udp_receive`] or, for several datagrams at once,
//! [`Engine::udp_receive_batch`]. The engine sends by itself once it has the buffers.
//!
//! A send is in one of two lists: `queue`, to be sent in order, or `done`, to be reported in
//! order. Each send is a request, which keeps the loop alive until it is reported. No send is
//! reported from within the call that made it. A handle is active while it receives or has
//! sends in either list.
//!
//! | file | what it owns |
//! | --- | --- |
//! | `mod.rs` | the state, making and closing |
//! | `turn.rs` | the steps that one readiness leads to |
//! | `socket.rs` | opening, binding, connecting, options |
//! | `send.rs` | sending |
//! | `receive.rs` | receiving |
//!
//! [`Event::Receive`]: crate::Event::Receive

mod receive;
mod send;
mod socket;
mod turn;

pub use socket::{UdpBind, UdpReuse};
pub(crate) use turn::Cursor;

use crate::driver::Owner;
use crate::engine::Engine;
use crate::event::{Event, Token};
use crate::handle::Kind;
use crate::list::List;
use crate::slab::{Key, Slab};
use blacklight_sys::fd::{Descriptor, SharedFd};
use blacklight_sys::{Errno, RawFd};
use send::Send;

#[derive(Debug)]
pub(crate) struct Udp {
    handle: u32,
    watcher: u32,
    fd: Option<Descriptor>,
    /// The socket's address family.
    family: i32,
    /// The socket reports a datagram's real length, so that a faster call can receive it.
    quick: bool,
    /// The front end wants one event when it can send.
    wants_writable_event: bool,
    connected: bool,
    receiving: Receiving,
    queue: List,
    done: List,
    /// Bytes in both lists.
    queued_bytes: usize,
}

/// Whether a handle receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Receiving {
    No,
    Yes,
    /// Receives, but that alone does not make the handle active.
    Quietly,
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

impl Engine {
    /// Makes a UDP handle. If a family is given, makes its socket right away.
    pub fn udp_init(&mut self, token: Token, family: Option<i32>) -> Result<Key, Errno> {
        let socket = family.map(socket::udp_socket).transpose()?;
        let watcher = self.driver.add(-1, Owner::Udp(0))?;
        let udp = Udp {
            handle: 0,
            watcher,
            fd: None,
            family: 0,
            quick: false,
            wants_writable_event: false,
            connected: false,
            receiving: Receiving::No,
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

    fn is_receiving(&self, index: u32) -> bool {
        self.udp(index).receiving != Receiving::No
    }

    fn udp(&self, index: u32) -> &Udp {
        &self.udps.slab[index]
    }

    fn udp_mut(&mut self, index: u32) -> &mut Udp {
        &mut self.udps.slab[index]
    }

    /// The UDP handle of a key, if it is one and is not closing.
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

    /// Shares the handle's socket, which stays open until the share is dropped.
    pub fn udp_share_fd(&mut self, key: Key) -> Result<SharedFd, Errno> {
        let index = self.open_udp(key).map_err(|_| Errno::EBADF)?;
        let fd = self.udp_mut(index).fd.as_mut();
        fd.ok_or(Errno::EBADF)?.share()
    }

    fn udp_raw_fd(&self, index: u32) -> Result<RawFd, Errno> {
        let fd = self.udp(index).fd.as_ref();
        fd.map(Descriptor::raw).ok_or(Errno::EBADF)
    }

    /// Makes the handle active if it receives or has sends, and inactive otherwise.
    fn udp_update_active(&mut self, index: u32) {
        let udp = self.udp(index);
        let has_sends = !udp.queue.is_empty() || !udp.done.is_empty();
        let active = udp.receiving == Receiving::Yes || has_sends;
        self.handles.set_active(udp.handle, active);
    }

    /// Closes a handle's socket. The closing phase cancels its sends.
    pub(crate) fn release_udp(&mut self, handle: u32, index: u32) {
        self.driver.remove(self.udp(index).watcher);
        self.handles.set_active(handle, false);
        self.end_turn_of_udp(index);
        let udp = self.udp_mut(index);
        udp.receiving = Receiving::No;
        udp.connected = false;
        udp.fd = None;
    }

    /// Cancels the next send of a closed handle. After the last one, removes the handle's state and
    /// returns `None`.
    pub(crate) fn cancel_next_send(&mut self, index: u32) -> Option<Event> {
        self.fail_sends(index, Errno::ECANCELED);
        let event = self.report_send(index);
        if event.is_none() {
            self.udps.slab.remove(index);
        }
        event
    }
}
