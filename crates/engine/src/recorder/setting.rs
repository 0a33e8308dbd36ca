//! `BLACKLIGHT_RECORD`.

use blacklight_sys::own_process;

/// When a process records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Setting {
    Never,
    OnRequest,
    FromTheStart,
    /// From the start, with the stack of each call that makes a handle.
    WithOrigins,
}

impl Setting {
    /// Text that says nothing known counts as none: no program is to fail for a view that nobody
    /// has opened.
    fn from_text(text: &[u8]) -> Setting {
        match text {
            b"1" => Setting::FromTheStart,
            b"origins" => Setting::WithOrigins,
            b"never" => Setting::Never,
            _ => Setting::OnRequest,
        }
    }

    pub(super) fn from_environment() -> Setting {
        if own_process::is_privileged() {
            return Setting::Never;
        }
        let text = std::env::var_os("BLACKLIGHT_RECORD").unwrap_or_default();
        Setting::from_text(text.as_encoded_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_a_few_words() {
        for text in ["", "0", "yes", "2", "Never", " 1"] {
            assert_eq!(Setting::from_text(text.as_bytes()), Setting::OnRequest);
        }
        assert_eq!(Setting::from_text(b"1"), Setting::FromTheStart);
        assert_eq!(Setting::from_text(b"origins"), Setting::WithOrigins);
        assert_eq!(Setting::from_text(b"never"), Setting::Never);
    }
}
