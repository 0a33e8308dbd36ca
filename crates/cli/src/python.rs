//! The modules that a Python interpreter finds and that use libuv.
//!
//! An interpreter loads no libuv when it starts, and what it will import is not known before it runs.
//! What it could import is: the shared objects in the directories of its search path.

use crate::elf::Elf;
use crate::linker::Program;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How deep below a directory of the search path a module lies at most: `a/b/c/module.so`.
const DEPTH: usize = 4;

/// Prints the search path as a program has it that this interpreter runs, with ends that no path has.
const SEARCH_PATH: &str = "import sys; print(*sys.path, sep='\\0', end='')";

/// Whether the program is an interpreter of Python.
pub(crate) fn is_python(program: &Program) -> bool {
    let name = program.file.file_name().unwrap_or_default().as_bytes();
    name.starts_with(b"python") || name.starts_with(b"pypy")
}

/// The modules that the interpreter finds and that carry a libuv or ask for one.
pub(crate) fn modules_with_libuv(interpreter: &Path) -> Result<BTreeSet<PathBuf>> {
    let output = Command::new(interpreter)
        .args(["-c", SEARCH_PATH])
        .env_remove("LD_PRELOAD")
        .output()
        .with_context(|| format!("cannot run {}", interpreter.display()))?;
    ensure!(
        output.status.success(),
        "{} does not tell where its modules are: {}",
        interpreter.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let mut found = BTreeSet::new();
    for dir in output.stdout.split(|byte| *byte == 0) {
        // The first is empty: the directory in which the program is run.
        let dir = if dir.is_empty() { b"." } else { dir };
        search(Path::new(OsStr::from_bytes(dir)), DEPTH, &mut found);
    }
    Ok(found)
}

/// Adds the modules in a directory. What cannot be read cannot be imported either.
fn search(dir: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        // Any directory can be a package; those that are not meant to be have no such file.
        if kind.is_dir() && depth > 1 && path.join("__init__.py").exists() {
            search(&path, depth - 1, found);
        } else if !kind.is_dir() && is_module(name.as_bytes()) {
            let uses = |elf: Elf| elf.has_libuv_inside || elf.asks_for_libuv();
            if Elf::read(&path).is_ok_and(uses) {
                found.insert(path.canonicalize().unwrap_or(path));
            }
        }
    }
}

/// Whether a file has the name of a module, and not that of a library that lies beside one.
fn is_module(name: &[u8]) -> bool {
    name.ends_with(b".so") && !name.starts_with(b"lib")
}
