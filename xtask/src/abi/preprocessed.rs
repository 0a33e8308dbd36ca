//! What the preprocessor makes of a header: its macros, its functions, and the system headers
//! that come along.
//!
//! Macros leave no trace in debugging information, so the preprocessor is asked to show them
//! (`gcc -dD` keeps the `#define` lines and says which file each is from) and then to expand
//! each. Function-like ones are called with something recognisable.

use super::compiler::Header;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What an argument looks like in the expansion of a function-like macro.
const ARGUMENT: &str = "argument";

/// The macro whose name is passed to lists such as `UV_ERRNO_MAP`. Turning its arguments into
/// strings keeps them from being expanded: `E2BIG` is a macro of the system.
const LIST_PROBE: &str = "#define blacklight_item(a, b) <#a #b>";

/// The items of what a list such as `UV_ERRNO_MAP` expands to, if this is one.
pub(super) fn list_items(expansion: &str) -> Option<impl Iterator<Item = &str>> {
    let inner = expansion.strip_prefix("<\"")?.strip_suffix("\">")?;
    Some(inner.split("\"><\""))
}

/// The macros a header leaves behind and the files it drew in.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Definitions {
    /// By name: how to call it, which for an object-like macro is the name itself.
    pub(super) macros: BTreeMap<String, String>,
    /// Headers outside the interface.
    pub(super) system: BTreeSet<String>,
}

/// Lists what `header` defines.
pub(super) fn definitions(header: &Header<'_>) -> Result<Definitions> {
    let output = header.preprocess(&["-dD"], "")?;
    Ok(read_definitions(&output, header.include))
}

fn read_definitions(output: &str, include: &Path) -> Definitions {
    let mut definitions = Definitions::default();
    let mut within = false;
    for line in output.lines() {
        if let Some(file) = line_marker(line) {
            within = Path::new(file).starts_with(include);
            // Zig names its own by where they are from here.
            if !within && file.ends_with(".h") {
                definitions.system.insert(file.to_owned());
            }
        } else if let Some(rest) = line.strip_prefix("#define ").filter(|_| within) {
            let (name, call) = call_of(rest);
            if !is_left_out(name) {
                definitions.macros.insert(name.to_owned(), call);
            }
        } else if let Some(name) = line.strip_prefix("#undef ") {
            definitions.macros.remove(name.trim());
        }
    }
    definitions
}

/// Macros that are no part of the interface. The ones that fields were put together from are
/// not to be used outside of libuv's header, which takes most of them back at its end; two
/// more expand to something that is gone by then. Structs are compared member by member
/// instead. Names of ours with our own prefix are in nobody's way.
fn is_left_out(name: &str) -> bool {
    name.contains("_PRIVATE_")
        || name.starts_with("BLACKLIGHT_")
        || (name.starts_with("UV_PLATFORM_") && name.ends_with("_FIELDS"))
        || matches!(name, "UV_REQ_FIELDS" | "UV_STREAM_FIELDS")
}

/// The file of a line such as `# 24 "/usr/include/stdio.h" 3`.
fn line_marker(line: &str) -> Option<&str> {
    let (_, rest) = line.strip_prefix("# ")?.split_once(" \"")?;
    Some(rest.split_once('"')?.0)
}

/// From what follows `#define`, the macro's name and how it can be called.
fn call_of(definition: &str) -> (&str, String) {
    let end = definition
        .find(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
        .unwrap_or(definition.len());
    let (name, rest) = definition.split_at(end);
    if !rest.starts_with('(') {
        return (name, name.to_owned());
    }
    let parameters = rest
        .split_once(')')
        .map_or("", |(parameters, _)| parameters);
    let arguments = match name.ends_with("_MAP") {
        true => "blacklight_item".to_owned(),
        false => vec![ARGUMENT; parameters.matches(',').count() + 1].join(", "),
    };
    (name, format!("{name}({arguments})"))
}

/// What each macro of `header` expands to in the end.
pub(super) fn expansions(
    header: &Header<'_>,
    definitions: &Definitions,
) -> Result<BTreeMap<String, String>> {
    // A label of its own on each line finds the expansion again; it is no macro itself.
    let label = |index: usize| format!("blacklight_macro_{index}:");
    let mut body = format!("{LIST_PROBE}\n");
    for (index, call) in definitions.macros.values().enumerate() {
        body.push_str(&format!("{} {call}\n", label(index)));
    }
    let output = header.preprocess(&["-P"], &body)?;
    let mut expansions = BTreeMap::new();
    for (index, name) in definitions.macros.keys().enumerate() {
        let label = label(index);
        let text = output
            .lines()
            .find_map(|line| line.strip_prefix(&label))
            .with_context(|| format!("the preprocessor lost {name}"))?;
        expansions.insert(name.clone(), normalise(text));
    }
    Ok(expansions)
}

/// The names of the functions a header declares. Each is marked with `UV_EXTERN`, which a
/// program may define for itself, and so may we.
pub(super) fn functions(header: &Header<'_>) -> Result<Vec<String>> {
    const MARK: &str = "blacklight_function";
    let output = header.preprocess(&["-P", &format!("-DUV_EXTERN={MARK}")], "")?;
    let name = |declaration: &str| {
        let (head, _) = declaration.split_once('(')?;
        let start =
            head.rfind(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
        Some(head[start.map_or(0, |start| start + 1)..].to_owned())
    };
    output
        .split(MARK)
        .skip(1)
        .map(|declaration| {
            name(declaration).with_context(|| format!("not a function: {declaration:.60}"))
        })
        .collect()
}

/// Takes out spaces that do not separate two words, so that spelling does not matter.
fn normalise(text: &str) -> String {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut normal = String::new();
    for word in text.split_whitespace() {
        if normal.ends_with(is_word) && word.starts_with(is_word) {
            normal.push(' ');
        }
        normal.push_str(word);
    }
    normal
}

/// Whether an expansion is a number, or a sum of numbers that a compiler can work out.
pub(super) fn is_arithmetic(expansion: &str) -> bool {
    expansion.contains(|character: char| character.is_ascii_digit())
        && expansion.chars().all(|character| {
            character.is_ascii_hexdigit() || "xXuUlL()|&<>+-*~ ".contains(character)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_interface_itself_defines_and_keeps_is_listed() {
        let output = "# 1 \"<built-in>\" 1\n# 1 \"/usr/include/stdio.h\" 1 3\n#define EOF (-1)\n\
                      # 1 \"target/zig/lib/stddef.h\" 1 3\n\
                      # 1 \"/i/uv.h\" 1\n#define UV_ONE 1\n#define UV_TWO 2\n#undef UV_TWO\n\
                      #define UV_ERR(x) (-(x))\n#define UV_A_MAP(XX) XX(a, b)\n\
                      #define UV_STREAM_PRIVATE_FIELDS int x;\n";
        let definitions = read_definitions(output, Path::new("/i"));
        let calls: Vec<&str> = definitions.macros.values().map(String::as_str).collect();
        assert_eq!(
            calls,
            ["UV_A_MAP(blacklight_item)", "UV_ERR(argument)", "UV_ONE"]
        );
        assert_eq!(
            definitions.system,
            BTreeSet::from(["/usr/include/stdio.h", "target/zig/lib/stddef.h"].map(str::to_owned))
        );
    }

    #[test]
    fn spelling_does_not_matter() {
        assert_eq!(
            normalise("  void * data ;  unsigned int  x;"),
            normalise("void* data; unsigned int x;")
        );
        assert_ne!(normalise("unsigned int x;"), normalise("unsigned intx;"));
    }

    #[test]
    fn numbers_are_told_from_other_expansions() {
        for number in [
            "19",
            "(-4095)",
            "((1<<16)|(53<<8)|(0))",
            "0x0001",
            "02000000",
            "(64 + 1)",
        ] {
            assert!(is_arithmetic(number), "{number}");
        }
        for other in [
            "",
            "\"\"",
            "sem_t",
            "(__builtin_inff())",
            "DT_REG",
            "__attribute__((visibility(\"default\")))",
        ] {
            assert!(!is_arithmetic(other), "{other}");
        }
    }
}
