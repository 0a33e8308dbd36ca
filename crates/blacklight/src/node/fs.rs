//! Files, by way of the thread pool: enough of Node's `fs` to have I/O callbacks.
//!
//! Each call does its work on a thread of the pool and calls back in the poll phase. An
//! error of the operation goes to the callback; the call itself fails only if the pool has
//! no thread and no memory for one.
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

/// Writes a whole file, in place of what was in it. Node's `fs.writeFile`.
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

/// Asks about a file, following links. Node's `fs.stat`.
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

/// Has `job` done by the pool. A Node that is gone by then hears nothing of it.
fn work<T: Send + 'static>(
    node: &Node,
    job: impl FnOnce() -> io::Result<T> + Send + 'static,
    callback: impl FnOnce(&Node, io::Result<T>) + 'static,
) -> io::Result<()> {
    let weak = Rc::downgrade(&node.0);
    let lp = &node.event_loop().0;
    lp.submit(WorkKind::FastIo, job, move |_, result| {
        if let Some(node) = weak.upgrade() {
            let result = result.unwrap_or_else(|error| Err(error.into()));
            callback(&Node(node), result);
        }
    })?;
    Ok(())
}
