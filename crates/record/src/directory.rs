//! Where records are.
//!
//! A process's record is the file `PID.NAMESPACE`, or `PID.NAMESPACE.N` for further copies of this
//! library in it, in `$XDG_RUNTIME_DIR/blacklight`, or in `/dev/shm/blacklight-UID`. Only
//! directories in memory are used, since writing to a mapped file on a disk waits for the disk;
//! only directories that belong to the user and that nobody else may look into.

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, fstat, fstatfs, mkdirat, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::CStr;
use std::io::Write;

const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;

/// A path that needs no heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    bytes: [u8; 256],
    length: usize,
}

impl Path {
    /// The path with these parts one after the other, unless it is too long or has a zero.
    pub(crate) fn new(parts: std::fmt::Arguments<'_>) -> Option<Path> {
        let mut bytes = [0; 256];
        let mut rest = &mut bytes[..255];
        rest.write_fmt(parts).ok()?;
        let length = 255 - rest.len();
        (!bytes[..length].contains(&0)).then_some(Path { bytes, length })
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes[..=self.length]).unwrap_or(c"")
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or("")
    }
}

/// The directories that may hold the records of a user, the preferred one first.
pub(crate) fn candidates(runtime: Option<&str>, uid: u32) -> [Option<Path>; 2] {
    let runtime = runtime.filter(|path| path.starts_with('/'));
    [
        runtime.and_then(|path| Path::new(format_args!("{path}/blacklight"))),
        Path::new(format_args!("/dev/shm/blacklight-{uid}")),
    ]
}

/// How many copies of this library may run in one process and have a record each, as when a program
/// on the Rust crate loads the C library too.
pub(crate) const COPIES: u32 = 4;

/// The name of a process's record; `copy` counts from 1.
pub(crate) fn record_name(pid: u32, namespace: u64, copy: u32) -> Option<Path> {
    match copy {
        1 => Path::new(format_args!("{pid}.{namespace}")),
        _ => Path::new(format_args!("{pid}.{namespace}.{copy}")),
    }
}

/// The process and the namespace that a record of this name is of.
pub(crate) fn parse_name(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.split('.');
    let (pid, namespace) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let is_copy = |copy: &str| {
        copy.parse()
            .is_ok_and(|copy: u32| (2..=COPIES).contains(&copy))
    };
    let is_name = parts.next().is_none_or(is_copy) && parts.next().is_none();
    is_name.then_some((pid, namespace))
}

/// Opens a directory of records, which is made if `make` says so. `None` if it is not in memory, or
/// not the user's own.
pub(crate) fn open(path: &Path, uid: u32, make: bool) -> Option<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let open = || openat(CWD, path.as_c_str(), flags, Mode::empty());
    let directory = match open() {
        Err(Errno::NOENT) if make => {
            // Another process may make it at the same time.
            let _ = mkdirat(CWD, path.as_c_str(), Mode::RWXU);
            open()
        }
        opened => opened,
    };
    let directory = directory.ok()?;
    let stat = fstat(&directory).ok()?;
    let kind = fstatfs(&directory).ok()?.f_type as u64 & 0xffff_ffff;
    let is_private = stat.st_uid == uid && stat.st_mode & 0o077 == 0;
    (is_private && (kind == TMPFS || kind == RAMFS)).then_some(directory)
}

/// Removes the record of this name if it is the file with this device and inode, and not one that has
/// taken its place since it was judged: names are used again, and a file can only be removed by its
/// name. So it first gets a name that nobody else uses.
pub(crate) fn remove_file(folder: &OwnedFd, name: &CStr, file: (u64, u64)) {
    let own = rustix::process::getpid().as_raw_pid();
    let Some(aside) = (name.to_str().ok())
        .and_then(|name| Path::new(format_args!("removed-by-{own}.{name}")))
        .filter(|aside| renameat(folder, name, folder, aside.as_c_str()).is_ok())
    else {
        return;
    };
    let stat = statat(folder, aside.as_c_str(), AtFlags::SYMLINK_NOFOLLOW);
    let _ = match stat.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == file) {
        true => unlinkat(folder, aside.as_c_str(), AtFlags::empty()),
        false => renameat_with(
            folder,
            aside.as_c_str(),
            folder,
            name,
            RenameFlags::NOREPLACE,
        ),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::path::PathBuf;

    /// A directory in memory of this test's own, removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let own = format!("/dev/shm/blacklight-test-{}-{name}", std::process::id());
            // Numbers of processes are used again, and one that was killed has left its own.
            let _ = std::fs::remove_dir_all(&own);
            std::fs::create_dir(&own).expect("there is /dev/shm");
            Scratch(own.into())
        }

        fn path(&self, name: &str) -> Path {
            Path::new(format_args!("{}/{name}", self.0.display())).expect("it is short")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn own_uid() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn a_directory_is_made_for_its_user_alone() {
        let scratch = Scratch::new("made");
        let path = scratch.path("blacklight");
        assert!(open(&path, own_uid(), false).is_none());
        assert!(open(&path, own_uid(), true).is_some());
        let mode = std::fs::metadata(path.as_str()).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
        assert!(open(&path, own_uid(), false).is_some());
    }

    #[test]
    fn a_directory_that_others_may_look_into_or_own_is_refused() {
        let scratch = Scratch::new("refused");
        let path = scratch.path("blacklight");
        assert!(open(&path, own_uid(), true).is_some());
        for mode in [0o755, 0o710, 0o701, 0o777] {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path.as_str(), mode).unwrap();
            assert!(open(&path, own_uid(), true).is_none());
        }
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(path.as_str(), mode).unwrap();
        assert!(
            open(&path, own_uid() + 1, true).is_none(),
            "of another user"
        );
        if own_uid() == 0 {
            chown(path.as_str(), Some(1), None).unwrap();
            assert!(open(&path, 0, true).is_none(), "given away");
        }
        let link = scratch.path("link");
        std::fs::create_dir(scratch.0.join("target")).unwrap();
        symlink(scratch.0.join("target"), link.as_str()).unwrap();
        assert!(open(&link, own_uid(), true).is_none(), "a symbolic link");
        let file = scratch.path("file");
        std::fs::write(file.as_str(), "").unwrap();
        assert!(open(&file, own_uid(), true).is_none(), "a file");
    }

    #[test]
    fn a_directory_on_a_disk_is_refused() {
        // Test programs lie on a disk.
        let program = std::env::current_exe().unwrap();
        let path = program.with_file_name(format!("blacklight-test-{}", std::process::id()));
        let path = Path::new(format_args!("{}", path.display())).expect("it is short");
        let opened = open(&path, own_uid(), true);
        std::fs::remove_dir(path.as_str()).expect("it was made to be judged");
        assert!(opened.is_none());
    }

    #[test]
    fn a_file_is_removed_by_what_it_is_and_not_by_its_name() {
        use std::os::unix::fs::MetadataExt;
        let scratch = Scratch::new("removed");
        let path = scratch.path("blacklight");
        let folder = open(&path, own_uid(), true).unwrap();
        let record = PathBuf::from(path.as_str()).join("12.34");
        std::fs::write(&record, "dead").unwrap();
        // It stays open, so that its number is not used again.
        let judged = std::fs::File::open(&record).unwrap();
        let stat = judged.metadata().unwrap();
        let file = (stat.dev(), stat.ino());
        std::fs::remove_file(&record).unwrap();
        std::fs::write(&record, "alive").unwrap();
        remove_file(&folder, c"12.34", file);
        assert_eq!(std::fs::read(&record).unwrap(), b"alive");
        let stat = std::fs::metadata(&record).unwrap();
        remove_file(&folder, c"12.34", (stat.dev(), stat.ino()));
        let left = std::fs::read_dir(path.as_str()).unwrap();
        assert_eq!(left.count(), 0);
        remove_file(&folder, c"12.34", file);
    }

    #[test]
    fn names_tell_the_process_and_nothing_else_is_one() {
        for copy in 1..=COPIES {
            let name = record_name(12, 4026531836, copy).unwrap();
            assert_eq!(parse_name(name.as_str()), Some((12, 4026531836)));
        }
        for other in [
            "", "12", "12.", "-12.3", "a.3", "12.3.1", "12.3.5", "12.3.x", "12.3.2.2",
        ] {
            assert_eq!(parse_name(other), None, "{other}");
        }
    }

    #[test]
    fn paths_that_are_too_long_or_relative_are_none() {
        let long = "x".repeat(300);
        assert!(Path::new(format_args!("/{long}")).is_none());
        assert!(Path::new(format_args!("/a\0b")).is_none());
        for runtime in [None, Some("relative"), Some(&*long), Some("")] {
            let [first, second] = candidates(runtime, 7);
            assert!(first.is_none());
            assert_eq!(second.unwrap().as_str(), "/dev/shm/blacklight-7");
        }
    }
}
