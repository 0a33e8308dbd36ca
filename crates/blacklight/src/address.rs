//! What addresses are made of: numbers, or names to look up.

use crate::code::Code;
use crate::dns;
use crate::loop_::LoopHandle;
use blacklight_sys::host_name::HostName;
use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::rc::Rc;
use std::vec;

/// What can be converted to addresses, as in [`std::net::ToSocketAddrs`]: an address, its parts, or
/// a text such as `"localhost:80"`. Names are looked up on the thread pool, so they do not block
/// the loop. This trait cannot be implemented elsewhere.
///
/// ```
/// use blacklight::{Loop, TcpListener, TcpStream, ToSocketAddrs};
/// use std::{io, net::Ipv4Addr};
///
/// async fn greet(server: impl ToSocketAddrs) -> io::Result<()> {
///     TcpStream::connect(server).await?.write_all(b"hello").await
/// }
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
///     let address = listener.local_addr()?;
///     greet(address).await?;
///     greet(("localhost", address.port())).await?;
///     greet(format!("localhost:{}", address.port())).await
/// })?;
/// # Ok::<(), io::Error>(())
/// ```
pub trait ToSocketAddrs: sealed::Sealed {}

impl<T: sealed::Sealed + ?Sized> ToSocketAddrs for T {}

pub(crate) mod sealed {
    /// Hides the method of [`ToSocketAddrs`](super::ToSocketAddrs).
    #[doc(hidden)]
    pub trait Sealed {
        /// The addresses, or what to look up for them.
        fn target(&self) -> super::Target;
    }
}

/// The addresses that a program names.
#[doc(hidden)]
pub enum Target {
    One(SocketAddr),
    Many(Vec<SocketAddr>),
    Name(Box<HostName>, u16),
    Invalid(io::Error),
}

impl Target {
    /// The only address, if no name needs to be looked up for it.
    pub(crate) fn one(&self) -> Option<SocketAddr> {
        match self {
            Target::One(address) => Some(*address),
            _ => None,
        }
    }

    fn name(host: &str, port: u16) -> Target {
        // Brackets belong to the notation, as in `[::1]:80`.
        let inside = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host = inside.unwrap_or(host);
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Target::One((ip, port).into());
        }
        match HostName::new(host.as_bytes()) {
            Ok(host) => Target::Name(Box::new(host), port),
            Err(error) => Target::Invalid(error.into()),
        }
    }

    /// Calls `f` with each address until it succeeds, and returns the last error otherwise.
    pub(crate) async fn first<T>(
        self,
        f: impl AsyncFn(SocketAddr) -> io::Result<T>,
    ) -> io::Result<T> {
        let found = match self {
            Target::One(address) => return f(address).await,
            Target::Many(addresses) => addresses,
            Target::Name(host, port) => dns::on_pool(host, port).await?,
            Target::Invalid(error) => return Err(error),
        };
        let mut last = no_address();
        for address in found {
            match f(address).await {
                Ok(made) => return Ok(made),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Like `first`, with callbacks: `begin` begins with an address, and `after` is called with what
    /// the first that succeeds has come to, or with the last error. An error if nothing can be begun.
    pub(crate) fn first_then<T: 'static>(
        self,
        lp: &LoopHandle,
        code: Code,
        begin: impl Fn(&LoopHandle, SocketAddr, Done<T>) -> io::Result<()> + 'static,
        after: impl FnOnce(&LoopHandle, io::Result<T>) + 'static,
    ) -> io::Result<()> {
        let attempts = Rc::new(Attempts {
            left: RefCell::default(),
            begin: Box::new(begin),
            after: Cell::new(Some(Box::new(after))),
        });
        match self {
            Target::One(address) => attempts.begin(lp, vec![address]),
            Target::Many(addresses) => attempts.begin(lp, addresses),
            Target::Invalid(error) => Err(error),
            Target::Name(host, port) => {
                dns::on_pool_then(lp, host, port, code, move |lp, found| {
                    let begun = found.and_then(|found| attempts.begin(lp, found));
                    begun.unwrap_or_else(|error| attempts.end(lp, Err(error)));
                })
            }
        }
    }
}

fn no_address() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "no address to use")
}

/// Called once, with the result.
pub(crate) type Done<T> = Box<dyn FnOnce(&LoopHandle, io::Result<T>)>;

/// Addresses that are tried one after the other.
struct Attempts<T> {
    left: RefCell<vec::IntoIter<SocketAddr>>,
    begin: Begin<T>,
    after: Cell<Option<Done<T>>>,
}

type Begin<T> = Box<dyn Fn(&LoopHandle, SocketAddr, Done<T>) -> io::Result<()>>;

impl<T: 'static> Attempts<T> {
    fn begin(self: &Rc<Self>, lp: &LoopHandle, found: Vec<SocketAddr>) -> io::Result<()> {
        *self.left.borrow_mut() = found.into_iter();
        self.go_on(lp, no_address())
    }

    /// Begins with the next address, or returns the last error if there is none.
    fn go_on(self: &Rc<Self>, lp: &LoopHandle, mut last: io::Error) -> io::Result<()> {
        loop {
            let next = self.left.borrow_mut().next();
            let Some(address) = next else {
                return Err(last);
            };
            let own = self.clone();
            let done = move |lp: &LoopHandle, result: io::Result<T>| {
                let ended = match result {
                    Ok(made) => Ok(made),
                    Err(error) => match own.go_on(lp, error) {
                        Ok(()) => return,
                        Err(last) => Err(last),
                    },
                };
                own.end(lp, ended);
            };
            match (self.begin)(lp, address, Box::new(done)) {
                Ok(()) => return Ok(()),
                Err(error) => last = error,
            }
        }
    }

    fn end(&self, lp: &LoopHandle, result: io::Result<T>) {
        if let Some(after) = self.after.take() {
            after(lp, result);
        }
    }
}

macro_rules! into_address {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {
            fn target(&self) -> Target {
                Target::One((*self).into())
            }
        }
    )*};
}

into_address!(
    SocketAddr,
    SocketAddrV4,
    SocketAddrV6,
    (IpAddr, u16),
    (Ipv4Addr, u16),
    (Ipv6Addr, u16)
);

impl sealed::Sealed for (&str, u16) {
    fn target(&self) -> Target {
        Target::name(self.0, self.1)
    }
}

impl sealed::Sealed for (String, u16) {
    fn target(&self) -> Target {
        Target::name(&self.0, self.1)
    }
}

impl sealed::Sealed for str {
    fn target(&self) -> Target {
        if let Ok(address) = self.parse() {
            return Target::One(address);
        }
        let parts = self.rsplit_once(':');
        match parts.and_then(|(host, port)| Some((host, port.parse().ok()?))) {
            Some((host, port)) => Target::name(host, port),
            None => {
                let why = "an address is a host and a port, as in localhost:80";
                Target::Invalid(io::Error::new(io::ErrorKind::InvalidInput, why))
            }
        }
    }
}

impl sealed::Sealed for String {
    fn target(&self) -> Target {
        self.as_str().target()
    }
}

impl sealed::Sealed for [SocketAddr] {
    fn target(&self) -> Target {
        match self {
            [only] => Target::One(*only),
            all => Target::Many(all.to_vec()),
        }
    }
}

impl sealed::Sealed for Vec<SocketAddr> {
    fn target(&self) -> Target {
        self.as_slice().target()
    }
}

impl<T: sealed::Sealed + ?Sized> sealed::Sealed for &T {
    fn target(&self) -> Target {
        (**self).target()
    }
}

#[cfg(test)]
mod tests {
    use super::sealed::Sealed;
    use super::*;

    #[test]
    fn numbers_are_not_looked_up() {
        let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 7));
        for text in ["[::1]:7", "127.0.0.1:7"] {
            assert_eq!(text.target().one(), Some(text.parse().unwrap()));
        }
        assert_eq!(("::1", 7).target().one(), Some(v6));
        assert_eq!(("[::1]", 7).target().one(), Some(v6));
        assert_eq!([v6][..].target().one(), Some(v6));
        assert!(matches!("localhost:7".target(), Target::Name(_, 7)));
        let long = format!("{}:7", "x".repeat(300));
        for text in [
            "",
            "localhost",
            "localhost:",
            "localhost:65536",
            ":7",
            &long,
        ] {
            assert!(matches!(text.target(), Target::Invalid(_)), "{text}");
        }
    }
}
