//! Arrays for C callers, and the texts that they point to, in one piece of memory.
//!
//! Functions like `uv_cpu_info` return an array of structs that point to texts. One allocation
//! holds the array and, behind it, the texts, so that a single call can fail and a single call
//! frees it.

use crate::{alloc, text};
use blacklight_engine::Errno;
use std::ffi::c_char;

/// An array of `T` that is being filled.
pub(crate) struct Packed<T> {
    array: *mut T,
    count: usize,
    len: usize,
    room: *mut c_char,
    room_left: usize,
}

impl<T: Copy> Packed<T> {
    /// Room for `count` structs, and for texts of `text_bytes` in all, with a NUL for each.
    pub(crate) fn new(count: usize, text_bytes: usize) -> Result<Packed<T>, Errno> {
        const { assert!(align_of::<T>() <= 16, "malloc aligns to 16") };
        let array_bytes = count * size_of::<T>();
        // An empty array is not null, so that the caller can tell it from a failure.
        let array = alloc::malloc((array_bytes + text_bytes).max(1)).cast::<T>();
        if array.is_null() {
            return Err(Errno::ENOMEM);
        }
        Ok(Packed {
            array,
            count,
            len: 0,
            room: array.wrapping_add(count).cast(),
            room_left: text_bytes,
        })
    }

    /// Copies a text, and returns its address.
    pub(crate) fn text(&mut self, bytes: &[u8]) -> *mut c_char {
        let size = bytes.len() + 1;
        assert!(size <= self.room_left, "more text than was announced");
        let place = self.room;
        // SAFETY: there is room for the text and its NUL, as was just checked.
        unsafe { text::write(place, bytes) };
        self.room = place.wrapping_add(size);
        self.room_left -= size;
        place
    }

    /// Adds a struct to the array.
    pub(crate) fn push(&mut self, value: T) {
        assert!(self.len < self.count, "more structs than were announced");
        // SAFETY: there is room for one more, as was just checked.
        unsafe { self.array.add(self.len).write(value) };
        self.len += 1;
    }

    /// Returns the array, to be freed with [`alloc::free`].
    pub(crate) fn finish(self) -> *mut T {
        assert_eq!(self.len, self.count, "fewer structs than were announced");
        self.array
    }
}
