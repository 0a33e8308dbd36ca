//! Cryptographically secure random bytes: from a system call, or from the devices where the call is
//! missing. <https://man7.org/linux/man-pages/man4/random.4.html>

use crate::{Errno, platform};
use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Set when the system call was refused.
static NO_CALL: AtomicBool = AtomicBool::new(false);

/// Fills the whole of `buffer`. Blocks until the kernel has gathered enough entropy after boot.
pub fn fill(buffer: &mut [MaybeUninit<u8>]) -> Result<(), Errno> {
    if NO_CALL.load(Relaxed) {
        return fill_by_device(buffer);
    }
    match platform::random::fill(buffer) {
        // An old kernel, or a sandbox that refuses the call.
        Err(Errno::ENOSYS | Errno::EPERM) => {
            NO_CALL.store(true, Relaxed);
            fill_by_device(buffer)
        }
        filled => filled,
    }
}

/// As [`fill`], for an initialised buffer.
pub fn fill_bytes(buffer: &mut [u8]) -> Result<(), Errno> {
    let room = ptr::from_mut(buffer) as *mut [MaybeUninit<u8>];
    // SAFETY: the buffer is borrowed exclusively, and `fill` only writes initialised bytes.
    fill(unsafe { &mut *room })
}

/// `/dev/urandom` does not wait for entropy, so this first reads a byte from `/dev/random`, which
/// does.
fn fill_by_device(buffer: &mut [MaybeUninit<u8>]) -> Result<(), Errno> {
    static SEEDED: AtomicBool = AtomicBool::new(false);
    if !SEEDED.load(Relaxed) {
        File::open("/dev/random")?.read_exact(&mut [0])?;
        SEEDED.store(true, Relaxed);
    }
    let mut device = File::open("/dev/urandom")?;
    let mut chunk = [0; 256];
    for part in buffer.chunks_mut(chunk.len()) {
        let chunk = &mut chunk[..part.len()];
        device.read_exact(chunk)?;
        for (to, from) in part.iter_mut().zip(chunk) {
            to.write(*from);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(by: fn(&mut [MaybeUninit<u8>]) -> Result<(), Errno>, len: usize) -> Vec<u8> {
        let mut buffer = vec![MaybeUninit::new(0); len];
        by(&mut buffer).unwrap();
        // SAFETY: all of the buffer was initialised above.
        buffer
            .iter()
            .map(|byte| unsafe { byte.assume_init() })
            .collect()
    }

    #[test]
    fn bytes_are_replaced() {
        let mut bytes = [0; 256];
        fill_bytes(&mut bytes).unwrap();
        let before = bytes;
        fill_bytes(&mut bytes[..128]).unwrap();
        assert_ne!(bytes[..128], before[..128]);
        assert_eq!(bytes[128..], before[128..]);
        fill_bytes(&mut []).unwrap();
    }

    #[test]
    fn all_of_the_buffer_is_filled() {
        for by in [fill, platform::random::fill, fill_by_device] {
            assert_eq!(filled(by, 0), []);
            let bytes = filled(by, 10_000);
            // A tail of zeros, or a repeated byte, would show up here.
            for part in bytes.chunks(1000) {
                assert!(part.iter().collect::<std::collections::HashSet<_>>().len() > 150);
            }
        }
    }
}
