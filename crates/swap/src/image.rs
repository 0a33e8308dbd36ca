//! An ELF object as the dynamic linker has mapped it: its exported symbols, its relocations, its
//! build ID.
//!
//! The tables are read in place. The linker has already accepted the object and is about to run
//! its code, so this module trusts the tables to be consistent with each other.

use crate::machine;
use core::ffi::CStr;
use core::mem::size_of;
use core::ops::Range;
use core::slice;
use libc::{c_int, c_void, dl_phdr_info};

const DT_NEEDED: i64 = 1;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_STRSZ: i64 = 10;
const DT_PLTRELSZ: i64 = 2;
const DT_SONAME: i64 = 14;
const DT_RPATH: i64 = 15;
const DT_JMPREL: i64 = 23;
const DT_RUNPATH: i64 = 29;
const DT_FLAGS_1: i64 = 0x6fff_fffb;
const DF_1_NODEFLIB: usize = 0x800;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const PT_GNU_PROPERTY: u32 = 0x6474_e553;
const NT_GNU_BUILD_ID: u32 = 3;
const STT_FUNC: u8 = 2;

/// `Elf64_Dyn`.
#[repr(C)]
struct Dyn {
    tag: i64,
    value: usize,
}

/// `Elf64_Sym`.
#[repr(C)]
pub(crate) struct Sym {
    pub(crate) name: u32,
    pub(crate) info: u8,
    other: u8,
    section: u16,
    pub(crate) value: usize,
    pub(crate) size: usize,
}

/// `Elf64_Rela`.
#[repr(C)]
struct Rela {
    offset: usize,
    info: u64,
    addend: i64,
}

/// A function that an object exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) address: usize,
    pub(crate) size: usize,
}

/// The hash table in which the linker looks names up.
#[derive(Clone, Copy)]
enum Hash {
    Gnu(GnuHash),
    /// The older format, if there is no other.
    System(SystemHash),
}

#[derive(Clone, Copy)]
struct SystemHash {
    buckets: &'static [u32],
    /// For each symbol the next one of its bucket, or 0.
    next: &'static [u32],
}

#[derive(Clone, Copy)]
struct GnuHash {
    buckets: &'static [u32],
    bloom: &'static [u64],
    bloom_shift: u32,
    first: usize,
    chain: *const u32,
}

/// A loaded object.
#[derive(Clone, Copy)]
pub(crate) struct Image {
    /// The offset between addresses in the file and in memory.
    pub(crate) base: usize,
    /// The path that the object was loaded from; empty for the program.
    pub(crate) name: &'static CStr,
    /// The number of objects that the process had closed when this one was read.
    pub(crate) closed_before: u64,
    segments: &'static [libc::Elf64_Phdr],
    symbols: *const Sym,
    strings: &'static [u8],
    hash: Hash,
    dynamic: *const Dyn,
    relocations: [&'static [Rela]; 2],
}

// SAFETY: an image only reads tables that the linker has finished, from any thread.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

/// The size of a page, which some machines leave to the system.
pub(crate) fn page() -> usize {
    // SAFETY: it takes any number.
    let page = unsafe { libc::getauxval(libc::AT_PAGESZ) };
    page as usize
}

/// Calls `work` while no object can be opened or closed.
pub(crate) fn while_none_is_closed(mut work: impl FnMut()) {
    each(|_| {
        work();
        false
    });
}

/// Whether the linker searches for libraries that the code at this address asks for where it
/// searches for ours: neither is there a path for its object alone, nor one that depends on which
/// object has opened which.
pub(crate) fn has_only_the_common_search_path(caller: usize) -> bool {
    let mut is_known = false;
    let mut is_common = true;
    each(|image| {
        let is_program = image.name.is_empty();
        is_common &= is_program || image.entry(DT_RPATH).is_none();
        if image.contains(caller) {
            let flags = image.entry(DT_FLAGS_1).unwrap_or(0);
            is_known = true;
            is_common &= image.entry(DT_RUNPATH).is_none() && flags & DF_1_NODEFLIB == 0;
        }
        true
    });
    is_known && is_common
}

/// Calls `visit` for every loaded object, the program first, until it returns false.
pub(crate) fn each(mut visit: impl FnMut(Image) -> bool) {
    unsafe extern "C" fn step<F: FnMut(Image) -> bool>(
        info: *mut dl_phdr_info,
        _: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes a valid description, and the pointer from below, which
        // has no other user meanwhile.
        let (info, visit) = unsafe { (&*info, &mut *visit.cast::<F>()) };
        match Image::of(info) {
            Some(image) => c_int::from(!visit(image)),
            None => 0,
        }
    }
    fn iterate<F: FnMut(Image) -> bool>(visit: &mut F) {
        let data: *mut F = visit;
        // SAFETY: `step::<F>` takes what `data` points to, for the length of this call only.
        unsafe { libc::dl_iterate_phdr(Some(step::<F>), data.cast()) };
    }
    iterate(&mut visit);
}

impl Image {
    /// Reads the tables of an object; `None` if it has no dynamic symbols with a hash table.
    fn of(info: &dl_phdr_info) -> Option<Image> {
        let base = usize::try_from(info.dlpi_addr).ok()?;
        // SAFETY: the linker's description of a loaded object stays as long as the object does;
        // objects that are unloaded are not used after the call that looked at them.
        let segments = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let dynamic = segments
            .iter()
            .find(|segment| segment.p_type == libc::PT_DYNAMIC)?;
        let dynamic = (base + usize::try_from(dynamic.p_vaddr).ok()?) as *const Dyn;
        let mut entry = dynamic;
        let [mut symbols, mut strings, mut strings_size] = [0; 3];
        let [mut hash, mut old_hash] = [0; 2];
        let [mut rela, mut rela_size, mut plt, mut plt_size] = [0; 4];
        // The linker adds the base to pointers in the table, but not in objects like the vDSO.
        let place = |value: usize| if value < base { base + value } else { value };
        loop {
            // SAFETY: the dynamic table ends with an entry whose tag is zero.
            let Dyn { tag, value } = unsafe { entry.read() };
            match tag {
                0 => break,
                DT_SYMTAB => symbols = place(value),
                DT_STRTAB => strings = place(value),
                DT_STRSZ => strings_size = value,
                DT_GNU_HASH => hash = place(value),
                DT_HASH => old_hash = place(value),
                DT_RELA => rela = place(value),
                DT_RELASZ => rela_size = value,
                DT_JMPREL => plt = place(value),
                DT_PLTRELSZ => plt_size = value,
                _ => {}
            }
            entry = entry.wrapping_add(1);
        }
        if symbols == 0 || strings == 0 || hash == 0 && old_hash == 0 {
            return None;
        }
        let relocations = |start: usize, size: usize| -> &'static [Rela] {
            if start == 0 {
                return &[];
            }
            // SAFETY: the dynamic table says that this many bytes of relocations lie there.
            unsafe { slice::from_raw_parts(start as *const Rela, size / size_of::<Rela>()) }
        };
        Some(Image {
            base,
            // SAFETY: the name ends in a zero byte and lives as long as the description.
            name: unsafe { CStr::from_ptr(info.dlpi_name) },
            closed_before: info.dlpi_subs,
            segments,
            symbols: symbols as *const Sym,
            // SAFETY: the dynamic table gives address and size of the strings.
            strings: unsafe { slice::from_raw_parts(strings as *const u8, strings_size) },
            hash: match hash {
                0 => Hash::System(SystemHash::at(old_hash)),
                hash => Hash::Gnu(GnuHash::at(hash)),
            },
            dynamic,
            relocations: [relocations(rela, rela_size), relocations(plt, plt_size)],
        })
    }

    /// The string table: the names of all symbols, each ended by a zero byte.
    pub(crate) fn strings(&self) -> &'static [u8] {
        self.strings
    }

    /// The name at an offset of the string table.
    pub(crate) fn name_at(&self, offset: usize) -> &'static [u8] {
        let rest = self.strings.get(offset..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == 0);
        &rest[..end.unwrap_or(rest.len())]
    }

    /// The value of the first entry of the dynamic table with this tag, if it is a number or the
    /// place of a name.
    fn entry(&self, tag: i64) -> Option<usize> {
        self.entries(tag).next()
    }

    fn entries(&self, tag: i64) -> impl Iterator<Item = usize> {
        let dynamic = self.dynamic;
        (0..)
            // SAFETY: the dynamic table ends with an entry whose tag is zero.
            .map(move |index| unsafe { dynamic.add(index).read() })
            .take_while(|entry| entry.tag != 0)
            .filter(move |entry| entry.tag == tag)
            .map(|entry| entry.value)
    }

    /// Whether this object asks for the other one.
    pub(crate) fn needs(&self, other: &Image) -> bool {
        let name = match other.entry(DT_SONAME) {
            Some(name) => other.name_at(name),
            None => other.name.to_bytes(),
        };
        let file = |path: &'static [u8]| path.rsplit(|byte| *byte == b'/').next();
        self.entries(DT_NEEDED)
            .any(|needed| file(self.name_at(needed)) == file(name))
    }

    /// The exported function of this name.
    pub(crate) fn function(&self, name: &[u8]) -> Option<Function> {
        let is_it = |index: usize| {
            // SAFETY: hash tables have the indices of symbols.
            let symbol = unsafe { &*self.symbols.add(index) };
            self.name_at(symbol.name as usize) == name
        };
        let index = match self.hash {
            Hash::Gnu(hash) => hash.find(gnu_hash(name), is_it)?,
            Hash::System(hash) => hash.find(name, is_it)?,
        };
        // SAFETY: as above.
        self.as_function(unsafe { &*self.symbols.add(index) })
    }

    fn as_function(&self, symbol: &Sym) -> Option<Function> {
        let is_function = symbol.info & 0xf == STT_FUNC && symbol.section != 0;
        is_function.then(|| Function {
            address: self.base + symbol.value,
            size: symbol.size,
        })
    }

    /// Calls `visit` with the name of every exported function.
    pub(crate) fn each_function(&self, mut visit: impl FnMut(&'static [u8], Function)) {
        let mut visit = |index: usize| {
            // SAFETY: hash tables have the indices of symbols.
            let symbol = unsafe { &*self.symbols.add(index) };
            if let Some(function) = self.as_function(symbol) {
                visit(self.name_at(symbol.name as usize), function);
            }
        };
        match self.hash {
            Hash::Gnu(hash) => hash.each(visit),
            Hash::System(hash) => (1..hash.next.len()).for_each(&mut visit),
        }
    }

    /// The places where the linker writes the addresses of symbols whose names begin with `uv_`.
    pub(crate) fn uv_slots(&self) -> impl Iterator<Item = (&'static [u8], usize)> {
        let slot = |rela: &'static Rela| {
            let kind = (rela.info & 0xffff_ffff) as u32;
            if !machine::RELOCATIONS.contains(&kind) {
                return None;
            }
            let index = usize::try_from(rela.info >> 32).ok()?;
            // SAFETY: a relocation names a symbol by its index in the symbol table.
            let name = self.name_at(unsafe { (*self.symbols.add(index)).name } as usize);
            name.starts_with(b"uv_")
                .then_some((name, self.base + rela.offset))
        };
        self.relocations.into_iter().flatten().filter_map(slot)
    }

    /// The protection and the bounds of the segment that contains an address.
    pub(crate) fn segment_of(&self, address: usize) -> Option<(c_int, usize, usize)> {
        self.segments.iter().find_map(|segment| {
            let start = self.base + usize::try_from(segment.p_vaddr).ok()?;
            let end = start + usize::try_from(segment.p_memsz).ok()?;
            if segment.p_type != libc::PT_LOAD || !(start..end).contains(&address) {
                return None;
            }
            let right = |flag, protection| {
                if segment.p_flags & flag != 0 {
                    protection
                } else {
                    0
                }
            };
            let protection = right(libc::PF_R, libc::PROT_READ)
                | right(libc::PF_W, libc::PROT_WRITE)
                | right(libc::PF_X, libc::PROT_EXEC);
            Some((protection, start, end))
        })
    }

    /// What an object's code is protected by besides the rights of its segment.
    pub(crate) fn protection_of_code(&self) -> c_int {
        let properties = |segment: &&libc::Elf64_Phdr| segment.p_type == PT_GNU_PROPERTY;
        self.segments.iter().find(properties).map_or(0, |segment| {
            let start = self.base + segment.p_vaddr as usize;
            // SAFETY: a segment of properties lies within the loaded object.
            let properties =
                unsafe { slice::from_raw_parts(start as *const u8, segment.p_memsz as usize) };
            machine::protection(properties)
        })
    }

    /// The bytes of a range that lies within an executable segment.
    pub(crate) fn code(&self, range: Range<usize>) -> Option<&'static [u8]> {
        let (protection, _, end) = self.segment_of(range.start)?;
        if protection & libc::PROT_EXEC == 0 || range.end > end {
            return None;
        }
        // SAFETY: the bytes lie within a segment of the object that is mapped to be read and run.
        Some(unsafe { slice::from_raw_parts(range.start as *const u8, range.len()) })
    }

    /// Maps pages of a segment from the file again, which restores their original contents. Returns
    /// whether the system permits it.
    pub(crate) fn map_again(&self, start: usize, end: usize, protection: c_int) -> bool {
        let page = page();
        let holds = |segment: &&libc::Elf64_Phdr| {
            let first = (self.base + segment.p_vaddr as usize) & !(page - 1);
            let last = self.base + (segment.p_vaddr + segment.p_memsz) as usize;
            segment.p_type == libc::PT_LOAD && (first..last).contains(&start)
        };
        let Some(segment) = self.segments.iter().find(holds) else {
            return false;
        };
        let in_segment = start - ((self.base + segment.p_vaddr as usize) & !(page - 1));
        let offset = (segment.p_offset as usize & !(page - 1)) + in_segment;
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
        // SAFETY: the file and the offset are those of the existing mapping, so the code is the
        // original.
        unsafe {
            let file = libc::open(self.path().as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            let place = start as *mut c_void;
            let mapped = libc::mmap(place, end - start, protection, flags, file, offset as i64);
            libc::close(file);
            mapped == place
        }
    }

    /// The file that the object was loaded from.
    pub(crate) fn path(&self) -> &'static CStr {
        if self.name.is_empty() {
            c"/proc/self/exe"
        } else {
            self.name
        }
    }

    /// Whether the linker write-protects this address once it has relocated the object.
    pub(crate) fn is_relro(&self, address: usize) -> bool {
        self.segments.iter().any(|segment| {
            let start = self.base + segment.p_vaddr as usize;
            segment.p_type == libc::PT_GNU_RELRO
                && (start..start + segment.p_memsz as usize).contains(&address)
        })
    }

    /// Whether an address lies in this object.
    pub(crate) fn contains(&self, address: usize) -> bool {
        let (start, end) = self.extent();
        (start..end).contains(&address)
    }

    /// The address of the first byte of the object, and that after its last.
    pub(crate) fn extent(&self) -> (usize, usize) {
        let loaded = || {
            let is_loaded = |segment: &&libc::Elf64_Phdr| segment.p_type == libc::PT_LOAD;
            self.segments.iter().filter(is_loaded)
        };
        let start = loaded().map(|segment| segment.p_vaddr).min();
        let end = loaded()
            .map(|segment| segment.p_vaddr + segment.p_memsz)
            .max();
        (
            self.base + start.unwrap_or(0) as usize,
            self.base + end.unwrap_or(0) as usize,
        )
    }

    /// The build ID, a hash of the contents that the static linker has stored.
    pub(crate) fn build_id(&self) -> Option<&'static [u8]> {
        let word = |bytes: &[u8], at: usize| {
            let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        let notes = |segment: &&libc::Elf64_Phdr| segment.p_type == libc::PT_NOTE;
        self.segments.iter().filter(notes).find_map(|segment| {
            let start = self.base + segment.p_vaddr as usize;
            // SAFETY: a segment of notes lies within the loaded object.
            let mut rest: &'static [u8] =
                unsafe { slice::from_raw_parts(start as *const u8, segment.p_memsz as usize) };
            loop {
                let (name, size) = (word(rest, 0)? as usize, word(rest, 4)? as usize);
                let text = 12 + name.next_multiple_of(4);
                let id = rest.get(text..text + size)?;
                if word(rest, 8)? == NT_GNU_BUILD_ID && rest.get(12..12 + name)? == b"GNU\0" {
                    return Some(id);
                }
                rest = rest.get(text + size.next_multiple_of(4)..)?;
            }
        })
    }
}

impl GnuHash {
    fn at(address: usize) -> GnuHash {
        let words = address as *const u32;
        // SAFETY: the table begins with four words that give the lengths of its parts, which
        // follow: the bloom filter, the buckets, the chains.
        unsafe {
            let [buckets, first, bloom, bloom_shift] = *words.cast::<[u32; 4]>();
            let filter = words.add(4).cast::<u64>();
            let start = filter.add(bloom as usize).cast::<u32>();
            GnuHash {
                bloom: slice::from_raw_parts(filter, bloom as usize),
                buckets: slice::from_raw_parts(start, buckets as usize),
                bloom_shift,
                first: first as usize,
                chain: start.add(buckets as usize),
            }
        }
    }

    /// The symbol with this hash for which `is_it` holds.
    fn find(&self, wanted: u32, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let mut at = self.first_of(wanted)?;
        loop {
            // SAFETY: the chains have an entry for each exported symbol.
            let hash = unsafe { *self.link(at) };
            if hash | 1 == wanted | 1 && is_it(at) {
                return Some(at);
            }
            if hash & 1 == 1 {
                return None;
            }
            at += 1;
        }
    }

    /// Calls `visit` with the index of every exported symbol.
    fn each(&self, mut visit: impl FnMut(usize)) {
        for &bucket in self.buckets {
            let mut at = bucket as usize;
            if at == 0 {
                continue;
            }
            loop {
                visit(at);
                // SAFETY: as in `find`.
                if unsafe { *self.link(at) } & 1 == 1 {
                    break;
                }
                at += 1;
            }
        }
    }

    /// The first symbol whose name may have this hash.
    fn first_of(&self, hash: u32) -> Option<usize> {
        if self.bloom.is_empty() || self.buckets.is_empty() {
            return None;
        }
        let word = self.bloom[(hash / 64) as usize % self.bloom.len()];
        let mask = 1 << (hash % 64) | 1 << ((hash >> self.bloom_shift) % 64);
        if word & mask != mask {
            return None;
        }
        let at = self.buckets[hash as usize % self.buckets.len()] as usize;
        (at >= self.first).then_some(at)
    }

    /// The address of a symbol's hash, whose lowest bit is set for the last symbol of a bucket.
    fn link(&self, symbol: usize) -> *const u32 {
        self.chain.wrapping_add(symbol.wrapping_sub(self.first))
    }
}

impl SystemHash {
    fn at(address: usize) -> SystemHash {
        let words = address as *const u32;
        // SAFETY: the table begins with two words that give the lengths of its parts, which follow.
        unsafe {
            let [buckets, symbols] = *words.cast::<[u32; 2]>();
            SystemHash {
                buckets: slice::from_raw_parts(words.add(2), buckets as usize),
                next: slice::from_raw_parts(words.add(2 + buckets as usize), symbols as usize),
            }
        }
    }

    /// The symbol of this name, of which `is_it` tells.
    fn find(&self, name: &[u8], is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let bucket = (system_hash(name) as usize).checked_rem(self.buckets.len())?;
        let mut at = self.buckets[bucket] as usize;
        while at != 0 && !is_it(at) {
            at = *self.next.get(at)? as usize;
        }
        (at != 0).then_some(at)
    }
}

/// The hash of a name in a table of `DT_HASH`.
fn system_hash(name: &[u8]) -> u32 {
    name.iter().fold(0, |hash: u32, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(*byte));
        let high = hash & 0xf000_0000;
        (hash ^ high >> 24) & !high
    })
}

/// The hash of a name in a table of `DT_GNU_HASH`.
fn gnu_hash(name: &[u8]) -> u32 {
    name.iter().fold(5381, |hash: u32, byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
    })
}

#[cfg(test)]
mod tests {
    use super::{each, gnu_hash, has_only_the_common_search_path, system_hash};

    #[test]
    fn hashes_are_those_of_the_format() {
        assert_eq!(gnu_hash(b""), 0x0000_1505);
        assert_eq!(gnu_hash(b"printf"), 0x156b_2bb8);
        assert_eq!(system_hash(b""), 0);
        assert_eq!(system_hash(b"printf"), 0x0779_05a6);
        assert_eq!(system_hash(b"flapenguin.me"), 0x0398_7915);
    }

    #[test]
    fn the_test_has_no_search_path_and_unknown_code_may_have_one() {
        let own = has_only_the_common_search_path as *const () as usize;
        assert!(has_only_the_common_search_path(own));
        assert!(!has_only_the_common_search_path(1));
    }

    #[test]
    fn the_c_library_is_found_with_its_functions() {
        let mut found = None;
        each(|image| {
            if image.name.to_bytes().ends_with(b"/libc.so.6") {
                found = image.function(b"getenv");
                let mut listed = None;
                image.each_function(|name, function| {
                    if name == b"getenv" {
                        listed = Some(function);
                    }
                });
                assert_eq!(listed, found);
                assert_eq!(image.function(b"no_such_function"), None);
                assert!(image.build_id().is_some());
            }
            true
        });
        let function = found.expect("tests are linked with the C library");
        assert_eq!(function.address, libc::getenv as *const () as usize);
    }
}
