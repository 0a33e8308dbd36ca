//! What two interfaces state, and where they disagree.
//!
//! Everything that can be said about an interface is broken down into facts: a name and a
//! text, such as `uv_loop_s.active_handles` and `offset 8, size 4, unsigned int`. Two
//! interfaces are the same if they state the same facts, so the comparison needs to know
//! nothing about C.

use std::collections::BTreeMap;
use std::fmt;

/// What a fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Type,
    Member,
    Constant,
    Prototype,
    /// A header of the system that comes along with the interface.
    Include,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] = [
        Kind::Type,
        Kind::Member,
        Kind::Constant,
        Kind::Prototype,
        Kind::Include,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Kind::Type => "types",
            Kind::Member => "members",
            Kind::Constant => "constants",
            Kind::Prototype => "prototypes",
            Kind::Include => "includes",
        })
    }
}

pub(super) type Facts = BTreeMap<(Kind, String), String>;

/// One name about which the two disagree; `None` is the side that does not know it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) original: Option<String>,
    pub(super) ours: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.original, &self.ours) {
            (Some(original), None) => write!(formatter, "missing  {}  {original}", self.name),
            (None, Some(ours)) => write!(formatter, "extra    {}  {ours}", self.name),
            (original, ours) => {
                let text = |side: &Option<String>| side.clone().unwrap_or_default();
                writeln!(formatter, "differs  {}", self.name)?;
                writeln!(formatter, "           original: {}", text(original))?;
                write!(formatter, "           ours:     {}", text(ours))
            }
        }
    }
}

/// The outcome for one way of compiling the headers.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) same: BTreeMap<Kind, usize>,
    pub(super) differences: Vec<Difference>,
}

impl Comparison {
    pub(super) fn same(&self, kind: Kind) -> usize {
        self.same.get(&kind).copied().unwrap_or(0)
    }

    pub(super) fn differing(&self, kind: Kind) -> usize {
        self.differences
            .iter()
            .filter(|difference| difference.kind == kind)
            .count()
    }
}

/// Holds the facts of the original against ours.
///
/// Our headers may bring in more of the system than the original's do, never less. In all else
/// they must agree: an extra name of ours could be one that a program uses for itself.
pub(super) fn compare(original: &Facts, ours: &Facts) -> Comparison {
    let mut comparison = Comparison::default();
    let mut differ =
        |(kind, name): &(Kind, String), original: Option<&String>, ours: Option<&String>| {
            comparison.differences.push(Difference {
                kind: *kind,
                name: name.clone(),
                original: original.cloned(),
                ours: ours.cloned(),
            });
        };
    for (key, expected) in original {
        match ours.get(key) {
            Some(found) if found == expected => *comparison.same.entry(key.0).or_default() += 1,
            found => differ(key, Some(expected), found),
        }
    }
    for (key, found) in ours {
        if key.0 != Kind::Include && !original.contains_key(key) {
            differ(key, None, Some(found));
        }
    }
    comparison.differences.sort();
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(list: &[(Kind, &str, &str)]) -> Facts {
        let fact = |(kind, name, text): &(Kind, &str, &str)| {
            ((*kind, (*name).to_owned()), (*text).to_owned())
        };
        list.iter().map(fact).collect()
    }

    #[test]
    fn what_agrees_is_counted_by_kind() {
        let both = facts(&[
            (Kind::Type, "a", "1"),
            (Kind::Type, "b", "2"),
            (Kind::Member, "a.x", "3"),
        ]);
        let comparison = compare(&both, &both);
        assert_eq!(comparison.same(Kind::Type), 2);
        assert_eq!(comparison.same(Kind::Member), 1);
        assert_eq!(comparison.same(Kind::Constant), 0);
        assert_eq!(comparison.differences, []);
    }

    #[test]
    fn a_difference_names_both_sides() {
        let original = facts(&[
            (Kind::Constant, "changed", "1"),
            (Kind::Constant, "gone", "2"),
        ]);
        let ours = facts(&[
            (Kind::Constant, "changed", "9"),
            (Kind::Constant, "new", "3"),
        ]);
        let comparison = compare(&original, &ours);
        let told: Vec<String> = comparison
            .differences
            .iter()
            .map(Difference::to_string)
            .collect();
        assert_eq!(
            told,
            [
                "differs  changed\n           original: 1\n           ours:     9",
                "missing  gone  2",
                "extra    new  3",
            ]
        );
        assert_eq!(comparison.differing(Kind::Constant), 3);
        assert_eq!(comparison.differing(Kind::Type), 0);
    }

    #[test]
    fn ours_may_include_more_of_the_system_but_not_less() {
        let few = facts(&[(Kind::Include, "stdio.h", "")]);
        let many = facts(&[
            (Kind::Include, "stdio.h", ""),
            (Kind::Include, "unistd.h", ""),
        ]);
        assert_eq!(compare(&few, &many).differences, []);
        assert_eq!(compare(&many, &few).differences.len(), 1);
    }
}
