//! Numbers of `<netdb.h>` that the libc crate does not have.

use std::ffi::c_int;

pub(crate) const EAI_ADDRFAMILY: c_int = -9;
pub(crate) const EAI_CANCELED: c_int = -101;

/// Room for the longest name of a host, with the NUL.
pub const NI_MAXHOST: usize = match cfg!(target_env = "musl") {
    true => 255,
    false => 1025,
};
/// Room for the longest name of a service, with the NUL.
pub const NI_MAXSERV: usize = 32;
