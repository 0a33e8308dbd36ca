//! What a shared library offers to the programs that load it.

use anyhow::{Context, Result, ensure};
use object::Endianness;
use object::elf::{
    DT_SONAME, DT_VERDEF, FileHeader64, STB_LOCAL, STT_FUNC, STV_HIDDEN, STV_INTERNAL,
};
use object::read::elf::{ElfFile64, FileHeader, Sym};
use std::collections::BTreeSet;
use std::path::Path;

/// The dynamic interface of a library.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Exports {
    pub(super) soname: Option<String>,
    /// Whether it gives its symbols versions, which the programs' own would have to match.
    pub(super) versioned: bool,
    pub(super) functions: BTreeSet<String>,
    /// Exported symbols that are no functions.
    pub(super) data: BTreeSet<String>,
    /// The two functions that lie first.
    pub(super) first: BTreeSet<String>,
}

impl Exports {
    pub(super) fn read(path: &Path) -> Result<Exports> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Exports::parse(&bytes).with_context(|| format!("cannot make out {}", path.display()))
    }

    fn parse(bytes: &[u8]) -> Result<Exports> {
        let file: ElfFile64<'_, Endianness> = ElfFile64::parse(bytes)?;
        let endian = file.endian();
        let mut exports = Exports::default();
        let dynamic = file.elf_dynamic_table()?;
        ensure!(!dynamic.is_empty(), "not a shared library");
        for entry in dynamic.iter() {
            if entry.tag == DT_SONAME {
                exports.soname = Some(text(dynamic.string(entry)?));
            }
            exports.versioned |= entry.tag == DT_VERDEF;
        }
        let symbols = file.elf_dynamic_symbol_table();
        let mut places = BTreeSet::new();
        for symbol in symbols.iter().skip(1) {
            if is_exported(symbol, endian) {
                let name = text(symbol.name(endian, symbols.strings())?);
                let function = symbol.st_type() == STT_FUNC;
                if function {
                    places.insert((symbol.st_value(endian), name.clone()));
                    &mut exports.functions
                } else {
                    &mut exports.data
                }
                .insert(name);
            }
        }
        exports.first = places.into_iter().take(2).map(|(_, name)| name).collect();
        Ok(exports)
    }
}

fn is_exported(symbol: &<FileHeader64<Endianness> as FileHeader>::Sym, endian: Endianness) -> bool {
    !symbol.is_undefined(endian)
        && symbol.st_bind() != STB_LOCAL
        && !matches!(symbol.st_visibility(), STV_HIDDEN | STV_INTERNAL)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    /// Links a small library and reads it.
    fn exports(test: &str, source: &str, version_script: Option<&str>) -> Exports {
        let dir =
            std::env::temp_dir().join(format!("blacklight-symbols-{}-{test}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("library.c"), source).unwrap();
        let mut command = Command::new("gcc");
        command.current_dir(&dir).args([
            "-shared",
            "-fPIC",
            "-nostdlib",
            "-Wl,-soname,libsmall.so.7",
        ]);
        if let Some(script) = version_script {
            fs::write(dir.join("versions"), script).unwrap();
            command.arg("-Wl,--version-script=versions");
        }
        assert!(
            command
                .args(["-o", "library.so", "library.c"])
                .status()
                .unwrap()
                .success()
        );
        let exports = Exports::read(&dir.join("library.so"));
        fs::remove_dir_all(&dir).unwrap();
        exports.unwrap()
    }

    const SOURCE: &str = "int table = 1;
        int elsewhere(void);
        static int local(void) { return elsewhere(); }
        __attribute__((visibility(\"hidden\"))) int hidden(void) { return local(); }
        int shown(void) { return hidden(); }
        __attribute__((weak)) int weak(void) { return 0; }";

    #[test]
    fn only_what_others_can_link_with_is_exported() {
        let exports = exports("plain", SOURCE, None);
        assert_eq!(exports.soname.as_deref(), Some("libsmall.so.7"));
        assert_eq!(
            exports.functions,
            BTreeSet::from(["shown".to_owned(), "weak".to_owned()])
        );
        assert_eq!(exports.data, BTreeSet::from(["table".to_owned()]));
        assert!(!exports.versioned);
    }

    #[test]
    fn versions_are_noticed() {
        let exports = exports(
            "versioned",
            SOURCE,
            Some("V_1 { global: shown; local: *; };"),
        );
        assert!(exports.versioned);
        assert!(exports.functions.contains("shown"));
    }
}
