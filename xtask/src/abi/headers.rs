//! The facts that a set of headers states, and the ways of compiling in which both sets have
//! to state the same.

use super::compiler::Header;
use super::debuginfo::DebugInfo;
use super::facts::{Comparison, Facts, Kind, compare};
use super::preprocessed::{self, Definitions};
use super::types::{PROTOTYPE, Types};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// The C library shows more or less of itself depending on the standard a program asks for,
/// and the headers follow: the most, the default, and the least that both can do with.
const DIALECTS: [(&str, &[&str]); 3] = [
    ("GNU", &["-std=gnu11", "-D_GNU_SOURCE"]),
    ("default", &["-std=gnu11"]),
    ("POSIX", &["-std=c99", "-D_POSIX_C_SOURCE=200809L"]),
];

/// Headers with macros of their own that programs include alone. Their macros are read there,
/// because the original's `uv.h` removes a helper that those of `uv/errno.h` need.
const ALONE: [&str; 2] = ["uv/errno.h", "uv/version.h"];

const ALIGNMENT: &str = "blacklight_alignment_";
const VALUE: &str = "blacklight_value_";

/// Compares two directories of headers in all ways of compiling. The first is named in the
/// summary; the others add what differs in them alone.
pub(super) fn compare_directories(
    compiler: &str,
    original: &Path,
    ours: &Path,
    scratch: &Path,
) -> Result<Vec<(&'static str, Comparison)>> {
    let mut outcome: Vec<(&'static str, Comparison)> = Vec::new();
    for (dialect, flags) in DIALECTS {
        let read = |include: &Path, side: &str| {
            let header = Header {
                compiler,
                include,
                name: "uv.h",
                flags,
                scratch: &scratch.join(side),
            };
            facts(&header, &[])
                .with_context(|| format!("cannot make out the header in {}", include.display()))
        };
        let mut comparison = compare(&read(original, "original")?, &read(ours, "ours")?);
        comparison.differences.retain(|found| {
            !outcome
                .iter()
                .any(|(_, earlier)| earlier.differences.contains(found))
        });
        outcome.push((dialect, comparison));
    }
    Ok(outcome)
}

/// What our headers state where they show the most, with the aliases in `kept` spelled as they are.
pub(super) fn our_facts(kept: &[&str], scratch: &Path) -> Result<Facts> {
    let (_, flags) = DIALECTS[0];
    let header = Header {
        compiler: "gcc",
        include: &crate::workspace::include_dir(),
        name: "uv.h",
        flags,
        scratch,
    };
    facts(&header, kept)
}

/// Everything the headers at `header.include` state, reached through `uv.h`.
fn facts(header: &Header<'_>, kept: &[&str]) -> Result<Facts> {
    let definitions = preprocessed::definitions(header)?;
    let mut expansions = preprocessed::expansions(header, &definitions)?;
    for name in ALONE {
        let alone = Header { name, ..*header };
        expansions.extend(preprocessed::expansions(
            &alone,
            &preprocessed::definitions(&alone)?,
        )?);
    }

    // What has an alignment is known only after a first look at the types.
    let names = Types::new(&DebugInfo::read(&header.compile("")?)?, kept).with_layout();
    let body = probe(&names, &expansions, &preprocessed::functions(header)?);
    let info = DebugInfo::read(&header.compile(&body)?)?;
    let types = Types::new(&info, kept);
    let alignments = by_name(&names, &types.enumerators(ALIGNMENT))?;
    let mut facts = types.facts(&alignments);
    facts.extend(macro_facts(expansions, &types.enumerators(VALUE)));
    facts.extend(include_facts(definitions));
    Ok(facts)
}

/// A piece of C that has the compiler write down what debugging information does not hold by
/// itself: alignments and values of macros as enumerators, functions as pointers to them.
fn probe(names: &[String], expansions: &BTreeMap<String, String>, functions: &[String]) -> String {
    let alignments = names
        .iter()
        .enumerate()
        .map(|(index, name)| format!("enum {{ {ALIGNMENT}{index} = __alignof__({name}) }};\n"));
    let values = expansions
        .iter()
        .filter(|(_, expansion)| preprocessed::is_arithmetic(expansion))
        .map(|(name, expansion)| format!("enum {{ {VALUE}{name} = ({expansion}) }};\n"));
    let prototypes = functions
        .iter()
        .map(|function| format!("__typeof__(&{function}) {PROTOTYPE}{function};\n"));
    alignments.chain(values).chain(prototypes).collect()
}

fn by_name(names: &[String], alignments: &BTreeMap<String, i64>) -> Result<BTreeMap<String, i64>> {
    let alignment = |(index, name): (usize, &String)| {
        let found = alignments.get(&index.to_string());
        Ok((
            name.clone(),
            *found.with_context(|| format!("{name} has no alignment"))?,
        ))
    };
    names.iter().enumerate().map(alignment).collect()
}

/// A number counts as its value, whichever way it is written; a list as its items, whose order
/// matters; anything else as its text.
fn macro_facts(expansions: BTreeMap<String, String>, values: &BTreeMap<String, i64>) -> Facts {
    let mut facts = Facts::new();
    for (name, expansion) in expansions {
        if let Some(items) = preprocessed::list_items(&expansion) {
            for (index, item) in items.enumerate() {
                facts.insert(
                    (Kind::Constant, format!("#{name}[{index:02}]")),
                    item.to_owned(),
                );
            }
        } else {
            let text = values.get(&name).map_or(expansion, i64::to_string);
            facts.insert((Kind::Constant, format!("#{name}")), text);
        }
    }
    facts
}

fn include_facts(definitions: Definitions) -> Facts {
    let fact = |file: String| ((Kind::Include, file), String::new());
    definitions.system.into_iter().map(fact).collect()
}

#[cfg(test)]
mod tests {
    use super::super::facts::Difference;
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::sync::OnceLock;

    /// A small interface with one of everything.
    const HEADER: &str = r#"
        #include <stddef.h>
        #include "uv/errno.h"
        #define UV_EXTERN_DEFAULT
        #ifndef UV_EXTERN
        # define UV_EXTERN
        #endif
        #define UV_FLAG (1 << 3)
        #define UV_A_MAP(XX) XX(E2BIG, "too big") XX(EIO, "i/o")
        typedef enum { UV_FIRST = 1, UV_LAST = -5 } uv_kind;
        struct uv_thing_s {
          void* data;
          union { int fd; void* spare[4]; } u;
          union { long first; char second; };
          uv_kind kind;
        };
        typedef struct uv_thing_s uv_thing_t;
        typedef void (*uv_cb)(uv_thing_t* thing, int status);
        UV_EXTERN int uv_start(uv_thing_t* thing, const char* name, uv_cb cb);
        UV_EXTERN int uv_set(uv_thing_t*, ...);
    "#;

    /// Headers in a directory that goes away with the value.
    struct Headers(PathBuf);

    impl Headers {
        fn new(test: &str, text: &str) -> Headers {
            let dir =
                std::env::temp_dir().join(format!("blacklight-abi-{}-{test}", std::process::id()));
            fs::create_dir_all(dir.join("uv")).unwrap();
            fs::write(dir.join("uv.h"), text).unwrap();
            fs::write(dir.join("uv/errno.h"), "#define UV__EIO (-5)\n").unwrap();
            fs::write(dir.join("uv/version.h"), "#define UV_VERSION_MAJOR 1\n").unwrap();
            Headers(dir)
        }

        fn facts(&self) -> Facts {
            let scratch = self.0.join("scratch");
            let header = Header {
                compiler: "gcc",
                include: &self.0,
                name: "uv.h",
                flags: &["-std=gnu11"],
                scratch: &scratch,
            };
            facts(&header, &[]).unwrap()
        }
    }

    impl Drop for Headers {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn original() -> &'static Facts {
        static ORIGINAL: OnceLock<Facts> = OnceLock::new();
        ORIGINAL.get_or_init(|| Headers::new("original", HEADER).facts())
    }

    /// What is found to differ once `from` is replaced by `to` in the header.
    fn differences(test: &str, from: &str, to: &str) -> Vec<Difference> {
        assert!(HEADER.contains(from));
        let ours = Headers::new(test, &HEADER.replace(from, to));
        compare(original(), &ours.facts()).differences
    }

    fn names(differences: &[Difference]) -> Vec<&str> {
        differences
            .iter()
            .map(|difference| difference.name.as_str())
            .collect()
    }

    #[test]
    fn a_header_states_what_it_declares() {
        let facts = original();
        let fact = |kind: Kind, name: &str| {
            facts
                .get(&(kind, name.to_owned()))
                .map_or("absent", String::as_str)
        };
        assert_eq!(
            fact(Kind::Type, "struct uv_thing_s"),
            "struct, size 56, alignment 8"
        );
        assert_eq!(fact(Kind::Type, "uv_thing_t"), "= struct uv_thing_s");
        assert_eq!(fact(Kind::Type, "uv_kind"), "enum, size 4, alignment 4");
        assert_eq!(
            fact(Kind::Type, "uv_cb"),
            "= *fn(*struct uv_thing_s, int) -> void"
        );
        assert_eq!(
            fact(Kind::Member, "uv_thing_s.u.spare"),
            "offset 8, size 32, [4]*void"
        );
        assert_eq!(
            fact(Kind::Member, "uv_thing_s.second"),
            "offset 40, size 1, char"
        );
        assert_eq!(
            fact(Kind::Member, "uv_thing_s.kind"),
            "offset 48, size 4, uv_kind"
        );
        assert_eq!(fact(Kind::Constant, "UV_LAST"), "-5 of uv_kind");
        assert_eq!(fact(Kind::Constant, "#UV_FLAG"), "8");
        assert_eq!(fact(Kind::Constant, "#UV__EIO"), "-5");
        assert_eq!(
            fact(Kind::Constant, "#UV_A_MAP[00]"),
            r#"E2BIG""\"too big\""#
        );
        assert_eq!(fact(Kind::Constant, "#UV_A_MAP[01]"), r#"EIO""\"i/o\""#);
        assert_eq!(
            fact(Kind::Prototype, "uv_set"),
            "*fn(*struct uv_thing_s, ...) -> int"
        );
        assert_eq!(
            fact(Kind::Prototype, "uv_start"),
            "*fn(*struct uv_thing_s, *const char, *fn(*struct uv_thing_s, int) -> void) -> int"
        );
    }

    #[test]
    fn a_changed_offset_is_found() {
        let found = differences(
            "offset",
            "int fd; void* spare[4];",
            "int fd; void* spare[5];",
        );
        assert!(names(&found).contains(&"struct uv_thing_s"), "{found:?}");
        assert!(names(&found).contains(&"uv_thing_s.kind"), "{found:?}");
        assert!(!names(&found).contains(&"uv_thing_s.data"), "{found:?}");
    }

    #[test]
    fn a_renamed_member_is_found() {
        let found = differences("rename", "long first;", "long other;");
        assert_eq!(names(&found), ["uv_thing_s.first", "uv_thing_s.other"]);
    }

    #[test]
    fn a_changed_alignment_is_found() {
        let found = differences(
            "alignment",
            "uv_kind kind;\n        };",
            "uv_kind kind;\n        } __attribute__((aligned(16)));",
        );
        assert!(
            found[0].ours.as_ref().unwrap().ends_with("alignment 16"),
            "{found:?}"
        );
    }

    #[test]
    fn a_changed_enumerator_is_found() {
        assert_eq!(
            names(&differences("enumerator", "UV_LAST = -5", "UV_LAST = -6")),
            ["UV_LAST"]
        );
    }

    #[test]
    fn a_changed_or_missing_macro_is_found() {
        assert_eq!(
            names(&differences("value", "(1 << 3)", "(1 << 4)")),
            ["#UV_FLAG"]
        );
        assert_eq!(
            names(&differences("missing", "#define UV_FLAG (1 << 3)", "")),
            ["#UV_FLAG"]
        );
        assert_eq!(
            names(&differences("list", "\"i/o\"", "\"I/O\"")),
            ["#UV_A_MAP[01]"]
        );
    }

    #[test]
    fn a_macro_may_be_written_otherwise() {
        assert_eq!(differences("otherwise", "(1 << 3)", "0x08"), []);
    }

    #[test]
    fn a_changed_prototype_is_found() {
        assert_eq!(
            names(&differences("const", "const char* name", "char* name")),
            ["uv_start"]
        );
        assert_eq!(
            names(&differences("variadic", "uv_thing_t*, ...", "uv_thing_t*")),
            ["uv_set"]
        );
    }

    #[test]
    fn a_system_header_less_is_found() {
        assert_eq!(
            differences(
                "more",
                "#include <stddef.h>",
                "#include <stddef.h>\n#include <stdio.h>"
            ),
            []
        );
        let found = differences("less", "#include <stddef.h>", "");
        assert!(
            found
                .iter()
                .all(|difference| difference.kind == Kind::Include)
                && !found.is_empty(),
            "{found:?}"
        );
    }
}
