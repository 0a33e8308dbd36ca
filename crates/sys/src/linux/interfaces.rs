//! Entries of getifaddrs(3) that are specific to Linux:
//! <https://man7.org/linux/man-pages/man7/packet.7.html>.

use std::ffi::c_int;

/// The hardware address, if the entry has one.
pub(crate) fn physical(entry: &libc::ifaddrs) -> Option<[u8; 6]> {
    // SAFETY: the C library guarantees that the address is not null and of the family that it
    // names.
    unsafe {
        if c_int::from((*entry.ifa_addr).sa_family) != libc::AF_PACKET {
            return None;
        }
        let [physical @ .., _, _] = (*entry.ifa_addr.cast::<libc::sockaddr_ll>()).sll_addr;
        Some(physical)
    }
}

/// Whether `name` is the interface or an alias of it, as `eth0:1` is of `eth0`.
pub(crate) fn belongs_to(name: &[u8], interface: &[u8]) -> bool {
    matches!(name.strip_prefix(interface), Some([] | [b':', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_belongs_to_its_interface_and_a_longer_name_does_not() {
        assert!(belongs_to(b"eth0", b"eth0"));
        assert!(belongs_to(b"eth0:1", b"eth0"));
        assert!(!belongs_to(b"eth01", b"eth0"));
        assert!(!belongs_to(b"eth0", b"eth0:1"));
    }
}
