//! Temporary files and directories, removed on drop.

use super::{File, on_pool};
use std::env::temp_dir;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Tries random names until `make` does not fail with `AlreadyExists`.
fn unique<T>(prefix: &str, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    loop {
        let mut bytes = [0; 8];
        crate::random(&mut bytes)?;
        let path = temp_dir().join(format!("{prefix}-{:016x}", u64::from_ne_bytes(bytes)));
        match make(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((path, made?)),
        }
    }
}

/// A private directory in the system's directory for temporary files. Dropping this removes it
/// with its contents, on this thread.
///
/// ```
/// use blacklight::{Loop, fs};
///
/// let lp = Loop::new()?;
/// let directory = lp.block_on(fs::TempDir::new("light"))?;
/// let path = directory.path().to_owned();
/// assert!(path.is_dir());
/// drop(directory);
/// assert!(!path.exists());
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "dropping this removes the directory"]
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    /// Creates a directory whose name begins with `prefix`.
    ///
    /// ```
    /// use blacklight::{Loop, fs};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let directory = fs::TempDir::new("light").await?;
    ///     fs::write(directory.path().join("file"), "light").await?;
    ///     let name = directory.path().file_name().unwrap().to_str().unwrap();
    ///     assert!(name.starts_with("light-"));
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn new(prefix: &str) -> io::Result<TempDir> {
        let prefix = prefix.to_owned();
        on_pool(move || TempDir::new_blocking(&prefix)).await
    }

    /// Like [`new`](TempDir::new), on this thread.
    ///
    /// ```
    /// let directory = blacklight::fs::TempDir::new_blocking("light")?;
    /// assert!(directory.path().is_dir());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_blocking(prefix: &str) -> io::Result<TempDir> {
        let make = |path: &Path| DirBuilder::new().mode(0o700).create(path);
        Ok(TempDir(unique(prefix, make)?.0))
    }

    /// The path.
    ///
    /// ```
    /// use blacklight::fs::TempDir;
    ///
    /// let directory = TempDir::new_blocking("path")?;
    /// let path = directory.path().to_owned();
    /// assert!(path.is_dir());
    /// drop(directory);
    /// assert!(!path.exists());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A private file in the system's directory for temporary files, open for reading and writing.
/// Dropping this removes it.
///
/// ```
/// use blacklight::{Loop, fs};
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let mut file = fs::TempFile::new("light").await?;
///     file.file.write_all(b"light").await?;
///     assert_eq!(fs::read(file.path()).await?, b"light");
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "dropping this removes the file"]
#[derive(Debug)]
pub struct TempFile {
    path: Named,
    /// The file itself.
    pub file: File,
}

/// Removes the file of this name on drop.
#[derive(Debug)]
struct Named(PathBuf);

impl Drop for Named {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl TempFile {
    /// Creates a file whose name begins with `prefix`.
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile};
    ///
    /// let lp = Loop::new()?;
    /// let file = lp.block_on(TempFile::new("light"))?;
    /// let path = file.path().to_owned();
    /// assert!(path.is_file());
    /// drop(file);
    /// assert!(!path.exists());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn new(prefix: &str) -> io::Result<TempFile> {
        let prefix = prefix.to_owned();
        let make = |path: &Path| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(0o600);
            options.open(path)
        };
        let (path, file) = on_pool(move || {
            let (path, file) = unique(&prefix, make)?;
            Ok((Named(path), file))
        })
        .await?;
        let file = File::from_std(file);
        Ok(TempFile { path, file })
    }

    /// The path.
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile};
    ///
    /// let lp = Loop::new()?;
    /// let temporary = lp.block_on(TempFile::new("path"))?;
    /// assert!(temporary.path().is_file());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        &self.path.0
    }
}
