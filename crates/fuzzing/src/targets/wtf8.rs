//! UTF-16 to WTF-8 and back.
//!
//! Lengths are as promised, nothing is written beyond the room given, and what was converted
//! converts back to what it was.

use crate::api::{Api, OURS};
use crate::input::Input;
use crate::original::compare;
use std::ffi::{CStr, CString, c_char, c_int};

/// Stands in buffers where nothing was written.
const UNTOUCHED: u8 = 0xee;
/// Room after a buffer, to see what is written beyond it.
const BEYOND: usize = 8;

/// Checks both directions.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    if input.flip() {
        let (explicit, room) = (input.flip(), input.below(64));
        let units: Vec<u16> = input
            .rest()
            .chunks(2)
            .map(|pair| u16::from_le_bytes([pair[0], *pair.get(1).unwrap_or(&0)]))
            .collect();
        from_utf16(units, explicit, room);
    } else {
        let room = input.below(64);
        let text = input.rest().split(|&byte| byte == 0).next();
        from_wtf8(
            &CString::new(text.unwrap_or_default()).expect("no NUL"),
            room,
        );
    }
}

fn from_utf16(mut units: Vec<u16>, explicit: bool, room: usize) {
    let len = match explicit {
        true => units.len() as isize,
        false => {
            units.push(0);
            -1
        }
    };
    // SAFETY: the text has that many units, or a NUL among them.
    let length = compare(|api| unsafe { (api.uv_utf16_length_as_wtf8)(units.as_ptr(), len) });
    let (status, told, text) = compare(|api| allocated(api, &units, len));
    assert_eq!((status, told, text.len()), (0, length, length));
    let (status, cut) = compare(|api| {
        let (status, told, cut) = into_room(api, &units, len, room);
        // The original counts the bytes of a character that it has cut twice.
        match std::ptr::eq(api, &OURS) {
            true => assert_eq!(told, length),
            false => assert!((length..length + 4).contains(&told)),
        }
        (status, cut)
    });
    assert_eq!(status == 0, length <= room);
    assert_eq!(cut, text[..length.min(room)]);

    // A NUL inside of the text would end it on the way back.
    let meant = match explicit {
        true => &units[..],
        false => units.split(|&unit| unit == 0).next().unwrap_or_default(),
    };
    if let Ok(text) = CString::new(text) {
        let back = to_utf16(&OURS, &text).expect("what was written can be read");
        assert_eq!(back.split_last(), Some((&0, meant)));
    }
}

/// Converts into memory of the library's.
fn allocated(api: &Api, units: &[u16], len: isize) -> (c_int, usize, Vec<u8>) {
    let (mut pointer, mut size) = (std::ptr::null_mut::<c_char>(), 0);
    // SAFETY: the text has that many units or a NUL; the memory has as many bytes as is said and a
    // NUL, and is the C library's to free.
    unsafe {
        let status = (api.uv_utf16_to_wtf8)(units.as_ptr(), len, &mut pointer, &mut size);
        let text = std::slice::from_raw_parts(pointer.cast::<u8>(), size + 1).to_vec();
        libc::free(pointer.cast());
        let (&nul, text) = text.split_last().expect("there is a NUL");
        assert_eq!(nul, 0);
        (status, size, text.to_vec())
    }
}

/// Converts into room for that many bytes and a NUL.
fn into_room(api: &Api, units: &[u16], len: isize, room: usize) -> (c_int, usize, Vec<u8>) {
    let mut buffer = vec![UNTOUCHED; room + 1 + BEYOND];
    let (mut pointer, mut size) = (buffer.as_mut_ptr().cast::<c_char>(), room);
    // SAFETY: the text has that many units or a NUL, and there is that much room.
    let status = unsafe { (api.uv_utf16_to_wtf8)(units.as_ptr(), len, &mut pointer, &mut size) };
    assert!(buffer[room + 1..].iter().all(|&byte| byte == UNTOUCHED));
    let end = size.min(room);
    assert_eq!(buffer[end], 0, "a NUL at the end");
    buffer.truncate(end);
    (status, size, buffer)
}

fn from_wtf8(text: &CStr, room: usize) {
    let units = compare(|api| to_utf16(api, text));
    // Ours keeps to the room in any case.
    let mut buffer = vec![0xeeee; room + BEYOND];
    // SAFETY: the text ends in a NUL, and there is that much room.
    unsafe { (OURS.uv_wtf8_to_utf16)(text.as_ptr(), buffer.as_mut_ptr(), room) };
    assert!(buffer[room..].iter().all(|&unit| unit == 0xeeee));
    let Ok(units) = units else { return };
    let count = room.min(units.len());
    assert_eq!(buffer[..count], units[..count]);

    // What was read can be written, and then reads the same: sequences that were longer than
    // needed, and pairs of surrogates, are made shorter on the way.
    let (status, _, written) = compare(|api| allocated(api, &units, units.len() as isize - 1));
    assert_eq!(status, 0);
    // An overlong NUL is a NUL by then.
    if let Ok(written) = CString::new(written) {
        assert_eq!(to_utf16(&OURS, &written), Ok(units));
    }
}

/// Converts from WTF-8, with the NUL, or says why not.
fn to_utf16(api: &Api, text: &CStr) -> Result<Vec<u16>, isize> {
    // SAFETY: the text ends in a NUL, and there is as much room as was asked for.
    unsafe {
        let len = (api.uv_wtf8_length_as_utf16)(text.as_ptr());
        let room = usize::try_from(len).map_err(|_| len)?;
        let mut units = vec![0xeeee; room + BEYOND];
        (api.uv_wtf8_to_utf16)(text.as_ptr(), units.as_mut_ptr(), room);
        assert!(units[room..].iter().all(|&unit| unit == 0xeeee));
        units.truncate(room);
        Ok(units)
    }
}
