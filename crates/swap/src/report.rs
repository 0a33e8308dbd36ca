//! The report file, which lists the processes that run on our library, and why others do not.
//!
//! The swap must not write to the streams of programs, except for the line that stands for `blacklight run`, which
//! has become the first process. So each process appends a line to the file for every libuv that it
//! carries.

use crate::fit::{Refusal, Version};
use crate::guarded::Guarded;
use crate::image::Image;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::OnceLock;

static FILE: OnceLock<&'static str> = OnceLock::new();

/// The lines of this process, each of which is written once: a module may be opened again and again.
pub(crate) static SAID: Guarded<Vec<String>> = Guarded::new(Vec::new());

/// Sets the path of the report file.
pub(crate) fn to(path: &'static str) {
    FILE.get_or_init(|| path);
}

/// Appends a line about the libuv in an object. `outcome` is its version if it was replaced.
/// Ignores errors, which do not concern the program.
pub(crate) fn add(image: &Image, outcome: &Result<u32, &Refusal>) {
    let Some(path) = FILE.get() else {
        return;
    };
    let process = std::process::id();
    let name = name_of(image);
    let line = match outcome {
        Ok(version) => format!("{process} {name}: ours in place of {}\n", Version(*version)),
        Err(refusal) => format!("{process} {name}: left alone: {refusal}\n"),
    };
    let is_new = SAID.with(|said| {
        let is_new = !said.contains(&line);
        if is_new {
            said.push(line.clone());
        }
        is_new
    });
    if !is_new {
        return;
    }
    let file = OpenOptions::new().append(true).create(true).open(path);
    // One write per line, so that lines of several processes do not mix.
    let _written = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

fn name_of(image: &Image) -> String {
    if image.name.is_empty() {
        let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        program.display().to_string()
    } else {
        image.name.to_string_lossy().into_owned()
    }
}

/// Says on standard error why the process is ended that was to run on ours only.
pub(crate) fn insist(image: &Image, refusal: &Refusal) {
    let line = format!("blacklight: {}: {refusal}\n", name_of(image));
    // A program may be started without a standard error.
    let _written = std::io::stderr().write_all(line.as_bytes());
}

/// Says on standard error that the program cannot be run on ours, and runs as it is.
pub(crate) fn announce_failure(name: &str, reason: &str) {
    let line = format!("blacklight: {name}: {reason}; it runs as it is\n");
    let _written = std::io::stderr().write_all(line.as_bytes());
}

/// Says on standard error what became of the program's libuv, as `blacklight run` would. `outcome` is its version if it was replaced.
pub(crate) fn announce(name: &str, library: &str, outcome: &Result<u32, &Refusal>) {
    let poller = std::env::var("BLACKLIGHT_POLLER").unwrap_or_default();
    let poller = match &*poller {
        "" => "its best poller",
        poller => poller,
    };
    let line = match outcome {
        Ok(version) => format!(
            "blacklight: {name} runs on {library} with {poller}, in place of the {} inside it\n",
            Version(*version)
        ),
        Err(refusal) => return announce_failure(name, &refusal.to_string()),
    };
    // A program may be started without a standard error.
    let _written = std::io::stderr().write_all(line.as_bytes());
}
