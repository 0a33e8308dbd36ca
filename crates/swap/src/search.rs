//! Searches megabytes of names for `uv_`.

/// Calls `found` with the offset of every `uv_` in `text`.
pub(crate) fn each_uv(text: &[u8], mut found: impl FnMut(usize)) {
    // Compilers make instructions of this that compare all bytes of a step at once.
    const STEP: usize = 16;
    let mut at = 0;
    while let Some(part) = text.get(at..at + STEP + 2) {
        let is_here = |index: usize| {
            (part[index] == b'u') & (part[index + 1] == b'v') & (part[index + 2] == b'_')
        };
        if (0..STEP).fold(false, |any, index| any | is_here(index)) {
            (0..STEP)
                .filter(|index| is_here(*index))
                .for_each(|index| found(at + index));
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
