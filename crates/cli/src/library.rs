//! Finds our library.

use anyhow::{Context, Result, bail, ensure};
use std::env::consts::ARCH;
use std::path::{Path, PathBuf};

/// Returns the path of the named library, or of the one that was built or installed with this
/// program.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        let file = if path.is_dir() {
            path.join("libuv.so.1")
        } else {
            path.to_owned()
        };
        ensure!(file.is_file(), "there is no library at {}", file.display());
        return file
            .canonicalize()
            .with_context(|| format!("cannot find {}", file.display()));
    }
    let program = std::env::current_exe().context("cannot tell where this program lies")?;
    let beside = program.parent().context("this program lies nowhere")?;
    let candidates = [
        beside.join("libuv.so"),
        beside.join("../lib/libuv.so.1"),
        beside.join(format!("../lib/{ARCH}-linux-gnu/libuv.so.1")),
    ];
    for candidate in &candidates {
        if let Ok(found) = candidate.canonicalize() {
            return Ok(found);
        }
    }
    bail!(
        "our library is not beside {} nor in ../lib; build it and the swap with `cargo build --release -p \
         blacklight-uv -p blacklight-swap`, or name it with --library",
        program.display()
    )
}
