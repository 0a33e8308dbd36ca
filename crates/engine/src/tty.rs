//! Terminal handles: streams on terminals, and the terminals' modes.
//!
//! Standard input, output and error of this process and of others may all share one open file of
//! a terminal, and its flags apply to all of them. So a handle reopens the terminal and makes only
//! its own open file non-blocking. Where it cannot, its writes block, and it reads once per
//! readiness.
//!
//! Modes are relative to the settings that the terminal had when the handle left the normal mode.
//! The process remembers the first terminal whose mode it changes for [`reset_terminal`], until its
//! handle is closed, which restores the settings.

use crate::engine::Engine;
use crate::event::Token;
use crate::handle::HandleKind;
use crate::slab::{Key, NIL};
use blacklight_sys::fd::{self, Descriptor};
use blacklight_sys::stream::Transport;
use blacklight_sys::terminal::{self, Settings};
use blacklight_sys::{Errno, RawFd};

/// How a terminal processes input and output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TtyMode {
    /// The settings before any change: line by line, with the kernel's editing and echo.
    Normal,
    /// Key by key, without echo and signals. Output is as in the normal mode.
    Raw,
    /// Bytes, unchanged in both directions.
    Binary,
}

/// The state of a terminal handle beyond that of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    mode: TtyMode,
    /// The settings in the normal mode.
    normal: Option<Settings>,
    /// The handle could not reopen the terminal, so its descriptor is blocking.
    blocks: bool,
}

/// Restores the settings of the first terminal that the process has changed. Async-signal-safe;
/// `EBUSY` if the caller has interrupted a change.
pub fn reset_terminal() -> Result<(), Errno> {
    terminal::reset()
}

impl Engine {
    /// Makes a terminal handle for a descriptor, in the directions that it was opened for. The
    /// descriptor may also be a pipe or socket; `EINVAL` for anything else.
    ///
    /// If the handle has reopened the terminal, the descriptor comes back with the key. On error
    /// it comes back as well.
    pub fn tty_init(
        &mut self,
        token: Token,
        fd: Descriptor,
    ) -> Result<(Key, Option<Descriptor>), (Errno, Descriptor)> {
        let is_terminal = fd::is_terminal(fd.raw());
        let directions = match check(fd.raw(), is_terminal) {
            Ok(directions) => directions,
            Err(error) => return Err((error, fd)),
        };
        let again = if is_terminal {
            terminal::reopen(fd.raw())
        } else {
            None
        };
        let blocking = is_terminal && again.is_none();
        let (own, given) = match again {
            Some(own) => (own, Some(fd)),
            None => (fd, None),
        };
        match self.tty_attach(token, own, directions, blocking) {
            Ok(key) => Ok((key, given)),
            Err((error, own)) => Err((error, given.unwrap_or(own))),
        }
    }

    fn tty_attach(
        &mut self,
        token: Token,
        fd: Descriptor,
        (readable, writable): (bool, bool),
        blocking: bool,
    ) -> Result<Key, (Errno, Descriptor)> {
        if !blocking && let Err(error) = fd::set_nonblocking(fd.raw(), true) {
            return Err((error, fd));
        }
        let made = self
            .terminals
            .insert(Terminal {
                mode: TtyMode::Normal,
                normal: None,
                blocks: blocking,
            })
            .and_then(|terminal| {
                let key = self.stream_init(token, HandleKind::Tty);
                key.and_then(|key| Ok((terminal.index, key, self.open_stream(key)?)))
                    .inspect_err(|_| self.terminals.remove(terminal.index))
            });
        let (terminal, key, stream) = match made {
            Ok(made) => made,
            Err(error) => return Err((error, fd)),
        };
        self.stream_mut(stream).terminal = terminal;
        if let Err((error, fd)) = self.stream_attach(stream, fd) {
            self.stream_discard(key, stream);
            return Err((error, fd));
        }
        self.stream_mut(stream).open(readable, writable);
        Ok(key)
    }

    /// Whether the handle could not reopen its terminal, so that writing to it blocks.
    pub fn tty_is_blocking(&self, key: Key) -> bool {
        self.open_stream(key)
            .is_ok_and(|stream| self.blocks(stream))
    }

    /// Whether calls on the stream's descriptor may block: writes then block, and the stream reads
    /// only after the poller has reported it readable.
    #[inline]
    pub(crate) fn blocks(&self, stream: u32) -> bool {
        match self.stream(stream).terminal {
            NIL => false,
            terminal => self.terminals[terminal].blocks,
        }
    }

    /// The terminal and the descriptor of a terminal handle. `EBADF` if it is closed.
    fn open_tty(&self, key: Key) -> Result<(u32, RawFd), Errno> {
        let stream = self.open_stream(key).map_err(|_| Errno::EBADF)?;
        match self.stream(stream).terminal {
            NIL => Err(Errno::EINVAL),
            terminal => Ok((terminal, self.raw_fd(stream)?)),
        }
    }

    /// Sets the terminal's mode.
    pub fn tty_set_mode(&mut self, key: Key, mode: TtyMode) -> Result<(), Errno> {
        let (index, fd) = self.open_tty(key)?;
        let terminal = &mut self.terminals[index];
        if terminal.mode == mode {
            return Ok(());
        }
        let normal = match (terminal.mode, terminal.normal) {
            (TtyMode::Raw | TtyMode::Binary, Some(normal)) => normal,
            _ => {
                let normal = Settings::of(fd)?;
                // Before the change, so that a signal handler right after it can undo it.
                terminal::remember(fd, normal);
                normal
            }
        };
        let settings = match mode {
            TtyMode::Normal => normal,
            TtyMode::Raw => normal.raw(),
            TtyMode::Binary => normal.binary(),
        };
        settings.apply(fd)?;
        terminal.mode = mode;
        terminal.normal = Some(normal);
        Ok(())
    }

    /// The terminal's columns and rows.
    pub fn tty_size(&self, key: Key) -> Result<(u16, u16), Errno> {
        let (_, fd) = self.open_tty(key)?;
        terminal::size(fd)
    }

    /// Restores the settings of a terminal whose handle is being closed.
    pub(crate) fn release_tty(&mut self, index: u32, fd: Option<RawFd>) {
        let Terminal { mode, normal, .. } = self.terminals[index];
        self.terminals.remove(index);
        if let Some(fd) = fd
            && terminal::forget(fd)
            && mode != TtyMode::Normal
            && let Some(normal) = normal
        {
            // This fails for a terminal that has hung up, which needs no settings.
            let _ = normal.apply(fd);
        }
    }
}

/// The directions of a descriptor that a terminal handle can be made for.
fn check(fd: RawFd, is_terminal: bool) -> Result<(bool, bool), Errno> {
    let is_stream = is_terminal || Transport::of(fd).is_ok_and(|it| it != Transport::Device);
    match is_stream {
        true => fd::directions(fd),
        false => Err(Errno::EINVAL),
    }
}
