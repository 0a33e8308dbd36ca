//! Closing a stream: its descriptor is closed at once, its requests are cancelled in the closing
//! phase.

use super::{Engine, Extra};
use crate::event::Event;
use crate::slab::{Key, NIL};
use blacklight_sys::{Errno, fd};

impl Engine {
    /// Closes a stream's descriptor and ends its turn.
    pub(crate) fn release_stream(&mut self, index: u32, stream: u32) {
        self.driver.remove(self.streams.slab[stream].watcher);
        self.handles.set_active(index, false);
        self.end_turn_of_stream(stream);
        let terminal = std::mem::replace(&mut self.streams.slab[stream].terminal, NIL);
        if terminal != NIL {
            self.release_tty(terminal, self.raw_fd(stream).ok());
        }
        let stream = &mut self.streams.slab[stream];
        stream.close();
        stream.accepted = None;
        // The socket stays open until its name is unlinked. Otherwise another process could find the
        // name without a server and bind to it, and this would unlink that process's name.
        let _socket = stream.fd.take();
        let extra = std::mem::replace(&mut stream.extra, NIL);
        if extra != NIL {
            let Extra { path, .. } = std::mem::take(&mut self.streams.extras[extra]);
            self.streams.extras.remove(extra);
            if let Some(path) = path {
                // The file may have been removed already.
                let _ = fd::unlink(&path);
            }
        }
    }

    /// Lets the file of a bound Unix socket stay when the stream is closed.
    pub fn pipe_keep_file(&mut self, key: Key) -> Result<(), Errno> {
        let stream = self.open_stream(key)?;
        let extra = self.streams.slab[stream].extra;
        if extra != NIL {
            self.streams.extras[extra].path = None;
        }
        Ok(())
    }

    /// Removes a stream that was just made and that the front end does not know.
    pub(crate) fn stream_discard(&mut self, key: Key, stream: u32) {
        self.release_stream(key.index, stream);
        let request = self.cancel_next_request(stream);
        debug_assert!(request.is_none(), "a new stream has no requests");
        self.handles.finish_close(key.index);
    }

    /// Cancels the next request of a closed stream, in the order connect, writes, shutdown. After
    /// the last one, removes the stream and returns `None`.
    pub(crate) fn cancel_next_request(&mut self, index: u32) -> Option<Event> {
        let stream = &mut self.streams.slab[index];
        if let Some(token) = stream.connect.take() {
            self.requests.end();
            return Some(Event::Connect(token, Err(Errno::ECANCELED)));
        }
        if !self.stream(index).output.queue.is_empty() {
            self.fail_writes(index, Errno::ECANCELED);
        }
        if let Some(write) = self.report_write(index) {
            return Some(write);
        }
        if let Some(token) = self.streams.slab[index].output.shutdown.take() {
            self.requests.end();
            return Some(Event::Shutdown(token, Err(Errno::ECANCELED)));
        }
        self.streams.remove(index);
        None
    }
}
