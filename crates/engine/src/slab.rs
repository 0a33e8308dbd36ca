//! A table whose entries keep their index. Generations make stale keys recognisable after their
//! entry has been reused.
//!
//! Invariants: the generation of an occupied entry is odd, and greater by two than that of the
//! entry made before it, so that generations also give the order of creation. A free entry has
//! twice the index of the next free entry in the place of its generation. Only growing allocates,
//! and it reports [`Errno::ENOMEM`] instead of aborting.

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

/// The end of the chain of free entries, and the limit on the number of entries.
const LAST_FREE: u32 = NIL >> 1;

#[derive(Debug)]
struct Slot<T> {
    /// The generation of an occupied entry, or twice the index of the next free entry.
    generation: u32,
    value: T,
}

impl<T> Slot<T> {
    #[inline]
    fn is_occupied(&self) -> bool {
        self.generation & 1 == 1
    }
}

#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    /// How many entries are not free.
    occupied: u32,
    /// The generation of the next entry. It wraps around after 2^31 entries.
    generation: u32,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Slab<T> {
        Slab {
            slots: Vec::new(),
            free: LAST_FREE,
            occupied: 0,
            generation: 1,
        }
    }

    /// All entries, occupied or free, have indices below this one.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// How many entries are occupied.
    pub(crate) fn len(&self) -> u32 {
        self.occupied
    }

    /// Reserves memory for one more entry.
    #[inline]
    pub(crate) fn make_room(&mut self) -> Result<(), Errno> {
        match self.free {
            LAST_FREE if self.slots.len() as u32 == LAST_FREE => Err(Errno::ENOMEM),
            LAST_FREE => make_room(&mut self.slots),
            _ => Ok(()),
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> Result<Key, Errno> {
        let generation = self.generation;
        let slot = Slot { generation, value };
        let index = match self.free {
            LAST_FREE => self.push(slot)?,
            free => {
                let before = std::mem::replace(&mut self.slots[free as usize], slot);
                debug_assert!(!before.is_occupied(), "an occupied entry counts as free");
                self.free = before.generation >> 1;
                free
            }
        };
        self.occupied += 1;
        self.generation = generation.wrapping_add(2);
        Ok(Key { index, generation })
    }

    #[inline]
    fn push(&mut self, slot: Slot<T>) -> Result<u32, Errno> {
        self.make_room()?;
        let index = self.slots.len() as u32;
        self.slots.push(slot);
        Ok(index)
    }

    /// Frees the entry; every key to it goes stale.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        assert!(slot.is_occupied(), "a free entry is removed");
        slot.generation = self.free << 1;
        self.free = index;
        self.occupied -= 1;
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
        (slot.generation == key.generation && slot.is_occupied()).then_some(key.index)
    }

    /// The key of the entry at this index, if there is one.
    pub(crate) fn key_at(&self, index: u32) -> Option<Key> {
        let slot = self.slots.get(index as usize)?;
        let generation = slot.generation;
        slot.is_occupied().then_some(Key { index, generation })
    }

    /// Starts a tour of the entries.
    pub(crate) fn tour(&self) -> Tour {
        Tour {
            sorted: self.sorted().ok().map(Vec::into_iter),
            at: 0,
            since: self.generation,
        }
    }

    fn sorted(&self) -> Result<Vec<Key>, Errno> {
        let mut keys = Vec::new();
        keys.try_reserve_exact(self.occupied as usize)?;
        let is_occupied = |index: &u32| self.slots[*index as usize].is_occupied();
        let found = (0..self.slots.len() as u32).filter(is_occupied);
        // There may be millions of free entries after the last occupied one.
        let found = found.take(self.occupied as usize);
        keys.extend(found.map(|index| self.key(index)));
        keys.sort_unstable_by_key(|key| key.generation.wrapping_sub(self.generation));
        Ok(keys)
    }

    /// The next entry of a tour.
    pub(crate) fn next(&self, tour: &mut Tour) -> Option<u32> {
        if let Some(sorted) = &mut tour.sorted {
            return sorted.find_map(|key| self.resolve(key));
        }
        while let Some(slot) = self.slots.get(tour.at as usize) {
            tour.at += 1;
            let age = tour.since.wrapping_sub(slot.generation) as i32;
            if slot.is_occupied() && age > 0 {
                return Some(tour.at - 1);
            }
        }
        None
    }
}

/// A tour of the entries that a [`Slab`] has when the tour starts, in the order of their creation.
/// The tour leaves out entries that are removed meanwhile. Without memory to sort the entries it
/// goes by index. An entry older than 2^31 others may be visited out of order.
#[derive(Debug)]
pub(crate) struct Tour {
    sorted: Option<std::vec::IntoIter<Key>>,
    /// The next index, for a tour that is not sorted.
    at: u32,
    /// Entries made after the tour began have this generation or a later one.
    since: u32,
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

    /// The values of a tour. Calls `meanwhile` after the first step.
    fn values(
        slab: &mut Slab<u32>,
        mut tour: Tour,
        meanwhile: impl FnOnce(&mut Slab<u32>),
    ) -> Vec<u32> {
        let mut values = vec![slab[slab.next(&mut tour).unwrap()]];
        meanwhile(slab);
        while let Some(index) = slab.next(&mut tour) {
            values.push(slab[index]);
        }
        values
    }

    /// A slab whose entries are not in the order of their creation, and whose generations have
    /// wrapped around.
    fn shuffled() -> Slab<u32> {
        let mut slab = Slab::new();
        slab.generation = u32::MAX - 6;
        let first: Vec<Key> = (0..4).map(|n| slab.insert(n).unwrap()).collect();
        slab.remove(first[1].index);
        slab.remove(first[3].index);
        let then: Vec<Key> = (4..7).map(|n| slab.insert(n).unwrap()).collect();
        assert_eq!([then[0].index, then[1].index, then[2].index], [3, 1, 4]);
        slab
    }

    /// Replaces an entry, and appends another.
    fn replaces(index: u32) -> impl FnOnce(&mut Slab<u32>) {
        move |slab| {
            slab.remove(index);
            slab.insert(7).unwrap();
            slab.insert(8).unwrap();
        }
    }

    #[test]
    fn a_tour_keeps_to_the_order_in_which_entries_were_made() {
        let mut slab = shuffled();
        let tour = slab.tour();
        assert_eq!(values(&mut slab, tour, |_| ()), [0, 2, 4, 5, 6]);
        let tour = slab.tour();
        assert_eq!(values(&mut slab, tour, replaces(3)), [0, 2, 5, 6]);
    }

    #[test]
    fn a_tour_without_memory_misses_no_entry() {
        let mut slab = shuffled();
        let tour = Tour {
            sorted: None,
            ..slab.tour()
        };
        assert_eq!(values(&mut slab, tour, replaces(2)), [0, 5, 4, 6]);
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
