//! 64-bit ARM.

use super::Registers;
pub(crate) use super::generic_calls::FIRST_CALLS;
pub(crate) use framehop::aarch64::{CacheAarch64 as Cache, UnwinderAarch64 as Unwinder};
use framehop::aarch64::{PtrAuthMask, UnwindRegsAarch64};
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;
use object::elf::{EM_AARCH64, Machine, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT, RelocationType};

pub(crate) const NAME: &str = "ARM64";
pub(crate) const ELF_MACHINE: Machine = EM_AARCH64;
/// The kinds of relocations by which a module's calls go through its linkage table.
pub(crate) const LINKAGE: [RelocationType; 2] = [R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT];
pub(crate) const GLIBC_LINKER: &str = "/lib/ld-linux-aarch64.so.1";
pub(crate) const MUSL_LINKER: &str = "/lib/ld-musl-aarch64.so.1";

/// The bits of an address of a program. Those above may hold a signature of a return address.
const ADDRESS: PtrAuthMask = PtrAuthMask((1 << 48) - 1);

/// The registers that unwinding begins with.
pub(crate) fn unwind_registers(registers: Registers) -> UnwindRegsAarch64 {
    let Registers { sp, bp, link, .. } = registers;
    UnwindRegsAarch64::new_with_ptr_auth_mask(ADDRESS, link, sp, bp)
}

/// The registers of a thread that is held, and the number of the system call that it is in if it
/// sleeps.
pub(crate) fn registers(thread: Pid) -> Result<(Registers, Option<u64>), Errno> {
    let found = ptrace::getregs(thread)?;
    let registers = Registers {
        pc: found.pc,
        sp: found.sp,
        bp: found.regs[29],
        link: found.regs[30],
    };
    Ok((registers, Some(found.regs[8])))
}

/// The version in `mov w0, #LOW; movk w0, #HIGH, lsl #16`, after an optional landing pad.
pub(crate) fn version_in(code: &[u8]) -> Option<[u8; 3]> {
    // `bti c`.
    let code = code.strip_prefix(b"\x5f\x24\x03\xd5").unwrap_or(code);
    let word = |at: usize| Some(u32::from_le_bytes(code.get(at..at + 4)?.try_into().ok()?));
    let immediate = |word: u32| ((word >> 5) & 0xffff) as u16;
    let (low, high) = (word(0)?, word(4)?);
    if low & 0xffe0_001f != 0x5280_0000 || high & 0xffe0_001f != 0x72a0_0000 {
        return None;
    }
    let [patch, minor] = immediate(low).to_le_bytes();
    let [major, zero] = immediate(high).to_le_bytes();
    (zero == 0).then_some([major, minor, patch])
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn versions_are_read_from_the_code_of_compilers() {
        let plain = b"\x20\x80\x86\x52\x20\x00\xa0\x72\xc0\x03\x5f\xd6";
        assert_eq!(version_in(plain), Some([1, 52, 1]));
        let landing = [b"\x5f\x24\x03\xd5", &plain[..]].concat();
        assert_eq!(version_in(&landing), Some([1, 52, 1]));
        assert_eq!(version_in(&plain[4..]), None);
        assert_eq!(version_in(b"\x20"), None);
    }
}
