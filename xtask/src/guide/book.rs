//! The book: its chapters, links and programs belong together, and mdBook builds it.

use crate::compile::run_quietly;
use crate::tools::Tool;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
};

/// Builds the book; returns its first page.
pub(super) fn build(book: &Path) -> Result<PathBuf> {
    let out = workspace::target_subdir("guide/book")?;
    let mut command = Command::new(MDBOOK.get()?);
    command.arg("build").arg("--dest-dir").arg(&out).arg(book);
    run_quietly(command)?;
    // The chapters link to the programs, which lie beside them.
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(book.join("examples"));
    copy.arg(workspace::target_subdir("guide")?);
    run_quietly(copy)?;
    Ok(out.join("index.html"))
}

/// Checks that the table of contents has every chapter, that no link leads nowhere, and that every program is
/// in some chapter.
pub(super) fn check(book: &Path) -> Result<()> {
    let chapters = chapters(&book.join("src"))?;
    let summary = book.join("src/SUMMARY.md");
    let mut mentioned = BTreeSet::new();
    for chapter in &chapters {
        let text = fs::read_to_string(chapter)?;
        for target in targets(&text) {
            let path = chapter.with_file_name(target);
            let found = path.canonicalize();
            mentioned.insert(found.with_context(|| {
                format!(
                    "{} leads to {target}, which is not there",
                    chapter.display()
                )
            })?);
        }
    }
    for chapter in chapters.iter().filter(|chapter| **chapter != summary) {
        let listed = fs::read_to_string(&summary)?;
        let name = chapter.file_name().unwrap_or_default().display();
        let is_listed = listed.contains(&format!("({name})"));
        ensure!(is_listed, "SUMMARY.md does not list {name}");
    }
    for folder in ["c", "js", "rust"] {
        for entry in fs::read_dir(book.join("examples").join(folder))? {
            let file = entry?.path().canonicalize()?;
            let is_result = file.extension();
            let is_result = is_result.is_some_and(|end| end == "out" || end == "trace");
            let is_in = is_result || mentioned.contains(&file);
            ensure!(is_in, "no chapter has {}", file.display());
        }
    }
    Ok(())
}

/// The files of the book's text.
fn chapters(source: &Path) -> Result<Vec<PathBuf>> {
    let mut chapters = Vec::new();
    let entries = fs::read_dir(source);
    for entry in entries.with_context(|| format!("cannot list {}", source.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            chapters.push(path);
        }
    }
    chapters.sort();
    Ok(chapters)
}

/// The files that a text links to or includes, without those of other places.
fn targets(text: &str) -> Vec<&str> {
    let links = text.split("](").skip(1);
    let links = links.filter_map(|rest| rest.split(')').next());
    let includes = text.split("{{#include ").skip(1);
    let includes = includes.filter_map(|rest| rest.split("}}").next());
    let targets = links
        .chain(includes)
        .filter(|target| !target.contains("://"));
    let files = targets.map(|target| {
        // A link may name a heading, and an include may name lines.
        let file = target.split(['#', ':']).next().unwrap_or(target);
        file.trim()
    });
    files.filter(|file| !file.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_includes_are_found() {
        let text =
            "a [b](c.md#d) ![e](f.svg) [g](https://h.example/i) [j](#k)\n{{#include ../l.c:7:}}\n";
        assert_eq!(targets(text), ["c.md", "f.svg", "../l.c"]);
    }

    /// A book with one chapter and one program.
    fn book(name: &str, chapter: &str, summary: &str) -> Result<()> {
        let dir = std::env::temp_dir().join(format!("blacklight-{name}-{}", std::process::id()));
        fs::create_dir_all(dir.join("src")).unwrap();
        for folder in ["c", "js", "rust"] {
            fs::create_dir_all(dir.join("examples").join(folder)).unwrap();
        }
        fs::write(dir.join("examples/c/p.c"), "int main;").unwrap();
        fs::write(dir.join("src/SUMMARY.md"), summary).unwrap();
        fs::write(dir.join("src/a.md"), chapter).unwrap();
        let checked = check(&dir);
        fs::remove_dir_all(&dir).unwrap();
        checked
    }

    #[test]
    fn what_does_not_belong_together_is_found() {
        let whole = "{{#include ../examples/c/p.c}}";
        let listed = "[A](a.md)";
        book("whole", whole, listed).unwrap();
        let error = |name, chapter, summary| book(name, chapter, summary).unwrap_err().to_string();
        let unlisted = error("unlisted", whole, "");
        assert_eq!(unlisted, "SUMMARY.md does not list a.md");
        assert!(error("nowhere", "[x](y.md)", listed).contains("leads to y.md"));
        assert!(error("unused", "", listed).starts_with("no chapter has "));
    }

    #[test]
    fn the_book_is_whole() {
        check(&super::super::directory()).unwrap();
    }

    /// The languages of the table's columns: the folder and the ending of their programs.
    const LANGUAGES: [(&str, &str); 3] = [("c", "c"), ("rust", "rs"), ("js", "js")];

    /// Fails if a cell of the table has neither programs, each with what it prints and its trace, nor a reason.
    fn check_cell(book: &Path, (folder, end): (&str, &str), cell: &str) -> Result<()> {
        let sources = targets(cell)
            .into_iter()
            .filter(|target| !target.ends_with(".trace"));
        let sources: Vec<PathBuf> = sources
            .map(|target| book.join("src").join(target))
            .collect();
        let is_own = |source: &PathBuf| {
            source.parent().is_some_and(|dir| dir.ends_with(folder))
                && source.extension().is_some_and(|extension| extension == end)
        };
        let reason = cell.strip_prefix("none: ");
        ensure!(
            reason.is_some_and(|reason| reason.len() > 20) || sources.iter().any(is_own),
            "neither a program nor a reason: {cell}"
        );
        for source in sources {
            let text = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
            let has_loop = end != "c" || text.contains("uv_run(");
            for result in ["out", "trace"].iter().take(1 + usize::from(has_loop)) {
                let path = source.with_extension(result);
                ensure!(path.exists(), "there is no {}", path.display());
            }
        }
        Ok(())
    }

    #[test]
    fn every_example_of_the_source_documents_has_its_programs_or_a_reason() {
        let book = super::super::directory();
        let chapter = fs::read_to_string(book.join("src/sources.md")).unwrap();
        let rows = chapter.lines().filter(|line| line.starts_with("| "));
        let rows: Vec<&str> = rows.skip(2).collect();
        assert!(rows.len() >= 20);
        for row in rows {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            assert_eq!(cells.len(), 5, "{row}");
            for (language, cell) in LANGUAGES.into_iter().zip(&cells[2..]) {
                check_cell(&book, language, cell).unwrap();
            }
        }
    }

    #[test]
    fn a_cell_of_the_table_needs_a_program_that_is_there_or_a_reason() {
        let book = super::super::directory();
        let check = |cell| check_cell(&book, ("c", "c"), cell);
        check("[timers.c](../examples/c/timers.c) ([trace](../examples/c/timers.trace))").unwrap();
        check("none: no such call is there").unwrap();
        for cell in [
            "",
            "none",
            "[a](../examples/js/close.js)",
            "[a](../examples/c/nothing.c)",
        ] {
            assert!(check(cell).is_err(), "{cell}");
        }
    }
}
