//! A file that says which processes run on ours, and why others do not.
//!
//! Nothing may be written to the streams of programs, and only `blacklight run` can speak for the first
//! of them. Each process adds a line for every libuv that it carries.

use crate::fit::{Refusal, Version};
use crate::image::Image;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

static FILE: OnceLock<&'static str> = OnceLock::new();

/// Has lines added to the file of this path.
pub(crate) fn to(path: &'static str) {
    FILE.get_or_init(|| path);
}

/// Adds what came of the libuv in an object, which is of the version given if it was replaced. That
/// the file cannot be written to is of no concern to the program.
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
    // One call for each line, so that lines of several processes do not mix.
    let _written = file.and_then(|mut file| file.write_all(line.as_bytes()));
}
