//! Running programs of another processor under QEMU's user mode.
//!
//! The kernel starts QEMU itself for each of them (binfmt_misc), so that a program's children run too.
//! It is told so in a user namespace of its own, which Linux has since 6.7: outside of
//! it nothing changes.

use crate::target::Target;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What emulates a processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emulator {
    /// The name of the program.
    pub(crate) program: &'static str,
    /// The number of the processor in an ELF header.
    pub(crate) machine: u16,
}

/// What the kernel is to be told of an emulator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    program: PathBuf,
    machine: u16,
}

/// Where the kernel takes entries.
const REGISTRY: &str = "/proc/sys/fs/binfmt_misc";

impl Emulator {
    /// Its entry; the program is installed if need be.
    pub(crate) fn entry(self) -> Result<Entry> {
        // It is static, so that what its programs are to load is not loaded into itself.
        workspace::require_tool(self.program, "qemu-user-static")?;
        let program = Path::new("/usr/bin").join(self.program);
        ensure!(
            program.exists(),
            "{} is no program of Debian's",
            self.program
        );
        let machine = self.machine;
        Ok(Entry { program, machine })
    }
}

impl Entry {
    /// Enters a user namespace in which the kernel knows the emulator. The calling process has one
    /// thread and all rights.
    pub(crate) fn enter(&self) -> Result<()> {
        // Only a process outside of the namespace can say that all users are the same in it.
        let pid = std::process::id();
        let all = "0 0 4294967295";
        let mut outside = Command::new("/bin/sh")
            .arg("-ec")
            .arg(format!(
                "read begun; echo {all} >/proc/{pid}/uid_map; echo {all} >/proc/{pid}/gid_map"
            ))
            .stdin(Stdio::piped())
            .spawn()
            .context("cannot run sh")?;
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)
            .context("cannot enter a user namespace")?;
        let mut input = outside.stdin.take().context("sh has no input")?;
        input.write_all(b"begun\n").context("cannot tell sh")?;
        drop(input);
        let status = outside.wait().context("cannot wait for sh")?;
        ensure!(status.success(), "cannot map users into the namespace");
        let none = None::<&str>;
        mount(
            Some("binfmt_misc"),
            REGISTRY,
            Some("binfmt_misc"),
            MsFlags::empty(),
            none,
        )
        .context("cannot mount binfmt_misc; a user namespace has one since Linux 6.7")?;
        fs::write(Path::new(REGISTRY).join("register"), self.line())
            .context("cannot register the emulator")
    }

    /// The line by which an emulator is registered: 64-bit little-endian ELF programs and libraries of that
    /// machine are given to it, with their `argv[0]` as it was (P), and from wherever it is seen (F).
    fn line(&self) -> String {
        let [low, high] = self.machine.to_le_bytes();
        let magic = [
            0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, low, high,
        ];
        let mut mask = [0xff; 20];
        // The byte for the system's ABI, and the low bit in which programs and libraries differ.
        mask[7] = 0;
        mask[16] = 0xfe;
        let hex = |bytes: &[u8]| {
            let mut text = String::new();
            for byte in bytes {
                let _ = write!(text, "\\x{byte:02x}");
            }
            text
        };
        format!(
            ":blacklight:M::{}:{}:{}:PF",
            hex(&magic),
            hex(&mask),
            self.program.display()
        )
    }
}

/// Run a program of a target, and its children, where the kernel knows the emulator.
#[derive(clap::Args)]
pub(crate) struct Options {
    target: Target,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// Executes the program in place of this one. Returns only if that fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let (name, arguments) = options.program.split_first().context("no program")?;
    if let Some(emulator) = options.target.emulator() {
        emulator.entry()?.enter()?;
    }
    let mut command = Command::new(name);
    command.args(arguments);
    if let Some(root) = options.target.root() {
        command.env("QEMU_LD_PREFIX", root);
    }
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {}", name.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_names_the_machine_and_the_program() {
        let entry = Entry {
            program: "/usr/bin/qemu-aarch64-static".into(),
            machine: 183,
        };
        let line = entry.line();
        assert!(
            line.starts_with(r":blacklight:M::\x7f\x45\x4c\x46\x02\x01"),
            "{line}"
        );
        assert!(line.contains(r"\x02\x00\xb7\x00:"), "{line}");
        assert!(line.ends_with(":/usr/bin/qemu-aarch64-static:PF"), "{line}");
    }
}
