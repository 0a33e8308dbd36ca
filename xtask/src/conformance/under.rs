//! The checkers that tests can be run under, and what each of them cannot judge.

use crate::library::Library;
use crate::original::Original;
use crate::sanitize::Sanitizer;
use crate::workspace;
use anyhow::{Result, ensure};
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// What a test can be run under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Under {
    /// Memory errors and leaks are failures. The runner starts only the test under it, not the
    /// test's helpers, which are killed and so never clean up.
    Valgrind,
    /// Data races are failures, and whatever else the thread sanitizer reports of the test and of
    /// every process it starts. Both our library and the test are built for it, with a nightly
    /// compiler.
    Tsan,
    /// Memory errors and leaks are failures, as the address sanitizer sees them in the test and in
    /// every process it starts.
    Asan,
}

/// A test that is left out, and why.
type Exception = (&'static str, &'static str);

/// Tests that do what valgrind objects to, whatever the library.
const BEYOND_VALGRIND: [Exception; 3] = [
    LEAKS_ON_PURPOSE,
    (
        "shutdown_eof",
        "it gives a connection 100 ms to go both ways, which valgrind may take to start",
    ),
    (
        "thread_detach",
        "it may end before its detached thread, whose memory then counts as possibly lost",
    ),
];

const LEAKS_ON_PURPOSE: Exception = (
    "error_message",
    "uv_strerror leaks a few bytes for an unknown number, as documented",
);

/// Tests that do what the thread sanitizer's runtime cannot follow, whatever the library.
const BEYOND_TSAN: [Exception; 1] = [(
    "barrier_serial_thread",
    "the runtime takes threads on their way out of a barrier for users of it, for whom its \
     destruction in the C library waits",
)];

/// Tests that do what the address sanitizer objects to, whatever the library.
const BEYOND_ASAN: [Exception; 2] = [
    LEAKS_ON_PURPOSE,
    (
        "fork_threadpool_queue_work_simple",
        "the runtime cannot look for leaks in a child that was forked off from threads",
    ),
];

impl Under {
    /// The name of the checker's directory.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Under::Valgrind => "valgrind",
            Under::Tsan => "tsan",
            Under::Asan => "asan",
        }
    }

    /// The sanitizer to build for, if that is what the checker is.
    pub(crate) fn sanitizer(self) -> Option<Sanitizer> {
        match self {
            Under::Valgrind => None,
            Under::Tsan => Some(Sanitizer::Thread),
            Under::Asan => Some(Sanitizer::Address),
        }
    }

    /// How much longer tests may take.
    pub(crate) fn patience(self) -> u32 {
        match self {
            Under::Valgrind => 20,
            Under::Tsan | Under::Asan => 5,
        }
    }

    /// The variables that a runner needs to start a test under the checker.
    pub(crate) fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Under::Valgrind => &[
                ("UV_USE_VALGRIND", "1"),
                ("VALGRIND_OPTS", "--num-callers=40 --fair-sched=try"),
            ],
            Under::Tsan | Under::Asan => &[],
        }
    }

    /// The program that a runner looks for beside itself.
    pub(crate) fn tool(self) -> Option<&'static Path> {
        (self == Under::Valgrind).then(|| Path::new("/usr/bin/valgrind"))
    }

    /// Why a test is not judged, if it is not.
    pub(crate) fn beyond(self, test: &str) -> Option<&'static str> {
        let exceptions: &[Exception] = match self {
            Under::Valgrind => &BEYOND_VALGRIND,
            Under::Tsan => &BEYOND_TSAN,
            Under::Asan => &BEYOND_ASAN,
        };
        let mut exceptions = exceptions.iter();
        exceptions
            .find(|(name, _)| *name == test)
            .map(|(_, why)| *why)
    }

    /// Makes sure that the programs the checker consists of are there.
    pub(crate) fn require_tools(self) -> Result<()> {
        match self {
            Under::Valgrind => workspace::require_tool("valgrind", "valgrind"),
            Under::Tsan | Under::Asan => workspace::require_tool("llvm-symbolizer", "llvm"),
        }
    }

    /// Builds the library as the checker needs it.
    pub(crate) fn library(self, library: &Library, original: &Original) -> Result<PathBuf> {
        let Some(sanitizer) = self.sanitizer() else {
            return library.build(original);
        };
        ensure!(
            *library == Library::Ours,
            "only our own library is built for sanitizers"
        );
        sanitizer.library()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_a_test_that_passes_otherwise() {
        let expected = include_str!("../../conformance/expected.txt");
        let exceptions = BEYOND_VALGRIND
            .iter()
            .chain(&BEYOND_TSAN)
            .chain(&BEYOND_ASAN);
        for (name, why) in exceptions {
            assert!(expected.lines().any(|line| line == *name), "{name}");
            assert!(!why.is_empty(), "{name}");
        }
    }

    #[test]
    fn each_checker_has_its_own_exceptions() {
        assert!(Under::Tsan.beyond("barrier_serial_thread").is_some());
        assert!(Under::Asan.beyond("barrier_serial_thread").is_none());
        assert!(Under::Valgrind.beyond("error_message").is_some());
    }
}
