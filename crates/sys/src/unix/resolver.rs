//! The names of hosts and services, as the C library looks them up:
//! <https://man7.org/linux/man-pages/man3/getaddrinfo.3.html>,
//! <https://man7.org/linux/man-pages/man3/getnameinfo.3.html>.
//!
//! Both block, for as long as the network lets them wait.

use crate::Errno;
use crate::platform::resolver::{EAI_ADDRFAMILY, EAI_CANCELED};
use libc::{addrinfo, c_char, c_int, sockaddr_storage};
use rustix::net::SocketAddrAny;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::ptr::{self, NonNull};

pub use crate::platform::resolver::{NI_MAXHOST, NI_MAXSERV};

/// Addresses found by [`getaddrinfo`], as the C library's linked list.
#[derive(Debug)]
pub struct Addresses(NonNull<addrinfo>);

// SAFETY: the list is a value like any other; nothing of it belongs to a thread.
unsafe impl Send for Addresses {}

impl Addresses {
    /// Gives the list away: whoever gets it frees it with `freeaddrinfo`.
    pub fn into_raw(self) -> *mut addrinfo {
        let list = self.0.as_ptr();
        std::mem::forget(self);
        list
    }

    /// Takes over a list from `getaddrinfo`; null is the list that is not there.
    ///
    /// # Safety
    ///
    /// `list` came from `getaddrinfo` and is not used or freed by anybody else.
    pub unsafe fn from_raw(list: *mut addrinfo) -> Option<Addresses> {
        NonNull::new(list).map(Addresses)
    }
}

impl Addresses {
    /// Those of the addresses that belong to the Internet.
    pub fn iter(&self) -> impl Iterator<Item = SocketAddr> {
        // SAFETY: the list is ours, and ends in a null pointer.
        let after = |entry: &&addrinfo| unsafe { entry.ai_next.as_ref() };
        // SAFETY: the first entry is as good as the others, and lives as long as `self`.
        let first = Some(unsafe { self.0.as_ref() });
        std::iter::successors(first, after).filter_map(|entry| {
            // SAFETY: each entry has an address, of the length that it says.
            let address = unsafe { SocketAddrAny::read(entry.ai_addr.cast(), entry.ai_addrlen) };
            SocketAddr::try_from(address).ok()
        })
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        // SAFETY: the list is ours and came from getaddrinfo.
        unsafe { libc::freeaddrinfo(self.0.as_ptr()) }
    }
}

/// What kind of addresses to look for: the numbers of the C library, of which it does not
/// matter here what they mean.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[allow(missing_docs, reason = "the names are the C library's")]
pub struct Hints {
    pub flags: c_int,
    pub family: c_int,
    pub socktype: c_int,
    pub protocol: c_int,
}

/// An error of the resolver in libuv's numbers.
fn eai(code: c_int) -> Errno {
    match code {
        libc::EAI_AGAIN => Errno::EAI_AGAIN,
        libc::EAI_BADFLAGS => Errno::EAI_BADFLAGS,
        libc::EAI_FAIL => Errno::EAI_FAIL,
        libc::EAI_FAMILY => Errno::EAI_FAMILY,
        libc::EAI_MEMORY => Errno::EAI_MEMORY,
        libc::EAI_NODATA => Errno::EAI_NODATA,
        libc::EAI_NONAME => Errno::EAI_NONAME,
        libc::EAI_OVERFLOW => Errno::EAI_OVERFLOW,
        libc::EAI_SERVICE => Errno::EAI_SERVICE,
        libc::EAI_SOCKTYPE => Errno::EAI_SOCKTYPE,
        libc::EAI_SYSTEM => match Errno::last() {
            error if error.code() < 0 => error,
            _ => Errno::EAI_FAIL,
        },
        EAI_ADDRFAMILY => Errno::EAI_ADDRFAMILY,
        EAI_CANCELED => Errno::EAI_CANCELED,
        // The rest belongs to interfaces of the C library that nobody uses here.
        _ => Errno::EAI_FAIL,
    }
}

/// The addresses of a service on a host.
pub fn getaddrinfo(
    node: Option<&CStr>,
    service: Option<&CStr>,
    hints: Option<Hints>,
) -> Result<Addresses, Errno> {
    let hints = hints.map(|hints| addrinfo {
        ai_flags: hints.flags,
        ai_family: hints.family,
        ai_socktype: hints.socktype,
        ai_protocol: hints.protocol,
        ai_addrlen: 0,
        ai_addr: ptr::null_mut(),
        ai_canonname: ptr::null_mut(),
        ai_next: ptr::null_mut(),
    });
    let mut list = ptr::null_mut();
    // SAFETY: every pointer is null or points to what the function asks for, and lives
    // through the call.
    let code = unsafe {
        libc::getaddrinfo(
            node.map_or(ptr::null(), CStr::as_ptr),
            service.map_or(ptr::null(), CStr::as_ptr),
            hints.as_ref().map_or(ptr::null(), |hints| hints),
            &mut list,
        )
    };
    if code != 0 {
        return Err(eai(code));
    }
    // SAFETY: the function succeeded, so the list is ours.
    unsafe { Addresses::from_raw(list) }.ok_or(Errno::EAI_NODATA)
}

/// The names of a host and a service, each written with its NUL into the room given for it,
/// from an address whose first `len` bytes count.
pub fn getnameinfo(
    address: &sockaddr_storage,
    len: usize,
    flags: c_int,
    host: &mut [c_char],
    service: &mut [c_char],
) -> Result<(), Errno> {
    assert!(len <= size_of::<sockaddr_storage>());
    // SAFETY: the address has at least `len` bytes, and the slices have the room that they
    // say.
    let code = unsafe {
        libc::getnameinfo(
            ptr::from_ref(address).cast(),
            len as libc::socklen_t,
            host.as_mut_ptr(),
            host.len() as libc::socklen_t,
            service.as_mut_ptr(),
            service.len() as libc::socklen_t,
            flags,
        )
    };
    match code {
        0 => Ok(()),
        code => Err(eai(code)),
    }
}

/// The names of the host and the service behind an address. A host or service without a name
/// goes by its number.
pub fn names(address: SocketAddr) -> Result<(CString, CString), Errno> {
    let encoded = SocketAddrAny::from(address);
    let len = encoded.addr_len() as usize;
    let mut storage = MaybeUninit::<sockaddr_storage>::zeroed();
    // SAFETY: every address fits into the storage, for which all bit patterns are valid.
    let storage = unsafe {
        let to = storage.as_mut_ptr().cast::<u8>();
        to.copy_from_nonoverlapping(encoded.as_ptr().cast(), len);
        storage.assume_init()
    };
    let (mut host, mut service) = ([0; NI_MAXHOST], [0; NI_MAXSERV]);
    getnameinfo(&storage, len, 0, &mut host, &mut service)?;
    let text = |chars: &[c_char]| {
        let bytes = chars.iter().map(|&char| char as u8);
        CString::new(bytes.take_while(|&byte| byte != 0).collect::<Vec<_>>())
    };
    let (host, service) = (text(&host), text(&service));
    // There is no NUL before the first one.
    host.and_then(|host| Ok((host, service?)))
        .map_err(|_| Errno::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let hints = Hints {
            flags: libc::AI_NUMERICHOST,
            socktype: libc::SOCK_STREAM,
            ..Hints::default()
        };
        for (text, address) in [
            (c"127.0.0.1", "127.0.0.1:80"),
            (c"::1", "[::1]:80"),
            (c"fe80::1%1", "[fe80::1%1]:80"),
        ] {
            let found = getaddrinfo(Some(text), Some(c"80"), Some(hints)).unwrap();
            let found: Vec<_> = found.iter().collect();
            assert_eq!(found, [address.parse().unwrap()]);
        }
    }

    #[test]
    fn services_have_names() {
        let (host, service) = names("127.0.0.1:1".parse().unwrap()).unwrap();
        assert!(!host.is_empty());
        assert!(service == *c"tcpmux" || service == *c"1", "{service:?}");
    }

    #[test]
    fn numbers_need_no_network() {
        let hints = Hints {
            flags: libc::AI_NUMERICHOST,
            ..Hints::default()
        };
        assert!(getaddrinfo(Some(c"127.0.0.1"), None, Some(hints)).is_ok());
        let name = getaddrinfo(Some(c"localhost"), None, Some(hints));
        assert_eq!(name.unwrap_err(), Errno::EAI_NONAME);
        assert_eq!(
            getaddrinfo(None, None, None).unwrap_err(),
            Errno::EAI_NONAME
        );
    }

    #[test]
    fn every_error_is_an_error() {
        for code in -200..200 {
            assert!(code == 0 || eai(code).code() < 0, "{code}");
        }
    }

    #[test]
    fn room_that_is_too_small_is_an_error() {
        // SAFETY: all zeros is an address of no family.
        let mut address: sockaddr_storage = unsafe { std::mem::zeroed() };
        address.ss_family = libc::AF_INET as libc::sa_family_t;
        let flags = libc::NI_NUMERICHOST | libc::NI_NUMERICSERV;
        let len = size_of::<libc::sockaddr_in>();
        let (mut host, mut service) = ([0; 8], [0; 2]);
        getnameinfo(&address, len, flags, &mut host, &mut service).unwrap();
        assert_eq!(&host.map(|byte| byte as u8), b"0.0.0.0\0");
        let cut = getnameinfo(&address, len, flags, &mut host[..4], &mut service);
        assert_eq!(cut, Err(Errno::EAI_OVERFLOW));
    }
}
