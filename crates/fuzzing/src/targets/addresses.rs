//! Internet addresses as text and back, with their ports and scopes; names of interfaces.
//!
//! Both libraries fill the caller's memory with the same bytes, on errors as well; what is written
//! reads as what it was; nothing is written beyond the room given.

use crate::api::Api;
use crate::input::Input;
use crate::original::compare;
use libc::{AF_INET, AF_INET6, sockaddr_in, sockaddr_in6};
use std::ffi::{CStr, CString, c_int};

/// What addresses are made of.
const PARTS: &[&str] = &[
    ":", "::", ".", "%", "0", "1", "2", "5", "9", "a", "F", "ff", "00", "127", "255", "256",
    "ffff", "fe80", "12345", "lo", "eth0", "%lo", "x", "-", " ", "::ffff:", "1.2.3.4", "g", "0x",
    "+1", "\u{ff11}", "8",
];
/// Stands in buffers where nothing was written.
const UNTOUCHED: u8 = 0xee;
/// Room for the longest text, and more to see what is written beyond.
const ROOM: usize = 80;

/// Checks one text and one address.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (port, size) = (input.word() as c_int, input.below(64));
    let family = input.pick(&[AF_INET, AF_INET6, libc::AF_UNIX, 0, -1]);
    let mut octets = [0; 16];
    for octet in &mut octets {
        // Zeros are what texts leave out.
        *octet = match input.byte() {
            byte if byte < 128 => 0,
            byte => byte.wrapping_mul(7),
        };
    }
    let index = input.below(8) as u32;
    let text = match input.flip() {
        true => {
            let text = input.rest().split(|&byte| byte == 0).next();
            text.unwrap_or_default().to_vec()
        }
        false => {
            let part = |&byte: &u8| PARTS[usize::from(byte) % PARTS.len()].as_bytes();
            input.rest().iter().flat_map(part).copied().collect()
        }
    };
    let text = CString::new(text).expect("no NUL");
    read(&text, port, family);
    write(&octets, family, size);
    interface(index, size);
}

/// Reads a text as each kind of address.
fn read(text: &CStr, port: c_int, family: c_int) {
    compare(|api| {
        // Aligned as addresses are.
        let mut v4 = [u64::MAX; size_of::<sockaddr_in>() / 8];
        let mut v6 = [u64::MAX; size_of::<sockaddr_in6>().div_ceil(8)];
        let mut octets = [UNTOUCHED; 24];
        // SAFETY: the text ends in a NUL, and there is room for each address.
        let codes = unsafe {
            [
                (api.uv_ip4_addr)(text.as_ptr(), port, v4.as_mut_ptr().cast()),
                (api.uv_ip6_addr)(text.as_ptr(), port, v6.as_mut_ptr().cast()),
                (api.uv_inet_pton)(family, text.as_ptr(), octets.as_mut_ptr().cast()),
            ]
        };
        (codes, v4, v6, octets)
    });
}

/// What a function wrote into room for `size` bytes.
fn written(size: usize, write: impl FnOnce(*mut std::ffi::c_char) -> c_int) -> (c_int, Vec<u8>) {
    let mut buffer = vec![UNTOUCHED; ROOM];
    let code = write(buffer.as_mut_ptr().cast());
    assert!(buffer[size..].iter().all(|&byte| byte == UNTOUCHED));
    if code == 0 {
        let text = CStr::from_bytes_until_nul(&buffer).expect("a NUL at the end");
        return (code, text.to_bytes().to_vec());
    }
    (code, Vec::new())
}

/// Writes an address in each way, and reads it again.
fn write(octets: &[u8; 16], family: c_int, size: usize) {
    #[repr(align(8))]
    struct Aligned([u8; size_of::<sockaddr_in6>()]);
    let mut aligned = Aligned([0; size_of::<sockaddr_in6>()]);
    let address = &mut aligned.0;
    address[..2].copy_from_slice(&(family as libc::sa_family_t).to_ne_bytes());
    address[4..20].copy_from_slice(octets);
    let at = address.as_ptr();
    // SAFETY: the address is as long as the longest, and `written` gives that much room.
    compare(|api| unsafe {
        [
            written(size, |to| (api.uv_ip4_name)(at.cast(), to, size)),
            written(size, |to| (api.uv_ip6_name)(at.cast(), to, size)),
            written(size, |to| (api.uv_ip_name)(at.cast(), to, size)),
        ]
    });
    let ntop = |api: &Api, family| {
        // SAFETY: as above.
        written(size, |to| unsafe {
            (api.uv_inet_ntop)(family, octets.as_ptr().cast(), to, size)
        })
    };
    for family in [family, AF_INET, AF_INET6] {
        let (code, text) = compare(|api| ntop(api, family));
        if code != 0 {
            continue;
        }
        let text = CString::new(text).expect("no NUL");
        let mut again = [0; 16];
        // SAFETY: the text ends in a NUL, and there is room for each address.
        let code = compare(|api| unsafe {
            (api.uv_inet_pton)(family, text.as_ptr(), again.as_mut_ptr().cast())
        });
        assert_eq!(code, 0, "{text:?}");
        let len = if family == AF_INET { 4 } else { 16 };
        assert_eq!(again[..len], octets[..len], "{text:?}");
    }
}

/// The name of an interface, in room for `size` bytes.
fn interface(index: u32, size: usize) {
    compare(|api| {
        [api.uv_if_indextoname, api.uv_if_indextoiid].map(|find| {
            let mut told = size;
            // SAFETY: there is as much room as is said.
            let text = written(size, |to| unsafe { find(index, to, &mut told) });
            (text, told)
        })
    });
}
