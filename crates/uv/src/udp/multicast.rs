//! Multicast: groups, their sources, and interfaces.

use crate::abi::uv_udp_t;
use crate::udp::with_socket;
use crate::{engine, text};
use blacklight_engine::{Errno, Group, Interface};
use blacklight_sys::inet;
use std::ffi::{CStr, c_char, c_int};
use std::net::Ipv4Addr;

const UV_LEAVE_GROUP: c_int = 0;
const UV_JOIN_GROUP: c_int = 1;

/// A multicast group as the program has written it. The group's address decides the family of all
/// the others.
struct Membership<'a> {
    group: &'a CStr,
    interface: Option<&'a CStr>,
    source: Option<&'a CStr>,
}

impl Membership<'_> {
    fn is_v6(&self) -> Result<bool, Errno> {
        match inet::parse_v4(self.group.to_bytes()) {
            Ok(_) => Ok(false),
            Err(_) => inet::parse_v6(self.group.to_bytes()).map(|_| true),
        }
    }

    fn resolve(&self) -> Result<Group, Errno> {
        let group = self.group.to_bytes();
        if self.is_v6()? {
            return Ok(Group::V6 {
                group: inet::parse_v6(group)?,
                interface: self.interface.map_or(Ok(0), interface_v6)?,
                source: self
                    .source
                    .map(|source| inet::parse_v6(source.to_bytes()))
                    .transpose()?,
            });
        }
        let interface = self
            .interface
            .map(|interface| inet::parse_v4(interface.to_bytes()));
        Ok(Group::V4 {
            group: inet::parse_v4(group)?,
            interface: interface.transpose()?.unwrap_or(Ipv4Addr::UNSPECIFIED),
            source: self
                .source
                .map(|source| inet::parse_v4(source.to_bytes()))
                .transpose()?,
        })
    }
}

/// The index of the interface in an IPv6 address's zone, or zero.
fn interface_v6(interface: &CStr) -> Result<u32, Errno> {
    inet::parse_v6(interface.to_bytes())?;
    Ok(inet::zone(interface).map_or(0, inet::interface_index))
}

/// A text that may be missing.
///
/// # Safety
///
/// `text` is null or a C string that stays as it is.
unsafe fn optional<'a>(text: *const c_char) -> Result<Option<&'a CStr>, Errno> {
    match text.is_null() {
        true => Ok(None),
        // SAFETY: the caller upholds the contract.
        false => unsafe { text::read(text) }.map(Some),
    }
}

/// # Safety
///
/// `udp` is an initialised handle.
unsafe fn set_membership(
    udp: *mut uv_udp_t,
    membership: Membership<'_>,
    action: c_int,
) -> Result<(), Errno> {
    let v6 = membership.is_v6()?;
    if let Some(source) = membership.source.map(CStr::to_bytes) {
        match v6 {
            true => inet::parse_v6(source).map(drop)?,
            false => inet::parse_v4(source).map(drop)?,
        }
    }
    // SAFETY: the caller guarantees the handle.
    unsafe {
        with_socket(udp, |engine, key| {
            engine.udp_prepare_membership(key, v6)?;
            let group = membership.resolve()?;
            let join = match action {
                UV_JOIN_GROUP => true,
                UV_LEAVE_GROUP => false,
                _ => return Err(Errno::EINVAL),
            };
            engine.udp_set_membership(key, group, join)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_set_membership(
    udp: *mut uv_udp_t,
    multicast_addr: *const c_char,
    interface_addr: *const c_char,
    membership: c_int,
) -> c_int {
    // SAFETY: the caller passes a handle and C strings, the second of which may be null.
    unsafe {
        let texts =
            text::read(multicast_addr).and_then(|group| Ok((group, optional(interface_addr)?)));
        engine::code(texts.and_then(|(group, interface)| {
            let place = Membership {
                group,
                interface,
                source: None,
            };
            set_membership(udp, place, membership)
        }))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_set_source_membership(
    udp: *mut uv_udp_t,
    multicast_addr: *const c_char,
    interface_addr: *const c_char,
    source_addr: *const c_char,
    membership: c_int,
) -> c_int {
    // SAFETY: the caller passes a handle and C strings, the second of which may be null.
    unsafe {
        let texts = text::read(multicast_addr)
            .and_then(|group| Ok((group, optional(interface_addr)?, text::read(source_addr)?)));
        engine::code(texts.and_then(|(group, interface, source)| {
            let place = Membership {
                group,
                interface,
                source: Some(source),
            };
            set_membership(udp, place, membership)
        }))
    }
}

/// Without an address the kernel chooses the interface.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_set_multicast_interface(
    udp: *mut uv_udp_t,
    interface_addr: *const c_char,
) -> c_int {
    // SAFETY: the caller passes a handle, and a C string or null.
    unsafe {
        let interface = optional(interface_addr).and_then(|interface| {
            let Some(interface) = interface else {
                return Ok(None);
            };
            Ok(Some(match inet::parse_v4(interface.to_bytes()) {
                Ok(address) => Interface::V4(address),
                Err(_) => Interface::V6(interface_v6(interface)?),
            }))
        });
        engine::code(interface.and_then(|interface| {
            engine::with_handle(udp.cast(), |engine, key| {
                engine.udp_set_multicast_interface(key, interface)
            })
        }))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_set_multicast_loop(udp: *mut uv_udp_t, on: c_int) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe {
        engine::code(engine::with_handle(udp.cast(), |engine, key| {
            engine.udp_set_multicast_loop(key, on)
        }))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_udp_set_multicast_ttl(udp: *mut uv_udp_t, ttl: c_int) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe {
        engine::code(engine::with_handle(udp.cast(), |engine, key| {
            engine.udp_set_multicast_ttl(key, ttl)
        }))
    }
}
