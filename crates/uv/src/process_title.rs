//! The title that `ps` shows for the process.
//!
//! Linux shows the memory that held the arguments of `main` when the process started, whatever is
//! in it now, so that is where a title is written. [`uv_setup_args`] is what tells us where it is;
//! it gives the program a copy of the arguments to use instead.

use crate::{alloc, text};
use blacklight_engine::Errno;
use blacklight_sys::fork_lock::ForkLocked;
use std::ffi::{CStr, c_char, c_int, c_void};

/// The memory that the arguments were in.
struct Title {
    memory: *mut c_char,
    /// The length of the present title, which a NUL follows.
    len: usize,
    /// How much memory there is, always more than `len`.
    capacity: usize,
    /// What the program uses as its arguments now.
    copy: *mut c_void,
}

// SAFETY: once it was handed to `uv_setup_args`, the memory is read and written under the
// lock below only, from any thread.
unsafe impl Send for Title {}

/// `None` until the program has shown us its arguments. A child goes on with its parent's.
static TITLE: ForkLocked<Option<Title>> = ForkLocked::new(None);

/// How much memory the arguments take. The kernel puts them one after the other; what a
/// program has put elsewhere is not ours to write to.
///
/// # Safety
///
/// `arguments` are C strings.
unsafe fn contiguous_size(arguments: &[*mut c_char]) -> usize {
    let start = arguments[0];
    let mut end = start;
    for &argument in arguments {
        if argument != end {
            break;
        }
        // SAFETY: the caller vouches for it.
        end = unsafe { argument.add(CStr::from_ptr(argument).count_bytes() + 1) };
    }
    end.addr() - start.addr()
}

/// Copies the arguments into one piece of memory: first the pointers, then the texts.
///
/// # Safety
///
/// `arguments` are C strings.
unsafe fn copy(arguments: &[*mut c_char]) -> *mut *mut c_char {
    let text = |&argument: &*mut c_char| {
        // SAFETY: the caller vouches for them.
        unsafe { CStr::from_ptr(argument) }.to_bytes()
    };
    let texts = || arguments.iter().map(text);
    let pointers = (arguments.len() + 1) * size_of::<*mut c_char>();
    let bytes: usize = texts().map(|text| text.len() + 1).sum();
    let copy = alloc::malloc(pointers + bytes).cast::<*mut c_char>();
    if copy.is_null() {
        return copy;
    }
    // SAFETY: that is how much room we asked for.
    unsafe {
        let mut room = copy.byte_add(pointers).cast::<c_char>();
        for (index, text) in texts().enumerate() {
            copy.add(index).write(room);
            text::write(room, text);
            room = room.add(text.len() + 1);
        }
        copy.add(arguments.len()).write(std::ptr::null_mut());
    }
    copy
}

/// If there is no memory for a copy, the arguments stay what they are, and without a title.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_setup_args(argc: c_int, argv: *mut *mut c_char) -> *mut *mut c_char {
    let argc = usize::try_from(argc).unwrap_or(0);
    if argc == 0 {
        return argv;
    }
    // SAFETY: the caller gives us the arguments of `main`.
    unsafe {
        let arguments = std::slice::from_raw_parts(argv, argc);
        let copy = copy(arguments);
        if copy.is_null() {
            return argv;
        }
        let title = Title {
            memory: arguments[0],
            len: CStr::from_ptr(arguments[0]).count_bytes(),
            capacity: contiguous_size(arguments),
            copy: copy.cast(),
        };
        *TITLE.lock() = Some(title);
        copy
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_get_process_title(buffer: *mut c_char, size: usize) -> c_int {
    if buffer.is_null() || size == 0 {
        return Errno::EINVAL.code();
    }
    let title = TITLE.lock();
    let Some(title) = title.as_ref().filter(|title| size > title.len) else {
        return Errno::ENOBUFS.code();
    };
    // SAFETY: the title is that long and fits into the caller's buffer.
    unsafe {
        let text = std::slice::from_raw_parts(title.memory.cast(), title.len);
        text::write(buffer, text);
    }
    0
}

/// The title also becomes the name of the calling thread, which some tools show instead.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_set_process_title(new: *const c_char) -> c_int {
    // SAFETY: the caller gives us a C string.
    let new = match unsafe { text::read(new) } {
        Ok(new) => new,
        Err(error) => return error.code(),
    };
    let mut title = TITLE.lock();
    let Some(title) = title.as_mut() else {
        return Errno::ENOBUFS.code();
    };
    // A thread has a name whatever happens; it is not worth an error here.
    let _ = blacklight_sys::thread::set_name(new);
    title.len = new.count_bytes().min(title.capacity - 1);
    // SAFETY: the memory has that capacity. The new title may be a part of the old one.
    unsafe {
        title.memory.copy_from(new.as_ptr(), title.len);
        let rest = title.memory.add(title.len);
        rest.write_bytes(0, title.capacity - title.len);
    }
    0
}

/// Gives the copy of the arguments back, at the end of the library's life.
///
/// # Safety
///
/// The program does not use the arguments that `uv_setup_args` has returned any more, which
/// `uv_library_shutdown` may take for granted.
pub unsafe fn release() {
    // The program's allocator is called without the lock.
    let title = TITLE.lock().take();
    if let Some(title) = title {
        // SAFETY: the copy is from our allocator; the caller vouches for the rest.
        unsafe { alloc::free(title.copy) };
    }
}
