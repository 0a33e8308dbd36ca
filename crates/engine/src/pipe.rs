//! Pipe handles: Unix sockets and pipes.

use crate::engine::Engine;
use crate::event::Token;
use crate::handle::HandleKind;
use crate::slab::Key;
use crate::stream::Arrivals;
use blacklight_sys::socket::{self, Address};
use blacklight_sys::{Errno, fallible};

impl Engine {
    /// Makes a pipe handle. If `ipc`, other handles can be passed over it.
    pub fn pipe_init(&mut self, token: Token, ipc: bool) -> Result<Key, Errno> {
        let key = self.stream_init(token, HandleKind::Pipe)?;
        let index = self.open_stream(key)?;
        if ipc {
            if let Err(error) = self.stream_extra(index) {
                self.stream_discard(key, index);
                return Err(error);
            }
            self.stream_mut(index).arrivals = Arrivals::BytesAndHandles;
        }
        Ok(key)
    }

    fn open_pipe(&self, key: Key) -> Result<u32, Errno> {
        let index = self.open_stream(key)?;
        match self.stream(index).kind {
            HandleKind::Pipe => Ok(index),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Makes a socket for the handle if it has none.
    fn pipe_ensure_socket(&mut self, index: u32) -> Result<(), Errno> {
        if self.stream(index).fd.is_some() {
            return Ok(());
        }
        let socket = socket::socket(socket::AF_UNIX, socket::SOCK_STREAM)?;
        self.stream_attach_socket(index, socket)
            .map_err(|(error, _)| error)
    }

    /// Binds the handle to a path, which is removed when it is closed, or to an abstract
    /// name, which begins with a NUL. `EINVAL` if it has a descriptor already.
    pub fn pipe_bind(&mut self, key: Key, name: &[u8]) -> Result<(), Errno> {
        let index = self.open_pipe(key)?;
        if self.stream(index).fd.is_some() {
            return Err(Errno::EINVAL);
        }
        let address = Address::unix(name).ok_or(Errno::ENAMETOOLONG)?;
        let path = match name.first() {
            None | Some(0) => None,
            Some(_) => Some(fallible::c_string(name)?.into_boxed_c_str()),
        };
        if path.is_some() {
            // Binding cannot be undone, so memory for the path is allocated first.
            self.stream_extra(index)?;
        }
        let socket = socket::socket(socket::AF_UNIX, socket::SOCK_STREAM)?;
        match socket::bind(socket.raw(), &address) {
            // A directory of the path is missing. libuv returns `EACCES`, as on Windows.
            Err(Errno::ENOENT) => return Err(Errno::EACCES),
            bound => bound?,
        }
        self.stream_attach_socket(index, socket)
            .map_err(|(error, _)| error)?;
        if let Some(extra) = self.known_extra(index) {
            extra.path = path;
        }
        Ok(())
    }

    /// Connects the handle to a name. [`Event::Connect`](crate::Event::Connect) follows with
    /// `token`, which must not be `u64::MAX`, even if connecting fails at once.
    pub fn pipe_connect(&mut self, key: Key, token: Token, name: &[u8]) -> Result<(), Errno> {
        let index = self.open_pipe(key)?;
        let had_socket = self.stream(index).fd.is_some();
        let connect = |engine: &mut Engine| {
            if name.is_empty() {
                return Err(Errno::EINVAL);
            }
            let address = Address::unix(name).ok_or(Errno::ENAMETOOLONG)?;
            engine.pipe_ensure_socket(index)?;
            engine.connect(engine.raw_fd(index)?, &address)
        };
        let outcome = connect(self);
        if outcome.is_ok() && !had_socket {
            self.stream_mut(index).open(true, true);
        }
        self.begin_connect(index, token, outcome)
    }
}
