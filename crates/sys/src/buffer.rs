//! Memory of somebody else's that the kernel reads from or writes to.
//!
//! A loop holds on to a program's buffers while an operation is in progress, so it cannot
//! borrow them in Rust's sense. [`Buffers`] carries the program's promise instead: whoever
//! makes one vouches, in an `unsafe` call, that the memory stays valid until the operation
//! is reported done, and everybody else may then use it safely.

use std::fmt;
use std::mem::MaybeUninit;

/// As many bytes as Linux moves in one call. libuv refuses what is more than that, since it
/// could not be written in one piece.
pub const MAX_BYTES: usize = 0x7fff_f000;

/// Room to read into, of which nothing is known yet.
pub type Room<'a> = &'a mut [MaybeUninit<u8>];

/// An array of buffers to be written, of which a front part has been written already.
pub struct Buffers {
    /// The first buffer that has not been written completely.
    next: *mut libc::iovec,
    left: usize,
    bytes: usize,
}

impl Buffers {
    /// Takes charge of `count` buffers.
    ///
    /// # Safety
    ///
    /// Until the operation is reported done, `array` points to `count` `iovec`s, which
    /// nobody else touches and which this may change, and each of these describes readable
    /// memory.
    #[inline]
    pub unsafe fn new(array: *mut libc::iovec, count: usize) -> Buffers {
        let mut buffers = Buffers {
            next: array,
            left: count,
            bytes: 0,
        };
        let lengths = buffers.iovecs().iter().map(|iovec| iovec.iov_len);
        buffers.bytes = lengths.fold(0, usize::saturating_add);
        buffers
    }

    /// The buffers that are left, the first of them perhaps in part.
    pub(crate) fn iovecs(&self) -> &[libc::iovec] {
        if self.left == 0 {
            return &[];
        }
        // SAFETY: whoever made this vouches for the array.
        unsafe { std::slice::from_raw_parts(self.next, self.left) }
    }

    /// The number of bytes that are left.
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
            // SAFETY: whoever made this vouches for the array, and nobody else looks at it.
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

impl fmt::Debug for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in {} buffers", self.bytes, self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
