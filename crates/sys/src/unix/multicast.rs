//! Multicast: groups, their sources, and interfaces:
//! <https://man7.org/linux/man-pages/man7/ip.7.html>,
//! <https://man7.org/linux/man-pages/man7/ipv6.7.html>, RFC 3678.

use crate::socket::{self, AF_INET6};
use crate::{Errno, RawFd, check};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A network interface in a multicast option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interface {
    /// By its address; the kernel chooses if that is unspecified.
    V4(Ipv4Addr),
    /// By its index; the kernel chooses if that is zero.
    V6(u32),
}

/// A multicast group on an interface, optionally of a single source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Group {
    V4 {
        group: Ipv4Addr,
        interface: Ipv4Addr,
        source: Option<Ipv4Addr>,
    },
    V6 {
        group: Ipv6Addr,
        interface: u32,
        source: Option<Ipv6Addr>,
    },
}

fn in_addr(address: Ipv4Addr) -> libc::in_addr {
    libc::in_addr {
        s_addr: u32::from_ne_bytes(address.octets()),
    }
}

fn in6_addr(address: Ipv6Addr) -> libc::in6_addr {
    libc::in6_addr {
        s6_addr: address.octets(),
    }
}

/// An IPv6 address without a port, in the kernel's generic storage.
fn storage_of(address: Ipv6Addr) -> libc::sockaddr_storage {
    let mut storage = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    // SAFETY: the storage is large enough for a sockaddr_in6, and zeroed.
    unsafe {
        let v6 = storage.as_mut_ptr().cast::<libc::sockaddr_in6>();
        (*v6).sin6_family = AF_INET6 as libc::sa_family_t;
        (*v6).sin6_addr = in6_addr(address);
        storage.assume_init()
    }
}

/// Sets an option that takes a struct.
///
/// # Safety
///
/// `T` is the type that the option takes.
unsafe fn set_struct<T>(fd: RawFd, level: i32, name: i32, value: &T) -> Result<(), Errno> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the caller guarantees the type, and the value lives through the call.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const *value).cast(), size) }).map(drop)
}

/// Joins a multicast group or leaves it.
pub fn set_membership(fd: RawFd, group: Group, join: bool) -> Result<(), Errno> {
    let pick = |yes, no| if join { yes } else { no };
    // SAFETY: each struct is the one that ip(7), ipv6(7) and RFC 3678 name for its option.
    unsafe {
        match group {
            Group::V4 {
                group,
                interface,
                source: None,
            } => {
                let name = pick(libc::IP_ADD_MEMBERSHIP, libc::IP_DROP_MEMBERSHIP);
                let request = libc::ip_mreq {
                    imr_multiaddr: in_addr(group),
                    imr_interface: in_addr(interface),
                };
                set_struct(fd, libc::IPPROTO_IP, name, &request)
            }
            Group::V4 {
                group,
                interface,
                source: Some(source),
            } => {
                let name = pick(
                    libc::IP_ADD_SOURCE_MEMBERSHIP,
                    libc::IP_DROP_SOURCE_MEMBERSHIP,
                );
                let request = libc::ip_mreq_source {
                    imr_multiaddr: in_addr(group),
                    imr_interface: in_addr(interface),
                    imr_sourceaddr: in_addr(source),
                };
                set_struct(fd, libc::IPPROTO_IP, name, &request)
            }
            Group::V6 {
                group,
                interface,
                source: None,
            } => {
                let name = pick(libc::IPV6_ADD_MEMBERSHIP, libc::IPV6_DROP_MEMBERSHIP);
                let request = libc::ipv6_mreq {
                    ipv6mr_multiaddr: in6_addr(group),
                    ipv6mr_interface: interface,
                };
                set_struct(fd, libc::IPPROTO_IPV6, name, &request)
            }
            Group::V6 {
                group,
                interface,
                source: Some(source),
            } => {
                let name = pick(
                    libc::MCAST_JOIN_SOURCE_GROUP,
                    libc::MCAST_LEAVE_SOURCE_GROUP,
                );
                let request = libc::group_source_req {
                    gsr_interface: interface,
                    gsr_group: storage_of(group),
                    gsr_source: storage_of(source),
                };
                set_struct(fd, libc::IPPROTO_IPV6, name, &request)
            }
        }
    }
}

/// Chooses the interface for outgoing multicast.
pub fn set_multicast_interface(fd: RawFd, interface: Interface) -> Result<(), Errno> {
    match interface {
        // SAFETY: the option takes an address.
        Interface::V4(address) => unsafe {
            set_struct(
                fd,
                libc::IPPROTO_IP,
                libc::IP_MULTICAST_IF,
                &in_addr(address),
            )
        },
        Interface::V6(index) => socket::set_option(
            fd,
            libc::IPPROTO_IPV6,
            libc::IPV6_MULTICAST_IF,
            index as i32,
        ),
    }
}
