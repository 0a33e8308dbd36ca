//! Terminals, which are streams with a mode and a size.

use crate::handle::{Handle, common_methods};
use crate::loop_::Loop;
use crate::stream::{Stream, stream_methods};
use blacklight_engine::TtyMode;
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

/// A terminal. Closing it restores its mode.
///
/// ```no_run
/// use blacklight::{Loop, Tty, TtyMode};
///
/// let lp = Loop::new()?;
/// let tty = Tty::new(&lp, std::io::stdin())?;
/// tty.set_mode(TtyMode::Raw)?;
/// let mut key = [0; 8];
/// let count = lp.block_on(tty.read(&mut key))?;
/// println!("{:?}", &key[..count]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Tty {
    handle: Rc<Handle<Stream>>,
}

stream_methods!(Tty);

impl Tty {
    /// Opens the terminal behind a descriptor, for reading, writing or both, as the descriptor
    /// was opened. Also accepts pipes and sockets, so that programs work when their input or
    /// output is redirected.
    pub fn new(lp: &Loop, fd: impl AsFd) -> io::Result<Tty> {
        let fd = fd.as_fd().try_clone_to_owned()?;
        let handle = Handle::stream(&lp.0, |engine, token| {
            let made = engine.tty_init(token, fd.into());
            made.map(|(key, _)| key).map_err(|(error, _)| error)
        })?;
        Ok(Tty { handle })
    }

    /// Sets the mode of the terminal.
    pub fn set_mode(&self, mode: TtyMode) -> io::Result<()> {
        Ok(self.handle.engine().tty_set_mode(self.handle.key, mode)?)
    }

    /// The size of the terminal, in columns and rows.
    ///
    /// ```no_run
    /// use blacklight::{Loop, Tty};
    ///
    /// let lp = Loop::new()?;
    /// let (columns, rows) = Tty::new(&lp, std::io::stdout())?.size()?;
    /// println!("{columns} columns and {rows} rows");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn size(&self) -> io::Result<(u16, u16)> {
        Ok(self.handle.engine().tty_size(self.handle.key)?)
    }
}

/// Restores the mode of the first terminal that this process has changed, for a program that ends
/// without closing its handles. Async-signal-safe.
///
/// ```
/// // Does nothing if no mode was changed.
/// blacklight::reset_terminal()?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn reset_terminal() -> io::Result<()> {
    Ok(blacklight_engine::reset_terminal()?)
}
