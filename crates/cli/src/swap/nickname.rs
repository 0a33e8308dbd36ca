//! A path for a library that lies where the dynamic linker cannot be sent to.
//!
//! It takes a space or a colon in a path for the end of it, and `$` for the beginning of a variable.
//! So a link to the directory is kept in one of the user's own, which nobody else may write to.

use super::is_one_entry;
use anyhow::{Context, Result, ensure};
use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// Another path for the library.
pub(super) fn of(library: &Path) -> Result<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = [
        runtime
            .filter(|path| path.is_absolute() && is_one_entry(path))
            .map(|path| path.join("blacklight")),
        Some(PathBuf::from(format!("/dev/shm/blacklight-{uid}"))),
    ];
    let links = places
        .iter()
        .flatten()
        .map(|place| in_directory(library, place, uid));
    let mut failure = None;
    for link in links {
        match link {
            Ok(path) => return Ok(path),
            Err(error) => failure = Some(error),
        }
    }
    let reason = "the dynamic linker cannot preload a library that has a space, a colon or a dollar \
                  sign in its path, and there is no place for a link to it";
    Err(failure.context("no place")?.context(reason))
}

fn in_directory(library: &Path, place: &Path, uid: u32) -> Result<PathBuf> {
    let dir = library.parent().context("a library without a directory")?;
    let file = Path::new(library.file_name().context("a library without a name")?);
    ensure!(
        is_one_entry(file),
        "{} is no name for the linker",
        file.display()
    );
    // It is not there yet, or the next look at it tells.
    let _ = DirBuilder::new().mode(0o700).create(place);
    let found =
        fs::symlink_metadata(place).with_context(|| format!("cannot make {}", place.display()))?;
    let is_own = found.is_dir() && found.uid() == uid && found.mode() & 0o022 == 0;
    ensure!(is_own, "{} is not the user's own", place.display());
    let mut hasher = DefaultHasher::new();
    dir.hash(&mut hasher);
    let link = place.join(format!("lib-{:016x}", hasher.finish()));
    if fs::read_link(&link).ok().as_deref() != Some(dir) {
        let draft = link.with_extension(std::process::id().to_string());
        symlink(dir, &draft)
            .and_then(|()| fs::rename(&draft, &link))
            .with_context(|| format!("cannot make {}", link.display()))?;
    }
    Ok(link.join(file))
}

#[cfg(test)]
mod tests {
    use super::in_directory;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    #[test]
    fn the_link_is_made_once_in_a_directory_of_the_users_own() {
        let uid = rustix::process::geteuid().as_raw();
        let scratch = std::env::temp_dir().join(format!("blacklight-nick-{}", std::process::id()));
        let (dir, place) = (scratch.join("a b:c"), scratch.join("place"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("libuv.so.1"), "ours").unwrap();
        let library = dir.join("libuv.so.1");
        let path = in_directory(&library, &place, uid).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "ours");
        assert_eq!(in_directory(&library, &place, uid).unwrap(), path);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
        let text = path.to_str().unwrap();
        assert!(!text[place.to_str().unwrap().len()..].contains([' ', ':', '$']));
        let named = in_directory(Path::new("/lib/my lib.so"), &place, uid);
        assert!(named.unwrap_err().to_string().contains("no name"));
        assert!(in_directory(&library, &place, uid + 1).is_err());
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(in_directory(&library, &place, uid).is_err());
        fs::remove_dir_all(&scratch).unwrap();
    }
}
