//! Writes jumps into the code of an object. [`apply`] writes all of them and returns `Ok`, or
//! none and returns `Err`.
//!
//! A jump reaches 2 GiB on one machine and 128 MiB on another, and our library is usually farther
//! away. So each jump leads to a slot in a page near the object, and the slot jumps to the target. Pages are
//! writable or executable, never both, so no other thread may run code of the object meanwhile.
//! That holds before `main`, if there are no threads, and for an object that is new before `dlopen`
//! has returned, whatever threads there are: none of them has got hold of it.

use crate::end;
use crate::guarded::Guarded;
use crate::image::{Image, page};
use crate::machine::{self, JUMP_LENGTH, REACH, SLOT};
use core::{ops, ptr};
use libc::{c_int, c_void};

/// Ranges at most this far apart are made writable together, because every further range costs
/// two system calls.
const GAP: usize = 1 << 16;

/// A multiple of every size of page, and the lowest address that programs may map.
const STEP: usize = 1 << 16;

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
    /// The address of the code that it replaces.
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
    if jumps.is_empty() {
        return Ok(());
    }
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
        // SAFETY: the bytes lie in a function that is replaced (`machine::place`).
        let old = unsafe { *(jump.at as *const [u8; 4]) };
        let code = machine::jump(old, jump.at, slots.address(index));
        // SAFETY: the page was just made writable, the bytes belong to a function that is
        // replaced, and no thread runs it meanwhile (see above).
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), jump.at as *mut u8, code.len()) };
        machine::sync_code(jump.at, code.len());
    }
    let restored = ranges.iter().all(|range| range.protect(range.protection));
    if !restored {
        // A security policy may forbid executing modified pages. Then the original pages are
        // mapped again.
        let is_original = |range: &Range| image.map_again(range.start, range.end, range.protection);
        if !ranges.iter().all(is_original) {
            end(
                "the system has let this program's code be changed and does not let it be \
                 restored; run it without blacklight",
            );
        }
        slots.unmap();
        return Err(Failure::Forbidden);
    }
    slots.keep();
    Ok(())
}

/// Overwrites pointers of an object, even where they are write-protected.
pub(crate) fn write_pointers(image: &Image, pointers: &[(usize, usize)]) {
    let page = page();
    for &(at, value) in pointers {
        let range = Range {
            start: at & !(page - 1),
            end: (at + size_of::<usize>()).next_multiple_of(page),
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
    let page = page();
    let besides = image.protection_of_code();
    let mut ranges: Vec<Range> = Vec::new();
    for jump in jumps {
        let (protection, segment_start, segment_end) = image.segment_of(jump.at)?;
        let start = jump.at & !(page - 1);
        let end = (jump.at + JUMP_LENGTH).min(segment_end);
        let end = end.next_multiple_of(page);
        match ranges.last_mut() {
            Some(last)
                if last.start >= segment_start & !(page - 1)
                    && end <= segment_end.next_multiple_of(page)
                    && start <= last.end + GAP =>
            {
                last.end = last.end.max(end);
            }
            _ => ranges.push(Range {
                start,
                end,
                protection: protection | besides,
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
pub(crate) static KEPT: Guarded<Vec<(usize, Vec<u8>)>> = Guarded::new(Vec::new());

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
            bytes.extend(machine::slot(jump.to));
        }
        let length = bytes.len().next_multiple_of(page());
        let reachable = reachable(jumps, length);
        let kept = KEPT.with(|kept| {
            let fits =
                |(start, kept): &&(usize, Vec<u8>)| reachable.contains(start) && *kept == bytes;
            kept.iter().find(fits).map(|(start, _)| *start)
        });
        if let Some(start) = kept {
            return Ok(Slots {
                start,
                bytes,
                is_kept: true,
            });
        }
        let start = memory_near(image, reachable, length).ok_or(Failure::NoMemoryNear)?;
        // SAFETY: the pages were just mapped, and are long enough.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start as *mut u8, bytes.len()) };
        machine::sync_code(start, bytes.len());
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
        if !self.is_kept {
            KEPT.with(|kept| kept.push((self.start, self.bytes)));
        }
    }

    fn unmap(self) {
        if !self.is_kept {
            let length = self.bytes.len().next_multiple_of(page());
            // SAFETY: the pages were mapped by `near`, and no jump leads to them.
            unsafe { libc::munmap(self.start as *mut c_void, length) };
        }
    }
}

/// The addresses at which slots of this length are reachable from all of the jumps, which are sorted.
fn reachable(jumps: &[Jump], length: usize) -> ops::RangeInclusive<usize> {
    let first = jumps.first().map_or(0, |jump| jump.at);
    let last = jumps.last().map_or(0, |jump| jump.at + JUMP_LENGTH);
    let highest = (first + REACH).saturating_sub(length) & !(page() - 1);
    last.saturating_sub(REACH).max(STEP)..=highest
}

/// Maps pages within a range, preferably below the object, where the heap does not grow.
fn memory_near(image: &Image, range: ops::RangeInclusive<usize>, length: usize) -> Option<usize> {
    let page = page();
    let (start, end) = image.extent();
    let start = start & !(page - 1);
    let mut step = STEP;
    // Tries addresses below and above, each pair farther away than the one before.
    for _ in 0..14 {
        let below = start.checked_sub(length + step);
        let above = Some(end.next_multiple_of(page) + step * 64);
        for place in [below, above].into_iter().flatten() {
            if range.contains(&place) && map_at(place, length) {
                return Some(place);
            }
        }
        step *= 2;
    }
    None
}

/// Whether there is a jump at this address of an object.
pub(crate) fn is_jump(image: &Image, at: usize) -> bool {
    let code = image.code(at..at + JUMP_LENGTH);
    let Some(slot) = code.and_then(|code| machine::jump_target(code, at)) else {
        return false;
    };
    KEPT.with(|kept| {
        let mut kept = kept.iter();
        kept.any(|(start, bytes)| (*start..start + bytes.len()).contains(&slot))
    })
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

#[cfg(test)]
mod tests {
    use super::{JUMP_LENGTH, Jump, REACH, SLOT, STEP, reachable};

    fn jumps(places: &[usize]) -> Vec<Jump> {
        places.iter().map(|at| Jump { at: *at, to: 0 }).collect()
    }

    #[test]
    fn all_slots_are_within_reach_of_all_jumps() {
        let (first, last) = (3 * REACH, 3 * REACH + 0x12_3458);
        let length = 0x3000;
        let places = reachable(&jumps(&[first, last]), length);
        for place in [*places.start(), *places.end() + length - SLOT] {
            for jump in [first, first + JUMP_LENGTH, last, last + JUMP_LENGTH] {
                assert!(place.abs_diff(jump) <= REACH, "{place:x} from {jump:x}");
            }
        }
    }

    #[test]
    fn there_is_room_below_a_program_at_a_low_address() {
        let places = reachable(&jumps(&[0x82_0000, 0x31f_0000]), 0x2000);
        assert_eq!(*places.start(), STEP);
        assert!(places.contains(&0x3e_0000));
    }

    #[test]
    fn jumps_that_are_too_far_apart_reach_nothing_in_common() {
        assert!(reachable(&jumps(&[3 * REACH, 6 * REACH]), 0x1000).is_empty());
    }
}
