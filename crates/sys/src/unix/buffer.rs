//! Memory that the program owns and the kernel reads from or writes to.
//!
//! A loop uses a program's buffers while an operation is in progress, so it cannot borrow them in
//! Rust's sense. [`Buffers`] carries the program's promise instead: its constructor is `unsafe`,
//! and its caller guarantees that the memory stays valid until the operation is reported done. All
//! other uses are then safe.

use std::fmt;
use std::io::IoSlice;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{NonNull, null_mut};

pub use crate::platform::buffer::MAX_BYTES;

/// An uninitialised buffer to read into.
pub type Room<'a> = &'a mut [MaybeUninit<u8>];

/// Memory that the kernel may write to, initialised or not. Rust code does not write through it.
#[derive(Debug)]
pub struct Space<'a> {
    base: *mut u8,
    len: usize,
    life: PhantomData<&'a mut [u8]>,
}

impl Space<'_> {
    /// How many bytes there are.
    #[allow(clippy::len_without_is_empty, reason = "no caller needs it")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The first `len` bytes of the memory, or all of it.
    #[inline]
    pub fn limited_to(mut self, len: usize) -> Self {
        self.len = self.len.min(len);
        self
    }

    #[inline]
    pub(crate) fn base(&self) -> *mut libc::c_void {
        self.base.cast()
    }
}

impl<'a> From<Room<'a>> for Space<'a> {
    #[inline]
    fn from(room: Room<'a>) -> Space<'a> {
        Space {
            base: room.as_mut_ptr().cast(),
            len: room.len(),
            life: PhantomData,
        }
    }
}

impl<'a, const N: usize> From<&'a mut [MaybeUninit<u8>; N]> for Space<'a> {
    fn from(room: &'a mut [MaybeUninit<u8>; N]) -> Space<'a> {
        Space::from(&mut room[..])
    }
}

impl<'a> From<&'a mut [u8]> for Space<'a> {
    fn from(bytes: &'a mut [u8]) -> Space<'a> {
        Space {
            base: bytes.as_mut_ptr(),
            len: bytes.len(),
            life: PhantomData,
        }
    }
}

/// Bytes, and the `iovec` that describes them.
struct Owned {
    iovec: libc::iovec,
    _bytes: Vec<u8>,
}

/// An array of buffers to be written, some of which have been written already.
pub struct Buffers {
    /// The first buffer that has not been written completely.
    next: *mut libc::iovec,
    left: usize,
    bytes: usize,
    /// The box that `next` points into, if this owns its bytes; else null.
    owned: *mut Owned,
}

impl Buffers {
    /// Makes `count` of the program's buffers usable.
    ///
    /// # Safety
    ///
    /// Until the operation is reported done, `array` points to `count` `iovec`s, which nothing else
    /// touches and which this may change, and each of them describes readable memory.
    #[inline]
    pub unsafe fn new(array: *mut libc::iovec, count: usize) -> Buffers {
        let mut buffers = Buffers {
            next: array,
            left: count,
            bytes: 0,
            owned: null_mut(),
        };
        let lengths = buffers.iovecs().iter().map(|iovec| iovec.iov_len);
        buffers.bytes = lengths.fold(0, usize::saturating_add);
        buffers
    }

    /// Buffers that own their bytes until they have been written.
    pub fn owned(bytes: Vec<u8>) -> Buffers {
        let owned = Box::into_raw(Box::new(Owned {
            iovec: libc::iovec {
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            },
            _bytes: bytes,
        }));
        // SAFETY: the array and the bytes are in the box, which lives as long as the buffers.
        let mut buffers = unsafe { Buffers::new(&raw mut (*owned).iovec, 1) };
        buffers.owned = owned;
        buffers
    }

    /// Passes slices as buffers to `call`.
    pub fn lend<R>(slices: &[IoSlice<'_>], call: impl FnOnce(&Buffers) -> R) -> R {
        // SAFETY: the standard library documents that an `IoSlice` is an `iovec`. Both live through
        // the call, and nothing advances shared buffers.
        let buffers = unsafe { Buffers::new(slices.as_ptr().cast_mut().cast(), slices.len()) };
        call(&ManuallyDrop::new(buffers))
    }

    /// Frees owned bytes, when none are left to be written.
    #[inline]
    pub fn release(&mut self) {
        if let Some(owned) = NonNull::new(std::mem::replace(&mut self.owned, null_mut())) {
            (self.left, self.bytes) = (0, 0);
            // SAFETY: the pointer came out of a box, and is not used again.
            drop(unsafe { Box::from_raw(owned.as_ptr()) });
        }
    }

    /// The buffers that are left, the first of them perhaps in part.
    pub(crate) fn iovecs(&self) -> &[libc::iovec] {
        if self.left == 0 {
            return &[];
        }
        // SAFETY: `Buffers::new`'s caller guarantees the array.
        unsafe { std::slice::from_raw_parts(self.next, self.left) }
    }

    /// The number of bytes left.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts bytes from the front as written.
    #[inline]
    pub fn advance(&mut self, mut written: usize) {
        assert!(written <= self.bytes, "more is written than there is");
        self.bytes -= written;
        if self.bytes == 0 {
            self.left = 0;
            return;
        }
        while self.left > 0 {
            // SAFETY: `Buffers::new`'s caller guarantees the array, and that nothing else uses it.
            let first = unsafe { &mut *self.next };
            if written < first.iov_len {
                first.iov_len -= written;
                first.iov_base = first.iov_base.cast::<u8>().wrapping_add(written).cast();
                return;
            }
            written -= first.iov_len;
            self.next = self.next.wrapping_add(1);
            self.left -= 1;
        }
    }
}

impl Drop for Buffers {
    #[inline]
    fn drop(&mut self) {
        self.release();
    }
}

impl fmt::Debug for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in {} buffers", self.bytes, self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_bytes_advance_and_are_released() {
        let mut buffers = Buffers::owned(b"light".to_vec());
        buffers.advance(2);
        let left = &buffers.iovecs()[0];
        // SAFETY: the buffers own the bytes.
        let text = unsafe { std::slice::from_raw_parts(left.iov_base.cast::<u8>(), left.iov_len) };
        assert_eq!(text, b"ght");
        buffers.release();
        assert_eq!((buffers.bytes(), buffers.iovecs().len()), (0, 0));
        drop(Buffers::owned(Vec::new()));
    }

    #[test]
    fn slices_are_lent_as_they_are() {
        let slices = [
            IoSlice::new(b"black"),
            IoSlice::new(b""),
            IoSlice::new(b"light"),
        ];
        let (bytes, count) = Buffers::lend(&slices, |lent| (lent.bytes(), lent.iovecs().len()));
        assert_eq!((bytes, count), (10, 3));
        assert_eq!(Buffers::lend(&[], Buffers::bytes), 0);
    }

    #[test]
    fn advances_over_parts_and_empty_buffers() {
        let text = *b"black light";
        let piece = |at: usize, len| libc::iovec {
            iov_base: text.as_ptr().wrapping_add(at) as *mut _,
            iov_len: len,
        };
        let mut array = [piece(0, 5), piece(5, 0), piece(5, 6)];
        // SAFETY: the array and the text outlive the buffers.
        let mut buffers = unsafe { Buffers::new(array.as_mut_ptr(), 3) };
        assert_eq!(buffers.bytes(), 11);
        buffers.advance(3);
        assert_eq!((buffers.bytes(), buffers.iovecs()[0].iov_len), (8, 2));
        buffers.advance(2);
        assert_eq!((buffers.bytes(), buffers.iovecs()[0].iov_len), (6, 6));
        buffers.advance(6);
        assert_eq!((buffers.bytes(), buffers.iovecs().len()), (0, 0));
    }
}
