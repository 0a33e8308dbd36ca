//! System calls that are not there: kernels older than a call answer `ENOSYS`, and containers whose
//! filter does not know it `EPERM`.
//!
//! A filter of the kernel's (seccomp) answers so for everything in a sandbox.

use anyhow::{Context, Result};
use clap::ValueEnum;
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[value(rename_all = "snake_case")]
pub(crate) enum Call {
    /// `clone` that is asked for a descriptor of the child.
    ClonePidfd,
    Clone3,
    CloseRange,
    CopyFileRange,
    EpollPwait2,
    Eventfd2,
    Getrandom,
    InotifyInit1,
    IoUringSetup,
    MemfdCreate,
    PidfdOpen,
    PidfdSendSignal,
    Preadv2,
    Pwritev2,
    Recvmmsg,
    Sendmmsg,
    Sendfile,
    Statx,
    /// All that Linux 4.18 lacks, the oldest kernel for which official Node.js is made, at once.
    #[value(name = "newer_than_4_18")]
    NewerThan418,
}

/// What Linux 4.18 lacks, and its answers. It does not refuse a descriptor of a child, but makes none; a refusal
/// comes to the same.
const NEWER_THAN_4_18: [(Call, Answer); 7] = [
    (Call::ClonePidfd, Answer::Einval),
    (Call::Clone3, Answer::Enosys),
    (Call::CloseRange, Answer::Enosys),
    (Call::EpollPwait2, Answer::Enosys),
    (Call::IoUringSetup, Answer::Enosys),
    (Call::PidfdOpen, Answer::Enosys),
    (Call::PidfdSendSignal, Answer::Enosys),
];

/// How it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// As by a kernel that does not have the call.
    Enosys,
    /// As by a container that does not know the call.
    Eperm,
    /// As by a kernel that does not know the flag.
    Einval,
}

/// A call, and the answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) call: Call,
    pub(crate) answer: Answer,
}

impl Call {
    /// Its number; several calls have none.
    fn number(self) -> Option<libc::c_long> {
        Some(match self {
            Call::NewerThan418 => return None,
            Call::ClonePidfd => libc::SYS_clone,
            Call::Clone3 => libc::SYS_clone3,
            Call::CloseRange => libc::SYS_close_range,
            Call::CopyFileRange => libc::SYS_copy_file_range,
            Call::EpollPwait2 => libc::SYS_epoll_pwait2,
            Call::Eventfd2 => libc::SYS_eventfd2,
            Call::Getrandom => libc::SYS_getrandom,
            Call::InotifyInit1 => libc::SYS_inotify_init1,
            Call::IoUringSetup => libc::SYS_io_uring_setup,
            Call::MemfdCreate => libc::SYS_memfd_create,
            Call::PidfdOpen => libc::SYS_pidfd_open,
            Call::PidfdSendSignal => libc::SYS_pidfd_send_signal,
            Call::Preadv2 => libc::SYS_preadv2,
            Call::Pwritev2 => libc::SYS_pwritev2,
            Call::Recvmmsg => libc::SYS_recvmmsg,
            Call::Sendmmsg => libc::SYS_sendmmsg,
            Call::Sendfile => libc::SYS_sendfile,
            Call::Statx => libc::SYS_statx,
        })
    }

    /// The calls with arguments that are refused; all of them if there is no rule.
    fn rules(self) -> Result<Vec<SeccompRule>> {
        if self != Call::ClonePidfd {
            return Ok(Vec::new());
        }
        let flag = u64::try_from(libc::CLONE_PIDFD).context("a negative flag")?;
        let wanted = SeccompCmpOp::MaskedEq(flag);
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, wanted, flag)?;
        Ok(vec![SeccompRule::new(vec![condition])?])
    }

    /// Its name in a trace.
    pub(crate) fn name(self) -> String {
        match self {
            Call::ClonePidfd => "clone".to_owned(),
            call => call.to_string(),
        }
    }

    /// The ways in which systems refuse it. The C library itself ends threads over a `clone3` that
    /// is refused in another way.
    pub(crate) fn answers(self) -> &'static [Answer] {
        match self {
            Call::ClonePidfd => &[Answer::Einval, Answer::Eperm],
            Call::Clone3 | Call::NewerThan418 => &[Answer::Enosys],
            _ => &[Answer::Enosys, Answer::Eperm],
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value().ok_or(fmt::Error)?;
        formatter.write_str(value.get_name())
    }
}

impl Answer {
    fn errno(self) -> libc::c_int {
        match self {
            Answer::Enosys => libc::ENOSYS,
            Answer::Eperm => libc::EPERM,
            Answer::Einval => libc::EINVAL,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Answer::Enosys => "ENOSYS",
            Answer::Eperm => "EPERM",
            Answer::Einval => "EINVAL",
        })
    }
}

impl Refusal {
    /// Has the kernel refuse the call to this thread and to all that it starts from now on.
    pub(crate) fn apply(self) -> Result<()> {
        let Some(number) = self.call.number() else {
            let mut parts = NEWER_THAN_4_18.into_iter();
            return parts.try_for_each(|(call, answer)| Refusal { call, answer }.apply());
        };
        let rules = BTreeMap::from([(number, self.call.rules()?)]);
        let errno = self.answer.errno().cast_unsigned();
        let architecture = std::env::consts::ARCH;
        let filter = SeccompFilter::new(
            rules,
            SeccompAction::Allow,
            SeccompAction::Errno(errno),
            architecture.try_into().context("an unknown processor")?,
        )?;
        let program = BpfProgram::try_from(filter)?;
        apply_filter(&program).with_context(|| format!("cannot refuse {}", self.call))
    }
}
