//! Whether our headers compile, without a warning, in every language that programs use them
//! from, and each of them by itself.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiler and how it is told which language it reads.
struct Dialect {
    compiler: &'static str,
    extension: &'static str,
    flags: &'static [&'static str],
}

const fn c(flags: &'static [&'static str]) -> Dialect {
    Dialect {
        compiler: "gcc",
        extension: "c",
        flags,
    }
}

const fn cpp(flags: &'static [&'static str]) -> Dialect {
    Dialect {
        compiler: "g++",
        extension: "cc",
        flags,
    }
}

/// The first of each language is the strictest, and has to take every header by itself.
const DIALECTS: [Dialect; 9] = [
    c(&[
        "-std=c89",
        "-D_GNU_SOURCE",
        "-Wstrict-prototypes",
        "-Wno-long-long",
    ]),
    c(&["-std=gnu89", "-Wstrict-prototypes"]),
    c(&[
        "-std=c99",
        "-D_POSIX_C_SOURCE=200809L",
        "-Wstrict-prototypes",
    ]),
    c(&["-std=c11", "-D_GNU_SOURCE", "-Wstrict-prototypes"]),
    c(&["-std=gnu17", "-Wstrict-prototypes"]),
    cpp(&["-std=c++11"]),
    cpp(&["-std=c++14"]),
    cpp(&["-std=c++17"]),
    cpp(&["-std=gnu++17"]),
];

const STRICT: [&str; 5] = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// In C++ a mode may be given as the int it used to be.
const CPP_BODY: &str = "
int set_modes(uv_tty_t* tty, int mode);
int set_modes(uv_tty_t* tty, int mode) {
  return uv_tty_set_mode(tty, mode) + uv_tty_set_mode(tty, UV_TTY_MODE_RAW);
}
";

/// Compiles everything; returns how many compilations there were, and what compilers objected to.
pub(super) fn check(include: &Path, scratch: &Path) -> Result<(usize, Vec<String>)> {
    let mut count = 0;
    let mut objections = Vec::new();
    let mut try_one = |dialect: &Dialect, header: &str, body: &str| -> Result<()> {
        count += 1;
        objections.extend(objection(dialect, include, header, body, scratch)?);
        Ok(())
    };
    for dialect in &DIALECTS {
        try_one(
            dialect,
            "uv.h",
            if dialect.compiler == "g++" {
                CPP_BODY
            } else {
                ""
            },
        )?;
    }
    let strictest = [
        &DIALECTS[0],
        DIALECTS
            .iter()
            .find(|dialect| dialect.compiler == "g++")
            .expect("C++ is listed"),
    ];
    for header in sub_headers(include)? {
        for dialect in strictest {
            // Twice, as a header must bear that too.
            try_one(
                dialect,
                &header,
                &format!("#include <{header}>\n#include <uv.h>\n"),
            )?;
        }
    }
    Ok((count, objections))
}

fn objection(
    dialect: &Dialect,
    include: &Path,
    header: &str,
    body: &str,
    scratch: &Path,
) -> Result<Option<String>> {
    let source = write_source(dialect, header, body, scratch)?;
    let mut command = Command::new(dialect.compiler);
    command
        .args(dialect.flags)
        .args(STRICT)
        .arg("-I")
        .arg(include)
        .arg(&source);
    let output = command
        .output()
        .with_context(|| format!("cannot run {} (is it installed?)", dialect.compiler))?;
    if output.status.success() {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Ok(Some(format!(
        "{header} with {} {}:\n{said}",
        dialect.compiler,
        dialect.flags.join(" ")
    )))
}

fn write_source(dialect: &Dialect, header: &str, body: &str, scratch: &Path) -> Result<PathBuf> {
    fs::create_dir_all(scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let source = scratch.join("dialect").with_extension(dialect.extension);
    // A file without any declaration is itself something to warn about.
    let text = format!("#include <{header}>\n{body}\nextern int not_empty;\n");
    fs::write(&source, text).with_context(|| format!("cannot write {}", source.display()))?;
    Ok(source)
}

fn sub_headers(include: &Path) -> Result<Vec<String>> {
    let dir = include.join("uv");
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
        names.push(format!("uv/{}", entry?.file_name().to_string_lossy()));
    }
    names.sort();
    Ok(names)
}
