//! In place of `epoll.rs` where the system has no epoll(7). There cannot be such a poller, so that
//! the default is poll(2), and a simulation has no real kernel beside it.

use super::{Batch, Capability, Registration};
use crate::mailbox::Mailbox;
use blacklight_sys::signal::SignalSet;
use blacklight_sys::{Errno, RawFd, Timeout};

pub(super) fn can(_: Capability) -> bool {
    false
}

#[derive(Debug)]
pub(crate) enum Epoll {}

impl Epoll {
    pub(super) fn new(_: &Mailbox) -> Result<Epoll, Errno> {
        Err(Errno::ENOSYS)
    }

    pub(super) fn fd(&self) -> RawFd {
        match *self {}
    }

    pub(super) fn check(&self, _: RawFd) -> Result<(), Errno> {
        match *self {}
    }

    pub(super) fn add(&mut self, _: Registration) -> Result<(), Errno> {
        match *self {}
    }

    pub(super) fn modify(&mut self, _: Registration) -> Result<(), Errno> {
        match *self {}
    }

    pub(super) fn remove(&mut self, _: RawFd) {
        match *self {}
    }

    pub(super) fn forget(&mut self) {
        match *self {}
    }

    pub(super) fn is_idle(&self) -> bool {
        match *self {}
    }

    pub(super) fn has_events(&self) -> bool {
        match *self {}
    }

    pub(super) fn wait(
        &mut self,
        _: Timeout,
        _: Option<&SignalSet>,
        _: &mut Batch,
    ) -> Result<(), Errno> {
        match *self {}
    }
}
