//! Lookups of host and service names by the C library:
//! <https://man7.org/linux/man-pages/man3/getaddrinfo.3.html>,
//! <https://man7.org/linux/man-pages/man3/getnameinfo.3.html>.
//!
//! Both block until the network responds.

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

// SAFETY: the list belongs to no thread.
unsafe impl Send for Addresses {}

impl Addresses {
    /// Releases the list, which the caller frees with `freeaddrinfo`.
    pub fn into_raw(self) -> *mut addrinfo {
        let list = self.0.as_ptr();
        std::mem::forget(self);
        list
    }

    /// Takes ownership of a list from `getaddrinfo`. `None` for null.
    ///
    /// # Safety
    ///
    /// `list` came from `getaddrinfo`, and nothing else uses or frees it.
    pub unsafe fn from_raw(list: *mut addrinfo) -> Option<Addresses> {
        NonNull::new(list).map(Addresses)
    }
}

impl Addresses {
    /// The Internet addresses in the list.
    pub fn iter(&self) -> impl Iterator<Item = SocketAddr> {
        // SAFETY: `self` owns the list, which ends in a null pointer.
        let after = |entry: &&addrinfo| unsafe { entry.ai_next.as_ref() };
        // SAFETY: the first entry lives as long as `self`.
        let first = Some(unsafe { self.0.as_ref() });
        std::iter::successors(first, after).filter_map(|entry| {
            // SAFETY: the C library gives each entry an address of the stated length.
            let address = unsafe { SocketAddrAny::read(entry.ai_addr.cast(), entry.ai_addrlen) };
            SocketAddr::try_from(address).ok()
        })
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        // SAFETY: `self` owns the list, which came from getaddrinfo.
        unsafe { libc::freeaddrinfo(self.0.as_ptr()) }
    }
}

/// The kind of addresses to look up, in the C library's numbers, which this module does not
/// interpret.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[allow(missing_docs, reason = "the names are the C library's")]
pub struct Hints {
    pub flags: c_int,
    pub family: c_int,
    pub socktype: c_int,
    pub protocol: c_int,
}

/// A resolver's error as libuv's.
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
        // The other errors belong to interfaces of the C library that this crate does not use.
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
    // SAFETY: every pointer is null or valid as the function requires, and lives through the call.
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
    // SAFETY: the function succeeded, and nothing else owns the list.
    unsafe { Addresses::from_raw(list) }.ok_or(Errno::EAI_NODATA)
}

/// Writes the names of a host and a service, each with its NUL, into the buffers. Only the first
/// `len` bytes of the address count.
pub fn getnameinfo(
    address: &sockaddr_storage,
    len: usize,
    flags: c_int,
    host: &mut [c_char],
    service: &mut [c_char],
) -> Result<(), Errno> {
    assert!(len <= size_of::<sockaddr_storage>());
    // SAFETY: the address has at least `len` bytes, and the slices are writable.
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

/// The names of the host and the service at an address. Without a name, the number stands instead.
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
    // A text up to its first NUL contains none.
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
        assert!(
            [c"tcpmux", c"1"].contains(&service.as_c_str()),
            "{service:?}"
        );
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
        // SAFETY: all zeros are an address without a family.
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
