//! Finds the place for a jump at the entry of a function.
//!
//! A jump is five bytes long. It goes behind a landing pad (`endbr64`), and may extend over the
//! padding after a shorter function, but never into the next function.

/// `jmp rel32`.
pub(crate) const JUMP_LENGTH: usize = 5;

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// The alignment of functions. Padding ends at an aligned address.
const ALIGNMENT: usize = 16;

/// The offset in a function at which a jump goes; `None` if it does not fit.
///
/// `code` contains the function, of `size` bytes, and at least the bytes up to the next aligned
/// address.
pub(crate) fn place_for_jump(code: &[u8], address: usize, size: usize) -> Option<usize> {
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

#[cfg(test)]
mod tests {
    use super::place_for_jump;

    /// `mov (%rdi),%rax; ret`.
    const GETTER: [u8; 4] = [0x48, 0x8b, 0x07, 0xc3];

    fn with(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn a_long_function_is_entered_at_its_first_byte() {
        assert_eq!(place_for_jump(&[0x55; 40], 0x1000, 40), Some(0));
        assert_eq!(place_for_jump(&[0x55; 5], 0x1001, 5), Some(0));
    }

    #[test]
    fn the_landing_pad_stays() {
        let code = with(&[&[0xf3, 0x0f, 0x1e, 0xfa], &[0x55; 5]]);
        assert_eq!(place_for_jump(&code, 0x1000, 9), Some(4));
    }

    #[test]
    fn a_short_function_uses_its_own_padding() {
        let nops = with(&[
            &GETTER,
            &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            &[0x66, 0x90],
        ]);
        assert_eq!(place_for_jump(&nops, 0x1000, 4), Some(0));
        let traps = with(&[&GETTER, &[0xcc; 12]]);
        assert_eq!(place_for_jump(&traps, 0x1000, 4), Some(0));
        let pad = with(&[
            &[0xf3, 0x0f, 0x1e, 0xfa],
            &GETTER,
            &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
        ]);
        assert_eq!(place_for_jump(&pad, 0x1000, 8), Some(4));
    }

    #[test]
    fn a_neighbour_is_not_touched() {
        let neighbour = with(&[&GETTER, &GETTER, &GETTER, &GETTER]);
        assert_eq!(place_for_jump(&neighbour, 0x1000, 4), None);
        // A neighbour may begin with instructions that do nothing.
        let patchable = with(&[&GETTER, &[0x90; 5], &[0x55; 7]]);
        assert_eq!(place_for_jump(&patchable, 0x1000, 4), None);
        // The function ends where the next one begins.
        let full = with(&[&GETTER, &[0x90; 16]]);
        assert_eq!(place_for_jump(&full, 0x100c, 4), None);
        assert_eq!(place_for_jump(&[], 0x1000, 0), None);
    }
}
