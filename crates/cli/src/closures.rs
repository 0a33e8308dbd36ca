//! Names and places of the closures and futures of programs on the Rust crate.
//!
//! The crate names them by functions of its own (`crates/blacklight/src/code.rs`): the symbol of what drops a
//! `blacklight::code::Closure<F>` has the type `F` in its name. Debug information tells which of several closures of a function
//! that is, and where it is written. It is searched once, when the first such function is met.

use gimli::{AttributeValue, EndianArcSlice, Reader as _, RunTimeEndian};
use gimli::{DW_AT_decl_file, DW_AT_decl_line, DW_AT_low_pc, DW_AT_name};
use gimli::{DW_TAG_namespace, DW_TAG_subprogram};
use std::collections::HashMap;

type Slice = EndianArcSlice<RunTimeEndian>;
type Dwarf = gimli::Dwarf<Slice>;
type Unit = gimli::Unit<Slice>;
type Entry = gimli::DebuggingInformationEntry<Slice>;

/// How the types begin that name others.
const NAMING: [&str; 2] = ["blacklight::code::Closure<", "blacklight::code::Task<"];

/// The type that a function names, by the function's own name.
pub(crate) fn named(function: &str) -> Option<&str> {
    let naming = NAMING.iter().find_map(|naming| function.split_once(naming));
    let (before, rest) = naming?;
    let is_drop = before.ends_with("drop_in_place<") || before.ends_with("drop_in_place::<");
    rest.strip_suffix(">>").filter(|_| is_drop)
}

/// The code of a closure or a future, by the name that debug information has for its type.
fn code_of(named: &str) -> Option<String> {
    let (before, after) = named.rsplit_once("_env#")?;
    Some(format!("{before}#{after}"))
}

/// The file and the line of functions.
#[derive(Debug, Default)]
pub(crate) struct Places(HashMap<u64, (String, u32)>);

impl Places {
    /// Searches debug information.
    pub(crate) fn read(dwarf: &Dwarf) -> Places {
        let mut found = Found::default();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            // What cannot be read is left out.
            let unit = dwarf.unit(header);
            let _ = unit.and_then(|unit| found.read(dwarf, &unit));
        }
        let Found { names, mut places } = found;
        let places = names
            .into_iter()
            .filter_map(|(address, code)| Some((address, places.remove(&code)?)));
        Places(places.collect())
    }

    /// Where the code is written that the function at this address names.
    pub(crate) fn get(&self, address: u64) -> Option<(&str, u32)> {
        let (file, line) = self.0.get(&address)?;
        Some((file, *line))
    }
}

/// What was found.
#[derive(Default)]
struct Found {
    /// The code that functions name, by their addresses.
    names: HashMap<u64, String>,
    /// Where code is written, by its path.
    places: HashMap<String, (String, u32)>,
}

impl Found {
    fn read(&mut self, dwarf: &Dwarf, unit: &Unit) -> gimli::Result<()> {
        let mut path: Vec<(isize, String)> = Vec::new();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            path.retain(|(depth, _)| *depth < entry.depth());
            let tag = entry.tag();
            if tag != DW_TAG_namespace && tag != DW_TAG_subprogram {
                continue;
            }
            let Some(name) = entry
                .attr_value(DW_AT_name)
                .and_then(|name| text(dwarf, unit, name))
            else {
                continue;
            };
            if tag == DW_TAG_namespace {
                path.push((entry.depth(), name));
            } else if let Some(code) = named(&name).and_then(code_of) {
                if let Some(AttributeValue::Addr(address)) = entry.attr_value(DW_AT_low_pc) {
                    self.names.insert(address, code);
                }
            } else if name.starts_with('{')
                && let Some(place) = place(dwarf, unit, entry)
            {
                let outer = path.iter().map(|(_, name)| name.as_str());
                let path: Vec<&str> = outer.chain([name.as_str()]).collect();
                self.places.insert(path.join("::"), place);
            }
        }
        Ok(())
    }
}

fn text(dwarf: &Dwarf, unit: &Unit, value: AttributeValue<Slice>) -> Option<String> {
    let text = dwarf.attr_string(unit, value).ok()?;
    Some(text.to_string_lossy().ok()?.into_owned())
}

/// Where a function is declared.
fn place(dwarf: &Dwarf, unit: &Unit, entry: &Entry) -> Option<(String, u32)> {
    let line = entry.attr_value(DW_AT_decl_line)?.udata_value()?;
    let AttributeValue::FileIndex(file) = entry.attr_value(DW_AT_decl_file)? else {
        return None;
    };
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(file)?;
    let name = text(dwarf, unit, file.path_name())?;
    let directory = file.directory(header);
    let directory = directory.and_then(|directory| text(dwarf, unit, directory));
    let file = match directory {
        Some(directory) if !name.starts_with('/') => format!("{directory}/{name}"),
        _ => name,
    };
    Some((file, u32::try_from(line).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_name_types() {
        for (function, type_) in [
            (
                "core::ptr::drop_in_place<blacklight::code::Closure<app::main::{{closure}}>>",
                Some("app::main::{{closure}}"),
            ),
            (
                "core::ptr::drop_in_place::<blacklight::code::Task<app::serve::{closure#0}>>",
                Some("app::serve::{closure#0}"),
            ),
            (
                "drop_in_place<blacklight::code::Closure<app::{impl#0}::go::{closure_env#1}<u32>>>",
                Some("app::{impl#0}::go::{closure_env#1}<u32>"),
            ),
            ("core::ptr::drop_in_place<app::main::{{closure}}>", None),
            (
                "<blacklight::code::Closure<app::f> as core::ops::Drop>::drop",
                None,
            ),
            ("app::main", None),
        ] {
            assert_eq!(named(function), type_, "{function}");
        }
    }

    #[test]
    fn types_lead_to_code() {
        for (type_, code) in [
            ("app::main::{closure_env#3}", Some("app::main::{closure#3}")),
            (
                "app::f::{async_fn_env#0}<u8>",
                Some("app::f::{async_fn#0}<u8>"),
            ),
            ("fn(u32)", None),
        ] {
            assert_eq!(code_of(type_).as_deref(), code, "{type_}");
        }
    }
}
