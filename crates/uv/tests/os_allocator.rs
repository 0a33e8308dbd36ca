//! Memory that C callers get comes from the allocator that they chose. One test, as a process
//! has one allocator.

#[path = "support/allocator.rs"]
mod allocator;

use allocator::{exhausted, free, outstanding};
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use uv as _;

type Fill = unsafe extern "C" fn(*mut *mut c_void, *mut c_int) -> c_int;
type Release = unsafe extern "C" fn(*mut c_void, c_int);
/// The structs of users, groups and libraries are no larger.
type Room = [usize; 5];

unsafe extern "C" {
    fn uv_cpu_info(infos: *mut *mut c_void, count: *mut c_int) -> c_int;
    fn uv_free_cpu_info(infos: *mut c_void, count: c_int);
    fn uv_interface_addresses(array: *mut *mut c_void, count: *mut c_int) -> c_int;
    fn uv_free_interface_addresses(array: *mut c_void, count: c_int);
    fn uv_os_environ(items: *mut *mut c_void, count: *mut c_int) -> c_int;
    fn uv_os_free_environ(items: *mut c_void, count: c_int);
    fn uv_os_get_passwd(passwd: *mut Room) -> c_int;
    fn uv_os_free_passwd(passwd: *mut Room);
    fn uv_os_get_group(group: *mut Room, gid: u32) -> c_int;
    fn uv_os_free_group(group: *mut Room);
    fn uv_dlopen(filename: *const c_char, lib: *mut Room) -> c_int;
    fn uv_dlclose(lib: *mut Room);
    fn uv_dlsym(lib: *mut Room, name: *const c_char, ptr: *mut *mut c_void) -> c_int;
    fn uv_dlerror(lib: *const Room) -> *const c_char;
    fn uv_utf16_to_wtf8(
        utf16: *const u16,
        len: isize,
        wtf8: *mut *mut c_char,
        wtf8_len: *mut usize,
    ) -> c_int;
    fn uv_setup_args(argc: c_int, argv: *mut *mut c_char) -> *mut *mut c_char;
    fn uv_get_process_title(buffer: *mut c_char, size: usize) -> c_int;
}

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
    let functions: [(Fill, Release); 3] = [
        (uv_cpu_info, uv_free_cpu_info),
        (uv_interface_addresses, uv_free_interface_addresses),
        (uv_os_environ, uv_os_free_environ),
    ];
    for (fill, release) in functions {
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
}

fn structs() {
    let mut room: Room = [0; 5];
    // SAFETY: there is room for a user or a group.
    unsafe {
        let status = exhausted(|| uv_os_get_passwd(&mut room));
        assert_eq!(status, -libc::ENOMEM);
        assert_eq!(uv_os_get_passwd(&mut room), 0);
        assert!(outstanding() > 0);
        uv_os_free_passwd(&mut room);
        assert_eq!(outstanding(), 0);
        let status = exhausted(|| uv_os_get_group(&mut room, 0));
        assert_eq!(status, -libc::ENOMEM);
        assert_eq!(uv_os_get_group(&mut room, 0), 0);
        assert!(outstanding() > 0);
        uv_os_free_group(&mut room);
        assert_eq!(outstanding(), 0);
    }
}

fn libraries() {
    let mut room = MaybeUninit::<Room>::uninit();
    let lib = room.as_mut_ptr();
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
        assert_eq!(uv_dlopen(c"libc.so.6".as_ptr(), lib), 0);
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
