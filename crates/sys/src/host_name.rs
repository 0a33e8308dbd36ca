//! Host names as users write them, and in the form that DNS takes.
//!
//! A name beyond ASCII is mapped by UTS #46. A name that UTS #46 does not allow is only encoded as
//! Punycode, as libuv does with every name, and left to the resolver to refuse. A name that is too
//! long or not UTF-8 is refused before any lookup: names are never truncated.

use crate::Errno;
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use std::borrow::Cow;
use std::ffi::CStr;
use std::fmt;

/// The longest host name, without its NUL.
const MAX_HOST: usize = 255;

/// A host name in the form that DNS takes, ending in a NUL.
#[derive(Clone, Copy)]
pub struct HostName {
    bytes: [u8; MAX_HOST + 1],
    len: usize,
}

impl HostName {
    /// The name, or `EINVAL` if it is empty, too long or not UTF-8.
    pub fn new(name: &[u8]) -> Result<HostName, Errno> {
        // The resolver gets names in ASCII unchanged: it also takes addresses, scopes, and names
        // from `/etc/hosts`.
        let ascii = match name.is_ascii() {
            true => Cow::Borrowed(name),
            false => to_ascii(name)?,
        };
        let len = ascii.len();
        if len == 0 || len > MAX_HOST || ascii.contains(&0) {
            return Err(Errno::EINVAL);
        }
        let mut bytes = [0; MAX_HOST + 1];
        bytes[..len].copy_from_slice(&ascii);
        Ok(HostName { bytes, len })
    }

    /// The name with its NUL.
    pub fn as_bytes_with_nul(&self) -> &[u8] {
        &self.bytes[..self.len + 1]
    }

    /// The name as a C string.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_with_nul(self.as_bytes_with_nul()).expect("one NUL, at the end")
    }
}

impl fmt::Debug for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostName").field(&self.as_c_str()).finish()
    }
}

fn to_ascii(name: &[u8]) -> Result<Cow<'_, [u8]>, Errno> {
    // A longer text cannot become a name of valid length.
    if name.len() > 4 * MAX_HOST {
        return Err(Errno::EINVAL);
    }
    let ascii = Uts46::new().to_ascii(
        name,
        AsciiDenyList::EMPTY,
        Hyphens::Allow,
        DnsLength::Ignore,
    );
    match ascii {
        Ok(Cow::Borrowed(ascii)) => Ok(Cow::Borrowed(ascii.as_bytes())),
        Ok(Cow::Owned(ascii)) => Ok(Cow::Owned(ascii.into_bytes())),
        Err(_) => unmapped(name).map(Cow::Owned),
    }
}

/// The name with each label that is not ASCII in Punycode, and no other mapping.
fn unmapped(name: &[u8]) -> Result<Vec<u8>, Errno> {
    let name = std::str::from_utf8(name).map_err(|_| Errno::EINVAL)?;
    let is_dot = |character| matches!(character, '.' | '\u{3002}' | '\u{ff0e}' | '\u{ff61}');
    let mut ascii = String::new();
    for (at, label) in name.split(is_dot).enumerate() {
        if at > 0 {
            ascii.push('.');
        }
        if label.is_ascii() {
            ascii.push_str(label);
        } else {
            ascii.push_str("xn--");
            ascii.push_str(&idna::punycode::encode_str(label).ok_or(Errno::EINVAL)?);
        }
    }
    Ok(ascii.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ascii(name: &str) -> Result<String, Errno> {
        let host = HostName::new(name.as_bytes())?;
        Ok(host.as_c_str().to_str().unwrap().to_owned())
    }

    #[test]
    fn names_in_ascii_are_left_alone() {
        for name in [
            "localhost",
            ".",
            ".com",
            "Example-.COM.",
            "fe80::1%lo",
            "-> $1.00 <-",
            "_a",
        ] {
            assert_eq!(ascii(name).as_deref(), Ok(name));
        }
    }

    #[test]
    fn other_names_are_put_into_ascii() {
        for (name, expected) in [
            ("mañana.com", "xn--maana-pta.com"),
            ("mañana。com", "xn--maana-pta.com"),
            ("127。0．0｡1", "127.0.0.1"),
            ("BÜCHER.com.", "xn--bcher-kva.com."),
            ("straße.de", "xn--strae-oqa.de"),
            ("ü.ü", "xn--tda.xn--tda"),
            ("💩.la", "xn--ls8h.la"),
            ("☃-⌘.com", "xn----dqo34k.com"),
            ("نامه‌ای.com", "xn--mgba3gch31f060k.com"),
            ("ශ්‍රී.com", "xn--10cl1a0b660p.com"),
            ("他们为什么不说中文", "xn--ihqwcrb4cv8a8dqg056pqjye"),
        ] {
            assert_eq!(ascii(name).as_deref(), Ok(expected));
            assert_eq!(
                ascii(expected).as_deref(),
                Ok(expected),
                "once more changes nothing"
            );
        }
    }

    #[test]
    fn names_that_are_not_allowed_are_left_to_the_resolver() {
        for (name, expected) in [
            ("xn--a.ü.invalid", "xn--a.xn--tda.invalid"),
            ("xn--ü.invalid", "xn--xn---3ra.invalid"),
            ("XN--ü。invalid", "xn--XN---3ra.invalid"),
            ("xn--.ü", "xn--.xn--tda"),
        ] {
            assert_eq!(ascii(name).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn names_that_are_too_long_are_refused() {
        assert_eq!(ascii(&"a".repeat(255)).unwrap().len(), 255);
        for name in [
            "a".repeat(256),
            "a".repeat(100_000),
            "ü".repeat(400),
            "ü.".repeat(50),
        ] {
            assert_eq!(ascii(&name), Err(Errno::EINVAL), "{} bytes", name.len());
        }
        assert_eq!(ascii(""), Err(Errno::EINVAL));
    }

    #[test]
    fn names_that_are_not_utf8_are_refused() {
        for name in [&b"\xC0\x80"[..], b"\xFF.com", b"\xED\xA0\x80", b"a\xCC"] {
            assert_eq!(HostName::new(name).err(), Some(Errno::EINVAL));
        }
    }
}
