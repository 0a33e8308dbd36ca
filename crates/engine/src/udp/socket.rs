//! The socket of a UDP handle: its creation, its addresses and its options.
//!
//! A handle has no socket until it needs one. It then makes one of the family that the operation
//! needs, bound to all interfaces and a port of the kernel's choice. A socket that the program
//! supplies may be bound or not: the engine does not record which, and relies on the kernel's
//! errors.

use super::{Engine, Socket};
use crate::slab::{Key, NIL};
use blacklight_sys::datagram::{self, UdpOption};
use blacklight_sys::fd::{self, Descriptor};
use blacklight_sys::multicast::{self, Group, Interface};
use blacklight_sys::socket::{self, AF_INET, AF_INET6, Address};
use blacklight_sys::{Errno, RawFd};

/// Whether other sockets may bind to a socket's address.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct UdpReuse {
    /// Other sockets with this option may, and the last one to do so receives.
    pub address: bool,
    /// Other sockets with this option may, and the datagrams are distributed among them.
    pub port: bool,
}

/// How to bind a UDP socket.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct UdpBind {
    /// Receives IPv6 only, where the default is both.
    pub ipv6_only: bool,
    /// Whether other sockets may bind to the address.
    pub reuse: UdpReuse,
    /// Reports errors that sent datagrams meet with on their way.
    pub errors: bool,
}

/// A UDP socket; `EINVAL` for families other than the Internet's.
pub(super) fn udp_socket(family: i32) -> Result<Descriptor, Errno> {
    match family {
        AF_INET | AF_INET6 => socket::socket(family, socket::SOCK_DGRAM),
        _ => Err(Errno::EINVAL),
    }
}

impl UdpReuse {
    fn apply(self, fd: RawFd, family: i32) -> Result<(), Errno> {
        if self.address {
            datagram::set_udp_option(fd, family, UdpOption::ReuseAddress, 1)?;
        }
        if self.port {
            datagram::set_udp_option(fd, family, UdpOption::ReusePort, 1)?;
        }
        Ok(())
    }
}

/// A number that must fit into one byte.
fn byte(value: i32) -> Result<i32, Errno> {
    u8::try_from(value)
        .map(i32::from)
        .map_err(|_| Errno::EINVAL)
}

impl Engine {
    /// Gives a new socket to a handle that has none.
    pub(super) fn udp_attach(
        &mut self,
        index: u32,
        fd: Descriptor,
        family: i32,
    ) -> Result<(), Errno> {
        let watcher = self.udp(index).watcher;
        self.driver.attach(watcher, fd.raw())?;
        self.udp_mut(index).socket = Some(Socket {
            fd,
            family,
            is_quick: true,
            is_connected: false,
        });
        Ok(())
    }

    fn udp_ensure_socket(&mut self, index: u32, family: i32) -> Result<(), Errno> {
        if self.udp(index).socket.is_some() {
            return Ok(());
        }
        let socket = udp_socket(family)?;
        self.udp_attach(index, socket, family)
    }

    /// If the handle has no socket, makes one, bound to a port of the kernel's choice.
    pub(super) fn udp_ensure_bound(
        &mut self,
        index: u32,
        family: i32,
        reuse_address: bool,
    ) -> Result<(), Errno> {
        if self.udp(index).socket.is_some() {
            return Ok(());
        }
        let options = UdpBind {
            reuse: UdpReuse {
                address: reuse_address,
                port: false,
            },
            ..UdpBind::default()
        };
        self.bind_udp(index, &datagram::unspecified(family)?, options)
    }

    /// Opens a handle on a socket that the program made. It becomes non-blocking. `EBUSY` if
    /// the handle has one, `EEXIST` if another handle is using it. On error the program keeps
    /// the socket.
    pub fn udp_open(
        &mut self,
        key: Key,
        socket: Descriptor,
        reuse: UdpReuse,
    ) -> Result<(), (Errno, Descriptor)> {
        let raw = socket.raw();
        let checked = self.open_udp(key).and_then(|index| {
            if self.udp(index).socket.is_some() {
                return Err(Errno::EBUSY);
            }
            if self.driver.is_taken(raw, NIL) {
                return Err(Errno::EEXIST);
            }
            fd::set_nonblocking(raw, true)?;
            reuse.apply(raw, 0)?;
            self.driver.attach(self.udp(index).watcher, raw)?;
            Ok(index)
        });
        let index = match checked {
            Ok(index) => index,
            Err(error) => return Err((error, socket)),
        };
        self.udp_mut(index).socket = Some(Socket {
            fd: socket,
            family: datagram::family(raw).unwrap_or(0),
            is_quick: datagram::tells_real_length(raw),
            is_connected: socket::peer_address(raw).is_ok(),
        });
        Ok(())
    }

    /// Binds the handle. If it has no socket, makes one of the address' family first.
    pub fn udp_bind(&mut self, key: Key, address: &Address, options: UdpBind) -> Result<(), Errno> {
        let index = self.open_udp(key)?;
        if options.ipv6_only && address.family() != AF_INET6 {
            return Err(Errno::EINVAL);
        }
        self.bind_udp(index, address, options)
    }

    fn bind_udp(&mut self, index: u32, address: &Address, options: UdpBind) -> Result<(), Errno> {
        let family = address.family();
        self.udp_ensure_socket(index, family)?;
        let fd = self.udp_raw_fd(index)?;
        if options.errors {
            datagram::set_udp_option(fd, family, UdpOption::ReceiveErrors, 1)?;
        }
        options.reuse.apply(fd, family)?;
        if options.ipv6_only {
            datagram::set_udp_option(fd, family, UdpOption::Ipv6Only, 1)?;
        }
        match socket::bind(fd, address) {
            // The address is of another family than the socket.
            Err(Errno::EAFNOSUPPORT) => Err(Errno::EINVAL),
            bound => bound,
        }
    }

    /// Connects the handle: all sends go to this address, and the socket receives from no other.
    /// `EISCONN` if it is connected.
    pub fn udp_connect(&mut self, key: Key, address: &Address) -> Result<(), Errno> {
        let index = self.open_udp(key)?;
        if self.udp(index).is_connected() {
            return Err(Errno::EISCONN);
        }
        self.udp_ensure_bound(index, address.family(), false)?;
        self.change_peer(index, true, |fd| socket::connect(fd, address).map(drop))
    }

    /// Ends the connection. `ENOTCONN` if there is none.
    pub fn udp_disconnect(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.open_udp(key)?;
        if !self.udp(index).is_connected() {
            return Err(Errno::ENOTCONN);
        }
        self.change_peer(index, false, datagram::disconnect)
    }

    fn change_peer(
        &mut self,
        index: u32,
        is_connected: bool,
        change: impl FnOnce(RawFd) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let socket = self.udp_mut(index).socket.as_mut().ok_or(Errno::EBADF)?;
        change(socket.fd.raw())?;
        socket.is_connected = is_connected;
        Ok(())
    }

    /// Whether the handle is connected, so that sends must not name a destination.
    pub fn udp_is_connected(&self, key: Key) -> bool {
        self.open_udp(key)
            .is_ok_and(|index| self.udp(index).is_connected())
    }

    /// The socket's address family, once there is a socket.
    pub fn udp_family(&self, key: Key) -> Option<i32> {
        let socket = self.udp_socket(self.open_udp(key).ok()?).ok()?;
        Some(socket.family)
    }

    /// The handle's own address, or that of its peer. `EBADF` without a socket, `ENOTCONN`
    /// without a peer.
    pub fn udp_address(&self, key: Key, peer: bool) -> Result<Address, Errno> {
        let fd = self.udp_fd(key)?;
        match peer {
            true => socket::peer_address(fd),
            false => socket::local_address(fd),
        }
    }

    /// Joins a multicast group or leaves it. If the handle has no socket, makes one first.
    pub fn udp_set_membership(&mut self, key: Key, group: Group, join: bool) -> Result<(), Errno> {
        self.udp_prepare_membership(key, matches!(group, Group::V6 { .. }))?;
        multicast::set_membership(self.udp_fd(key)?, group, join)
    }

    /// If the handle has no socket, makes one that can join groups, bound to a port of the kernel's
    /// choice that other sockets may share.
    pub fn udp_prepare_membership(&mut self, key: Key, v6: bool) -> Result<(), Errno> {
        let index = self.open_udp(key)?;
        let family = if v6 { AF_INET6 } else { AF_INET };
        self.udp_ensure_bound(index, family, true)
    }

    /// Sets the interface for outgoing multicast; `None` leaves the choice to the kernel.
    pub fn udp_set_multicast_interface(
        &mut self,
        key: Key,
        interface: Option<Interface>,
    ) -> Result<(), Errno> {
        let fd = self.udp_fd(key)?;
        let any = match self.udp_family(key) {
            Some(AF_INET6) => Interface::V6(0),
            _ => Interface::V4(std::net::Ipv4Addr::UNSPECIFIED),
        };
        multicast::set_multicast_interface(fd, interface.unwrap_or(any))
    }

    /// Sets an option of the socket. `EBADF` without one.
    fn set_udp_option(&mut self, key: Key, option: UdpOption, value: i32) -> Result<(), Errno> {
        let fd = self.udp_fd(key)?;
        let family = self.udp_family(key).unwrap_or(AF_INET);
        datagram::set_udp_option(fd, family, option, value)
    }

    /// Sets how many hops datagrams may take, from 1 to 255.
    pub fn udp_set_ttl(&mut self, key: Key, ttl: i32) -> Result<(), Errno> {
        match byte(ttl)? {
            0 => Err(Errno::EINVAL),
            ttl => self.set_udp_option(key, UdpOption::Ttl, ttl),
        }
    }

    /// Sets how many hops multicast may take, up to 255.
    pub fn udp_set_multicast_ttl(&mut self, key: Key, ttl: i32) -> Result<(), Errno> {
        self.set_udp_option(key, UdpOption::MulticastTtl, byte(ttl)?)
    }

    /// Sets whether members on this machine receive its own multicast: no if `on` is 0, yes for any
    /// other byte.
    pub fn udp_set_multicast_loop(&mut self, key: Key, on: i32) -> Result<(), Errno> {
        self.set_udp_option(key, UdpOption::MulticastLoop, byte(on)?.min(1))
    }

    /// Sets whether the socket may send to broadcast addresses.
    pub fn udp_set_broadcast(&mut self, key: Key, on: bool) -> Result<(), Errno> {
        self.set_udp_option(key, UdpOption::Broadcast, i32::from(on))
    }
}
