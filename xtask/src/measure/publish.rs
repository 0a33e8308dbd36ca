//! Puts what was measured into the documents: the table and the chart that readers see.
//!
//! Each document has one block between two comments, and only what lies between them is
//! replaced, so that the words around the figures are written by hand and the figures never.

use super::report::Report;
use anyhow::{Context, Result};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- benchmarks: written by `cargo xtask measure --full --publish` -->\n";
const END: &str = "<!-- end of benchmarks -->";

const PERFORMANCE: &str = "docs/PERFORMANCE.md";
const README: &str = "README.md";
const CHART: &str = "docs/benchmarks.svg";

/// A document with the place for the figures.
struct Document {
    path: PathBuf,
    text: String,
    block: Range<usize>,
}

/// The documents to be written, which are known to have a place for the figures.
pub(crate) struct Publication {
    chart: PathBuf,
    performance: Document,
    readme: Document,
}

impl Publication {
    /// Finds the places first, so that nothing is measured for hours in vain.
    pub(crate) fn prepare(root: &Path) -> Result<Publication> {
        Ok(Publication {
            chart: root.join(CHART),
            performance: Document::open(root, PERFORMANCE)?,
            readme: Document::open(root, README)?,
        })
    }

    /// Writes the tables into both documents, and the chart beside them.
    pub(crate) fn write(&self, report: &Report) -> Result<()> {
        let (conditions, families) = (report.conditions(), report.family_tables());
        let rows = report.row_tables();
        let verdict = report.verdict().join("\n\n");
        self.performance.replace(&format!(
            "![How many times as good as the original](benchmarks.svg)\n\n\
             {conditions}\n\n{verdict}\n\n{families}\n{rows}"
        ))?;
        self.readme.replace(&format!(
            "![How many times as good as the original]({CHART})\n\n{verdict}\n\n{families}\n\
             <details><summary>All rows</summary>\n\n{conditions}\n\n{rows}\n</details>\n"
        ))?;
        fs::write(&self.chart, report.chart())
            .with_context(|| format!("cannot write {}", self.chart.display()))
    }
}

impl Document {
    fn open(root: &Path, name: &str) -> Result<Document> {
        let path = root.join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        let block = find_block(&text)
            .with_context(|| format!("{name} has no lines {BEGIN:?} and {END:?}"))?;
        Ok(Document { path, text, block })
    }

    fn replace(&self, figures: &str) -> Result<()> {
        let mut text = self.text.clone();
        text.replace_range(self.block.clone(), figures);
        fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// What lies between the two comments.
fn find_block(text: &str) -> Option<Range<usize>> {
    let begin = text.find(BEGIN)? + BEGIN.len();
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
        let text = format!("before\n{BEGIN}old\n{END}\nafter\n");
        let block = find_block(&text).unwrap();
        assert_eq!(&text[block], "old\n");
        assert_eq!(find_block(&format!("{END}\n{BEGIN}")), None);
        assert_eq!(find_block(BEGIN), None);
    }

    #[test]
    fn documents_have_their_places() {
        assert!(Publication::prepare(workspace::root()).is_ok());
    }

    #[test]
    fn figures_take_the_place_of_the_old_and_the_words_stay() -> Result<()> {
        let root = workspace::target_subdir("measure/tests/publication")?;
        fs::create_dir_all(root.join("docs"))?;
        fs::write(root.join(README), "no place\n")?;
        let text = format!("before\n{BEGIN}old\n{END}\nafter\n");
        fs::write(root.join(PERFORMANCE), &text)?;
        assert!(Publication::prepare(&root).is_err());
        fs::write(root.join(README), &text)?;

        let report = report(Vec::new());
        Publication::prepare(&root)?.write(&report)?;
        for name in [README, PERFORMANCE] {
            let text = fs::read_to_string(root.join(name))?;
            assert!(text.starts_with(&format!("before\n{BEGIN}![")), "{text}");
            assert!(text.ends_with(&format!("\n{END}\nafter\n")), "{text}");
            assert!(text.contains(&report.conditions()) && !text.contains("old\n"));
        }
        assert!(fs::read_to_string(root.join(CHART))?.starts_with("<svg"));
        Ok(())
    }
}
