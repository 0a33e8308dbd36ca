//! The calls that have led to a place in the program.
//!
//! Compiled code has tables by which its frames are found. Code that a program has compiled at run time has none; such code
//! keeps frame pointers, and from the first of its frames on these are followed, inside of the thread's own stack.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The unwinder's view of a frame.
#[repr(C)]
struct Context([u8; 0]);

type Visit = unsafe extern "C" fn(*mut Context, *mut c_void) -> c_int;

unsafe extern "C" {
    fn _Unwind_Backtrace(visit: Visit, data: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
    fn _Unwind_GetGR(context: *mut Context, register: c_int) -> usize;
}

const GO_ON: c_int = 0;
const END: c_int = 5;

/// The number of the frame pointer among the registers, where its chain is known.
#[cfg(target_arch = "x86_64")]
const FRAME_POINTER: Option<c_int> = Some(6);
#[cfg(target_arch = "aarch64")]
const FRAME_POINTER: Option<c_int> = Some(29);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const FRAME_POINTER: Option<c_int> = None;

/// The bits of a saved return address that are the address. On ARM those above may hold a signature,
/// which tables tell the unwinder to remove, and nobody else.
const ADDRESS: usize = match cfg!(target_arch = "aarch64") {
    true => (1 << 48) - 1,
    false => usize::MAX,
};

/// What has been found so far.
struct Found<'a> {
    frames: &'a mut [u64],
    count: usize,
    /// The frame pointer in the outermost frame that was found.
    frame_pointer: usize,
}

impl Found<'_> {
    /// Adds the code address before which a call returns. Returns whether there is room for another.
    fn add(&mut self, return_address: usize) -> bool {
        if let Some(slot) = self.frames.get_mut(self.count) {
            // The call lies before the address to which it returns.
            *slot = return_address as u64 - 1;
            self.count += 1;
        }
        self.count < self.frames.len()
    }
}

/// Fills `frames` with the code addresses of the calls that have led here, the innermost first, and returns how many there are.
pub fn capture(frames: &mut [u64]) -> usize {
    let mut found = Found {
        frames,
        count: 0,
        frame_pointer: 0,
    };
    // SAFETY: the unwinder calls `visit` with the pointer given, before it returns.
    unsafe { _Unwind_Backtrace(visit, (&raw mut found).cast()) };
    let above = (&raw const found) as usize;
    // SAFETY: the words between this frame and the end of this thread's stack are mapped and readable.
    unsafe { follow_frame_pointers(&mut found, above..stack_end()) };
    found.count
}

/// # Safety
///
/// `data` points to a [`Found`], and `context` is valid for this call.
unsafe extern "C" fn visit(context: *mut Context, data: *mut c_void) -> c_int {
    // SAFETY: the caller upholds the contract.
    let (found, address) = unsafe { (&mut *data.cast::<Found<'_>>(), _Unwind_GetIP(context)) };
    if address == 0 {
        return END;
    }
    if let Some(register) = FRAME_POINTER {
        // SAFETY: the register exists on this machine.
        found.frame_pointer = unsafe { _Unwind_GetGR(context, register) };
    }
    match found.add(address) {
        true => GO_ON,
        false => END,
    }
}

/// Goes on where the tables have ended, as long as the frame pointers lead up the stack.
///
/// # Safety
///
/// The words whose addresses are greater than the start of `stack` and less than its end can be read.
unsafe fn follow_frame_pointers(found: &mut Found<'_>, stack: Range<usize>) {
    let mut at = found.frame_pointer;
    let mut below = stack.start;
    // A frame pointer points to the one of its caller, and the return address lies behind it.
    while at > below && at < stack.end.saturating_sub(15) && at.is_multiple_of(8) {
        // SAFETY: the caller promises that both words, which lie in the stack, can be read.
        let [next, address] = unsafe { *(at as *const [usize; 2]) };
        let address = address & ADDRESS;
        if address == 0 || !found.add(address) {
            return;
        }
        (below, at) = (at, next);
    }
}

/// The highest address of this thread's stack; 0 if it is not known.
fn stack_end() -> usize {
    std::thread_local!(static KNOWN: Cell<Option<usize>> = const { Cell::new(None) });
    if let Some(end) = KNOWN.get() {
        return end;
    }
    let mut attributes = MaybeUninit::uninit();
    let (mut low, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the variables have room for what is asked, and the attributes are destroyed after use.
    let is_known = unsafe {
        libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) == 0 && {
            let asked = libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut size);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            asked == 0
        }
    };
    let end = if is_known { low as usize + size } else { 0 };
    KNOWN.set(Some(end));
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn inner(frames: &mut [u64]) -> usize {
        std::hint::black_box(capture(frames))
    }

    #[inline(never)]
    fn outer(frames: &mut [u64]) -> usize {
        std::hint::black_box(inner(frames))
    }

    #[test]
    fn callers_are_found_from_the_inside_out() {
        let mut frames = [0; 64];
        let count = outer(&mut frames);
        let frames = &frames[..count];
        let place = |function: usize| {
            let is_in = |frame: &u64| (*frame as usize).wrapping_sub(function) < 4096;
            let places = frames.iter().enumerate().filter(|(_, frame)| is_in(frame));
            // Functions lie next to each other: the nearest start below an address is its own.
            places
                .min_by_key(|(_, frame)| **frame as usize - function)
                .map(|(place, _)| place)
        };
        let inner = place(inner as *const () as usize).expect("the inner function");
        let outer = place(outer as *const () as usize).expect("the outer function");
        assert!(inner < outer, "{inner} {outer}");
    }

    #[test]
    fn as_many_are_found_as_there_is_room_for() {
        let mut frames = [0; 3];
        assert_eq!(outer(&mut frames), 3);
        assert!(frames.iter().all(|frame| *frame != 0));
        assert_eq!(outer(&mut []), 0);
    }

    #[test]
    fn a_broken_chain_of_frame_pointers_ends_the_stack() {
        let words = [0x1_usize; 4];
        let stack = words.as_ptr_range();
        let stack = stack.start as usize - 8..stack.end as usize;
        let broken = [
            0,
            1,
            7,
            usize::MAX,
            stack.start,
            stack.start + 9,
            stack.end - 8,
            stack.end,
            stack.end + 4096,
        ];
        for frame_pointer in broken {
            let mut frames = [0; 8];
            let mut found = Found {
                frames: &mut frames,
                count: 0,
                frame_pointer,
            };
            // SAFETY: the words are there.
            unsafe { follow_frame_pointers(&mut found, stack.clone()) };
            assert_eq!(found.count, 0, "{frame_pointer:#x}");
        }
    }

    #[test]
    fn frame_pointers_are_followed_up_the_stack() {
        let signature = 0x2a << 56 & !ADDRESS;
        let mut words = [0, 0x1001 | signature, 0, 0x2001, 0, 0x3001];
        let start = words.as_mut_ptr() as usize;
        let at = |place: usize| start + place * size_of::<usize>();
        // The second frame is the outermost, or its caller's lies below it, or too near to the end.
        for (outer, expected) in [(0, 2), (at(0), 2), (at(4), 3), (at(5), 2)] {
            words[0] = at(2);
            words[2] = outer;
            let mut frames = [0; 8];
            let mut found = Found {
                frames: &mut frames,
                count: 0,
                frame_pointer: at(0),
            };
            let stack = at(0) - 8..at(6);
            // SAFETY: the words are there.
            unsafe { follow_frame_pointers(&mut found, stack) };
            assert_eq!(found.count, expected, "{outer:#x}");
            assert_eq!(frames[..3], [0x1000, 0x2000, [0, 0x3000][expected - 2]]);
        }
    }
}
