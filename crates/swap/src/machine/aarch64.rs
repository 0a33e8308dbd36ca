//! 64-bit ARM.
//!
//! A jump is one instruction of four bytes. It goes behind a landing pad (`bti c`). An instruction that
//! signs the return address is a landing pad as well, and must not run without its counterpart: a plain
//! landing pad takes its place.

use super::{Callee, Code};

/// The length of the longest jump: a landing pad and `b`.
pub(crate) const JUMP_LENGTH: usize = 8;

/// How far a slot may be from a jump.
pub(crate) const REACH: usize = 1 << 27;

/// The length of a slot: `ldr x16, #8`, `br x16`, and the address.
pub(crate) const SLOT: usize = 16;

/// The kinds of relocations by which the linker writes the address of a symbol: `R_AARCH64_ABS64`,
/// `R_AARCH64_GLOB_DAT`, and `R_AARCH64_JUMP_SLOT`.
pub(crate) const RELOCATIONS: [u32; 3] = [257, 1025, 1026];

/// The length of the longest stub: a landing pad and four instructions.
pub(crate) const STUB: usize = 20;

const WORD: usize = 4;
const BTI_C: u32 = 0xd503_245f;
const BTI_JC: u32 = 0xd503_24df;
const PACIASP: u32 = 0xd503_233f;
const PACIBSP: u32 = 0xd503_237f;
const B: u32 = 0x1400_0000;
/// `ldr x16, #8`.
const LOAD_LITERAL: u32 = 0x5800_0050;
/// `br x16`.
const BRANCH: u32 = 0xd61f_0200;

/// The jump at `at`, which begins with the instruction `old`, to a slot.
pub(crate) fn jump(old: [u8; 4], at: usize, slot: usize) -> Code {
    match u32::from_le_bytes(old) {
        PACIASP | PACIBSP => Code::new(&words([BTI_C, branch(at + WORD, slot)])),
        _ => Code::new(&branch(at, slot).to_le_bytes()),
    }
}

/// The instruction `b` at `at`.
fn branch(at: usize, to: usize) -> u32 {
    let distance = to.wrapping_sub(at);
    B | (distance >> 2) as u32 & 0x3ff_ffff
}

fn words(words: [u32; 2]) -> [u8; 8] {
    let [a, b] = words;
    (u64::from(b) << 32 | u64::from(a)).to_le_bytes()
}

/// A slot: code that jumps to any address.
pub(crate) fn slot(target: usize) -> [u8; SLOT] {
    let mut code = [0; SLOT];
    code[..8].copy_from_slice(&words([LOAD_LITERAL, BRANCH]));
    code[8..].copy_from_slice(&target.to_le_bytes());
    code
}

/// Where the jump at the begin of `code`, which lies at `at`, leads; `None` if there is none.
pub(crate) fn jump_target(code: &[u8], at: usize) -> Option<usize> {
    let word = word(code, 0)?;
    (word & 0xfc00_0000 == B).then(|| branch_target(word, at))
}

/// The offset in a function at which a jump goes; `None` if it does not fit.
pub(crate) fn place(code: &[u8], _address: usize, size: usize) -> Option<usize> {
    let (at, length) = match word(code, 0)? {
        BTI_C | BTI_JC => (WORD, WORD),
        PACIASP | PACIBSP => (0, 2 * WORD),
        _ => (0, WORD),
    };
    (at + length <= size).then_some(at)
}

/// Calls `visit` for every call in `code`, which lies at `start`, until it returns false.
pub(crate) fn each_call(code: &[u8], start: usize, mut visit: impl FnMut(Callee) -> bool) {
    for offset in (0..code.len()).step_by(WORD) {
        let (code, at) = (&code[offset..], start + offset);
        let callee = match word(code, 0) {
            // `b` and `bl`.
            Some(word) if word & 0x7c00_0000 == B => Some(Callee::Code(branch_target(word, at))),
            Some(word) if is_page(word) => pointer_called(code, at),
            _ => None,
        };
        if callee.is_some_and(|callee| !visit(callee)) {
            return;
        }
    }
}

/// The pointer that is loaded and called by the code that begins with an `adrp` at `at`. Other
/// instructions may come between.
fn pointer_called(code: &[u8], at: usize) -> Option<Callee> {
    const WINDOW: usize = 12;
    let first = word(code, 0)?;
    let window = || (1..WINDOW).map_while(|index| word(code, index));
    let loads = |word: &u32| is_load(*word) && source(*word) == register(first);
    let (index, load) = window().enumerate().find(|(_, word)| loads(word))?;
    let is_call = |word: u32| {
        // `blr` and `br`.
        word & 0xffdf_fc1f == 0xd61f_0000 && source(word) == register(load)
    };
    let is_called = window().skip(index + 1).any(is_call);
    is_called.then(|| Callee::Pointer(page(first, at) + load_offset(load)))
}

/// Where a stub leads: one of the linkage table, or one that the static linker has inserted to reach
/// farther. `code` lies at `at`.
pub(crate) fn stub(code: &[u8], at: usize) -> Option<Callee> {
    let skipped = usize::from(word(code, 0)? == BTI_C);
    let (code, at) = (code.get(skipped * WORD..)?, at + skipped * WORD);
    let (first, second, third) = (word(code, 0)?, word(code, 1)?, word(code, 2)?);
    if [first, second] == [LOAD_LITERAL, BRANCH] {
        let address = code.get(8..16)?.try_into().ok()?;
        return Some(Callee::Code(usize::from_le_bytes(address)));
    }
    if !is_page(first) || register(first) != 16 {
        return None;
    }
    if is_load(second) && source(second) == 16 {
        return Some(Callee::Pointer(page(first, at) + load_offset(second)));
    }
    // `add x16, x16, #offset`.
    let is_add = second & 0xffc0_03ff == 0x9100_0210;
    let offset = (second >> 10 & 0xfff) as usize;
    (is_add && third == BRANCH).then(|| Callee::Code(page(first, at) + offset))
}

fn word(code: &[u8], index: usize) -> Option<u32> {
    let bytes = code.get(index * WORD..(index + 1) * WORD)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Where `b` or `bl` leads.
fn branch_target(word: u32, at: usize) -> usize {
    // The sign of the 26 bits is extended, and they count words.
    let distance = ((word << 6).cast_signed() >> 6) as isize * WORD as isize;
    at.wrapping_add_signed(distance)
}

/// Whether this is `adrp`.
fn is_page(word: u32) -> bool {
    word & 0x9f00_0000 == 0x9000_0000
}

/// The address that an `adrp` at `at` makes.
fn page(word: u32, at: usize) -> usize {
    let bits = (word >> 5 & 0x7_ffff) << 2 | word >> 29 & 3;
    let pages = ((bits << 11).cast_signed() >> 11) as isize;
    (at & !0xfff).wrapping_add_signed(pages << 12)
}

/// Whether this is `ldr` of 8 bytes with an offset.
fn is_load(word: u32) -> bool {
    word & 0xffc0_0000 == 0xf940_0000
}

fn load_offset(word: u32) -> usize {
    (word >> 10 & 0xfff) as usize * 8
}

/// The register that an instruction writes.
fn register(word: u32) -> u32 {
    word & 0x1f
}

/// The register with the address that an instruction uses.
fn source(word: u32) -> u32 {
    word >> 5 & 0x1f
}

/// What an object's code is protected by besides the rights of its segment: jumps to other places than
/// landing pads are refused if the object's properties say that it has them, and the processor can.
pub(crate) fn protection(properties: &[u8]) -> libc::c_int {
    const PROT_BTI: libc::c_int = 0x10;
    const HWCAP2_BTI: u64 = 1 << 17;
    // SAFETY: it takes any number.
    let features = unsafe { libc::getauxval(libc::AT_HWCAP2) };
    if features & HWCAP2_BTI != 0 && has_landing_pads(properties) {
        PROT_BTI
    } else {
        0
    }
}

/// Whether an object's note of properties says that it has landing pads.
fn has_landing_pads(note: &[u8]) -> bool {
    const NT_GNU_PROPERTY: u32 = 5;
    const FEATURES: u32 = 0xc000_0000;
    const FEATURE_BTI: u32 = 1;
    // The note has a head of three words and a name of one.
    let mut properties = match note.get(16..) {
        Some(rest) if word(note, 2) == Some(NT_GNU_PROPERTY) && note[12..16] == *b"GNU\0" => rest,
        _ => return false,
    };
    while let (Some(kind), Some(size)) = (word(properties, 0), word(properties, 1)) {
        if kind == FEATURES {
            return word(properties, 2).is_some_and(|features| features & FEATURE_BTI != 0);
        }
        let length = 8 + (size as usize).next_multiple_of(8);
        properties = properties.get(length..).unwrap_or_default();
    }
    false
}

/// Has the processor see code that was written: it fetches instructions by another cache.
#[cfg(target_arch = "aarch64")]
pub(crate) fn sync_code(start: usize, length: usize) {
    let kind: u64;
    // SAFETY: programs may read this register, which describes the caches.
    unsafe {
        core::arch::asm!("mrs {}, ctr_el0", out(reg) kind, options(nomem, nostack, preserves_flags));
    }
    let lines = |shift: u32| {
        let line = WORD << (kind >> shift & 15);
        (start & !(line - 1)..start + length).step_by(line)
    };
    let [data_needs_none, code_needs_none] = [28, 29].map(|bit| kind >> bit & 1 == 1);
    // SAFETY: the lines are those of code that was just written and can be read. Their contents do not
    // change.
    unsafe {
        if !data_needs_none {
            for line in lines(16) {
                core::arch::asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags));
            }
        }
        core::arch::asm!("dsb ish", options(nostack, preserves_flags));
        if !code_needs_none {
            for line in lines(0) {
                core::arch::asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags));
            }
            core::arch::asm!("dsb ish", options(nostack, preserves_flags));
        }
        core::arch::asm!("isb", options(nostack, preserves_flags));
    }
}

/// Replaces the real `dlopen`, and jumps to the function that [`target`](crate::opened::target)
/// returns.
///
/// # Safety
///
/// As for the real function.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlopen(
    path: *const libc::c_char,
    flags: libc::c_int,
) -> *mut libc::c_void {
    core::arch::naked_asm!(
        // `bti c`.
        "hint 34",
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "mov x1, x30",
        "bl {target}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "br x16",
        target = sym crate::opened::target,
    )
}

/// The constant that a function returns, if its code is that of a compiler for such a function.
pub(crate) fn returned_constant(code: &[u8]) -> Option<u32> {
    const RET: u32 = 0xd65f_03c0;
    let first = usize::from(word(code, 0)? == BTI_C);
    let (low, high) = (word(code, first)?, word(code, first + 1)?);
    // `mov w0, #LOW`, `movk w0, #HIGH, lsl #16`, `ret`.
    let is_written = low & 0xffe0_001f == 0x5280_0000
        && high & 0xffe0_001f == 0x72a0_0000
        && word(code, first + 2)? == RET;
    is_written.then_some((high >> 5 & 0xffff) << 16 | low >> 5 & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::{BTI_C, BTI_JC, PACIASP, PACIBSP};
    use super::{
        Callee, each_call, has_landing_pads, jump, jump_target, place, returned_constant, slot,
        stub,
    };

    const NOP: u32 = 0xd503_201f;
    const RET: u32 = 0xd65f_03c0;

    fn code(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn calls(words: &[u32], start: usize) -> Vec<Callee> {
        let mut found = Vec::new();
        each_call(&code(words), start, |callee| {
            found.push(callee);
            true
        });
        found
    }

    #[test]
    fn a_jump_needs_one_instruction_behind_a_landing_pad() {
        assert_eq!(place(&code(&[RET]), 0x1000, 4), Some(0));
        assert_eq!(place(&code(&[RET]), 0x1000, 0), None);
        for pad in [BTI_C, BTI_JC] {
            assert_eq!(place(&code(&[pad, RET]), 0x1000, 8), Some(4));
            assert_eq!(place(&code(&[pad, RET]), 0x1000, 4), None);
        }
        for pad in [PACIASP, PACIBSP] {
            assert_eq!(place(&code(&[pad, RET]), 0x1000, 8), Some(0));
            assert_eq!(place(&code(&[pad, RET]), 0x1000, 4), None);
        }
    }

    #[test]
    fn a_jump_leads_to_its_slot_and_keeps_a_landing_pad() {
        let forward = jump(NOP.to_le_bytes(), 0x1000, 0x1010);
        assert_eq!(*forward, code(&[0x1400_0004]));
        assert_eq!(jump_target(&forward, 0x1000), Some(0x1010));
        let farthest = jump(NOP.to_le_bytes(), 0x1000_0000, 0x0800_0000);
        assert_eq!(*farthest, code(&[0x1600_0000]));
        assert_eq!(jump_target(&farthest, 0x1000_0000), Some(0x0800_0000));
        for pad in [PACIASP, PACIBSP] {
            let signed = jump(pad.to_le_bytes(), 0x1000, 0x0ff8);
            assert_eq!(*signed, code(&[BTI_C, 0x17ff_fffd]));
            // It is found where a jump goes behind the new pad.
            assert_eq!(place(&signed, 0x1000, 8), Some(4));
            assert_eq!(jump_target(&signed[4..], 0x1004), Some(0x0ff8));
        }
        assert_eq!(jump_target(&code(&[RET]), 0x1000), None);
    }

    #[test]
    fn a_slot_loads_its_address_and_branches() {
        let slot = slot(0x7f00_1234_5678);
        assert_eq!(slot[..8], code(&[0x5800_0050, 0xd61f_0200]));
        assert_eq!(slot[8..], 0x7f00_1234_5678_usize.to_le_bytes());
    }

    #[test]
    fn calls_and_tail_calls_are_found() {
        // `bl .+16`, `b .-4`, `ret`, `cbz x0, .+8`.
        let found = calls(&[0x9400_0004, 0x17ff_ffff, RET, 0xb400_0040], 0x1000);
        assert_eq!(found, [Callee::Code(0x1010), Callee::Code(0x1000)]);
    }

    #[test]
    fn calls_of_loaded_pointers_are_found() {
        // `adrp x8, .+0x1f000`, `nop`, `ldr x8, [x8, #0xfd8]`, `blr x8`, at 0x40_0000.
        let found = calls(&[0xf000_00e8, NOP, 0xf947_ed08, 0xd63f_0100], 0x40_0000);
        assert_eq!(found, [Callee::Pointer(0x41_ffd8)]);
        // The same, loaded into another register than that which is called.
        let found = calls(&[0xf000_00e8, NOP, 0xf947_ed09, 0xd63f_0100], 0x40_0000);
        assert_eq!(found, []);
    }

    #[test]
    fn stubs_lead_through_the_linkage_table() {
        // `adrp x16, .+0x1f000`, `ldr x17, [x16, #0xfd8]`, `add x16, x16, #0xfd8`, `br x17`.
        let stub_of_linker = [0xf000_00f0, 0xf947_ee11, 0x913f_6210, 0xd61f_0220];
        let pointer = Some(Callee::Pointer(0x41_ffd8));
        assert_eq!(stub(&code(&stub_of_linker), 0x40_0000), pointer);
        let with_pad = [&[BTI_C], &stub_of_linker[..]].concat();
        assert_eq!(stub(&code(&with_pad), 0x40_0000), pointer);
        assert_eq!(stub(&code(&[NOP; 5]), 0x40_0000), None);
    }

    #[test]
    fn stubs_that_reach_farther_lead_to_code() {
        // `adrp x16, .-0x1000`, `add x16, x16, #0x24`, `br x16`.
        let near = [0xf0ff_fff0, 0x9100_9210, 0xd61f_0200];
        let code_at = |at| Some(Callee::Code(at));
        assert_eq!(stub(&code(&near), 0x40_0000), code_at(0x3f_f024));
        assert_eq!(stub(&slot(0x7f00_1234_5678), 0), code_at(0x7f00_1234_5678));
    }

    #[test]
    fn properties_tell_of_landing_pads() {
        let note = |features: u32| {
            let [name, kind] = [u32::from_le_bytes(*b"GNU\0"), 5];
            // Another property comes first, whose data are padded.
            let properties = [0xc000_0001, 4, 1, 0, 0xc000_0000, 4, features, 0];
            code(&[&[4, 32, kind, name], &properties[..]].concat())
        };
        assert!(has_landing_pads(&note(1)));
        assert!(has_landing_pads(&note(3)));
        assert!(!has_landing_pads(&note(2)));
        assert!(!has_landing_pads(&note(1)[..20]));
        assert!(!has_landing_pads(&[]));
    }

    #[test]
    fn constants_are_read_from_the_code_of_compilers() {
        let plain = b"\x20\x80\x86\x52\x20\x00\xa0\x72\xc0\x03\x5f\xd6";
        assert_eq!(returned_constant(plain), Some(0x13401));
        let landing = [b"\x5f\x24\x03\xd5", &plain[..]].concat();
        assert_eq!(returned_constant(&landing), Some(0x13401));
        assert_eq!(returned_constant(&plain[..8]), None);
        assert_eq!(returned_constant(&plain[4..]), None);
    }
}
