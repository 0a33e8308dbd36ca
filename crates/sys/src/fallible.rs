//! Fallible allocation: the standard library aborts the process when an allocation fails; the
//! functions here return `ENOMEM`.

use crate::Errno;
use std::alloc::{Layout, alloc};
use std::ffi::{CStr, CString};
use std::fmt::{self, Write};
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

/// A box with `value` in it, or `ENOMEM`.
pub fn try_box<T>(value: T) -> Result<Box<T>, Errno> {
    const { assert!(size_of::<T>() != 0, "there is nothing to allocate") };
    // SAFETY: the layout is not empty. The memory is from the global allocator with the layout of
    // `T`, as a box requires, and is initialised before it becomes a box.
    unsafe {
        let memory = alloc(Layout::new::<T>()).cast::<T>();
        if memory.is_null() {
            return Err(Errno::ENOMEM);
        }
        memory.write(value);
        Ok(Box::from_raw(memory))
    }
}

/// Adds an element at the end.
pub fn push<T>(elements: &mut Vec<T>, element: T) -> Result<(), Errno> {
    elements.try_reserve(1)?;
    elements.push(element);
    Ok(())
}

/// A copy of some bytes.
pub fn copied(bytes: &[u8]) -> Result<Vec<u8>, Errno> {
    joined(&[bytes])
}

/// The concatenation of several pieces.
pub fn joined(pieces: &[&[u8]]) -> Result<Vec<u8>, Errno> {
    let mut all = Vec::new();
    all.try_reserve_exact(pieces.iter().map(|piece| piece.len()).sum())?;
    pieces.iter().for_each(|piece| all.extend_from_slice(piece));
    Ok(all)
}

/// A copy of some bytes with a trailing NUL, or `EINVAL` if the bytes contain one.
pub fn c_string(bytes: &[u8]) -> Result<CString, Errno> {
    CString::from_vec_with_nul(joined(&[bytes, b"\0"])?).map_err(|_| Errno::EINVAL)
}

/// A short text in a buffer of fixed size. A text that does not fit is truncated.
pub struct Short {
    /// A zero follows the text.
    bytes: [u8; Short::ROOM + 1],
    len: usize,
}

impl Short {
    const ROOM: usize = 127;

    /// Writes a text.
    pub fn format(text: fmt::Arguments<'_>) -> Short {
        let bytes = [0; Short::ROOM + 1];
        let mut short = Short { bytes, len: 0 };
        // It fails only if an argument's own `Display` does, which leaves a shorter text.
        let _ = short.write_fmt(text);
        short
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The text as a C string, up to the first NUL.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let len = text.len().min(Short::ROOM - self.len);
        self.bytes[self.len..][..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
        Ok(())
    }
}

#[repr(C)]
struct Inner<T> {
    owners: AtomicUsize,
    value: T,
}

/// A value with several owners, which is dropped with the last of them: [`std::sync::Arc`] without
/// weak references, made by [`Arc::try_new`].
pub struct Arc<T> {
    inner: NonNull<Inner<T>>,
    /// Dropping this may drop a `T`.
    _owns: PhantomData<Inner<T>>,
}

// SAFETY: owners in several threads share the value, and the last of them drops it.
unsafe impl<T: Send + Sync> Send for Arc<T> {}
// SAFETY: as above; a shared reference can be cloned into another owner.
unsafe impl<T: Send + Sync> Sync for Arc<T> {}

impl<T> Arc<T> {
    /// Makes a value with one owner, or fails with `ENOMEM`.
    pub fn try_new(value: T) -> Result<Arc<T>, Errno> {
        let owners = AtomicUsize::new(1);
        let inner = Box::leak(try_box(Inner { owners, value })?);
        Ok(Arc {
            inner: inner.into(),
            _owns: PhantomData,
        })
    }

    /// The value's address.
    pub fn as_ptr(this: &Arc<T>) -> *const T {
        // SAFETY: the value is inside the allocation.
        unsafe { &raw const (*this.inner.as_ptr()).value }
    }

    /// Releases ownership as a pointer to the value, for [`Arc::from_raw`] to take back.
    pub fn into_raw(this: Arc<T>) -> *const T {
        let value = Arc::as_ptr(&this);
        std::mem::forget(this);
        value
    }

    /// Takes back the ownership that [`Arc::into_raw`] released.
    ///
    /// # Safety
    ///
    /// `value` is from `into_raw`, and is taken back once.
    pub unsafe fn from_raw(value: *const T) -> Arc<T> {
        // SAFETY: the caller guarantees that the value lies this far inside its allocation, which
        // is not null.
        let inner = unsafe {
            let inner = value.byte_sub(offset_of!(Inner<T>, value));
            NonNull::new_unchecked(inner.cast_mut().cast::<Inner<T>>())
        };
        Arc {
            inner,
            _owns: PhantomData,
        }
    }

    fn inner(&self) -> &Inner<T> {
        // SAFETY: the allocation lives as long as any owner.
        unsafe { self.inner.as_ref() }
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner().value
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Arc<T> {
        let before = self.inner().owners.fetch_add(1, Relaxed);
        // Only a program that leaks owners gets there; the count must not wrap.
        if before > isize::MAX as usize {
            std::process::abort();
        }
        Arc {
            inner: self.inner,
            _owns: PhantomData,
        }
    }
}

impl<T> Drop for Arc<T> {
    fn drop(&mut self) {
        // Every owner's accesses happen before the last one drops the value.
        if self.inner().owners.fetch_sub(1, AcqRel) == 1 {
            // SAFETY: `try_new` leaked the box, and there is no other owner.
            drop(unsafe { Box::from_raw(self.inner.as_ptr()) });
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_owner_drops_the_value() {
        struct Counted<'a>(&'a AtomicUsize);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        let drops = AtomicUsize::new(0);
        let first = Arc::try_new(Counted(&drops)).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let another = first.clone();
                scope.spawn(move || drop(another));
            }
        });
        assert_eq!(drops.load(Relaxed), 0);
        drop(first);
        assert_eq!(drops.load(Relaxed), 1);
    }

    #[test]
    fn a_c_string_has_one_nul() {
        assert_eq!(c_string(b"ab").unwrap().as_c_str(), c"ab");
        assert_eq!(c_string(b"").unwrap().as_c_str(), c"");
        assert_eq!(c_string(b"a\0b"), Err(Errno::EINVAL));
    }

    #[test]
    fn a_short_text_is_cut_where_the_room_ends() {
        let short = Short::format(format_args!("{}-{}", 12, "x"));
        assert_eq!(short.as_bytes(), b"12-x");
        assert_eq!(short.as_c_str(), c"12-x");
        let long = Short::format(format_args!("{:200}|", 7));
        assert_eq!(long.as_bytes(), [b' '; Short::ROOM]);
        assert_eq!(long.as_c_str().count_bytes(), Short::ROOM);
    }

    #[test]
    fn a_pointer_is_taken_back() {
        #[repr(align(64))]
        struct Aligned(u8);
        let shared = Arc::try_new(Aligned(7)).unwrap();
        let raw = Arc::into_raw(shared.clone());
        assert_eq!(raw, Arc::as_ptr(&shared));
        // SAFETY: `into_raw` returned the pointer.
        let back = unsafe { Arc::from_raw(raw) };
        drop(shared);
        assert_eq!(back.0, 7);
    }
}
