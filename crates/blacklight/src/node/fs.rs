//! The basic functions of Node's `fs`, on the thread pool.
//!
//! Each function does its work on the pool and calls back in the poll phase. The callback
//! receives an error of the operation; the function itself fails only if the pool has no thread
//! and cannot start one.
//!
//! ```
//! use blacklight::node::{Node, fs};
//!
//! let node = Node::new()?;
//! fs::stat(&node, "/proc/self/comm", |node, stats| {
//!     assert!(stats.unwrap().is_file());
//!     let read = fs::read_file(node, "/proc/self/comm", |_, text| assert!(text.is_ok()));
//!     read.unwrap();
//! })?;
//! node.run();
//! # Ok::<(), std::io::Error>(())
//! ```

use super::Node;
use crate::code::Code;
use blacklight_engine::WorkKind;
use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::rc::Rc;

/// Reads a whole file. Node's `fs.readFile`.
///
/// ```
/// use blacklight::node::{Node, fs};
///
/// let node = Node::new()?;
/// fs::read_file(&node, "/proc/self/comm", |_, text| {
///     assert!(text.is_ok_and(|text| text.ends_with(b"\n")));
/// })?;
/// fs::read_file(&node, "/nowhere", |_, text| {
///     assert_eq!(text.unwrap_err().kind(), std::io::ErrorKind::NotFound);
/// })?;
/// node.run();
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read_file(
    node: &Node,
    path: impl AsRef<Path>,
    callback: impl FnOnce(&Node, io::Result<Vec<u8>>) + 'static,
) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    work(node, move || std::fs::read(path), callback)
}

/// Writes a whole file, replacing its contents. Node's `fs.writeFile`.
///
/// ```
/// use blacklight::node::{Node, fs};
///
/// let node = Node::new()?;
/// fs::write_file(&node, "/dev/null", "light", |_, result| {
///     assert!(result.is_ok());
/// })?;
/// node.run();
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_file(
    node: &Node,
    path: impl AsRef<Path>,
    data: impl AsRef<[u8]> + Send + 'static,
    callback: impl FnOnce(&Node, io::Result<()>) + 'static,
) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    work(node, move || std::fs::write(path, data), callback)
}

/// Reads the metadata of a file, following links. Node's `fs.stat`.
///
/// ```
/// use blacklight::node::{Node, fs};
///
/// let node = Node::new()?;
/// fs::stat(&node, "/", |_, stats| {
///     assert!(stats.is_ok_and(|stats| stats.is_dir()));
/// })?;
/// node.run();
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn stat(
    node: &Node,
    path: impl AsRef<Path>,
    callback: impl FnOnce(&Node, io::Result<Metadata>) + 'static,
) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    work(node, move || std::fs::metadata(path), callback)
}

/// Runs `job` on the pool. Does not call back if the Node is gone by then.
fn work<T: Send + 'static>(
    node: &Node,
    job: impl FnOnce() -> io::Result<T> + Send + 'static,
    callback: impl FnOnce(&Node, io::Result<T>) + 'static,
) -> io::Result<()> {
    let weak = Rc::downgrade(&node.0);
    let lp = &node.event_loop().0;
    let code = Code::of(&callback);
    lp.submit(WorkKind::FastIo, job, code, move |_, result| {
        if let Some(node) = weak.upgrade() {
            let result = result.unwrap_or_else(|error| Err(error.into()));
            callback(&Node(node), result);
        }
    })?;
    Ok(())
}
