//! The debugging information of one compiled C file, as a plain tree.
//!
//! Compilers describe in DWARF everything we want to know about a type, after all macros,
//! conditions and padding. This module only fetches it; [`super::types`] makes sense of it.

use anyhow::{Context, Result};
use gimli::{AttributeValue, DwAt, DwTag, EndianSlice, LittleEndian};
use object::{Object, ObjectSection};
use std::collections::HashMap;
use std::path::Path;

/// One entry of the tree. Other entries are named by their place in [`DebugInfo::entries`].
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) tag: DwTag,
    pub(super) name: Option<String>,
    /// The type of what this describes, or the type this refines. Absent means `void`.
    pub(super) target: Option<usize>,
    /// In bytes.
    pub(super) size: Option<u64>,
    /// Of a member, from the start of what it is a member of.
    pub(super) offset: u64,
    /// Of an enumerator.
    pub(super) value: Option<i64>,
    /// How many elements an array's dimension has.
    pub(super) count: Option<u64>,
    /// Of a function type: whether its parameters are known.
    pub(super) prototyped: bool,
    /// A type that is announced but not defined.
    pub(super) declaration: bool,
    pub(super) children: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct DebugInfo {
    pub(super) entries: Vec<Entry>,
}

type Reader<'a> = EndianSlice<'a, LittleEndian>;
type Die<'a> = gimli::DebuggingInformationEntry<Reader<'a>>;

impl DebugInfo {
    /// Reads a linked file. An object file would not do: its references between sections are
    /// filled in only when it is linked.
    pub(super) fn read(path: &Path) -> Result<DebugInfo> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = object::File::parse(&*bytes).context("the compiler's output is no ELF file")?;
        let section = |id: gimli::SectionId| -> Result<Reader<'_>> {
            let data = match file.section_by_name(id.name()) {
                Some(section) => section.data()?,
                None => &[],
            };
            Ok(EndianSlice::new(data, LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section)?;
        let mut info = DebugInfo {
            entries: Vec::new(),
        };
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            info.read_unit(&dwarf, &dwarf.unit(header)?)?;
        }
        Ok(info)
    }

    fn read_unit<'a>(
        &mut self,
        dwarf: &gimli::Dwarf<Reader<'a>>,
        unit: &gimli::Unit<Reader<'a>>,
    ) -> Result<()> {
        let first = self.entries.len();
        let mut places = HashMap::new();
        let mut targets = Vec::new();
        // The way from the root to the entry at hand, as depth and place.
        let mut ancestors: Vec<(isize, usize)> = Vec::new();
        let mut cursor = unit.entries();
        while let Some(die) = cursor.next_dfs()? {
            let place = self.entries.len();
            while ancestors
                .last()
                .is_some_and(|(depth, _)| *depth >= die.depth())
            {
                ancestors.pop();
            }
            if let Some((_, parent)) = ancestors.last() {
                self.entries[*parent].children.push(place);
            }
            ancestors.push((die.depth(), place));
            places.insert(die.offset(), place);
            targets.push(match die.attr_value(gimli::DW_AT_type) {
                Some(AttributeValue::UnitRef(offset)) => Some(offset),
                _ => None,
            });
            self.entries.push(entry(dwarf, unit, die)?);
        }
        // An entry may refer to one that comes later, hence in a second step.
        for (entry, target) in self.entries[first..].iter_mut().zip(targets) {
            entry.target = target
                .map(|offset| {
                    places
                        .get(&offset)
                        .copied()
                        .context("a type that is not in its unit")
                })
                .transpose()?;
        }
        Ok(())
    }
}

fn entry<'a>(
    dwarf: &gimli::Dwarf<Reader<'a>>,
    unit: &gimli::Unit<Reader<'a>>,
    die: &Die<'a>,
) -> Result<Entry> {
    let name = match die.attr_value(gimli::DW_AT_name) {
        Some(value) => Some(
            dwarf
                .attr_string(unit, value)?
                .to_string_lossy()
                .into_owned(),
        ),
        None => None,
    };
    let number = |attribute: DwAt| {
        die.attr_value(attribute)
            .and_then(|value| value.udata_value())
    };
    let count = number(gimli::DW_AT_count)
        .or_else(|| number(gimli::DW_AT_upper_bound).map(|last| last.wrapping_add(1)));
    Ok(Entry {
        tag: die.tag(),
        name,
        target: None,
        size: number(gimli::DW_AT_byte_size),
        offset: number(gimli::DW_AT_data_member_location).unwrap_or(0),
        value: die.attr_value(gimli::DW_AT_const_value).and_then(signed),
        count,
        prototyped: die.has_attr(gimli::DW_AT_prototyped),
        declaration: die.has_attr(gimli::DW_AT_declaration),
        children: Vec::new(),
    })
}

/// A constant as the number it means. GCC writes negative ones in a signed form, so the forms
/// without a sign are not to be sign-extended: a byte of 0x80 is 128.
fn signed(value: AttributeValue<Reader<'_>>) -> Option<i64> {
    match value {
        AttributeValue::Sdata(number) => Some(number),
        other => other
            .udata_value()
            .and_then(|number| i64::try_from(number).ok()),
    }
}
