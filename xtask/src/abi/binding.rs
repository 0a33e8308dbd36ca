//! The Rust declarations of libuv's interface in `crates/uv-binding`, written from our headers.
//!
//! The compiler's debugging information says what each function takes and how each struct is laid
//! out ([`super::headers`]); this module spells that in Rust. The files are in the repository, so
//! that nobody needs a C compiler to build a test, and [`differences`] tells whether they are still
//! what the headers state.

mod functions;
mod spelling;
mod structs;

use super::facts::{Facts, Kind};
use super::headers;
use anyhow::{Context, Result};
use spelling::Names;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// In C these are other names for `unsigned long` and `long`; Rust has types of its own for them.
const KEPT: [&str; 2] = ["size_t", "ssize_t"];

/// The files as the headers would have them, by name.
fn generate(scratch: &Path) -> Result<[(&'static str, String); 3]> {
    let facts = headers::our_facts(&KEPT, scratch)?;
    let names = Names::new(&facts);
    Ok([
        ("constants.rs", constants(&facts)),
        ("functions.rs", functions::write(&facts, &names)?),
        ("types.rs", structs::write(&facts, &names)?),
    ])
}

fn path(file: &str) -> PathBuf {
    crate::workspace::root()
        .join("crates/uv-binding/src")
        .join(file)
}

/// Writes the files.
pub(super) fn bless(scratch: &Path) -> Result<()> {
    for (file, text) in generate(scratch)? {
        let path = path(file);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Each line of the files that is not what the headers state, with what they state.
pub(super) fn differences(scratch: &Path) -> Result<Vec<String>> {
    let mut differences = Vec::new();
    for (file, expected) in generate(scratch)? {
        let path = path(file);
        let found =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        differences.extend(differing_lines(file, &expected, &found));
    }
    Ok(differences)
}

/// A declaration is one line, so that the lines that only one side has are what differs.
fn differing_lines(file: &str, expected: &str, found: &str) -> Vec<String> {
    let lacks = |text: &str, line: &str| !text.lines().any(|other| other == line);
    let missing = expected.lines().filter(|line| lacks(found, line));
    let extra = found.lines().filter(|line| lacks(expected, line));
    let mut differences: Vec<String> = missing
        .map(|line| format!("{file} lacks: {}", line.trim()))
        .chain(extra.map(|line| format!("{file} has:   {}", line.trim())))
        .collect();
    if differences.is_empty() && expected != found {
        differences.push(format!("{file} has the right lines in another order"));
    }
    differences
}

/// What a generated file begins with.
fn preamble(owns: &str) -> String {
    format!(
        "//! {owns} Written by `cargo xtask abi --bless` from `crates/uv/include`; not edited by hand.\n\n"
    )
}

/// The enumerators and the numbers that macros stand for.
fn constants(facts: &Facts) -> String {
    let mut text = preamble("The constants of the interface.");
    text.push_str("use std::ffi::c_int;\n\n");
    for ((kind, name), value) in facts {
        let name = name.strip_prefix('#').unwrap_or(name);
        let value = value.split(" of ").next().unwrap_or_default();
        if *kind == Kind::Constant && name.starts_with("UV_") && !name.starts_with("UV__") {
            // What does not fit, or is no number, is of no use as the `int` that functions take.
            if let Ok(value) = value.parse::<i32>() {
                let _ = writeln!(text, "pub const {name}: c_int = {value};");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binding_declares_what_the_headers_state() {
        let scratch =
            std::env::temp_dir().join(format!("blacklight-binding-{}", std::process::id()));
        let differences = differences(&scratch);
        let _ = fs::remove_dir_all(&scratch);
        let differences = differences.unwrap();
        assert!(
            differences.is_empty(),
            "`cargo xtask abi --bless` writes the binding again\n{}",
            differences.join("\n")
        );
    }

    #[test]
    fn a_changed_declaration_is_named_with_what_it_should_be() {
        let right = "pub fn uv_run(_: *mut uv_loop_t, _: c_int) -> c_int;\n";
        let wrong = "pub fn uv_run(_: *mut uv_loop_t) -> c_int;\n";
        assert_eq!(
            differing_lines("functions.rs", right, wrong),
            [
                format!("functions.rs lacks: {}", right.trim()),
                format!("functions.rs has:   {}", wrong.trim()),
            ]
        );
        assert!(differing_lines("functions.rs", right, right).is_empty());
    }
}
