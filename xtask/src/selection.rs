//! Choosing tests and benchmarks by name: exact, by glob, or by prefix.

use anyhow::{Context, Result, ensure};
use glob::Pattern;
use std::collections::BTreeSet;

/// The entries of `all` that `wanted` names, in the order of `all`.
///
/// A word is taken as an exact name if there is one, as a glob if it has a wildcard, and as a
/// prefix otherwise. A word that names nothing is an error.
pub(crate) fn select<'a>(all: &[&'a str], wanted: &[String]) -> Result<Vec<&'a str>> {
    let mut chosen = BTreeSet::new();
    for word in wanted {
        let matcher = Matcher::new(all, word)?;
        let mut matching = (0..all.len())
            .filter(|index| matcher.matches(all[*index]))
            .peekable();
        ensure!(matching.peek().is_some(), "nothing is called {word:?}");
        chosen.extend(matching);
    }
    Ok(chosen.into_iter().map(|index| all[index]).collect())
}

enum Matcher<'a> {
    Exact(&'a str),
    Glob(Pattern),
    Prefix(&'a str),
}

impl<'a> Matcher<'a> {
    fn new(all: &[&str], word: &'a str) -> Result<Matcher<'a>> {
        if all.contains(&word) {
            return Ok(Matcher::Exact(word));
        }
        if word.contains(['*', '?', '[']) {
            let pattern = Pattern::new(word).with_context(|| format!("{word:?} is not a glob"))?;
            return Ok(Matcher::Glob(pattern));
        }
        Ok(Matcher::Prefix(word))
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Matcher::Exact(word) => name == *word,
            Matcher::Glob(pattern) => pattern.matches(name),
            Matcher::Prefix(word) => name.starts_with(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::select;

    const ALL: [&str; 4] = ["timer", "timer_again", "tcp_close", "udp_close"];

    fn names(wanted: &[&str]) -> Vec<&'static str> {
        let wanted: Vec<String> = wanted.iter().map(|word| (*word).to_owned()).collect();
        select(&ALL, &wanted).unwrap()
    }

    #[test]
    fn exact_name_wins_over_prefix() {
        assert_eq!(names(&["timer"]), ["timer"]);
    }

    #[test]
    fn prefix_and_glob() {
        assert_eq!(names(&["time"]), ["timer", "timer_again"]);
        assert_eq!(names(&["*_close"]), ["tcp_close", "udp_close"]);
    }

    #[test]
    fn order_is_that_of_the_list_and_each_name_comes_once() {
        assert_eq!(
            names(&["udp", "tcp", "*_close"]),
            ["tcp_close", "udp_close"]
        );
    }

    #[test]
    fn a_word_without_match_is_an_error() {
        assert!(select(&ALL, &["nope".to_owned()]).is_err());
    }
}
