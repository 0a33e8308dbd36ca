//! Internet addresses as text, and network interfaces by name and number:
//! <https://man7.org/linux/man-pages/man3/inet_pton.3.html>,
//! <https://man7.org/linux/man-pages/man3/if_nametoindex.3.html>.
//!
//! The accepted forms are those of `inet_pton`: four decimal numbers without leading zeros, and RFC
//! 4291's for IPv6, where the text from a `%` on is the zone and not part of the address.

use crate::Errno;
use std::ffi::{CStr, c_char};
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The length of the longest address: `INET6_ADDRSTRLEN` without the NUL.
const MAX_LEN: usize = 45;

/// Parses an IPv4 address.
pub fn parse_v4(text: &[u8]) -> Result<Ipv4Addr, Errno> {
    let text = std::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
    text.parse().map_err(|_| Errno::EINVAL)
}

/// Parses an IPv6 address, without its zone.
pub fn parse_v6(text: &[u8]) -> Result<Ipv6Addr, Errno> {
    let end = text.iter().position(|&byte| byte == b'%');
    let text = &text[..end.unwrap_or(text.len())];
    let text = std::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
    text.parse().map_err(|_| Errno::EINVAL)
}

/// The zone of an address: the text after its first `%`.
pub fn zone(text: &CStr) -> Option<&CStr> {
    let percent = text.to_bytes().iter().position(|&byte| byte == b'%')?;
    CStr::from_bytes_with_nul(&text.to_bytes_with_nul()[percent + 1..]).ok()
}

/// An address as text.
#[derive(Clone, Copy, Debug)]
pub struct AddressText {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl AddressText {
    fn new(text: std::fmt::Arguments<'_>) -> AddressText {
        let mut bytes = [0; MAX_LEN];
        let mut room = &mut bytes[..];
        room.write_fmt(text).expect("no address is longer");
        let len = MAX_LEN - room.len();
        AddressText { bytes, len }
    }

    /// The text of an IPv4 address.
    pub fn v4(address: Ipv4Addr) -> AddressText {
        AddressText::new(format_args!("{address}"))
    }

    /// The text of an IPv6 address. As in the C library, an address with only its last four bytes
    /// set becomes `::1.2.3.4`.
    pub fn v6(address: Ipv6Addr) -> AddressText {
        match address.segments() {
            [0, 0, 0, 0, 0, 0, high, _] if high != 0 => {
                let [.., a, b, c, d] = address.octets();
                AddressText::new(format_args!("::{a}.{b}.{c}.{d}"))
            }
            _ => AddressText::new(format_args!("{address}")),
        }
    }

    /// The bytes of the text, without a NUL.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The index of a network interface, or 0 if none has that name.
pub fn interface_index(name: &CStr) -> u32 {
    // SAFETY: the name ends in a NUL.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}

/// The name of a network interface.
#[derive(Clone, Copy, Debug)]
pub struct InterfaceName([u8; libc::IF_NAMESIZE]);

impl InterfaceName {
    /// The name of the interface with that index, or `ENXIO` if there is none.
    pub fn of(index: u32) -> Result<InterfaceName, Errno> {
        let mut name = [0u8; libc::IF_NAMESIZE];
        // SAFETY: the buffer has room for the longest name and a NUL.
        let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast::<c_char>()) };
        match found.is_null() {
            true => Err(Errno::last()),
            false => Ok(InterfaceName(name)),
        }
    }
}

/// The bytes of the name, without a NUL.
impl AsRef<[u8]> for InterfaceName {
    fn as_ref(&self) -> &[u8] {
        let len = self.0.iter().position(|&byte| byte == 0);
        &self.0[..len.unwrap_or(self.0.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v6(text: &str) -> String {
        let text = AddressText::v6(text.parse().unwrap());
        String::from_utf8(text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn writes_ipv6_as_the_c_library_does() {
        assert_eq!(v6("::"), "::");
        assert_eq!(v6("::1"), "::1");
        assert_eq!(v6("::ffff"), "::ffff");
        assert_eq!(v6("::1:0"), "::0.1.0.0");
        assert_eq!(v6("::102:304"), "::1.2.3.4");
        assert_eq!(v6("::ffff:102:304"), "::ffff:1.2.3.4");
        assert_eq!(v6("::fffe:102:304"), "::fffe:102:304");
        assert_eq!(v6("1:0:0:2:0:0:0:3"), "1:0:0:2::3");
        assert_eq!(v6("1:0:0:2:3:0:0:4"), "1::2:3:0:0:4");
        assert_eq!(v6("0:1:2:3:4:5:6:7"), "0:1:2:3:4:5:6:7");
        let longest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        assert_eq!(v6(longest), longest);
    }

    #[test]
    fn refuses_what_inet_pton_refuses() {
        for bad in [
            "",
            "1.2.3",
            "01.2.3.4",
            "1.2.3.4 ",
            "256.0.0.0",
            "1.2.3.4%lo",
        ] {
            assert_eq!(parse_v4(bad.as_bytes()), Err(Errno::EINVAL), "{bad}");
        }
        for bad in [
            "",
            "%lo",
            ":::1",
            "abcde::1",
            "1:2:3:4:5:6:7:8:9",
            "::1.2.3",
            "1:",
        ] {
            assert_eq!(parse_v6(bad.as_bytes()), Err(Errno::EINVAL), "{bad}");
        }
        assert_eq!(parse_v6(b"::\xff"), Err(Errno::EINVAL));
    }

    #[test]
    fn the_zone_starts_at_the_first_percent() {
        assert_eq!(zone(c"fe80::1"), None);
        assert_eq!(zone(c"fe80::1%"), Some(c""));
        assert_eq!(zone(c"fe80::1%lo%2"), Some(c"lo%2"));
    }

    #[test]
    fn interfaces_have_names_and_numbers() {
        let index = interface_index(c"lo");
        assert_eq!(InterfaceName::of(index).unwrap().as_ref(), b"lo");
        assert_eq!(InterfaceName::of(u32::MAX).unwrap_err(), Errno::ENXIO);
        assert_eq!(interface_index(c"no such interface"), 0);
    }
}
