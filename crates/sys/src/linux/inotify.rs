//! Watches files and directories for changes:
//! <https://man7.org/linux/man-pages/man7/inotify.7.html>.
//!
//! Directories inside a watched tree are opened step by step from the tree's root, as [`Folder`]s:
//! no step follows a symbolic link, no path is too long, and the tree may be moved as a whole.
//! Linux has no `inotify_add_watch` for an open directory, but `/proc` has a path for each.

use super::text;
use crate::fallible::Short;
use crate::{Errno, RawFd};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{Mode, OFlags};
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use libc::{
    IN_ATTRIB, IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_IGNORED, IN_ISDIR, IN_MODIFY, IN_MOVE_SELF,
    IN_MOVED_FROM, IN_MOVED_TO, IN_Q_OVERFLOW,
};

/// The mask of every watch. The kernel has one mask per file: a second watch with another mask
/// would change the first.
const WATCHED: u32 = IN_ATTRIB
    | IN_CREATE
    | IN_MODIFY
    | IN_DELETE
    | IN_DELETE_SELF
    | IN_MOVE_SELF
    | IN_MOVED_FROM
    | IN_MOVED_TO;

/// The size of a record's fixed part.
const HEADER: usize = size_of::<libc::inotify_event>();

/// The size of the largest record.
pub const MIN_ROOM: usize = HEADER + libc::NAME_MAX as usize + 1;

/// Reports changes to the files that it watches, through a descriptor that is non-blocking and
/// close-on-exec.
#[derive(Debug)]
pub struct FileWatcher(OwnedFd);

/// The changes to a file, several of which may come in one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Changes(u32);

impl Changes {
    /// The bits that the kernel has set.
    pub const fn bits(self) -> u32 {
        self.0
    }

    fn any(self, mask: u32) -> bool {
        self.0 & mask != 0
    }

    /// The kernel's queue was full, and records are lost. Such a record names no file.
    pub fn is_overflow(self) -> bool {
        self.any(IN_Q_OVERFLOW)
    }

    /// The watch has ended: its file or file system is gone, or the watch was removed.
    pub fn is_end_of_watch(self) -> bool {
        self.any(IN_IGNORED)
    }

    /// The file is a directory.
    pub fn is_directory(self) -> bool {
        self.any(IN_ISDIR)
    }

    /// The content or the attributes have changed.
    pub fn is_change(self) -> bool {
        self.any(IN_ATTRIB | IN_MODIFY)
    }

    /// A name was created, removed or moved, or something else happened that is not a
    /// [change](Changes::is_change).
    pub fn is_rename(self) -> bool {
        self.any(!(IN_ATTRIB | IN_MODIFY | IN_ISDIR))
    }

    /// The file was created.
    pub fn is_creation(self) -> bool {
        self.any(IN_CREATE)
    }

    /// The file has appeared in the directory: it was created, or moved there.
    pub fn is_arrival(self) -> bool {
        self.any(IN_CREATE | IN_MOVED_TO)
    }

    /// The file is gone from the directory: it was removed, or moved away.
    pub fn is_departure(self) -> bool {
        self.any(IN_DELETE | IN_MOVED_FROM)
    }
}

/// The kernel's record about one file.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The watch that it belongs to, or −1.
    pub wd: i32,
    /// The changes.
    pub changes: Changes,
    /// The entry of the watched directory that has changed; empty if the watched file itself has.
    pub name: &'a [u8],
    /// The record's length.
    pub len: usize,
}

impl Record<'_> {
    /// The record at the beginning of `bytes`, if it is complete.
    pub fn first(bytes: &[u8]) -> Option<Record<'_>> {
        let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let (wd, mask, name_len) = (word(0)?, word(4)?, word(12)? as usize);
        let name = bytes.get(HEADER..)?.get(..name_len)?;
        Some(Record {
            wd: wd as i32,
            changes: Changes(mask),
            // The kernel pads with NULs.
            name: name.split(|&byte| byte == 0).next().unwrap_or_default(),
            len: HEADER + name_len,
        })
    }
}

fn create() -> Result<OwnedFd, Errno> {
    Ok(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?)
}

impl FileWatcher {
    /// Makes a watcher without watches.
    pub fn new() -> Result<FileWatcher, Errno> {
        create().map(FileWatcher)
    }

    /// The descriptor, to wait on.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Watches a file or directory. A file that is watched already keeps its number.
    pub fn watch(&self, path: &CStr) -> Result<i32, Errno> {
        let flags = WatchFlags::from_bits_retain(WATCHED);
        Ok(inotify::add_watch(&self.0, path, flags)?)
    }

    /// Watches a directory.
    pub fn watch_folder(&self, folder: &Folder) -> Result<i32, Errno> {
        self.watch(folder.link().as_c_str())
    }

    /// Stops watching. The kernel may have removed the watch before.
    pub fn unwatch(&self, wd: i32) {
        let _ = inotify::remove_watch(&self.0, wd);
    }

    /// Reads as many pending records as fit. `EAGAIN` if there are none.
    pub fn read(&self, room: &mut [u8]) -> Result<usize, Errno> {
        loop {
            match rustix::io::read(&self.0, &mut *room) {
                Err(rustix::io::Errno::INTR) => {}
                read => return Ok(read?),
            }
        }
    }

    /// The number of bytes of pending records.
    pub fn pending(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.0).unwrap_or(0)
    }

    /// Puts a new watcher behind the same descriptor number, so that a child process does not share
    /// its parent's.
    pub fn renew(&mut self) -> Result<(), Errno> {
        let fresh = create()?;
        rustix::io::dup3(&fresh, &mut self.0, rustix::io::DupFlags::CLOEXEC)?;
        Ok(())
    }
}

/// An open directory, from which to open others.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    fn open_at(dir: impl AsFd, path: &CStr, more: OFlags) -> Result<Folder, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
        loop {
            match rustix::fs::openat(&dir, path, flags, Mode::empty()) {
                Err(rustix::io::Errno::INTR) => {}
                opened => return Ok(Folder(opened?)),
            }
        }
    }

    /// Opens a directory. `ENOTDIR` for any other file.
    pub fn open(path: &CStr) -> Result<Folder, Errno> {
        Folder::open_at(rustix::fs::CWD, path, OFlags::empty())
    }

    /// Opens a directory in this one. `ENOTDIR` for any other file, including a link to a
    /// directory.
    pub fn enter(&self, name: &CStr) -> Result<Folder, Errno> {
        Folder::open_at(&self.0, name, OFlags::NOFOLLOW)
    }

    /// A path to this directory, wherever it is, valid while it is open.
    pub fn link(&self) -> Short {
        text::descriptor_path(self.0.as_raw_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    #[test]
    fn records_are_parsed_one_by_one() {
        let mut bytes = Vec::new();
        for (wd, mask, name) in [
            (1, IN_CREATE, &b"file\0\0\0\0"[..]),
            (-1, IN_Q_OVERFLOW, b""),
        ] {
            let words = [wd as u32, mask, 0, name.len() as u32];
            bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
            bytes.extend(name);
        }
        let first = Record::first(&bytes).unwrap();
        assert_eq!(
            (first.wd, first.changes, first.name),
            (1, Changes(IN_CREATE), &b"file"[..])
        );
        let second = Record::first(&bytes[first.len..]).unwrap();
        assert_eq!((second.wd, second.name), (-1, &b""[..]));
        assert!(Record::first(&bytes[first.len + second.len..]).is_none());
        assert!(
            Record::first(&bytes[..20]).is_none(),
            "half a record is none"
        );
    }

    #[test]
    fn a_link_is_no_folder() {
        let root = std::env::temp_dir().join(format!("blacklight-folder-{}", std::process::id()));
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::os::unix::fs::symlink("sub", root.join("link")).unwrap();
        let path = CString::new(root.to_str().unwrap()).unwrap();
        let folder = Folder::open(&path).unwrap();
        assert!(folder.enter(c"sub").is_ok());
        assert_eq!(folder.enter(c"link").unwrap_err(), Errno::ENOTDIR);
        assert_eq!(folder.enter(c"none").unwrap_err(), Errno::ENOENT);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
