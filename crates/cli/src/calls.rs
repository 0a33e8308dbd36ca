//! The names of system calls, by their numbers on this machine.
//!
//! The kernel never changes the number of a call, so the tables only grow at their end.

use crate::machine;
use std::borrow::Cow;

/// The name of a system call, as in its manual page; a call that is newer than the tables is
/// named by its number.
pub(crate) fn name(number: u64) -> Cow<'static, str> {
    let index = usize::try_from(number).unwrap_or(usize::MAX);
    let known = match index.checked_sub(SECOND_START) {
        None => machine::FIRST_CALLS.get(index),
        Some(index) => SECOND.get(index),
    };
    match known {
        Some(name) if !name.is_empty() => Cow::Borrowed(name),
        _ => Cow::Owned(format!("system call {number}")),
    }
}

/// The number of the first call in [`SECOND`]: all architectures share the numbers from here on.
const SECOND_START: usize = 424;

/// The calls from [`SECOND_START`] on.
#[rustfmt::skip]
const SECOND: &[&str] = &[
    "pidfd_send_signal", "io_uring_setup", "io_uring_enter", "io_uring_register", "open_tree",
    "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "pidfd_open", "clone3",
    "close_range", "openat2", "pidfd_getfd", "faccessat2", "process_madvise", "epoll_pwait2",
    "mount_setattr", "quotactl_fd", "landlock_create_ruleset", "landlock_add_rule",
    "landlock_restrict_self", "memfd_secret", "process_mrelease", "futex_waitv",
    "set_mempolicy_home_node", "cachestat", "fchmodat2", "map_shadow_stack", "futex_wake",
    "futex_wait", "futex_requeue", "statmount", "listmount", "lsm_get_self_attr",
    "lsm_set_self_attr", "lsm_list_modules", "mseal", "setxattrat", "getxattrat", "listxattrat",
    "removexattrat",
];

#[cfg(test)]
mod tests {
    use super::name;
    use nix::libc;

    #[test]
    fn numbers_have_their_names() {
        for (number, expected) in [
            (libc::SYS_read, "read"),
            (libc::SYS_futex, "futex"),
            (libc::SYS_epoll_pwait, "epoll_pwait"),
            (libc::SYS_wait4, "wait4"),
            (libc::SYS_newfstatat, "newfstatat"),
            (libc::SYS_rseq, "rseq"),
        ] {
            assert_eq!(name(number.cast_unsigned()), expected);
        }
        assert_eq!(name(424), "pidfd_send_signal");
        assert_eq!(name(426), "io_uring_enter");
        assert_eq!(name(441), "epoll_pwait2");
    }

    #[test]
    fn an_unknown_number_names_itself() {
        assert_eq!(name(400), "system call 400");
        assert_eq!(name(u64::MAX), "system call 18446744073709551615");
    }
}
