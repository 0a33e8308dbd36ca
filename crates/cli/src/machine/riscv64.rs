//! 64-bit RISC-V. Nothing unwinds its stacks yet.

pub(crate) use super::generic_calls::FIRST_CALLS;
use object::elf::{EM_RISCV, Machine, R_RISCV_64, R_RISCV_JUMP_SLOT, RelocationType};

pub(crate) const NAME: &str = "RISC-V";
pub(crate) const ELF_MACHINE: Machine = EM_RISCV;
/// The kinds of relocations by which a module's calls go through its linkage table.
pub(crate) const LINKAGE: [RelocationType; 2] = [R_RISCV_64, R_RISCV_JUMP_SLOT];
pub(crate) const GLIBC_LINKER: &str = "/lib/ld-linux-riscv64-lp64d.so.1";
pub(crate) const MUSL_LINKER: &str = "/lib/ld-musl-riscv64.so.1";

/// The version that `uv_version` returns is not read from the code here.
pub(crate) fn version_in(_code: &[u8]) -> Option<[u8; 3]> {
    None
}
