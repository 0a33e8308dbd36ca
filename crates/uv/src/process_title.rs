//! The title that `ps` shows for the process.
//!
//! Linux shows the current contents of the memory that held the arguments of `main` when the
//! process started, so a title is written there. [`uv_setup_args`] learns that memory's address,
//! and returns a copy of the arguments for the program to use instead.

use crate::{alloc, text};
use blacklight_engine::Errno;
use blacklight_sys::fork_lock::ForkLocked;
use std::ffi::{CStr, c_char, c_int, c_void};

/// The memory that held the arguments.
struct Title {
    memory: *mut c_char,
    /// The length of the present title, which a NUL follows.
    len: usize,
    /// How much memory there is, always more than `len`.
    capacity: usize,
    /// The copy that the program uses as its arguments.
    copy: *mut c_void,
}

// SAFETY: after `uv_setup_args` has received it, the memory is accessed under the lock below only,
// from any thread.
unsafe impl Send for Title {}

/// `None` until the program calls `uv_setup_args`. A forked child inherits its parent's.
static TITLE: ForkLocked<Option<Title>> = ForkLocked::new(None);

/// The size of the arguments' memory. The kernel lays the arguments out one after the other; an
/// argument that lies elsewhere is not ours to overwrite.
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
        // SAFETY: the caller upholds the contract.
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
        // SAFETY: the caller guarantees them.
        unsafe { CStr::from_ptr(argument) }.to_bytes()
    };
    let texts = || arguments.iter().map(text);
    let pointers = (arguments.len() + 1) * size_of::<*mut c_char>();
    let bytes: usize = texts().map(|text| text.len() + 1).sum();
    let copy = alloc::malloc(pointers + bytes).cast::<*mut c_char>();
    if copy.is_null() {
        return copy;
    }
    // SAFETY: the allocation above has this size.
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

/// Without memory for a copy, returns the arguments themselves, and the process has no title.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_setup_args(argc: c_int, argv: *mut *mut c_char) -> *mut *mut c_char {
    let argc = usize::try_from(argc).unwrap_or(0);
    if argc == 0 {
        return argv;
    }
    // SAFETY: the caller passes the arguments of `main`.
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
    // SAFETY: the title has `len` bytes, and fits into the caller's buffer.
    unsafe {
        let text = std::slice::from_raw_parts(title.memory.cast(), title.len);
        text::write(buffer, text);
    }
    0
}

/// The title also becomes the name of the calling thread, which some tools show instead.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_set_process_title(new: *const c_char) -> c_int {
    // SAFETY: the caller passes a C string.
    let new = match unsafe { text::read(new) } {
        Ok(new) => new,
        Err(error) => return error.code(),
    };
    let mut title = TITLE.lock();
    let Some(title) = title.as_mut() else {
        return Errno::ENOBUFS.code();
    };
    // Failing to name the thread does not fail the call.
    let _ = blacklight_sys::thread::set_name(new);
    title.len = new.count_bytes().min(title.capacity - 1);
    // SAFETY: the memory has this capacity. The new title may overlap the old one.
    unsafe {
        title.memory.copy_from(new.as_ptr(), title.len);
        let rest = title.memory.add(title.len);
        rest.write_bytes(0, title.capacity - title.len);
    }
    0
}

/// Frees the copy of the arguments, when the library shuts down.
///
/// # Safety
///
/// The program does not use the arguments that `uv_setup_args` returned any more, as libuv requires
/// of a caller of `uv_library_shutdown`.
pub unsafe fn release() {
    // The program's allocator runs without the lock.
    let title = TITLE.lock().take();
    if let Some(title) = title {
        // SAFETY: the copy is from our allocator; the caller guarantees that it is unused.
        unsafe { alloc::free(title.copy) };
    }
}
