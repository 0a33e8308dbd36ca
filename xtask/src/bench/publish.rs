//! Puts what was measured into the documents: the table and the chart that readers see.
//!
//! Each document has one block between two comments, and only what lies between them is
//! replaced, so that the words around the figures are written by hand and the figures never.

use super::report::Summary;
use anyhow::{Context, Result};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- benchmarks: written by `cargo xtask bench --publish` -->\n";
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

    /// Writes the table into both documents, and the chart beside them.
    pub(crate) fn write(&self, summary: &Summary) -> Result<()> {
        let (conditions, table) = (summary.conditions(), summary.markdown());
        // Two spaces at the end of a line keep it a line.
        let verdict = summary.verdict().replace('\n', "  \n");
        self.performance.replace(&format!(
            "![How many times as good as the original](benchmarks.svg)\n\n\
             {conditions}\n\n{table}\n{verdict}\n"
        ))?;
        self.readme.replace(&format!(
            "![How many times as good as the original]({CHART})\n\n{verdict}\n\n\
             <details><summary>The figures</summary>\n\n{conditions}\n\n{table}\n</details>\n"
        ))?;
        fs::write(&self.chart, summary.chart())
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
    use super::*;
    use crate::bench::rounds::Rounds;
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
    fn performance_page_has_its_place() {
        assert!(Document::open(workspace::root(), PERFORMANCE).is_ok());
    }

    #[test]
    fn figures_take_the_place_of_the_old_and_the_words_stay() -> Result<()> {
        let root = workspace::target_subdir("bench/publication-test")?;
        fs::create_dir_all(root.join("docs"))?;
        fs::write(root.join(README), "no place\n")?;
        let text = format!("before\n{BEGIN}old\n{END}\nafter\n");
        fs::write(root.join(PERFORMANCE), &text)?;
        assert!(Publication::prepare(&root).is_err());
        fs::write(root.join(README), &text)?;

        let rounds = Rounds {
            most: 3,
            until_clear: false,
        };
        let summary = Summary::new("ours".to_owned(), rounds)?;
        Publication::prepare(&root)?.write(&summary)?;
        for name in [README, PERFORMANCE] {
            let text = fs::read_to_string(root.join(name))?;
            assert!(text.starts_with(&format!("before\n{BEGIN}![")), "{text}");
            assert!(text.ends_with(&format!("\n{END}\nafter\n")), "{text}");
            assert!(text.contains(&summary.markdown()) && !text.contains("old\n"));
        }
        assert!(fs::read_to_string(root.join(CHART))?.starts_with("<svg"));
        Ok(())
    }
}
