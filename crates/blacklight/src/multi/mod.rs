//! Several loops: one on each of a number of threads, such as one for each processor.
//!
//! The loops share nothing, so their tasks need not be `Send`. The kernel deals out connections:
//! either each loop has a socket of its own at the same address (`SO_REUSEPORT`), or all accept
//! from the same one; see [`Sockets`].
//!
//! ```
//! use blacklight::TcpListener;
//! use blacklight::multi::{self, Sockets};
//! use futures_lite::future::or;
//! use std::io::{self, Read};
//!
//! async fn serve(worker: multi::Worker, listener: TcpListener) -> io::Result<()> {
//!     let accept = async {
//!         loop {
//!             match listener.accept().await {
//!                 Ok((stream, _)) => {
//!                     blacklight::spawn(async move { stream.write_all(b"hello").await });
//!                 }
//!                 Err(error) => eprintln!("cannot accept: {error}"),
//!             }
//!         }
//!     };
//!     or(worker.stopped(), accept).await;
//!     Ok(())
//! }
//!
//! let servers = multi::Builder::new().name("server").threads(2);
//! let servers = servers.listen("127.0.0.1:0", Sockets::OfEach, serve)?;
//! let mut hello = String::new();
//! let address = servers.local_addr().unwrap();
//! std::net::TcpStream::connect(address)?.read_to_string(&mut hello)?;
//! assert_eq!(hello, "hello");
//! servers.stop();
//! servers.join()?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod error;
mod listen;

pub use error::ThreadError;
pub use listen::Sockets;

use crate::remote::Remote;
use crate::stop::{Stop, Stopped};
use crate::task::JoinError;
use error::Cause;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

/// Options for loops on several threads.
///
/// ```
/// use blacklight::multi;
///
/// let loops = multi::Builder::new().name("echo").threads(2).start(|worker| async move {
///     let name = format!("echo-{}", worker.index());
///     assert_eq!(std::thread::current().name(), Some(&*name));
///     assert_eq!(blacklight::current().name(), name);
///     Ok(())
/// })?;
/// loops.join()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    threads: Option<usize>,
    name: String,
    loops: crate::Builder,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            threads: None,
            name: "loop".to_owned(),
            loops: crate::Builder::default(),
        }
    }
}

impl Builder {
    /// The default options: a thread for each processor.
    ///
    /// ```
    /// use blacklight::multi;
    /// use std::thread::available_parallelism;
    ///
    /// let loops = multi::Builder::new().start(|worker| async move {
    ///     worker.stopped().await;
    ///     Ok(())
    /// })?;
    /// assert_eq!(loops.remotes().len(), available_parallelism()?.get());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> Builder {
        Builder::default()
    }

    /// How many threads to start, each with a loop.
    ///
    /// ```
    /// use blacklight::multi;
    ///
    /// let loops = multi::Builder::new().threads(3).start(|_| async { Ok(()) })?;
    /// assert_eq!(loops.remotes().len(), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn threads(mut self, threads: usize) -> Builder {
        self.threads = Some(threads);
        self
    }

    /// Names the threads and their loops: this name, a hyphen, and their number from zero on.
    ///
    /// ```
    /// use blacklight::multi;
    ///
    /// let loops = multi::Builder::new().name("web").threads(1).start(|_| async {
    ///     assert_eq!(std::thread::current().name(), Some("web-0"));
    ///     Ok(())
    /// })?;
    /// loops.join()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name(mut self, name: &str) -> Builder {
        self.name = name.to_owned();
        self
    }

    /// Builds the loops with these options, apart from their names.
    ///
    /// ```
    /// use blacklight::{Loop, Mechanism, multi};
    ///
    /// let quiet = Loop::builder().poller(Mechanism::Poll).never_spin();
    /// let loops = multi::Builder::new().threads(2).loops(quiet).start(|_| async {
    ///     assert_eq!(blacklight::current().mechanism(), Mechanism::Poll);
    ///     Ok(())
    /// })?;
    /// loops.join()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn loops(mut self, options: crate::Builder) -> Builder {
        self.loops = options;
        self
    }

    /// Starts the threads. Each makes a loop and runs it until the future that `main` returns is
    /// over. If one of these fails or panics, all others are asked to stop.
    ///
    /// # Errors
    ///
    /// If a thread or a loop cannot be made, or the name has a NUL. Then no thread is left.
    ///
    /// ```
    /// use blacklight::multi;
    /// use std::cell::Cell;
    /// use std::io;
    ///
    /// let loops = multi::Builder::new().threads(2).start(|worker| async move {
    ///     // What is made here belongs to this thread, and need not be `Send`.
    ///     let turns = Cell::new(worker.index());
    ///     blacklight::yield_now().await;
    ///     match turns.get() {
    ///         0 => worker.stopped().await, // Until the other thread has failed.
    ///         _ => return Err(io::ErrorKind::AddrInUse.into()),
    ///     }
    ///     Ok(())
    /// })?;
    /// let error = io::Error::from(loops.join().unwrap_err());
    /// assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start<F>(self, main: impl Fn(Worker) -> F + Send + Clone + 'static) -> io::Result<Multi>
    where
        F: Future<Output = io::Result<()>> + 'static,
    {
        let count = self.count()?;
        if self.name.contains('\0') {
            let why = "a thread's name has no NUL";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let ((tell, told), (end, ended)) = (mpsc::channel(), mpsc::channel());
        let mut multi = Multi {
            threads: Vec::with_capacity(count),
            remotes: Vec::with_capacity(count),
            stop: Stop::new(),
            ended: Mutex::new(ended),
            address: None,
        };
        // Before `multi`, whose drop waits until no thread is left that has these.
        let (tell, end) = (tell, end);
        for index in 0..count {
            let name = format!("{}-{index}", self.name);
            let worker = Worker {
                index,
                stop: multi.stop.clone(),
            };
            let (main, tell, end) = (main.clone(), tell.clone(), end.clone());
            let options = self.loops.clone().name(&name);
            let (own_name, stop) = (name.clone(), multi.stop.clone());
            let run = move || {
                let run = || run_loop(options, main, worker, tell);
                let cause = match catch_unwind(AssertUnwindSafe(run)) {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) => Cause::Failed(error),
                    Err(panic) => Cause::Panicked(JoinError::panicked(panic)),
                };
                // Before the others are asked to stop, so that it comes before their errors.
                let _ = end.send(ThreadError::new(own_name, cause));
                stop.stop();
            };
            // On an error, the threads so far are stopped and joined by `Multi`'s drop.
            multi
                .threads
                .push(thread::Builder::new().name(name).spawn(run)?);
        }
        drop((tell, end));
        let mut remotes: Vec<_> = told.iter().take(count).collect();
        remotes.sort_by_key(|(index, _)| *index);
        for (_, remote) in remotes {
            multi.remotes.push(remote?);
        }
        Ok(multi)
    }

    fn count(&self) -> io::Result<usize> {
        match self.threads {
            Some(count) => Ok(count),
            None => Ok(thread::available_parallelism()?.get()),
        }
    }
}

/// What a thread tells once it has its loop, or has none.
type Begun = (usize, io::Result<Remote>);

/// Makes a loop and runs it until `main` is over.
fn run_loop<F: Future<Output = io::Result<()>> + 'static>(
    options: crate::Builder,
    main: impl FnOnce(Worker) -> F,
    worker: Worker,
    tell: mpsc::Sender<Begun>,
) -> io::Result<()> {
    let lp = match options.build() {
        Ok(lp) => lp,
        Err(error) => {
            // `start` fails with it.
            let _ = tell.send((worker.index, Err(error)));
            return Ok(());
        }
    };
    let _ = tell.send((worker.index, Ok(lp.remote())));
    drop(tell);
    lp.block_on(main(worker))
}

/// What the main future of each thread receives.
///
/// ```
/// use blacklight::multi;
///
/// let loops = multi::Builder::new().threads(3).start(|worker: multi::Worker| async move {
///     if worker.index() == 2 {
///         worker.stop(); // … everyone.
///     }
///     worker.stopped().await;
///     Ok(())
/// })?;
/// loops.join()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Worker {
    index: usize,
    stop: Stop,
}

impl Worker {
    /// The number of the thread, from zero on.
    ///
    /// ```
    /// use blacklight::multi;
    /// use std::sync::Mutex;
    ///
    /// static SEEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    ///
    /// let loops = multi::Builder::new().threads(3).start(|worker| async move {
    ///     SEEN.lock().unwrap().push(worker.index());
    ///     Ok(())
    /// })?;
    /// loops.join()?;
    /// SEEN.lock().unwrap().sort();
    /// assert_eq!(*SEEN.lock().unwrap(), [0, 1, 2]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn index(&self) -> usize {
        self.index
    }

    /// Waits until all threads are asked to stop. A server then stops accepting, lets its clients
    /// finish, and returns.
    ///
    /// ```
    /// use blacklight::{TcpListener, multi};
    /// use futures_lite::future::or;
    ///
    /// let server = multi::Builder::new().threads(1).start(|worker| async move {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let accept = async {
    ///         while let Ok((stream, _)) = listener.accept().await {
    ///             blacklight::spawn(async move { stream.write_all(b"hello").await });
    ///         }
    ///     };
    ///     // Accepts until it is asked to stop.
    ///     or(accept, worker.stopped()).await;
    ///     Ok(())
    /// })?;
    /// server.stop();
    /// server.join()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stopped(&self) -> Stopped {
        self.stop.stopped()
    }

    /// Asks all threads to stop.
    ///
    /// ```
    /// use blacklight::multi;
    ///
    /// let loops = multi::Builder::new().threads(2).start(|worker| async move {
    ///     if worker.index() == 0 {
    ///         worker.stop();
    ///     }
    ///     worker.stopped().await; // The others as well.
    ///     Ok(())
    /// })?;
    /// loops.join()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stop(&self) {
        self.stop.stop();
    }
}

/// Loops that run on threads of their own. Dropping this asks them to stop, and waits until they
/// have.
///
/// ```
/// use blacklight::multi;
///
/// let loops: multi::Multi = multi::Builder::new().threads(2).start(|worker| async move {
///     worker.stopped().await;
///     Ok(())
/// })?;
/// let task = loops.remotes()[1].spawn(async { 6 * 7 });
/// assert_eq!(task.join().unwrap(), 42);
/// drop(loops);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "dropping this stops the loops"]
pub struct Multi {
    threads: Vec<thread::JoinHandle<()>>,
    remotes: Vec<Remote>,
    stop: Stop,
    /// The errors of threads that have ended; closed when none is left.
    ended: Mutex<mpsc::Receiver<ThreadError>>,
    address: Option<SocketAddr>,
}

impl Multi {
    /// Asks all threads to stop; see [`Worker::stopped`].
    ///
    /// ```
    /// use blacklight::multi;
    ///
    /// let loops = multi::Builder::new().threads(2).start(|worker| async move {
    ///     worker.stopped().await;
    ///     Ok(())
    /// })?;
    /// loops.stop();
    /// loops.join()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stop(&self) {
        self.stop.stop();
    }

    /// The signal that asks all threads to stop. Code that does not have the `Multi` can hold it
    /// and give it.
    ///
    /// ```
    /// use blacklight::{Stop, multi};
    ///
    /// let loops = multi::Builder::new().threads(1).start(|worker| async move {
    ///     worker.stopped().await;
    ///     Ok(())
    /// })?;
    /// let stop: Stop = loops.stop_signal();
    /// std::thread::spawn(move || stop.stop());
    /// loops.join()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stop_signal(&self) -> Stop {
        self.stop.clone()
    }

    /// The remotes of the loops, by which tasks are spawned on them.
    ///
    /// ```
    /// use blacklight::multi;
    ///
    /// let loops = multi::Builder::new().name("mine").threads(2).start(|worker| async move {
    ///     worker.stopped().await;
    ///     Ok(())
    /// })?;
    /// let tasks = loops.remotes().iter().map(|remote| {
    ///     remote.spawn_with(|| async { blacklight::current().name().to_owned() })
    /// });
    /// let names: Vec<_> = tasks.map(|task| task.join().unwrap()).collect();
    /// assert_eq!(names, ["mine-0", "mine-1"]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn remotes(&self) -> &[Remote] {
        &self.remotes
    }

    /// The address at which all loops [listen](Builder::listen).
    ///
    /// ```
    /// use blacklight::multi::{Builder, Sockets};
    ///
    /// let server = Builder::new().threads(2).listen("127.0.0.1:0", Sockets::Shared, |_, _| async { Ok(()) })?;
    /// assert_ne!(server.local_addr().unwrap().port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Waits until the next thread fails or panics, and returns its error; `None` once all have
    /// ended. [`join`](Multi::join) waits for all, also for one that goes on though it is asked to
    /// stop.
    ///
    /// ```
    /// use blacklight::multi;
    ///
    /// let mut loops = multi::Builder::new().threads(2).start(|worker| async move {
    ///     assert_ne!(worker.index(), 1, "as expected");
    ///     worker.stopped().await;
    ///     Ok(())
    /// })?;
    /// assert_eq!(loops.next_error().unwrap().thread(), "loop-1");
    /// assert!(loops.next_error().is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn next_error(&mut self) -> Option<ThreadError> {
        let ended = self.ended.get_mut();
        ended.unwrap_or_else(PoisonError::into_inner).recv().ok()
    }

    /// Waits until all threads have ended, and returns the error of the first that panicked, or
    /// else of the first that failed. [`others`](ThreadError::others) has those of all others.
    ///
    /// ```
    /// use blacklight::multi;
    ///
    /// let loops = multi::Builder::new().threads(2).start(|worker| async move {
    ///     assert_ne!(worker.index(), 1, "as expected");
    ///     worker.stopped().await;
    ///     Ok(())
    /// })?;
    /// let error = loops.join().unwrap_err();
    /// assert!(error.is_panic());
    /// assert_eq!(error.thread(), "loop-1");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join(mut self) -> Result<(), ThreadError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), ThreadError> {
        let errors = std::iter::from_fn(|| self.next_error()).collect();
        for thread in std::mem::take(&mut self.threads) {
            // It has caught its panic.
            let _ = thread.join();
        }
        ThreadError::of_all(errors).map_or(Ok(()), Err)
    }
}

impl Drop for Multi {
    fn drop(&mut self) {
        self.stop.stop();
        if let Err(error) = self.end()
            && !thread::panicking()
        {
            // Nobody else will tell of it.
            eprintln!("{error}");
        }
    }
}

impl fmt::Debug for Multi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Multi")
            .field("threads", &self.threads.len())
            .finish()
    }
}
