//! Options of sockets and loops, which will grow.

use blacklight_engine as engine;
use blacklight_sys::Errno;
use std::time::Duration;

/// How many connections may wait to be accepted, by default.
pub(crate) const BACKLOG: i32 = 1024;

/// Options of [`TcpListener::bind_with`](crate::TcpListener::bind_with).
///
/// ```
/// use blacklight::{BindOptions, Loop, TcpListener};
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let shared = BindOptions::new().reuse_port(true).backlog(128);
///     let one = TcpListener::bind_with("127.0.0.1:0", shared).await?;
///     // Another loop may listen on the same address.
///     let two = TcpListener::bind_with(one.local_addr()?, shared).await?;
///     assert_eq!(one.local_addr()?, two.local_addr()?);
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct BindOptions {
    pub(crate) bind: engine::BindOptions,
    pub(crate) backlog: i32,
}

impl Default for BindOptions {
    fn default() -> BindOptions {
        BindOptions {
            bind: engine::BindOptions::default(),
            backlog: BACKLOG,
        }
    }
}

impl BindOptions {
    /// The default options.
    ///
    /// ```
    /// use blacklight::{BindOptions, Loop, TcpListener};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(TcpListener::bind_with("127.0.0.1:0", BindOptions::new()))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> BindOptions {
        BindOptions::default()
    }

    /// Shares the port, and the connections, with other sockets that have this option
    /// (`SO_REUSEPORT`).
    ///
    /// ```
    /// use blacklight::{BindOptions, Loop, TcpListener};
    /// use std::io::ErrorKind;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let shared = BindOptions::new().reuse_port(true);
    ///     let one = TcpListener::bind_with("127.0.0.1:0", shared).await?;
    ///     TcpListener::bind_with(one.local_addr()?, shared).await?;
    ///     let alone = TcpListener::bind(one.local_addr()?).await;
    ///     assert_eq!(alone.unwrap_err().kind(), ErrorKind::AddrInUse);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn reuse_port(mut self, on: bool) -> BindOptions {
        self.bind.reuse_port = on;
        self
    }

    /// Accepts IPv6 only, where the default for an IPv6 address is both.
    ///
    /// ```
    /// use blacklight::{BindOptions, Loop, TcpListener};
    /// use std::net::Ipv6Addr;
    ///
    /// let lp = Loop::new()?;
    /// let only = BindOptions::new().ipv6_only(true);
    /// // Not every machine has IPv6.
    /// let _ = lp.block_on(TcpListener::bind_with((Ipv6Addr::UNSPECIFIED, 0), only));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn ipv6_only(mut self, on: bool) -> BindOptions {
        self.bind.ipv6_only = on;
        self
    }

    /// How many connections may wait to be accepted; 1024 by default.
    ///
    /// ```
    /// use blacklight::{BindOptions, Loop, TcpListener};
    ///
    /// let lp = Loop::new()?;
    /// let few = BindOptions::new().backlog(8);
    /// let listener = lp.block_on(TcpListener::bind_with("127.0.0.1:0", few))?;
    /// // They wait until they are accepted.
    /// let _client = std::net::TcpStream::connect(listener.local_addr()?)?;
    /// lp.block_on(listener.accept())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn backlog(mut self, connections: u32) -> BindOptions {
        self.backlog = i32::try_from(connections).unwrap_or(i32::MAX);
        self
    }
}

/// Options of [`UdpSocket::bind_with`](crate::UdpSocket::bind_with).
///
/// ```
/// use blacklight::{Loop, UdpOptions, UdpSocket};
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let shared = UdpOptions::new().reuse_port(true);
///     let one = UdpSocket::bind_with("127.0.0.1:0", shared).await?;
///     let two = UdpSocket::bind_with(one.local_addr()?, shared).await?;
///     assert_eq!(one.local_addr()?, two.local_addr()?);
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Default, Debug)]
#[must_use]
pub struct UdpOptions(pub(crate) engine::UdpBind);

impl UdpOptions {
    /// The default options.
    ///
    /// ```
    /// use blacklight::{Loop, UdpOptions, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(UdpSocket::bind_with("127.0.0.1:0", UdpOptions::new()))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> UdpOptions {
        UdpOptions::default()
    }

    /// Shares the address with other sockets that have this option (`SO_REUSEADDR`); the last one
    /// to bind it receives.
    ///
    /// ```
    /// use blacklight::{Loop, UdpOptions, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let shared = UdpOptions::new().reuse_address(true).ipv6_only(false);
    /// let one = lp.block_on(UdpSocket::bind_with("127.0.0.1:0", shared))?;
    /// lp.block_on(UdpSocket::bind_with(one.local_addr()?, shared))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn reuse_address(mut self, on: bool) -> UdpOptions {
        self.0.reuse.address = on;
        self
    }

    /// Shares the address, and the datagrams, with other sockets that have this option
    /// (`SO_REUSEPORT`).
    ///
    /// ```
    /// use blacklight::{Loop, UdpOptions, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let shared = UdpOptions::new().reuse_port(true);
    /// let one = lp.block_on(UdpSocket::bind_with("127.0.0.1:0", shared))?;
    /// lp.block_on(UdpSocket::bind_with(one.local_addr()?, shared))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn reuse_port(mut self, on: bool) -> UdpOptions {
        self.0.reuse.port = on;
        self
    }

    /// Receives IPv6 only, where the default for an IPv6 address is both.
    ///
    /// ```
    /// use blacklight::{Loop, UdpOptions, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let only = UdpOptions::new().ipv6_only(true);
    /// // Not every machine has IPv6.
    /// if let Ok(socket) = lp.block_on(UdpSocket::bind_with("[::]:0", only)) {
    ///     let port = socket.local_addr()?.port();
    ///     lp.block_on(UdpSocket::bind(("0.0.0.0", port)))?; // It is free.
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn ipv6_only(mut self, on: bool) -> UdpOptions {
        self.0.ipv6_only = on;
        self
    }

    /// Reports errors that sent datagrams meet with on their way, when receiving
    /// (`IP_RECVERR`).
    ///
    /// ```
    /// use blacklight::{Loop, UdpOptions, UdpSocket};
    /// use std::io::ErrorKind;
    ///
    /// let lp = Loop::new()?;
    /// // Nobody listens there now.
    /// let nobody = std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
    /// lp.block_on(async {
    ///     let options = UdpOptions::new().report_errors(true);
    ///     let socket = UdpSocket::bind_with("127.0.0.1:0", options).await?;
    ///     socket.send_to(b"light", nobody).await?;
    ///     let error = socket.recv_from(&mut [0; 8]).await.unwrap_err();
    ///     assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn report_errors(mut self, on: bool) -> UdpOptions {
        self.0.errors = on;
        self
    }
}

/// When the kernel probes an idle connection, in whole seconds; see
/// [`TcpStream::set_keepalive`](crate::TcpStream::set_keepalive).
///
/// ```
/// use blacklight::{KeepAlive, Loop, TcpStream};
/// use std::time::Duration;
///
/// let lp = Loop::new()?;
/// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
/// let stream = lp.block_on(TcpStream::connect(listener.local_addr()?))?;
/// // After a minute of silence, the peer has half a minute to answer.
/// let minute = KeepAlive::new(Duration::from_secs(60));
/// stream.set_keepalive(Some(minute.interval(Duration::from_secs(10)).retries(3)))?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct KeepAlive {
    idle: Duration,
    interval: Duration,
    retries: u32,
}

impl KeepAlive {
    /// Probes after this time of silence. The defaults for the rest are libuv's: every second, at
    /// most ten times.
    ///
    /// ```
    /// use blacklight::{KeepAlive, Loop, TcpStream};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(listener.local_addr()?))?;
    /// stream.set_keepalive(Some(KeepAlive::new(Duration::from_secs(60))))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(idle: Duration) -> KeepAlive {
        KeepAlive {
            idle,
            interval: Duration::from_secs(1),
            retries: 10,
        }
    }

    /// The time between probes.
    ///
    /// ```
    /// use blacklight::{KeepAlive, Loop, TcpStream};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(listener.local_addr()?))?;
    /// let minute = Duration::from_secs(60);
    /// stream.set_keepalive(Some(KeepAlive::new(minute).interval(minute)))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn interval(mut self, interval: Duration) -> KeepAlive {
        self.interval = interval;
        self
    }

    /// How many probes may stay unanswered before the connection is given up.
    ///
    /// ```
    /// use blacklight::{KeepAlive, Loop, TcpStream};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(listener.local_addr()?))?;
    /// let impatient = KeepAlive::new(Duration::from_secs(60)).retries(1);
    /// stream.set_keepalive(Some(impatient))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn retries(mut self, retries: u32) -> KeepAlive {
        self.retries = retries;
        self
    }

    pub(crate) fn values(self) -> Result<engine::KeepAlive, Errno> {
        // Rounded up, so that no time becomes zero.
        let seconds = |time: Duration| {
            let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
            u32::try_from(seconds).map_err(|_| Errno::EINVAL)
        };
        Ok(engine::KeepAlive {
            idle: seconds(self.idle)?,
            interval: seconds(self.interval)?,
            count: self.retries,
        })
    }
}
