//! What an ELF file says of itself: which functions of libuv it needs or has, and which dynamic
//! linker is to load it.

use anyhow::{Context, Result};
use object::Endianness;
use object::elf::PT_INTERP;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, Sym};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What concerns libuv in a program or library.
#[derive(Debug, Default)]
pub(crate) struct Elf {
    /// The dynamic linker; a library and a static program have none.
    pub(crate) interpreter: Option<PathBuf>,
    /// Whether there is anything for a dynamic linker to do.
    pub(crate) is_dynamic: bool,
    /// Functions of libuv that it expects from elsewhere.
    pub(crate) needs: BTreeSet<String>,
    /// Functions of libuv that it has and shows.
    pub(crate) has: BTreeSet<String>,
}

impl Elf {
    pub(crate) fn read(path: &Path) -> Result<Elf> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Elf::parse(&bytes).with_context(|| format!("{} is no 64-bit ELF file", path.display()))
    }

    fn parse(bytes: &[u8]) -> Result<Elf> {
        let file: ElfFile64<'_, Endianness> = ElfFile64::parse(bytes)?;
        let endian = file.endian();
        let mut elf = Elf {
            is_dynamic: !file.elf_dynamic_table()?.is_empty(),
            ..Elf::default()
        };
        for segment in file.elf_header().program_headers(endian, bytes)? {
            if segment.p_type(endian) == PT_INTERP {
                let name = segment.data(endian, bytes).ok().unwrap_or_default();
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                elf.interpreter = Some(PathBuf::from(OsStr::from_bytes(name)));
            }
        }
        let symbols = file.elf_dynamic_symbol_table();
        for symbol in symbols.iter().skip(1) {
            let name = String::from_utf8_lossy(symbol.name(endian, symbols.strings())?);
            if name.starts_with("uv_") {
                let set = if symbol.is_undefined(endian) {
                    &mut elf.needs
                } else {
                    &mut elf.has
                };
                set.insert(name.into_owned());
            }
        }
        Ok(elf)
    }

    /// Whether it carries a libuv of its own.
    pub(crate) fn has_libuv_inside(&self) -> bool {
        self.has.contains("uv_run")
    }
}
