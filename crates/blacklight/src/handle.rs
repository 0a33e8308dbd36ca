//! What all handles have in common: they belong to a loop, and close when they are dropped.

use crate::loop_::{Inner, Loop};
use crate::table::Source;
use blacklight_engine::{Engine, Event, Key};
use std::cell::{Cell, OnceCell, RefMut};
use std::io;
use std::rc::{Rc, Weak};

/// The program's end of a handle. The loop's end is `state`.
pub(crate) struct Handle<S: Source> {
    pub(crate) inner: Rc<Inner>,
    pub(crate) key: Key,
    pub(crate) state: Rc<S>,
}

impl<S: Source> Handle<S> {
    pub(crate) fn engine(&self) -> RefMut<'_, Engine> {
        self.inner.engine()
    }
}

impl<S: Source> Handle<S> {
    /// Closes the handle, unless it is closed already. The entry in the loop's table goes when
    /// the engine says that this is finished.
    pub(crate) fn close(&self) {
        let closed = self.engine().close(self.key);
        if closed.is_ok() {
            self.state.clear();
        }
    }
}

impl<S: Source> Drop for Handle<S> {
    fn drop(&mut self) {
        self.close();
    }
}

/// A place for a callback, out of which it is taken while it runs, so that it may be replaced
/// or dropped meanwhile, also by itself.
pub(crate) struct Slot<F: ?Sized> {
    callback: Cell<Option<Box<F>>>,
    /// Counts how often the callback was replaced or taken away.
    changes: Cell<u32>,
}

impl<F: ?Sized> Slot<F> {
    pub(crate) const fn new() -> Slot<F> {
        Slot {
            callback: Cell::new(None),
            changes: Cell::new(0),
        }
    }

    /// Puts a callback here, or none. The one before is dropped when it does not run any more.
    pub(crate) fn set(&self, callback: Option<Box<F>>) {
        self.changes.set(self.changes.get().wrapping_add(1));
        drop(self.callback.replace(callback));
    }

    /// Calls the callback if there is one. It stays also if it panics, so that whoever catches
    /// the panic finds the loop as it was.
    pub(crate) fn call<R>(&self, call: impl FnOnce(&mut F) -> R) -> Option<R> {
        let mut called = Called {
            slot: self,
            changes: self.changes.get(),
            callback: self.callback.take(),
        };
        called.callback.as_mut().map(|callback| call(callback))
    }
}

/// A callback that is out of its slot, and goes back unless there has been a change.
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

/// What a handle with one callback calls.
pub(crate) type Callback = dyn FnMut(&Loop, &Rc<Handle<Single>>, Event);

/// The loop's end of a handle with one callback.
pub(crate) struct Single {
    callback: Slot<Callback>,
    /// The program's end. A handle that has been dropped hears of nothing any more.
    handle: OnceCell<Weak<Handle<Single>>>,
    /// Set by `detach`: the loop then keeps the handle itself.
    detached: Cell<Option<Rc<Handle<Single>>>>,
}

impl Source for Single {
    fn event(&self, lp: &Loop, event: Event) {
        if let Some(handle) = self.handle.get().and_then(Weak::upgrade) {
            self.callback.call(|callback| callback(lp, &handle, event));
        }
    }

    fn clear(&self) {
        self.callback.set(None);
        drop(self.detached.take());
    }
}

impl Handle<Single> {
    /// Makes a handle with one callback: `make` is given its token.
    pub(crate) fn single<T>(
        lp: &Loop,
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

    /// Gives the handle its callback in place of the one before.
    pub(crate) fn set_callback(
        &self,
        callback: impl FnMut(&Loop, &Rc<Handle<Single>>, Event) + 'static,
    ) {
        // Nobody would ever take it back from a loop that is gone.
        if !self.inner.is_closed() {
            self.state.callback.set(Some(Box::new(callback)));
        }
    }

    pub(crate) fn detach(self: Rc<Self>) {
        if !self.inner.is_closed() {
            let state = self.state.clone();
            state.detached.set(Some(self));
        }
    }
}

/// What the engine says.
pub(crate) type EngineResult<T> = Result<T, blacklight_engine::Errno>;

/// The methods that every kind of handle has.
macro_rules! common_methods {
    ($handle:ident $(<$io:ident>)?) => {
        impl $(<$io>)? $handle $(<$io>)? {
            /// Whether the handle is active.
            pub fn is_active(&self) -> bool {
                self.handle.engine().is_active(self.handle.key)
            }

            /// Closes the handle now, where dropping would close it when its last owner goes,
            /// which for a detached one is the loop. Its callback is dropped, and nothing can
            /// be done with it any more.
            ///
            /// So it is with all handles, such as a timer:
            ///
            /// ```
            /// use blacklight::{Loop, Timer};
            /// use std::time::Duration;
            ///
            /// let lp = Loop::new()?;
            /// let timer = Timer::new(&lp)?;
            /// timer.close();
            /// assert!(timer.start(Duration::ZERO, |_, _| ()).is_err());
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn close(&self) {
                self.handle.close();
            }

            /// Lets the loop end although this handle is active.
            ///
            /// So it is with all handles, such as a timer:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, Timer};
            /// use std::time::Duration;
            ///
            /// let lp = Loop::new()?;
            /// let timer = Timer::new(&lp)?;
            /// timer.start(Duration::from_secs(3600), |_, _| ())?;
            /// assert!(timer.is_active() && timer.has_ref());
            /// timer.unref();
            /// lp.run(Mode::Default); // It returns at once: nothing else is there to wait for.
            /// timer.r#ref();
            /// assert!(lp.is_alive());
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn unref(&self) {
                self.handle.engine().unreference(self.handle.key);
            }

            /// Takes [`unref`](Self::unref) back.
            pub fn r#ref(&self) {
                self.handle.engine().reference(self.handle.key);
            }

            /// Whether the handle keeps the loop running while it is active.
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

/// `detach`, for handles that own nothing but themselves.
macro_rules! detach_method {
    ($handle:ident) => {
        impl $handle {
            /// Gives the handle to the loop, which keeps it for as long as the loop lives.
            ///
            /// So it is with all handles, such as a timer:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, Timer};
            /// use std::time::Duration;
            ///
            /// let lp = Loop::new()?;
            /// let timer = Timer::new(&lp)?;
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
