//! What the thread of the pool works on that has run the program's own work longest.

use crate::names::Names;
use crate::span::{Member, Span};

/// How often the stack of a thread of the pool is asked for, until it leads to who has called.
const TRIES: usize = 10;

/// The name of that work, for which a stack is taken once.
#[derive(Debug, Default)]
pub(crate) struct PoolWork {
    /// The thread, when it began, and a name.
    found: Option<(u32, u64, String)>,
}

impl PoolWork {
    /// Looks at the pool at the end of a span. Work that has run for less than `limit_ns` has no name.
    pub(crate) fn look(&mut self, span: &Span, limit_ns: u64, names: &mut dyn Names) {
        let longest = span.pool.longest();
        let is_long = |of: &&Member| of.is_work() && of.for_ns >= limit_ns;
        let Some(member) = longest.filter(is_long) else {
            self.found = None;
            return;
        };
        let since_ns = span.until_ns.saturating_sub(member.for_ns);
        let is_same = |of: &(u32, u64, String)| (of.0, of.1) == (member.tid, since_ns);
        if self.found.as_ref().is_some_and(is_same) {
            return;
        }
        // At some places of code that was written by hand nobody can tell who has called it; it is soon at another.
        let name = (0..TRIES).find_map(|_| {
            let stack = names.sample(member.tid)?.addresses;
            let is_whole = stack.iter().any(|of| names.is_own(*of));
            is_whole.then(|| names.work(&stack))?
        });
        self.found = name.map(|name| (member.tid, since_ns, name));
    }

    /// The name of what a thread has run since a time, if that is it.
    pub(crate) fn of(&self, tid: u32, since_ns: u64) -> Option<&str> {
        let found = self.found.as_ref();
        let found = found.filter(|of| (of.0, of.1) == (tid, since_ns));
        found.map(|(_, _, name)| name.as_str())
    }

    /// Its name, if it is known.
    pub(crate) fn name(&self) -> Option<&str> {
        self.found.as_ref().map(|(_, _, name)| name.as_str())
    }
}
