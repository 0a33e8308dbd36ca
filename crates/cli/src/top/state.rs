//! What the user has chosen, and what keys change of it.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The parts of the view below the answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Section {
    /// The loops.
    #[default]
    Loops,
    /// The thread pool.
    Pool,
    /// The costliest callbacks.
    Callbacks,
    /// The handles by kind.
    Handles,
    /// The stalls.
    Stalls,
}

impl Section {
    /// All of them, in their order.
    pub(super) const ALL: [Section; 5] = [
        Section::Loops,
        Section::Pool,
        Section::Callbacks,
        Section::Handles,
        Section::Stalls,
    ];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Section::Loops => "Loops",
            Section::Pool => "Pool",
            Section::Callbacks => "Callbacks",
            Section::Handles => "Handles",
            Section::Stalls => "Stalls",
        }
    }
}

/// What callbacks are sorted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Sort {
    /// The time that they took together.
    #[default]
    Total,
    /// The time that the longest took.
    Longest,
    /// How many there were.
    Count,
}

impl Sort {
    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Sort::Total => "total",
            Sort::Longest => "longest",
            Sort::Count => "count",
        }
    }
}

/// What the user has chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The section that comes first.
    pub(super) section: Section,
    /// What callbacks are sorted by.
    pub(super) sort: Sort,
    /// Only lines with this text are shown.
    pub(super) filter: String,
    /// Whether the user is typing the filter.
    pub(super) is_typing: bool,
    /// Whether the view stands still.
    pub(super) is_paused: bool,
    /// Whether the help is shown.
    pub(super) is_help: bool,
    /// The loop that is shown; none for all.
    pub(super) chosen: Option<u32>,
    /// How many lines are scrolled past.
    pub(super) scroll: usize,
}

impl State {
    /// Does what a key says. Returns whether the user wants to quit.
    pub(super) fn key(&mut self, key: KeyEvent, loops: &[u32]) -> bool {
        if key.kind == KeyEventKind::Release {
            return false;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return key.code == KeyCode::Char('c');
        }
        if self.is_typing {
            self.type_filter(key.code);
            return false;
        }
        if std::mem::take(&mut self.is_help) {
            // Any key closes the help, and quitting keys close only that.
            return false;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('?' | 'h') => self.is_help = true,
            KeyCode::Char('/') => (self.is_typing, self.scroll) = (true, 0),
            KeyCode::Char('s') => {
                self.sort = match self.sort {
                    Sort::Total => Sort::Longest,
                    Sort::Longest => Sort::Count,
                    Sort::Count => Sort::Total,
                }
            }
            KeyCode::Char('l') | KeyCode::Enter => self.next_loop(loops),
            KeyCode::Tab => self.move_section(1),
            KeyCode::BackTab => self.move_section(Section::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='5') => {
                let at = digit as usize - '1' as usize;
                (self.section, self.scroll) = (Section::ALL[at], 0);
            }
            KeyCode::Down | KeyCode::Char('j') => self.scroll = self.scroll.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(10),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::Home => self.scroll = 0,
            _ => {}
        }
        false
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) if self.filter.len() < 64 => self.filter.push(c),
            _ => {}
        }
    }

    fn move_section(&mut self, by: usize) {
        let at = self.section as usize + by;
        self.section = Section::ALL[at % Section::ALL.len()];
        self.scroll = 0;
    }

    /// All loops, then each of them, then all again.
    fn next_loop(&mut self, loops: &[u32]) {
        self.chosen = match self.chosen {
            None => loops.first().copied(),
            Some(id) => loops.iter().copied().find(|other| *other > id),
        };
        self.scroll = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(state: &mut State, codes: &[KeyCode]) -> bool {
        let keys = codes.iter().map(|code| KeyEvent::from(*code));
        keys.fold(false, |_, key| state.key(key, &[1, 4]))
    }

    #[test]
    fn keys_do_what_the_help_says() {
        let mut state = State::default();
        for quit in [KeyCode::Char('q'), KeyCode::Esc] {
            assert!(press(&mut state, &[quit]));
        }
        press(
            &mut state,
            &[KeyCode::Char(' '), KeyCode::Char('4'), KeyCode::Char('s')],
        );
        assert!(state.is_paused);
        assert_eq!(
            (state.section, state.sort),
            (Section::Handles, Sort::Longest)
        );
        press(&mut state, &[KeyCode::Tab, KeyCode::Tab, KeyCode::Down]);
        assert_eq!((state.section, state.scroll), (Section::Loops, 1));
        press(&mut state, &[KeyCode::BackTab]);
        assert_eq!((state.section, state.scroll), (Section::Stalls, 0));
        let loops = [Some(1), Some(4), None];
        for chosen in loops {
            press(&mut state, &[KeyCode::Enter]);
            assert_eq!(state.chosen, chosen);
        }
    }

    #[test]
    fn a_filter_is_typed_and_given_up() {
        let mut state = State::default();
        assert!(!press(
            &mut state,
            &[KeyCode::Char('/'), KeyCode::Char('q'), KeyCode::Char('x')]
        ));
        press(&mut state, &[KeyCode::Backspace, KeyCode::Enter]);
        assert_eq!((state.filter.as_str(), state.is_typing), ("q", false));
        assert!(!press(&mut state, &[KeyCode::Char('/'), KeyCode::Esc]));
        assert!(state.filter.is_empty());
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(state.key(control_c, &[]));
    }
}
