//! Internal functions of a carried library, which become unreachable once the library is
//! replaced.
//!
//! Their names are in the file's symbol table, which is not loaded and which stripped files lack.
//! Those that are found get a tripwire: if code of the carried library was inlined into the
//! program's own functions and calls one of them, the program ends there with a line that says
//! why. Link-time optimisation inlines, also functions that call no others and so would trip
//! nothing. [`crate::separate`] detects it beforehand; and a symbol table that does not name the
//! source file of a function shows that the linker compiled the function.

use crate::image::{Function, Image, Sym};
use crate::patch::Jump;
use core::ffi::c_void;
use core::mem::size_of;
use core::ops::Range;
use core::ptr;
use core::slice;

/// Functions that every use of a loop calls: for waiting, timers, phases, opening and closing
/// handles, watching descriptors, and submitting work to the thread pool.
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

/// The facts about a carried libuv that the file's symbol table gives.
#[derive(Default)]
pub(crate) struct Internals {
    /// The functions that get a tripwire.
    pub(crate) gates: Vec<Function>,
    /// Whether the library went through link-time optimisation.
    pub(crate) is_optimised: bool,
}

/// A mapped file, unmapped on drop.
struct Mapped {
    start: *mut c_void,
    length: usize,
}

impl Mapped {
    fn of(image: &Image) -> Option<Mapped> {
        // SAFETY: the path is a C string, `status` is valid for writes, and the mapping is
        // private and of the file's size.
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
        // SAFETY: the values are within the mapping and aligned, and any bytes are valid for
        // them.
        Some(unsafe { slice::from_raw_parts(start, count) })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the range is that of `mmap`, and no borrow of it is left.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

/// The distance from exported functions within which internal ones are searched.
const NEARBY: usize = 1 << 16;

/// Finds the internal functions of a carried library, which are near the exported ones that have
/// `jumps`. Finds none in a stripped file.
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
    Some(search(image.base, &among, symbols, names))
}

/// Searches the symbol table. Reads the names of few symbols, since those of a large program fill
/// tens of megabytes.
fn search(base: usize, among: &Range<usize>, symbols: &[Sym], names: &[u8]) -> Internals {
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
