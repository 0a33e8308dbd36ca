//! Copies between files inside the kernel.
//!
//! There are three methods, tried from the best to the most general: the platform's `copy_range`,
//! which may share blocks or copy on the server; its `send_file`; and reading and writing. Whether
//! the first two work for a pair of files depends on the kernel, the file systems and filters of
//! system calls, so a refusal only leads to the next method.

use super::stat::{Stat, Timestamp};
use super::time::Time;
use super::{check_bytes, file, path, retry, stat, time};
use crate::platform::copy::{clone, copy_range, is_refusal, is_windows_share, send_file};
use crate::poll::wait_writable;
use crate::{Errno, RawFd};
use std::ffi::CStr;

/// The number of bytes per read and write.
const CHUNK: usize = 32 * 1024;

/// Sends up to `len` bytes from `offset` of one file to the position of another, which advances. A
/// smaller count is no error: the kernel sent no more at once, or the input ended. `offset`
/// advances by the bytes read.
pub fn send(output: RawFd, input: RawFd, offset: &mut i64, len: usize) -> Result<usize, Errno> {
    match copy_range(output, input, offset, len) {
        Err(error) if is_refusal(error) => {}
        // `copy_range` also returns this for a file opened with `O_APPEND`, which the other methods
        // accept. With nothing to send these do not check the descriptors, so then the error is
        // final.
        Err(Errno::EBADF) if len > 0 => {}
        result => return result,
    }
    match send_file(output, input, offset, len) {
        Err(error) if is_refusal(error) => {}
        result => return result,
    }
    read_and_write(output, input, offset, len)
}

/// Waits until a non-blocking descriptor is writable.
pub(crate) fn wait_for_room(fd: RawFd) -> Result<(), Errno> {
    retry(|| wait_writable(fd))
}

/// Copies until `len` bytes are copied or the input ends. After an error, the bytes copied before
/// it are the result.
fn read_and_write(
    output: RawFd,
    input: RawFd,
    offset: &mut i64,
    len: usize,
) -> Result<usize, Errno> {
    let mut buffer = [0u8; CHUNK];
    let mut sent = 0;
    // Pipes and terminals have no offsets; they are read sequentially.
    let mut seekable = true;
    while sent < len {
        let wanted = CHUNK.min(len - sent);
        let result = match seekable {
            true => read_at(input, &mut buffer[..wanted], *offset),
            false => read(input, &mut buffer[..wanted]),
        };
        let count = match result {
            Ok(0) => break,
            Ok(count) => count,
            Err(Errno::ESPIPE | Errno::EIO) if seekable && sent == 0 => {
                seekable = false;
                continue;
            }
            Err(error) if sent == 0 => return Err(error),
            Err(_) => break,
        };
        let (written, result) = write_all(output, &buffer[..count]);
        sent += written;
        *offset = offset.saturating_add(written as i64);
        match result {
            Err(error) if sent == 0 => return Err(error),
            Err(_) => break,
            Ok(()) => {}
        }
    }
    Ok(sent)
}

fn read_at(fd: RawFd, buffer: &mut [u8], offset: i64) -> Result<usize, Errno> {
    let (start, len) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the buffer is a valid slice, and any number is allowed as a descriptor.
    retry(|| check_bytes(unsafe { libc::pread(fd, start, len, offset) }))
}

fn read(fd: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    let (start, len) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the buffer is a valid slice, and any number is allowed as a descriptor.
    retry(|| check_bytes(unsafe { libc::read(fd, start, len) }))
}

/// Writes the whole buffer, and waits for a non-blocking descriptor where necessary. Returns the
/// number of bytes written beside the result.
fn write_all(fd: RawFd, buffer: &[u8]) -> (usize, Result<(), Errno>) {
    let mut written = 0;
    while written < buffer.len() {
        let rest = &buffer[written..];
        let (start, len) = (rest.as_ptr().cast(), rest.len());
        // SAFETY: the buffer is a valid slice, and any number is allowed as a descriptor.
        match retry(|| check_bytes(unsafe { libc::write(fd, start, len) })) {
            Ok(count) => written += count,
            Err(Errno::EAGAIN) => {
                if let Err(error) = wait_for_room(fd) {
                    return (written, Err(error));
                }
            }
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

/// Options for copying a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CopyOptions {
    /// Fail if the destination exists.
    pub exclusive: bool,
    /// Whether the copy is to share its blocks with the original.
    pub clone: Clone,
}

/// Whether a copy shares its blocks with the original until one of them is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clone {
    /// The kernel decides.
    #[default]
    Any,
    /// Share if possible.
    Prefer,
    /// Share or fail.
    Require,
}

/// A descriptor that is closed when dropped.
struct Open(RawFd);

impl Drop for Open {
    fn drop(&mut self) {
        let _ = file::close(self.0);
    }
}

/// Copies a file with its permission bits and, as far as permitted, its owner. Copying a file onto
/// itself does nothing. An unfinished copy is removed if it is a regular file.
pub fn copy_file(from: &CStr, to: &CStr, options: CopyOptions) -> Result<(), Errno> {
    let source = Open(file::open(from, libc::O_RDONLY, 0)?);
    let original = stat::fstat(source.0)?;
    if original.is_dir() {
        return Err(Errno::EISDIR);
    }
    let mut flags = libc::O_WRONLY | libc::O_CREAT;
    if options.exclusive {
        flags |= libc::O_EXCL;
    }
    let target = Open(file::open(to, flags, original.mode)?);
    let existing = stat::fstat(target.0)?;
    if existing.is_same_file(&original) {
        return Ok(());
    }
    let copied = copy_open(&source, &original, &target, options);
    // Some file systems, such as network ones, report a lack of space only on close.
    let closed = file::close(std::mem::ManuallyDrop::new(target).0);
    let result = copied.and(closed);
    if result.is_err() && existing.is_regular() {
        let _ = path::unlink(to);
    }
    result
}

fn copy_open(
    source: &Open,
    original: &Stat,
    target: &Open,
    options: CopyOptions,
) -> Result<(), Errno> {
    if !options.exclusive {
        file::truncate(target.0, 0)?;
    }
    // The copy does not fail for its times or its owner.
    let at = |time: Timestamp| Time::At(time.seconds, time.nanoseconds);
    let _ = time::set_open(target.0, at(original.atime), at(original.mtime));
    let _ = file::set_owner(target.0, original.uid, original.gid);
    set_mode(target.0, original.mode)?;
    if options.clone != Clone::Any {
        match clone(source.0, target.0) {
            Ok(()) => return Ok(()),
            Err(error) if options.clone == Clone::Require => return Err(error),
            Err(_) => {}
        }
    }
    let mut left = original.size;
    let mut offset = 0;
    while left > 0 {
        let step = usize::try_from(left).unwrap_or(usize::MAX);
        match send(target.0, source.0, &mut offset, step)? {
            // The file has become shorter meanwhile.
            0 => break,
            sent => left = left.saturating_sub(sent as u64),
        }
    }
    Ok(())
}

fn set_mode(fd: RawFd, mode: u32) -> Result<(), Errno> {
    match file::set_mode(fd, mode & 0o7777) {
        Err(Errno::EPERM) => match stat::fstatfs(fd) {
            // Windows shares refuse to change modes, but may have created the file with the right
            // one.
            Ok(system) if is_windows_share(&system) => Ok(()),
            _ => Err(Errno::EPERM),
        },
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::path::PathBuf;

    fn scratch(name: &str) -> (PathBuf, CString) {
        let name = format!("blacklight-copy-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let c_path = CString::new(path.to_str().unwrap()).unwrap();
        (path, c_path)
    }

    fn opened(path: &CStr, flags: i32) -> Open {
        Open(file::open(path, flags, 0o600).unwrap())
    }

    #[test]
    fn the_three_ways_move_the_same_bytes() {
        let (from, from_c) = scratch("from");
        let (to, to_c) = scratch("to");
        let text: Vec<u8> = (0..3 * CHUNK + 77).map(|i| (i % 251) as u8).collect();
        std::fs::write(&from, &text).unwrap();
        let ways = [copy_range, send_file, read_and_write, send];
        for (way, send) in ways.into_iter().enumerate() {
            let source = opened(&from_c, libc::O_RDONLY);
            let target = opened(&to_c, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC);
            let mut offset = 5;
            let result = send(target.0, source.0, &mut offset, text.len());
            if way < 2 && result.is_err_and(is_refusal) {
                continue;
            }
            assert_eq!(result, Ok(text.len() - 5), "way {way}");
            assert_eq!(offset, text.len() as i64, "way {way}");
            assert!(std::fs::read(&to).unwrap() == text[5..], "way {way}");
        }
        std::fs::remove_file(&from).unwrap();
        std::fs::remove_file(&to).unwrap();
    }

    #[test]
    fn pipes_and_appended_files_take_the_long_way() {
        let (path, path_c) = scratch("append");
        std::fs::write(&path, "abc").unwrap();
        let target = opened(&path_c, libc::O_WRONLY | libc::O_APPEND);
        let source = opened(&path_c, libc::O_RDONLY);
        assert_eq!(send(target.0, source.0, &mut 1, 2), Ok(2));
        assert_eq!(std::fs::read(&path).unwrap(), b"abcbc");
        let (reader, writer) = std::io::pipe().unwrap();
        let (reader_fd, writer_fd) = {
            use std::os::fd::AsRawFd;
            (reader.as_raw_fd(), writer.as_raw_fd())
        };
        assert_eq!(send(writer_fd, source.0, &mut 0, 5), Ok(5));
        drop(writer);
        assert_eq!(send(target.0, reader_fd, &mut 0, 100), Ok(5));
        assert_eq!(std::fs::read(&path).unwrap(), b"abcbcabcbc");
        assert_eq!(send(-1, source.0, &mut 0, 5), Err(Errno::EBADF));
        assert_eq!(send(-1, source.0, &mut 0, 0), Err(Errno::EBADF));
        assert_eq!(send(source.0, source.0, &mut 0, 0), Err(Errno::EBADF));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_unfinished_copy_is_removed_and_a_device_is_not() {
        let (from, from_c) = scratch("unfinished");
        std::fs::write(&from, "text").unwrap();
        let full = CopyOptions::default();
        assert!(copy_file(&from_c, c"/dev/full", full).is_err());
        assert!(std::fs::metadata("/dev/full").is_ok());
        let (dir, dir_c) = scratch("dir");
        let (to, to_c) = scratch("existing");
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(&to, "keep").unwrap();
        assert_eq!(copy_file(&dir_c, &to_c, full), Err(Errno::EISDIR));
        assert_eq!(std::fs::read(&to).unwrap(), b"keep");
        std::fs::remove_dir(&dir).unwrap();
        std::fs::remove_file(&to).unwrap();
        std::fs::remove_file(&from).unwrap();
    }
}
