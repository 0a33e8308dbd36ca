//! The libraries that a program would load, as the dynamic linker lists them without running it.

use crate::elf::Elf;
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The linker for files that name none, such as libraries.
const DEFAULT_LINKER: &str = "/lib64/ld-linux-x86-64.so.2";

/// The length of a script's first line that the kernel reads.
const SHEBANG_LENGTH: u64 = 256;

/// A program and the libraries that are loaded when it starts.
pub(crate) struct Program {
    /// The file that is loaded; for a script, its interpreter.
    pub(crate) file: PathBuf,
    /// The script, if the program is one.
    pub(crate) script: Option<PathBuf>,
    pub(crate) elf: Elf,
    /// The paths of the libraries that the linker finds.
    pub(crate) libraries: Vec<PathBuf>,
    /// The names of the libraries that the linker does not find.
    pub(crate) missing: Vec<String>,
}

impl Program {
    /// Finds a program on the path, and lists its libraries.
    pub(crate) fn find(name: &OsStr) -> Result<Program> {
        let mut file = on_path(name)?;
        let mut script = None;
        if let Some(interpreter) = shebang(&file)? {
            script = Some(file);
            file = on_path(&interpreter)?;
        }
        let elf = Elf::read(&file)?;
        let mut program = Program {
            file,
            script,
            elf,
            libraries: Vec::new(),
            missing: Vec::new(),
        };
        // The libraries of a program that carries a libuv do not matter.
        if program.elf.is_dynamic && program.elf.is_x86_64 && !program.elf.has_libuv_inside() {
            program.list_libraries()?;
        }
        Ok(program)
    }

    fn list_libraries(&mut self) -> Result<()> {
        let default = Path::new(DEFAULT_LINKER);
        let linker = self.elf.interpreter.as_deref().unwrap_or(default);
        let output = Command::new(linker)
            .arg("--list")
            .arg(&self.file)
            .env_remove("LD_PRELOAD")
            .output()
            .with_context(|| format!("cannot run {}", linker.display()))?;
        let listed = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success() || !listed.is_empty(),
            "{} cannot tell what {} loads: {}",
            linker.display(),
            self.file.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        for line in listed.lines() {
            match parse(line) {
                Some((_, Some(path))) => self.libraries.push(path),
                Some((name, None)) => self.missing.push(name),
                None => {}
            }
        }
        Ok(())
    }

    /// The libuv that is loaded when the program starts, if any.
    pub(crate) fn libuv(&self) -> Option<&Path> {
        let is_libuv = |path: &&PathBuf| {
            path.file_name()
                .is_some_and(|name| name.as_bytes().starts_with(b"libuv.so"))
        };
        self.libraries.iter().find(is_libuv).map(PathBuf::as_path)
    }

    /// Whether the program or a library of it links to libuv, found or missing.
    pub(crate) fn asks_for_libuv(&self) -> bool {
        let is_libuv = |name: &String| name.starts_with("libuv.so");
        self.libuv().is_some() || self.missing.iter().any(is_libuv)
    }
}

/// Reads a line like `libuv.so.1 => /lib/libuv.so.1 (0x00007f…)` or `libuv.so.1 => not found`.
fn parse(line: &str) -> Option<(String, Option<PathBuf>)> {
    let (name, rest) = line.trim().split_once(" => ")?;
    if rest == "not found" {
        return Some((name.to_owned(), None));
    }
    let (path, _) = rest.rsplit_once(" (0x")?;
    Some((name.to_owned(), Some(PathBuf::from(path))))
}

fn on_path(name: &OsStr) -> Result<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    for dir in std::env::split_paths(&path) {
        let file = dir.join(name);
        let is_program = file
            .metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0);
        if is_program {
            return Ok(file);
        }
    }
    bail!("there is no program {} on the path", name.display())
}

/// The interpreter that a script names, directly or through `env`.
fn shebang(file: &Path) -> Result<Option<std::ffi::OsString>> {
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|file| file.take(SHEBANG_LENGTH).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read {}", file.display()))?;
    let Some(rest) = bytes.strip_prefix(b"#!") else {
        return Ok(None);
    };
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let interpreter = words.next().context("a script that names no interpreter")?;
    let named = if interpreter.ends_with(b"/env") {
        words.find(|word| !word.starts_with(b"-"))
    } else {
        None
    };
    Ok(Some(
        OsStr::from_bytes(named.unwrap_or(interpreter)).to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::{Program, parse};
    use std::path::PathBuf;

    #[test]
    fn lines_of_the_linker() {
        let found = parse("\tlibuv.so.1 => /opt/a b/libuv.so.1 (0x00007f0000000000)");
        let path = PathBuf::from("/opt/a b/libuv.so.1");
        assert_eq!(found, Some(("libuv.so.1".to_owned(), Some(path))));
        let lost = parse("\tlibuv.so.1 => not found");
        assert_eq!(lost, Some(("libuv.so.1".to_owned(), None)));
        assert_eq!(
            parse("\t/lib64/ld-linux-x86-64.so.2 (0x00007f0000000000)"),
            None
        );
    }

    #[test]
    fn the_shell_loads_a_c_library_and_no_libuv() {
        let shell = Program::find("sh".as_ref()).unwrap();
        let is_libc = |path: &PathBuf| path.ends_with("libc.so.6");
        assert!(shell.libraries.iter().any(is_libc), "{:?}", shell.libraries);
        assert_eq!(shell.libuv(), None);
        assert!(!shell.elf.has_libuv_inside());
    }
}
