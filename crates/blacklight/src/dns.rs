//! The names of hosts, looked up as the C library does it, on the thread pool.
//!
//! Lookups may wait for the network as long as it likes, so they never occupy more than half of
//! the pool's threads. One that is dropped or cancelled before a thread has taken it up is not
//! made at all.
//!
//! A name beyond ASCII is put into the form that the network knows. One that is too long, or no
//! name at all, is [`InvalidInput`](io::ErrorKind::InvalidInput); one that nobody has is
//! [`NotFound`](io::ErrorKind::NotFound).
//!
//! ```
//! use blacklight::{Loop, TcpStream, dns};
//!
//! let lp = Loop::new()?;
//! let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! let port = listener.local_addr()?.port();
//! lp.block_on(async {
//!     let addresses = dns::lookup("127.0.0.1", port).await?;
//!     TcpStream::connect(&lp, addresses[0]).await
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```

use crate::loop_::Loop;
use crate::task::JoinError;
use crate::work::{OnPool, Work};
use blacklight_engine::{Errno, WorkKind};
use blacklight_sys::host_name::HostName;
use blacklight_sys::resolver::{self, Hints};
use blacklight_sys::socket::SOCK_STREAM;
use std::ffi::CString;
use std::io;
use std::net::SocketAddr;

/// The addresses of a host, each with this port, in the order in which they should be tried.
///
/// ```
/// use blacklight::{Loop, dns};
///
/// let lp = Loop::new()?;
/// let found = lp.block_on(dns::lookup("127.0.0.1", 80))?;
/// assert_eq!(found, ["127.0.0.1:80".parse().unwrap()]);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// When it is polled, if no loop runs on this thread.
pub async fn lookup(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let host = HostName::new(host.as_bytes())?;
    OnPool::new(WorkKind::SlowIo, move || find(&host, port)).await
}

/// As [`lookup`], with a callback. What this returns can cancel the lookup.
///
/// ```
/// use blacklight::{Loop, Mode, dns};
///
/// let lp = Loop::new()?;
/// dns::lookup_with(&lp, "::1", 443, |_, found| {
///     assert_eq!(found.unwrap(), ["[::1]:443".parse().unwrap()]);
/// })?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn lookup_with(
    lp: &Loop,
    host: &str,
    port: u16,
    callback: impl FnOnce(&Loop, io::Result<Vec<SocketAddr>>) + 'static,
) -> io::Result<Work> {
    let host = HostName::new(host.as_bytes())?;
    submit(lp, move || find(&host, port), callback)
}

/// The names of the host and the service behind an address. What has no name goes by its number.
///
/// ```
/// use blacklight::{Loop, dns};
///
/// let lp = Loop::new()?;
/// let (host, _) = lp.block_on(dns::reverse("127.0.0.1:80".parse().unwrap()))?;
/// assert!(!host.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// When it is polled, if no loop runs on this thread.
pub async fn reverse(address: SocketAddr) -> io::Result<(String, String)> {
    OnPool::new(WorkKind::SlowIo, move || names(address)).await
}

/// As [`reverse`], with a callback. What this returns can cancel the lookup.
///
/// ```
/// use blacklight::{Loop, Mode, dns};
///
/// let lp = Loop::new()?;
/// dns::reverse_with(&lp, "127.0.0.1:80".parse().unwrap(), |_, names| {
///     let (host, service) = names.unwrap();
///     println!("{host} {service}");
/// })?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn reverse_with(
    lp: &Loop,
    address: SocketAddr,
    callback: impl FnOnce(&Loop, io::Result<(String, String)>) + 'static,
) -> io::Result<Work> {
    submit(lp, move || names(address), callback)
}

fn submit<T: Send + 'static>(
    lp: &Loop,
    job: impl FnOnce() -> io::Result<T> + Send + 'static,
    callback: impl FnOnce(&Loop, io::Result<T>) + 'static,
) -> io::Result<Work> {
    let after = move |lp: &Loop, result: Result<io::Result<T>, JoinError>| {
        callback(lp, result.unwrap_or_else(|error| Err(error.into())));
    };
    lp.0.submit(WorkKind::SlowIo, job, after)
}

fn find(host: &HostName, port: u16) -> io::Result<Vec<SocketAddr>> {
    let hints = Hints {
        // Else each address comes once for every kind of socket.
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

fn names(address: SocketAddr) -> io::Result<(String, String)> {
    let text = |name: CString| name.to_string_lossy().into_owned();
    let (host, service) = resolver::names(address).map_err(explain)?;
    Ok((text(host), text(service)))
}

fn explain(error: Errno) -> io::Error {
    match error {
        Errno::EAI_NONAME | Errno::EAI_NODATA => io::Error::new(io::ErrorKind::NotFound, error),
        error => error.into(),
    }
}
