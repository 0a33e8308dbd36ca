//! UTF-16 to WTF-8 and back.
//!
//! WTF-8 (<https://simonsapin.github.io/wtf-8/>) is UTF-8 that can also carry the lone surrogates
//! found in file names on Windows, encoded like any code point of their size.

use crate::alloc;
use blacklight_engine::Errno;
use std::ffi::{CStr, c_char, c_int};

/// The code points of a UTF-16 text, including lone surrogates.
fn from_utf16(units: &[u16]) -> impl Iterator<Item = u32> {
    char::decode_utf16(units.iter().copied()).map(|decoded| match decoded {
        Ok(character) => character.into(),
        Err(lone) => lone.unpaired_surrogate().into(),
    })
}

/// A code point in WTF-8: the bytes, and the number of valid ones.
fn encode(code_point: u32) -> ([u8; 4], usize) {
    let continuation = |shift: u32| 0x80 | (code_point >> shift & 0x3f) as u8;
    match code_point {
        0..0x80 => ([code_point as u8, 0, 0, 0], 1),
        0x80..0x800 => {
            let first = 0xc0 | (code_point >> 6) as u8;
            ([first, continuation(0), 0, 0], 2)
        }
        0x800..0x1_0000 => {
            let first = 0xe0 | (code_point >> 12) as u8;
            ([first, continuation(6), continuation(0), 0], 3)
        }
        _ => {
            let first = 0xf0 | (code_point >> 18) as u8;
            (
                [first, continuation(12), continuation(6), continuation(0)],
                4,
            )
        }
    }
}

fn wtf8_len(units: &[u16]) -> usize {
    from_utf16(units)
        .map(|code_point| encode(code_point).1)
        .sum()
}

/// The code points of a WTF-8 text. The first invalid sequence ends them with an error.
///
/// As in libuv, three- and four-byte sequences may be longer than needed.
struct FromWtf8<'a>(&'a [u8]);

impl Iterator for FromWtf8<'_> {
    type Item = Result<u32, Errno>;

    fn next(&mut self) -> Option<Result<u32, Errno>> {
        let (&first, rest) = self.0.split_first()?;
        let (len, bits) = match first {
            0..0x80 => (0, first),
            0xc2..0xe0 => (1, first & 0x1f),
            0xe0..0xf0 => (2, first & 0xf),
            0xf0..0xf5 => (3, first & 7),
            _ => return Some(Err(Errno::EINVAL)),
        };
        let Some((continuation, rest)) = rest.split_at_checked(len) else {
            return Some(Err(Errno::EINVAL));
        };
        let mut code_point = u32::from(bits);
        for &byte in continuation {
            if byte & 0xc0 != 0x80 {
                return Some(Err(Errno::EINVAL));
            }
            code_point = code_point << 6 | u32::from(byte & 0x3f);
        }
        if code_point > 0x10_ffff {
            return Some(Err(Errno::EINVAL));
        }
        self.0 = rest;
        Some(Ok(code_point))
    }
}

/// A code point in UTF-16: the units, and the number of valid ones.
fn to_utf16(code_point: u32) -> ([u16; 2], usize) {
    match code_point.checked_sub(0x1_0000) {
        None => ([code_point as u16, 0], 1),
        Some(offset) => {
            let high = 0xd800 | (offset >> 10) as u16;
            ([high, 0xdc00 | (offset & 0x3ff) as u16], 2)
        }
    }
}

/// The caller's UTF-16 text, which ends with a NUL if its length is negative.
///
/// # Safety
///
/// `utf16` has `len` units, or a NUL among them.
unsafe fn units<'a>(utf16: *const u16, len: isize) -> &'a [u16] {
    // SAFETY: the caller upholds the contract.
    unsafe {
        let len = usize::try_from(len).unwrap_or_else(|_| {
            let mut len = 0;
            while *utf16.add(len) != 0 {
                len += 1;
            }
            len
        });
        match len {
            0 => &[],
            len => std::slice::from_raw_parts(utf16, len),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_utf16_length_as_wtf8(utf16: *const u16, utf16_len: isize) -> usize {
    // SAFETY: the caller upholds the contracts text.
    wtf8_len(unsafe { units(utf16, utf16_len) })
}

/// The length does not count the NUL, for which the caller's buffer has one more byte. A text that
/// does not fit is truncated, even inside a code point.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_utf16_to_wtf8(
    utf16: *const u16,
    utf16_len: isize,
    wtf8: *mut *mut c_char,
    wtf8_len: *mut usize,
) -> c_int {
    // SAFETY: the caller upholds the contracts text.
    let units = unsafe { units(utf16, utf16_len) };
    let needed = self::wtf8_len(units);
    // SAFETY: the caller passes, unless they are null, room for a pointer and the length of
    // the buffer that it points to.
    unsafe {
        let room = match wtf8.as_mut() {
            None => needed,
            Some(buffer) if buffer.is_null() => {
                *buffer = alloc::malloc(needed + 1).cast();
                if buffer.is_null() {
                    return Errno::ENOMEM.code();
                }
                needed
            }
            Some(_) => match wtf8_len.as_ref() {
                Some(&room) => room,
                None => return Errno::EINVAL.code(),
            },
        };
        if let Some(&mut buffer) = wtf8.as_mut() {
            write_wtf8(units, buffer.cast(), room);
        }
        if let Some(len) = wtf8_len.as_mut() {
            *len = needed;
        }
        match needed > room {
            true => Errno::ENOBUFS.code(),
            false => 0,
        }
    }
}

/// Writes as much of a text as fits, and a NUL.
///
/// # Safety
///
/// `buffer` has room for `room` bytes and one more.
unsafe fn write_wtf8(units: &[u16], buffer: *mut u8, room: usize) {
    let mut len = 0;
    for code_point in from_utf16(units) {
        let (bytes, count) = encode(code_point);
        let count = count.min(room - len);
        // SAFETY: that many bytes fit.
        unsafe {
            buffer
                .add(len)
                .copy_from_nonoverlapping(bytes.as_ptr(), count)
        };
        len += count;
    }
    // SAFETY: the NUL has a byte of its own.
    unsafe { buffer.add(len).write(0) };
}

/// The length counts the NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_wtf8_length_as_utf16(wtf8: *const c_char) -> isize {
    // SAFETY: the caller passes a C string.
    let text = unsafe { CStr::from_ptr(wtf8) }.to_bytes();
    let units = FromWtf8(text).map(|decoded| decoded.map(|code_point| to_utf16(code_point).1));
    match units.sum::<Result<usize, Errno>>() {
        Ok(units) => units as isize + 1,
        Err(error) => error.code() as isize,
    }
}

/// The caller has checked the text with `uv_wtf8_length_as_utf16`. This function still writes no
/// more units than fit, and stops at an invalid sequence.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_wtf8_to_utf16(wtf8: *const c_char, utf16: *mut u16, utf16_len: usize) {
    // SAFETY: the caller passes a C string.
    let text = unsafe { CStr::from_ptr(wtf8) }.to_bytes();
    let code_points = FromWtf8(text).map_while(Result::ok);
    let units = code_points.flat_map(|code_point| {
        let (units, count) = to_utf16(code_point);
        units.into_iter().take(count)
    });
    let ended = units.chain(std::iter::once(0));
    for (index, unit) in ended.take(utf16_len).enumerate() {
        // SAFETY: the caller passes room for `utf16_len` units.
        unsafe { utf16.add(index).write(unit) };
    }
}
