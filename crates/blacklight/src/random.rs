//! Cryptographically secure random bytes.

use crate::work::OnPool;
use blacklight_engine::WorkKind;
use blacklight_sys::random;
use std::io;

/// Fills a buffer with random bytes. May block shortly after boot, until the kernel has gathered
/// enough entropy.
///
/// ```
/// let mut key = [0; 32];
/// blacklight::random(&mut key)?;
/// assert_ne!(key, [0; 32]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn random(buffer: &mut [u8]) -> io::Result<()> {
    Ok(random::fill_bytes(buffer)?)
}

/// Returns random bytes, generated on the current loop's thread pool.
///
/// ```
/// use blacklight::Loop;
///
/// let lp = Loop::new()?;
/// let key = lp.block_on(blacklight::random_bytes(32))?;
/// assert_eq!(key.len(), 32);
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn random_bytes(count: usize) -> io::Result<Vec<u8>> {
    OnPool::new(WorkKind::Cpu, move || {
        let mut bytes = vec![0; count];
        random(&mut bytes)?;
        Ok(bytes)
    })
    .await
}
