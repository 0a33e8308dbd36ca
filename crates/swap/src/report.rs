//! The report file, which lists the processes that run on our library, and why others do not.
//!
//! The swap must not write to the streams of programs, and `blacklight run` can report on the
//! first process only. So each process appends a line to the file for every libuv that it
//! carries.

use crate::fit::{Refusal, Version};
use crate::image::Image;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

static FILE: OnceLock<&'static str> = OnceLock::new();

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
    let name = if image.name.is_empty() {
        std::fs::read_link("/proc/self/exe").unwrap_or_default()
    } else {
        Path::new(&*image.name.to_string_lossy()).to_owned()
    };
    let name = name.display();
    let line = match outcome {
        Ok(version) => format!("{process} {name}: ours in place of {}\n", Version(*version)),
        Err(refusal) => format!("{process} {name}: left alone: {refusal}\n"),
    };
    let file = OpenOptions::new().append(true).create(true).open(path);
    // One write per line, so that lines of several processes do not mix.
    let _written = file.and_then(|mut file| file.write_all(line.as_bytes()));
}
