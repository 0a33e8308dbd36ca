//! The environment. One test, as the environment has one user at a time.

#[path = "support/system.rs"]
mod system;

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use system::{check_null, check_size_rules, fill};
use uv as _;
use uv_binding::*;

fn set(name: &CStr, value: &CStr) -> c_int {
    // SAFETY: this program has one thread that uses the environment.
    unsafe { uv_os_setenv(name.as_ptr(), value.as_ptr()) }
}

fn unset(name: &CStr) -> c_int {
    // SAFETY: as above.
    unsafe { uv_os_unsetenv(name.as_ptr()) }
}

unsafe extern "C" fn get_our_variable(buffer: *mut c_char, size: *mut usize) -> c_int {
    // SAFETY: as above; the caller vouches for its buffer.
    unsafe { uv_os_getenv(c"BLACKLIGHT_TEST".as_ptr(), buffer, size) }
}

unsafe extern "C" fn get_nothing(buffer: *mut c_char, size: *mut usize) -> c_int {
    // SAFETY: null is what is to be refused.
    unsafe { uv_os_getenv(std::ptr::null(), buffer, size) }
}

/// All variables, or what the function said.
fn all() -> HashMap<CString, CString> {
    let (mut items, mut count) = (std::ptr::null_mut(), -1);
    // SAFETY: there is room for both, and as many items as it says.
    unsafe {
        assert_eq!(uv_os_environ(&mut items, &mut count), 0);
        assert!(!items.is_null(), "an array of nothing has an address");
        let found = std::slice::from_raw_parts(items, count as usize)
            .iter()
            .map(|item| {
                let (name, value) = (CStr::from_ptr(item.name), CStr::from_ptr(item.value));
                (name.to_owned(), value.to_owned())
            });
        let found = found.collect();
        uv_os_free_environ(items, count);
        found
    }
}

#[test]
fn the_environment() {
    variables();
    home();
    temporary();
    odd_entries();
}

fn variables() {
    let ours = c"BLACKLIGHT_TEST";
    assert_eq!(fill(get_our_variable, 100).status, -libc::ENOENT);
    assert_eq!(set(ours, c"value"), 0);
    assert_eq!(check_size_rules(get_our_variable), "value");
    assert_eq!(set(ours, c""), 0);
    assert_eq!(fill(get_our_variable, 1).text, "");
    assert_eq!(set(ours, c"a=b"), 0);
    assert_eq!(all()[ours], c"a=b".to_owned());
    assert_eq!(unset(ours), 0);
    assert_eq!(unset(ours), 0);
    assert_eq!(fill(get_our_variable, 100).status, -libc::ENOENT);
    assert!(!all().contains_key(ours));

    for bad in [c"", c"a=b"] {
        assert_eq!(set(bad, c"x"), -libc::EINVAL);
        assert_eq!(unset(bad), -libc::EINVAL);
    }
    assert_eq!(fill(get_nothing, 100).status, -libc::EINVAL);
    // SAFETY: null is what is to be refused.
    unsafe {
        assert_eq!(uv_os_setenv(ours.as_ptr(), std::ptr::null()), -libc::EINVAL);
        assert_eq!(uv_os_setenv(std::ptr::null(), ours.as_ptr()), -libc::EINVAL);
        assert_eq!(uv_os_unsetenv(std::ptr::null()), -libc::EINVAL);
        let (mut items, mut count) = (std::ptr::null_mut(), 0);
        let null = std::ptr::null_mut();
        assert_eq!(uv_os_environ(null, &mut count), -libc::EINVAL);
        assert_eq!(
            uv_os_environ(&mut items, std::ptr::null_mut()),
            -libc::EINVAL
        );
    }
}

fn home() {
    assert_eq!(set(c"HOME", c"/some/where/"), 0);
    assert_eq!(check_size_rules(uv_os_homedir), "/some/where/");
    assert_eq!(set(c"HOME", c""), 0);
    assert_eq!(fill(uv_os_homedir, 100).text, "");
    assert_eq!(unset(c"HOME"), 0);
    // SAFETY: it has no arguments, and no other thread looks up users.
    let expected = unsafe {
        let user = libc::getpwuid(libc::geteuid());
        assert!(!user.is_null(), "whoever runs the tests is a user");
        CStr::from_ptr((*user).pw_dir).to_str().unwrap().to_owned()
    };
    assert_eq!(check_size_rules(uv_os_homedir), expected);
}

fn temporary() {
    let names = [c"TMPDIR", c"TMP", c"TEMP", c"TEMPDIR"];
    for name in names {
        assert_eq!(unset(name), 0);
    }
    assert_eq!(check_size_rules(uv_os_tmpdir), "/tmp");
    for name in names.iter().rev() {
        let value = CString::new(format!("/{}", name.to_str().unwrap())).unwrap();
        assert_eq!(set(name, &value), 0);
        assert_eq!(fill(uv_os_tmpdir, 100).text, value.to_str().unwrap());
    }
    check_null(uv_os_tmpdir);
    for (value, expected) in [
        (c"/a/", "/a"),
        (c"/a//", "/a/"),
        (c"//", "/"),
        (c"/", "/"),
        (c"", ""),
    ] {
        assert_eq!(set(c"TMPDIR", value), 0);
        assert_eq!(fill(uv_os_tmpdir, 100).text, expected);
    }
    // The room asked for counts with the slash.
    assert_eq!(set(c"TMPDIR", c"/a/"), 0);
    let short = fill(uv_os_tmpdir, 3);
    assert_eq!((short.status, short.size), (-libc::ENOBUFS, 4));
}

unsafe extern "C" {
    static mut environ: *mut *mut std::ffi::c_char;
}

/// What a program may put into its environment without asking anybody.
fn odd_entries() {
    let entries = [c"A=1", c"no equals sign", c"=C=2", c"", c"D="];
    let mut pointers: Vec<_> = entries
        .iter()
        .map(|entry| entry.as_ptr().cast_mut())
        .collect();
    pointers.push(std::ptr::null_mut());
    // SAFETY: the array lives until the old environment is back.
    let found = unsafe {
        let old = environ;
        environ = pointers.as_mut_ptr();
        let found = all();
        environ = std::ptr::null_mut();
        assert!(all().is_empty());
        environ = old;
        found
    };
    let expected = [(c"A", c"1"), (c"", c"C=2"), (c"D", c"")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(found, HashMap::from(expected));
}
