//! Directories: scanned as a whole, or opened and read in pieces.

use super::abi::{Op, uv_dir_t, uv_dirent_t, uv_fs_cb, uv_fs_t};
use super::request::Call;
use crate::abi::uv_loop_t;
use crate::alloc;
use blacklight_engine::Errno;
use blacklight_sys::fs::dir::{Dir, EntryType, Listing};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};

/// `uv_dirent_type_t`.
fn type_code(type_: EntryType) -> c_int {
    match type_ {
        EntryType::Unknown => 0,
        EntryType::File => 1,
        EntryType::Dir => 2,
        EntryType::Link => 3,
        EntryType::Fifo => 4,
        EntryType::Socket => 5,
        EntryType::Char => 6,
        EntryType::Block => 7,
    }
}

/// The result of a scan, in one piece of memory: this header, the entries, and the names that the
/// entries point to.
#[repr(C)]
struct Scan {
    count: usize,
    /// The next entry to hand out.
    next: usize,
    entries: [uv_dirent_t; 0],
}

/// Copies a listing into memory of the program's allocator.
fn scan_of(listing: &Listing) -> Result<*mut Scan, Errno> {
    let count = listing.len();
    let head = size_of::<Scan>() + count * size_of::<uv_dirent_t>();
    let memory = alloc::malloc(head + listing.names().len()).cast::<Scan>();
    if memory.is_null() {
        return Err(Errno::ENOMEM);
    }
    // SAFETY: there is room for the head, `count` entries and all names, in this order.
    unsafe {
        (*memory).count = count;
        (*memory).next = 0;
        let names = memory.byte_add(head).cast::<u8>();
        names.copy_from_nonoverlapping(listing.names().as_ptr(), listing.names().len());
        let entries = (&raw mut (*memory).entries).cast::<uv_dirent_t>();
        for (index, &(at, type_)) in listing.entries().iter().enumerate() {
            entries.add(index).write(uv_dirent_t {
                name: names.add(at).cast(),
                type_: type_code(type_),
            });
        }
    }
    Ok(memory)
}

/// Scans a directory for a request. A directory without entries allocates nothing.
///
/// # Safety
///
/// The request is complete, and no other thread touches it meanwhile.
pub(super) unsafe fn scan(req: *mut uv_fs_t, path: &CStr) -> Result<isize, Errno> {
    let listing = Listing::read(path)?;
    if !listing.is_empty() {
        let scan = scan_of(&listing)?;
        // SAFETY: the caller upholds the contract.
        unsafe { (*req).ptr = scan.cast() };
    }
    Ok(listing.len() as isize)
}

/// Frees the memory that [`scan`] allocated; null is allowed.
///
/// # Safety
///
/// `scan` came from [`scan`] and is not used again.
pub(super) unsafe fn release_listing(scan: *mut c_void) {
    // SAFETY: the caller upholds the contract.
    unsafe { alloc::free(scan) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_scandir_next(req: *mut uv_fs_t, ent: *mut uv_dirent_t) -> c_int {
    // SAFETY: the caller passes a request that has scanned, and room for an entry.
    unsafe {
        // A failed scan reports its error again.
        if (*req).result < 0 {
            return (*req).result as c_int;
        }
        let scan = (*req).ptr.cast::<Scan>();
        if scan.is_null() {
            return Errno::EOF.code();
        }
        let next = (*scan).next;
        if next == (*scan).count {
            release_listing(scan.cast());
            (*req).ptr = null_mut();
            return Errno::EOF.code();
        }
        let entries = (&raw const (*scan).entries).cast::<uv_dirent_t>();
        ent.write(entries.add(next).read());
        (*scan).next = next + 1;
    }
    0
}

/// Opens a directory for `uv_fs_readdir`.
pub(super) fn open(path: &CStr) -> Result<*mut c_void, Errno> {
    let dir = Dir::open(path)?;
    let made = alloc::boxed(uv_dir_t {
        dirents: null_mut(),
        nentries: 0,
        reserved: [null_mut(); 4],
        dir: null_mut(),
    })?;
    // SAFETY: `boxed` has just made the directory.
    unsafe { (*made).dir = dir.into_raw() };
    Ok(made.cast())
}

/// Fills the program's array with the next entries. If one fails, those before it are freed: a
/// request reports either a count or an error.
///
/// # Safety
///
/// The directory is open, no other thread uses it, and the program's array has the size that it
/// states.
pub(super) unsafe fn read(dir: *mut uv_dir_t) -> Result<isize, Errno> {
    // SAFETY: the caller upholds the contract. The stream stays the directory's.
    unsafe {
        let stream = Dir::from_raw((*dir).dir).ok_or(Errno::EBADF)?;
        let mut stream = ManuallyDrop::new(stream);
        let mut filled = 0;
        let result = loop {
            if filled == (*dir).nentries {
                break Ok(());
            }
            match read_one(&mut stream) {
                Ok(None) => break Ok(()),
                Ok(Some(entry)) => (*dir).dirents.add(filled).write(entry),
                Err(error) => break Err(error),
            }
            filled += 1;
        };
        if result.is_err() {
            release_names(dir, filled as isize);
        }
        result.map(|()| filled as isize)
    }
}

fn read_one(stream: &mut Dir) -> Result<Option<uv_dirent_t>, Errno> {
    let Some((name, type_)) = stream.read()? else {
        return Ok(None);
    };
    let name = name.to_bytes_with_nul();
    let copy = alloc::malloc(name.len()).cast::<u8>();
    if copy.is_null() {
        return Err(Errno::ENOMEM);
    }
    // SAFETY: there is room for the name.
    unsafe { copy.copy_from_nonoverlapping(name.as_ptr(), name.len()) };
    Ok(Some(uv_dirent_t {
        name: copy.cast(),
        type_: type_code(type_),
    }))
}

/// Frees the names in the first `count` entries of the program's array.
///
/// # Safety
///
/// The directory is null or open, and the last read filled that many entries.
pub(super) unsafe fn release_names(dir: *mut uv_dir_t, count: isize) {
    if dir.is_null() {
        return;
    }
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the caller upholds the contract.
        unsafe {
            let entry = (*dir).dirents.add(index);
            alloc::free((*entry).name.cast_mut().cast());
            (*entry).name = null();
        }
    }
}

/// Closes a directory and frees it.
///
/// # Safety
///
/// The directory is open, and not used again.
pub(super) unsafe fn close(dir: *mut uv_dir_t) -> Result<(), Errno> {
    // SAFETY: the caller upholds the contract.
    unsafe {
        let closed = Dir::from_raw((*dir).dir).map_or(Ok(()), Dir::close);
        alloc::free(dir.cast());
        closed
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_scandir(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    _flags: c_int,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Scandir, path, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_opendir(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Opendir, path, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_readdir(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    dir: *mut uv_dir_t,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe {
        let is_valid = !dir.is_null() && !(*dir).dirents.is_null();
        call.on_ptr(Op::Readdir, dir.cast(), is_valid)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_closedir(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    dir: *mut uv_dir_t,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_ptr(Op::Closedir, dir.cast(), !dir.is_null()) }
}
