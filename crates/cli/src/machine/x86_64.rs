//! x86-64.

use super::Registers;
use framehop::x86_64::UnwindRegsX86_64;
pub(crate) use framehop::x86_64::{CacheX86_64 as Cache, UnwinderX86_64 as Unwinder};
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;
use object::elf::{EM_X86_64, Machine, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, RelocationType};

pub(crate) const NAME: &str = "x86-64";
pub(crate) const ELF_MACHINE: Machine = EM_X86_64;
/// The kinds of relocations by which a module's calls go through its linkage table.
pub(crate) const LINKAGE: [RelocationType; 2] = [R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT];
pub(crate) const GLIBC_LINKER: &str = "/lib64/ld-linux-x86-64.so.2";
pub(crate) const MUSL_LINKER: &str = "/lib/ld-musl-x86_64.so.1";

/// The registers that unwinding begins with.
pub(crate) fn unwind_registers(registers: Registers) -> UnwindRegsX86_64 {
    UnwindRegsX86_64::new(registers.pc, registers.sp, registers.bp)
}

/// The registers of a thread that is held, and the number of the system call that it is in.
pub(crate) fn registers(thread: Pid) -> Result<(Registers, Option<u64>), Errno> {
    let found = ptrace::getregs(thread)?;
    let registers = Registers {
        pc: found.rip,
        sp: found.rsp,
        bp: found.rbp,
        link: 0,
    };
    // The register is all ones outside of system calls.
    let call = (found.orig_rax.cast_signed() >= 0).then_some(found.orig_rax);
    Ok((registers, call))
}

/// The version in `mov $VERSION,%eax`, after an optional landing pad and frame set-up.
pub(crate) fn version_in(code: &[u8]) -> Option<[u8; 3]> {
    let code = code.strip_prefix(b"\xf3\x0f\x1e\xfa").unwrap_or(code);
    let code = code.strip_prefix(b"\x55\x48\x89\xe5").unwrap_or(code);
    match *code {
        [0xb8, patch, minor, major, 0, ..] => Some([major, minor, patch]),
        _ => None,
    }
}

/// The first names of system calls; the last of them is older than the numbers that all machines share.
#[rustfmt::skip]
pub(crate) const FIRST_CALLS: &[&str] = &[
    "read", "write", "open", "close", "stat", "fstat", "lstat", "poll", "lseek", "mmap",
    "mprotect", "munmap", "brk", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "ioctl",
    "pread64", "pwrite64", "readv", "writev", "access", "pipe", "select", "sched_yield", "mremap",
    "msync", "mincore", "madvise", "shmget", "shmat", "shmctl", "dup", "dup2", "pause",
    "nanosleep", "getitimer", "alarm", "setitimer", "getpid", "sendfile", "socket", "connect",
    "accept", "sendto", "recvfrom", "sendmsg", "recvmsg", "shutdown", "bind", "listen",
    "getsockname", "getpeername", "socketpair", "setsockopt", "getsockopt", "clone", "fork",
    "vfork", "execve", "exit", "wait4", "kill", "uname", "semget", "semop", "semctl", "shmdt",
    "msgget", "msgsnd", "msgrcv", "msgctl", "fcntl", "flock", "fsync", "fdatasync", "truncate",
    "ftruncate", "getdents", "getcwd", "chdir", "fchdir", "rename", "mkdir", "rmdir", "creat",
    "link", "unlink", "symlink", "readlink", "chmod", "fchmod", "chown", "fchown", "lchown",
    "umask", "gettimeofday", "getrlimit", "getrusage", "sysinfo", "times", "ptrace", "getuid",
    "syslog", "getgid", "setuid", "setgid", "geteuid", "getegid", "setpgid", "getppid", "getpgrp",
    "setsid", "setreuid", "setregid", "getgroups", "setgroups", "setresuid", "getresuid",
    "setresgid", "getresgid", "getpgid", "setfsuid", "setfsgid", "getsid", "capget", "capset",
    "rt_sigpending", "rt_sigtimedwait", "rt_sigqueueinfo", "rt_sigsuspend", "sigaltstack",
    "utime", "mknod", "uselib", "personality", "ustat", "statfs", "fstatfs", "sysfs",
    "getpriority", "setpriority", "sched_setparam", "sched_getparam", "sched_setscheduler",
    "sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min",
    "sched_rr_get_interval", "mlock", "munlock", "mlockall", "munlockall", "vhangup",
    "modify_ldt", "pivot_root", "_sysctl", "prctl", "arch_prctl", "adjtimex", "setrlimit",
    "chroot", "sync", "acct", "settimeofday", "mount", "umount2", "swapon", "swapoff", "reboot",
    "sethostname", "setdomainname", "iopl", "ioperm", "create_module", "init_module",
    "delete_module", "get_kernel_syms", "query_module", "quotactl", "nfsservctl", "getpmsg",
    "putpmsg", "afs_syscall", "tuxcall", "security", "gettid", "readahead", "setxattr",
    "lsetxattr", "fsetxattr", "getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr",
    "flistxattr", "removexattr", "lremovexattr", "fremovexattr", "tkill", "time", "futex",
    "sched_setaffinity", "sched_getaffinity", "set_thread_area", "io_setup", "io_destroy",
    "io_getevents", "io_submit", "io_cancel", "get_thread_area", "lookup_dcookie", "epoll_create",
    "epoll_ctl_old", "epoll_wait_old", "remap_file_pages", "getdents64", "set_tid_address",
    "restart_syscall", "semtimedop", "fadvise64", "timer_create", "timer_settime",
    "timer_gettime", "timer_getoverrun", "timer_delete", "clock_settime", "clock_gettime",
    "clock_getres", "clock_nanosleep", "exit_group", "epoll_wait", "epoll_ctl", "tgkill",
    "utimes", "vserver", "mbind", "set_mempolicy", "get_mempolicy", "mq_open", "mq_unlink",
    "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr", "kexec_load", "waitid",
    "add_key", "request_key", "keyctl", "ioprio_set", "ioprio_get", "inotify_init",
    "inotify_add_watch", "inotify_rm_watch", "migrate_pages", "openat", "mkdirat", "mknodat",
    "fchownat", "futimesat", "newfstatat", "unlinkat", "renameat", "linkat", "symlinkat",
    "readlinkat", "fchmodat", "faccessat", "pselect6", "ppoll", "unshare", "set_robust_list",
    "get_robust_list", "splice", "tee", "sync_file_range", "vmsplice", "move_pages", "utimensat",
    "epoll_pwait", "signalfd", "timerfd_create", "eventfd", "fallocate", "timerfd_settime",
    "timerfd_gettime", "accept4", "signalfd4", "eventfd2", "epoll_create1", "dup3", "pipe2",
    "inotify_init1", "preadv", "pwritev", "rt_tgsigqueueinfo", "perf_event_open", "recvmmsg",
    "fanotify_init", "fanotify_mark", "prlimit64", "name_to_handle_at", "open_by_handle_at",
    "clock_adjtime", "syncfs", "sendmmsg", "setns", "getcpu", "process_vm_readv",
    "process_vm_writev", "kcmp", "finit_module", "sched_setattr", "sched_getattr", "renameat2",
    "seccomp", "getrandom", "memfd_create", "kexec_file_load", "bpf", "execveat", "userfaultfd",
    "membarrier", "mlock2", "copy_file_range", "preadv2", "pwritev2", "pkey_mprotect",
    "pkey_alloc", "pkey_free", "statx", "io_pgetevents", "rseq",
];

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn versions_are_read_from_the_code_of_compilers() {
        let plain = b"\xb8\x01\x34\x01\x00\xc3\x90\x90";
        let framed = b"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\xb8\x00\x33\x01\x00\x5d\xc3\x90";
        assert_eq!(version_in(plain), Some([1, 52, 1]));
        assert_eq!(version_in(framed), Some([1, 51, 0]));
        assert_eq!(version_in(b"\x8b\x07\xc3\x90\x90"), None);
    }
}
