//! Random bytes from the kernel: <https://man7.org/linux/man-pages/man2/getrandom.2.html>.

use crate::Errno;
use std::mem::MaybeUninit;

/// Fills the whole of `buffer`. `ENOSYS` before Linux 3.17.
pub(crate) fn fill(mut buffer: &mut [MaybeUninit<u8>]) -> Result<(), Errno> {
    while !buffer.is_empty() {
        // SAFETY: the slice is writable for its length.
        let filled = unsafe { libc::getrandom(buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        match usize::try_from(filled) {
            Ok(0) => return Err(Errno::EIO),
            Ok(filled) => buffer = &mut buffer[filled..],
            Err(_) => match Errno::last() {
                Errno::EINTR => {}
                error => return Err(error),
            },
        }
    }
    Ok(())
}
