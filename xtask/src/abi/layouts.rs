//! Whether the layouts that our library asserts of its structs are those of the original's headers.
//!
//! The compiler of Rust has checked the assertions in `crates/uv/src/layout.rs` against our structs when
//! the library was built. Here the C compiler of the same target checks the same assertions against the
//! headers.

use crate::{compile, workspace};
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the assertions name that has another name in C. The sizes that depend on the
/// target are defined as they are in Rust.
const PRELUDE: &str = "\
#include <uv.h>
#include <netdb.h>
#include <stddef.h>
#include <sys/uio.h>
typedef uv_idle_t LoopWatcher;
typedef struct uv__io_s IoWatcher;
typedef struct uv__work PoolRequest;
typedef struct iovec iovec;
#define loop_ loop
#define CLOSING_HANDLES (sizeof(pthread_mutex_t) == 48 ? 368 : 360)
#define LOOP_SIZE (CLOSING_HANDLES + 488)
#define NAME_INFO_SIZE ((252 + NI_MAXHOST + NI_MAXSERV + 4 + 7) / 8 * 8)
#ifdef __GLIBC__
_Static_assert(NI_MAXHOST == 1025, \"NI_MAXHOST\");
#else
_Static_assert(NI_MAXHOST == 255, \"NI_MAXHOST\");
#endif
";

/// Fields and structs that only our library knows, in places that the headers give other names.
const OURS: [&str; 5] = [
    "uv_req_t, nwritten",
    "uv_fs_poll_t, watch",
    "uv_dir_t, dir",
    "internal_fields",
    "uv_process_t, ended",
];

/// Has the compiler check all assertions; returns how many there are.
pub(super) fn check(compiler: &str, include: &Path, scratch: &Path) -> Result<usize> {
    let path = workspace::root().join("crates/uv/src/layout.rs");
    let rust =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let (text, count) = translate(&rust);
    ensure!(count > 0, "{} asserts nothing", path.display());
    let source = scratch.join("layouts.c");
    fs::write(&source, text).with_context(|| format!("cannot write {}", source.display()))?;
    let mut command = Command::new(compiler);
    command
        .args(["-std=gnu11", "-D_GNU_SOURCE", "-c", "-I"])
        .arg(include)
        .arg(&source)
        .arg("-o")
        .arg(source.with_extension("o"));
    compile::run_quietly(command)?;
    Ok(count)
}

/// The assertions in C, and how many there are.
fn translate(rust: &str) -> (String, usize) {
    let mut text = PRELUDE.to_owned();
    let mut count = 0;
    for line in rust.lines() {
        let assertion = line
            .trim()
            .strip_prefix("assert!(")
            .and_then(|rest| rest.strip_suffix(");"));
        let Some(assertion) = assertion else { continue };
        if OURS.iter().any(|ours| assertion.contains(ours)) {
            continue;
        }
        let c = assertion
            .replace("size_of::<", "sizeof(")
            .replace(">()", ")")
            .replace("offset_of!(", "offsetof(")
            .replace("libc::", "");
        let _ = writeln!(text, "_Static_assert({c}, \"{c}\");");
        count += 1;
    }
    (text, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_are_said_in_c() {
        let (text, count) = translate(
            "const _: () = {\n    assert!(size_of::<uv_buf_t>() == size_of::<libc::iovec>());\n    \
             assert!(offset_of!(uv_work_t, loop_) == 64);\n};",
        );
        assert_eq!(count, 2);
        assert!(text.contains("_Static_assert(sizeof(uv_buf_t) == sizeof(iovec), "));
        assert!(text.contains("_Static_assert(offsetof(uv_work_t, loop_) == 64, "));
    }

    #[test]
    fn a_wrong_assertion_is_found() {
        let dir = std::env::temp_dir().join(format!("blacklight-layouts-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let checked = check("gcc", &workspace::include_dir(), &dir);
        let source = dir.join("layouts.c");
        let wrong = fs::read_to_string(&source)
            .unwrap()
            .replace("== 152", "== 160");
        fs::write(&source, wrong).unwrap();
        let mut command = Command::new("gcc");
        command.args(["-D_GNU_SOURCE", "-fsyntax-only", "-I"]);
        command.arg(workspace::include_dir()).arg(&source);
        let refused = compile::run_quietly(command);
        fs::remove_dir_all(&dir).unwrap();
        assert!(checked.unwrap() > 80);
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("static assertion failed")
        );
    }
}
