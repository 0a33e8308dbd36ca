//! Every public item has an example of its own, which the documentation tests run.

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

fn scan(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => scan(&path, found),
            false if path.extension().is_some_and(|name| name == "rs") => {
                without_example(&path, found);
            }
            false => {}
        }
    }
}

#[test]
fn every_public_item_has_an_example() {
    let mut found = Vec::new();
    scan(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    );
    found.sort();
    assert!(found.is_empty(), "no example:\n{}", found.join("\n"));
}
