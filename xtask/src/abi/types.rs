//! From debugging information to facts about types, enumerators and functions.
//!
//! Types are spelled so that two spellings are equal exactly if the types are compatible:
//! aliases are followed to their end (`uv_file` and `int` are one type), and stop at what has
//! a tag. Members of a struct or union without a tag count as members of the outer type. The
//! notation reads from left to right: `*const char`, `[4]struct uv_buf_t`, `*fn(int) -> void`.

use super::debuginfo::{DebugInfo, Entry};
use super::facts::{Facts, Kind};
use std::collections::{BTreeMap, HashMap};

/// Variables of this prefix, in the probed file, are pointers to the function of that name.
pub(super) const PROTOTYPE: &str = "blacklight_prototype_";

/// Understands one tree.
pub(super) struct Types<'a> {
    entries: &'a [Entry],
    /// The alias of each type that has no tag, by the type's place.
    aliases: HashMap<usize, &'a str>,
    /// Aliases that are spelled as they are instead of being followed.
    kept: &'a [&'a str],
}

impl<'a> Types<'a> {
    pub(super) fn new(info: &'a DebugInfo, kept: &'a [&'a str]) -> Types<'a> {
        let entries = &info.entries[..];
        let untagged_alias = |entry: &'a Entry| {
            let place = entry
                .target
                .filter(|_| entry.tag == gimli::DW_TAG_typedef)?;
            let target = &entries[place];
            (is_aggregate(target) && target.name.is_none())
                .then_some((place, entry.name.as_deref()?))
        };
        Types {
            entries,
            aliases: entries.iter().filter_map(untagged_alias).collect(),
            kept,
        }
    }

    /// How C spells each type of the interface that has a layout of its own.
    pub(super) fn with_layout(&self) -> Vec<String> {
        let defined = |(place, entry): (usize, &Entry)| {
            (is_aggregate(entry) && !entry.declaration)
                .then(|| self.own_name(place))
                .flatten()
        };
        self.entries
            .iter()
            .enumerate()
            .filter_map(defined)
            .collect()
    }

    /// The enumerators whose name starts with `prefix`, by the rest of their name.
    pub(super) fn enumerators(&self, prefix: &str) -> BTreeMap<String, i64> {
        let enumerator = |entry: &Entry| {
            let rest = entry.name.as_deref()?.strip_prefix(prefix)?;
            (entry.tag == gimli::DW_TAG_enumerator).then_some((rest.to_owned(), entry.value?))
        };
        self.entries.iter().filter_map(enumerator).collect()
    }

    /// Everything the tree says about the interface. `alignments` has what no tree tells.
    pub(super) fn facts(&self, alignments: &BTreeMap<String, i64>) -> Facts {
        let mut facts = Facts::new();
        for (place, entry) in self.entries.iter().enumerate() {
            if is_aggregate(entry) {
                self.layout(place, alignments, &mut facts);
            } else if let Some(name) = &entry.name {
                self.alias_or_function(name, entry, &mut facts);
            }
        }
        facts
    }

    fn alias_or_function(&self, name: &str, entry: &Entry, facts: &mut Facts) {
        if let (gimli::DW_TAG_variable, Some(function)) = (entry.tag, name.strip_prefix(PROTOTYPE))
        {
            facts.insert(
                (Kind::Prototype, function.to_owned()),
                self.spell(entry.target),
            );
        }
        let has_layout = entry
            .target
            .is_some_and(|target| self.aliases.contains_key(&target));
        if entry.tag == gimli::DW_TAG_typedef && is_ours(name) && !has_layout {
            facts.insert(
                (Kind::Type, name.to_owned()),
                format!("= {}", self.spell(entry.target)),
            );
        }
    }

    /// The size, the members and the enumerators of a struct, union or enum.
    fn layout(&self, place: usize, alignments: &BTreeMap<String, i64>, facts: &mut Facts) {
        let entry = &self.entries[place];
        if entry.tag == gimli::DW_TAG_enumeration_type {
            self.enumeration(place, facts);
        }
        let Some(name) = self.own_name(place) else {
            return;
        };
        let keyword = keyword(entry);
        let text = match (entry.size, alignments.get(&name)) {
            _ if entry.declaration => format!("{keyword}, incomplete"),
            (Some(size), Some(alignment)) => {
                format!("{keyword}, size {size}, alignment {alignment}")
            }
            (size, _) => format!("{keyword}, size {}", size.unwrap_or(0)),
        };
        let short = name.strip_prefix(keyword).map_or(&*name, str::trim_start);
        self.members(place, short, 0, facts);
        facts.insert((Kind::Type, name.clone()), text);
    }

    fn enumeration(&self, place: usize, facts: &mut Facts) {
        let of = self.spell(Some(place));
        for child in &self.entries[place].children {
            let enumerator = &self.entries[*child];
            if let (Some(name), Some(value)) = (&enumerator.name, enumerator.value)
                && name.starts_with("UV_")
            {
                facts.insert((Kind::Constant, name.clone()), format!("{value} of {of}"));
            }
        }
    }

    fn members(&self, place: usize, prefix: &str, base: u64, facts: &mut Facts) {
        for child in &self.entries[place].children {
            let member = &self.entries[*child];
            if member.tag != gimli::DW_TAG_member {
                continue;
            }
            let offset = base + member.offset;
            let path = match &member.name {
                Some(name) => format!("{prefix}.{name}"),
                None => prefix.to_owned(),
            };
            if member.name.is_some() {
                let text = format!(
                    "offset {offset}, size {}, {}",
                    self.size(member.target),
                    self.spell(member.target)
                );
                facts.insert((Kind::Member, path.clone()), text);
            }
            if let Some(inner) = member.target.filter(|inner| self.is_nameless(*inner)) {
                self.members(inner, &path, offset, facts);
            }
        }
    }

    /// How C spells a struct, union or enum of the interface, if it has a name of its own.
    fn own_name(&self, place: usize) -> Option<String> {
        let entry = &self.entries[place];
        match (&entry.name, self.aliases.get(&place)) {
            (Some(tag), _) => is_ours(tag).then(|| format!("{} {tag}", keyword(entry))),
            (None, Some(alias)) => is_ours(alias).then(|| (*alias).to_owned()),
            (None, None) => None,
        }
    }

    fn is_nameless(&self, place: usize) -> bool {
        let entry = &self.entries[place];
        is_aggregate(entry) && entry.name.is_none() && !self.aliases.contains_key(&place)
    }

    fn spell(&self, place: Option<usize>) -> String {
        let Some(place) = place else {
            return "void".to_owned();
        };
        let entry = &self.entries[place];
        let target = || self.spell(entry.target);
        if let Some(alias) = self.aliases.get(&place) {
            return (*alias).to_owned();
        }
        match entry.tag {
            gimli::DW_TAG_typedef => match entry.name.as_deref() {
                Some(name) if self.kept.contains(&name) => name.to_owned(),
                _ => target(),
            },
            gimli::DW_TAG_pointer_type => format!("*{}", target()),
            gimli::DW_TAG_const_type => format!("const {}", target()),
            gimli::DW_TAG_volatile_type => format!("volatile {}", target()),
            gimli::DW_TAG_restrict_type => format!("restrict {}", target()),
            gimli::DW_TAG_array_type => format!("{}{}", self.dimensions(entry), target()),
            gimli::DW_TAG_subroutine_type => {
                format!("fn({}) -> {}", self.parameters(entry), target())
            }
            _ if is_aggregate(entry) => format!(
                "{} {}",
                keyword(entry),
                entry.name.as_deref().unwrap_or("{}")
            ),
            _ => entry.name.clone().unwrap_or_else(|| entry.tag.to_string()),
        }
    }

    fn dimensions(&self, array: &Entry) -> String {
        let dimension = |child: &usize| {
            let count = self.entries[*child].count;
            format!(
                "[{}]",
                count.map_or_else(String::new, |count| count.to_string())
            )
        };
        array.children.iter().map(dimension).collect()
    }

    fn parameters(&self, function: &Entry) -> String {
        if !function.prototyped {
            return "unknown".to_owned();
        }
        let parameter = |child: &usize| {
            let parameter = &self.entries[*child];
            match parameter.tag {
                gimli::DW_TAG_unspecified_parameters => "...".to_owned(),
                _ => self.spell(parameter.target),
            }
        };
        function
            .children
            .iter()
            .map(parameter)
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn size(&self, place: Option<usize>) -> u64 {
        let Some(place) = place else { return 0 };
        let entry = &self.entries[place];
        if let Some(size) = entry.size {
            return size;
        }
        let element = self.size(entry.target);
        match entry.tag {
            gimli::DW_TAG_array_type => {
                let count = |child: &usize| self.entries[*child].count.unwrap_or(0);
                entry.children.iter().map(count).product::<u64>() * element
            }
            _ => element,
        }
    }
}

fn is_aggregate(entry: &Entry) -> bool {
    matches!(
        entry.tag,
        gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type | gimli::DW_TAG_enumeration_type
    )
}

fn keyword(entry: &Entry) -> &'static str {
    match entry.tag {
        gimli::DW_TAG_structure_type => "struct",
        gimli::DW_TAG_union_type => "union",
        _ => "enum",
    }
}

/// The system's headers declare types too; those of the interface all say `uv`.
fn is_ours(name: &str) -> bool {
    name.trim_start_matches('_').starts_with("uv_")
}
