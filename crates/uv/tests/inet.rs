//! Internet addresses as text, and network interfaces.

#[path = "support/system.rs"]
mod system;

use libc::{AF_INET, AF_INET6, AF_UNIX, sockaddr, sockaddr_in, sockaddr_in6};
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr};
use uv as _;
use uv_binding::*;

fn ip4(text: &CStr, port: c_int) -> (c_int, sockaddr_in) {
    let mut address = MaybeUninit::uninit();
    // SAFETY: the text ends in a NUL, and the address is filled whatever happens.
    unsafe {
        let status = uv_ip4_addr(text.as_ptr(), port, address.as_mut_ptr());
        (status, address.assume_init())
    }
}

fn ip6(text: &CStr, port: c_int) -> (c_int, sockaddr_in6) {
    let mut address = MaybeUninit::uninit();
    // SAFETY: as above.
    unsafe {
        let status = uv_ip6_addr(text.as_ptr(), port, address.as_mut_ptr());
        (status, address.assume_init())
    }
}

/// The status and the text of a function that writes one into a buffer of `size` bytes.
fn written(size: usize, call: impl FnOnce(*mut c_char, usize) -> c_int) -> (c_int, String) {
    let mut buffer = vec![b'#'; size + 8];
    let status = call(buffer.as_mut_ptr().cast(), size);
    assert!(buffer[size..].iter().all(|&byte| byte == b'#'), "beyond");
    let text = match status {
        0 => CStr::from_bytes_until_nul(&buffer)
            .unwrap()
            .to_str()
            .unwrap(),
        _ => "",
    };
    (status, text.to_owned())
}

#[test]
fn an_ipv4_address_becomes_a_socket_address() {
    let (status, address) = ip4(c"192.168.0.1", 0x1_1234);
    assert_eq!(status, 0);
    assert_eq!(c_int::from(address.sin_family), AF_INET);
    assert_eq!(address.sin_port, 0x1234u16.to_be());
    assert_eq!(address.sin_addr.s_addr.to_ne_bytes(), [192, 168, 0, 1]);
    assert_eq!(address.sin_zero, [0; 8]);
}

#[test]
fn what_is_no_address_leaves_an_empty_one() {
    for bad in [
        c"",
        c"1.2.3",
        c"256.1.1.1",
        c"01.2.3.4",
        c"1.2.3.4x",
        c"1.2.3.4%lo",
    ] {
        let (status, address) = ip4(bad, 80);
        assert_eq!(status, -libc::EINVAL, "{bad:?}");
        assert_eq!(c_int::from(address.sin_family), AF_INET);
        assert_eq!(address.sin_addr.s_addr, 0);
    }
    let (status, address) = ip6(c"no address%lo", 80);
    assert_eq!(status, -libc::EINVAL);
    assert_eq!(c_int::from(address.sin6_family), AF_INET6);
    assert_eq!(address.sin6_addr.s6_addr, [0; 16]);
    let mut address = MaybeUninit::uninit();
    // SAFETY: null is what is to be refused.
    let status = unsafe { uv_ip4_addr(std::ptr::null(), 80, address.as_mut_ptr()) };
    assert_eq!(status, -libc::EINVAL);
}

#[test]
fn a_zone_is_the_name_of_an_interface() {
    // SAFETY: the name ends in a NUL.
    let loopback = unsafe { libc::if_nametoindex(c"lo".as_ptr()) };
    assert_ne!(loopback, 0);
    let scope = |text| {
        let (status, address) = ip6(text, 80);
        assert_eq!(status, 0, "{text:?}");
        assert_eq!(address.sin6_port, 80u16.to_be());
        address.sin6_scope_id
    };
    assert_eq!(scope(c"fe80::1%lo"), loopback);
    assert_eq!(scope(c"fe80::1"), 0);
    assert_eq!(scope(c"fe80::1%"), 0);
    assert_eq!(scope(c"fe80::1%1"), 0, "numbers are no names");
    assert_eq!(scope(c"fe80::1%no-such-interface"), 0);
}

#[test]
fn names_need_room_for_their_nul() {
    let (_, v4) = ip4(c"1.2.3.4", 80);
    // SAFETY: `written` gives us as much room as it says.
    let name = |size| written(size, |to, size| unsafe { uv_ip4_name(&v4, to, size) });
    assert_eq!(name(8), (0, "1.2.3.4".into()));
    assert_eq!(name(7), (-libc::ENOSPC, String::new()));
    let (_, v6) = ip6(c"fe80::0001%lo", 80);
    // SAFETY: as above.
    let name = |size| written(size, |to, size| unsafe { uv_ip6_name(&v6, to, size) });
    assert_eq!(name(8), (0, "fe80::1".into()));
    assert_eq!(name(7), (-libc::ENOSPC, String::new()));
    assert_eq!(name(0), (-libc::ENOSPC, String::new()));
}

#[test]
fn a_name_goes_by_the_family() {
    let (_, v4) = ip4(c"1.2.3.4", 80);
    let (_, v6) = ip6(c"::1.2.3.4", 80);
    let name = |address: *const sockaddr| {
        // SAFETY: the address is of the family that it names.
        written(100, |to, size| unsafe { uv_ip_name(address, to, size) })
    };
    assert_eq!(name((&raw const v4).cast()), (0, "1.2.3.4".into()));
    assert_eq!(name((&raw const v6).cast()), (0, "::1.2.3.4".into()));
    let mut other = v4;
    other.sin_family = AF_UNIX as libc::sa_family_t;
    let other = (&raw const other).cast();
    assert_eq!(name(other), (-libc::EAFNOSUPPORT, String::new()));
}

/// Reads an address, of which an error leaves 0xee.
fn pton<const N: usize>(family: c_int, text: &CStr) -> (c_int, [u8; N]) {
    let mut octets = [0xee; N];
    // SAFETY: there is room for an address of the family.
    let status = unsafe { uv_inet_pton(family, text.as_ptr(), octets.as_mut_ptr().cast()) };
    (status, octets)
}

#[test]
fn pton_leaves_its_target_alone_on_errors() {
    let bad = (-libc::EINVAL, [0xee; 4]);
    assert_eq!(pton(AF_INET, c"1.2.3.4"), (0, [1, 2, 3, 4]));
    assert_eq!(pton(AF_INET, c"1.2.3.400"), bad);
    assert_eq!(
        pton(AF_INET6, c"::1%whatever"),
        (0, Ipv6Addr::LOCALHOST.octets())
    );
    assert_eq!(pton(AF_INET6, c":::1"), (-libc::EINVAL, [0xee; 16]));
    assert_eq!(pton(42, c"1.2.3.4"), (-libc::EAFNOSUPPORT, [0xee; 4]));
    // SAFETY: null is what is to be refused.
    unsafe {
        let null = std::ptr::null_mut();
        assert_eq!(
            uv_inet_pton(AF_INET, c"1.2.3.4".as_ptr(), null),
            -libc::EINVAL
        );
        assert_eq!(uv_inet_pton(AF_INET, std::ptr::null(), null), -libc::EINVAL);
    }
}

#[test]
fn ntop_writes_what_pton_reads() {
    let ntop = |family, octets: &[u8]| {
        written(46, |to, size| {
            // SAFETY: the address is of the family.
            unsafe { uv_inet_ntop(family, octets.as_ptr().cast(), to, size) }
        })
    };
    let loopback = Ipv4Addr::LOCALHOST.octets();
    assert_eq!(ntop(AF_INET, &loopback), (0, "127.0.0.1".into()));
    for text in [c"::", c"::1", c"::ffff:1.2.3.4", c"1:0:0:2::3", c"fe80::"] {
        let (status, octets) = pton::<16>(AF_INET6, text);
        assert_eq!(status, 0);
        assert_eq!(ntop(AF_INET6, &octets), (0, text.to_str().unwrap().into()));
    }
    assert_eq!(ntop(42, &loopback).0, -libc::EAFNOSUPPORT);
}

unsafe extern "C" fn loopback_name(buffer: *mut c_char, size: *mut usize) -> c_int {
    // SAFETY: the caller vouches for its buffer.
    unsafe { uv_if_indextoname(libc::if_nametoindex(c"lo".as_ptr()), buffer, size) }
}

unsafe extern "C" fn loopback_iid(buffer: *mut c_char, size: *mut usize) -> c_int {
    // SAFETY: the caller vouches for its buffer.
    unsafe { uv_if_indextoiid(libc::if_nametoindex(c"lo".as_ptr()), buffer, size) }
}

unsafe extern "C" fn nobodys_name(buffer: *mut c_char, size: *mut usize) -> c_int {
    // SAFETY: the caller vouches for its buffer.
    unsafe { uv_if_indextoname(c_uint::MAX, buffer, size) }
}

#[test]
fn interfaces_have_names() {
    assert_eq!(system::check_size_rules(loopback_name), "lo");
    assert_eq!(system::check_size_rules(loopback_iid), "lo");
    assert_eq!(system::fill(nobodys_name, 100).status, -libc::ENXIO);
}

#[test]
fn loopback_is_among_the_interfaces() {
    let (mut array, mut count) = (std::ptr::null_mut(), -1);
    // SAFETY: there is room for both, and the array has as many items as it says.
    unsafe {
        let null = std::ptr::null_mut();
        assert_eq!(uv_interface_addresses(&mut array, null), -libc::EINVAL);
        assert_eq!(uv_interface_addresses(&mut array, &mut count), 0);
        let found = match count {
            0 => &[][..],
            count => std::slice::from_raw_parts(array, count as usize),
        };
        let loopback = found.iter().find(|address| {
            CStr::from_ptr(address.name) == c"lo"
                && c_int::from(address.address.address4.sin_family) == AF_INET
        });
        let loopback = loopback.expect("this machine has a loopback interface");
        assert_eq!(loopback.is_internal, 1);
        assert_eq!(loopback.phys_addr, [0; 6]);
        let address = loopback.address.address4;
        let netmask = loopback.netmask.netmask4;
        assert_eq!(address.sin_addr.s_addr.to_ne_bytes(), [127, 0, 0, 1]);
        assert_eq!(netmask.sin_addr.s_addr.to_ne_bytes(), [255, 0, 0, 0]);
        uv_free_interface_addresses(array, count);
    }
}
