//! The title of the process. One test, as a process has one title.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering::Relaxed};
use uv as _;
use uv_binding::*;

static ARGC: AtomicI32 = AtomicI32::new(0);
static ARGV: AtomicPtr<*mut c_char> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn keep_arguments(argc: c_int, argv: *mut *mut c_char) {
    // musl passes nothing; the arguments lie before the environment, and a null between.
    #[cfg(target_env = "musl")]
    let (argc, argv) = {
        let _ = (argc, argv);
        unsafe extern "C" {
            static environ: *mut *mut c_char;
        }
        let count = command_line().iter().filter(|&&byte| byte == 0).count();
        // SAFETY: the process has just begun, and nobody has changed either.
        (count as c_int, unsafe { environ.sub(count + 1) })
    };
    ARGC.store(argc, Relaxed);
    ARGV.store(argv, Relaxed);
}

/// The C library passes the arguments of `main`, which Rust does not show, to initialisers.
#[used]
// SAFETY: the section holds pointers to such functions.
#[unsafe(link_section = ".init_array")]
static KEEP_ARGUMENTS: extern "C" fn(c_int, *mut *mut c_char) = keep_arguments;

fn get(size: usize) -> Result<String, c_int> {
    let mut buffer = vec![b'#'; size + 8];
    // SAFETY: there is that much room and more.
    let status = unsafe { uv_get_process_title(buffer.as_mut_ptr().cast(), size) };
    assert!(buffer[size..].iter().all(|&byte| byte == b'#'), "beyond");
    match status {
        0 => {
            let text = CStr::from_bytes_until_nul(&buffer).unwrap();
            Ok(text.to_str().unwrap().to_owned())
        }
        status => Err(status),
    }
}

fn set(title: &CStr) -> c_int {
    // SAFETY: the title ends in a NUL.
    unsafe { uv_set_process_title(title.as_ptr()) }
}

/// What others see as the arguments of this process.
fn command_line() -> Vec<u8> {
    std::fs::read("/proc/self/cmdline").unwrap()
}

fn thread_name() -> String {
    let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
    name.trim_end().to_owned()
}

#[test]
fn the_title() {
    let (argc, argv) = (ARGC.load(Relaxed), ARGV.load(Relaxed));
    let before = command_line();
    assert!(argc > 0);
    nobody_has_shown_us_the_arguments(argv);

    let argument = |index| {
        // SAFETY: these are the arguments of main.
        unsafe { CStr::from_ptr(*argv.add(index)) }
            .to_bytes()
            .to_vec()
    };
    let old: Vec<Vec<u8>> = (0..argc as usize).map(argument).collect();
    // SAFETY: these are the arguments of this process.
    let copy = unsafe { uv_setup_args(argc, argv) };
    assert_ne!(copy, argv);
    assert_eq!(get(4096).unwrap().as_bytes(), old[0]);
    assert_eq!(get(old[0].len()), Err(-libc::ENOBUFS));
    assert!(get(old[0].len() + 1).is_ok());

    let capacity = before.len() - 1;
    assert!(capacity > 20, "the path of a test is longer than that");
    assert_eq!(set(c"a new title"), 0);
    assert_eq!(get(4096).unwrap(), "a new title");
    assert_eq!(thread_name(), "a new title");
    let mut expected = b"a new title".to_vec();
    expected.resize(before.len(), 0);
    assert_eq!(command_line(), expected);

    let long = std::ffi::CString::new("x".repeat(capacity + 100)).unwrap();
    assert_eq!(set(&long), 0);
    assert_eq!(get(8192).unwrap(), "x".repeat(capacity));
    assert_eq!(command_line()[capacity], 0);
    // SAFETY: the title is longer than that, and ends in a NUL.
    let status = unsafe { uv_set_process_title((*argv).add(1)) };
    assert_eq!(status, 0, "a title may be overwritten while it is read");
    assert_eq!(get(8192).unwrap(), "x".repeat(capacity - 1));
    assert_eq!(set(c""), 0);
    assert_eq!(get(1).unwrap(), "");

    // The program's copy of its arguments is not affected.
    for (index, old) in old.iter().enumerate() {
        // SAFETY: there are as many as before.
        let argument = unsafe { CStr::from_ptr(*copy.add(index)) };
        assert_eq!(argument.to_bytes(), old);
    }
    // SAFETY: null follows the last.
    assert!(unsafe { *copy.add(argc as usize) }.is_null());
    a_child_of_a_fork_while_another_thread_sets_the_title_can_read_it();
    arguments_that_are_not_in_a_row();
}

fn nobody_has_shown_us_the_arguments(argv: *mut *mut c_char) {
    assert_eq!(get(4096), Err(-libc::ENOBUFS));
    assert_eq!(set(c"title"), -libc::ENOBUFS);
    assert_ne!(thread_name(), "title");
    for argc in [0, -1] {
        // SAFETY: without arguments, nothing is looked at.
        assert_eq!(unsafe { uv_setup_args(argc, argv) }, argv);
    }
    assert_eq!(get(4096), Err(-libc::ENOBUFS));
    // SAFETY: null is what is to be refused.
    unsafe {
        assert_eq!(
            uv_get_process_title(std::ptr::null_mut(), 10),
            -libc::EINVAL
        );
        assert_eq!(uv_set_process_title(std::ptr::null()), -libc::EINVAL);
    }
    assert_eq!(get(0), Err(-libc::EINVAL));
}

fn a_child_of_a_fork_while_another_thread_sets_the_title_can_read_it() {
    let ended = AtomicBool::new(false);
    let lived = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Relaxed) {
                assert_eq!(set(c"one title"), 0);
                assert_eq!(set(c"and another"), 0);
            }
        });
        let lived = (0..200).all(|_| {
            // SAFETY: the child reads the title and leaves without running destructors.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    libc::alarm(60);
                    let mut title = [0; 100];
                    let read = uv_get_process_title(title.as_mut_ptr(), title.len());
                    libc::_exit(i32::from(read != 0));
                }
                let mut status = -1;
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
                status == 0
            }
        });
        ended.store(true, Relaxed);
        lived
    });
    assert!(lived, "a child hangs");
}

/// What is between them is not ours to write to.
fn arguments_that_are_not_in_a_row() {
    let mut memory = *b"one\0two\0precious\0three\0";
    let start = memory.as_mut_ptr().cast::<c_char>();
    // SAFETY: all are within the memory.
    let mut argv = unsafe { [start, start.add(4), start.add(17)] };
    // SAFETY: there are three, and the memory outlives the use of the title.
    unsafe { uv_setup_args(3, argv.as_mut_ptr()) };
    assert_eq!(get(100).unwrap(), "one");
    assert_eq!(set(c"a long title"), 0);
    assert_eq!(get(100).unwrap(), "a long ");
    assert_eq!(&memory[8..], b"precious\0three\0");
}
