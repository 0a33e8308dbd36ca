//! Functions inside a carried library that nothing leads to once the library is replaced.
//!
//! Their names are in the symbol table of the file, which is not loaded with it; most programs
//! are stripped of it. Where they are known they get a tripwire: if a program was linked so that code of its
//! libuv has been copied into its own functions, it ends there, with a line that says why.

use crate::image::{Function, Image, Sym};
use crate::search;
use core::ffi::c_void;
use core::mem::size_of;
use core::ptr;
use core::slice;

/// What every use of a loop comes to: waiting, timers, the phases, watching a descriptor, and
/// handing work to the thread pool.
const GATES: [&[u8]; 7] = [
    b"uv__io_poll",
    b"uv__io_start",
    b"uv__run_check",
    b"uv__run_idle",
    b"uv__run_prepare",
    b"uv__run_timers",
    b"uv__work_submit",
];

const SHT_SYMTAB: u32 = 2;

/// `Elf64_Shdr`, which the `libc` crate has as well, with fields that are not read here.
type Section = libc::Elf64_Shdr;

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

/// The internal functions that the file's symbol table names; none if it has no such table.
pub(crate) fn find(image: &Image) -> Vec<Function> {
    find_in_file(image).unwrap_or_default()
}

fn find_in_file(image: &Image) -> Option<Vec<Function>> {
    let file = Mapped::of(image)?;
    let [header]: &[libc::Elf64_Ehdr; 1] = file.slice(0, 1)?.try_into().ok()?;
    let sections: &[Section] = file.slice(header.e_shoff, header.e_shnum.into())?;
    let table = sections
        .iter()
        .find(|section| section.sh_type == SHT_SYMTAB)?;
    let names = sections.get(table.sh_link as usize)?;
    let names: &[u8] = file.slice(names.sh_offset, usize::try_from(names.sh_size).ok()?)?;
    let count = usize::try_from(table.sh_size).ok()? / size_of::<Sym>();
    let symbols: &[Sym] = file.slice(table.sh_offset, count)?;
    let mut wanted = Vec::new();
    search::each_uv(names, |at| {
        let name = names[at..]
            .split(|byte| *byte == 0)
            .next()
            .unwrap_or_default();
        if GATES.contains(&name) {
            wanted.extend(u32::try_from(at));
        }
    });
    if wanted.is_empty() {
        return None;
    }
    let is_gate = |symbol: &&Sym| wanted.contains(&symbol.name) && symbol.size > 0;
    let function = |symbol: &Sym| Function {
        address: image.base + symbol.value,
        size: symbol.size,
    };
    Some(symbols.iter().filter(is_gate).map(function).collect())
}
