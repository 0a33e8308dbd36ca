//! The original library, loaded beside ours.
//!
//! It is opened for its own symbols only, and the program must not offer it ours: a call from
//! one of its functions to another would end up in our library otherwise.

use crate::api::{Api, OURS};
use std::ffi::{CStr, CString};
use std::fmt::Debug;
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

/// The environment variable with the path of the original `libuv.so.1`.
pub const VARIABLE: &str = "BLACKLIGHT_ORIGINAL";

/// The original's functions, if it was named.
pub fn original() -> Option<&'static Api> {
    static ORIGINAL: OnceLock<Option<Api>> = OnceLock::new();
    ORIGINAL.get_or_init(load).as_ref()
}

fn load() -> Option<Api> {
    let path = std::env::var_os(VARIABLE)?;
    let path = CString::new(path.into_vec()).expect("a path has no NUL");
    // SAFETY: the name ends in a NUL, and what it may name is not followed.
    let offered = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"uv_run".as_ptr()) };
    assert!(
        offered.is_null(),
        "the program offers its uv_run to the original"
    );
    // SAFETY: the path ends in a NUL, and loading the original runs nothing that needs more.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!library.is_null(), "cannot load {path:?}");
    let symbol = |name: &CStr| {
        // SAFETY: the library stays open for ever.
        let address = unsafe { libc::dlsym(library, name.as_ptr()) };
        assert!(!address.is_null(), "the original has no {name:?}");
        address
    };
    // SAFETY: the library is libuv.
    Some(unsafe { Api::by_name(symbol) })
}

/// Does the same with both libraries, checks that the outcome is the same, and returns it.
pub fn compare<T: PartialEq + Debug>(run: impl FnMut(&'static Api) -> T) -> T {
    compare_for(&(), run)
}

/// As [`compare`], and shows what was done if the outcomes differ.
pub fn compare_for<T: PartialEq + Debug>(
    what: &impl Debug,
    mut run: impl FnMut(&'static Api) -> T,
) -> T {
    let ours = run(&OURS);
    if let Some(original) = original() {
        let theirs = run(original);
        assert!(
            ours == theirs,
            "the libraries differ\n for {what:?}\n ours: {ours:?}\n original: {theirs:?}"
        );
    }
    ours
}
