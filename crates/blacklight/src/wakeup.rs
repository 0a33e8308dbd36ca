//! Async handles, with which other threads wake a loop.

use crate::code::Code;
use crate::current::here;
use crate::handle::{Handle, Single, common_methods, detach_method};
use crate::loop_::LoopHandle;
use blacklight_engine::{Sender, Ticket};
use std::io;
use std::rc::Rc;

/// Calls back on the loop's thread after a [`Sender`] has sent, from any thread.
///
/// The handle is active from creation. Several sends before the callback runs result in one call,
/// and the callback sees all memory writes that the senders made before they sent.
///
/// ```
/// use blacklight::{Async, Loop, Mode};
///
/// let lp = Loop::new()?;
/// let wakeup = Async::new(|lp, _| lp.stop())?;
/// let sender = wakeup.sender();
/// let thread = std::thread::spawn(move || sender.send());
/// assert!(lp.run(Mode::Default));
/// thread.join().unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a handle closes when it is dropped"]
pub struct Async {
    handle: Rc<Handle<Single>>,
    ticket: Ticket,
}

common_methods!(Async);
detach_method!(Async);

impl Async {
    /// Creates the handle.
    ///
    /// ```
    /// use blacklight::{Async, Loop, Mode};
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use std::sync::Arc;
    ///
    /// let lp = Loop::new()?;
    /// let sum = Arc::new(AtomicU32::new(0));
    /// let its = sum.clone();
    /// let wakeup = Async::new(move |_, wakeup| {
    ///     if its.load(Ordering::Relaxed) == 100 {
    ///         wakeup.close(); // It would keep the loop running.
    ///     }
    /// })?;
    /// for _ in 0..100 {
    ///     let (sum, sender) = (sum.clone(), wakeup.sender());
    ///     std::thread::spawn(move || {
    ///         sum.fetch_add(1, Ordering::Relaxed);
    ///         sender.send();
    ///     });
    /// }
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(mut callback: impl FnMut(&LoopHandle, &Async) + 'static) -> io::Result<Async> {
        let lp = &here()?;
        let (handle, ticket) = Handle::single(lp, |engine, token| engine.async_init(token))?;
        let code = Code::of(&callback);
        handle.set_callback(code, move |lp, handle, _| {
            let handle = handle.clone();
            callback(lp, &Async { handle, ticket });
        });
        Ok(Async { handle, ticket })
    }

    /// Returns a sender, which may move to any thread and outlive the handle.
    ///
    /// ```
    /// use blacklight::{Async, Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let wakeup = Async::new(|_, wakeup| wakeup.close())?;
    /// let sender = wakeup.sender();
    /// sender.send();
    /// assert!(!lp.run(Mode::Default));
    /// sender.send(); // Does nothing: the handle is closed.
    /// assert!(!lp.run(Mode::Default));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn sender(&self) -> Sender {
        self.handle.engine().async_sender(self.ticket)
    }
}
