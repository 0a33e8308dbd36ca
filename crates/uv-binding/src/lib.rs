//! libuv's C interface as Rust declarations: the one binding that tests of `libuv.so.1` and the
//! fuzzer call it through.
//!
//! [`types`], [`constants`] and [`functions`] are written by `cargo xtask abi --bless` from the headers
//! in `crates/uv/include`, and both `cargo xtask abi` and a test of xtask fail when a declaration is
//! not what the headers state. By hand there is only this page.
//!
//! - [`raw`] declares every function exactly as C does. This crate links with no library: a
//!   test says `use uv as _;` to link with ours.
//! - Where C programs cast, the functions here are generic: one that takes a handle, a request or a
//!   `sockaddr` takes a pointer to anything that [`Holds`] one at its beginning, and its callback is
//!   called with that type. Memory that is too small does not compile.
//! - C's enumerations are `int`s, since a C program may pass any number.

#![allow(
    missing_docs,
    non_camel_case_types,
    clippy::missing_safety_doc,
    reason = "the names are libuv's, and its documentation says what they mean and ask of callers"
)]

#[rustfmt::skip]
pub mod constants;
#[rustfmt::skip]
#[allow(
    clippy::undocumented_unsafe_blocks,
    clippy::missing_transmute_annotations,
    clippy::too_many_arguments,
    clippy::wildcard_imports,
    reason = "each function hands its arguments on, with pointers to what their targets begin with; \
              a callback's type differs from C's in the target of its first pointer only"
)]
pub mod functions;
#[rustfmt::skip]
#[allow(
    clippy::undocumented_unsafe_blocks,
    reason = "C's structs have no values that are not allowed, nor has any of their members"
)]
pub mod types;

pub use constants::*;
pub use functions::*;
pub use types::*;

use std::ffi::c_void;

/// A struct or union of libuv's.
///
/// # Safety
///
/// Any bytes are a value of the type.
pub unsafe trait Plain: Copy {}

/// Memory that begins with a `T`.
///
/// # Safety
///
/// It does, and a pointer to it may be used for the whole `T`.
pub unsafe trait Holds<T>: Sized {
    /// Does not compile where the memory is too small for a `T`.
    const FITS: () = assert!(
        size_of::<Self>() >= size_of::<T>() && align_of::<Self>() >= align_of::<T>(),
        "too small for what the function expects"
    );
}

// SAFETY: every type begins with itself.
unsafe impl<T: Plain> Holds<T> for T {}
// SAFETY: C promises that these handles begin with what a stream has.
unsafe impl Holds<uv_stream_t> for uv_tcp_t {}
// SAFETY: as above.
unsafe impl Holds<uv_stream_t> for uv_pipe_t {}
// SAFETY: as above.
unsafe impl Holds<uv_stream_t> for uv_tty_t {}
// SAFETY: the system uses one type for addresses of all families.
unsafe impl Holds<libc::sockaddr> for libc::sockaddr {}
// SAFETY: as above.
unsafe impl Holds<libc::sockaddr> for libc::sockaddr_in {}
// SAFETY: as above.
unsafe impl Holds<libc::sockaddr> for libc::sockaddr_in6 {}
// SAFETY: as above.
unsafe impl Holds<libc::sockaddr> for libc::sockaddr_un {}
// SAFETY: as above.
unsafe impl Holds<libc::sockaddr> for libc::sockaddr_storage {}

fn held<T, M: Holds<T>>(memory: *mut M) -> *mut T {
    const { M::FITS };
    memory.cast()
}

fn held_const<T, M: Holds<T>>(memory: *const M) -> *const T {
    const { M::FITS };
    memory.cast()
}

/// Room for any handle or request, which all begin with `data`, for tests that keep them in one list.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct Room {
    pub data: *mut c_void,
    rest: [u8; 1400],
}

// SAFETY: it is plain memory, and all handles and requests begin with `data`.
unsafe impl<T: Plain> Holds<T> for Room {}

impl Room {
    /// Full of garbage, as memory from `malloc` may be.
    #[must_use]
    pub fn new() -> Box<Room> {
        Box::default()
    }

    /// As C takes it.
    pub fn ptr<T: Plain>(&mut self) -> *mut T {
        held(self)
    }
}

impl Default for Room {
    fn default() -> Room {
        Room {
            data: std::ptr::null_mut(),
            rest: [GARBAGE; 1400],
        }
    }
}

impl uv_buf_t {
    /// These bytes, which C may write to only if the caller may.
    #[must_use]
    pub const fn new(bytes: &[u8]) -> uv_buf_t {
        uv_buf_t {
            base: bytes.as_ptr().cast_mut().cast(),
            len: bytes.len(),
        }
    }
}

const GARBAGE: u8 = 0xEE;

/// A struct that nobody has initialised: full of garbage, as memory from `malloc` may be.
#[must_use]
pub fn garbage<T: Plain>() -> T {
    let mut value = std::mem::MaybeUninit::<T>::uninit();
    // SAFETY: any bytes are a value.
    unsafe {
        value.as_mut_ptr().write_bytes(GARBAGE, 1);
        value.assume_init()
    }
}

/// A struct whose bytes are all zero, as static memory is.
#[must_use]
pub const fn zeroed<T: Plain>() -> T {
    // SAFETY: any bytes are a value.
    unsafe { std::mem::zeroed() }
}
