//! Internet addresses as text, and network interfaces by number.

use crate::engine::code;
use crate::text;
use blacklight_engine::Errno;
use blacklight_sys::inet::{self, AddressText, InterfaceName};
use libc::{AF_INET, AF_INET6, in_addr, in6_addr, sockaddr, sockaddr_in, sockaddr_in6};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::net::{Ipv4Addr, Ipv6Addr};

/// An IPv4 address in network byte order, as C stores it.
fn v4_to_c(address: Ipv4Addr) -> in_addr {
    in_addr {
        s_addr: u32::from_ne_bytes(address.octets()),
    }
}

fn v4_from_c(address: in_addr) -> Ipv4Addr {
    Ipv4Addr::from(address.s_addr.to_ne_bytes())
}

fn v6_to_c(address: Ipv6Addr) -> in6_addr {
    in6_addr {
        s6_addr: address.octets(),
    }
}

/// The caller's struct is filled even if the text is not an address: the address is then all zeros.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_ip4_addr(ip: *const c_char, port: c_int, addr: *mut sockaddr_in) -> c_int {
    // SAFETY: the caller passes a C string.
    let parsed = unsafe { text::read(ip) }.and_then(|ip| inet::parse_v4(ip.to_bytes()));
    // SAFETY: the caller passes room for an address.
    unsafe {
        addr.write(sockaddr_in {
            sin_family: AF_INET as libc::sa_family_t,
            sin_port: (port as u16).to_be(),
            sin_addr: v4_to_c(parsed.unwrap_or(Ipv4Addr::UNSPECIFIED)),
            sin_zero: [0; 8],
        });
    }
    code(parsed.map(drop))
}

/// As for IPv4. A zone that names no interface is ignored.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_ip6_addr(ip: *const c_char, port: c_int, addr: *mut sockaddr_in6) -> c_int {
    // SAFETY: the caller passes a C string.
    let ip = unsafe { text::read(ip) };
    let parsed = ip.and_then(|ip| inet::parse_v6(ip.to_bytes()));
    let zone = ip.ok().and_then(inet::zone);
    // SAFETY: the caller passes room for an address.
    unsafe {
        addr.write(sockaddr_in6 {
            sin6_family: AF_INET6 as libc::sa_family_t,
            sin6_port: (port as u16).to_be(),
            sin6_flowinfo: 0,
            sin6_addr: v6_to_c(parsed.unwrap_or(Ipv6Addr::UNSPECIFIED)),
            sin6_scope_id: zone.map_or(0, inet::interface_index),
        });
    }
    code(parsed.map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_inet_pton(af: c_int, src: *const c_char, dst: *mut c_void) -> c_int {
    if src.is_null() || dst.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes a C string, and room for an address of the family.
    unsafe {
        let parsed = match af {
            AF_INET => text::read(src)
                .and_then(|src| inet::parse_v4(src.to_bytes()))
                .map(|address| dst.cast::<[u8; 4]>().write_unaligned(address.octets())),
            AF_INET6 => text::read(src)
                .and_then(|src| inet::parse_v6(src.to_bytes()))
                .map(|address| dst.cast::<[u8; 16]>().write_unaligned(address.octets())),
            _ => Err(Errno::EAFNOSUPPORT),
        };
        code(parsed)
    }
}

/// Copies an address as text into the caller's buffer, or returns `ENOSPC` and leaves the buffer
/// alone.
///
/// # Safety
///
/// `dst` has room for `size` bytes.
unsafe fn put(address: AddressText, dst: *mut c_char, size: usize) -> c_int {
    if size <= address.as_bytes().len() {
        return Errno::ENOSPC.code();
    }
    // SAFETY: the text and its NUL fit.
    unsafe { text::write(dst, address.as_bytes()) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_inet_ntop(
    af: c_int,
    src: *const c_void,
    dst: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: the caller passes an address of the family and a buffer of that size.
    unsafe {
        let address = match af {
            AF_INET => AddressText::v4(src.cast::<[u8; 4]>().read().into()),
            AF_INET6 => AddressText::v6(src.cast::<[u8; 16]>().read().into()),
            _ => return Errno::EAFNOSUPPORT.code(),
        };
        put(address, dst, size)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_ip4_name(src: *const sockaddr_in, dst: *mut c_char, size: usize) -> c_int {
    // SAFETY: the caller passes an address and a buffer of that size.
    unsafe { put(AddressText::v4(v4_from_c((*src).sin_addr)), dst, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_ip6_name(src: *const sockaddr_in6, dst: *mut c_char, size: usize) -> c_int {
    // SAFETY: the caller passes an address and a buffer of that size.
    unsafe { put(AddressText::v6((*src).sin6_addr.s6_addr.into()), dst, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_ip_name(src: *const sockaddr, dst: *mut c_char, size: usize) -> c_int {
    // SAFETY: the caller passes an address of the family that it names.
    unsafe {
        match c_int::from((*src).sa_family) {
            AF_INET => uv_ip4_name(src.cast(), dst, size),
            AF_INET6 => uv_ip6_name(src.cast(), dst, size),
            _ => Errno::EAFNOSUPPORT.code(),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_if_indextoname(
    ifindex: c_uint,
    buffer: *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller upholds the contracts buffer.
    unsafe { text::fill(buffer, size, || InterfaceName::of(ifindex)) }
}

/// On all systems but Windows, the zone of an address is the interface's name.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_if_indextoiid(
    ifindex: c_uint,
    buffer: *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { uv_if_indextoname(ifindex, buffer, size) }
}
