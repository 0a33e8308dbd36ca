//! What differs between C libraries in the limits of a process.

/// The type of the names of limits.
#[cfg(target_env = "musl")]
pub(crate) type Resource = std::ffi::c_int;
#[cfg(not(target_env = "musl"))]
pub(crate) type Resource = libc::__rlimit_resource_t;
