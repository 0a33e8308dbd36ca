//! UTF-16 to WTF-8 and back.

use std::ffi::{CStr, c_int};
use uv as _;
use uv_binding::*;

/// One, two, three and four bytes long in WTF-8.
const TEXT: &str = "aé中💩z";

fn ended(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// The length as WTF-8 of a text that ends with a NUL, or of its first `len` units.
fn length(units: &[u16], len: isize) -> usize {
    assert!(len < 0 || len as usize <= units.len());
    // SAFETY: the text has that many units, and a NUL among them.
    unsafe { uv_utf16_length_as_wtf8(units.as_ptr(), len) }
}

/// Converts into a buffer with room for `room` bytes and a NUL: the status, the length and
/// the bytes up to the last that was written.
fn convert(units: &[u16], len: isize, room: usize) -> (c_int, usize, Vec<u8>) {
    let mut buffer = vec![0xee_u8; room + 9];
    let (mut pointer, mut size) = (buffer.as_mut_ptr().cast(), room);
    // SAFETY: there is that much room and more.
    let status = unsafe { uv_utf16_to_wtf8(units.as_ptr(), len, &mut pointer, &mut size) };
    let end = buffer.iter().rposition(|&byte| byte == 0).unwrap();
    assert!(end <= room, "wrote beyond");
    assert!(buffer[end + 1..].iter().all(|&byte| byte == 0xee));
    buffer.truncate(end);
    (status, size, buffer)
}

/// Converts from WTF-8, with the NUL.
fn back(text: &CStr) -> Result<Vec<u16>, isize> {
    // SAFETY: the text ends in a NUL, and there is as much room as was asked for.
    unsafe {
        let len = uv_wtf8_length_as_utf16(text.as_ptr());
        if len < 0 {
            return Err(len);
        }
        let mut units = vec![0xeeee; len as usize + 1];
        uv_wtf8_to_utf16(text.as_ptr(), units.as_mut_ptr(), len as usize);
        assert_eq!(units.pop(), Some(0xeeee), "wrote beyond");
        Ok(units)
    }
}

#[test]
fn lengths_end_at_the_nul_or_where_one_says() {
    let units = ended(TEXT);
    assert_eq!(length(&units, -1), TEXT.len());
    let lengths: Vec<_> = (0..=7).map(|len| length(&units, len)).collect();
    // Half of a surrogate pair is three bytes, the whole is four, and a NUL is one.
    assert_eq!(lengths, [0, 1, 3, 6, 9, 10, 11, 12]);
}

#[test]
fn a_text_survives_the_way_there_and_back() {
    let units = ended(TEXT);
    let (status, len, bytes) = convert(&units, -1, 40);
    assert_eq!((status, len, bytes.as_slice()), (0, 11, TEXT.as_bytes()));
    let text = std::ffi::CString::new(bytes).unwrap();
    assert_eq!(back(&text), Ok(units));
}

#[test]
fn what_does_not_fit_is_cut() {
    let units = ended(TEXT);
    let exact = (0, TEXT.len(), TEXT.as_bytes().to_vec());
    assert_eq!(convert(&units, -1, TEXT.len()), exact);
    for room in 0..TEXT.len() {
        let cut = TEXT.as_bytes()[..room].to_vec();
        let expected = (-libc::ENOBUFS, TEXT.len(), cut);
        assert_eq!(convert(&units, -1, room), expected);
    }
}

#[test]
fn memory_is_provided_for_who_brings_none() {
    let units = ended(TEXT);
    // SAFETY: there is room for a pointer and a length; what we get is from malloc.
    unsafe {
        let mut len = 99;
        let null = std::ptr::null_mut();
        let status = uv_utf16_to_wtf8(units.as_ptr(), -1, std::ptr::null_mut(), &mut len);
        assert_eq!((status, len), (0, TEXT.len()));

        let (mut memory, mut len) = (null, 0);
        let status = uv_utf16_to_wtf8(units.as_ptr(), -1, &mut memory, &mut len);
        assert_eq!((status, len), (0, TEXT.len()));
        assert_eq!(CStr::from_ptr(memory).to_str(), Ok(TEXT));
        libc::free(memory.cast());

        let (mut memory, no_len) = (null, std::ptr::null_mut());
        assert_eq!(uv_utf16_to_wtf8(units.as_ptr(), 1, &mut memory, no_len), 0);
        assert_eq!(CStr::from_ptr(memory), c"a");
        libc::free(memory.cast());
    }
}

#[test]
fn lone_surrogates_survive_and_pairs_are_joined() {
    let units = [0xd83d, u16::from(b'a'), 0xdca9, 0];
    let (status, len, bytes) = convert(&units, -1, 40);
    assert_eq!((status, len), (0, 7));
    assert_eq!(bytes, b"\xed\xa0\xbda\xed\xb2\xa9");
    let text = std::ffi::CString::new(bytes).unwrap();
    assert_eq!(back(&text).unwrap(), units);
    // Two surrogates that were written apart are a pair again in UTF-16.
    assert_eq!(back(c"\xed\xa0\xbd\xed\xb2\xa9"), Ok(ended("💩")));
}

#[test]
fn a_nul_within_a_given_length_is_kept() {
    let units = [u16::from(b'a'), 0, u16::from(b'b'), 0];
    assert_eq!(convert(&units, 3, 40), (0, 3, b"a\0b".to_vec()));
    assert_eq!(convert(&units, -1, 40), (0, 1, b"a".to_vec()));
    assert_eq!(convert(&units, 0, 0), (0, 0, Vec::new()));
}

#[test]
fn what_is_no_wtf8_is_refused() {
    let bad = [
        c"\xff",
        c"\x80",
        c"\xc0\x80",
        c"\xc1\xbf",
        c"a\xc3",
        c"\xc3a",
        c"\xe4\xb8",
        c"\xe4ab",
        c"\xf0\x9f\x92",
        c"\xf4\x90\x80\x80",
        c"\xf5\x80\x80\x80",
    ];
    for text in bad {
        assert_eq!(back(text), Err(-libc::EINVAL as isize), "{text:?}");
    }
    assert_eq!(back(c""), Ok(vec![0]));
    assert_eq!(back(c"\xf4\x8f\xbf\xbf"), Ok(vec![0xdbff, 0xdfff, 0]));
}

#[test]
fn a_target_that_is_too_short_is_not_overrun() {
    let mut units = [0xeeee; 4];
    // SAFETY: there is room for more units than we say.
    unsafe { uv_wtf8_to_utf16(c"abcdef".as_ptr(), units.as_mut_ptr(), 3) };
    assert_eq!(units, [97, 98, 99, 0xeeee]);
}
