//! Name resolution with `getaddrinfo` and `getnameinfo`, on the thread pool.
//!
//! Lookups may wait long for the network, so they never occupy more than half of the pool's
//! threads. A lookup that is dropped or cancelled before a thread has started it never runs.
//!
//! Names that are not ASCII are converted by IDNA. The error is
//! [`InvalidInput`](io::ErrorKind::InvalidInput) for a name that is too long or malformed, and
//! [`NotFound`](io::ErrorKind::NotFound) for one that does not exist.
//!
//! ```
//! use blacklight::{Loop, TcpStream, dns};
//!
//! let lp = Loop::new()?;
//! let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! let port = listener.local_addr()?.port();
//! lp.block_on(async {
//!     let addresses = dns::lookup("127.0.0.1", port).await?;
//!     TcpStream::connect(addresses[0]).await
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```

use crate::code::Code;
use crate::current::here;
use crate::loop_::LoopHandle;
use crate::task::JoinError;
use crate::work::{OnPool, Work};
use blacklight_engine::{Errno, WorkKind};
use blacklight_sys::host_name::HostName;
use blacklight_sys::resolver::{self, Hints};
use blacklight_sys::socket::SOCK_STREAM;
use std::ffi::CString;
use std::io;
use std::net::SocketAddr;

/// Looks up the addresses of a host, and returns them with this port in the order in which to try
/// them.
///
/// ```
/// use blacklight::{Loop, dns};
/// use std::net::Ipv4Addr;
///
/// let lp = Loop::new()?;
/// let found = lp.block_on(dns::lookup("127.0.0.1", 80))?;
/// assert_eq!(found, [(Ipv4Addr::LOCALHOST, 80).into()]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn lookup(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let host = HostName::new(host.as_bytes())?;
    on_pool(Box::new(host), port).await
}

pub(crate) fn on_pool(host: Box<HostName>, port: u16) -> OnPool<Vec<SocketAddr>> {
    OnPool::new(WorkKind::SlowIo, move || find(&host, port))
}

/// The names of the host and the service of an address; see [`reverse`].
///
/// ```
/// use blacklight::{Loop, dns};
///
/// let lp = Loop::new()?;
/// let dns::Names { host, service, .. } = lp.block_on(dns::reverse(([127, 0, 0, 1], 80).into()))?;
/// println!("{host} {service}");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Names {
    /// The name of the host, or its address.
    pub host: String,
    /// The name of the service, or its port.
    pub service: String,
}

/// Like [`lookup`], with a callback. The returned [`Work`] can cancel the lookup.
///
/// ```
/// use blacklight::{Loop, Mode, dns};
/// use std::net::Ipv6Addr;
///
/// let lp = Loop::new()?;
/// dns::lookup_then("::1", 443, |_, found| {
///     assert_eq!(found.unwrap(), [(Ipv6Addr::LOCALHOST, 443).into()]);
/// })?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn lookup_then(
    host: &str,
    port: u16,
    callback: impl FnOnce(&LoopHandle, io::Result<Vec<SocketAddr>>) + 'static,
) -> io::Result<Work> {
    let host = HostName::new(host.as_bytes())?;
    let code = Code::of(&callback);
    submit(&here()?, code, move || find(&host, port), callback)
}

/// Looks a name up for a callback that `code` names.
pub(crate) fn on_pool_then(
    lp: &LoopHandle,
    host: Box<HostName>,
    port: u16,
    code: Code,
    callback: impl FnOnce(&LoopHandle, io::Result<Vec<SocketAddr>>) + 'static,
) -> io::Result<()> {
    submit(lp, code, move || find(&host, port), callback).map(drop)
}

/// Looks up the names of the host and the service of an address. If one has no name, returns its
/// number.
///
/// ```
/// use blacklight::{Loop, dns};
///
/// let lp = Loop::new()?;
/// let names = lp.block_on(dns::reverse(([127, 0, 0, 1], 80).into()))?;
/// assert!(!names.host.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn reverse(address: SocketAddr) -> io::Result<Names> {
    OnPool::new(WorkKind::SlowIo, move || names(address)).await
}

/// Like [`reverse`], with a callback. The returned [`Work`] can cancel the lookup.
///
/// ```
/// use blacklight::{Loop, Mode, dns};
///
/// let lp = Loop::new()?;
/// dns::reverse_then(([127, 0, 0, 1], 80).into(), |_, names| {
///     let names = names.unwrap();
///     println!("{} {}", names.host, names.service);
/// })?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn reverse_then(
    address: SocketAddr,
    callback: impl FnOnce(&LoopHandle, io::Result<Names>) + 'static,
) -> io::Result<Work> {
    let code = Code::of(&callback);
    submit(&here()?, code, move || names(address), callback)
}

fn submit<T: Send + 'static>(
    lp: &LoopHandle,
    code: Code,
    job: impl FnOnce() -> io::Result<T> + Send + 'static,
    callback: impl FnOnce(&LoopHandle, io::Result<T>) + 'static,
) -> io::Result<Work> {
    let after = move |lp: &LoopHandle, result: Result<io::Result<T>, JoinError>| {
        callback(lp, result.unwrap_or_else(|error| Err(error.into())));
    };
    lp.0.submit(WorkKind::SlowIo, job, code, after)
}

fn find(host: &HostName, port: u16) -> io::Result<Vec<SocketAddr>> {
    let hints = Hints {
        // Without this, each address is returned once for every socket type.
        socktype: SOCK_STREAM,
        ..Hints::default()
    };
    let found = resolver::getaddrinfo(Some(host.as_c_str()), None, Some(hints));
    let with_port = |mut address: SocketAddr| {
        address.set_port(port);
        address
    };
    Ok(found.map_err(explain)?.iter().map(with_port).collect())
}

fn names(address: SocketAddr) -> io::Result<Names> {
    let text = |name: CString| name.to_string_lossy().into_owned();
    let (host, service) = resolver::names(address).map_err(explain)?;
    Ok(Names {
        host: text(host),
        service: text(service),
    })
}

fn explain(error: Errno) -> io::Error {
    match error {
        Errno::EAI_NONAME | Errno::EAI_NODATA => io::Error::new(io::ErrorKind::NotFound, error),
        error => error.into(),
    }
}
