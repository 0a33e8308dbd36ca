//! Facts about an object's file from an earlier examination, passed in the environment.
//!
//! Scanning all names of a large program takes milliseconds, so it is done once per program and
//! not in each of its processes. The same build ID means the same code, unless the ID was
//! invented or the file was changed after linking; so the functions must also have the same
//! addresses.

use crate::image::{Function, Image};
use core::fmt::Write;

/// Facts about the file of an object.
pub(crate) struct Known {
    /// The [`layout`] of the functions of libuv that the object exports, all of which ours has
    /// too.
    pub(crate) layout: u64,
    /// The internal functions that get a tripwire.
    pub(crate) internals: Vec<Function>,
}

impl Known {
    /// Parses `BUILDID:LAYOUT:ADDRESS+SIZE,…`; `None` if the text is about another object.
    pub(crate) fn parse(text: &str, image: &Image) -> Option<Known> {
        let mut parts = text.split(':');
        let id = parts.next()?;
        if id.is_empty() || id != hexadecimal(image.build_id()?) {
            return None;
        }
        let layout = u64::from_str_radix(parts.next()?, 16).ok()?;
        let mut internals = Vec::new();
        for function in parts.next()?.split(',').filter(|part| !part.is_empty()) {
            let (address, size) = function.split_once('+')?;
            internals.push(Function {
                address: image.base + usize::from_str_radix(address, 16).ok()?,
                size: usize::from_str_radix(size, 16).ok()?,
            });
        }
        Some(Known { layout, internals })
    }

    /// Formats the facts for [`Known::parse`]; `None` if the object has no build ID.
    pub(crate) fn print(&self, image: &Image) -> Option<String> {
        let mut text = hexadecimal(image.build_id()?);
        write!(text, ":{:x}:", self.layout).ok()?;
        for (index, function) in self.internals.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let address = function.address - image.base;
            write!(text, "{comma}{address:x}+{:x}", function.size).ok()?;
        }
        Some(text)
    }
}

/// An FNV-1a hash, by words, of the addresses and sizes of functions in an object.
pub(crate) fn layout(image: &Image, functions: &[Function]) -> u64 {
    let mut number: u64 = 0xcbf2_9ce4_8422_2325;
    for function in functions {
        for word in [function.address - image.base, function.size] {
            number = (number ^ word as u64).wrapping_mul(0x100_0000_01b3);
        }
    }
    number
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Known, layout};
    use crate::image::{self, Function};

    #[test]
    fn facts_hold_for_the_same_object_only() {
        let mut images = Vec::new();
        image::each(|image| {
            images.push(image);
            true
        });
        let with_id = |name: &str| {
            let is_it = |image: &&image::Image| image.name.to_bytes().ends_with(name.as_bytes());
            *images.iter().find(is_it).expect("it is loaded")
        };
        let (library, linker) = (with_id("/libc.so.6"), with_id("/ld-linux-x86-64.so.2"));
        let known = Known {
            layout: 0xf00d,
            internals: vec![Function {
                address: library.base + 0x1234,
                size: 0x56,
            }],
        };
        let text = known.print(&library).expect("the C library has a build ID");
        let read = Known::parse(&text, &library).expect("it is the same");
        assert_eq!(read.layout, 0xf00d);
        assert_eq!(read.internals, known.internals);
        assert!(Known::parse(&text, &linker).is_none());
        assert!(Known::parse("", &library).is_none());
    }

    #[test]
    fn a_function_elsewhere_is_another_layout() {
        let mut first = None;
        image::each(|image| {
            first = Some(image);
            false
        });
        let program = first.expect("a test is a program");
        let at = |place| Function {
            address: program.base + place,
            size: 16,
        };
        let before = layout(&program, &[at(0x100), at(0x200)]);
        assert_eq!(before, layout(&program, &[at(0x100), at(0x200)]));
        assert_ne!(before, layout(&program, &[at(0x100), at(0x210)]));
        assert_ne!(before, layout(&program, &[at(0x100)]));
    }
}
