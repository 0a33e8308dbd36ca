//! Lists of entries of one slab, linked through the entries themselves, so that no operation
//! allocates. An entry is in at most one list at a time, and its owner knows in which.

use crate::slab::{NIL, Slab};

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

/// An entry that can be in a list.
pub(crate) trait Linked {
    fn links(&self) -> Links;
    fn links_mut(&mut self) -> &mut Links;
}

/// A list. The slab that its entries are in is given to each operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
    len: u32,
}

impl List {
    pub(crate) const EMPTY: List = List {
        first: NIL,
        last: NIL,
        len: 0,
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
    pub(crate) fn entries<'a, T: Linked>(
        &self,
        slab: &'a Slab<T>,
    ) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let behind = |&index: &u32| {
            let next = slab[index].links().next;
            (next != NIL).then_some(next)
        };
        std::iter::successors(self.first(), behind).map(|index| &slab[index])
    }

    #[inline]
    pub(crate) fn push_back<T: Linked>(&mut self, slab: &mut Slab<T>, index: u32) {
        let prev = std::mem::replace(&mut self.last, index);
        self.len += 1;
        match prev {
            NIL => self.first = index,
            prev => slab[prev].links_mut().next = index,
        }
        *slab[index].links_mut() = Links { prev, next: NIL };
    }

    #[inline]
    pub(crate) fn pop_front<T: Linked>(&mut self, slab: &mut Slab<T>) -> Option<u32> {
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

    /// Takes out an entry, which must be in this list.
    #[inline]
    pub(crate) fn remove<T: Linked>(&mut self, slab: &mut Slab<T>, index: u32) {
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
}
