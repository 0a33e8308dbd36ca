//! A table whose entries keep their index, with generations so that an old key is
//! recognised after its entry has been given to somebody else.
//!
//! Invariants: an entry's generation is odd while it is occupied and even while it is
//! free; free entries form a chain through `next`, which occupied ones may use for chains of
//! their owner's. Growing is the only thing that
//! allocates, and it reports [`Errno::ENOMEM`] instead of aborting.

use blacklight_sys::Errno;
use std::ops::{Index, IndexMut};

/// The end of a chain of indices.
pub(crate) const NIL: u32 = u32::MAX;

/// Names one entry of a [`Slab`] for as long as it lives. No key is all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    pub(crate) index: u32,
    generation: u32,
}

impl Key {
    /// The key as a number, for a front end that has to keep it in foreign memory.
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The key that [`Key::to_bits`] made into `bits`. Any number is allowed: one that was
    /// never a key names nothing.
    pub const fn from_bits(bits: u64) -> Key {
        Key {
            index: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

/// Makes room for one more entry at the end of a table.
#[inline]
pub(crate) fn make_room<T>(table: &mut Vec<T>) -> Result<(), Errno> {
    if table.len() == table.capacity() {
        enlarge(table)?;
    }
    Ok(())
}

#[cold]
fn enlarge<T>(table: &mut Vec<T>) -> Result<(), Errno> {
    table.try_reserve(1)?;
    Ok(())
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    next: u32,
    value: T,
}

#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: u32,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Slab<T> {
        Slab {
            slots: Vec::new(),
            free: NIL,
        }
    }

    /// Indices below this one may be looked at, occupied or not.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn insert(&mut self, value: T) -> Result<Key, Errno> {
        let index = self.free;
        if index == NIL {
            return self.grow(value);
        }
        let slot = &mut self.slots[index as usize];
        debug_assert!(slot.generation & 1 == 0, "a free entry is occupied");
        self.free = slot.next;
        slot.generation += 1;
        slot.value = value;
        Ok(Key {
            index,
            generation: slot.generation,
        })
    }

    fn grow(&mut self, value: T) -> Result<Key, Errno> {
        let index = u32::try_from(self.slots.len()).map_err(|_| Errno::ENOMEM)?;
        if index == NIL {
            return Err(Errno::ENOMEM);
        }
        make_room(&mut self.slots)?;
        self.slots.push(Slot {
            generation: 1,
            next: NIL,
            value,
        });
        Ok(Key {
            index,
            generation: 1,
        })
    }

    /// Frees the entry; every key to it goes stale.
    pub(crate) fn remove(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        assert!(slot.generation & 1 == 1, "a free entry is removed");
        // After 2^31 lives the generation starts again; zero stays reserved for "no key".
        slot.generation = slot.generation.wrapping_add(1);
        slot.next = self.free;
        self.free = index;
    }

    /// What an occupied entry is chained to.
    pub(crate) fn next(&self, index: u32) -> u32 {
        self.slots[index as usize].next
    }

    /// Chains an occupied entry to another.
    pub(crate) fn set_next(&mut self, index: u32, next: u32) {
        let slot = &mut self.slots[index as usize];
        debug_assert!(slot.generation & 1 == 1, "a free entry is chained");
        slot.next = next;
    }

    /// The current key of an occupied entry.
    #[inline]
    pub(crate) fn key(&self, index: u32) -> Key {
        Key {
            index,
            generation: self.slots[index as usize].generation,
        }
    }

    /// The index behind a key, or `None` if the key is stale.
    #[inline]
    pub(crate) fn resolve(&self, key: Key) -> Option<u32> {
        let slot = self.slots.get(key.index as usize)?;
        (slot.generation == key.generation && key.generation & 1 == 1).then_some(key.index)
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.slots[index as usize].value
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.slots[index as usize].value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_stale_with_its_entry() {
        let mut slab = Slab::new();
        let a = slab.insert('a').unwrap();
        let b = slab.insert('b').unwrap();
        assert_eq!(slab.resolve(a), Some(0));
        slab.remove(a.index);
        assert_eq!(slab.resolve(a), None);
        let c = slab.insert('c').unwrap();
        assert_eq!(c.index, a.index, "the entry is used again");
        assert_eq!(slab.resolve(a), None, "but not under the old key");
        assert_eq!(slab[c.index], 'c');
        assert_eq!(slab.resolve(b), Some(1));
    }

    #[test]
    fn no_number_is_mistaken_for_a_key() {
        let mut slab = Slab::new();
        assert_eq!(slab.resolve(Key::from_bits(0)), None);
        let key = slab.insert(()).unwrap();
        assert_eq!(slab.resolve(Key::from_bits(0)), None);
        assert_eq!(slab.resolve(Key::from_bits(u64::MAX)), None);
        assert_eq!(Key::from_bits(key.to_bits()), key);
        slab.remove(key.index);
        assert_eq!(
            slab.resolve(Key::from_bits(2 << 32)),
            None,
            "an even generation is free"
        );
    }
}
