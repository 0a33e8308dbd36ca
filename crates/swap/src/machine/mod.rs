//! What depends on the processor: jumps and where they go, calls and stubs, relocations, constants in code.
//!
//! Encodings are tested on every machine.

use core::ops::Deref;

#[cfg(any(target_arch = "aarch64", test))]
#[cfg_attr(
    not(target_arch = "aarch64"),
    allow(dead_code, reason = "it is tested")
)]
mod aarch64;
#[cfg(any(target_arch = "x86_64", test))]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "it is tested"))]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

/// Some bytes of code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code {
    bytes: [u8; Code::LONGEST],
    length: usize,
}

impl Code {
    const LONGEST: usize = 8;

    fn new(code: &[u8]) -> Code {
        let mut bytes = [0; Code::LONGEST];
        bytes[..code.len()].copy_from_slice(code);
        Code {
            bytes,
            length: code.len(),
        }
    }
}

impl Deref for Code {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Where a call leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    /// To the code at this address.
    Code(usize),
    /// To the code whose address is stored at this one.
    Pointer(usize),
}
