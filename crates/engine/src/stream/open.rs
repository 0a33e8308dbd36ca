//! Opening a stream: its descriptor, and the directions in which it is used.

use super::Engine;
use crate::handle::HandleKind;
use crate::slab::{Key, NIL};
use crate::tcp;
use blacklight_sys::fd::{self, Descriptor};
use blacklight_sys::stream::Transport;
use blacklight_sys::{Errno, socket};

impl Engine {
    /// As [`stream_attach_socket`], for a descriptor of any kind.
    ///
    /// [`stream_attach_socket`]: Engine::stream_attach_socket
    pub(crate) fn stream_attach(
        &mut self,
        stream: u32,
        fd: Descriptor,
    ) -> Result<(), (Errno, Descriptor)> {
        let transport = match Transport::of(fd.raw()) {
            Ok(transport) => transport,
            Err(error) => return Err((error, fd)),
        };
        let follows_edges = transport == Transport::Socket
            && self.streams.slab[stream].kind == HandleKind::Tcp
            && socket::is_tcp(fd.raw());
        self.stream_attach_socket(stream, fd)?;
        self.streams.slab[stream].transport = transport;
        if follows_edges {
            self.driver.follow_edges(self.streams.slab[stream].watcher);
        }
        Ok(())
    }

    /// Gives a stream its descriptor, which is a socket and must not be blocking. On error the
    /// descriptor comes back.
    pub(crate) fn stream_attach_socket(
        &mut self,
        stream: u32,
        fd: Descriptor,
    ) -> Result<(), (Errno, Descriptor)> {
        let entry = &self.streams.slab[stream];
        let attached = match entry.fd {
            Some(_) => Err(Errno::EBUSY),
            None => self.driver.attach(entry.watcher, fd.raw()),
        };
        if let Err(error) = attached {
            return Err((error, fd));
        }
        if self.streams.slab[stream].kind == HandleKind::Tcp {
            let keepalive = self.known_extra(stream).and_then(|extra| extra.keepalive);
            // Failing to set an option must not fail the connection.
            let _ = tcp::apply_options(fd.raw(), self.streams.slab[stream].nodelay, keepalive);
        }
        let stream = &mut self.streams.slab[stream];
        stream.transport = Transport::Socket;
        stream.fd = Some(fd);
        Ok(())
    }

    /// Opens a stream on a descriptor that the program made, in the directions given. It
    /// becomes non-blocking. On error the program keeps it.
    ///
    /// The descriptor may be the one that the stream has already, which makes a bound socket
    /// readable and writable.
    pub fn stream_open(
        &mut self,
        key: Key,
        fd: Descriptor,
        readable: bool,
        writable: bool,
    ) -> Result<(), (Errno, Descriptor)> {
        let checked = self.open_stream(key).and_then(|stream| {
            if self.driver.is_taken(fd.raw(), NIL) {
                return Err(Errno::EEXIST);
            }
            fd::set_nonblocking(fd.raw(), true)?;
            Ok(stream)
        });
        let stream = match checked {
            Ok(stream) => stream,
            Err(error) => return Err((error, fd)),
        };
        if self.raw_fd(stream) == Ok(fd.raw()) {
            // The stream owns it already.
            fd.release();
            self.stream_mut(stream).open(readable, writable);
            return Ok(());
        }
        self.stream_attach(stream, fd)?;
        let stream = self.stream_mut(stream);
        stream.close();
        stream.open(readable, writable);
        Ok(())
    }

    /// As [`stream_open`](Engine::stream_open), in the directions that the descriptor was opened
    /// for.
    pub fn stream_open_as_it_is(
        &mut self,
        key: Key,
        fd: Descriptor,
    ) -> Result<(), (Errno, Descriptor)> {
        match fd::directions(fd.raw()) {
            Ok((readable, writable)) => self.stream_open(key, fd, readable, writable),
            Err(error) => Err((error, fd)),
        }
    }

    /// Whether the stream can be read from.
    pub fn is_readable(&self, key: Key) -> bool {
        self.open_stream(key)
            .is_ok_and(|stream| self.stream(stream).input.is_open())
    }

    /// Whether the stream can be written to.
    pub fn is_writable(&self, key: Key) -> bool {
        self.open_stream(key)
            .is_ok_and(|stream| self.stream(stream).output.is_open)
    }

    /// Makes the stream readable, for a front end that knows that its descriptor is.
    pub fn set_readable(&mut self, key: Key) {
        if let Ok(stream) = self.open_stream(key) {
            self.stream_mut(stream).open(true, false);
        }
    }

    /// Makes the descriptor blocking or not.
    pub fn stream_set_blocking(&mut self, key: Key, blocking: bool) -> Result<(), Errno> {
        let stream = self.open_stream(key).map_err(|_| Errno::EBADF)?;
        if blocking {
            // An edge-triggered stream has to read until `EAGAIN`; here that read would block.
            self.driver.follow_levels(self.stream(stream).watcher);
        }
        fd::set_nonblocking(self.raw_fd(stream)?, !blocking)?;
        if let Some(extra) = self.known_extra(stream) {
            extra.backlog.may_block = blocking;
        }
        Ok(())
    }
}
