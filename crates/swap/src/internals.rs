//! Functions inside a carried library that nothing leads to once the library is replaced.
//!
//! Their names are in the symbol table of the file, which is not loaded with it, and which some
//! programs are stripped of. Where they are known they get a tripwire: should code of the carried
//! library have been copied into the program's own functions, the program ends there, with a line that says why.
//! Link-time optimisation does copy, and functions that call no others would meet no tripwire. That is
//! found out beforehand ([`crate::separate`]); and if the symbol table no longer says which source
//! file a function comes from, it was a linker that compiled it.

use crate::image::{Function, Image, Sym};
use crate::patch::Jump;
use core::ffi::c_void;
use core::mem::size_of;
use core::ops::Range;
use core::ptr;
use core::slice;

/// What the uses of a loop come to: waiting, timers, the phases, beginning and ending handles,
/// watching a descriptor, and handing work to the thread pool.
const GATES: [&[u8]; 13] = [
    b"uv__io_init",
    b"uv__io_poll",
    b"uv__io_start",
    b"uv__make_close_pending",
    b"uv__platform_loop_init",
    b"uv__process_init",
    b"uv__run_check",
    b"uv__run_idle",
    b"uv__run_prepare",
    b"uv__run_timers",
    b"uv__stream_init",
    b"uv__stream_open",
    b"uv__work_submit",
];

const SHT_SYMTAB: u32 = 2;
const STT_FUNC: u8 = 2;
const STT_FILE: u8 = 4;

/// What the symbol table of a file says of the libuv in it.
#[derive(Default)]
pub(crate) struct Internals {
    /// The functions that get a tripwire.
    pub(crate) gates: Vec<Function>,
    /// Whether it went through link-time optimisation.
    pub(crate) is_optimised: bool,
}

/// A file that is mapped as long as this lives.
struct Mapped {
    start: *mut c_void,
    length: usize,
}

impl Mapped {
    fn of(image: &Image) -> Option<Mapped> {
        // SAFETY: the calls are given a valid path and a valid place for the answer; the mapping
        // is private and of this size.
        unsafe {
            let file = libc::open(image.path().as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            if file < 0 {
                return None;
            }
            let mut status: libc::stat = core::mem::zeroed();
            let known = libc::fstat(file, &raw mut status) == 0;
            let length = usize::try_from(status.st_size).unwrap_or(0);
            let start = if known && length > 0 {
                libc::mmap(
                    ptr::null_mut(),
                    length,
                    libc::PROT_READ,
                    libc::MAP_PRIVATE,
                    file,
                    0,
                )
            } else {
                libc::MAP_FAILED
            };
            libc::close(file);
            (start != libc::MAP_FAILED).then_some(Mapped { start, length })
        }
    }

    /// `count` values at an offset, if the file is that long.
    fn slice<T>(&self, offset: u64, count: usize) -> Option<&[T]> {
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(count.checked_mul(size_of::<T>())?)?;
        if end > self.length || offset % align_of::<T>() != 0 {
            return None;
        }
        let start = self.start.wrapping_byte_add(offset).cast::<T>();
        // SAFETY: the values lie within the mapping, are aligned, and any bytes make up such values.
        Some(unsafe { slice::from_raw_parts(start, count) })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and what was borrowed from it is gone.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

/// How far from the exported functions internal ones may lie.
const NEARBY: usize = 1 << 16;

/// Looks for the internal functions of a carried library, which lie among the exported ones that
/// `jumps` lead from; finds nothing in a stripped file.
pub(crate) fn find(image: &Image, jumps: &[Jump]) -> Internals {
    find_in_file(image, jumps).unwrap_or_default()
}

fn find_in_file(image: &Image, jumps: &[Jump]) -> Option<Internals> {
    let places = || jumps.iter().map(|jump| jump.at - image.base);
    let among = places().min()?.saturating_sub(NEARBY)..places().max()? + NEARBY;
    let file = Mapped::of(image)?;
    let [header]: &[libc::Elf64_Ehdr; 1] = file.slice(0, 1)?.try_into().ok()?;
    let sections: &[libc::Elf64_Shdr] = file.slice(header.e_shoff, header.e_shnum.into())?;
    let is_table = |section: &&libc::Elf64_Shdr| section.sh_type == SHT_SYMTAB;
    let table = sections.iter().find(is_table)?;
    let names = sections.get(table.sh_link as usize)?;
    let names: &[u8] = file.slice(names.sh_offset, usize::try_from(names.sh_size).ok()?)?;
    let count = usize::try_from(table.sh_size).ok()? / size_of::<Sym>();
    let symbols: &[Sym] = file.slice(table.sh_offset, count)?;
    Some(look(image.base, &among, symbols, names))
}

/// Reads the names of few symbols only: those of a large program fill tens of megabytes.
fn look(base: usize, among: &Range<usize>, symbols: &[Sym], names: &[u8]) -> Internals {
    let text_of = |symbol: &Sym| names.get(symbol.name as usize..).unwrap_or_default();
    let name_of = |symbol: &Sym| {
        let rest = text_of(symbol);
        let end = rest.iter().position(|byte| *byte == 0);
        &rest[..end.unwrap_or(rest.len())]
    };
    let mut gates = Vec::new();
    let mut source = None;
    let mut has_internals = false;
    let mut has_source = false;
    for symbol in symbols {
        match symbol.info & 0xf {
            STT_FILE => source = Some(symbol),
            STT_FUNC if among.contains(&symbol.value) => {
                if !text_of(symbol).starts_with(b"uv__") {
                    continue;
                }
                has_internals = true;
                has_source |= source.is_some_and(|source| name_of(source).ends_with(b".c"));
                if GATES.contains(&name_of(symbol)) && symbol.size > 0 {
                    gates.push(Function {
                        address: base + symbol.value,
                        size: symbol.size,
                    });
                }
            }
            _ => {}
        }
    }
    Internals {
        gates,
        is_optimised: has_internals && !has_source,
    }
}
