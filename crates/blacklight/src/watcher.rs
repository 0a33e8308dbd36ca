//! Handles that call back on every turn of the loop.

use crate::code::Code;
use crate::current::here;
use crate::handle::{Handle, Single, common_methods, detach_method};
use crate::loop_::LoopHandle;
use blacklight_engine::Engine;
use std::io;
use std::rc::Rc;

macro_rules! watcher {
    ($(#[$doc:meta])* $name:ident, $init:path) => {
        $(#[$doc])*
        #[must_use = "a handle closes when it is dropped"]
        pub struct $name {
            handle: Rc<Handle<Single>>,
        }

        common_methods!($name);
        detach_method!($name);

        impl $name {
            /// Creates the handle, stopped.
            ///
            /// For example, all three kinds:
            ///
            /// ```
            /// use blacklight::{Check, Idle, Loop, Prepare};
            ///
            /// let lp = Loop::new()?;
            /// let (idle, prepare, check) = (Idle::new()?, Prepare::new()?, Check::new()?);
            /// assert!(!idle.is_active() && !prepare.is_active() && !check.is_active());
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn new() -> io::Result<$name> {
                let lp = &here()?;
                let (handle, ()) = Handle::single(lp, |engine, token| Ok(($init(engine, token)?, ())))?;
                Ok($name { handle })
            }

            /// Starts the handle, or replaces the callback if it is started already.
            ///
            /// For example, in the order of a turn:
            ///
            /// ```
            /// use blacklight::{Check, Idle, Loop, Mode, Prepare};
            /// use std::{cell::RefCell, rc::Rc};
            ///
            /// let lp = Loop::new()?;
            /// let (idle, prepare, check) = (Idle::new()?, Prepare::new()?, Check::new()?);
            /// let log = Rc::new(RefCell::new(Vec::new()));
            /// let [one, two, three] = [(); 3].map(|()| log.clone());
            /// check.start(move |_, _| one.borrow_mut().push("check"))?;
            /// idle.start(move |_, _| two.borrow_mut().push("idle"))?;
            /// prepare.start(move |_, _| three.borrow_mut().push("prepare"))?;
            /// lp.run(Mode::NoWait);
            /// assert_eq!(*log.borrow(), ["idle", "prepare", "check"]);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn start(
                &self,
                mut callback: impl FnMut(&LoopHandle, &$name) + 'static,
            ) -> io::Result<()> {
                self.handle.live_engine()?.loop_watcher_start(self.handle.key)?;
                let code = Code::of(&callback);
                self.handle.set_callback(code, move |lp, handle, _| {
                    let watcher = $name {
                        handle: handle.clone(),
                    };
                    callback(lp, &watcher);
                });
                Ok(())
            }

            /// Stops the handle.
            ///
            /// For example, in its own callback:
            ///
            /// ```
            /// use blacklight::{Idle, Loop, Mode};
            ///
            /// let lp = Loop::new()?;
            /// let idle = Idle::new()?;
            /// idle.start(|_, idle| idle.stop())?;
            /// assert!(!lp.run(Mode::Default));
            /// assert!(!idle.is_active());
            /// # Ok::<(), std::io::Error>(())
            /// ```
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
    /// let idle = Idle::new()?;
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
    /// let prepare = Prepare::new()?;
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
    /// let check = Check::new()?;
    /// check.start(|_, check| check.stop())?;
    /// assert!(!lp.run(Mode::NoWait));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    Check, Engine::check_init
}
