//! Async handles, with which other threads wake a loop.

use crate::handle::{Handle, Single, common_methods, detach_method};
use crate::loop_::Loop;
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
/// let wakeup = Async::new(&lp, |lp, _| lp.stop())?;
/// let sender = wakeup.sender();
/// let thread = std::thread::spawn(move || sender.send());
/// assert!(lp.run(Mode::Default));
/// thread.join().unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Async {
    handle: Rc<Handle<Single>>,
    ticket: Ticket,
}

common_methods!(Async);
detach_method!(Async);

impl Async {
    /// Creates the handle.
    pub fn new(lp: &Loop, mut callback: impl FnMut(&Loop, &Async) + 'static) -> io::Result<Async> {
        let (handle, ticket) = Handle::single(lp, |engine, token| engine.async_init(token))?;
        handle.set_callback(move |lp, handle, _| {
            let handle = handle.clone();
            callback(lp, &Async { handle, ticket });
        });
        Ok(Async { handle, ticket })
    }

    /// Returns a sender, which may move to any thread and outlive the handle.
    pub fn sender(&self) -> Sender {
        self.handle.engine().async_sender(self.ticket)
    }
}
