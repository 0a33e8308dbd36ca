//! Directories: <https://man7.org/linux/man-pages/man3/readdir.3.html>.
//!
//! The entries `.` and `..` are never reported.

use crate::platform::errno;
use crate::{Errno, check};
use std::ffi::CStr;
use std::ptr::NonNull;

/// The type of an entry, as far as the file system reports it with the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum EntryType {
    Unknown,
    File,
    Dir,
    Link,
    Fifo,
    Socket,
    Char,
    Block,
}

impl EntryType {
    fn from_raw(d_type: u8) -> EntryType {
        match d_type {
            libc::DT_REG => EntryType::File,
            libc::DT_DIR => EntryType::Dir,
            libc::DT_LNK => EntryType::Link,
            libc::DT_FIFO => EntryType::Fifo,
            libc::DT_SOCK => EntryType::Socket,
            libc::DT_CHR => EntryType::Char,
            libc::DT_BLK => EntryType::Block,
            _ => EntryType::Unknown,
        }
    }
}

/// An open directory.
#[derive(Debug)]
pub struct Dir(NonNull<libc::DIR>);

// SAFETY: a directory stream belongs to no thread; two must not use it at a time, which `&mut`
// prevents.
unsafe impl Send for Dir {}

impl Dir {
    /// Opens a directory, close-on-exec.
    pub fn open(path: &CStr) -> Result<Dir, Errno> {
        let dir = super::retry(|| {
            // SAFETY: the path lives through the call.
            let dir = unsafe { libc::opendir(path.as_ptr()) };
            NonNull::new(dir).ok_or_else(Errno::last)
        })?;
        Ok(Dir(dir))
    }

    /// The next entry, in no particular order, or `None` at the end.
    pub fn read(&mut self) -> Result<Option<(&CStr, EntryType)>, Errno> {
        loop {
            // SAFETY: the address is valid on the calling thread. Only errno distinguishes the end
            // of the directory from a failure.
            unsafe { *errno::location() = 0 };
            // SAFETY: `self` owns the open stream.
            let entry = unsafe { libc::readdir(self.0.as_ptr()) };
            let Some(entry) = NonNull::new(entry) else {
                return match Errno::last() {
                    error if error.code() == 0 => Ok(None),
                    error => Err(error),
                };
            };
            // SAFETY: libc keeps the entry unchanged until the stream is used again, which the
            // borrow prevents. No reference to the whole entry is made: it may be shorter than its
            // type.
            let (name, type_) = unsafe {
                let name = (&raw const (*entry.as_ptr()).d_name).cast();
                (CStr::from_ptr(name), (*entry.as_ptr()).d_type)
            };
            if !matches!(name.to_bytes(), b"." | b"..") {
                return Ok(Some((name, EntryType::from_raw(type_))));
            }
        }
    }

    /// Closes the directory, as dropping it does.
    pub fn close(self) -> Result<(), Errno> {
        // SAFETY: `self` owned the open stream, which is not used again.
        check(unsafe { libc::closedir(self.into_raw()) }).map(drop)
    }

    /// The C stream, which the caller must close.
    pub fn into_raw(self) -> *mut libc::DIR {
        std::mem::ManuallyDrop::new(self).0.as_ptr()
    }

    /// The directory behind a stream.
    ///
    /// # Safety
    ///
    /// The stream came from [`Dir::into_raw`], and nothing else uses it meanwhile.
    pub unsafe fn from_raw(stream: *mut libc::DIR) -> Option<Dir> {
        NonNull::new(stream).map(Dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // SAFETY: `self` owns the open stream, which is not used again.
        unsafe { libc::closedir(self.0.as_ptr()) };
    }
}

/// All entries of a directory, sorted by the bytes of their names.
#[derive(Debug, Default)]
pub struct Listing {
    /// The names one after the other, each with its NUL.
    names: Vec<u8>,
    /// Where each name begins, and its type.
    entries: Vec<(usize, EntryType)>,
}

impl Listing {
    /// Reads a directory to its end.
    pub fn read(path: &CStr) -> Result<Listing, Errno> {
        let mut dir = Dir::open(path)?;
        let mut listing = Listing::default();
        while let Some((name, type_)) = dir.read()? {
            let name = name.to_bytes_with_nul();
            listing.names.try_reserve(name.len())?;
            listing.entries.try_reserve(1)?;
            listing.entries.push((listing.names.len(), type_));
            listing.names.extend_from_slice(name);
        }
        let names = &listing.names;
        listing
            .entries
            .sort_unstable_by(|a, b| name_at(names, a.0).cmp(name_at(names, b.0)));
        Ok(listing)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The names one after the other, each with its NUL, in no particular order.
    pub fn names(&self) -> &[u8] {
        &self.names
    }

    /// Where in [`Listing::names`] each entry's name begins, and its type, in order.
    pub fn entries(&self) -> &[(usize, EntryType)] {
        &self.entries
    }
}

/// The name that begins there. Names compare by their bytes, and the trailing NUL is less than any
/// other byte.
fn name_at(names: &[u8], at: usize) -> &CStr {
    CStr::from_bytes_until_nul(&names[at..]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_sorted_and_typed() {
        let root = std::env::temp_dir().join(format!("blacklight-dir-{}", std::process::id()));
        std::fs::create_dir_all(root.join("sub")).unwrap();
        for name in ["b", "a", "B", ".hidden", "ab"] {
            std::fs::write(root.join(name), "").unwrap();
        }
        let path = std::ffi::CString::new(root.to_str().unwrap()).unwrap();
        let listing = Listing::read(&path).unwrap();
        let names: Vec<_> = listing
            .entries()
            .iter()
            .map(|(at, _)| name_at(listing.names(), *at).to_str().unwrap())
            .collect();
        assert_eq!(names, [".hidden", "B", "a", "ab", "b", "sub"]);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(Listing::read(&path).err(), Some(Errno::ENOENT));
    }
}
