//! Terminal handles: streams on terminals, and the terminals' modes.
//!
//! A terminal is shared by nature: standard input, output and error of this process and of
//! others may all be one open file, and what is set on that is set for all. So a handle
//! opens the terminal once more and makes that non-blocking. Where it cannot, it writes in
//! blocking fashion and reads once per readiness.
//!
//! The mode is relative to the settings that the terminal had when the handle first left
//! the normal mode. The first terminal of the process that is changed in this way is
//! remembered for [`reset_terminal`], until its handle is closed, which puts its settings back.

use crate::engine::Engine;
use crate::event::Token;
use crate::handle::HandleKind;
use crate::slab::{Key, NIL};
use blacklight_sys::fd::{self, Descriptor};
use blacklight_sys::stream::Transport;
use blacklight_sys::terminal::{self, Settings};
use blacklight_sys::{Errno, RawFd};

/// How a terminal treats what goes through it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TtyMode {
    /// As it was found: line by line, with the kernel's editing and echo.
    Normal,
    /// Key by key, without echo and signals. Output is as before.
    Raw,
    /// Bytes, unchanged in both directions.
    Binary,
}

/// What terminal handles have beyond streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    mode: TtyMode,
    /// How it was before it left the normal mode.
    normal: Option<Settings>,
    /// It could not be opened anew and made non-blocking.
    blocks: bool,
}

/// Puts the first terminal back that the process has changed. Async-signal-safe; `EBUSY` if
/// it interrupts a change.
pub fn reset_terminal() -> Result<(), Errno> {
    terminal::reset()
}

impl Engine {
    /// Makes a terminal handle for a descriptor, in the directions that it was opened for.
    /// Pipes and sockets are taken, too; `EINVAL` for anything else.
    ///
    /// Where the handle has opened the terminal anew it has no use for the descriptor, which
    /// comes back with the key. On error it comes back as well.
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

    /// Whether the handle could not open its terminal anew, so that writing to it blocks.
    pub fn tty_is_blocking(&self, key: Key) -> bool {
        self.open_stream(key)
            .is_ok_and(|stream| self.blocks(stream))
    }

    /// Whether calls on the stream's descriptor may block: writes then wait in the call, and reads
    /// are only made when the poller says that there is something.
    #[inline]
    pub(crate) fn blocks(&self, stream: u32) -> bool {
        match self.stream(stream).terminal {
            NIL => false,
            terminal => self.terminals[terminal].blocks,
        }
    }

    /// The stream, the terminal and the descriptor of a terminal handle.
    fn open_tty(&self, key: Key) -> Result<(u32, RawFd), Errno> {
        let stream = self.open_stream(key)?;
        match self.stream(stream).terminal {
            NIL => Err(Errno::EINVAL),
            terminal => Ok((terminal, self.raw_fd(stream)?)),
        }
    }

    /// Puts the terminal into a mode.
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
                // Before the change: whoever is interrupted right after it can undo it.
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

    /// A terminal handle is being closed: whoever has the terminal next finds it as it was.
    pub(crate) fn release_tty(&mut self, index: u32, fd: Option<RawFd>) {
        let Terminal { mode, normal, .. } = self.terminals[index];
        self.terminals.remove(index);
        if let Some(fd) = fd
            && terminal::forget(fd)
            && mode != TtyMode::Normal
            && let Some(normal) = normal
        {
            // A terminal that has been hung up needs no settings.
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
