//! Puts what was measured into a document: the table and the chart that readers see.
//!
//! A document has one block between two comments, and only what lies between them is
//! replaced, so that the words around the figures are written by hand and the figures never.

use super::report::Report;
use anyhow::{Context, Result};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The chore that writes what lies between the comments.
const WRITER: &str = "cargo xtask measure --full --publish";
const END: &str = "<!-- end of benchmarks -->";

const PERFORMANCE: &str = "docs/PERFORMANCE.md";
const CHART: &str = "docs/benchmarks.svg";

/// A document with the place for the figures.
pub(crate) struct Document {
    path: PathBuf,
    text: String,
    block: Range<usize>,
}

/// The document to be written, which is known to have a place for the figures.
pub(crate) struct Publication {
    chart: PathBuf,
    performance: Document,
}

impl Publication {
    /// Finds the place first, so that nothing is measured for hours in vain.
    pub(crate) fn prepare(root: &Path) -> Result<Publication> {
        Ok(Publication {
            chart: root.join(CHART),
            performance: Document::open(root, PERFORMANCE, WRITER)?,
        })
    }

    /// Writes the means and all rows into the document, and the chart beside it.
    pub(crate) fn write(&self, report: &Report) -> Result<()> {
        let (conditions, families) = (report.conditions(), report.family_tables());
        let rows = report.row_tables();
        let verdict = report.verdict().join("\n\n");
        self.performance.replace(&format!(
            "![How many times as good as the original](benchmarks.svg)\n\n\
             {conditions}\n\n{verdict}\n\n{families}\n{rows}"
        ))?;
        fs::write(&self.chart, report.chart())
            .with_context(|| format!("cannot write {}", self.chart.display()))
    }
}

impl Document {
    /// Finds the place in the document `name` for what the chore `writer` writes.
    pub(crate) fn open(root: &Path, name: &str, writer: &str) -> Result<Document> {
        let path = root.join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        let begin = begin(writer);
        let block = find_block(&text, &begin)
            .with_context(|| format!("{name} has no lines {begin:?} and {END:?}"))?;
        Ok(Document { path, text, block })
    }

    /// Puts new figures between the comments.
    pub(crate) fn replace(&self, figures: &str) -> Result<()> {
        let mut text = self.text.clone();
        text.replace_range(self.block.clone(), figures);
        fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// The comment before what a chore writes.
fn begin(writer: &str) -> String {
    format!("<!-- benchmarks: written by `{writer}` -->\n")
}

/// What lies between the two comments.
fn find_block(text: &str, begin: &str) -> Option<Range<usize>> {
    let begin = text.find(begin)? + begin.len();
    let length = text[begin..].find(END)?;
    Some(begin..begin + length)
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;
    use crate::workspace;

    #[test]
    fn block_is_between_the_comments() {
        let begin = begin(WRITER);
        let text = format!("before\n{begin}old\n{END}\nafter\n");
        let block = find_block(&text, &begin).unwrap();
        assert_eq!(&text[block], "old\n");
        assert_eq!(find_block(&format!("{END}\n{begin}"), &begin), None);
        assert_eq!(find_block(&begin, &begin), None);
    }

    #[test]
    fn the_document_has_its_place() {
        assert!(Publication::prepare(workspace::root()).is_ok());
    }

    #[test]
    fn figures_take_the_place_of_the_old_and_the_words_stay() -> Result<()> {
        let root = workspace::target_subdir("measure/tests/publication")?;
        fs::create_dir_all(root.join("docs"))?;
        let begin = begin(WRITER);
        fs::write(root.join(PERFORMANCE), "no place\n")?;
        assert!(Publication::prepare(&root).is_err());
        fs::write(
            root.join(PERFORMANCE),
            format!("before\n{begin}old\n{END}\nafter\n"),
        )?;

        let report = report(Vec::new());
        Publication::prepare(&root)?.write(&report)?;
        let text = fs::read_to_string(root.join(PERFORMANCE))?;
        assert!(text.starts_with(&format!("before\n{begin}![")), "{text}");
        assert!(text.ends_with(&format!("\n{END}\nafter\n")), "{text}");
        assert!(text.contains(&report.conditions()) && !text.contains("old\n"));
        assert!(fs::read_to_string(root.join(CHART))?.starts_with("<svg"));
        Ok(())
    }
}
