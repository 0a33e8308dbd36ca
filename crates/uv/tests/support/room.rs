//! Memory for what the C interface is given.

use std::ffi::c_void;
use std::ptr::null_mut;

/// A loop, a handle or a request: all of them begin with `data`, and this is room for any.
#[repr(C, align(16))]
pub(crate) struct Room {
    pub(crate) data: *mut c_void,
    rest: [u8; 1400],
}

impl Room {
    pub(crate) fn new() -> Box<Room> {
        Box::new(Room {
            data: null_mut(),
            rest: [0; 1400],
        })
    }
}
