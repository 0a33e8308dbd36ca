//! Making a child process: <https://man7.org/linux/man-pages/man2/clone.2.html>.
//!
//! The child shares its parent's memory until it executes its program (see `unix/process.rs`). What the
//! child does to itself goes by bare system calls here, because the C library's functions do more: those
//! for users and groups change all threads of the *parent*, and libraries that interpose those for
//! signals keep records of them, in the parent's memory.
//!
//! Libraries that interpose clone(2) keep records too. The thread sanitizer's assumes that every child has
//! records of its own; where clone(2) is interposed, children get a copy of the memory.

use super::pidfd::ChildWatch;
use crate::process::{Child, Memory};
use crate::signal::hold_back_all;
use crate::{Errno, check};
use std::ffi::{CStr, c_int, c_long, c_void};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU8};

/// Whether children of this process can share its memory. They cannot where a library interposes
/// clone(2): glibc has the function under a second name, which nobody interposes.
///
/// Threads that ask for the first time at the same moment each find out. None waits for another: in a child
/// made by `fork` at that moment it would wait for ever.
pub(crate) fn suitable_memory() -> Memory {
    const UNKNOWN: u8 = 0;
    const LENT: u8 = 1;
    const COPIED: u8 = 2;
    static SUITABLE: AtomicU8 = AtomicU8::new(UNKNOWN);
    // SAFETY: the names end in a NUL, and what they may name is not followed.
    let address = |name: &CStr| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if SUITABLE.load(Relaxed) == UNKNOWN {
        let own = address(c"__clone");
        let known = match own.is_null() || own == address(c"clone") {
            true => LENT,
            false => COPIED,
        };
        SUITABLE.store(known, Relaxed);
    }
    match SUITABLE.load(Relaxed) {
        LENT => Memory::Lent,
        _ => Memory::Copied,
    }
}
/// Makes a child that runs `main(argument)`, and waits until it has executed a program or ended.
///
/// # Safety
///
/// `main` may be called with `argument` in a process that shares this one's memory, and does only what a
/// child of vfork(2) may do. Nobody else uses what `argument` points to meanwhile.
pub(crate) unsafe fn start(
    main: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
    memory: Memory,
) -> Result<Child, Errno> {
    let stack = Stack::take()?;
    let flags = libc::CLONE_VFORK
        | libc::SIGCHLD
        | match memory {
            Memory::Lent => libc::CLONE_VM,
            Memory::Copied => 0,
        };
    let mut pidfd: c_int = -1;
    let clone = |flags: c_int, pidfd: &mut c_int| {
        // SAFETY: the stack is the child's alone until this call returns; the caller vouches for
        // the rest.
        unsafe { libc::clone(main, stack.top(), flags, argument, ptr::from_mut(pidfd)) }
    };
    let held_back = hold_back_all();
    let mut made = check(clone(flags | libc::CLONE_PIDFD, &mut pidfd));
    if matches!(made, Err(Errno::EINVAL | Errno::EMFILE | Errno::ENFILE)) {
        // The child can do without a pidfd.
        pidfd = -1;
        made = check(clone(flags, &mut pidfd));
    }
    held_back.restore();
    let pid = made?;
    Ok(Child {
        pid,
        // SAFETY: the kernel just made this descriptor for us alone. Old kernels make none.
        watch: (pidfd >= 0).then(|| unsafe { ChildWatch::adopt(pidfd, pid) }),
    })
}

/// A stack for children, with a page below it that may not be touched.
struct Stack(*mut u8);

/// The size of a stack.
const STACK: usize = 64 * 1024;

/// The size of the page below a stack.
fn guard() -> usize {
    rustix::param::page_size()
}

/// A stack that is kept for the next child.
static SPARE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

impl Stack {
    fn take() -> Result<Stack, Errno> {
        let spare = SPARE.swap(ptr::null_mut(), Acquire);
        if !spare.is_null() {
            return Ok(Stack(spare));
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        // SAFETY: the kernel chooses the place.
        let memory =
            unsafe { libc::mmap(ptr::null_mut(), guard() + STACK, protection, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let stack = Stack(memory.cast());
        // SAFETY: the first page is ours, and nothing is in it.
        check(unsafe { libc::mprotect(memory, guard(), libc::PROT_NONE) })?;
        Ok(stack)
    }

    /// Stacks grow downwards. The address is aligned to a page.
    fn top(&self) -> *mut c_void {
        // SAFETY: that is the end of the memory.
        unsafe { self.0.add(guard() + STACK).cast() }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let kept = SPARE.compare_exchange(ptr::null_mut(), self.0, Release, Relaxed);
        if kept.is_err() {
            // SAFETY: `take` made it, and no child is on it any more.
            unsafe { libc::munmap(self.0.cast(), guard() + STACK) };
        }
    }
}

/// Gives every signal its default action: handlers must not run in borrowed memory, and the child does not
/// inherit which signals the parent ignores.
pub(crate) fn default_signals() {
    // The kernel's own structure: handler, flags, restorer, mask. All zeros are the default action.
    let action = [0u64; 4];
    for signum in 1..=64 {
        // SAFETY: the kernel reads the action and writes no old one. Two signals cannot be changed.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signum,
                &raw const action,
                ptr::null_mut::<c_void>(),
                size_of::<u64>(),
            );
        }
    }
}

/// Unblocks all signals. −1 and `errno` on failure, as for the functions below.
pub(crate) fn unblock_signals() -> c_int {
    let none = 0u64;
    // SAFETY: the kernel reads the mask and writes no old one.
    let status = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const none,
            ptr::null_mut::<c_void>(),
            size_of_val(&none),
        )
    };
    status as c_int
}

/// Leaves all supplementary groups.
pub(crate) fn drop_groups() -> c_int {
    // SAFETY: no groups are given.
    unsafe { libc::syscall(libc::SYS_setgroups, 0usize, ptr::null::<libc::gid_t>()) as c_int }
}

/// Changes the group of the calling thread only.
pub(crate) fn set_gid(gid: u32) -> c_int {
    set_id(libc::SYS_setgid, gid)
}

/// Changes the user of the calling thread only.
pub(crate) fn set_uid(uid: u32) -> c_int {
    set_id(libc::SYS_setuid, uid)
}

fn set_id(call: c_long, id: u32) -> c_int {
    // SAFETY: these calls take a number only.
    unsafe { libc::syscall(call, id) as c_int }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_lent_where_clone_is_not_interposed() {
        assert_eq!(suitable_memory(), Memory::Lent);
    }
}
