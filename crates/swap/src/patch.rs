//! Writes jumps into the code of an object. [`apply`] writes all of them and returns `Ok`, or
//! none and returns `Err`.
//!
//! A jump of five bytes reaches 2 GiB, and our library is usually farther away. So each jump
//! leads to a slot in a page near the object, and the slot jumps to the target. Pages are
//! writable or executable, never both, so no other thread may run code of the object meanwhile.
//! That holds before `main` and before `dlopen` has returned.

use crate::entry::JUMP_LENGTH;
use crate::image::{Image, PAGE};
use core::{ops, ptr};
use libc::{c_int, c_void};
use std::sync::Mutex;

/// Ranges at most this far apart are made writable together, because every further range costs
/// two system calls.
const GAP: usize = 16 * PAGE;

/// The length of a slot: `jmp *2(%rip)`, two bytes of padding, and the address.
const SLOT: usize = 16;

/// The maximum distance of slots from the object, so that jumps from all of it reach them.
const REACH: usize = 1 << 30;

/// Why no jump was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There is no free memory near the object.
    NoMemoryNear,
    /// The system forbids this process to change code.
    Forbidden,
}

/// A jump to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jump {
    /// The address of the five bytes.
    pub(crate) at: usize,
    pub(crate) to: usize,
}

/// Pages that are made writable together.
struct Range {
    start: usize,
    end: usize,
    /// The protection to restore.
    protection: c_int,
}

/// Writes all jumps into an object, or none.
pub(crate) fn apply(image: &Image, mut jumps: Vec<Jump>) -> Result<(), Failure> {
    jumps.sort_unstable_by_key(|jump| jump.at);
    let ranges = ranges(image, &jumps).ok_or(Failure::Forbidden)?;
    let slots = Slots::near(image, &jumps)?;
    for (done, range) in ranges.iter().enumerate() {
        if !range.protect(libc::PROT_READ | libc::PROT_WRITE) {
            for range in &ranges[..done] {
                range.protect(range.protection);
            }
            slots.unmap();
            return Err(Failure::Forbidden);
        }
    }
    for (index, jump) in jumps.iter().enumerate() {
        let distance = slots.address(index).wrapping_sub(jump.at + JUMP_LENGTH);
        let [a, b, c, d, ..] = distance.to_le_bytes();
        let bytes = [0xe9, a, b, c, d];
        // SAFETY: the page was just made writable, the bytes belong to a function that is
        // replaced (`entry`), and no thread runs it meanwhile (see above).
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), jump.at as *mut u8, JUMP_LENGTH) };
    }
    let restored = ranges.iter().all(|range| range.protect(range.protection));
    if !restored {
        // A security policy may forbid executing modified pages. Then the original pages are
        // mapped again.
        for range in &ranges {
            image.map_again(range.start, range.end, range.protection);
        }
        slots.unmap();
        return Err(Failure::Forbidden);
    }
    slots.keep();
    Ok(())
}

/// Overwrites pointers of an object, even where they are write-protected.
pub(crate) fn write_pointers(image: &Image, pointers: &[(usize, usize)]) {
    for &(at, value) in pointers {
        let range = Range {
            start: at & !(PAGE - 1),
            end: (at + size_of::<usize>()).next_multiple_of(PAGE),
            protection: libc::PROT_READ,
        };
        let is_protected = image.is_relro(at);
        if is_protected && !range.protect(libc::PROT_READ | libc::PROT_WRITE) {
            continue;
        }
        // SAFETY: the object's relocations say that the linker writes an address there.
        unsafe { ptr::write_unaligned(at as *mut usize, value) };
        if is_protected {
            range.protect(range.protection);
        }
    }
}

/// The pages that jumps are written to, merged where gaps are small.
fn ranges(image: &Image, jumps: &[Jump]) -> Option<Vec<Range>> {
    let mut ranges: Vec<Range> = Vec::new();
    for jump in jumps {
        let (protection, segment_start, segment_end) = image.segment_of(jump.at)?;
        let start = jump.at & !(PAGE - 1);
        let end = (jump.at + JUMP_LENGTH).next_multiple_of(PAGE);
        match ranges.last_mut() {
            Some(last)
                if last.start >= segment_start & !(PAGE - 1)
                    && end <= segment_end.next_multiple_of(PAGE)
                    && start <= last.end + GAP =>
            {
                last.end = last.end.max(end);
            }
            _ => ranges.push(Range {
                start,
                end,
                protection,
            }),
        }
    }
    Some(ranges)
}

impl Range {
    fn protect(&self, protection: c_int) -> bool {
        let start = self.start as *mut c_void;
        // SAFETY: the pages belong to a loaded object; the caller ensures that no thread needs
        // the access that is removed.
        unsafe { libc::mprotect(start, self.end - self.start, protection) == 0 }
    }
}

/// Pages of slots in use. They stay mapped when a module is closed and are reused when it is
/// opened again; otherwise a module that is opened repeatedly would use up the memory near it.
static KEPT: Mutex<Vec<(usize, Vec<u8>)>> = Mutex::new(Vec::new());

/// Jumps to arbitrary addresses, in pages near an object.
struct Slots {
    start: usize,
    bytes: Vec<u8>,
    /// Whether the pages come from [`KEPT`].
    is_kept: bool,
}

impl Slots {
    fn near(image: &Image, jumps: &[Jump]) -> Result<Slots, Failure> {
        let mut bytes = Vec::with_capacity(jumps.len() * SLOT);
        for jump in jumps {
            bytes.extend([0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc]);
            bytes.extend(jump.to.to_le_bytes());
        }
        let length = bytes.len().next_multiple_of(PAGE);
        let reachable = reachable(image, length);
        if let Ok(kept) = KEPT.lock() {
            let fits =
                |(start, kept): &&(usize, Vec<u8>)| reachable.contains(start) && *kept == bytes;
            if let Some((start, _)) = kept.iter().find(fits) {
                return Ok(Slots {
                    start: *start,
                    bytes,
                    is_kept: true,
                });
            }
        }
        let start = memory_near(image, length).ok_or(Failure::NoMemoryNear)?;
        // SAFETY: the pages were just mapped, and are long enough.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start as *mut u8, bytes.len()) };
        let pages = Range {
            start,
            end: start + length,
            protection: 0,
        };
        let slots = Slots {
            start,
            bytes,
            is_kept: false,
        };
        if pages.protect(libc::PROT_READ | libc::PROT_EXEC) {
            return Ok(slots);
        }
        slots.unmap();
        Err(Failure::Forbidden)
    }

    fn address(&self, index: usize) -> usize {
        self.start + index * SLOT
    }

    /// Records the pages as in use.
    fn keep(self) {
        if let (false, Ok(mut kept)) = (self.is_kept, KEPT.lock()) {
            kept.push((self.start, self.bytes));
        }
    }

    fn unmap(self) {
        if !self.is_kept {
            let length = self.bytes.len().next_multiple_of(PAGE);
            // SAFETY: the pages were mapped by `near`, and no jump leads to them.
            unsafe { libc::munmap(self.start as *mut c_void, length) };
        }
    }
}

/// The addresses at which slots of this length are reachable from all of the object.
fn reachable(image: &Image, length: usize) -> ops::RangeInclusive<usize> {
    let (start, end) = image.extent();
    let lowest = end.saturating_sub(REACH).max(PAGE * 16);
    let highest = ((start & !(PAGE - 1)) + REACH).saturating_sub(length);
    lowest..=highest
}

/// Maps pages that jumps from all of the object reach, preferably below it, where the heap does
/// not grow.
fn memory_near(image: &Image, length: usize) -> Option<usize> {
    let (start, end) = image.extent();
    let start = start & !(PAGE - 1);
    let reachable = reachable(image, length);
    let mut step = PAGE * 16;
    // Tries addresses below and above, each pair farther away than the one before.
    for _ in 0..14 {
        let below = start.checked_sub(length + step);
        let above = Some(end.next_multiple_of(PAGE) + step * 64);
        for place in [below, above].into_iter().flatten() {
            if reachable.contains(&place) && map_at(place, length) {
                return Some(place);
            }
        }
        step *= 2;
    }
    None
}

fn map_at(place: usize, length: usize) -> bool {
    let wanted = place as *mut c_void;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: without MAP_FIXED, no existing mapping is replaced. Old kernels take the address as
    // a hint, so the result is compared with it.
    let got = unsafe { libc::mmap(wanted, length, rights, flags, -1, 0) };
    if got == wanted {
        return true;
    }
    if got != libc::MAP_FAILED {
        // SAFETY: these pages were just mapped, and nothing refers to them.
        unsafe { libc::munmap(got, length) };
    }
    false
}
