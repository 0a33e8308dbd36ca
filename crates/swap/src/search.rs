//! Searches megabytes of names for `uv_`.

use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8,
};

/// Calls `found` with the offset of every `uv_` in `text`.
pub(crate) fn each_uv(text: &[u8], mut found: impl FnMut(usize)) {
    const STEP: usize = 16;
    // SAFETY: every x86-64 processor has these instructions.
    let letter = |letter: u8| unsafe { _mm_set1_epi8(letter as i8) };
    let [u, v, underscore] = [b'u', b'v', b'_'].map(letter);
    let mut at = 0;
    while at + STEP + 2 <= text.len() {
        // SAFETY: the 18 bytes from `at` on lie within the text.
        let mut hits = unsafe {
            let load = |skip| _mm_loadu_si128(text.as_ptr().add(at + skip).cast::<__m128i>());
            let first = _mm_cmpeq_epi8(load(0), u);
            let second = _mm_cmpeq_epi8(load(1), v);
            let third = _mm_cmpeq_epi8(load(2), underscore);
            _mm_movemask_epi8(_mm_and_si128(_mm_and_si128(first, second), third))
        };
        while hits != 0 {
            found(at + hits.trailing_zeros() as usize);
            hits &= hits - 1;
        }
        at += STEP;
    }
    let rest = text.get(at..).unwrap_or_default();
    for (index, window) in rest.windows(3).enumerate() {
        if window == b"uv_" {
            found(at + index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::each_uv;

    #[test]
    fn every_place_is_found_wherever_it_lies() {
        for length in 3..70 {
            for place in 0..=length - 3 {
                let mut text = vec![b'u'; length];
                text[place..place + 3].copy_from_slice(b"uv_");
                let mut found = Vec::new();
                each_uv(&text, |at| found.push(at));
                assert_eq!(found, [place], "of {length}");
            }
        }
        each_uv(b"uv", |_| panic!("it is too short"));
    }
}
