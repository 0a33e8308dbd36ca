//! The functions of libuv that a file needs or has, from its whole symbol tables.

use super::{Data, Header, not_readable, open};
use crate::machine;
use anyhow::{Context, Result};
use memchr::memmem;
use object::elf::{Rela64, SHT_DYNSYM, SHT_RELA, SHT_SYMTAB, SectionHeader64, SectionType, Sym64};
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};
use object::{Endianness, ReadCache, ReadRef};
use std::collections::BTreeSet;
use std::path::Path;

/// The functions of libuv in a program or library.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// Those that the file imports.
    pub(crate) needs: BTreeSet<String>,
    /// Those that it exports.
    pub(crate) has: BTreeSet<String>,
    /// Whether the file calls its own `uv_run` through its linkage table.
    pub(crate) is_interposable: bool,
    /// The version that its own `uv_version` returns, if it can be read from the code.
    pub(crate) version: Option<[u8; 3]>,
}

impl Functions {
    pub(crate) fn read(path: &Path) -> Result<Functions> {
        Functions::parse(&ReadCache::new(open(path)?)).with_context(|| not_readable(path))
    }

    fn parse(data: Data<'_>) -> Result<Functions> {
        let file = Sections::parse(data)?;
        let endian = file.endian;
        let mut functions = Functions::default();
        let (symbols, names) = file.symbols(SHT_DYNSYM)?;
        for symbol in symbols.iter().skip(1) {
            let text = names.get(symbol.st_name(endian) as usize..);
            // Internal functions have two underscores, and some builds export them.
            if text.is_some_and(|text| text.starts_with(b"uv_") && !text.starts_with(b"uv__")) {
                let name = name_of(symbol, endian, names);
                let set = if symbol.is_undefined(endian) {
                    &mut functions.needs
                } else {
                    &mut functions.has
                };
                set.insert(String::from_utf8_lossy(name).into_owned());
            }
        }
        if functions.has.contains("uv_run") {
            functions.is_interposable = file.is_interposable(symbols, names)?;
            functions.version = file.version(symbols, names);
        }
        Ok(functions)
    }
}

/// Whether a file that exports no function of libuv contains one: its constants contain the name
/// of an environment variable that only libuv reads, or its symbol table names `uv_run`.
pub(crate) fn hides_libuv(path: &Path) -> Result<bool> {
    let data = ReadCache::new(open(path)?);
    let hides = || -> Result<bool> {
        let file = Sections::parse(&data)?;
        Ok(file.has_mark()? || file.names_run()?)
    };
    hides().with_context(|| not_readable(path))
}

/// A file and its section table.
struct Sections<'data> {
    data: Data<'data>,
    endian: Endianness,
    sections: SectionTable<'data, Header, Data<'data>>,
}

impl<'data> Sections<'data> {
    fn parse(data: Data<'data>) -> Result<Sections<'data>> {
        let header = Header::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        Ok(Sections {
            data,
            endian,
            sections,
        })
    }

    /// The first symbol table of a kind and its string table; empty if there is none.
    fn symbols(&self, kind: SectionType) -> Result<(&'data [Sym64<Endianness>], &'data [u8])> {
        let is_kind = |section: &&SectionHeader64<Endianness>| section.sh_type(self.endian) == kind;
        let Some(section) = self.sections.iter().find(is_kind) else {
            return Ok((&[], &[]));
        };
        let names = self.sections.section(section.link(self.endian))?;
        Ok((
            section.data_as_array(self.endian, self.data)?,
            names.data(self.endian, self.data)?,
        ))
    }

    /// Whether the linker relocates references to `uv_run`.
    fn is_interposable(&self, symbols: &[Sym64<Endianness>], names: &[u8]) -> Result<bool> {
        for section in self.sections.iter() {
            if section.sh_type(self.endian) != SHT_RELA {
                continue;
            }
            let relocations: &[Rela64<Endianness>] =
                section.data_as_array(self.endian, self.data)?;
            for relocation in relocations {
                let kind = relocation.r_type(self.endian, false);
                let index = relocation.r_sym(self.endian, false) as usize;
                let name = symbols
                    .get(index)
                    .map(|symbol| name_of(symbol, self.endian, names));
                if machine::LINKAGE.contains(&kind) && name == Some(b"uv_run") {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Reads the version from the code of `uv_version`, which returns a constant.
    fn version(&self, symbols: &[Sym64<Endianness>], names: &[u8]) -> Option<[u8; 3]> {
        let is_it =
            |symbol: &&Sym64<Endianness>| name_of(symbol, self.endian, names) == b"uv_version";
        let address = symbols.iter().find(is_it)?.st_value(self.endian);
        let section = self.sections.iter().find(|section| {
            let start = section.sh_addr(self.endian);
            (start..start + section.sh_size(self.endian)).contains(&address)
        })?;
        let offset = section.sh_offset(self.endian) + (address - section.sh_addr(self.endian));
        machine::version_in(self.data.read_bytes_at(offset, 16).ok()?)
    }

    fn has_mark(&self) -> Result<bool> {
        let Some((_, section)) = self.sections.section_by_name(self.endian, b".rodata") else {
            return Ok(false);
        };
        let constants = section.data(self.endian, self.data)?;
        Ok(memmem::find(constants, b"UV_THREADPOOL_SIZE\0").is_some())
    }

    fn names_run(&self) -> Result<bool> {
        let (symbols, names) = self.symbols(SHT_SYMTAB)?;
        // Few files have the name, and looking for it is cheaper than looking at every symbol.
        if memmem::find(names, b"uv_run\0").is_none() {
            return Ok(false);
        }
        let is_run = |symbol: &Sym64<Endianness>| {
            !symbol.is_undefined(self.endian) && name_of(symbol, self.endian, names) == b"uv_run"
        };
        Ok(symbols.iter().any(is_run))
    }
}

/// The name of a symbol, from its string table.
fn name_of<'names>(
    symbol: &Sym64<Endianness>,
    endian: Endianness,
    names: &'names [u8],
) -> &'names [u8] {
    let rest = names
        .get(symbol.st_name(endian) as usize..)
        .unwrap_or_default();
    &rest[..memchr::memchr(0, rest).unwrap_or(rest.len())]
}
