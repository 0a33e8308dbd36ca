//! What packages are made for: a machine with a C library, and what those who pack call it.

use crate::portable::GLIBC;
use crate::target::Target;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// A machine with a C library.
#[derive(Debug)]
pub(crate) struct Platform {
    /// What is built for; `None` is this machine.
    pub(crate) target: Option<Target>,
    /// Its name for Rust.
    pub(crate) triple: &'static str,
    /// Its name for people.
    pub(crate) label: &'static str,
    /// The end of the name of its npm package.
    pub(crate) suffix: &'static str,
    /// The names that npm has for the processor and for the C library.
    pub(crate) npm: [&'static str; 2],
    /// The end of the tag of its wheel.
    wheel: &'static str,
    /// The dynamic linker, which is there where the C library is.
    pub(crate) linker: &'static str,
    /// The architecture and the directory of libraries, if it is one of Debian's.
    debian: Option<Debian>,
}

/// What Debian calls a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Debian {
    pub(crate) architecture: &'static str,
    /// The name of the directory of libraries, and the beginning of the names of tools.
    pub(crate) triplet: &'static str,
}

/// All that packages are made for, this machine first.
pub(crate) static ALL: [Platform; 5] = [
    Platform {
        target: None,
        triple: "x86_64-unknown-linux-gnu",
        label: "Linux with glibc on x86-64",
        suffix: "linux-x64",
        npm: ["x64", "glibc"],
        wheel: "x86_64",
        linker: "/lib64/ld-linux-x86-64.so.2",
        debian: Some(Debian {
            architecture: "amd64",
            triplet: "x86_64-linux-gnu",
        }),
    },
    Platform {
        target: Some(Target::Aarch64Gnu),
        triple: Target::Aarch64Gnu.triple(),
        label: "Linux with glibc on ARM64",
        suffix: "linux-arm64",
        npm: ["arm64", "glibc"],
        wheel: "aarch64",
        linker: "/lib/ld-linux-aarch64.so.1",
        debian: Some(Debian {
            architecture: "arm64",
            triplet: "aarch64-linux-gnu",
        }),
    },
    Platform {
        target: Some(Target::Riscv64Gnu),
        triple: Target::Riscv64Gnu.triple(),
        label: "Linux with glibc on 64-bit RISC-V",
        suffix: "linux-riscv64",
        npm: ["riscv64", "glibc"],
        wheel: "riscv64",
        linker: "/lib/ld-linux-riscv64-lp64d.so.1",
        debian: Some(Debian {
            architecture: "riscv64",
            triplet: "riscv64-linux-gnu",
        }),
    },
    Platform {
        target: Some(Target::X86_64Musl),
        triple: Target::X86_64Musl.triple(),
        label: "Linux with musl on x86-64",
        suffix: "linux-x64-musl",
        npm: ["x64", "musl"],
        wheel: "x86_64",
        linker: "/lib/ld-musl-x86_64.so.1",
        debian: None,
    },
    Platform {
        target: Some(Target::Aarch64Musl),
        triple: Target::Aarch64Musl.triple(),
        label: "Linux with musl on ARM64",
        suffix: "linux-arm64-musl",
        npm: ["arm64", "musl"],
        wheel: "aarch64",
        linker: "/lib/ld-musl-aarch64.so.1",
        debian: None,
    },
];

impl Debian {
    /// The directory of libraries, below `/usr`.
    pub(crate) fn libdir(self) -> PathBuf {
        Path::new("lib").join(self.triplet)
    }
}

impl Platform {
    /// This machine.
    pub(crate) fn this() -> &'static Platform {
        &ALL[0]
    }

    /// That of a target; this machine if there is none.
    pub(crate) fn of(target: Option<Target>) -> &'static Platform {
        let mut all = ALL.iter();
        let found = all.find(|platform| platform.target == target);
        found.expect("every target has a platform")
    }

    pub(crate) fn is_musl(&self) -> bool {
        self.npm[1] == "musl"
    }

    /// Whether there is a swap, which replaces a libuv inside a program.
    pub(crate) fn has_swap(&self) -> bool {
        self.target.is_none_or(Target::has_swap)
    }

    /// The tag of its wheel: the oldest C library that it runs with.
    pub(crate) fn wheel_tag(&self) -> String {
        let machine = self.wheel;
        match self.is_musl() {
            true => format!("musllinux_1_2_{machine}"),
            false => format!("manylinux_{}_{}_{machine}", GLIBC[0], GLIBC[1]),
        }
    }

    /// What Debian calls it.
    pub(crate) fn debian(&self) -> Result<Debian> {
        match self.debian {
            Some(debian) => Ok(debian),
            None => bail!(
                "Debian has no {}; npm and wheel make packages for it",
                self.label
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_target_has_a_platform_with_names_of_its_own() {
        assert_eq!(Platform::this().target, None);
        for &target in Target::value_variants() {
            assert_eq!(Platform::of(Some(target)).triple, target.triple());
        }
        for names in [
            |platform: &Platform| platform.suffix.to_owned(),
            Platform::wheel_tag,
        ] {
            let mut all: Vec<_> = ALL.iter().map(names).collect();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), ALL.len());
        }
    }

    #[test]
    fn there_is_no_debian_with_musl() {
        let error = Platform::of(Some(Target::X86_64Musl)).debian().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("Debian has no Linux with musl")
        );
    }
}
