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
pub(crate) use turn::UdpCursor;

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
    socket: Option<Socket>,
    /// The front end wants one event when it can send.
    wants_writable_event: bool,
    receiving: Receiving,
    queue: List,
    done: List,
    /// Bytes in both lists.
    queued_bytes: usize,
}

/// The socket of a handle.
#[derive(Debug)]
struct Socket {
    fd: Descriptor,
    family: i32,
    /// It reports a datagram's real length, so that a faster call can receive it.
    is_quick: bool,
    is_connected: bool,
}

impl Udp {
    /// Its socket, or -1.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.socket.as_ref().map_or(-1, |socket| socket.fd.raw())
    }

    fn is_connected(&self) -> bool {
        (self.socket.as_ref()).is_some_and(|socket| socket.is_connected)
    }

    /// Whether sends have not been reported yet.
    fn has_sends(&self) -> bool {
        !self.queue.is_empty() || !self.done.is_empty()
    }

    /// How many sends are not reported yet, and their bytes.
    pub(crate) fn sends(&self) -> (u32, usize) {
        (self.queue.len() + self.done.len(), self.queued_bytes)
    }
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
    pub(crate) slab: Slab<Udp>,
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
            socket: None,
            wants_writable_event: false,
            receiving: Receiving::No,
            queue: List::EMPTY,
            done: List::EMPTY,
            queued_bytes: 0,
        };
        let inserted = self.udps.slab.insert(udp).and_then(|udp| {
            let key = self.make_handle(Kind::Udp(udp.index), token);
            key.map(|key| (udp.index, key))
                .inspect_err(|_| self.udps.slab.remove(udp.index))
        });
        let (udp, key) = inserted.inspect_err(|_| self.driver.remove(watcher))?;
        self.udps.slab[udp].handle = key.index;
        self.driver.set_owner(watcher, Owner::Udp(udp));
        if let (Some(socket), Some(family)) = (socket, family)
            && let Err(error) = self.udp_attach(udp, socket, family)
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
        let socket = self.udp_mut(index).socket.as_mut();
        socket.ok_or(Errno::EBADF)?.fd.share()
    }

    fn udp_socket(&self, index: u32) -> Result<&Socket, Errno> {
        self.udp(index).socket.as_ref().ok_or(Errno::EBADF)
    }

    fn udp_raw_fd(&self, index: u32) -> Result<RawFd, Errno> {
        self.udp_socket(index).map(|socket| socket.fd.raw())
    }

    /// Makes the handle active if it receives or has sends, and inactive otherwise.
    fn udp_update_active(&mut self, index: u32) {
        let udp = self.udp(index);
        let active = udp.receiving == Receiving::Yes || udp.has_sends();
        self.handles.set_active(udp.handle, active);
    }

    /// Closes a handle's socket. The closing phase cancels its sends.
    pub(crate) fn release_udp(&mut self, handle: u32, index: u32) {
        self.driver.remove(self.udp(index).watcher);
        self.handles.set_active(handle, false);
        self.end_turn_of_udp(index);
        let udp = self.udp_mut(index);
        udp.receiving = Receiving::No;
        udp.socket = None;
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
