//! Mapping parts of a record into memory: the only unsafe code of this crate.

use rustix::fd::BorrowedFd;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// What may lie in a mapped file: atomic numbers only, for which any bytes are valid.
///
/// # Safety
///
/// The type consists of atomic integers, has no padding that matters, and its alignment is at most
/// a page.
pub(crate) unsafe trait Mapped: Sync + 'static {}

// SAFETY: these structs of the layout consist of atomic integers and arrays and structs of them.
unsafe impl Mapped for crate::layout::Page {}
// SAFETY: as above.
unsafe impl Mapped for crate::layout::Body {}
// SAFETY: as above.
unsafe impl Mapped for crate::layout::LoopSegment {}
// SAFETY: as above.
unsafe impl Mapped for crate::layout::HandleSegment {}
// SAFETY: as above.
unsafe impl Mapped for crate::layout::OriginSegment {}
// SAFETY: as above.
unsafe impl Mapped for crate::layout::ThreadSegment {}

/// The size of a type in whole pages of any supported machine.
pub(crate) const fn pages<T>() -> u64 {
    (size_of::<T>() as u64).next_multiple_of(65536)
}

/// How often a signal may interrupt the system before memory counts as refused.
const TRIES: usize = 64;

/// How long a file of this process may be. rustix takes it for granted that the system tells, which
/// a sandbox may not.
fn file_size_limit() -> Result<u64, Errno> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: there is room for the limit.
    match unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } {
        0 => Ok(limit.rlim_cur),
        _ => Err(Errno::PERM),
    }
}

/// Gives the file memory.
fn allocate(file: BorrowedFd<'_>, offset: u64, length: u64) -> Result<(), Errno> {
    let end = offset.checked_add(length).ok_or(Errno::FBIG)?;
    // Beyond this limit the system does not only refuse: its signal, SIGXFSZ, ends the process.
    if end > file_size_limit()? {
        return Err(Errno::FBIG);
    }
    let mut result = Err(Errno::INTR);
    for _ in 0..TRIES {
        result = fallocate(file, FallocateFlags::empty(), offset, length);
        if result != Err(Errno::INTR) {
            break;
        }
    }
    result
}

/// Gives the file memory at `offset` and maps it. The memory is allocated first: a page
/// of a full file system that is only touched would end the process with SIGBUS.
///
/// The mapping stays for the life of the process.
pub(crate) fn map<T: Mapped>(file: BorrowedFd<'_>, offset: u64) -> Result<&'static T, Errno> {
    let length = size_of::<T>();
    allocate(file, offset, length as u64)?;
    // SAFETY: the kernel chooses the address, so no other mapping is replaced. The mapping is never
    // removed, is aligned to a page, and `T` accepts any bytes, which other processes may change:
    // all accesses are atomic. Only the owner can shrink the file, which this library never does.
    unsafe {
        let address = mmap(
            std::ptr::null_mut(),
            length,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
            file,
            offset,
        )?;
        Ok(&*address.cast::<T>())
    }
}

/// A number that is 1 in this process and 0 in each that is forked from it, even by a call of which
/// nobody hears. Where the system has no such memory, it is 1 in those as well.
pub(crate) fn own_word() -> &'static AtomicU32 {
    static ANYWHERE: AtomicU32 = AtomicU32::new(1);
    const LENGTH: usize = 4096;
    let flags = MapFlags::PRIVATE;
    // SAFETY: the kernel chooses the address, so no other mapping is replaced. The mapping is
    // removed only before anybody knows of it, and a child finds zeros there, which are an atomic
    // number too.
    unsafe {
        let page = mmap_anonymous(
            std::ptr::null_mut(),
            LENGTH,
            ProtFlags::READ | ProtFlags::WRITE,
            flags,
        );
        let Ok(page) = page else {
            return &ANYWHERE;
        };
        if madvise(page, LENGTH, Advice::LinuxWipeOnFork).is_err() {
            // It stays unused if it cannot be removed.
            let _ = munmap(page, LENGTH);
            return &ANYWHERE;
        }
        let word = &*page.cast::<AtomicU32>();
        word.store(1, Relaxed);
        word
    }
}
