//! Conditions of descriptors: watchers wait for an [`Interest`], and pollers report a [`Readiness`] in
//! the way that a [`Trigger`] says.
//!
//! These are the engine's own types. Each poller translates them to its mechanism's bits and back,
//! at its edge. The numbers inside are those of one platform's poll(2), so that the translation
//! costs nothing there (`poller/bits.rs`).

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

const READABLE: u32 = 0x1;
const PRIORITIZED: u32 = 0x2;
const WRITABLE: u32 = 0x4;
const ERROR: u32 = 0x8;
const HANG_UP: u32 = 0x10;
const CLOSED: u32 = 0x20;
const DISCONNECT: u32 = 0x2000;

/// The conditions that a watcher waits for: any of them is enough.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Interest(u32);

/// The conditions that a descriptor meets. A poll handle is told those that it can ask for.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Readiness(u32);

/// When a poller reports a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trigger {
    /// In every wait, as long as the condition lasts.
    Level,
    /// When the condition begins.
    Edge,
    /// Once, and then nothing until the registration is changed. Pollers that cannot do that report the
    /// condition in every wait.
    Once,
}

macro_rules! set {
    ($set:ident) => {
        impl $set {
            /// Reading would not block.
            pub const READABLE: $set = $set(READABLE);
            /// Writing would not block.
            pub const WRITABLE: $set = $set(WRITABLE);
            /// The other end has stopped sending.
            pub const DISCONNECT: $set = $set(DISCONNECT);
            /// Urgent data, or an exceptional condition of a device.
            pub const PRIORITIZED: $set = $set(PRIORITIZED);
            /// The empty set.
            pub(crate) const NONE: $set = $set(0);

            /// Whether nothing is in the set.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// The set without what is in `other`.
            #[inline]
            pub(crate) fn without(self, other: impl Into<$set>) -> $set {
                $set(self.0 & !other.into().0)
            }
        }

        impl BitOr for $set {
            type Output = $set;

            #[inline]
            fn bitor(self, other: $set) -> $set {
                $set(self.0 | other.0)
            }
        }

        impl BitOrAssign for $set {
            #[inline]
            fn bitor_assign(&mut self, other: $set) {
                self.0 |= other.0;
            }
        }

        impl fmt::Debug for $set {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_names(self.0, f)
            }
        }
    };
}

set!(Interest);
set!(Readiness);

fn write_names(bits: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let names = [
        (READABLE, "READABLE"),
        (WRITABLE, "WRITABLE"),
        (DISCONNECT, "DISCONNECT"),
        (PRIORITIZED, "PRIORITIZED"),
        (ERROR, "ERROR"),
        (HANG_UP, "HANG_UP"),
        (CLOSED, "CLOSED"),
    ];
    let set = names.iter().filter(|(bit, _)| bits & bit != 0);
    let set: Vec<_> = set.map(|(_, name)| *name).collect();
    f.write_str(&set.join(" | "))
}

impl Interest {
    /// All that a watcher can wait for. Errors and hang-ups are reported to every watcher.
    pub(crate) const ALL: Interest = Interest(READABLE | WRITABLE | DISCONNECT | PRIORITIZED);

    /// Whether all of `other` is in the set.
    #[inline]
    pub const fn contains(self, other: Interest) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set as this module encodes it.
    #[inline]
    pub(crate) const fn raw(self) -> u32 {
        self.0
    }
}

/// The conditions of an interest, taken to be true.
impl From<Interest> for Readiness {
    #[inline]
    fn from(interest: Interest) -> Readiness {
        Readiness(interest.0)
    }
}

/// The conditions of a set that a watcher can wait for.
impl From<Readiness> for Interest {
    #[inline]
    fn from(readiness: Readiness) -> Interest {
        Interest(readiness.0 & Interest::ALL.0)
    }
}

impl Readiness {
    /// An error waits to be fetched.
    pub(crate) const ERROR: Readiness = Readiness(ERROR);
    /// The other end has gone.
    pub(crate) const HANG_UP: Readiness = Readiness(HANG_UP);
    /// The program has closed the descriptor.
    pub(crate) const CLOSED: Readiness = Readiness(CLOSED);
    /// The conditions that are reported whether a watcher has asked for them or not.
    pub(crate) const TROUBLE: Readiness = Readiness(ERROR | HANG_UP | CLOSED);

    /// The set with these bits, which are libuv's, or `None` if other bits are set.
    pub const fn from_bits(bits: u32) -> Option<Readiness> {
        if bits & !15 != 0 {
            return None;
        }
        let readable = (bits & 1) * READABLE;
        let writable = (bits >> 1 & 1) * WRITABLE;
        let disconnect = (bits >> 2 & 1) * DISCONNECT;
        let prioritized = (bits >> 3 & 1) * PRIORITIZED;
        Some(Readiness(readable | writable | disconnect | prioritized))
    }

    /// The set as libuv's bits.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0 & READABLE
            | ((self.0 & WRITABLE) / WRITABLE) << 1
            | ((self.0 & DISCONNECT) / DISCONNECT) << 2
            | ((self.0 & PRIORITIZED) / PRIORITIZED) << 3
    }

    /// The set as this module encodes it.
    pub(crate) const fn raw(self) -> u32 {
        self.0
    }

    /// The set that this module encodes so.
    #[inline]
    pub(crate) const fn from_raw(bits: u32) -> Readiness {
        Readiness(bits)
    }

    /// Whether all of `other` is in the set.
    #[inline]
    pub fn contains(self, other: impl Into<Readiness>) -> bool {
        let other = other.into().0;
        self.0 & other == other
    }

    /// Whether anything of `other` is in the set.
    #[inline]
    pub fn intersects(self, other: impl Into<Readiness>) -> bool {
        self.0 & other.into().0 != 0
    }

    /// Whether there is an error or a hang-up.
    #[inline]
    pub(crate) const fn has_failed(self) -> bool {
        self.0 & (ERROR | HANG_UP) != 0
    }

    /// Whether an operation that waits for `interest` is to be tried: what it waits for is there, or it fails.
    #[inline]
    pub(crate) const fn concerns(self, interest: Interest) -> bool {
        self.0 & (interest.0 | ERROR | HANG_UP) != 0
    }

    /// The conditions of this set that are reported to a watcher with that interest.
    #[inline]
    pub(crate) fn for_interest(self, interest: Interest) -> Readiness {
        Readiness(self.0 & (interest.0 | Readiness::TROUBLE.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libuvs_bits_and_ours_name_the_same_conditions() {
        for bits in 0..16 {
            let set = Readiness::from_bits(bits).unwrap();
            assert_eq!(set.bits(), bits);
            let names = [
                Readiness::READABLE,
                Readiness::WRITABLE,
                Readiness::DISCONNECT,
                Readiness::PRIORITIZED,
            ];
            for (at, name) in names.into_iter().enumerate() {
                assert_eq!(set.contains(name), bits >> at & 1 == 1);
            }
        }
        assert_eq!(Readiness::from_bits(16), None);
        assert_eq!((Readiness::HANG_UP | Readiness::WRITABLE).bits(), 2);
    }

    #[test]
    fn trouble_concerns_every_watcher_and_can_be_asked_for_by_none() {
        let all = Readiness::TROUBLE | Interest::ALL.into();
        assert_eq!(Interest::from(all), Interest::ALL);
        assert_eq!(all.for_interest(Interest::NONE), Readiness::TROUBLE);
        let readable = all.for_interest(Interest::READABLE);
        assert_eq!(readable, Readiness::TROUBLE | Readiness::READABLE);
    }
}
