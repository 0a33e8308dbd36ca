//! A directory of the process's own, for files that targets make, and the rights to make them with.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// The user and group "nobody".
const NOBODY: u32 = 65534;

/// A directory that goes away with the value. It belongs to who [`Unprivileged`] becomes.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new, empty directory. Its path is the same each time in one process.
    pub fn new(name: &str) -> Scratch {
        let name = format!("blacklight-fuzz-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        remove(&path);
        fs::create_dir(&path).expect("a directory below the temporary one");
        if is_root() {
            chown(&path, Some(NOBODY), Some(NOBODY)).expect("root gives it away");
        }
        Scratch(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes a directory and all that is in it, whatever its mode.
fn remove(directory: &Path) {
    let Ok(found) = fs::symlink_metadata(directory) else {
        return;
    };
    assert!(found.is_dir(), "{directory:?} was replaced");
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => remove(&path),
            false => drop(fs::remove_file(path)),
        }
    }
    let _ = fs::remove_dir(directory);
}

fn is_root() -> bool {
    // SAFETY: the call has no preconditions.
    unsafe { libc::geteuid() == 0 }
}

/// While it lives, root has only the rights of "nobody" for files, on the thread that made it.
///
/// Other threads, and who the process is for everything else, stay as they are; for anybody but
/// root it does nothing.
#[derive(Debug)]
pub struct Unprivileged {
    before: Option<(u32, u32)>,
}

impl Unprivileged {
    /// Gives the rights up.
    pub fn become_on_this_thread() -> Unprivileged {
        let before = is_root().then(|| {
            // SAFETY: these calls have no preconditions. The group goes first: it takes the
            // rights that the user has.
            unsafe {
                let group = libc::setfsgid(NOBODY) as u32;
                let user = libc::setfsuid(NOBODY) as u32;
                assert_eq!(libc::setfsuid(u32::MAX) as u32, NOBODY);
                (user, group)
            }
        });
        Unprivileged { before }
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        if let Some((user, group)) = self.before {
            // SAFETY: as above.
            unsafe {
                libc::setfsuid(user);
                libc::setfsgid(group);
            }
        }
    }
}
