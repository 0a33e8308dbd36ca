//! Which libuv the processes of a check have loaded, from the dynamic linker's own record.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Fails unless `wanted` was loaded by some process whose record lies in `dir` as `ld.PID`, and
/// no other libuv by any.
pub(crate) fn only(wanted: &Path, dir: &Path) -> Result<()> {
    let mut loaded = BTreeSet::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry?.path();
        if path.file_stem().is_some_and(|stem| stem == "ld") {
            let record =
                fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            loaded.extend(initialised(&String::from_utf8_lossy(&record)));
        }
    }
    ensure!(
        loaded.iter().eq([wanted]),
        "the check ran on {loaded:?} and not on {}",
        wanted.display()
    );
    Ok(())
}

/// The libuvs that a record of `LD_DEBUG=libs` says were initialised.
fn initialised(record: &str) -> impl Iterator<Item = PathBuf> {
    record
        .lines()
        .filter_map(|line| line.split_once("calling init: "))
        .map(|(_, path)| PathBuf::from(path.trim()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("libuv.so"))
        })
}

#[cfg(test)]
mod tests {
    use super::initialised;
    use std::path::Path;

    #[test]
    fn what_was_only_looked_for_does_not_count() {
        let record = "      7:\tfind library=libuv.so.1 [0]; searching\n\
                      \x20     7:\t  trying file=/a/libuv.so.1\n\
                      \x20     7:\tcalling init: /lib/libc.so.6\n\
                      \x20     7:\tcalling init: /b/libuv.so.1\n";
        let found: Vec<_> = initialised(record).collect();
        assert_eq!(found, [Path::new("/b/libuv.so.1")]);
    }
}
