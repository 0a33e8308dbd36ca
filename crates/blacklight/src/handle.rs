//! Handles: each belongs to a loop, and closes when it is dropped.
//!
//! A handle has two parts. The program owns a [`Handle`]; the loop's table owns its [`Source`],
//! which receives events and stores the callback. The source refers back to the handle weakly,
//! unless the handle is detached.

use crate::code::Code;
use crate::loop_::{Inner, LoopHandle, gone};
use crate::table::Source;
use blacklight_engine::{Engine, Errno, Event, Key};
use std::cell::{Cell, OnceCell, RefMut};
use std::io;
use std::rc::{Rc, Weak};

/// The program's part of a handle. `state` is the loop's part.
pub(crate) struct Handle<S: Source> {
    pub(crate) inner: Rc<Inner>,
    pub(crate) key: Key,
    pub(crate) state: Rc<S>,
    /// Whether the program has closed it.
    pub(crate) is_closed: Cell<bool>,
}

impl<S: Source> Handle<S> {
    pub(crate) fn engine(&self) -> RefMut<'_, Engine> {
        self.inner.engine()
    }

    /// Whether the handle does nothing more: it is closed, or its loop is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closed.get() || self.inner.is_closed()
    }

    /// An error if the handle does nothing more.
    pub(crate) fn check_open(&self) -> io::Result<()> {
        match self.is_closed.get() {
            true => Err(Errno::ECANCELED.into()),
            false if self.inner.is_closed() => Err(gone()),
            false => Ok(()),
        }
    }

    /// The engine, to start something with; an error if the handle does nothing more.
    pub(crate) fn live_engine(&self) -> io::Result<RefMut<'_, Engine>> {
        self.check_open()?;
        Ok(self.inner.engine())
    }
}

impl<S: Source> Handle<S> {
    /// Closes the handle, unless it is closed already. `Event::Closed` removes its entry from the
    /// loop's table.
    pub(crate) fn close(&self) {
        let closed = self.engine().close(self.key);
        if closed.is_ok() {
            self.is_closed.set(true);
            self.state.clear();
        }
    }

    /// Has the engine do something with the handle.
    pub(crate) fn with<R>(
        &self,
        f: impl FnOnce(&mut Engine, Key) -> EngineResult<R>,
    ) -> io::Result<R> {
        let done = f(&mut self.engine(), self.key);
        done.map_err(|error| self.explain(error))
    }

    /// The error of an operation. What was in progress when the handle was closed, or is tried
    /// later, was cancelled.
    pub(crate) fn explain(&self, error: Errno) -> io::Error {
        match self.is_closed.get() {
            true => Errno::ECANCELED.into(),
            false => error.into(),
        }
    }
}

impl<S: Source> Drop for Handle<S> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Holds a callback. A call takes the callback out, so that the callback may replace or drop
/// itself.
pub(crate) struct Slot<F: ?Sized> {
    callback: Cell<Option<Box<F>>>,
    /// What names the callback that was set last.
    code: Cell<Code>,
    /// Counts the calls of `set` and `clear`.
    changes: Cell<u32>,
}

impl<F: ?Sized> Slot<F> {
    pub(crate) const fn new() -> Slot<F> {
        Slot {
            callback: Cell::new(None),
            code: Cell::new(Code::NONE),
            changes: Cell::new(0),
        }
    }

    /// Sets the callback. The previous one is dropped, after its call if it is running.
    pub(crate) fn set(&self, callback: Box<F>, code: Code) {
        self.code.set(code);
        self.replace(Some(callback));
    }

    /// Removes the callback, like `set`.
    pub(crate) fn clear(&self) {
        self.replace(None);
    }

    fn replace(&self, callback: Option<Box<F>>) {
        self.changes.set(self.changes.get().wrapping_add(1));
        drop(self.callback.replace(callback));
    }

    pub(crate) fn code(&self) -> Code {
        self.code.get()
    }

    /// Calls the callback, if one is set. A callback that panics stays set, so that the loop can
    /// run on after the panic is caught.
    pub(crate) fn call<R>(&self, call: impl FnOnce(&mut F) -> R) -> Option<R> {
        let mut called = Called {
            slot: self,
            changes: self.changes.get(),
            callback: self.callback.take(),
        };
        called.callback.as_mut().map(|callback| call(callback))
    }
}

/// A running callback, which returns to its slot on drop unless it was replaced or removed meanwhile.
struct Called<'a, F: ?Sized> {
    slot: &'a Slot<F>,
    changes: u32,
    callback: Option<Box<F>>,
}

impl<F: ?Sized> Drop for Called<'_, F> {
    fn drop(&mut self) {
        if self.slot.changes.get() == self.changes {
            self.slot.callback.set(self.callback.take());
        }
    }
}

/// The callback of a [`Single`].
pub(crate) type Callback = dyn FnMut(&LoopHandle, &Rc<Handle<Single>>, Event);

/// The loop's part of a handle with one callback.
pub(crate) struct Single {
    callback: Slot<Callback>,
    /// The program's part. After it is dropped, events are ignored.
    handle: OnceCell<Weak<Handle<Single>>>,
    /// Set by `detach`, so that the loop owns the handle.
    detached: Cell<Option<Rc<Handle<Single>>>>,
}

impl Source for Single {
    fn event(&self, lp: &LoopHandle, event: Event) {
        if let Some(handle) = self.handle.get().and_then(Weak::upgrade) {
            self.callback.call(|callback| callback(lp, &handle, event));
        }
    }

    fn code(&self, _: Option<&Event>) -> Code {
        self.callback.code()
    }

    fn clear(&self) {
        self.callback.clear();
        drop(self.detached.take());
    }
}

impl Handle<Single> {
    /// Creates a handle with one callback; `make` receives its token.
    pub(crate) fn single<T>(
        lp: &LoopHandle,
        make: impl FnOnce(&mut Engine, blacklight_engine::Token) -> EngineResult<(Key, T)>,
    ) -> io::Result<(Rc<Handle<Single>>, T)> {
        let state = Rc::new(Single {
            callback: Slot::new(),
            handle: OnceCell::new(),
            detached: Cell::new(None),
        });
        let (handle, made) = lp.attach(state, make)?;
        let handle = Rc::new(handle);
        let _ = handle.state.handle.set(Rc::downgrade(&handle));
        Ok((handle, made))
    }

    /// Replaces the handle's callback. `code` is that of the program's own.
    pub(crate) fn set_callback(
        &self,
        code: Code,
        callback: impl FnMut(&LoopHandle, &Rc<Handle<Single>>, Event) + 'static,
    ) {
        self.state.callback.set(Box::new(callback), code);
    }

    pub(crate) fn drop_callback(&self) {
        self.state.callback.clear();
    }

    pub(crate) fn detach(self: Rc<Self>) {
        // Nothing would take it out of the state that it owns.
        if !self.is_over() {
            let state = self.state.clone();
            state.detached.set(Some(self));
        }
    }
}

/// The result of an engine call.
pub(crate) type EngineResult<T> = Result<T, blacklight_engine::Errno>;

/// The methods that every kind of handle has.
macro_rules! common_methods {
    ($handle:ident $(<$io:ident>)?) => {
        impl $(<$io>)? $handle $(<$io>)? {
            /// Whether the handle is active.
            ///
            /// For example, with a timer:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, Timer};
            /// use std::time::Duration;
            ///
            /// let lp = Loop::new()?;
            /// let timer = Timer::new()?;
            /// assert!(!timer.is_active());
            /// timer.start(Duration::from_millis(1), |_, timer| assert!(!timer.is_active()))?;
            /// assert!(timer.is_active());
            /// lp.run(Mode::Default);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn is_active(&self) -> bool {
                self.handle.engine().is_active(self.handle.key)
            }

            /// Closes the handle now, even if it has other owners or is detached. Its callback is
            /// dropped, and it cannot be used again: what is in progress, and what is tried later,
            /// fails with `ECANCELED`. A descriptor that `as_fd` has lent stays open until the last
            /// owner is dropped.
            ///
            /// For example, with a timer:
            ///
            /// ```
            /// use blacklight::{Loop, Timer};
            /// use std::time::Duration;
            ///
            /// let lp = Loop::new()?;
            /// let timer = Timer::new()?;
            /// timer.close();
            /// let error = timer.start(Duration::ZERO, |_, _| ()).unwrap_err();
            /// assert_eq!(error.raw_os_error(), Some(libc::ECANCELED));
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn close(&self) {
                self.handle.close();
            }

            /// Lets the loop end while this handle is active.
            ///
            /// For example, with a timer:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, Timer};
            /// use std::time::Duration;
            ///
            /// let lp = Loop::new()?;
            /// let timer = Timer::new()?;
            /// timer.start(Duration::from_secs(3600), |_, _| ())?;
            /// assert!(timer.is_active() && timer.has_ref());
            /// timer.unref();
            /// lp.run(Mode::Default); // Returns at once: nothing else is active.
            /// timer.r#ref();
            /// assert!(lp.is_alive());
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn unref(&self) {
                self.handle.engine().unreference(self.handle.key);
            }

            /// Undoes [`unref`](Self::unref).
            ///
            /// For example, with a timer:
            ///
            /// ```
            /// use blacklight::{Loop, Timer};
            /// use std::time::Duration;
            ///
            /// let lp = Loop::new()?;
            /// let timer = Timer::new()?;
            /// timer.start(Duration::from_secs(3600), |_, _| ())?;
            /// timer.unref();
            /// assert!(!lp.is_alive());
            /// timer.r#ref();
            /// assert!(lp.is_alive());
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn r#ref(&self) {
                self.handle.engine().reference(self.handle.key);
            }

            /// Whether the handle keeps the loop running while it is active.
            ///
            /// For example, with a timer:
            ///
            /// ```
            /// use blacklight::{Loop, Timer};
            ///
            /// let lp = Loop::new()?;
            /// let timer = Timer::new()?;
            /// assert!(timer.has_ref() && !lp.is_alive(), "it is not active");
            /// timer.unref();
            /// assert!(!timer.has_ref());
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn has_ref(&self) -> bool {
                self.handle.engine().has_reference(self.handle.key)
            }
        }

        impl $(<$io>)? std::fmt::Debug for $handle $(<$io>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($handle))
                    .field("active", &self.is_active())
                    .field("has_ref", &self.has_ref())
                    .finish()
            }
        }
    };
}

/// `detach`, for handles that consist of a [`Single`] only.
macro_rules! detach_method {
    ($handle:ident) => {
        impl $handle {
            /// Gives the handle to the loop, which owns it until it is closed or the loop is
            /// gone.
            ///
            /// For example, with a timer:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, Timer};
            /// use std::time::Duration;
            ///
            /// let lp = Loop::new()?;
            /// let timer = Timer::new()?;
            /// timer.start_repeating(Duration::from_millis(1), |lp, _| lp.stop())?;
            /// timer.detach();
            /// assert!(lp.run(Mode::Default), "it ticks on");
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn detach(self) {
                self.handle.detach();
            }
        }
    };
}

pub(crate) use {common_methods, detach_method};
