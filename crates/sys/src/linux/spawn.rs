//! Creates a child process: <https://man7.org/linux/man-pages/man2/clone.2.html>.
//!
//! The child shares its parent's memory until it executes its program (see `unix/process.rs`). In
//! the child this module makes bare system calls, because the C library's functions do more: those
//! for users and groups change all threads of the *parent*, and libraries that interpose those for
//! signals keep records in the parent's memory.
//!
//! Libraries that interpose clone(2) keep records too. The thread sanitizer assumes that every
//! child has its own; where clone(2) is interposed, children therefore get a copy of the memory.

use super::pidfd::ChildWatch;
use crate::process::{Child, Memory};
use crate::signal::block_all;
use crate::{Errno, check};
use std::ffi::{CStr, c_int, c_long, c_void};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8};

/// Whether children of this process can share its memory. They cannot where a library interposes
/// clone(2), which shows because glibc also has the function under a second name that no library
/// interposes.
///
/// Threads that call this for the first time at the same moment each look it up. None waits for
/// another: in a child forked at that moment it would wait for ever.
pub(crate) fn suitable_memory() -> Memory {
    const UNKNOWN: u8 = 0;
    const SHARED: u8 = 1;
    const COPIED: u8 = 2;
    static SUITABLE: AtomicU8 = AtomicU8::new(UNKNOWN);
    // SAFETY: the names end in a NUL, and the addresses are only compared.
    let address = |name: &CStr| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if SUITABLE.load(Relaxed) == UNKNOWN {
        let own = address(c"__clone");
        let known = match own.is_null() || own == address(c"clone") {
            true => SHARED,
            false => COPIED,
        };
        SUITABLE.store(known, Relaxed);
    }
    match SUITABLE.load(Relaxed) {
        SHARED => Memory::Shared,
        _ => Memory::Copied,
    }
}

/// Set when the kernel, or a filter of system calls, has refused to make a pidfd with a child.
static NO_PIDFD: AtomicBool = AtomicBool::new(false);

/// Whether an error of clone(2) may mean that a flag is unknown or forbidden.
fn is_refusal(error: Errno) -> bool {
    matches!(error, Errno::EINVAL | Errno::EPERM | Errno::ENOSYS)
}

/// Creates a child that runs `main(argument)`, and waits until it has executed a program or exited.
///
/// # Safety
///
/// `main` may be called with `argument` in a process that shares this one's memory, and does only
/// what a child of vfork(2) may do. Nothing else uses the memory behind `argument` meanwhile.
pub(crate) unsafe fn start(
    main: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
    memory: Memory,
) -> Result<Child, Errno> {
    let stack = Stack::take()?;
    let flags = libc::CLONE_VFORK
        | libc::SIGCHLD
        | match memory {
            Memory::Shared => libc::CLONE_VM,
            Memory::Copied => 0,
        };
    let mut pidfd: c_int = -1;
    let clone = |flags: c_int, pidfd: &mut c_int| {
        // SAFETY: only the child uses the stack until this call returns; the caller guarantees the
        // rest.
        unsafe { libc::clone(main, stack.top(), flags, argument, ptr::from_mut(pidfd)) }
    };
    let saved_mask = block_all();
    let mut made = Err(Errno::EINVAL);
    if !NO_PIDFD.load(Relaxed) {
        made = check(clone(flags | libc::CLONE_PIDFD, &mut pidfd));
    }
    if let Err(error) = made
        && (is_refusal(error) || matches!(error, Errno::EMFILE | Errno::ENFILE))
    {
        // A child without a pidfd is still useful.
        pidfd = -1;
        made = check(clone(flags, &mut pidfd));
        if made.is_ok() && is_refusal(error) {
            NO_PIDFD.store(true, Relaxed);
        }
    }
    saved_mask.restore();
    let pid = made?;
    Ok(Child {
        pid,
        // SAFETY: the kernel has just made this descriptor, and nothing else owns it. Old kernels
        // make none.
        watch: (pidfd >= 0).then(|| unsafe { ChildWatch::adopt(pidfd, pid) }),
    })
}

/// A stack for children, with a guard page below it.
struct Stack(*mut u8);

/// The size of a stack.
const STACK: usize = 64 * 1024;

/// The size of the guard page.
fn guard() -> usize {
    rustix::param::page_size()
}

/// A stack kept for the next child.
static SPARE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

impl Stack {
    fn take() -> Result<Stack, Errno> {
        let spare = SPARE.swap(ptr::null_mut(), Acquire);
        if !spare.is_null() {
            return Ok(Stack(spare));
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        // SAFETY: the kernel chooses the address.
        let memory =
            unsafe { libc::mmap(ptr::null_mut(), guard() + STACK, protection, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let stack = Stack(memory.cast());
        // SAFETY: the mapping above includes the first page, which is unused.
        check(unsafe { libc::mprotect(memory, guard(), libc::PROT_NONE) })?;
        Ok(stack)
    }

    /// Stacks grow downwards. The address is aligned to a page.
    fn top(&self) -> *mut c_void {
        // SAFETY: the result is the end of the mapping.
        unsafe { self.0.add(guard() + STACK).cast() }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let kept = SPARE.compare_exchange(ptr::null_mut(), self.0, Release, Relaxed);
        if kept.is_err() {
            // SAFETY: `take` made the mapping, and no child runs on it any more.
            unsafe { libc::munmap(self.0.cast(), guard() + STACK) };
        }
    }
}

/// Resets every signal to its default action: handlers must not run in shared memory, and the child
/// must not inherit the parent's ignored signals.
pub(crate) fn default_signals() {
    // The kernel's own structure: handler, flags, restorer, mask. All zeros mean the default
    // action.
    let action = [0u64; 4];
    for signum in 1..=64 {
        // SAFETY: the kernel reads the action and writes no old one. It refuses to change SIGKILL
        // and SIGSTOP.
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

/// Unblocks all signals. Returns −1 and sets `errno` on failure, as do the functions below.
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

/// Drops all supplementary groups.
pub(crate) fn drop_groups() -> c_int {
    // SAFETY: the list is empty.
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
    // SAFETY: these calls take only a number.
    unsafe { libc::syscall(call, id) as c_int }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shared_where_clone_is_not_interposed() {
        assert_eq!(suitable_memory(), Memory::Shared);
    }
}
