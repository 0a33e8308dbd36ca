//! The C library, as one that programs can load.

/// Its name for the dynamic linker.
pub(crate) const NAME: &std::ffi::CStr = match cfg!(target_env = "musl") {
    true => c"libc.so",
    false => c"libc.so.6",
};
