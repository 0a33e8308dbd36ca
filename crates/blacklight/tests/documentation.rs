//! Every public item has an example of its own, which the documentation tests run, and no example takes an address apart
//! by hand.

use std::fs;
use std::path::Path;

/// The words that begin a public item. Fields and variants are shown with their type.
const ITEMS: [&str; 7] = [
    "pub async fn ",
    "pub const fn ",
    "pub enum ",
    "pub fn ",
    "pub static ",
    "pub struct ",
    "pub trait ",
];

/// The public items of a source file that have no example, each as `file:line: item`.
fn without_example(path: &Path, found: &mut Vec<String>) {
    let source = fs::read_to_string(path).unwrap();
    // What is documented above the line: whether there is an example, or a reason to have none.
    let mut is_shown = false;
    for (at, line) in source.lines().map(str::trim).enumerate() {
        match line {
            "#[cfg(test)]" => return,
            "#[doc(hidden)]" => is_shown = true,
            _ if line.starts_with("///") => is_shown |= line.contains("```"),
            // What a macro's caller documents, each with an example of its own.
            _ if line.starts_with("$(#[") => is_shown = true,
            _ if line.starts_with("#[") => {}
            _ => {
                if ITEMS.iter().any(|item| line.starts_with(item)) && !is_shown {
                    found.push(format!("{}:{}: {line}", path.display(), at + 1));
                }
                is_shown = false;
            }
        }
    }
}

/// The lines of examples that parse an address, each as `file:line: text`. Whatever takes an
/// address takes it as it is written.
fn with_parsed_address(path: &Path, found: &mut Vec<String>) {
    let is_source = path.extension().is_some_and(|name| name == "rs");
    let is_program = path
        .parent()
        .is_some_and(|folder| folder.ends_with("examples"));
    for (at, line) in fs::read_to_string(path).unwrap().lines().enumerate() {
        let line = line.trim();
        let is_shown = !is_source || is_program || line.starts_with("//");
        if is_shown && line.contains(".parse().unwrap()") {
            found.push(format!("{}:{}: {line}", path.display(), at + 1));
        }
    }
}

fn scan(folder: &Path, look: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => scan(&path, look),
            false
                if path
                    .extension()
                    .is_some_and(|name| name == "rs" || name == "md") =>
            {
                look(&path);
            }
            false => {}
        }
    }
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_public_item_has_an_example() {
    let mut found = Vec::new();
    scan(&here().join("src"), &mut |path| {
        if path.extension().is_some_and(|name| name == "rs") {
            without_example(path, &mut found);
        }
    });
    found.sort();
    assert!(found.is_empty(), "no example:\n{}", found.join("\n"));
}

#[test]
fn no_example_parses_an_address() {
    let mut found = Vec::new();
    for folder in ["src", "examples", "../../docs/guide"] {
        scan(&here().join(folder), &mut |path| {
            with_parsed_address(path, &mut found);
        });
    }
    for readme in ["README.md", "../../README.md"] {
        with_parsed_address(&here().join(readme), &mut found);
    }
    found.sort();
    assert!(found.is_empty(), "parsed by hand:\n{}", found.join("\n"));
}
