//! Names for the callbacks of a trace, each of which is looked up once, while the process is there.

use crate::symbols::Symbols;
use std::collections::HashMap;

/// The names that are kept. A process that has more callbacks makes them up.
const LIMIT: usize = 100_000;

/// Names code by its address.
pub(super) struct Names {
    symbols: Option<Symbols>,
    known: HashMap<u64, String>,
}

impl Names {
    /// Names for the code of a process.
    pub(super) fn of(pid: u32) -> Names {
        let mut symbols = Symbols::of(pid).ok();
        if let Some(symbols) = &mut symbols {
            symbols.hold_files();
        }
        Names {
            symbols,
            known: HashMap::new(),
        }
    }

    /// Names that were looked up before.
    pub(super) fn known(known: HashMap<u64, String>) -> Names {
        let symbols = None;
        Names { symbols, known }
    }

    /// The name of the code at an address.
    pub(super) fn name(&mut self, address: u64) -> &str {
        if self.known.len() > LIMIT {
            self.known.clear();
        }
        let symbols = &mut self.symbols;
        self.known.entry(address).or_insert_with(|| match symbols {
            Some(symbols) => symbols.name(address).to_string(),
            None => format!("?? ({address:#x})"),
        })
    }

    /// All names that were looked up.
    pub(super) fn into_known(self) -> HashMap<u64, String> {
        self.known
    }
}
