//! Reads from an ELF file which functions of libuv it needs or has, and which dynamic linker
//! loads it.
//!
//! Reads only the parts that it needs: a program may have a hundred megabytes, and its tables
//! one.

use anyhow::{Context, Result};
use object::elf::{
    ELFCLASS32, EM_X86_64, FileHeader64, PT_DYNAMIC, PT_INTERP, R_X86_64_GLOB_DAT,
    R_X86_64_JUMP_SLOT, Rela64, SHT_DYNSYM, SHT_RELA, SHT_SYMTAB, SectionHeader64, SectionType,
    Sym64,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};
use object::{Endianness, ReadCache, ReadRef};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The facts about libuv in a program or library.
#[derive(Debug, Default)]
pub(crate) struct Elf {
    /// The dynamic linker; `None` for a library or a static program.
    pub(crate) interpreter: Option<PathBuf>,
    /// Whether the file is dynamically linked.
    pub(crate) is_dynamic: bool,
    /// Whether the file is for x86-64, like our library.
    pub(crate) is_x86_64: bool,
    /// Functions of libuv that the file imports.
    pub(crate) needs: BTreeSet<String>,
    /// Functions of libuv that the file exports.
    pub(crate) has: BTreeSet<String>,
    /// Whether the file calls its own `uv_run` through its linkage table.
    pub(crate) is_interposable: bool,
    /// The version that its own `uv_version` returns, if it can be read from the code.
    pub(crate) carried_version: Option<String>,
    /// Whether the file contains a libuv without exporting its functions.
    pub(crate) hides_libuv: bool,
}

type Data<'data> = &'data ReadCache<File>;
type Header = FileHeader64<Endianness>;

impl Elf {
    pub(crate) fn read(path: &Path) -> Result<Elf> {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut head = [0; 5];
        let has_head = file.read_exact_at(&mut head, 0).is_ok();
        if has_head && head == [0x7f, b'E', b'L', b'F', ELFCLASS32.0] {
            return Ok(Elf::default());
        }
        Elf::parse(&ReadCache::new(file))
            .with_context(|| format!("{} is no program that can be looked into", path.display()))
    }

    fn parse(data: Data<'_>) -> Result<Elf> {
        let header = Header::parse(data)?;
        let endian = header.endian()?;
        let mut elf = Elf {
            is_x86_64: header.e_machine(endian) == EM_X86_64,
            ..Elf::default()
        };
        for segment in header.program_headers(endian, data)? {
            elf.is_dynamic |= segment.p_type(endian) == PT_DYNAMIC;
            if segment.p_type(endian) == PT_INTERP {
                let name = segment.data(endian, data).ok().unwrap_or_default();
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                elf.interpreter = Some(PathBuf::from(OsStr::from_bytes(name)));
            }
        }
        let file = Tables {
            data,
            endian,
            sections: header.sections(endian, data)?,
        };
        let (symbols, names) = file.symbols(SHT_DYNSYM)?;
        for symbol in symbols.iter().skip(1) {
            let text = names.get(symbol.st_name(endian) as usize..);
            // Internal functions have two underscores, and some builds export them.
            if text.is_some_and(|text| text.starts_with(b"uv_") && !text.starts_with(b"uv__")) {
                let name = name_of(symbol, endian, names);
                let set = if symbol.is_undefined(endian) {
                    &mut elf.needs
                } else {
                    &mut elf.has
                };
                set.insert(String::from_utf8_lossy(name).into_owned());
            }
        }
        if elf.has_libuv_inside() {
            // A program calls its own functions directly.
            elf.is_interposable =
                elf.interpreter.is_none() && file.is_interposable(symbols, names)?;
            elf.carried_version = file.carried_version(symbols, names);
        } else if elf.needs.is_empty() {
            elf.hides_libuv = file.hides_libuv()?;
        }
        Ok(elf)
    }

    /// Whether the file carries a libuv and exports it.
    pub(crate) fn has_libuv_inside(&self) -> bool {
        self.has.contains("uv_run")
    }
}

/// A file and its section table.
struct Tables<'data> {
    data: Data<'data>,
    endian: Endianness,
    sections: SectionTable<'data, Header, Data<'data>>,
}

impl<'data> Tables<'data> {
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
                if matches!(kind, R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT) && name == Some(b"uv_run")
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Reads the version from the code of `uv_version`, which returns a constant.
    fn carried_version(&self, symbols: &[Sym64<Endianness>], names: &[u8]) -> Option<String> {
        let is_it =
            |symbol: &&Sym64<Endianness>| name_of(symbol, self.endian, names) == b"uv_version";
        let address = symbols.iter().find(is_it)?.st_value(self.endian);
        let section = self.sections.iter().find(|section| {
            let start = section.sh_addr(self.endian);
            (start..start + section.sh_size(self.endian)).contains(&address)
        })?;
        let offset = section.sh_offset(self.endian) + (address - section.sh_addr(self.endian));
        version_in(self.data.read_bytes_at(offset, 16).ok()?)
    }

    /// Whether a file that exports no function of libuv contains one: its symbol table names
    /// `uv_run`, or its constants contain the name of an environment variable that only libuv
    /// reads.
    fn hides_libuv(&self) -> Result<bool> {
        let (symbols, names) = self.symbols(SHT_SYMTAB)?;
        let is_run = |symbol: &Sym64<Endianness>| {
            !symbol.is_undefined(self.endian) && name_of(symbol, self.endian, names) == b"uv_run"
        };
        if symbols.iter().any(is_run) {
            return Ok(true);
        }
        let Some((_, section)) = self.sections.section_by_name(self.endian, b".rodata") else {
            return Ok(false);
        };
        let constants = section.data(self.endian, self.data)?;
        let mark = b"UV_THREADPOOL_SIZE\0";
        let starts = |window: &[u8]| window.starts_with(mark);
        Ok(constants.windows(mark.len()).any(starts))
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
    rest.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The version in `mov $VERSION,%eax`, after an optional landing pad and frame set-up.
fn version_in(code: &[u8]) -> Option<String> {
    let code = code.strip_prefix(b"\xf3\x0f\x1e\xfa").unwrap_or(code);
    let code = code.strip_prefix(b"\x55\x48\x89\xe5").unwrap_or(code);
    match *code {
        [0xb8, patch, minor, major, 0, ..] => Some(format!("{major}.{minor}.{patch}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn versions_are_read_from_the_code_of_compilers() {
        let plain = b"\xb8\x01\x34\x01\x00\xc3\x90\x90";
        let framed = b"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\xb8\x00\x33\x01\x00\x5d\xc3\x90";
        assert_eq!(version_in(plain).as_deref(), Some("1.52.1"));
        assert_eq!(version_in(framed).as_deref(), Some("1.51.0"));
        assert_eq!(version_in(b"\x8b\x07\xc3\x90\x90"), None);
    }
}
