//! Starts programs with the swap, and probes whether it can replace the libuv that a program
//! carries.
//!
//! A probe starts the program with the swap, which does its work, writes the result to a pipe,
//! and ends the process before any code of the program runs. So the result covers everything that
//! matters on this machine: the functions that the program exports, the sizes that it expects,
//! and the restrictions of the system.

mod nickname;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io::{PipeReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The file name of the swap, which is beside our library.
const FILE: &str = "libblacklight_swap.so";

/// How long a trial may take; one that takes longer runs the program.
const PATIENCE: Duration = Duration::from_secs(10);

/// The length of what is read of a trial. Answers are shorter, and programs say more.
const LONGEST: usize = 1 << 16;

/// The exit status of a program that the swap has ended.
const ENDED: i32 = 70;

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
    pub(crate) known: String,
}

impl Preloads {
    /// Our library, and the swap beside it. Fails if the linker cannot preload them.
    pub(crate) fn with(library: PathBuf) -> Result<Preloads> {
        let library = if is_one_entry(&library) {
            library
        } else {
            nickname::of(&library)?
        };
        let swap = library.with_file_name(FILE);
        Ok(Preloads {
            swap: swap.is_file().then_some(swap),
            library,
        })
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
        self.apply(&mut command, &["probe=1".to_owned()])?;
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        drop(command);
        let verdict = read(&reader)?;
        // It has ended, unless it runs nevertheless.
        child.kill().context("cannot end the trial")?;
        let status = child.wait().context("cannot wait for the trial")?;
        Ok(verdict.unwrap_or_else(|| {
            let reason = match status.code() {
                Some(ENDED) => "the system lets its code be changed and not restored",
                _ => "it does not load what is preloaded",
            };
            Verdict::Refused(reason.to_owned())
        }))
    }

    /// Makes a command preload both. `words` are settings for the swap.
    pub(crate) fn apply(&self, command: &mut Command, words: &[String]) -> Result<()> {
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
        let others = std::env::var_os("LD_PRELOAD").unwrap_or_default();
        for other in others_than_swaps(&others) {
            list.push(":");
            list.push(other);
        }
        command.env("LD_PRELOAD", list);
        if cfg!(target_env = "musl") {
            // musl knows a library by its file, not by the name that it states for itself.
            let old = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
            let own = self.library.parent().map(Path::to_owned);
            let dirs = own.into_iter().chain(std::env::split_paths(&old));
            command.env("LD_LIBRARY_PATH", std::env::join_paths(dirs)?);
        }
        Ok(())
    }
}

/// The entries of a list of preloads without the swaps that are in it, and the libraries beside them: two
/// would replace each other.
fn others_than_swaps(list: &OsStr) -> Vec<&OsStr> {
    let split = list.as_bytes().split(|byte| matches!(byte, b':' | b' '));
    let entries: Vec<_> = split.filter(|entry| !entry.is_empty()).collect();
    let entries = entries.into_iter().map(OsStr::from_bytes);
    let swaps = entries
        .clone()
        .map(Path::new)
        .filter(|path| path.ends_with(FILE));
    let homes: Vec<_> = swaps.filter_map(Path::parent).collect();
    let is_other = |entry: &&OsStr| {
        let home = Path::new(entry).parent();
        !home.is_some_and(|home| homes.contains(&home))
    };
    entries.filter(is_other).collect()
}

/// Whether the dynamic linker takes a path for one entry of a list, and takes it literally.
fn is_one_entry(path: &Path) -> bool {
    let is_special = |byte: &u8| matches!(byte, b' ' | b':' | b'$');
    path.to_str().is_some() && !path.as_os_str().as_bytes().iter().any(is_special)
}

/// Reads the answer of a trial: all of it, or what has come after some seconds.
fn read(reader: &PipeReader) -> Result<Option<Verdict>> {
    let deadline = Instant::now() + PATIENCE;
    let mut text = Vec::new();
    let mut chunk = [0; 4096];
    while text.len() < LONGEST {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).context("an impossible time")?;
        let mut watched = [PollFd::new(reader, PollFlags::IN)];
        let ready = match poll(&mut watched, Some(&left)) {
            Err(Errno::INTR) => continue,
            polled => polled.context("cannot wait for the trial")?,
        };
        let count = match ready {
            0 => 0,
            _ => (&*reader)
                .read(&mut chunk)
                .context("cannot read what the trial says")?,
        };
        if count == 0 {
            break;
        }
        text.extend_from_slice(&chunk[..count]);
    }
    Ok(parse(&String::from_utf8_lossy(&text)))
}

/// Parses the output of the swap: a name and a value on each line. `None` if it is another's.
fn parse(text: &str) -> Option<Verdict> {
    let value = |word: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find_map(|(name, value)| (name == word).then(|| value.to_owned()))
    };
    match (value("way").as_deref(), value("refused")) {
        (Some("jumps"), _) => Some(Verdict::Swapped(Carried {
            version: value("version").unwrap_or_default(),
            functions: value("functions").unwrap_or_default(),
            known: value("known").unwrap_or_default(),
        })),
        (Some(_), Some(reason)) => Some(Verdict::Refused(reason)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Verdict, others_than_swaps, parse};

    #[test]
    fn a_swap_takes_the_place_of_another() {
        let list = "/a/libuv.so.1:/a/libblacklight_swap.so:/b/libother.so libbare.so:/c/libuv.so.1";
        let left = ["/b/libother.so", "libbare.so", "/c/libuv.so.1"];
        assert_eq!(others_than_swaps(list.as_ref()), left);
        assert!(others_than_swaps("".as_ref()).is_empty());
    }

    #[test]
    fn answers_of_a_trial() {
        let Some(Verdict::Swapped(carried)) =
            parse("way jumps\nversion 1.52.1\nfunctions 318\njumps 318\nknown ab:318:\n")
        else {
            panic!("it was swapped");
        };
        assert_eq!((&*carried.version, &*carried.functions), ("1.52.1", "318"));
        assert_eq!(carried.known, "ab:318:");
        let refused = Verdict::Refused("its libuv is 2.0.0".to_owned());
        assert_eq!(
            parse("way none\nrefused its libuv is 2.0.0\n"),
            Some(refused)
        );
        assert_eq!(parse(""), None);
        assert_eq!(parse("v22.1.0\n"), None);
    }
}
