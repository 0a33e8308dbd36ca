//! The file that a program is in the end, and the libraries that it would load.

mod script;

use crate::elf::Elf;
use crate::machine;
use anyhow::{Context, Result, bail, ensure};
use script::Next;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How many scripts are followed, each of which is the interpreter of the one before.
const SCRIPTS: usize = 5;

/// The beginnings of the names of libraries that do not load libuv: those of the C library and of
/// compilers, and what shells and Python load besides.
const PLAIN: [&str; 13] = [
    "ld-linux",
    "libatomic.",
    "libc.",
    "libdl.",
    "libexpat.",
    "libgcc_s.",
    "libm.",
    "libpthread.",
    "librt.",
    "libstdc++.",
    "libtinfo.",
    "libutil.",
    "libz.",
];

/// A program.
pub(crate) struct Program {
    /// The file that is loaded; for a script, its interpreter.
    pub(crate) file: PathBuf,
    /// The script, if the program is one.
    pub(crate) script: Option<PathBuf>,
    pub(crate) elf: Elf,
    /// Why it is not known which file is loaded, or what is in it.
    pub(crate) unknown: Option<String>,
}

/// The libraries that are loaded when a program starts.
#[derive(Default)]
pub(crate) struct Libraries {
    /// The paths of those that the linker finds.
    pub(crate) found: Vec<PathBuf>,
    /// The names of those that it does not find.
    missing: Vec<String>,
}

impl Program {
    /// Finds a program on the path, and that which runs it if it is a script.
    pub(crate) fn find(name: &OsStr) -> Result<Program> {
        let file = on_path(name)?;
        let is_missing = file
            .metadata()
            .is_err_and(|error| error.kind() == ErrorKind::NotFound);
        ensure!(!is_missing, "there is no program at {}", file.display());
        let mut program = Program {
            file,
            script: None,
            elf: Elf::default(),
            unknown: None,
        };
        if let Err(error) = program.follow() {
            program.unknown = Some(format!("{error:#}"));
        }
        Ok(program)
    }

    /// Goes from script to interpreter up to a file that is loaded, and reads that.
    fn follow(&mut self) -> Result<()> {
        for _ in 0..=SCRIPTS {
            let next = match script::read(&self.file)? {
                Next::Program => {
                    self.elf = Elf::read(&self.file)?;
                    return Ok(());
                }
                Next::Interpreter(path) => path,
                Next::Named(name) => on_path(&name)?,
            };
            let script = std::mem::replace(&mut self.file, next);
            self.script.get_or_insert(script);
        }
        bail!("more than {SCRIPTS} scripts run one another")
    }

    /// Lists the libraries, as the dynamic linker does without running the program.
    pub(crate) fn libraries(&self) -> Result<Libraries> {
        let mut libraries = Libraries::default();
        let default = Path::new(machine::DEFAULT_LINKER);
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
                Some((_, Some(path))) => libraries.found.push(path),
                Some((name, None)) => libraries.missing.push(name),
                None => {}
            }
        }
        Ok(libraries)
    }

    /// Whether the program or a library of it links to libuv, found or missing. Asks the dynamic
    /// linker only if the file itself does not tell, since that takes a process.
    pub(crate) fn asks_for_libuv(&self) -> Result<bool> {
        if self.elf.asks_for_libuv() {
            return Ok(true);
        }
        let is_plain = |name: &String| PLAIN.iter().any(|plain| name.starts_with(plain));
        if self.elf.libraries.iter().all(is_plain) {
            return Ok(false);
        }
        let libraries = self.libraries()?;
        Ok(libraries.libuv().is_some() || libraries.lack_libuv())
    }
}

impl Libraries {
    /// The libuv among them, if any.
    pub(crate) fn libuv(&self) -> Option<&Path> {
        let is_libuv = |path: &&PathBuf| {
            path.file_name()
                .is_some_and(|name| name.as_bytes().starts_with(b"libuv.so"))
        };
        self.found.iter().find(is_libuv).map(PathBuf::as_path)
    }

    /// Whether libuv is asked for and not there.
    pub(crate) fn lack_libuv(&self) -> bool {
        self.missing.iter().any(|name| name.starts_with("libuv.so"))
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

#[cfg(test)]
mod tests {
    use super::{Program, parse};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

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
        let libraries = shell.libraries().unwrap();
        let is_libc = |path: &PathBuf| path.ends_with("libc.so.6");
        assert!(libraries.found.iter().any(is_libc));
        assert_eq!(libraries.libuv(), None);
        assert!(!libraries.lack_libuv());
        assert!(!shell.asks_for_libuv().unwrap());
        assert!(!shell.elf.has_libuv_inside && shell.unknown.is_none());
    }

    #[test]
    fn scripts_are_followed_to_the_end_or_given_up() {
        let dir = std::env::temp_dir().join(format!("blacklight-scripts-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let write = |name: &str, line: &str| {
            let path = dir.join(name);
            fs::write(&path, line).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let find = |path: &Path| Program::find(path.as_os_str()).unwrap();
        let mut last = write("0", "#!/bin/sh\n");
        for level in 1..=5 {
            let found = find(&last);
            assert_eq!(found.file, Path::new("/bin/sh"), "{level}");
            assert_eq!(found.script, Some(last.clone()));
            assert!(found.unknown.is_none() && found.elf.is_dynamic);
            last = write(&level.to_string(), &format!("#! {}\n", last.display()));
        }
        let unknown = find(&last).unknown.unwrap();
        assert!(unknown.contains("more than 5 scripts"), "{unknown}");
        let cleared = find(&write("cleared", "#!/usr/bin/env -i sh\n"));
        assert!(cleared.unknown.unwrap().contains("clears"));
        assert!(Program::find(dir.join("missing").as_os_str()).is_err());
        let lost = find(&write("lost", "#!/nonexistent/interpreter\n"));
        assert!(lost.unknown.unwrap().contains("cannot read"));
        let odd = find(&write("odd", "\x7fELF, but only at first sight"));
        assert!(odd.unknown.unwrap().contains("looked into"));
        fs::remove_dir_all(&dir).unwrap();
    }
}
