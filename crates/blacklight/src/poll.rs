//! Poll handles, for descriptors that the program itself reads and writes.

use crate::handle::{Handle, Single, common_methods};
use crate::loop_::Loop;
use blacklight_engine::{Event, Readiness};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;

/// Watches a descriptor, which it owns and makes non-blocking.
///
/// Watching is level-triggered: the callback runs on each turn for as long as the descriptor is
/// ready.
///
/// ```
/// use blacklight::{Loop, Mode, Poll, Readiness};
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
///
/// let lp = Loop::new()?;
/// let (near, mut far) = UnixStream::pair()?;
/// far.write_all(b"light")?;
///
/// let poll = Poll::new(&lp, near)?;
/// poll.start(Readiness::READABLE, |lp, ready| {
///     assert!(ready.is_ok_and(|ready| ready.contains(Readiness::READABLE)));
///     lp.stop();
/// })?;
/// lp.run(Mode::Default);
///
/// let mut word = [0; 5];
/// poll.get_ref().read_exact(&mut word)?;
/// assert_eq!(&word, b"light");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Poll<Io> {
    handle: Rc<Handle<Single>>,
    io: Io,
}

common_methods!(Poll<Io>);

impl<Io: AsFd> Poll<Io> {
    /// Creates the handle, stopped. Returns an error for files and directories, which are always
    /// ready.
    pub fn new(lp: &Loop, io: Io) -> io::Result<Poll<Io>> {
        let fd = io.as_fd().as_raw_fd();
        let (handle, ()) =
            Handle::single(lp, |engine, token| Ok((engine.poll_init(token, fd)?, ())))?;
        Ok(Poll { handle, io })
    }

    /// Watches for `wanted`, replacing earlier events and their callback. The callback receives
    /// the events that are ready, or an error after which the descriptor is no longer watched.
    pub fn start(
        &self,
        wanted: Readiness,
        mut callback: impl FnMut(&Loop, io::Result<Readiness>) + 'static,
    ) -> io::Result<()> {
        self.handle.engine().poll_start(self.handle.key, wanted)?;
        self.handle.set_callback(move |lp, _, event| {
            if let Event::Poll(_, ready) = event {
                callback(lp, ready.map_err(io::Error::from));
            }
        });
        Ok(())
    }

    /// Stops watching. Pending events are discarded.
    pub fn stop(&self) {
        // A closed handle has stopped.
        let _ = self.handle.engine().poll_stop(self.handle.key);
    }

    /// The object that is watched.
    pub fn get_ref(&self) -> &Io {
        &self.io
    }
}

impl<Io> Drop for Poll<Io> {
    fn drop(&mut self) {
        // If the callback drops this, the call in progress keeps the handle open; but the
        // descriptor is closed now, and its number may be reused.
        let _ = self.handle.engine().poll_stop(self.handle.key);
    }
}
