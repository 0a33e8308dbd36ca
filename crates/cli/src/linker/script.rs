//! The program that runs a script.

use anyhow::{Context, Error, Result, anyhow};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The length of a script's first line that the kernel reads.
const LINE: u64 = 256;

/// The shell that runs what the kernel does not know how to run.
const SHELL: &str = "/bin/sh";

/// What a file leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The file is itself loaded.
    Program,
    /// A script for the program at this path.
    Interpreter(PathBuf),
    /// A script for the program of this name, which `env` looks up.
    Named(OsString),
}

/// Reads what a file is.
pub(super) fn read(file: &Path) -> Result<Next> {
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|file| file.take(LINE).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read {}", file.display()))?;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Result<Next> {
    if bytes.starts_with(b"\x7fELF") {
        return Ok(Next::Program);
    }
    let Some(rest) = bytes.strip_prefix(b"#!") else {
        return Ok(Next::Interpreter(SHELL.into()));
    };
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let interpreter = words
        .next()
        .context("it is a script that names no interpreter")?;
    if interpreter.ends_with(b"/env")
        && let Some(name) = of_env(words)?
    {
        return Ok(Next::Named(name.to_owned()));
    }
    Ok(Next::Interpreter(OsStr::from_bytes(interpreter).into()))
}

/// The program among the arguments of `env`.
fn of_env<'line>(mut words: impl Iterator<Item = &'line [u8]>) -> Result<Option<&'line OsStr>> {
    while let Some(word) = words.next() {
        match word {
            b"--ignore-environment" => return Err(cleared()),
            b"--unset" | b"--chdir" => {
                words.next();
            }
            option if option.starts_with(b"--") => {}
            [b'-', options @ ..] => {
                // The rest of the line may follow its option without a space.
                let end = options.iter().position(|option| *option == b'S');
                let (options, program) = options.split_at(end.unwrap_or(options.len()));
                if word == b"-" || options.contains(&b'i') {
                    return Err(cleared());
                }
                if options.ends_with(b"u") || options.ends_with(b"C") {
                    words.next();
                }
                if let [b'S', program @ ..] = program
                    && !program.is_empty()
                {
                    return Ok(Some(OsStr::from_bytes(program)));
                }
            }
            setting if setting.contains(&b'=') => {}
            program => return Ok(Some(OsStr::from_bytes(program))),
        }
    }
    Ok(None)
}

fn cleared() -> Error {
    anyhow!("its first line clears the environment, and with it what is preloaded")
}

#[cfg(test)]
mod tests {
    use super::{Next, parse};

    #[test]
    fn first_lines_lead_to_interpreters() {
        let named = |name: &str| Next::Named(name.into());
        let path = |path: &str| Next::Interpreter(path.into());
        let cases = [
            ("\x7fELF\x02", Next::Program),
            ("#!/bin/sh -e\necho", path("/bin/sh")),
            ("#! bin/tool", path("bin/tool")),
            ("echo there is no such line", path("/bin/sh")),
            ("", path("/bin/sh")),
            ("#!/usr/bin/env node\n", named("node")),
            ("#!/usr/bin/env -S node --inspect\n", named("node")),
            ("#!/usr/bin/env -S FOO=1 BAR=2 node\n", named("node")),
            ("#!/usr/bin/env -vS -u FOO node\n", named("node")),
            ("#!/usr/bin/env -Snode --inspect\n", named("node")),
            ("#!/usr/bin/env\n", path("/usr/bin/env")),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(line.as_bytes()).unwrap(), expected, "{line}");
        }
        assert!(parse(b"#!\n").is_err());
        for line in [
            "-i node",
            "- node",
            "-iS FOO=1 node",
            "--ignore-environment node",
        ] {
            let line = format!("#!/usr/bin/env {line}\n");
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
    }
}
