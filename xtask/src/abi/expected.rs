//! The functions our library must export: a list in the repository that only grows.
//!
//! While the library is being written, most functions are missing and that is no failure. Once
//! a function is there it must stay, so `--bless` writes down what has been reached.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn path() -> PathBuf {
    crate::workspace::root().join("xtask/abi/exported.txt")
}

pub(super) fn load() -> Result<BTreeSet<String>> {
    let path = path();
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(parse(&text))
}

/// Adds what is exported by now and returns how many names were new.
pub(super) fn bless(reached: &BTreeSet<String>) -> Result<usize> {
    let mut names = load()?;
    let before = names.len();
    names.extend(reached.iter().cloned());
    let path = path();
    fs::write(&path, format(&names)).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(names.len() - before)
}

fn parse(text: &str) -> BTreeSet<String> {
    let is_name = |line: &&str| !line.is_empty() && !line.starts_with('#');
    text.lines()
        .map(str::trim)
        .filter(is_name)
        .map(str::to_owned)
        .collect()
}

fn format(names: &BTreeSet<String>) -> String {
    let mut text = String::from(
        "# Functions that libuv.so.1 must export. `cargo xtask abi --bless` adds to this list; nothing\n\
         # is ever taken away from it.\n",
    );
    for name in names {
        text.push_str(name);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_survives_being_written_and_read() {
        let names = BTreeSet::from(["uv_run".to_owned(), "uv_close".to_owned()]);
        assert_eq!(parse(&format(&names)), names);
        assert_eq!(parse(&format(&BTreeSet::new())), BTreeSet::new());
    }
}
