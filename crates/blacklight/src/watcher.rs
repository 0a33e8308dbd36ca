//! Handles that call back on every turn of the loop.

use crate::handle::{Handle, Single, common_methods, detach_method};
use crate::loop_::Loop;
use blacklight_engine::Engine;
use std::io;
use std::rc::Rc;

macro_rules! watcher {
    ($(#[$doc:meta])* $name:ident, $init:path) => {
        $(#[$doc])*
        pub struct $name {
            handle: Rc<Handle<Single>>,
        }

        common_methods!($name);
        detach_method!($name);

        impl $name {
            /// Creates the handle, stopped.
            pub fn new(lp: &Loop) -> io::Result<$name> {
                let (handle, ()) = Handle::single(lp, |engine, token| Ok(($init(engine, token)?, ())))?;
                Ok($name { handle })
            }

            /// Starts the handle, or replaces the callback if it is started already.
            pub fn start(
                &self,
                mut callback: impl FnMut(&Loop, &$name) + 'static,
            ) -> io::Result<()> {
                self.handle.engine().loop_watcher_start(self.handle.key)?;
                self.handle.set_callback(move |lp, handle, _| {
                    let watcher = $name {
                        handle: handle.clone(),
                    };
                    callback(lp, &watcher);
                });
                Ok(())
            }

            /// Stops the handle.
            pub fn stop(&self) {
                // A closed handle has stopped.
                let _ = self.handle.engine().loop_watcher_stop(self.handle.key);
            }
        }
    };
}

watcher! {
    /// Calls back on every turn, and keeps the loop from sleeping.
    ///
    /// ```
    /// use blacklight::{Idle, Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let idle = Idle::new(&lp)?;
    /// let mut turns = 0;
    /// idle.start(move |_, idle| {
    ///     turns += 1;
    ///     if turns == 3 {
    ///         idle.stop();
    ///     }
    /// })?;
    /// assert!(!lp.run(Mode::Default));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    Idle, Engine::idle_init
}

watcher! {
    /// Calls back on every turn, right before the loop polls.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, Prepare};
    ///
    /// let lp = Loop::new()?;
    /// let prepare = Prepare::new(&lp)?;
    /// prepare.start(|lp, _| lp.stop())?;
    /// assert!(lp.run(Mode::Default), "it is still active");
    /// prepare.stop();
    /// assert!(!lp.run(Mode::Default));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    Prepare, Engine::prepare_init
}

watcher! {
    /// Calls back on every turn, right after the loop has polled.
    ///
    /// ```
    /// use blacklight::{Check, Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let check = Check::new(&lp)?;
    /// check.start(|_, check| check.stop())?;
    /// assert!(!lp.run(Mode::NoWait));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    Check, Engine::check_init
}
