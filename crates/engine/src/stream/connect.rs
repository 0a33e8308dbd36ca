//! Connecting, listening and accepting.
//!
//! A server takes a connection from the kernel before it notifies its front end, and takes no other
//! until the front end has accepted the first. Where connections come fast, a server takes several
//! in a turn, one after the other.

use super::turn::{Step, Stepped};
use super::{Arrivals, Engine};
use crate::driver::Pending;
use crate::event::{Event, Token};
use crate::handle::HandleKind;
use crate::progress::Budget;
use crate::readiness::{Interest, Readiness};
use crate::slab::{Key, NIL};
use crate::udp::UdpReuse;
use blacklight_sys::fd::{self, Descriptor};
use blacklight_sys::socket::{self, Address};
use blacklight_sys::{Errno, RawFd};

/// How a server takes pending connections.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// The most connections that the server might take in its last turn, and the number of that
    /// turn.
    at_once: u32,
    turn: u64,
    /// The most connections that the server may take in any turn.
    limit: u32,
    /// The descriptor is blocking: accept(2) would wait for a connection.
    pub(super) may_block: bool,
    /// The listening socket is a TCP socket, whatever the kind of the handle.
    is_tcp: bool,
    /// The front end has not accepted the pending connection and wants its event once more.
    offers_again: bool,
}

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog {
            at_once: 0,
            turn: 0,
            limit: Budget::MAX,
            may_block: false,
            is_tcp: false,
            offers_again: false,
        }
    }
}

/// The outcome for a pending connection.
enum Arrival {
    Accepted(Descriptor),
    /// All pending connections were closed for want of a descriptor.
    TurnedAway(Errno),
}

impl Engine {
    /// Begins a connect request with the outcome of connect(2): connected, in progress or failed.
    /// The result is reported later.
    pub(crate) fn begin_connect(
        &mut self,
        index: u32,
        token: Token,
        outcome: Result<bool, Errno>,
    ) -> Result<(), Errno> {
        let stream = self.stream_mut(index);
        if stream.is_connecting() {
            return Err(Errno::EALREADY);
        }
        stream.connect.put(token);
        let watcher = stream.watcher;
        if outcome != Ok(true) {
            // Readiness that the kernel has reported before does not hold any more. For a socket
            // that is connected already it does, and the kernel will not report it again.
            self.driver.all_used_up(watcher);
        }
        self.requests.begin();
        let outcome = match outcome {
            Ok(false) => self
                .driver
                .want(watcher, Interest::WRITABLE)
                .map(|()| false),
            outcome => outcome,
        };
        if outcome != Ok(false) {
            self.stream_mut(index).delayed_error = outcome.err();
            // The outcome is known, so there is nothing to wait for, not even for writes that were
            // waiting for room.
            self.driver.unwant(watcher, Interest::WRITABLE);
            self.driver.feed(watcher, Pending::Fed);
        }
        Ok(())
    }

    /// Finishes connecting. On failure the writes that waited for it fail too.
    pub(super) fn finish_connect(&mut self, index: u32, ready: Readiness) -> Stepped {
        let has_failed = ready.has_failed() || !self.driver.tells_errors();
        let result = match self.stream_mut(index).delayed_error.take() {
            Some(error) => Err(error),
            None if has_failed => self.raw_fd(index).and_then(socket::take_error),
            None => Ok(()),
        };
        if result.is_err_and(|error| error == socket::EINPROGRESS) {
            self.driver
                .used_up(self.stream(index).watcher, Interest::WRITABLE);
            return (None, None);
        }
        let Some(token) = self.stream_mut(index).connect.take() else {
            return (None, None);
        };
        let stream = self.stream_mut(index);
        if result.is_err() || stream.output.queue.is_empty() {
            let (watcher, has_ended) = (stream.watcher, stream.is_shutting_down());
            self.driver.unwant(watcher, Interest::WRITABLE);
            if has_ended && result.is_ok() {
                self.driver.feed(watcher, Pending::Fed);
            }
        } else {
            self.await_room(index);
        }
        if result.is_err() {
            self.fail_writes(index, Errno::ECANCELED);
        }
        self.requests.end();
        let reports = Step::Report(self.stream(index).output.done.len());
        let next = result.is_err().then_some(reports);
        (Some(Event::Connect(token, result)), next)
    }

    /// Listens for connections; [`Event::Connection`] follows for each. Without a backlog, the socket
    /// listens already, and keeps its own. `EINVAL` if the stream has
    /// no address to connect to.
    pub fn stream_listen(
        &mut self,
        key: Key,
        backlog: impl Into<Option<i32>>,
    ) -> Result<(), Errno> {
        let index = self.open_stream(key)?;
        // Every attempt fails with the same error until the handle is bound to another address.
        if self.stream(index).kind == HandleKind::Tcp
            && let Some(error) = self.stream(index).delayed_error
        {
            return Err(error);
        }
        match self.stream(index).kind {
            HandleKind::Tcp => self.tcp_ensure_socket(index, socket::AF_INET)?,
            HandleKind::Pipe if self.stream(index).arrivals != Arrivals::BytesAndHandles => {}
            _ => return Err(Errno::EINVAL),
        }
        let fd = self.raw_fd(index).map_err(|_| Errno::EINVAL)?;
        let extra = self.stream_extra(index)?;
        extra.backlog.is_tcp = socket::is_tcp(fd);
        extra.backlog.may_block = fd::may_wait(fd);
        if let Some(backlog) = backlog.into() {
            socket::listen(fd, backlog)?;
        }
        self.keep_reserve();
        let stream = self.stream(index);
        let (handle, watcher) = (stream.handle, stream.watcher);
        self.driver.follow_levels(watcher);
        self.driver.want(watcher, Interest::READABLE)?;
        self.stream_mut(index).arrivals = Arrivals::Connections;
        self.handles.set_active(handle, true);
        Ok(())
    }

    /// Takes a connection from the kernel and notifies the front end.
    pub(super) fn accept_next(&mut self, index: u32, budget: Budget) -> Stepped {
        let again = Some(Step::Accept(budget));
        let Ok(fd) = self.raw_fd(index) else {
            return (None, None);
        };
        if self.stream(index).accepted.is_some() {
            let extra = self.known_extra(index);
            if extra.is_some_and(|extra| std::mem::take(&mut extra.backlog.offers_again)) {
                let token = self.handles[self.stream(index).handle].token;
                return (Some(Event::Connection(token, Ok(()))), again);
            }
            // The front end has not accepted the last connection yet.
            let watcher = self.stream(index).watcher;
            self.driver.unwant(watcher, Interest::READABLE);
            return (None, None);
        }
        let token = self.handles[self.stream(index).handle].token;
        let event = match self.accept_or_turn_away(fd) {
            Ok(Arrival::Accepted(accepted)) => {
                self.stream_mut(index).accepted = Some(accepted);
                return (Some(Event::Connection(token, Ok(()))), again);
            }
            Ok(Arrival::TurnedAway(error)) => Some(Event::TurnedAway(token, error)),
            // No connection, or one that was aborted: the poller will report the next one.
            Err(Errno::EAGAIN | Errno::ECONNABORTED) => None,
            Err(error) => return (Some(Event::Connection(token, Err(error))), None),
        };
        if let Some(extra) = self.known_extra(index) {
            extra.backlog.at_once = 0;
        }
        (event, None)
    }

    /// How many connections a server may take in this turn. The number doubles with each consecutive
    /// turn with connections, and begins at one, since accept(2) without a connection is a wasted
    /// call.
    pub(super) fn connections_at_once(&mut self, index: u32) -> Budget {
        let turn = self.driver.loop_count();
        let Some(extra) = self.known_extra(index) else {
            return Budget::at_most(1);
        };
        let backlog = &mut extra.backlog;
        let grows = !backlog.may_block && turn - backlog.turn <= 1;
        backlog.at_once = match grows {
            true => (2 * backlog.at_once).clamp(1, backlog.limit),
            false => 1,
        };
        backlog.turn = turn;
        Budget::at_most(backlog.at_once)
    }

    /// Sets whether a TCP server may take several connections in one turn, where they come fast.
    /// Turn it off where processes share a listening socket, so that the load is even.
    pub fn tcp_simultaneous_accepts(&mut self, key: Key, enabled: bool) -> Result<(), Errno> {
        let index = self.open_stream(key)?;
        self.stream_extra(index)?.backlog.limit = match enabled {
            true => Budget::MAX,
            false => 1,
        };
        Ok(())
    }

    fn accept(&mut self, fd: RawFd) -> Result<Descriptor, Errno> {
        self.driver.accept(fd)
    }

    /// Begins to connect a socket.
    pub(crate) fn connect(&mut self, fd: RawFd, address: &Address) -> Result<bool, Errno> {
        self.driver.connect(fd, address)
    }

    fn accept_or_turn_away(&mut self, fd: RawFd) -> Result<Arrival, Errno> {
        match self.accept(fd) {
            Err(error @ (Errno::EMFILE | Errno::ENFILE)) => self.turn_away(fd, error),
            accepted => accepted.map(Arrival::Accepted),
        }
    }

    /// Takes a connection from the kernel unless one is pending. `EAGAIN` if there is none:
    /// [`Event::Connection`] follows when there is. `EMFILE` or `ENFILE` if connections have been
    /// closed, since there are no descriptors left.
    pub fn stream_prepare_accept(&mut self, server: Key) -> Result<(), Errno> {
        let index = self.open_stream(server)?;
        let stream = self.stream(index);
        if !stream.is_listening() {
            return Err(Errno::EINVAL);
        }
        if stream.accepted.is_none() {
            let fd = self.raw_fd(index)?;
            match self.accept_or_turn_away(fd) {
                Ok(Arrival::Accepted(accepted)) => {
                    self.stream_mut(index).accepted = Some(accepted);
                }
                Err(Errno::ECONNABORTED) => return Err(Errno::EAGAIN),
                Ok(Arrival::TurnedAway(error)) | Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Requests [`Event::Connection`] once more if the front end has not accepted the pending
    /// connection.
    pub fn stream_offer_again(&mut self, server: Key) -> Result<(), Errno> {
        let index = self.open_stream(server)?;
        let stream = self.stream(index);
        if stream.is_listening() && stream.accepted.is_some() {
            self.driver.feed(stream.watcher, Pending::Fed);
            self.stream_extra(index)?.backlog.offers_again = true;
        }
        Ok(())
    }

    /// After the server's callback: takes the next connection, within the budget. If the callback
    /// has not accepted the last one, the server stops waiting for more.
    pub(super) fn accept_more(&mut self, index: u32, mut budget: Budget) -> Stepped {
        let stream = self.stream(index);
        if stream.accepted.is_some() {
            self.driver.unwant(stream.watcher, Interest::READABLE);
            return (None, None);
        }
        budget.spend(1);
        match budget.is_spent() {
            true => (None, None),
            false => self.accept_next(index, budget),
        }
    }

    fn keep_reserve(&mut self) {
        if self.streams.reserve.is_none() {
            self.streams.reserve = fd::open_reserve().ok();
        }
    }

    /// Closes all pending connections when there are no descriptors left, as `why` says. Left
    /// pending, they would keep the loop busy and their peers waiting. So the descriptor held in
    /// reserve is freed, and each connection accepted in its place and closed. The kernel reports
    /// the lack of descriptors before it looks for a connection, so there may be none.
    #[cold]
    fn turn_away(&mut self, fd: RawFd, why: Errno) -> Result<Arrival, Errno> {
        if self.streams.reserve.take().is_none() {
            return Err(why);
        }
        let mut arrival = None;
        let result = loop {
            match self.accept(fd) {
                Ok(connection) => {
                    drop(connection);
                    arrival = Some(Arrival::TurnedAway(why));
                    // Another accept(2) might block.
                    if fd::may_wait(fd) {
                        break Errno::EAGAIN;
                    }
                }
                Err(error) => break error,
            }
        };
        self.keep_reserve();
        arrival.ok_or(result)
    }

    /// Gives the pending connection or passed descriptor of `server` to `client`. `EAGAIN` if none
    /// is pending.
    pub fn stream_accept(&mut self, server: Key, client: Key) -> Result<(), Errno> {
        let server = self.open_stream(server)?;
        if self.stream(server).accepted.is_none() {
            return Err(Errno::EAGAIN);
        }
        if self.kind(client) == Some(HandleKind::Udp) {
            let accepted = self.take_accepted(server)?;
            let opened = self.udp_open(client, accepted, UdpReuse::default());
            self.next_accepted(server);
            return opened.map_err(|(error, _)| error);
        }
        let client = self.open_stream(client)?;
        let accepted = self.take_accepted(server)?;
        let (is_connection, transport) = {
            let server = self.stream(server);
            (server.is_listening(), server.transport)
        };
        let is_tcp = (self.known_extra(server)).is_some_and(|extra| extra.backlog.is_tcp);
        let attached = match is_connection {
            // A connection is a socket of the same kind as its server.
            true => self.stream_attach_socket(client, accepted).map(|()| {
                let client = self.stream_mut(client);
                client.transport = transport;
                // Only TCP handles read until there is nothing left.
                if is_tcp && client.kind == HandleKind::Tcp {
                    let watcher = client.watcher;
                    self.driver.follow_edges(watcher);
                }
            }),
            false => self.stream_attach(client, accepted),
        };
        let attached = attached.map_err(|(error, _)| error);
        if attached.is_ok() {
            self.stream_mut(client).open(true, true);
        }
        self.next_accepted(server);
        attached
    }

    /// Takes the pending connection or descriptor.
    pub(crate) fn take_accepted(&mut self, server: u32) -> Result<Descriptor, Errno> {
        self.stream_mut(server).accepted.take().ok_or(Errno::EAGAIN)
    }

    /// Makes the next passed descriptor the pending one. If there is none, waits for more.
    pub(crate) fn next_accepted(&mut self, server: u32) {
        let next = self
            .known_extra(server)
            .and_then(|extra| extra.passed.pop_front());
        let stream = self.stream_mut(server);
        stream.accepted = next;
        if stream.accepted.is_none() && (stream.is_listening() || stream.input.is_reading()) {
            let watcher = stream.watcher;
            // The descriptor was watched before, so this needs no memory.
            let _ = self.driver.want(watcher, Interest::READABLE);
        }
    }

    /// How many descriptors that came over a pipe are pending, and the first of them.
    pub fn pending_descriptors(&self, key: Key) -> Result<(usize, Option<RawFd>), Errno> {
        let stream = self.stream(self.open_stream(key)?);
        let first = stream.accepted.as_ref().map(Descriptor::raw);
        let behind = match stream.extra {
            NIL => 0,
            extra => self.streams.extras[extra].passed.len(),
        };
        Ok((behind + usize::from(first.is_some()), first))
    }

    /// The address of a connected or bound stream, or that of its peer.
    pub fn stream_address(&self, key: Key, peer: bool) -> Result<Address, Errno> {
        let index = self.open_stream(key).map_err(|_| Errno::EBADF)?;
        let stream = self.stream(index);
        if stream.kind == HandleKind::Tcp
            && let Some(error) = stream.delayed_error
        {
            return Err(error);
        }
        let fd = self.raw_fd(index)?;
        match peer {
            true => socket::peer_address(fd),
            false => socket::local_address(fd),
        }
    }
}
