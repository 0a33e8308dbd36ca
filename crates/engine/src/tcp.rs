//! TCP handles: sockets, binding, connecting and options. The rest is in `stream/`.

use crate::engine::Engine;
use crate::event::Token;
use crate::handle::HandleKind;
use crate::slab::Key;
use blacklight_sys::fd::Descriptor;
use blacklight_sys::socket::{self, Address, TcpOption};
use blacklight_sys::{Errno, RawFd};

/// Keep-alive: idle time, interval and number of probes, in seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// How long a connection is idle before it is probed.
    pub idle: u32,
    /// How long to wait between probes.
    pub interval: u32,
    /// How many probes may stay unanswered.
    pub count: u32,
}

impl KeepAlive {
    /// libuv's values, in place of impossible ones that are set before there is a socket.
    const DEFAULT: KeepAlive = KeepAlive {
        idle: 60,
        interval: 1,
        count: 10,
    };

    /// The three values; `EINVAL` if one is out of range.
    fn values(self) -> Result<[i32; 3], Errno> {
        let values = [self.idle, self.interval, self.count];
        let is_possible = |value: &u32| (1..=i32::MAX as u32).contains(value);
        match values.iter().all(is_possible) {
            true => Ok(values.map(|value| value as i32)),
            false => Err(Errno::EINVAL),
        }
    }
}

/// Sets the options that the program has set before there was a socket.
pub(crate) fn apply_options(
    fd: RawFd,
    nodelay: bool,
    keepalive: Option<KeepAlive>,
) -> Result<(), Errno> {
    if nodelay {
        socket::set_tcp_option(fd, TcpOption::NoDelay, 1)?;
    }
    match keepalive {
        Some(keepalive) => set_keepalive(fd, Some(keepalive)),
        None => Ok(()),
    }
}

fn set_keepalive(fd: RawFd, keepalive: Option<KeepAlive>) -> Result<(), Errno> {
    socket::set_tcp_option(fd, TcpOption::KeepAlive, i32::from(keepalive.is_some()))?;
    let Some(keepalive) = keepalive else {
        return Ok(());
    };
    let [idle, interval, count] = keepalive.values()?;
    socket::set_tcp_option(fd, TcpOption::KeepAliveIdle, idle)?;
    socket::set_tcp_option(fd, TcpOption::KeepAliveInterval, interval)?;
    socket::set_tcp_option(fd, TcpOption::KeepAliveCount, count)
}

/// How to bind a TCP or UDP socket.
#[derive(Clone, Copy, Default, Debug)]
pub struct BindOptions {
    /// Takes IPv6 only, where the default is both.
    pub ipv6_only: bool,
    /// Shares the port, and the connections, with other sockets that have this option.
    pub reuse_port: bool,
}

impl Engine {
    /// Makes a TCP handle. If a family is given, makes its socket right away.
    pub fn tcp_init(&mut self, token: Token, family: Option<i32>) -> Result<Key, Errno> {
        let socket = match family {
            None => None,
            Some(family @ (socket::AF_INET | socket::AF_INET6)) => {
                Some(socket::socket(family, socket::SOCK_STREAM)?)
            }
            Some(_) => return Err(Errno::EINVAL),
        };
        let key = self.stream_init(token, HandleKind::Tcp)?;
        if let Some(socket) = socket {
            let index = self.open_stream(key)?;
            if let Err(error) = self.tcp_attach(index, socket) {
                self.stream_discard(key, index);
                return Err(error);
            }
        }
        Ok(key)
    }

    /// Makes a socket for the handle if it has none.
    pub(crate) fn tcp_ensure_socket(&mut self, index: u32, family: i32) -> Result<(), Errno> {
        if self.stream(index).fd.is_some() {
            return Ok(());
        }
        let socket = socket::socket(family, socket::SOCK_STREAM)?;
        self.tcp_attach(index, socket)
    }

    /// Gives a handle a new TCP socket.
    fn tcp_attach(&mut self, index: u32, socket: Descriptor) -> Result<(), Errno> {
        self.stream_attach_socket(index, socket)
            .map_err(|(error, _)| error)?;
        self.driver.follow_edges(self.stream(index).watcher);
        Ok(())
    }

    fn open_tcp(&self, key: Key) -> Result<u32, Errno> {
        let index = self.open_stream(key)?;
        match self.stream(index).kind {
            HandleKind::Tcp => Ok(index),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Binds the handle. If the address is in use, listening or connecting fails later, as in libuv.
    pub fn tcp_bind(
        &mut self,
        key: Key,
        address: &Address,
        options: BindOptions,
    ) -> Result<(), Errno> {
        let index = self.open_tcp(key)?;
        let family = address.family();
        if options.ipv6_only && family != socket::AF_INET6 {
            return Err(Errno::EINVAL);
        }
        self.tcp_ensure_socket(index, family)?;
        let fd = self.raw_fd(index)?;
        socket::set_tcp_option(fd, TcpOption::ReuseAddress, 1)?;
        if options.reuse_port {
            socket::set_tcp_option(fd, TcpOption::ReusePort, 1)?;
        }
        if family == socket::AF_INET6 {
            socket::set_tcp_option(fd, TcpOption::Ipv6Only, i32::from(options.ipv6_only))?;
        }
        let delayed = match socket::bind(fd, address) {
            Ok(()) => None,
            Err(Errno::EADDRINUSE) => Some(Errno::EADDRINUSE),
            // The address is of another family than the socket.
            Err(Errno::EAFNOSUPPORT) => return Err(Errno::EINVAL),
            Err(error) => return Err(error),
        };
        self.stream_mut(index).delayed_error = delayed;
        Ok(())
    }

    /// Connects the handle. [`Event::Connect`](crate::Event::Connect) follows with `token`, which
    /// must not be `u64::MAX`.
    pub fn tcp_connect(&mut self, key: Key, token: Token, address: &Address) -> Result<(), Errno> {
        let index = self.open_tcp(key)?;
        if self.stream(index).is_connecting() {
            return Err(Errno::EALREADY);
        }
        let late = self.stream_mut(index).delayed_error.take();
        self.tcp_ensure_socket(index, address.family())?;
        let outcome = match late {
            Some(error) => Err(error),
            None => {
                // Even if connecting fails.
                self.stream_mut(index).open(true, true);
                self.connect(self.raw_fd(index)?, address)
            }
        };
        let refused = |error: &Errno| {
            // Errors that concern the peer or the address are reported later, by the event.
            matches!(*error, Errno::ECONNREFUSED | Errno::EADDRINUSE) || late.is_some()
        };
        if let Err(error) = outcome
            && !refused(&error)
        {
            return Err(error);
        }
        self.begin_connect(index, token, outcome)
    }

    /// Turns Nagle's algorithm off or on, as soon as there is a socket.
    pub fn tcp_nodelay(&mut self, key: Key, on: bool) -> Result<(), Errno> {
        let index = self.open_tcp(key)?;
        if let Ok(fd) = self.raw_fd(index) {
            return socket::set_tcp_option(fd, TcpOption::NoDelay, i32::from(on));
        }
        self.stream_mut(index).nodelay = on;
        Ok(())
    }

    /// Turns keep-alive on or off, as soon as there is a socket. With values out of range keep-alive
    /// is turned on all the same: with a socket the call then fails with `EINVAL`, without one
    /// default values are used.
    pub fn tcp_keepalive(&mut self, key: Key, keepalive: Option<KeepAlive>) -> Result<(), Errno> {
        let index = self.open_tcp(key)?;
        if let Ok(fd) = self.raw_fd(index) {
            return set_keepalive(fd, keepalive);
        }
        let keepalive = keepalive.map(|keepalive| match keepalive.values() {
            Ok(_) => keepalive,
            Err(_) => KeepAlive::DEFAULT,
        });
        self.stream_extra(index)?.keepalive = keepalive;
        Ok(())
    }

    /// Makes closing the handle reset the connection. `EINVAL` while it is being shut down.
    pub fn tcp_reset_on_close(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.open_tcp(key).map_err(|_| Errno::EBADF)?;
        if self.stream(index).is_shutting_down() {
            return Err(Errno::EINVAL);
        }
        socket::set_reset_on_close(self.raw_fd(index)?)
    }
}
