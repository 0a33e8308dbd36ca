//! x86-64.
//!
//! A jump is five bytes long. It goes behind a landing pad (`endbr64`), and may extend over the
//! padding after a shorter function, but never into the next function.

use super::{Callee, Code};

/// The length of a jump: `jmp rel32`.
pub(crate) const JUMP_LENGTH: usize = 5;

/// How far a slot may be from a jump.
pub(crate) const REACH: usize = 1 << 30;

/// The length of a slot: `jmp *2(%rip)`, two bytes of padding, and the address.
pub(crate) const SLOT: usize = 16;

/// The kinds of relocations by which the linker writes the address of a symbol: `R_X86_64_64`,
/// `R_X86_64_GLOB_DAT`, and `R_X86_64_JUMP_SLOT`.
pub(crate) const RELOCATIONS: [u32; 3] = [1, 6, 7];

/// The length of the longest stub.
pub(crate) const STUB: usize = 11;

const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;
const INDIRECT: u8 = 0xff;
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// The alignment of functions. Padding ends at an aligned address.
const ALIGNMENT: usize = 16;

/// The jump at `at` to a slot.
pub(crate) fn jump(_old: [u8; 4], at: usize, slot: usize) -> Code {
    let distance = slot.wrapping_sub(at + JUMP_LENGTH);
    let [a, b, c, d, ..] = distance.to_le_bytes();
    Code::new(&[JUMP, a, b, c, d])
}

/// A slot: code that jumps to any address.
pub(crate) fn slot(target: usize) -> [u8; SLOT] {
    let mut code = [
        INDIRECT, 0x25, 2, 0, 0, 0, 0xcc, 0xcc, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    code[8..].copy_from_slice(&target.to_le_bytes());
    code
}

/// Where the jump at the begin of `code`, which lies at `at`, leads; `None` if there is none.
pub(crate) fn jump_target(code: &[u8], at: usize) -> Option<usize> {
    match *code {
        [JUMP, a, b, c, d, ..] => Some(relative(at + JUMP_LENGTH, [a, b, c, d])),
        _ => None,
    }
}

/// The offset in a function at which a jump goes; `None` if it does not fit.
///
/// `code` contains the function, of `size` bytes, and at least the bytes up to the next aligned
/// address.
pub(crate) fn place(code: &[u8], address: usize, size: usize) -> Option<usize> {
    let at = if code.starts_with(&ENDBR64) {
        ENDBR64.len()
    } else {
        0
    };
    let end = at + JUMP_LENGTH;
    if end <= size {
        return Some(at);
    }
    let aligned = (address + size).next_multiple_of(ALIGNMENT) - address;
    let has_room = end <= aligned && code.get(size..aligned).is_some_and(is_padding);
    (has_room && size > 0).then_some(at)
}

/// Whether all of these bytes are padding instructions.
fn is_padding(mut code: &[u8]) -> bool {
    while !code.is_empty() {
        let Some(rest) = after_nop(code) else {
            return false;
        };
        code = rest;
    }
    true
}

/// The code after a `nop` of any length or an `int3`, with which assemblers fill gaps.
fn after_nop(code: &[u8]) -> Option<&[u8]> {
    if let [0x90 | 0xcc, rest @ ..] = code {
        return Some(rest);
    }
    let prefixes = code.iter().take_while(|byte| matches!(byte, 0x66 | 0x2e));
    match &code[prefixes.count()..] {
        [0x90, rest @ ..]
        | [0x0f, 0x1f, 0x00, rest @ ..]
        | [0x0f, 0x1f, 0x40, 0, rest @ ..]
        | [0x0f, 0x1f, 0x44, 0, 0, rest @ ..]
        | [0x0f, 0x1f, 0x80, 0, 0, 0, 0, rest @ ..]
        | [0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, rest @ ..] => Some(rest),
        _ => None,
    }
}

/// Calls `visit` for every call in `code`, which lies at `start`, until it returns false. Treats every
/// byte as the start of an instruction, since it is very unlikely that other bytes look like a call of
/// an address that is searched.
pub(crate) fn each_call(code: &[u8], start: usize, mut visit: impl FnMut(Callee) -> bool) {
    for (at, bytes) in code.windows(6).enumerate() {
        let at = start + at;
        let callee = match *bytes {
            [CALL | JUMP, a, b, c, d, _] => Callee::Code(relative(at + 5, [a, b, c, d])),
            // `call *pointer(%rip)` and `jmp *pointer(%rip)`.
            [INDIRECT, 0x15 | 0x25, a, b, c, d] => Callee::Pointer(relative(at + 6, [a, b, c, d])),
            _ => continue,
        };
        if !visit(callee) {
            return;
        }
    }
}

/// Where a stub of the linkage table leads. `code` lies at `at`.
pub(crate) fn stub(code: &[u8], at: usize) -> Option<Callee> {
    let skipped = if code.starts_with(&ENDBR64) { 4 } else { 0 };
    // A stub may begin with `bnd`, a prefix that current processors ignore.
    let skipped = skipped + usize::from(*code.get(skipped)? == 0xf2);
    match *code.get(skipped..)? {
        [INDIRECT, 0x25, a, b, c, d, ..] => {
            let next = at + skipped + 6;
            Some(Callee::Pointer(relative(next, [a, b, c, d])))
        }
        _ => None,
    }
}

fn relative(next: usize, distance: [u8; 4]) -> usize {
    next.wrapping_add_signed(i32::from_le_bytes(distance) as isize)
}

/// What an object's code is protected by besides the rights of its segment.
pub(crate) fn protection(_properties: &[u8]) -> libc::c_int {
    0
}

/// Has the processor see code that was written: this one does.
pub(crate) fn sync_code(_start: usize, _length: usize) {}

/// Replaces the real `dlopen`, and jumps to the function that [`target`](crate::opened::target)
/// returns.
///
/// # Safety
///
/// As for the real function.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlopen(
    path: *const libc::c_char,
    flags: libc::c_int,
) -> *mut libc::c_void {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "mov rsi, [rsp + 16]",
        "sub rsp, 8",
        "call {target}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        target = sym crate::opened::target,
    )
}

/// The constant that a function returns, if its code is that of a compiler for such a function.
pub(crate) fn returned_constant(code: &[u8]) -> Option<u32> {
    let code = code.strip_prefix(&ENDBR64).unwrap_or(code);
    // The frame that code without optimisation has.
    let code = code.strip_prefix(b"\x55\x48\x89\xe5").unwrap_or(code);
    // `mov $CONSTANT,%eax`, and the end of the frame.
    let (constant, end) = code.strip_prefix(b"\xb8")?.split_first_chunk()?;
    let end = end.strip_prefix(b"\x5d").unwrap_or(end);
    (end.first() == Some(&0xc3)).then(|| u32::from_le_bytes(*constant))
}

#[cfg(test)]
mod tests {
    use super::{Callee, each_call, jump, jump_target, place, returned_constant, slot, stub};

    /// `mov (%rdi),%rax; ret`.
    const GETTER: [u8; 4] = [0x48, 0x8b, 0x07, 0xc3];

    fn with(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn a_long_function_is_entered_at_its_first_byte() {
        assert_eq!(place(&[0x55; 40], 0x1000, 40), Some(0));
        assert_eq!(place(&[0x55; 5], 0x1001, 5), Some(0));
    }

    #[test]
    fn the_landing_pad_stays() {
        let code = with(&[&[0xf3, 0x0f, 0x1e, 0xfa], &[0x55; 5]]);
        assert_eq!(place(&code, 0x1000, 9), Some(4));
    }

    #[test]
    fn a_short_function_uses_its_own_padding() {
        let nops = with(&[
            &GETTER,
            &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            &[0x66, 0x90],
        ]);
        assert_eq!(place(&nops, 0x1000, 4), Some(0));
        let traps = with(&[&GETTER, &[0xcc; 12]]);
        assert_eq!(place(&traps, 0x1000, 4), Some(0));
        let pad = with(&[
            &[0xf3, 0x0f, 0x1e, 0xfa],
            &GETTER,
            &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
        ]);
        assert_eq!(place(&pad, 0x1000, 8), Some(4));
    }

    #[test]
    fn a_neighbour_is_not_touched() {
        let neighbour = with(&[&GETTER, &GETTER, &GETTER, &GETTER]);
        assert_eq!(place(&neighbour, 0x1000, 4), None);
        // A neighbour may begin with instructions that do nothing.
        let patchable = with(&[&GETTER, &[0x90; 5], &[0x55; 7]]);
        assert_eq!(place(&patchable, 0x1000, 4), None);
        // The function ends where the next one begins.
        let full = with(&[&GETTER, &[0x90; 16]]);
        assert_eq!(place(&full, 0x100c, 4), None);
        assert_eq!(place(&[], 0x1000, 0), None);
    }

    #[test]
    fn a_jump_leads_to_its_slot() {
        let code = jump([0; 4], 0x5000, 0x1010);
        assert_eq!(*code, [0xe9, 0x0b, 0xc0, 0xff, 0xff]);
        assert_eq!(jump_target(&code, 0x5000), Some(0x1010));
        assert_eq!(jump_target(&GETTER, 0x5000), None);
        let slot = slot(0x7f00_1234_5678);
        assert_eq!(slot[..8], [0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc]);
        assert_eq!(slot[8..], 0x7f00_1234_5678_usize.to_le_bytes());
        assert_eq!(stub(&slot, 0x1000), Some(Callee::Pointer(0x1008)));
    }

    #[test]
    fn calls_are_found() {
        let code = with(&[
            &[0xe8, 0xfb, 0, 0, 0],
            &[0xff, 0x15, 0x10, 0, 0, 0],
            &[0x90; 5],
        ]);
        let mut found = Vec::new();
        each_call(&code, 0x1000, |callee| {
            found.push(callee);
            true
        });
        assert_eq!(found, [Callee::Code(0x1100), Callee::Pointer(0x101b)]);
    }

    #[test]
    fn constants_are_read_from_the_code_of_compilers() {
        let plain = b"\xb8\x01\x34\x01\x00\xc3";
        assert_eq!(returned_constant(plain), Some(0x13401));
        let landing = [b"\xf3\x0f\x1e\xfa", &plain[..]].concat();
        assert_eq!(returned_constant(&landing), Some(0x13401));
        let frame = b"\x55\x48\x89\xe5\xb8\x01\x34\x01\x00\x5d\xc3";
        assert_eq!(returned_constant(frame), Some(0x13401));
    }

    #[test]
    fn other_code_has_no_constant() {
        // A call, a constant that something is done with, and a piece of one.
        let others: [&[u8]; 4] = [
            b"\xe8\x00\x00\x00\x00\xc3",
            b"\xb8\x01\x00\x00\x00\xff\xc0\xc3",
            b"\xb8\x01\x00",
            b"",
        ];
        for code in others {
            assert_eq!(returned_constant(code), None, "{code:x?}");
        }
    }
}
