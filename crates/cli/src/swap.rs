//! Starts programs with the swap, and probes whether it can replace the libuv that a program
//! carries.
//!
//! A probe starts the program with the swap, which does its work, writes the result to a pipe,
//! and ends the process before any code of the program runs. So the result covers everything that
//! matters on this machine: the functions that the program exports, the sizes that it expects,
//! and the restrictions of the system.

use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::io::{PipeReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The file name of the swap, which is beside our library.
const FILE: &str = "libblacklight_swap.so";

/// The environment variable with the swap's settings.
const VARIABLE: &str = "BLACKLIGHT_SWAP";

/// Our library, and the swap if it was built or installed with the library.
pub(crate) struct Preloads {
    pub(crate) library: PathBuf,
    pub(crate) swap: Option<PathBuf>,
}

/// The result of a probe.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Our library replaces the carried one.
    Swapped(Carried),
    /// The carried library stays, for this reason.
    Refused(String),
}

/// The libuv in a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) version: String,
    /// The number of functions that it exports.
    pub(crate) functions: String,
    /// Facts that save the swap time in other processes of the program.
    known: String,
}

impl Preloads {
    /// Our library, and the swap beside it.
    pub(crate) fn with(library: PathBuf) -> Preloads {
        let swap = library.with_file_name(FILE);
        Preloads {
            swap: swap.is_file().then_some(swap),
            library,
        }
    }

    /// Probes a program that carries a libuv.
    pub(crate) fn probe(&self, program: &Path) -> Result<Verdict> {
        if self.swap.is_none() {
            let library = self.library.display();
            return Ok(Verdict::Refused(format!("{FILE} is not beside {library}")));
        }
        let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
        let mut command = Command::new(program);
        // If the program runs nevertheless, this makes most programs exit at once.
        command.arg("--version");
        command
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::null());
        self.apply(&mut command, &["probe=1"])?;
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        drop(command);
        let verdict = read(reader);
        child.wait().context("cannot wait for the trial")?;
        verdict
    }

    /// Makes a command preload both. `words` are settings for the swap.
    pub(crate) fn apply(&self, command: &mut Command, words: &[&str]) -> Result<()> {
        let mut list = self.library.clone().into_os_string();
        if let Some(swap) = &self.swap {
            list.push(":");
            list.push(swap);
            let mut settings = OsString::new();
            for word in words {
                settings.push(word);
                settings.push(";");
            }
            settings.push("library=");
            settings.push(&self.library);
            command.env(VARIABLE, settings);
        }
        ensure_one_entry_each(&list, 1 + usize::from(self.swap.is_some()))?;
        if let Some(others) = std::env::var_os("LD_PRELOAD") {
            list.push(":");
            list.push(others);
        }
        command.env("LD_PRELOAD", list);
        Ok(())
    }
}

impl Carried {
    /// The setting for the swap in other processes of the same program.
    pub(crate) fn word(&self) -> String {
        format!("known={}", self.known)
    }
}

/// Fails if a path has a space or a colon, which the dynamic linker takes for a separator.
fn ensure_one_entry_each(list: &OsStr, entries: usize) -> Result<()> {
    let is_separator = |byte: &&u8| matches!(byte, b' ' | b':');
    let separators = list.as_bytes().iter().filter(is_separator).count();
    anyhow::ensure!(
        separators + 1 == entries,
        "the linker cannot preload {}: its name has a space or a colon",
        list.display()
    );
    Ok(())
}

fn read(mut reader: PipeReader) -> Result<Verdict> {
    let mut text = String::new();
    reader
        .read_to_string(&mut text)
        .context("cannot read what the trial says")?;
    Ok(parse(&text))
}

/// Parses the output of the swap: a name and a value on each line.
fn parse(text: &str) -> Verdict {
    let value = |word: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find_map(|(name, value)| (name == word).then(|| value.to_owned()))
    };
    match (value("way").as_deref(), value("refused")) {
        (Some("jumps"), _) => Verdict::Swapped(Carried {
            version: value("version").unwrap_or_default(),
            functions: value("functions").unwrap_or_default(),
            known: value("known").unwrap_or_default(),
        }),
        (_, Some(reason)) => Verdict::Refused(reason),
        (_, None) => Verdict::Refused("it does not load what is preloaded".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Verdict, parse};

    #[test]
    fn answers_of_a_trial() {
        let Verdict::Swapped(carried) =
            parse("way jumps\nversion 1.52.1\nfunctions 318\njumps 318\nknown ab:318:\n")
        else {
            panic!("it was swapped");
        };
        assert_eq!((&*carried.version, &*carried.functions), ("1.52.1", "318"));
        assert_eq!(carried.word(), "known=ab:318:");
        let refused = Verdict::Refused("its libuv is 2.0.0".to_owned());
        assert_eq!(parse("way none\nrefused its libuv is 2.0.0\n"), refused);
        assert!(matches!(parse(""), Verdict::Refused(_)));
    }
}
