//! Listening with all loops at one address.

use super::{Builder, Multi, Worker};
use crate::address::ToSocketAddrs;
use crate::loop_::Loop;
use crate::options::BindOptions;
use crate::tcp::TcpListener;
use std::io;
use std::net;
use std::sync::{Arc, Mutex, PoisonError};

/// The sockets with which several loops listen at one address; see [`Builder::listen`].
///
/// ```
/// use blacklight::multi::{Builder, Sockets};
///
/// for sockets in [Sockets::OfEach, Sockets::Shared] {
///     let server = Builder::new().threads(2).listen("127.0.0.1:0", sockets, |worker, listener| async move {
///         assert!(listener.is_active());
///         worker.stopped().await;
///         Ok(())
///     })?;
///     std::net::TcpStream::connect(server.local_addr().unwrap())?;
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Sockets {
    /// Each loop has its own (`SO_REUSEPORT`), and the kernel deals out connections evenly,
    /// however busy the loops are. What waits at the socket of a loop that ends is reset.
    OfEach,
    /// All loops accept from one, and who has time takes the next connection.
    Shared,
}

impl Sockets {
    /// Binds `count` sockets, all at one address.
    fn bind(self, to: impl ToSocketAddrs, count: usize) -> io::Result<Vec<net::TcpListener>> {
        let lp = Loop::new()?;
        let options = BindOptions::new().reuse_port(self == Sockets::OfEach);
        let first = lp.block_on(TcpListener::bind_with(to, options))?;
        // The kernel may have chosen the port.
        let address = first.local_addr()?;
        let mut sockets = vec![first.into_std()?];
        while sockets.len() < count {
            sockets.push(match self {
                Sockets::OfEach => {
                    let next = lp.block_on(TcpListener::bind_with(address, options))?;
                    next.into_std()?
                }
                Sockets::Shared => sockets[0].try_clone()?,
            });
        }
        Ok(sockets)
    }
}

impl Builder {
    /// Listens at an address, and [starts](Builder::start) the threads. `main` receives the
    /// listener of its loop.
    ///
    /// # Errors
    ///
    /// Those of [`TcpListener::bind`] and of [`start`](Builder::start). Then no thread is left.
    ///
    /// ```
    /// use blacklight::multi::{Builder, Sockets};
    /// use std::io::ErrorKind;
    ///
    /// let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let address = taken.local_addr()?;
    /// let server = Builder::new().listen(address, Sockets::OfEach, |_, _| async { unreachable!() });
    /// assert_eq!(server.unwrap_err().kind(), ErrorKind::AddrInUse);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn listen<F>(
        self,
        to: impl ToSocketAddrs,
        sockets: Sockets,
        main: impl Fn(Worker, TcpListener) -> F + Send + Clone + 'static,
    ) -> io::Result<Multi>
    where
        F: Future<Output = io::Result<()>> + 'static,
    {
        let sockets = sockets.bind(to, self.count()?)?;
        let address = sockets[0].local_addr()?;
        let sockets: Vec<_> = sockets.into_iter().map(Some).collect();
        let sockets = Arc::new(Mutex::new(sockets));
        let mut multi = self.start(move |worker| {
            let mut sockets = sockets.lock().unwrap_or_else(PoisonError::into_inner);
            let own = sockets[worker.index].take();
            drop(sockets);
            let main = main.clone();
            async move {
                let own = own.expect("each thread begins once");
                main(worker, TcpListener::from_std(own)?).await
            }
        })?;
        multi.address = Some(address);
        Ok(multi)
    }
}
