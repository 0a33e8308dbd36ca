//! The kernel's texts: files of `/proc` and `/sys`, whose bytes need not be UTF-8.

use std::str::FromStr;

/// The lines of a text, without their ends.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    // What follows the last newline is a line only if there is something.
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|&byte| byte == b'\n')
}

/// The number that is all of the text.
pub(crate) fn number<N: FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The parts of a text between white space.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = text.split(u8::is_ascii_whitespace);
    parts.filter(|part| !part.is_empty())
}
