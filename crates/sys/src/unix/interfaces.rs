//! The addresses of network interfaces:
//! <https://man7.org/linux/man-pages/man3/getifaddrs.3.html>.

use crate::platform::interfaces::{belongs_to, physical};
use crate::{Errno, check, fallible};
use std::ffi::{CStr, c_int, c_uint};

/// An Internet address, as the C library stores it.
#[derive(Clone, Copy)]
pub enum SocketAddress {
    /// An IPv4 address.
    V4(libc::sockaddr_in),
    /// An IPv6 address.
    V6(libc::sockaddr_in6),
}

impl SocketAddress {
    /// # Safety
    ///
    /// `address` is null or an address of the family that it names.
    unsafe fn read(address: *const libc::sockaddr) -> Option<SocketAddress> {
        // SAFETY: the caller upholds the contract.
        unsafe {
            match c_int::from(address.as_ref()?.sa_family) {
                libc::AF_INET => Some(SocketAddress::V4(
                    address.cast::<libc::sockaddr_in>().read(),
                )),
                libc::AF_INET6 => Some(SocketAddress::V6(
                    address.cast::<libc::sockaddr_in6>().read(),
                )),
                _ => None,
            }
        }
    }
}

impl std::fmt::Debug for SocketAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SocketAddress::V4(address) => {
                std::net::Ipv4Addr::from_bits(u32::from_be(address.sin_addr.s_addr)).fmt(f)
            }
            SocketAddress::V6(address) => {
                std::net::Ipv6Addr::from(address.sin6_addr.s6_addr).fmt(f)
            }
        }
    }
}

/// An address of an interface that is up and running.
#[derive(Clone, Debug)]
pub struct InterfaceAddress {
    /// The interface's name.
    pub name: Vec<u8>,
    /// The interface's hardware address, or zeros.
    pub physical: [u8; 6],
    /// Whether this is a loopback interface.
    pub internal: bool,
    /// The address.
    pub address: SocketAddress,
    /// The network mask.
    pub netmask: Option<SocketAddress>,
}

/// The C library's list, which is freed when dropped.
struct List(*mut libc::ifaddrs);

impl List {
    fn new() -> Result<List, Errno> {
        let mut first = std::ptr::null_mut();
        // SAFETY: `first` has room for the pointer.
        check(unsafe { libc::getifaddrs(&mut first) })?;
        Ok(List(first))
    }

    /// The entries of interfaces that are up and running and have an address of any family.
    fn running(&self) -> impl Iterator<Item = &libc::ifaddrs> {
        const RUNNING: c_uint = (libc::IFF_UP | libc::IFF_RUNNING) as c_uint;
        // SAFETY: `self` owns the list; each entry points to the next, and null ends the list.
        let entries = std::iter::successors(unsafe { self.0.as_ref() }, |entry| unsafe {
            entry.ifa_next.as_ref()
        });
        entries.filter(|entry| entry.ifa_flags & RUNNING == RUNNING && !entry.ifa_addr.is_null())
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the list came from getifaddrs and is not used again.
        unsafe { libc::freeifaddrs(self.0) }
    }
}

/// The name of an entry.
fn name(entry: &libc::ifaddrs) -> &[u8] {
    // SAFETY: the C library gives every entry a name, which lives as long as the entry.
    unsafe { CStr::from_ptr(entry.ifa_name) }.to_bytes()
}

/// The addresses of all interfaces that are up and running, in the system's order.
pub fn all() -> Result<Vec<InterfaceAddress>, Errno> {
    let list = List::new()?;
    let mut found = Vec::new();
    for entry in list.running() {
        // SAFETY: the C library guarantees that both are null or addresses of the family that they
        // name.
        let (address, netmask) = unsafe {
            (
                SocketAddress::read(entry.ifa_addr),
                SocketAddress::read(entry.ifa_netmask),
            )
        };
        let Some(address) = address else { continue };
        let name = name(entry);
        let same = |other: &&libc::ifaddrs| belongs_to(name, self::name(other));
        // The last of several: an alias with its own entry comes after the interface.
        let physical = list.running().filter(same).filter_map(physical).last();
        let address = InterfaceAddress {
            name: fallible::copied(name)?,
            physical: physical.unwrap_or_default(),
            internal: entry.ifa_flags & libc::IFF_LOOPBACK as c_uint != 0,
            address,
            netmask,
        };
        fallible::push(&mut found, address)?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_internal() {
        for address in all().unwrap() {
            assert_eq!(address.internal, address.name == b"lo", "{address:?}");
            assert!(address.netmask.is_some());
        }
    }
}
