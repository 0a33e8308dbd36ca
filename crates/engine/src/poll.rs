//! Poll handles: readiness of descriptors that the program itself reads and writes.

use crate::driver::Owner;
use crate::engine::Engine;
use crate::event::{Event, Token};
use crate::handle::Kind;
use crate::readiness::{Interest, Readiness};
use crate::slab::{Key, NIL};
use blacklight_sys::{Errno, RawFd};

impl Engine {
    /// Makes a poll handle for a descriptor, which becomes non-blocking.
    ///
    /// `EEXIST` if another handle is watching the descriptor, `EBADF` if it is not open,
    /// `EPERM` for files and directories, and `EINVAL` if its number is too high for the poller in
    /// use.
    pub fn poll_init(&mut self, token: Token, fd: RawFd) -> Result<Key, Errno> {
        if self.driver.is_taken(fd, NIL) {
            return Err(Errno::EEXIST);
        }
        self.driver.check(fd)?;
        self.driver.set_nonblocking(fd)?;
        let watcher = self.driver.add(fd, Owner::Poll(NIL))?;
        match self.make_handle(Kind::Poll(watcher), token) {
            Ok(key) => {
                self.driver.set_owner(watcher, Owner::Poll(key.index));
                Ok(key)
            }
            Err(error) => {
                self.driver.remove(watcher);
                Err(error)
            }
        }
    }

    fn poll_watcher(&self, index: u32) -> Result<u32, Errno> {
        match self.handles[index].kind {
            Kind::Poll(watcher) => Ok(watcher),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Watches the descriptor for `wanted`, in place of the interest before. An empty interest stops
    /// the handle. `EEXIST` if another handle is watching the descriptor.
    pub fn poll_start(&mut self, key: Key, wanted: impl Into<Interest>) -> Result<(), Errno> {
        let wanted = wanted.into();
        let index = self.handles.open(key)?;
        let watcher = self.poll_watcher(index)?;
        if self.driver.is_taken(self.driver.fd(watcher), watcher) {
            return Err(Errno::EEXIST);
        }
        if wanted.is_empty() {
            self.stop_poll(index, watcher);
            return Ok(());
        }
        self.driver.want_only(watcher, wanted)?;
        self.handles.set_active(index, true);
        Ok(())
    }

    /// Stops watching. The program may close the descriptor right after.
    pub fn poll_stop(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        let watcher = self.poll_watcher(index)?;
        self.stop_poll(index, watcher);
        Ok(())
    }

    /// The descriptor; `EBADF` once the handle is closing.
    pub fn poll_fd(&self, key: Key) -> Result<RawFd, Errno> {
        let index = self.handles.open(key).map_err(|_| Errno::EBADF)?;
        Ok(self.driver.fd(self.poll_watcher(index)?))
    }

    fn stop_poll(&mut self, index: u32, watcher: u32) {
        self.driver.stop(watcher);
        self.handles.set_active(index, false);
    }

    pub(crate) fn release_poll(&mut self, index: u32, watcher: u32) {
        self.stop_poll(index, watcher);
        self.driver.remove(watcher);
    }

    /// The handle's event for the readiness of its watcher.
    #[inline]
    pub(crate) fn poll_event(
        &mut self,
        watcher: u32,
        index: u32,
        ready: Result<Readiness, Errno>,
    ) -> Event {
        let result = match ready {
            Ok(ready) if !ready.intersects(Readiness::TROUBLE) => Ok(ready),
            ready => self.poll_trouble(watcher, index, ready),
        };
        Event::Poll(self.handles[index].token, result)
    }

    /// The result that a handle reports for an error or a hang-up. Stops watching a descriptor that
    /// is in error.
    #[cold]
    fn poll_trouble(
        &mut self,
        watcher: u32,
        index: u32,
        ready: Result<Readiness, Errno>,
    ) -> Result<Readiness, Errno> {
        // sysfs attributes report an error together with each priority event.
        let is_broken = |ready: Readiness| {
            let is_failed =
                ready.contains(Readiness::ERROR) && !ready.contains(Readiness::PRIORITIZED);
            is_failed || ready.contains(Readiness::CLOSED)
        };
        let result = match ready {
            Ok(ready) if is_broken(ready) => Err(Errno::EBADF),
            // No operation blocks after a hang-up, so all wanted events are reported, as in libuv.
            Ok(ready) if ready.contains(Readiness::HANG_UP) => {
                Ok(ready | self.driver.wanted(watcher).into())
            }
            ready => ready,
        };
        if result.is_err() {
            self.stop_poll(index, watcher);
        }
        // The handle reports only conditions that it can ask for.
        result.map(|ready| Interest::from(ready).into())
    }
}
