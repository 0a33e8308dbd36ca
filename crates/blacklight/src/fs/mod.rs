//! Files and directories, as in [`std::fs`], on the thread pool of the current loop.
//!
//! ```
//! use blacklight::{Loop, fs};
//!
//! let lp = Loop::new()?;
//! lp.block_on(async {
//!     let directory = fs::TempDir::new("light").await?;
//!     let (old, new) = (directory.path().join("old"), directory.path().join("new"));
//!     fs::write(&old, "light").await?;
//!     fs::rename(&old, &new).await?;
//!     assert_eq!(fs::read_to_string(&new).await?, "light");
//!     assert_eq!(fs::metadata(&new).await?.len(), 5);
//!     fs::remove_file(&new).await?;
//!     assert!(!fs::exists(&new).await?);
//!     # Ok::<(), std::io::Error>(())
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The pool is the process's: all loops share it, and so do [`spawn_blocking`](crate::spawn_blocking)
//! and [`dns`](crate::dns). While jobs that take long occupy all of its threads, files wait.
//!
//! Every future may be dropped at any time. If no thread has started its operation by then, the
//! operation never runs; otherwise it is finished and its result dropped.
//!
//! With callbacks, [`LoopHandle::work`](crate::LoopHandle::work) runs any function of `std::fs`:
//!
//! ```
//! use blacklight::{Loop, Mode};
//!
//! let lp = Loop::new()?;
//! lp.work(
//!     || std::fs::read("/proc/self/comm"),
//!     |_, name| assert!(!name.unwrap().unwrap().is_empty()),
//! )?;
//! lp.run(Mode::Default);
//! # Ok::<(), std::io::Error>(())
//! ```

mod dir;
mod file;
mod temp;

pub use dir::{ReadDir, read_dir};
pub use file::File;
pub use temp::{TempDir, TempFile};

use crate::work::OnPool;
use blacklight_engine::WorkKind;
use std::fs::{self, FileTimes, Metadata, Permissions};
use std::io;
use std::path::{Path, PathBuf};

/// Runs a file operation on the pool.
fn on_pool<T: Send + 'static>(job: impl FnOnce() -> io::Result<T> + Send + 'static) -> OnPool<T> {
    OnPool::new(WorkKind::FastIo, job)
}

/// Functions of `std::fs`, each with an example that runs in a directory of its own.
macro_rules! functions {
    ($(
        $(#[doc = $doc:literal])*
        fn $name:ident($($path:ident),* $(; $arg:ident: $type:ty)?) -> $result:ty;
        $example:literal
    )*) => {$(
        $(#[doc = $doc])*
        ///
        /// ```
        /// # use blacklight::{Loop, fs};
        /// # let lp = Loop::new()?;
        /// # lp.block_on(async {
        /// # let temporary = fs::TempDir::new("example").await?;
        /// # let directory = temporary.path();
        #[doc = $example]
        /// # Ok::<(), std::io::Error>(())
        /// # })?;
        /// # Ok::<(), std::io::Error>(())
        /// ```
        pub async fn $name($($path: impl AsRef<Path>,)* $($arg: $type)?) -> io::Result<$result> {
            $(let $path = $path.as_ref().to_owned();)*
            on_pool(move || fs::$name($($path,)* $($arg)?)).await
        }
    )*};
}

functions! {
    /// Reads the contents of a file.
    fn read(path) -> Vec<u8>;
    "let path = directory.join(\"file\");
fs::write(&path, b\"light\").await?;
assert_eq!(fs::read(&path).await?, b\"light\");"

    /// Reads the contents of a file as text.
    fn read_to_string(path) -> String;
    "let path = directory.join(\"file\");
fs::write(&path, b\"light\").await?;
assert_eq!(fs::read_to_string(&path).await?, \"light\");"

    /// Returns the metadata of a file, following symbolic links.
    fn metadata(path) -> Metadata;
    "assert!(fs::metadata(directory).await?.is_dir());"

    /// Returns the metadata of a file, without following a symbolic link.
    fn symlink_metadata(path) -> Metadata;
    "let link = directory.join(\"link\");
fs::symlink(\"nowhere\", &link).await?;
assert!(fs::symlink_metadata(&link).await?.is_symlink());"

    /// Returns whether a file exists, following symbolic links.
    fn exists(path) -> bool;
    "assert!(fs::exists(directory).await?);
assert!(!fs::exists(directory.join(\"nothing\")).await?);"

    /// Creates a directory.
    fn create_dir(path) -> ();
    "fs::create_dir(directory.join(\"new\")).await?;"

    /// Creates a directory and all missing parents.
    fn create_dir_all(path) -> ();
    "fs::create_dir_all(directory.join(\"new/and/deep\")).await?;"

    /// Removes a file.
    fn remove_file(path) -> ();
    "let path = directory.join(\"file\");
fs::write(&path, b\"light\").await?;
fs::remove_file(&path).await?;"

    /// Removes an empty directory.
    fn remove_dir(path) -> ();
    "fs::create_dir(directory.join(\"new\")).await?;
fs::remove_dir(directory.join(\"new\")).await?;"

    /// Removes a directory and its contents.
    fn remove_dir_all(path) -> ();
    "fs::create_dir_all(directory.join(\"new/and/deep\")).await?;
fs::remove_dir_all(directory.join(\"new\")).await?;"

    /// Renames a file, replacing an existing file of the new name.
    fn rename(from, to) -> ();
    "fs::write(directory.join(\"old\"), b\"light\").await?;
fs::rename(directory.join(\"old\"), directory.join(\"new\")).await?;"

    /// Copies the contents and permissions of a file, and returns the number of bytes.
    fn copy(from, to) -> u64;
    "fs::write(directory.join(\"one\"), b\"light\").await?;
assert_eq!(fs::copy(directory.join(\"one\"), directory.join(\"two\")).await?, 5);"

    /// Creates a hard link.
    fn hard_link(original, link) -> ();
    "fs::write(directory.join(\"one\"), b\"light\").await?;
fs::hard_link(directory.join(\"one\"), directory.join(\"two\")).await?;"

    /// Reads the target of a symbolic link.
    fn read_link(path) -> PathBuf;
    "let link = directory.join(\"link\");
fs::symlink(\"nowhere\", &link).await?;
assert_eq!(fs::read_link(&link).await?.as_os_str(), \"nowhere\");"

    /// Returns the absolute path, with all symbolic links resolved.
    fn canonicalize(path) -> PathBuf;
    "assert_eq!(fs::canonicalize(\"/proc/../proc\").await?.as_os_str(), \"/proc\");"

    /// Changes the permissions of a file.
    fn set_permissions(path; permissions: Permissions) -> ();
    "let mut permissions = fs::metadata(directory).await?.permissions();
permissions.set_readonly(false);
fs::set_permissions(directory, permissions).await?;"
}

/// Writes a file, creating it or replacing its contents.
///
/// ```
/// use blacklight::{Loop, fs};
///
/// let lp = Loop::new()?;
/// lp.block_on(fs::write("/dev/null", "light"))?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
    let (path, content) = (path.as_ref().to_owned(), content.as_ref().to_owned());
    on_pool(move || fs::write(path, content)).await
}

/// Creates a symbolic link.
///
/// ```
/// use blacklight::{Loop, fs};
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let directory = fs::TempDir::new("link").await?;
///     fs::symlink("/dev/null", directory.path().join("link")).await
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (target, link) = (target.as_ref().to_owned(), link.as_ref().to_owned());
    on_pool(move || std::os::unix::fs::symlink(target, link)).await
}

/// Sets the times of a file or directory, which must be readable.
///
/// ```
/// use blacklight::{Loop, fs};
/// use std::fs::FileTimes;
/// use std::time::UNIX_EPOCH;
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let file = fs::TempFile::new("old").await?;
///     fs::set_times(file.path(), FileTimes::new().set_modified(UNIX_EPOCH)).await?;
///     assert_eq!(fs::metadata(file.path()).await?.modified()?, UNIX_EPOCH);
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn set_times(path: impl AsRef<Path>, times: FileTimes) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    on_pool(move || fs::File::open(path)?.set_times(times)).await
}
