//! What the tests of the C face share.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::ffi::{c_char, c_int};
use std::process::{Command, Output};

/// A function that fills a buffer whose size it is told, and tells the length.
pub(crate) type Fill = unsafe extern "C" fn(*mut c_char, *mut usize) -> c_int;

/// What a function did with a buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Filled {
    pub(crate) status: c_int,
    /// What was left where the size had been.
    pub(crate) size: usize,
    /// The text up to its NUL, if the function succeeded.
    pub(crate) text: String,
}

/// What stands in a buffer before and, unless there is a bug, after what was written.
const UNTOUCHED: u8 = b'#';

/// Calls a function with room for `size` bytes, and checks that it keeps to them.
pub(crate) fn fill(function: Fill, size: usize) -> Filled {
    let mut buffer = vec![UNTOUCHED; size + 16];
    let mut left = size;
    // SAFETY: there is as much room as we say, and more.
    let status = unsafe { function(buffer.as_mut_ptr().cast(), &mut left) };
    let beyond = &buffer[size..];
    assert!(beyond.iter().all(|&byte| byte == UNTOUCHED), "wrote beyond");
    let text = match status {
        0 => {
            let text = std::ffi::CStr::from_bytes_until_nul(&buffer).expect("a NUL at the end");
            assert_eq!(text.count_bytes(), left);
            text.to_str().expect("UTF-8").to_owned()
        }
        _ => {
            assert!(
                buffer.iter().all(|&byte| byte == UNTOUCHED),
                "wrote in spite of {status}"
            );
            String::new()
        }
    };
    Filled {
        status,
        size: left,
        text,
    }
}

/// Checks what all such functions do with bad buffers, and returns the text.
pub(crate) fn check_size_rules(function: Fill) -> String {
    let good = fill(function, 4096);
    assert_eq!(good.status, 0);
    let len = good.text.len();
    assert_eq!(fill(function, len + 1), good);
    for size in 1..=len {
        let short = fill(function, size);
        assert_eq!((short.status, short.size), (-libc::ENOBUFS, len + 1));
    }
    check_null(function);
    good.text
}

/// Checks what such functions do without a buffer, or with one of no size.
pub(crate) fn check_null(function: Fill) {
    let mut size = 100;
    let mut buffer = [0; 100];
    // SAFETY: null is what the functions are to refuse.
    unsafe {
        assert_eq!(function(std::ptr::null_mut(), &mut size), -libc::EINVAL);
        assert_eq!(
            function(buffer.as_mut_ptr(), std::ptr::null_mut()),
            -libc::EINVAL
        );
    }
    assert_eq!(size, 100);
    assert_eq!(fill(function, 0).status, -libc::EINVAL);
}

/// Runs `body` in a process of its own, which is this program once more, running only the
/// test `name`. To be called by that test.
pub(crate) fn in_child(name: &str, body: impl FnOnce()) -> Output {
    const CHILD: &str = "BLACKLIGHT_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        body();
        std::process::exit(0);
    }
    Command::new(std::env::current_exe().expect("a test has a program"))
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("the program starts again")
}

/// As [`in_child`], and fails with what the child said if it fails.
pub(crate) fn must_succeed_in_child(name: &str, body: impl FnOnce()) {
    let output = in_child(name, body);
    assert!(
        output.status.success(),
        "{}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
