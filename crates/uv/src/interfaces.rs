//! The addresses of network interfaces.

use crate::alloc;
use crate::engine::code;
use crate::packed::Packed;
use blacklight_engine::Errno;
use blacklight_sys::interfaces::{self, InterfaceAddress, SocketAddress};
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

/// An address of either family; the first field tells which.
#[repr(C)]
#[derive(Clone, Copy)]
union AnyAddress {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
    bytes: [u8; 28],
}

/// An address of an interface.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_interface_address_t {
    name: *mut c_char,
    phys_addr: [u8; 6],
    is_internal: c_int,
    address: AnyAddress,
    netmask: AnyAddress,
}

impl From<Option<SocketAddress>> for AnyAddress {
    fn from(address: Option<SocketAddress>) -> AnyAddress {
        // Zeros follow a shorter address.
        let mut any = AnyAddress { bytes: [0; 28] };
        match address {
            Some(SocketAddress::V4(v4)) => any.v4 = v4,
            Some(SocketAddress::V6(v6)) => any.v6 = v6,
            None => {}
        }
        any
    }
}

fn pack(addresses: &[InterfaceAddress]) -> Result<*mut uv_interface_address_t, Errno> {
    if addresses.is_empty() {
        return Ok(null_mut());
    }
    let bytes = addresses.iter().map(|address| address.name.len() + 1).sum();
    let mut packed = Packed::new(addresses.len(), bytes)?;
    for address in addresses {
        let item = uv_interface_address_t {
            name: packed.text(&address.name),
            phys_addr: address.physical,
            is_internal: c_int::from(address.internal),
            address: Some(address.address).into(),
            netmask: address.netmask.into(),
        };
        packed.push(item);
    }
    Ok(packed.finish())
}

/// The caller's array is left empty on failure.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_interface_addresses(
    addresses: *mut *mut uv_interface_address_t,
    count: *mut c_int,
) -> c_int {
    if addresses.is_null() || count.is_null() {
        return Errno::EINVAL.code();
    }
    let found = interfaces::all().and_then(|found| Ok((pack(&found)?, found.len())));
    let (array, len) = found.unwrap_or((null_mut(), 0));
    // SAFETY: the caller passes room for both.
    unsafe {
        *addresses = array;
        *count = len as c_int;
    }
    code(found.map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_free_interface_addresses(
    addresses: *mut uv_interface_address_t,
    _count: c_int,
) {
    // SAFETY: the caller passes the array that `uv_interface_addresses` returned.
    unsafe { alloc::free(addresses.cast()) }
}
