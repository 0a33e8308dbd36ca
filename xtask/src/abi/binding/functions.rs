//! The functions of the interface in Rust: as C declares them, and as tests call them.
//!
//! C programs cast between a handle and what it begins with. Here, a function that takes a handle, a
//! request or an address takes whatever begins with one (`Holds`), and its callback takes the same.

use super::preamble;
use super::spelling::{Function, Names};
use crate::abi::facts::{Facts, Kind};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The types that all handles and requests begin with, and an address of any family.
const BASES: [&str; 3] = ["uv_handle_t", "uv_req_t", "libc::sockaddr"];

pub(super) fn write(facts: &Facts, names: &Names) -> Result<String> {
    let kinds = Kinds::new(facts);
    let mut declarations = String::new();
    let mut pointers = String::new();
    let mut wrappers = String::new();
    let mut exports = Vec::new();
    for ((kind, name), spelled) in facts {
        if *kind != Kind::Prototype {
            continue;
        }
        let signature = Signature::new(name, spelled, names, &kinds)
            .with_context(|| format!("cannot declare {name}: {spelled}"))?;
        let _ = writeln!(declarations, "        {}", signature.declaration());
        let _ = writeln!(pointers, "    {}", signature.pointer());
        match signature.wrapper() {
            Some(wrapper) => wrappers.push_str(&wrapper),
            None => exports.push(name.as_str()),
        }
    }
    let mut text = preamble("The functions of the interface.");
    text.push_str("use crate::{Holds, held, held_const};\nuse crate::types::*;\n");
    text.push_str("use std::ffi::{c_char, c_int, c_uint, c_void};\nuse std::mem::transmute;\n\n");
    text.push_str("/// Exactly what the headers declare.\npub mod raw {\n    use super::*;\n\n");
    let _ = writeln!(
        text,
        "    unsafe extern \"C\" {{\n{declarations}    }}\n}}\n"
    );
    text.push_str(
        "/// The type of a pointer to each function, for a library that is loaded while running.\n",
    );
    let _ = writeln!(
        text,
        "pub mod pointers {{\n    use super::*;\n\n{pointers}}}\n"
    );
    let _ = writeln!(
        text,
        "pub use raw::{{\n    {},\n}};\n",
        exports.join(",\n    ")
    );
    text.push_str(&kinds.implementations());
    text.push_str(&wrappers);
    Ok(text)
}

/// The handles and requests, as the interface itself lists them.
struct Kinds {
    handles: BTreeSet<String>,
    requests: BTreeSet<String>,
}

impl Kinds {
    fn new(facts: &Facts) -> Kinds {
        let listed = |list: &str| -> BTreeSet<String> {
            let item = |((_, name), text): (&(Kind, String), &String)| {
                name.strip_prefix('#')?
                    .strip_prefix(list)?
                    .strip_prefix('[')?;
                let (_, lower) = text.split_once("\"\"")?;
                Some(format!("uv_{lower}_t"))
            };
            facts.iter().filter_map(item).collect()
        };
        Kinds {
            handles: listed("UV_HANDLE_TYPE_MAP"),
            requests: listed("UV_REQ_TYPE_MAP"),
        }
    }

    fn has(&self, rust: &str) -> bool {
        self.handles.contains(rust) || self.requests.contains(rust) || BASES.contains(&rust)
    }

    fn implementations(&self) -> String {
        let mut text = String::new();
        for (base, kinds) in [("uv_handle_t", &self.handles), ("uv_req_t", &self.requests)] {
            for kind in kinds {
                if kind != base {
                    let _ = writeln!(text, "unsafe impl Holds<{base}> for {kind} {{}}");
                }
            }
        }
        text.push('\n');
        text
    }
}

/// A parameter in Rust, once as C has it and once as tests give it.
struct Parameter {
    raw: String,
    lent: Lent,
}

enum Lent {
    /// The same type.
    Same,
    /// A pointer to something that begins with an object: whether it is constant, and the object.
    Object(bool, String),
    /// A callback whose first parameter is the object of that other parameter.
    Callback { of: usize, rest: String },
}

struct Signature<'a> {
    name: &'a str,
    parameters: Vec<Parameter>,
    result: String,
}

impl<'a> Signature<'a> {
    fn new(name: &'a str, spelled: &str, names: &Names, kinds: &Kinds) -> Result<Signature<'a>> {
        let spelled = spelled.strip_prefix('*').context("no pointer")?;
        let function = Function::parse(spelled)?;
        let mut parameters = Vec::new();
        for spelled in &function.parameters {
            let raw = match spelled.as_str() {
                "..." => "...".to_owned(),
                _ => names.rust(spelled)?,
            };
            let lent = match object(&raw) {
                Some((constant, object)) if kinds.has(object) => {
                    Lent::Object(constant, object.to_owned())
                }
                _ => Lent::Same,
            };
            parameters.push(Parameter { raw, lent });
        }
        let mut signature = Signature {
            name,
            parameters,
            result: names.result(&function.result)?,
        };
        signature.tie_callbacks();
        Ok(signature)
    }

    /// A callback is called with the handle or the request that it was given with.
    fn tie_callbacks(&mut self) {
        for at in 0..self.parameters.len() {
            let Some((object, rest)) = first_of_callback(&self.parameters[at].raw) else {
                continue;
            };
            let is = |other: &Parameter, object: &str| matches!(&other.lent, Lent::Object(false, held) if held == object);
            let same = self.parameters.iter().position(|other| is(other, object));
            // Rooms are found for any handle.
            let any = || {
                let first = |other: &Parameter| matches!(other.lent, Lent::Object(false, _));
                (object == "uv_handle_t").then(|| self.parameters.iter().position(first))?
            };
            if let Some(of) = same.or_else(any) {
                let rest = rest.to_owned();
                self.parameters[at].lent = Lent::Callback { of, rest };
            }
        }
    }

    /// What takes `int`s and gives a number has nothing to ask of its caller. A longer number may
    /// stand for a thread.
    fn is_safe(&self) -> bool {
        let is_int = |rust: &str| matches!(rust, "c_int" | "c_uint");
        let result = self.result.trim_start_matches(" -> ");
        (is_int(result) || matches!(result, "u64" | "usize"))
            && self.parameters.iter().all(|one| is_int(&one.raw))
    }

    fn declaration(&self) -> String {
        let parameter = |parameter: &Parameter| match parameter.raw.as_str() {
            "..." => "...".to_owned(),
            raw => format!("_: {raw}"),
        };
        let parameters: Vec<String> = self.parameters.iter().map(parameter).collect();
        format!(
            "pub {}fn {}({}){};",
            if self.is_safe() { "safe " } else { "" },
            self.name,
            parameters.join(", "),
            self.result
        )
    }

    fn pointer(&self) -> String {
        let parameters: Vec<&str> = self.parameters.iter().map(|one| one.raw.as_str()).collect();
        format!(
            "pub type {} = unsafe extern \"C\" fn({}){};",
            self.name,
            parameters.join(", "),
            self.result
        )
    }

    /// None for a function that tests call as it is.
    fn wrapper(&self) -> Option<String> {
        let mut generics = Vec::new();
        let mut parameters = Vec::new();
        let mut arguments = Vec::new();
        for (at, parameter) in self.parameters.iter().enumerate() {
            let (name, type_) = (letter(b'a', at), letter(b'A', at));
            let (as_lent, argument) = match &parameter.lent {
                Lent::Same => (parameter.raw.clone(), name.to_string()),
                Lent::Object(constant, object) => {
                    generics.push(format!("{type_}: Holds<{object}>"));
                    match constant {
                        true => (format!("*const {type_}"), format!("held_const({name})")),
                        false => (format!("*mut {type_}"), format!("held({name})")),
                    }
                }
                Lent::Callback { of, rest } => (
                    format!("{CALLBACK}*mut {}{rest}", letter(b'A', *of)),
                    format!("transmute({name})"),
                ),
            };
            parameters.push(format!("{name}: {as_lent}"));
            arguments.push(argument);
        }
        if generics.is_empty() {
            return None;
        }
        Some(format!(
            "pub unsafe fn {name}<{}>({}){} {{\n    unsafe {{ raw::{name}({}) }}\n}}\n\n",
            generics.join(", "),
            parameters.join(", "),
            self.result,
            arguments.join(", "),
            name = self.name,
        ))
    }
}

const CALLBACK: &str = "Option<unsafe extern \"C\" fn(";

fn letter(first: u8, at: usize) -> char {
    char::from(first + at as u8)
}

/// Whether a pointer is to something constant, and to what.
fn object(raw: &str) -> Option<(bool, &str)> {
    match raw.strip_prefix("*const ") {
        Some(target) => Some((true, target)),
        None => Some((false, raw.strip_prefix("*mut ")?)),
    }
}

/// What the first parameter of a callback points to, and everything that follows it.
fn first_of_callback(raw: &str) -> Option<(&str, &str)> {
    let first = raw.strip_prefix(CALLBACK)?.strip_prefix("*mut ")?;
    let end = first.find([',', ')'])?;
    Some(first.split_at(end))
}
