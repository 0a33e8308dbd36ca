//! What an ELF file says of libuv.
//!
//! [`Elf`] is what `blacklight run` needs before every start of a program, so it is read by a few
//! short reads: the headers, the dynamic table, and one look-up in the hash table by which the
//! dynamic linker finds functions. [`Functions`] is for `doctor`: it takes whole symbol tables,
//! which are megabytes in a program like Node.js.

mod functions;

pub(crate) use functions::{Functions, hides_libuv};

use crate::machine;
use anyhow::{Context, Result};
use object::elf::{
    DF_1_PIE, DT_FLAGS_1, DT_GNU_HASH, DT_NEEDED, DT_STRTAB, DT_SYMTAB, Dyn64, DynamicTag,
    ELFCLASS32, FileHeader64, GnuHashHeader, NT_GNU_BUILD_ID, PT_INTERP, PT_LOAD, PT_NOTE,
    ProgramHeader64, Sym64, gnu_hash,
};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, Sym};
use object::{Endianness, ReadCache, ReadRef, U32, U64};
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The longest name, and the longest chain of a hash table, that are followed.
const LONGEST: u64 = 1 << 12;

/// The facts about a program or library.
#[derive(Debug, Default)]
pub(crate) struct Elf {
    /// The dynamic linker; `None` for a library or a static program.
    pub(crate) interpreter: Option<PathBuf>,
    /// Whether a dynamic linker loads the file, as a program or as a library.
    pub(crate) is_dynamic: bool,
    /// Whether the file is for this machine, like our library.
    pub(crate) is_for_this_machine: bool,
    /// The names of the libraries that the file itself asks for.
    pub(crate) libraries: Vec<String>,
    /// Whether the file carries a libuv and exports its functions.
    pub(crate) has_libuv_inside: bool,
    /// The build ID, in hexadecimal.
    pub(crate) build_id: Option<String>,
}

type Data<'data> = &'data ReadCache<File>;
type Header = FileHeader64<Endianness>;

impl Elf {
    pub(crate) fn read(path: &Path) -> Result<Elf> {
        let file = open(path)?;
        let mut head = [0; 5];
        let has_head = file.read_exact_at(&mut head, 0).is_ok();
        if has_head && head == [0x7f, b'E', b'L', b'F', ELFCLASS32.0] {
            return Ok(Elf::default());
        }
        Elf::parse(&ReadCache::new(file), path).with_context(|| not_readable(path))
    }

    fn parse(data: Data<'_>, path: &Path) -> Result<Elf> {
        let header = Header::parse(data)?;
        let endian = header.endian()?;
        let segments = header.program_headers(endian, data)?;
        let file = Segments {
            data,
            endian,
            segments,
        };
        let mut elf = Elf {
            is_for_this_machine: header.e_machine(endian) == machine::ELF_MACHINE,
            build_id: file.build_id(),
            ..Elf::default()
        };
        let mut is_program = false;
        for segment in segments {
            if segment.p_type(endian) == PT_INTERP {
                let name = segment.data(endian, data).ok().unwrap_or_default();
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                elf.interpreter = Some(PathBuf::from(OsStr::from_bytes(name)));
            }
            if let Some(table) = segment.dynamic(endian, data)? {
                elf.is_dynamic = true;
                is_program = Tables::value(endian, table, DT_FLAGS_1)
                    .is_some_and(|flags| flags & DF_1_PIE.0 != 0);
                elf.read_dynamic(&file, table, path)?;
            }
        }
        // A static program that runs at any address has a table by which it relocates itself.
        elf.is_dynamic &= elf.interpreter.is_some() || !is_program;
        Ok(elf)
    }

    fn read_dynamic(
        &mut self,
        file: &Segments<'_>,
        table: &[Dyn64<Endianness>],
        path: &Path,
    ) -> Result<()> {
        let Some(tables) = Tables::of(file, table) else {
            return Ok(());
        };
        for entry in table {
            if entry.tag(file.endian) == DT_NEEDED {
                let name = tables.name(file, entry.val(file.endian));
                let name = name.context("a library without a name")?;
                self.libraries
                    .push(String::from_utf8_lossy(name).into_owned());
            }
        }
        self.has_libuv_inside = match tables.exports(file, b"uv_run") {
            Some(found) => found,
            // Some linkers make no table of that format.
            None => Functions::read(path)?.has.contains("uv_run"),
        };
        Ok(())
    }

    /// Whether the file itself asks for libuv.
    pub(crate) fn asks_for_libuv(&self) -> bool {
        self.libraries
            .iter()
            .any(|name| name.starts_with("libuv.so"))
    }
}

/// A file by what is loaded of it.
struct Segments<'data> {
    data: Data<'data>,
    endian: Endianness,
    segments: &'data [ProgramHeader64<Endianness>],
}

impl<'data> Segments<'data> {
    /// The place in the file of what is loaded to an address.
    fn offset_of(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let start = segment.p_vaddr(self.endian);
            let is_loaded = segment.p_type(self.endian) == PT_LOAD;
            let distance = address.checked_sub(start)?;
            (is_loaded && distance < segment.p_filesz(self.endian))
                .then(|| segment.p_offset(self.endian).checked_add(distance))?
        })
    }

    fn build_id(&self) -> Option<String> {
        let notes = |segment: &&ProgramHeader64<Endianness>| {
            segment.p_type(self.endian) == PT_NOTE && segment.p_filesz(self.endian) < LONGEST
        };
        self.segments.iter().filter(notes).find_map(|segment| {
            let mut notes = segment.notes(self.endian, self.data).ok()??;
            while let Some(note) = notes.next().ok()? {
                if note.name() == b"GNU" && note.n_type(self.endian) == NT_GNU_BUILD_ID {
                    return Some(hexadecimal(note.desc()));
                }
            }
            None
        })
    }

    fn word(&self, offset: u64) -> Option<u64> {
        let word: &U32<Endianness> = self.data.read_at(offset).ok()?;
        Some(word.get(self.endian).into())
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Where the tables of a file's symbols lie in it.
struct Tables {
    symbols: u64,
    names: u64,
    hash: Option<u64>,
}

impl Tables {
    fn value(endian: Endianness, table: &[Dyn64<Endianness>], tag: DynamicTag) -> Option<u64> {
        let entry = table.iter().find(|entry| entry.tag(endian) == tag)?;
        Some(entry.val(endian))
    }

    fn of(file: &Segments<'_>, table: &[Dyn64<Endianness>]) -> Option<Tables> {
        let place = |tag| file.offset_of(Tables::value(file.endian, table, tag)?);
        Some(Tables {
            symbols: place(DT_SYMTAB)?,
            names: place(DT_STRTAB)?,
            hash: place(DT_GNU_HASH),
        })
    }

    fn name<'data>(&self, file: &Segments<'data>, at: u64) -> Option<&'data [u8]> {
        let start = self.names.checked_add(at)?;
        let end = start.checked_add(LONGEST)?.min(file.data.len().ok()?);
        file.data.read_bytes_at_until(start..end, 0).ok()
    }

    /// Whether the file exports a symbol, as the dynamic linker finds it. `None` if there is no
    /// table for that, or it makes no sense.
    fn exports(&self, file: &Segments<'_>, name: &[u8]) -> Option<bool> {
        let start = self.hash?;
        let head: &GnuHashHeader<Endianness> = file.data.read_at(start).ok()?;
        let [buckets, first, words, shift] = [
            head.bucket_count,
            head.symbol_base,
            head.bloom_count,
            head.bloom_shift,
        ]
        .map(|word| u64::from(word.get(file.endian)));
        if buckets == 0 || words == 0 || shift >= 64 {
            return None;
        }
        let wanted = u64::from(gnu_hash(name));
        let filter = start + 16;
        let word: &U64<Endianness> = file.data.read_at(filter + 8 * (wanted / 64 % words)).ok()?;
        let mask = 1 << (wanted % 64) | 1 << ((wanted >> shift) % 64);
        if word.get(file.endian) & mask != mask {
            return Some(false);
        }
        let heads = filter + 8 * words;
        let index = file.word(heads + 4 * (wanted % buckets))?;
        if index == 0 {
            return Some(false);
        }
        let chain = heads + 4 * buckets;
        for index in index..index + LONGEST {
            let hash = file.word(chain + 4 * index.checked_sub(first)?)?;
            if hash | 1 == wanted | 1 {
                let size = size_of::<Sym64<Endianness>>() as u64;
                let symbol: &Sym64<Endianness> =
                    file.data.read_at(self.symbols + size * index).ok()?;
                if self.name(file, symbol.st_name(file.endian).into())? == name {
                    return Some(!symbol.is_undefined(file.endian));
                }
            }
            if hash & 1 == 1 {
                return Some(false);
            }
        }
        None
    }
}

fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("cannot read {}", path.display()))
}

fn not_readable(path: &Path) -> String {
    format!("{} is no program that can be looked into", path.display())
}

#[cfg(test)]
mod tests {
    use super::{Data, Elf, Functions, Header, Segments, Tables, open};
    use object::ReadCache;
    use object::read::elf::{FileHeader, ProgramHeader};
    use std::path::Path;

    fn program() -> &'static Path {
        Path::new("/proc/self/exe")
    }

    /// Looks a symbol up as `run` does.
    fn exports(data: Data<'_>, name: &[u8]) -> Option<bool> {
        let header = Header::parse(data).unwrap();
        let endian = header.endian().unwrap();
        let segments = header.program_headers(endian, data).unwrap();
        let file = Segments {
            data,
            endian,
            segments,
        };
        let dynamic =
            |segment: &object::elf::ProgramHeader64<_>| segment.dynamic(endian, data).unwrap();
        let table = segments.iter().find_map(dynamic).unwrap();
        Tables::of(&file, table).unwrap().exports(&file, name)
    }

    #[test]
    fn symbols_of_the_c_library_are_found_by_their_hash() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path = maps
            .lines()
            .filter_map(|line| line.split_whitespace().last())
            .find(|path| path.ends_with("/libc.so.6"))
            .unwrap();
        let data = ReadCache::new(open(Path::new(path)).unwrap());
        for name in ["getenv", "qsort", "write", "__libc_start_main"] {
            assert_eq!(exports(&data, name.as_bytes()), Some(true), "{name}");
        }
        assert_eq!(exports(&data, b"uv_run"), Some(false));
        // The library needs it of the linker.
        assert_eq!(exports(&data, b"__tls_get_addr"), Some(false));
    }

    #[test]
    fn a_test_is_a_dynamic_program_for_this_machine() {
        let elf = Elf::read(program()).unwrap();
        assert!(elf.is_dynamic && elf.is_for_this_machine && elf.interpreter.is_some());
        assert!(!elf.has_libuv_inside && !elf.asks_for_libuv());
        assert!(elf.libraries.iter().any(|name| name == "libc.so.6"));
        assert!(Functions::read(program()).unwrap().has.is_empty());
    }

    #[test]
    fn a_file_that_is_cut_off_is_refused() {
        let bytes = std::fs::read(program()).unwrap();
        let path = std::env::temp_dir().join(format!("blacklight-cut-{}", std::process::id()));
        for length in [0, 5, 63, 64, 200, 4096] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let read = Elf::read(&path);
            assert!(read.is_err(), "{length}: {read:?}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
