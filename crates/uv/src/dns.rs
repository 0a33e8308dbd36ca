//! `uv_getaddrinfo` and `uv_getnameinfo`: names of hosts and services.
//!
//! An asynchronous lookup copies the caller's strings and hints into one piece of memory, which it
//! frees on completion. A text that cannot be a host name is refused before any lookup; see
//! [`HostName`].

use crate::abi::{
    UV_GETADDRINFO, UV_GETNAMEINFO, uv_getaddrinfo_cb, uv_getaddrinfo_t, uv_getnameinfo_cb,
    uv_getnameinfo_t, uv_loop_t,
};
use crate::{alloc, engine, work};
use blacklight_engine::{Errno, WorkKind};
use blacklight_sys::host_name::HostName;
use blacklight_sys::resolver::{self, Addresses, Hints};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

/// # Safety
///
/// `text` is null or ends in a NUL, and lives as long as the result is used.
unsafe fn c_str<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller upholds the contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// # Safety
///
/// `hints` is null or valid.
unsafe fn hints_of(hints: *const libc::addrinfo) -> Option<Hints> {
    // SAFETY: the caller upholds the contract. Pointers inside hints have no meaning, and are not
    // read.
    let hints = unsafe { hints.as_ref() }?;
    Some(Hints {
        flags: hints.ai_flags,
        family: hints.ai_family,
        socktype: hints.ai_socktype,
        protocol: hints.ai_protocol,
    })
}

/// Copies the caller's arguments into memory that the request owns.
///
/// # Safety
///
/// `req` is a request to be filled in; `hints` is null or valid.
unsafe fn copy_arguments(
    req: *mut uv_getaddrinfo_t,
    host: Option<&HostName>,
    service: Option<&CStr>,
    hints: *const libc::addrinfo,
) -> Result<(), Errno> {
    const HINTS: usize = size_of::<libc::addrinfo>();
    let host = host.map_or(&[][..], HostName::as_bytes_with_nul);
    let service = service.map_or(&[][..], CStr::to_bytes_with_nul);
    let memory = alloc::malloc(HINTS + host.len() + service.len());
    if memory.is_null() {
        return Err(Errno::ENOMEM);
    }
    // SAFETY: the memory has room for the three, one after the other, and begins with the hints,
    // which have to be aligned. The hints' place exists even if it is unused, so that the pointer
    // to free is always the same.
    unsafe {
        let memory = memory.cast::<u8>();
        let (to_host, to_service) = (memory.add(HINTS), memory.add(HINTS + host.len()));
        to_host.copy_from_nonoverlapping(host.as_ptr(), host.len());
        to_service.copy_from_nonoverlapping(service.as_ptr(), service.len());
        let unless_empty = |bytes: &[u8], to: *mut u8| match bytes.is_empty() {
            true => ptr::null_mut(),
            false => to.cast::<c_char>(),
        };
        (*req).hostname = unless_empty(host, to_host);
        (*req).service = unless_empty(service, to_service);
        let to_hints = memory.cast::<libc::addrinfo>();
        match hints.as_ref() {
            Some(hints) => {
                to_hints.copy_from_nonoverlapping(hints, 1);
                (*req).hints = to_hints;
            }
            None => (*req).hints = ptr::null_mut(),
        }
        (*req).memory = memory.cast();
    }
    Ok(())
}

/// # Safety
///
/// [`copy_arguments`] has been called for the request, and nothing uses the copies any more.
unsafe fn free_copies(req: *mut uv_getaddrinfo_t) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        alloc::free((*req).memory);
        (*req).memory = ptr::null_mut();
        (*req).hints = ptr::null_mut();
        (*req).hostname = ptr::null_mut();
        (*req).service = ptr::null_mut();
    }
}

/// Writes the result of a lookup into the request.
///
/// # Safety
///
/// No other thread uses `req`.
unsafe fn store_result(req: *mut uv_getaddrinfo_t, found: Result<Addresses, Errno>) -> c_int {
    let (retcode, list) = match found {
        Ok(addresses) => (0, addresses.into_raw()),
        Err(error) => (error.code(), ptr::null_mut()),
    };
    // SAFETY: the caller upholds the contract.
    unsafe {
        (*req).addrinfo = list;
        (*req).retcode = retcode;
    }
    retcode
}

/// The worker's part of `uv_getaddrinfo`.
unsafe extern "C" fn run_getaddrinfo(req: *mut c_void) {
    // SAFETY: `uv_getaddrinfo` has filled in and submitted the request.
    unsafe {
        let req = req.cast::<uv_getaddrinfo_t>();
        let found = resolver::getaddrinfo(
            c_str((*req).hostname),
            c_str((*req).service),
            hints_of((*req).hints),
        );
        store_result(req, found);
    }
}

/// # Safety
///
/// As for [`work::done`].
pub(crate) unsafe fn getaddrinfo_done(req: *mut uv_getaddrinfo_t, status: c_int) {
    // SAFETY: the caller guarantees the request, which no worker uses any more.
    unsafe {
        free_copies(req);
        if status != 0 {
            (*req).retcode = Errno::EAI_CANCELED.code();
        }
        if let Some(cb) = (*req).cb {
            cb(req, (*req).retcode, (*req).addrinfo);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_getaddrinfo(
    loop_: *mut uv_loop_t,
    req: *mut uv_getaddrinfo_t,
    cb: uv_getaddrinfo_cb,
    node: *const c_char,
    service: *const c_char,
    hints: *const libc::addrinfo,
) -> c_int {
    if req.is_null() || (node.is_null() && service.is_null()) {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes a request, strings and hints and, with a callback, a loop of
    // its own; the request stays valid until the callback.
    unsafe {
        (*req).req.type_ = UV_GETADDRINFO;
        (*req).loop_ = loop_;
        (*req).cb = cb;
        (*req).addrinfo = ptr::null_mut();
        (*req).retcode = 0;
        let service = c_str(service);
        let host = match c_str(node).map(|node| HostName::new(node.to_bytes())) {
            None => None,
            Some(Ok(host)) => Some(host),
            Some(Err(error)) => return error.code(),
        };
        if cb.is_none() {
            let host = host.as_ref().map(HostName::as_c_str);
            return store_result(req, resolver::getaddrinfo(host, service, hints_of(hints)));
        }
        if let Err(error) = copy_arguments(req, host.as_ref(), service, hints) {
            return error.code();
        }
        let submitted = work::submit(loop_, req.cast(), WorkKind::SlowIo, run_getaddrinfo);
        if submitted != 0 {
            free_copies(req);
        }
        submitted
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_freeaddrinfo(list: *mut libc::addrinfo) {
    // SAFETY: the caller passes a list that it got from `uv_getaddrinfo`, and does not use it
    // again.
    drop(unsafe { Addresses::from_raw(list) });
}

/// How many bytes an address of this family has.
fn address_len(family: c_int) -> Result<usize, Errno> {
    match family {
        libc::AF_INET => Ok(size_of::<libc::sockaddr_in>()),
        libc::AF_INET6 => Ok(size_of::<libc::sockaddr_in6>()),
        _ => Err(Errno::EINVAL),
    }
}

/// The lookup of `uv_getnameinfo`, on the loop's thread or a worker's.
unsafe extern "C" fn run_getnameinfo(req: *mut c_void) {
    // SAFETY: `uv_getnameinfo` has filled in the request, which belongs to this function until it
    // returns.
    unsafe {
        let req = req.cast::<uv_getnameinfo_t>();
        let found = address_len(c_int::from((*req).storage.ss_family)).and_then(|len| {
            resolver::getnameinfo(
                &(*req).storage,
                len,
                (*req).flags,
                &mut (*req).host,
                &mut (*req).service,
            )
        });
        (*req).retcode = engine::code(found);
    }
}

/// # Safety
///
/// As for [`work::done`].
pub(crate) unsafe fn getnameinfo_done(req: *mut uv_getnameinfo_t, status: c_int) {
    // SAFETY: the caller guarantees the request, which no worker uses any more.
    unsafe {
        if status != 0 {
            (*req).retcode = Errno::EAI_CANCELED.code();
        }
        let (host, service) = match (*req).retcode {
            0 => (&raw const (*req).host, &raw const (*req).service),
            _ => (ptr::null(), ptr::null()),
        };
        if let Some(cb) = (*req).cb {
            cb(req, (*req).retcode, host.cast(), service.cast());
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_getnameinfo(
    loop_: *mut uv_loop_t,
    req: *mut uv_getnameinfo_t,
    cb: uv_getnameinfo_cb,
    addr: *const libc::sockaddr,
    flags: c_int,
) -> c_int {
    if req.is_null() || addr.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes a request, an address as long as its family says and, with
    // a callback, its own loop; the request stays valid until the callback.
    unsafe {
        let len = match address_len(c_int::from((*addr).sa_family)) {
            Ok(len) => len,
            Err(error) => return error.code(),
        };
        (&raw mut (*req).storage).write_bytes(0, 1);
        (&raw mut (*req).storage)
            .cast::<u8>()
            .copy_from_nonoverlapping(addr.cast(), len);
        (*req).req.type_ = UV_GETNAMEINFO;
        (*req).loop_ = loop_;
        (*req).cb = cb;
        (*req).flags = flags;
        (*req).retcode = 0;
        if cb.is_none() {
            run_getnameinfo(req.cast());
            return (*req).retcode;
        }
        work::submit(loop_, req.cast(), WorkKind::SlowIo, run_getnameinfo)
    }
}
