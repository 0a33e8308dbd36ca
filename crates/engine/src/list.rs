//! Lists of entries of one slab, linked through the entries themselves, so that no operation
//! allocates. An entry is in at most one list at a time, and its owner knows in which. Entries that are in two lists
//! at a time have a place for each, told apart by a marker.

use crate::slab::{NIL, Slab};
use std::marker::PhantomData;

/// An entry's place in its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    prev: u32,
    next: u32,
}

impl Links {
    /// Of an entry that is in no list.
    pub(crate) const NONE: Links = Links {
        prev: NIL,
        next: NIL,
    };
}

/// An entry that can be in a list of this marker.
pub(crate) trait Linked<L = ()> {
    fn links(&self) -> Links;
    fn links_mut(&mut self) -> &mut Links;
}

/// Makes entries of a struct that has its place in this field.
macro_rules! linked {
    ($entry:ty, $($links:ident).+) => {
        $crate::list::linked!($entry, $($links).+, ());
    };
    ($entry:ty, $($links:ident).+, $marker:ty) => {
        impl $crate::list::Linked<$marker> for $entry {
            #[inline]
            fn links(&self) -> $crate::list::Links {
                self.$($links).+
            }

            #[inline]
            fn links_mut(&mut self) -> &mut $crate::list::Links {
                &mut self.$($links).+
            }
        }
    };
}
pub(crate) use linked;

/// A list. The slab that its entries are in is given to each operation.
#[derive(Debug)]
pub(crate) struct List<L = ()> {
    first: u32,
    last: u32,
    len: u32,
    marker: PhantomData<L>,
}

impl<L> Clone for List<L> {
    fn clone(&self) -> List<L> {
        *self
    }
}

impl<L> Copy for List<L> {}

impl<L> List<L> {
    pub(crate) const EMPTY: List<L> = List {
        first: NIL,
        last: NIL,
        len: 0,
        marker: PhantomData,
    };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NIL
    }

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NIL).then_some(self.first)
    }

    /// The entries from the first to the last.
    pub(crate) fn entries<'a, T: Linked<L>>(
        &self,
        slab: &'a Slab<T>,
    ) -> impl Iterator<Item = &'a T> + use<'a, L, T> {
        let list = *self;
        let behind = move |&index: &u32| list.behind(slab, index);
        std::iter::successors(self.first(), behind).map(|index| &slab[index])
    }

    #[inline]
    pub(crate) fn push_back<T: Linked<L>>(&mut self, slab: &mut Slab<T>, index: u32) {
        let prev = std::mem::replace(&mut self.last, index);
        self.len += 1;
        match prev {
            NIL => self.first = index,
            prev => slab[prev].links_mut().next = index,
        }
        *slab[index].links_mut() = Links { prev, next: NIL };
    }

    #[inline]
    pub(crate) fn pop_front<T: Linked<L>>(&mut self, slab: &mut Slab<T>) -> Option<u32> {
        let first = self.first()?;
        let next = slab[first].links().next;
        self.first = next;
        self.len -= 1;
        match next {
            NIL => self.last = NIL,
            next => slab[next].links_mut().prev = NIL,
        }
        Some(first)
    }

    /// The entry behind another.
    #[inline]
    pub(crate) fn behind<T: Linked<L>>(&self, slab: &Slab<T>, index: u32) -> Option<u32> {
        let next = slab[index].links().next;
        (next != NIL).then_some(next)
    }

    /// Takes out an entry, which must be in this list.
    #[inline]
    pub(crate) fn remove<T: Linked<L>>(&mut self, slab: &mut Slab<T>, index: u32) {
        let Links { prev, next } = slab[index].links();
        self.len -= 1;
        match prev {
            NIL => self.first = next,
            prev => slab[prev].links_mut().next = next,
        }
        match next {
            NIL => self.last = prev,
            next => slab[next].links_mut().prev = prev,
        }
    }
}

/// A list whose entries are taken in rounds: a round takes those that were there when it began and
/// have not been removed since. What is added meanwhile waits for the next round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    list: List,
    /// The last entry that the round in progress takes, or `NIL` when it is over.
    end: u32,
}

impl Rounds {
    pub(crate) const EMPTY: Rounds = Rounds {
        list: List::EMPTY,
        end: NIL,
    };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    #[inline]
    pub(crate) fn push_back<T: Linked>(&mut self, slab: &mut Slab<T>, index: u32) {
        self.list.push_back(slab, index);
    }

    /// Begins a round, of which a round in progress becomes a part. Returns whether it has entries.
    #[inline]
    pub(crate) fn begin(&mut self) -> bool {
        self.end = self.list.last;
        self.end != NIL
    }

    /// Takes the next entry of the round.
    #[inline]
    pub(crate) fn next<T: Linked>(&mut self, slab: &mut Slab<T>) -> Option<u32> {
        if self.end == NIL {
            return None;
        }
        let first = self.list.pop_front(slab)?;
        if first == self.end {
            self.end = NIL;
        }
        Some(first)
    }

    /// Takes out an entry, which must be in this list.
    #[inline]
    pub(crate) fn remove<T: Linked>(&mut self, slab: &mut Slab<T>, index: u32) {
        if index == self.end {
            self.end = slab[index].links().prev;
        }
        self.list.remove(slab, index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Linked for (char, Links) {
        fn links(&self) -> Links {
            self.1
        }

        fn links_mut(&mut self) -> &mut Links {
            &mut self.1
        }
    }

    fn text(list: &List, slab: &Slab<(char, Links)>) -> String {
        let text: String = list.entries(slab).map(|entry| entry.0).collect();
        assert_eq!(text.len(), list.len() as usize);
        text
    }

    #[test]
    fn entries_leave_from_any_place() {
        let mut slab = Slab::new();
        let mut list = List::EMPTY;
        let mut indices = Vec::new();
        for letter in "abcdef".chars() {
            let index = slab.insert((letter, Links::NONE)).unwrap().index;
            list.push_back(&mut slab, index);
            indices.push(index);
        }
        assert_eq!(text(&list, &slab), "abcdef");
        for (at, rest) in [(2, "abdef"), (0, "bdef"), (5, "bde")] {
            list.remove(&mut slab, indices[at]);
            assert_eq!(text(&list, &slab), rest);
        }
        assert_eq!(list.pop_front(&mut slab), Some(indices[1]));
        list.push_back(&mut slab, indices[0]);
        assert_eq!(text(&list, &slab), "dea");
        for at in [3, 4, 0] {
            assert_eq!(list.pop_front(&mut slab), Some(indices[at]));
        }
        assert!(list.is_empty());
        assert_eq!(list.pop_front(&mut slab), None);
        list.push_back(&mut slab, indices[3]);
        assert_eq!(text(&list, &slab), "d");
        list.remove(&mut slab, indices[3]);
        assert_eq!(text(&list, &slab), "");
    }
    /// A list of these letters, and the letters' indices.
    fn rounds_of(letters: &str) -> (Rounds, Slab<(char, Links)>, Vec<u32>) {
        let (mut rounds, mut slab) = (Rounds::EMPTY, Slab::new());
        let add = |letter| {
            let index = slab.insert((letter, Links::NONE)).unwrap().index;
            rounds.push_back(&mut slab, index);
            index
        };
        let indices = letters.chars().map(add).collect();
        (rounds, slab, indices)
    }

    fn rest(rounds: &mut Rounds, slab: &mut Slab<(char, Links)>) -> String {
        std::iter::from_fn(|| rounds.next(slab).map(|index| slab[index].0)).collect()
    }

    #[test]
    fn a_round_takes_what_was_there_when_it_began() {
        let (mut rounds, mut slab, indices) = rounds_of("abc");
        assert_eq!(rounds.next(&mut slab), None, "no round has begun");
        assert!(rounds.begin());
        assert_eq!(rounds.next(&mut slab), Some(indices[0]));
        rounds.push_back(&mut slab, indices[0]);
        assert_eq!(rest(&mut rounds, &mut slab), "bc");
        assert!(rounds.begin());
        assert_eq!(rest(&mut rounds, &mut slab), "a");
        assert!(!rounds.begin());
        assert!(rounds.is_empty());
    }

    #[test]
    fn what_leaves_a_round_makes_no_room_in_it() {
        for removed in [&[0][..], &[1], &[2], &[0, 2], &[2, 1], &[0, 1, 2]] {
            let (mut rounds, mut slab, indices) = rounds_of("abc");
            rounds.begin();
            for &at in removed {
                rounds.remove(&mut slab, indices[at]);
            }
            let late = slab.insert(('d', Links::NONE)).unwrap().index;
            rounds.push_back(&mut slab, late);
            let left = (0..3).filter(|at| !removed.contains(at));
            let left: String = left.map(|at| slab[indices[at]].0).collect();
            assert_eq!(rest(&mut rounds, &mut slab), left);
            assert!(rounds.begin());
            assert_eq!(rest(&mut rounds, &mut slab), "d");
        }
    }

    #[test]
    fn a_round_within_a_round_takes_the_rest_of_it_too() {
        let (mut rounds, mut slab, indices) = rounds_of("abc");
        rounds.begin();
        assert_eq!(rounds.next(&mut slab), Some(indices[0]));
        rounds.push_back(&mut slab, indices[0]);
        rounds.begin();
        assert_eq!(rest(&mut rounds, &mut slab), "bca");
    }
}
