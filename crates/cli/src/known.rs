//! What the swap has found out about programs, kept from one start to the next.
//!
//! The swap reads all names of a program that it has never seen, which takes longer than all else
//! that it does. What it finds depends on the file and on the swap only. An entry is a file of the
//! user's own in `$XDG_CACHE_HOME/blacklight`, named by the program's build ID, with the sizes and
//! the times of the two files in it, so that another swap judges anew. The swap compares it with
//! the functions in memory all the same, and what is in it becomes a setting of the swap, so it is
//! only taken if it looks like one.

use crate::linker::Program;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, renameat};
use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The length of the longest entry that is taken.
const LONGEST: u64 = 1 << 14;

/// An entry for a program, whether it is there or not.
pub(crate) struct Entry {
    directory: PathBuf,
    build_id: String,
    /// The first line: what an older file of the program, or of the swap, would not have.
    stamp: String,
}

impl Entry {
    /// The entry for what this swap finds out about a program. `None` if the program has no build
    /// ID, or there is no place for entries.
    pub(crate) fn of(program: &Program, swap: &Path) -> Option<Entry> {
        let absolute = |name| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let caches =
            absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Entry::within(&caches, program, swap)
    }

    fn within(caches: &Path, program: &Program, swap: &Path) -> Option<Entry> {
        let build_id = program.elf.build_id.clone().filter(|id| id.len() >= 8)?;
        Some(Entry {
            directory: caches.join("blacklight"),
            build_id,
            stamp: format!("{} {}\n", version_of(&program.file)?, version_of(swap)?),
        })
    }

    /// The facts, if there is an entry.
    pub(crate) fn read(&self) -> Option<String> {
        let directory = self.open_directory()?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&directory, &*self.build_id, flags, Mode::empty()).ok()?;
        let status = fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        if !is_file || !is_own(status.st_uid, status.st_mode) {
            return None;
        }
        let mut text = String::new();
        File::from(file)
            .take(LONGEST)
            .read_to_string(&mut text)
            .ok()?;
        let facts = text.strip_prefix(&*self.stamp)?.strip_suffix('\n')?;
        self.is_about_this(facts).then(|| facts.to_owned())
    }

    /// Whether facts are as the swap writes them, of this program.
    fn is_about_this(&self, facts: &str) -> bool {
        let belongs = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '+' | ',');
        let rest = facts.strip_prefix(&*self.build_id);
        rest.is_some_and(|rest| rest.starts_with(':') && rest.chars().all(belongs))
    }

    /// Makes the directory for entries, if it is not there.
    pub(crate) fn can_be_written(&self) -> bool {
        // If it cannot be made, it cannot be opened.
        let _ = DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&self.directory);
        let directory = self.open_directory();
        directory.is_some_and(|directory| {
            let access = rustix::fs::Access::WRITE_OK;
            rustix::fs::accessat(directory, ".", access, rustix::fs::AtFlags::empty()).is_ok()
        })
    }

    /// Keeps facts. That they cannot be kept does not concern the program.
    pub(crate) fn write(&self, facts: &str) {
        if !self.is_about_this(facts) {
            return;
        }
        let Some(directory) = self.open_directory() else {
            return;
        };
        let draft = format!("{}.{}", self.build_id, std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let Ok(file) = openat(&directory, &*draft, flags, Mode::RUSR | Mode::WUSR) else {
            return;
        };
        let text = [&*self.stamp, facts, "\n"].concat();
        let is_written = File::from(file).write_all(text.as_bytes()).is_ok();
        if !is_written || renameat(&directory, &*draft, &directory, &*self.build_id).is_err() {
            let _ = rustix::fs::unlinkat(&directory, &*draft, rustix::fs::AtFlags::empty());
        }
    }

    fn open_directory(&self) -> Option<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let directory = openat(CWD, &self.directory, flags, Mode::empty()).ok()?;
        let status = fstat(&directory).ok()?;
        is_own(status.st_uid, status.st_mode).then_some(directory)
    }
}

/// What tells a file from one that was in its place before. Packages set the time at which it was
/// modified, but not the time at which it was put there.
fn version_of(file: &Path) -> Option<String> {
    let file = file.metadata().ok()?;
    let [modified, changed] = [
        (file.mtime(), file.mtime_nsec()),
        (file.ctime(), file.ctime_nsec()),
    ]
    .map(|(seconds, nanoseconds)| format!("{seconds}.{nanoseconds}"));
    Some(format!("{} {modified} {changed}", file.len()))
}

/// Whether a file is the user's, and nobody else may write to it.
fn is_own(uid: u32, mode: u32) -> bool {
    uid == rustix::process::geteuid().as_raw() && mode & 0o022 == 0
}

#[cfg(test)]
mod tests {
    use super::Entry;
    use crate::linker::Program;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::PathBuf;

    /// A cache of this test's own, removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let name = format!("blacklight-known-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Scratch(path)
        }

        fn entry(&self) -> Entry {
            let swap = self.swap();
            if !swap.exists() {
                fs::write(&swap, "a swap").unwrap();
            }
            let mut program = Program::find("/proc/self/exe".as_ref()).unwrap();
            program.elf.build_id = Some("5ca1ab1e00".to_owned());
            Entry::within(&self.0, &program, &swap).unwrap()
        }

        fn swap(&self) -> PathBuf {
            self.0.join("swap")
        }

        fn file(&self) -> PathBuf {
            self.0.join("blacklight/5ca1ab1e00")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const FACTS: &str = "5ca1ab1e00:f00d:1a+2b,3+4";

    #[test]
    fn what_is_written_is_read_by_its_user_alone() {
        let scratch = Scratch::new("kept");
        let entry = scratch.entry();
        assert_eq!(entry.read(), None);
        assert!(entry.can_be_written());
        assert_eq!(entry.read(), None);
        entry.write(FACTS);
        assert_eq!(entry.read().as_deref(), Some(FACTS));
        assert_eq!(fs::metadata(scratch.file()).unwrap().mode() & 0o777, 0o600);
        let directory = scratch.0.join("blacklight");
        assert_eq!(fs::metadata(directory).unwrap().mode() & 0o777, 0o700);
        entry.write("");
        assert_eq!(entry.read().as_deref(), Some(FACTS));
    }

    #[test]
    fn an_entry_of_another_file_is_not_taken() {
        let scratch = Scratch::new("other");
        let mut entry = scratch.entry();
        assert!(entry.can_be_written());
        entry.write(FACTS);
        entry.stamp = "1 2 3\n".to_owned();
        assert_eq!(entry.read(), None);
    }

    #[test]
    fn an_entry_of_another_swap_is_not_taken() {
        let scratch = Scratch::new("swap");
        let entry = scratch.entry();
        assert!(entry.can_be_written());
        entry.write(FACTS);
        assert_eq!(scratch.entry().read().as_deref(), Some(FACTS));
        let swap = fs::File::options().write(true).open(scratch.swap());
        let swap = swap.unwrap();
        swap.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(scratch.entry().read(), None);
        scratch.entry().write(FACTS);
        assert_eq!(scratch.entry().read().as_deref(), Some(FACTS));
        swap.set_len(1).unwrap();
        swap.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(scratch.entry().read(), None);
    }

    #[test]
    fn hostile_entries_are_not_taken() {
        let scratch = Scratch::new("hostile");
        let entry = scratch.entry();
        assert!(entry.can_be_written());
        let lines = [
            "5ca1ab1e00:f00d:;library=/tmp/evil.so",
            "5ca1ab1e00:f00d:\nreport=/etc/passwd",
            "5ca1ab1e00:f00d:$ORIGIN",
            "5ca1ab1e",
            "5ca1ab1e000:1::",
            "0:1::",
        ];
        for line in lines {
            fs::write(scratch.file(), format!("{}{line}\n", entry.stamp)).unwrap();
            fs::set_permissions(scratch.file(), fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(entry.read(), None, "{line}");
            entry.write(line);
            assert_eq!(entry.read(), None, "{line}");
        }
        fs::write(scratch.file(), [0xff; 100]).unwrap();
        assert_eq!(entry.read(), None);
        let endless = format!("{}5ca1ab1e00:{}", entry.stamp, "0".repeat(1 << 15));
        fs::write(scratch.file(), endless).unwrap();
        assert_eq!(entry.read(), None);
    }

    #[test]
    fn what_others_may_have_written_is_not_taken() {
        let scratch = Scratch::new("foreign");
        let entry = scratch.entry();
        assert!(entry.can_be_written());
        entry.write(FACTS);
        let set = |path: PathBuf, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(scratch.file(), 0o620);
        assert_eq!(entry.read(), None);
        set(scratch.file(), 0o600);
        assert!(entry.read().is_some());
        let directory = scratch.0.join("blacklight");
        set(directory.clone(), 0o777);
        assert!(entry.read().is_none() && !entry.can_be_written());
        set(directory, 0o700);
        let moved = scratch.0.join("moved");
        fs::rename(scratch.file(), &moved).unwrap();
        symlink(&moved, scratch.file()).unwrap();
        assert_eq!(entry.read(), None);
    }
}
