//! The list of tests that are expected to pass. It is checked in, and it only grows.

use super::Tested;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Expected {
    path: PathBuf,
    /// The comment lines, which stay at the top.
    comments: Vec<String>,
    names: BTreeSet<String>,
}

impl Expected {
    pub(crate) fn read(path: &Path) -> Result<Expected> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Expected::parse(path, &text))
    }

    fn parse(path: &Path, text: &str) -> Expected {
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        let (comments, names): (Vec<&str>, Vec<&str>) =
            lines().partition(|line| line.starts_with('#'));
        Expected {
            path: path.to_owned(),
            comments: comments.into_iter().map(str::to_owned).collect(),
            names: names.into_iter().map(str::to_owned).collect(),
        }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The tests that were run, are expected to pass, and did not. A skipped test did not pass:
    /// a library that says "not supported" makes many tests skip.
    pub(crate) fn broken_by<'a>(&self, tests: &'a [Tested]) -> Vec<&'a Tested> {
        let broken = |test: &&Tested| self.contains(&test.name) && !test.verdict.passed();
        tests.iter().filter(broken).collect()
    }

    /// Adds names to the file; returns how many were new.
    pub(crate) fn bless<'a>(&self, passed: impl Iterator<Item = &'a str>) -> Result<usize> {
        let mut names = self.names.clone();
        names.extend(passed.map(str::to_owned));
        let added = names.len() - self.names.len();
        if added > 0 {
            let text = self.format(&names);
            fs::write(&self.path, text)
                .with_context(|| format!("cannot write {}", self.path.display()))?;
        }
        Ok(added)
    }

    fn format(&self, names: &BTreeSet<String>) -> String {
        let lines = self.comments.iter().chain(names);
        lines.flat_map(|line| [line.as_str(), "\n"]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_stay_on_top_and_names_are_sorted() {
        let expected = Expected::parse(Path::new("list"), "# head\n\nb\na\n");
        assert!(expected.contains("a") && !expected.contains("# head"));
        let mut names = expected.names.clone();
        names.insert("aa".to_owned());
        assert_eq!(expected.format(&names), "# head\na\naa\nb\n");
    }

    #[test]
    fn bless_adds_and_never_removes() {
        let path = std::env::temp_dir().join(format!("expected-{}.txt", std::process::id()));
        fs::write(&path, "# head\nkept\n").unwrap();
        let expected = Expected::read(&path).unwrap();
        assert_eq!(expected.bless(["new", "kept"].into_iter()).unwrap(), 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), "# head\nkept\nnew\n");
        let expected = Expected::read(&path).unwrap();
        assert_eq!(expected.bless(std::iter::empty()).unwrap(), 0);
        assert_eq!(fs::read_to_string(&path).unwrap(), "# head\nkept\nnew\n");
        fs::remove_file(&path).unwrap();
    }
}
