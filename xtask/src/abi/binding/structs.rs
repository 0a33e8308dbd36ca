//! The structs, unions and aliases of the interface in Rust, with assertions about their layout.

use super::preamble;
use super::spelling::{Names, is_tagged};
use crate::abi::facts::{Facts, Kind};
use anyhow::{Context, Result};
use std::fmt::Write as _;

pub(super) fn write(facts: &Facts, names: &Names) -> Result<String> {
    let mut writer = Writer {
        facts,
        names,
        text: preamble("The types of the interface."),
        assertions: String::new(),
    };
    writer
        .text
        .push_str("use std::ffi::{c_char, c_int, c_uint, c_void};\n\n");
    for ((kind, name), text) in facts {
        if *kind == Kind::Type {
            writer
                .write_type(name, text)
                .with_context(|| format!("cannot say what {name} is"))?;
        }
    }
    // The numbers are those of the machine that writes this. The library asserts its own for each target.
    let _ = write!(
        writer.text,
        "#[cfg(all(target_arch = \"x86_64\", target_env = \"gnu\"))]\n\
         const _: () = {{\n    use std::mem::offset_of;\n{}}};\n",
        writer.assertions
    );
    Ok(writer.text)
}

/// A member of a struct or union.
struct Member<'a> {
    name: &'a str,
    offset: u64,
    size: u64,
    spelled: &'a str,
}

struct Writer<'a> {
    facts: &'a Facts,
    names: &'a Names,
    text: String,
    assertions: String,
}

impl<'a> Writer<'a> {
    fn write_type(&mut self, name: &str, text: &str) -> Result<()> {
        if let Some(target) = text.strip_prefix("= ") {
            if !is_tagged(target) || self.names.of(target) != name {
                let target = self.names.rust(target)?;
                let _ = writeln!(self.text, "pub type {name} = {target};\n");
            }
            return Ok(());
        }
        let (keyword, layout) = text.split_once(", ").context("no layout")?;
        if keyword == "enum" {
            if !name.starts_with("enum ") {
                let _ = writeln!(self.text, "pub type {name} = c_int;\n");
            }
            return Ok(());
        }
        let path = name.strip_prefix(keyword).map_or(name, str::trim_start);
        let rust = self.names.of(name);
        self.aggregate(keyword, path, &rust)?;
        let size = layout.strip_prefix("size ").context("no size")?;
        let size = size.split(',').next().unwrap_or_default();
        let _ = writeln!(
            self.assertions,
            "    assert!(size_of::<{rust}>() == {size});"
        );
        Ok(())
    }

    /// Writes the struct or union whose members' names begin with `path`.
    fn aggregate(&mut self, keyword: &str, path: &str, rust: &str) -> Result<()> {
        let mut fields = String::new();
        let mut end = 0;
        for member in self.members(path)? {
            // The members of a union within a struct lie upon each other; the first is as good.
            if keyword == "struct" && member.offset < end {
                continue;
            }
            end = member.offset + member.size;
            let field = field(member.name);
            let type_ = match member.spelled {
                "struct {}" | "union {}" => {
                    let inner = format!("{rust}_{}", member.name);
                    let keyword = member.spelled.trim_end_matches(" {}");
                    self.aggregate(keyword, &format!("{path}.{}", member.name), &inner)?;
                    inner
                }
                // The C library's longest host name is not the same everywhere.
                spelled => {
                    (self.names.rust(spelled)?).replace("; 1025]", "; libc::NI_MAXHOST as usize]")
                }
            };
            let _ = writeln!(fields, "    pub {field}: {type_},");
            if keyword == "struct" && !path.contains('.') {
                let _ = writeln!(
                    self.assertions,
                    "    assert!(offset_of!({rust}, {field}) == {});",
                    member.offset
                );
            }
        }
        let _ = writeln!(
            self.text,
            "#[repr(C)]\n#[derive(Clone, Copy)]\npub {keyword} {rust} {{\n{fields}}}\nunsafe impl crate::Plain for {rust} {{}}\n"
        );
        Ok(())
    }

    /// In the order of their places, the larger first.
    fn members(&self, path: &str) -> Result<Vec<Member<'a>>> {
        let mut members = Vec::new();
        for ((kind, name), text) in self.facts {
            let member = name
                .strip_prefix(path)
                .and_then(|rest| rest.strip_prefix('.'));
            let Some(name) = member.filter(|name| *kind == Kind::Member && !name.contains('.'))
            else {
                continue;
            };
            members.push(parse(name, text).with_context(|| format!("no member: {text}"))?);
        }
        members.sort_by_key(|member| (member.offset, std::cmp::Reverse(member.size)));
        Ok(members)
    }
}

/// Reads `offset 8, size 4, unsigned int`.
fn parse<'a>(name: &'a str, text: &'a str) -> Option<Member<'a>> {
    let (offset, rest) = text.strip_prefix("offset ")?.split_once(", size ")?;
    let (size, spelled) = rest.split_once(", ")?;
    Some(Member {
        name,
        offset: offset.parse().ok()?,
        size: size.parse().ok()?,
        spelled,
    })
}

/// A member's name, which may be a word that Rust keeps to itself.
fn field(name: &str) -> String {
    match name {
        "async" | "loop" | "type" => format!("{name}_"),
        _ => name.to_owned(),
    }
}
