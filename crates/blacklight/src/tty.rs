//! Terminals, which are streams with a mode and a size.

use crate::current::here;
use crate::handle::{Handle, common_methods};
use crate::loop_::LoopHandle;
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
/// let tty = Tty::new(std::io::stdin())?;
/// tty.set_mode(TtyMode::Raw)?;
/// let mut key = [0; 8];
/// let count = lp.block_on(tty.read(&mut key))?;
/// println!("{:?}", &key[..count]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a handle closes when it is dropped"]
pub struct Tty {
    handle: Rc<Handle<Stream>>,
}

stream_methods!(Tty);

impl Tty {
    /// Opens the terminal behind a descriptor, for reading, writing or both, as the descriptor
    /// was opened. Also accepts pipes and sockets, so that programs work when their input or
    /// output is redirected.
    ///
    /// ```
    /// use blacklight::{Loop, Tty};
    ///
    /// let lp = Loop::new()?;
    /// // A program whose output is redirected.
    /// let (reader, writer) = std::io::pipe()?;
    /// let (input, output) = (Tty::new(reader)?, Tty::new(writer)?);
    /// lp.block_on(output.write_all(b"light"))?;
    /// assert_eq!(lp.block_on(input.read(&mut [0; 8]))?, 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(fd: impl AsFd) -> io::Result<Tty> {
        let fd = fd.as_fd().try_clone_to_owned()?;
        let handle = Handle::stream(&here()?.0, |engine, token| {
            let made = engine.tty_init(token, fd.into());
            made.map(|(key, _)| key).map_err(|(error, _)| error)
        })?;
        Ok(Tty { handle })
    }

    /// Sets the mode of the terminal.
    ///
    /// ```no_run
    /// use blacklight::{Loop, Tty, TtyMode};
    ///
    /// let lp = Loop::new()?;
    /// let tty = Tty::new(std::io::stdin())?;
    /// tty.set_mode(TtyMode::Raw)?;
    /// let mut key = [0; 8]; // One key may be several bytes.
    /// let count = lp.block_on(tty.read(&mut key))?;
    /// tty.set_mode(TtyMode::Normal)?;
    /// println!("{}", key[..count].escape_ascii());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_mode(&self, mode: TtyMode) -> io::Result<()> {
        self.handle
            .with(|engine, key| engine.tty_set_mode(key, mode))
    }

    /// The size of the terminal.
    ///
    /// ```no_run
    /// use blacklight::{Loop, Tty};
    ///
    /// let lp = Loop::new()?;
    /// let size = Tty::new(std::io::stdout())?.size()?;
    /// println!("{} columns and {} rows", size.columns, size.rows);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn size(&self) -> io::Result<TtySize> {
        let (columns, rows) = self.handle.with(|engine, key| engine.tty_size(key))?;
        Ok(TtySize { columns, rows })
    }
}

/// The size of a terminal, in characters; see [`Tty::size`].
///
/// ```no_run
/// use blacklight::{Loop, Tty, TtySize};
///
/// let lp = Loop::new()?;
/// let TtySize { columns, rows, .. } = Tty::new(std::io::stdout())?.size()?;
/// println!("{columns} columns and {rows} rows");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TtySize {
    /// How many characters a line has.
    pub columns: u16,
    /// How many lines there are.
    pub rows: u16,
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
