//! The kernel's texts: files of `/proc` and `/sys`, whose bytes need not be UTF-8.

use crate::fallible::Short;
use crate::{Errno, RawFd};
use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use std::ffi::CStr;
use std::str::FromStr;

/// The increment by which the buffer for a file grows.
const PIECE: usize = 4096;

/// The path in `/proc` of the file behind one of this process's descriptors.
pub(crate) fn descriptor_path(fd: RawFd) -> Short {
    Short::format(format_args!("/proc/self/fd/{fd}"))
}

/// A file's contents. The kernel does not report the sizes of its files.
pub(crate) fn read(path: &CStr) -> Result<Vec<u8>, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?;
    let mut text = Vec::new();
    loop {
        text.try_reserve(PIECE)?;
        if retry_on_intr(|| rustix::io::read(&file, spare_capacity(&mut text)))? == 0 {
            return Ok(text);
        }
    }
}

/// The text as UTF-8, with invalid parts replaced.
pub(crate) fn lossy(text: &[u8]) -> Result<String, Errno> {
    let mut copy = String::new();
    for chunk in text.utf8_chunks() {
        copy.try_reserve(chunk.valid().len() + char::REPLACEMENT_CHARACTER.len_utf8())?;
        copy.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            copy.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Ok(copy)
}

/// The lines of a text, without newlines.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    // The text after the last newline is a line only if it is not empty.
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|&byte| byte == b'\n')
}

/// The number, if the whole text is one.
pub(crate) fn number<N: FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The parts of a text between white space.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = text.split(u8::is_ascii_whitespace);
    parts.filter(|part| !part.is_empty())
}
