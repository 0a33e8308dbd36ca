//! What depends on the processor: registers and unwinding, names of system calls, and what files
//! and code look like.

#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
mod generic_calls;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;

#[cfg(target_arch = "riscv64")]
mod riscv64;
#[cfg(target_arch = "riscv64")]
pub(crate) use riscv64::*;

/// Whether the swap can replace a libuv that a program carries inside. None is built for musl.
pub(crate) const HAS_SWAP: bool = cfg!(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(target_env = "musl")
));

/// The linker for files that name none, such as libraries.
pub(crate) const DEFAULT_LINKER: &str = match cfg!(target_env = "musl") {
    true => MUSL_LINKER,
    false => GLIBC_LINKER,
};

/// The registers that unwinding needs.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Registers {
    pub(crate) pc: u64,
    pub(crate) sp: u64,
    pub(crate) bp: u64,
    /// The return address, on machines that have a register for it.
    #[cfg_attr(
        target_arch = "x86_64",
        expect(dead_code, reason = "it is on the stack")
    )]
    pub(crate) link: u64,
}

#[cfg(test)]
mod tests {
    use super::DEFAULT_LINKER;

    #[test]
    fn the_default_linker_is_that_of_our_c_library() {
        assert_eq!(
            DEFAULT_LINKER.contains("/ld-musl-"),
            cfg!(target_env = "musl")
        );
    }
}
