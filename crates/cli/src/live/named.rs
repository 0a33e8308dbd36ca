//! The names of code, kept for a while: a view asks for the same ones again and again.

use crate::names::{Living, Names, StallStack};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a name is kept. A compiler at run time may put other code in its place.
const KEPT: Duration = Duration::from_secs(10);
/// The most names that are kept.
const LIMIT: usize = 50_000;
/// The least width of a brief name: the page has more room than a terminal, and wraps where it has not.
const BRIEF: usize = 110;

/// What is known of an address.
struct Known {
    at: Instant,
    name: String,
    is_script: Option<bool>,
    is_own: Option<bool>,
}

/// Names of a living process, kept for a while.
pub(super) struct Named {
    living: Living,
    known: HashMap<u64, Known>,
}

impl Named {
    pub(super) fn of(pid: u32) -> Named {
        Named {
            living: Living::of(pid),
            known: HashMap::new(),
        }
    }

    fn know(&mut self, address: u64) -> (&mut Known, &mut Living) {
        if self.known.len() >= LIMIT {
            self.known.clear();
        }
        let living = &mut self.living;
        let fresh = |living: &mut Living| Known {
            at: Instant::now(),
            name: living.name(address),
            is_script: None,
            is_own: None,
        };
        let known = self.known.entry(address).or_insert_with(|| fresh(living));
        if known.at.elapsed() >= KEPT {
            *known = fresh(living);
        }
        (known, living)
    }
}

impl Names for Named {
    fn name(&mut self, address: u64) -> String {
        self.know(address).0.name.clone()
    }

    fn brief(&mut self, address: u64, width: usize) -> String {
        self.living.brief(address, width.max(BRIEF))
    }

    fn is_below(&mut self, address: u64) -> bool {
        self.living.is_below(address)
    }

    fn is_named(&mut self, address: u64) -> bool {
        self.living.is_named(address)
    }

    fn hint(&mut self, stack: &[u64]) -> Option<&'static str> {
        self.living.hint(stack)
    }

    fn is_script(&mut self, address: u64) -> bool {
        let (known, living) = self.know(address);
        *known
            .is_script
            .get_or_insert_with(|| living.is_script(address))
    }

    fn is_own(&mut self, address: u64) -> bool {
        let (known, living) = self.know(address);
        *known.is_own.get_or_insert_with(|| living.is_own(address))
    }

    fn sample(&mut self, tid: u32) -> Option<StallStack> {
        self.living.sample(tid)
    }

    fn refusal(&mut self) -> Option<String> {
        self.living.refusal()
    }
}

/// A name and its place: `parse (app.js:12)` is `parse` and `app.js:12`.
pub(super) fn split(name: &str) -> (String, String) {
    let parts = name
        .strip_suffix(')')
        .and_then(|name| name.rsplit_once(" ("));
    match parts {
        // Code without a name has its module there.
        Some((name, place)) if name != "??" => (name.to_owned(), place.to_owned()),
        _ => (name.to_owned(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_apart_from_its_place() {
        let of = |name: &str| split(name);
        assert_eq!(
            of("parse (app.js:12)"),
            ("parse".into(), "app.js:12".into())
        );
        assert_eq!(
            of("?? (node+0x12)"),
            ("?? (node+0x12)".into(), String::new())
        );
        assert_eq!(of("f(int)"), ("f(int)".into(), String::new()));
        assert_eq!(of("a (b) (c.c:1)"), ("a (b)".into(), "c.c:1".into()));
    }
}
