//! Memory that C callers get comes from the allocator that they chose. One test, as a process
//! has one allocator.

#[path = "support/allocator.rs"]
mod allocator;
#[path = "support/c_library.rs"]
mod c_library;

use allocator::{exhausted, free, outstanding};
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use uv as _;
use uv_binding::*;

#[test]
fn memory_comes_from_the_allocator_and_goes_back() {
    allocator::install();
    arrays();
    structs();
    libraries();
    texts();
    arguments();
}

fn arrays() {
    array(uv_cpu_info, uv_free_cpu_info);
    array(uv_interface_addresses, uv_free_interface_addresses);
    array(uv_os_environ, uv_os_free_environ);
}

/// An array that one function makes and the other takes back.
fn array<T>(
    fill: unsafe extern "C" fn(*mut *mut T, *mut c_int) -> c_int,
    release: unsafe extern "C" fn(*mut T, c_int),
) {
    let (mut array, mut count) = (null_mut(), -1);
    // SAFETY: there is room for both.
    unsafe {
        let status = exhausted(|| fill(&mut array, &mut count));
        assert_eq!(status, -libc::ENOMEM);
        assert_eq!(fill(&mut array, &mut count), 0);
        assert!(count > 0);
        assert!(outstanding() > 0);
        release(array, count);
    }
    assert_eq!(outstanding(), 0);
}

fn structs() {
    let (mut user, mut group) = (garbage(), garbage());
    // SAFETY: there is room for a user or a group.
    unsafe {
        let status = exhausted(|| uv_os_get_passwd(&mut user));
        assert_eq!(status, -libc::ENOMEM);
        assert_eq!(uv_os_get_passwd(&mut user), 0);
        assert!(outstanding() > 0);
        uv_os_free_passwd(&mut user);
        assert_eq!(outstanding(), 0);
        let status = exhausted(|| uv_os_get_group(&mut group, 0));
        assert_eq!(status, -libc::ENOMEM);
        assert_eq!(uv_os_get_group(&mut group, 0), 0);
        assert!(outstanding() > 0);
        uv_os_free_group(&mut group);
        assert_eq!(outstanding(), 0);
    }
}

fn libraries() {
    let mut library = garbage();
    let lib: *mut uv_lib_t = &mut library;
    let name = c"/no/such/library.so".as_ptr();
    // SAFETY: the name ends in a NUL, and there is room for a library.
    unsafe {
        assert_eq!(exhausted(|| uv_dlopen(name, lib)), -1);
        assert_eq!(std::ffi::CStr::from_ptr(uv_dlerror(lib)), c"no error");
        assert_eq!(uv_dlopen(name, lib), -1);
        assert_eq!(outstanding(), 1);
        uv_dlclose(lib);
        assert_eq!(outstanding(), 0);
        // A new message takes the place of the old one.
        assert_eq!(uv_dlopen(c_library::NAME.as_ptr(), lib), 0);
        let mut address = null_mut();
        for name in [c"no_such_symbol", c"nor_such_a_one"] {
            assert_eq!(uv_dlsym(lib, name.as_ptr(), &mut address), -1);
            assert_eq!(outstanding(), 1);
        }
        uv_dlclose(lib);
    }
    assert_eq!(outstanding(), 0);
}

fn texts() {
    let (mut memory, mut len) = (null_mut(), 0);
    let text = [u16::from(b'a'), 0];
    // SAFETY: the text ends in a NUL, and there is room for both.
    unsafe {
        let mut convert = || uv_utf16_to_wtf8(text.as_ptr(), -1, &mut memory, &mut len);
        assert_eq!(exhausted(&mut convert), -libc::ENOMEM);
        assert_eq!(convert(), 0);
        assert_eq!(outstanding(), 1);
        free(memory.cast());
    }
    assert_eq!(outstanding(), 0);
}

fn arguments() {
    let mut memory = *b"one\0two\0";
    let start = memory.as_mut_ptr().cast::<c_char>();
    let mut buffer = [0; 100];
    // SAFETY: both arguments are in the memory, which outlives the test's use of the title.
    unsafe {
        let mut argv = [start, start.add(4), null_mut()];
        let argv = argv.as_mut_ptr();
        // Without memory for a copy, the arguments are left to the program.
        assert_eq!(exhausted(|| uv_setup_args(2, argv)), argv);
        let title = uv_get_process_title(buffer.as_mut_ptr(), buffer.len());
        assert_eq!(title, -libc::ENOBUFS);
        assert_ne!(uv_setup_args(2, argv), argv);
        assert_eq!(outstanding(), 1);
    }
}
