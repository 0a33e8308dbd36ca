//! Facts about an object's file from an earlier examination, passed in the environment.
//!
//! Scanning all names of a large program takes milliseconds, so it is done once per program and
//! not in each of its processes. The same build ID means the same code, unless the ID was
//! invented or the file was changed after linking; so the functions must also have the same
//! addresses.

use crate::fit::Pair;
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
    /// Parses `BUILDID:LAYOUT:ADDRESS+SIZE,…`; `None` if the text is about another object,
    /// or says what cannot be.
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
            let address = image.base.checked_add(number(address)?)?;
            let size = number(size)?;
            image.code(address..address.checked_add(size)?)?;
            internals.push(Function { address, size });
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

fn number(text: &str) -> Option<usize> {
    usize::from_str_radix(text, 16).ok()
}

/// An FNV-1a hash, by words, of the addresses and sizes of functions in an object.
pub(crate) fn layout(image: &Image, pairs: &[Pair]) -> u64 {
    let words = pairs
        .iter()
        .flat_map(|pair| [pair.carried.address - image.base, pair.carried.size]);
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word as u64).wrapping_mul(0x100_0000_01b3)
    })
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
    use crate::fit::Pair;
    use crate::image::{self, Function, Image};

    fn loaded(name: &str) -> Image {
        let mut found = None;
        image::each(|image| {
            if image.name.to_string_lossy().contains(name) {
                found = Some(image);
            }
            found.is_none()
        });
        found.expect("it is loaded")
    }

    #[test]
    fn facts_hold_for_the_same_object_only() {
        let (library, linker) = (loaded("/libc.so.6"), loaded("/ld-linux-"));
        let function = library.function(b"getenv").expect("it is there");
        let known = Known {
            layout: 0xf00d,
            internals: vec![function],
        };
        let text = known.print(&library).expect("the C library has a build ID");
        let read = Known::parse(&text, &library).expect("it is the same");
        assert_eq!(read.layout, 0xf00d);
        assert_eq!(read.internals, known.internals);
        assert!(Known::parse(&text, &linker).is_none());
        assert!(Known::parse("", &library).is_none());
    }

    #[test]
    fn facts_that_cannot_be_are_not_taken() {
        let library = loaded("/libc.so.6");
        let id = super::hexadecimal(library.build_id().expect("it has one"));
        let code = library.function(b"getenv").expect("it is there").address - library.base;
        let is_taken = |rest: &str| Known::parse(&format!("{id}:{rest}"), &library).is_some();
        assert!(is_taken(&format!("1:{code:x}+4")));
        assert!(is_taken("1:"));
        for rest in [
            "1:ffffffffffffffff+4".to_owned(),
            format!("1:{code:x}+ffffffffffffffff"),
            format!("1:{code:x}+ffffffff"),
            // Its head is no code.
            "1:0+4".to_owned(),
            "1:1".to_owned(),
            "x:".to_owned(),
            "1".to_owned(),
        ] {
            assert!(!is_taken(&rest), "{rest}");
        }
    }

    #[test]
    fn a_function_elsewhere_is_another_layout() {
        let image = loaded("/libc.so.6");
        let pair = |place: &usize| Pair {
            name: b"uv_now",
            own: 0,
            carried: Function {
                address: image.base + place,
                size: 16,
            },
        };
        let of = |places: &[usize]| {
            let pairs: Vec<Pair> = places.iter().map(pair).collect();
            layout(&image, &pairs)
        };
        assert_eq!(of(&[0x100, 0x200]), of(&[0x100, 0x200]));
        assert_ne!(of(&[0x100, 0x200]), of(&[0x100, 0x210]));
        assert_ne!(of(&[0x100, 0x200]), of(&[0x100]));
    }
}
