//! What all handles have in common: they belong to a loop, and close when they are dropped.

use crate::loop_::Loop;
use blacklight_engine::{Key, Readiness};
use std::io;
use std::rc::Rc;

/// What a handle calls. Only poll handles have something to say with it.
pub(crate) type Callback = Box<dyn FnMut(&Loop, &Rc<Handle>, io::Result<Readiness>)>;

pub(crate) struct Handle {
    pub(crate) owner: Loop,
    pub(crate) key: Key,
    /// The handle's place in the loop's table.
    pub(crate) at: usize,
}

impl Handle {
    pub(crate) fn new(owner: &Loop, key: Key, at: usize) -> Handle {
        Handle {
            owner: owner.clone(),
            key,
            at,
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // The entry in the loop's table goes when the engine says that the handle is closed.
        let closed = self.owner.engine().close(self.key);
        debug_assert!(closed.is_ok(), "a handle is closed by nobody else");
    }
}

/// The methods that every kind of handle has.
macro_rules! common_methods {
    ($handle:ident $(<$io:ident>)?) => {
        impl $(<$io>)? $handle $(<$io>)? {
            /// Whether the handle is active.
            pub fn is_active(&self) -> bool {
                self.handle.owner.engine().is_active(self.handle.key)
            }

            /// Lets the loop end although this handle is active.
            pub fn unref(&self) {
                self.handle.owner.engine().unreference(self.handle.key);
            }

            /// Takes [`unref`](Self::unref) back.
            pub fn r#ref(&self) {
                self.handle.owner.engine().reference(self.handle.key);
            }

            /// Whether the handle keeps the loop running while it is active.
            pub fn has_ref(&self) -> bool {
                self.handle.owner.engine().has_reference(self.handle.key)
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
            pub fn detach(self) {
                let owner = self.handle.owner.clone();
                owner.keep(self.handle);
            }
        }
    };
}

pub(crate) use {common_methods, detach_method};
