//! The calls on sockets that the simulated kernel has a say in.
//!
//! Streams and UDP handles read, write, accept, connect, send and receive through the driver. On a real kernel that is the system call
//! and nothing else. The simulated kernel may refuse a call, or do a part of it only ([`Sim`](crate::Sim)).

use super::Driver;
use crate::poller::Call;
use blacklight_sys::buffer::Space;
use blacklight_sys::fd::Descriptor;
use blacklight_sys::socket::Address;
use blacklight_sys::{Errno, RawFd, socket};

impl Driver {
    /// Makes a call for as much of `len` as the kernel permits.
    #[inline]
    fn call<T>(
        &mut self,
        call: Call,
        fd: RawFd,
        len: usize,
        make: impl FnOnce(usize) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        make(self.poller.admit(call, fd, len)?)
    }

    /// Accepts a connection.
    pub(crate) fn accept(&mut self, fd: RawFd) -> Result<Descriptor, Errno> {
        self.call(Call::Accept, fd, 1, |_| socket::accept(fd))
    }

    /// Begins to connect a socket; whether it is connected already.
    pub(crate) fn connect(&mut self, fd: RawFd, address: &Address) -> Result<bool, Errno> {
        self.call(Call::Connect, fd, 1, |_| socket::connect(fd, address))
    }

    /// Reads bytes by `read`, which gets the room that it may fill.
    #[inline]
    pub(crate) fn read<'a>(
        &mut self,
        fd: RawFd,
        room: Space<'a>,
        read: impl FnOnce(Space<'a>) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        self.call(Call::Read, fd, room.len(), |len| read(room.limited_to(len)))
    }

    /// Writes bytes by `write`, which gets how many of `len` it may write.
    #[inline]
    pub(crate) fn write(
        &mut self,
        fd: RawFd,
        len: usize,
        write: impl FnOnce(usize) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        self.call(Call::Write, fd, len, write)
    }

    /// Receives datagrams by `receive`, which gets how many of `count` it may receive.
    #[inline]
    pub(crate) fn receive<T>(
        &mut self,
        fd: RawFd,
        count: usize,
        receive: impl FnOnce(usize) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.call(Call::Receive, fd, count, receive)
    }

    /// Sends datagrams by `send`, which gets how many of `count` it may send.
    #[inline]
    pub(crate) fn send(
        &mut self,
        fd: RawFd,
        count: usize,
        send: impl FnOnce(usize) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        self.call(Call::Send, fd, count, send)
    }
}
