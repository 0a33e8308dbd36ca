//! Stands between the threads of the pool and the kernel: system calls with which requests do
//! their work can be held up, so that a request is known to be running, and refused with any
//! error. It is done by a filter that asks us, which a thread hands on to those that it starts.
//!
//! <https://man7.org/linux/man-pages/man2/seccomp_unotify.2.html>

use std::ffi::{c_int, c_long};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};

/// What the supervisor has been told, and what it has seen.
#[derive(Default)]
struct Orders {
    /// How many calls have been made since the orders were given.
    seen: usize,
    /// Refuse the calls with these numbers with this error.
    refuse: (Range<usize>, c_int),
    /// Hold up the first call for as long as this is set.
    hold: bool,
    held: bool,
}

static ORDERS: Mutex<Orders> = Mutex::new(Orders {
    seen: 0,
    refuse: (0..0, 0),
    hold: false,
    held: false,
});
static CHANGED: Condvar = Condvar::new();

fn orders() -> MutexGuard<'static, Orders> {
    ORDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calls that a request's work consists of. What threads need for themselves (locks, memory,
/// waking a loop) is none of them.
const SUPERVISED: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
    libc::SYS_socket,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_getdents64,
    libc::SYS_renameat2,
    libc::SYS_mkdirat,
    libc::SYS_linkat,
    libc::SYS_unlinkat,
    libc::SYS_symlinkat,
    libc::SYS_readlinkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_statfs,
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_utimensat,
    libc::SYS_statx,
];

/// Such calls that not all machines have.
#[rustfmt::skip]
const ONLY_SOMEWHERE: &[c_long] = &[
    #[cfg(target_arch = "x86_64")] libc::SYS_open,
    #[cfg(target_arch = "x86_64")] libc::SYS_stat,
    #[cfg(target_arch = "x86_64")] libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")] libc::SYS_access,
    #[cfg(target_arch = "x86_64")] libc::SYS_rename,
    #[cfg(not(target_arch = "riscv64"))] libc::SYS_renameat,
    #[cfg(target_arch = "x86_64")] libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")] libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")] libc::SYS_link,
    #[cfg(target_arch = "x86_64")] libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")] libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")] libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")] libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")] libc::SYS_chown,
    #[cfg(target_arch = "x86_64")] libc::SYS_lchown,
];

/// The filter's program: the calls above are ours, save for a `write` of the eight bytes that
/// wake a loop.
fn program() -> Vec<libc::sock_filter> {
    let load = |at: u32| libc::sock_filter {
        code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        jt: 0,
        jf: 0,
        k: at,
    };
    let skip_unless = |value: u32, count: u8| libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: 0,
        jf: count,
        k: value,
    };
    let answer = |with: u32| libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: with,
    };
    let (number, third_argument) = (0, 16 + 2 * 8);
    let mut program = vec![load(number), skip_unless(libc::SYS_write as u32, 4)];
    program.extend([load(third_argument), skip_unless(8, 1)]);
    program.extend([answer(libc::SECCOMP_RET_ALLOW), load(number)]);
    for &call in SUPERVISED.iter().chain(ONLY_SOMEWHERE) {
        program.extend([
            skip_unless(call as u32, 1),
            answer(libc::SECCOMP_RET_USER_NOTIF),
        ]);
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program
}

/// Has the calling thread, and those that it will start, supervised.
fn supervise_this_thread() -> io::Result<OwnedFd> {
    let mut filter = program();
    let filter = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program lives through the call, and the descriptor is new and ours.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let listener = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &filter,
        );
        match listener {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd as c_int)),
        }
    }
}

/// Answers one call after the other.
fn supervise(listener: &OwnedFd) {
    loop {
        // SAFETY: all zeros is what the kernel wants to find.
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: there is room for what the kernel writes.
        let received = unsafe {
            libc::ioctl(
                listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV as _,
                &mut call,
            )
        };
        if received != 0 {
            continue;
        }
        let error = judge(c_long::from(call.data.nr));
        let mut answer = libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: -error,
            flags: match error {
                0 => libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
                _ => 0,
            },
        };
        // SAFETY: the answer lives through the call. Whoever has asked may be gone meanwhile.
        unsafe {
            libc::ioctl(
                listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND as _,
                &mut answer,
            );
        }
    }
}

/// What becomes of the next call: an error, or zero if it may go on. The kernel never refuses to
/// close what is open, and who is told so must not try again, so neither do we.
fn judge(call: c_long) -> c_int {
    let mut orders = orders();
    let number = orders.seen;
    orders.seen += 1;
    while orders.hold && number == 0 {
        orders.held = true;
        CHANGED.notify_all();
        orders = CHANGED.wait(orders).unwrap_or_else(PoisonError::into_inner);
    }
    orders.held = false;
    match &orders.refuse {
        (refused, error) if refused.contains(&number) && call != libc::SYS_close => *error,
        _ => 0,
    }
}

/// Calls `start_pool` on a thread of its own, so that the pool's threads, which that starts,
/// are supervised and no others.
pub(crate) fn begin(start_pool: impl FnOnce() + Send) {
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let listener = supervise_this_thread().expect("the kernel asks supervisors");
            sender.send(listener).expect("somebody waits for it");
            start_pool();
        });
        let listener = receiver.recv().expect("the thread has sent it");
        std::thread::spawn(move || supervise(&listener));
    });
}

/// Runs `call`, in which the pool's system calls with these numbers are refused; whether it came
/// to that.
pub(crate) fn refusing<R>(
    numbers: Range<usize>,
    error: c_int,
    call: impl FnOnce() -> R,
) -> (R, bool) {
    let first = numbers.start;
    *orders() = Orders {
        refuse: (numbers, error),
        ..Orders::default()
    };
    let result = call();
    let seen = std::mem::take(&mut *orders()).seen;
    (result, seen > first)
}

/// Runs `call`; how many system calls the pool has made meanwhile.
pub(crate) fn counting(call: impl FnOnce()) -> usize {
    *orders() = Orders::default();
    call();
    orders().seen
}

/// Holds up the pool's next system call.
pub(crate) fn hold() {
    *orders() = Orders {
        hold: true,
        ..Orders::default()
    };
}

/// Waits until a call is held up.
pub(crate) fn await_held() {
    let held = CHANGED.wait_while(orders(), |orders| !orders.held);
    drop(held.unwrap_or_else(PoisonError::into_inner));
}

/// Lets the call that is held up go on.
pub(crate) fn release() {
    orders().hold = false;
    CHANGED.notify_all();
}
