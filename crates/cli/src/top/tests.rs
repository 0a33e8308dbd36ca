//! The view as it is drawn.

use super::draw::draw;
use super::session::{Kind, Session, View};
use super::state::{Section, State};
use super::{refresh, report};
use crate::names::Hexadecimal;
use blacklight_record::layout::{ACTIVE, REFERENCED, State as Doing};
use blacklight_record::read::{Reader, now_ns};
use blacklight_record::{Callback, HandleInfo, Record};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::time::Duration;

const MS: u64 = 1_000_000;

/// The view of this process, which writes the record of a loop with a stall.
fn own_view() -> View {
    let now = now_ns();
    let record = Record::make(None, true, now).expect("there is room for a record");
    let record: &'static Record = Box::leak(Box::new(record));
    assert!(record.begin(now));
    let mut lp = record.add_loop("main", "epoll", 1, now).expect("a loop");
    lp.run_begins(now, None);
    let reader = Reader::open(std::process::id()).expect("the record of this process");
    let names = Box::new(Hexadecimal);
    let interval = Duration::from_secs(1);
    let mut session = Session::new(reader, names, interval, Duration::from_millis(100));
    assert!(refresh(&mut session).expect("it can be read"));
    let info = HandleInfo {
        what: 1 | ACTIVE | REFERENCED,
        token: 1,
        callback: 0x77,
        due_ns: now,
        repeat_ns: 500 * MS,
        number: -1,
        ..HandleInfo::default()
    };
    lp.set_handle(0, &info, now);
    lp.counts(0, 1);
    let callback = Callback {
        kind: 1,
        address: 0x77,
        delay_ns: Some(MS),
        ..Callback::default()
    };
    lp.callback_begins(now, callback);
    lp.callback_ends(now + 300 * MS);
    lp.wait_begins(Doing::Asleep, now + 300 * MS, 0);
    assert!(refresh(&mut session).expect("it can be read"));
    let view = session.view(None);
    record.remove();
    view
}

fn screen(view: &View, state: &mut State, width: u16, height: u16) -> String {
    let backend = TestBackend::new(width, height);
    let mut terminal = Terminal::new(backend).expect("a terminal in memory");
    let drawn = terminal.draw(|frame| draw(frame, view, state, true));
    drawn.expect("memory takes everything");
    terminal.backend().to_string()
}

#[test]
fn a_real_record_is_shown_and_reported() {
    let view = own_view();
    let shown = screen(&view, &mut State::default(), 80, 24);
    for text in [
        "✗ blocked  The loop was blocked for 300 ms",
        "pool     The thread pool is not in use.",
        "alive    The loop stays alive for 1 repeating timer (every 500 ms).",
        "headroom The loop is busy",
        "1 main",
        "[1 Loops]",
        "? help",
    ] {
        assert!(shown.contains(text), "{text} is not in:\n{shown}");
    }
    let said = report(&view);
    let stall = "timer in timers";
    for text in ["bad    ✗ blocked", "5 Stalls", stall, "+1", "0x77"] {
        assert!(said.contains(text), "{text} is not in:\n{said}");
    }
    for section in Section::ALL {
        let mut state = State {
            section,
            ..State::default()
        };
        for (width, height) in [(20, 5), (1, 1), (300, 100), (80, 2), (2, 40)] {
            screen(&view, &mut state, width, height);
            state.is_help = !state.is_help;
            state.scroll = usize::MAX;
        }
    }
}

#[test]
fn nothing_is_drawn_without_harm() {
    let mut state = State::default();
    for (width, height) in [(80, 24), (1, 1), (2, 1)] {
        screen(&View::default(), &mut state, width, height);
    }
}

#[test]
fn a_filter_leaves_what_has_its_text() {
    let kind = |name| Kind {
        name,
        total: 3,
        ..Kind::default()
    };
    let view = View {
        handles: vec![kind("timer"), kind("tcp")],
        ..View::default()
    };
    let mut state = State {
        section: Section::Handles,
        filter: "TIM".into(),
        ..State::default()
    };
    let shown = screen(&view, &mut state, 80, 24);
    assert!(shown.contains("timer") && !shown.contains("tcp"), "{shown}");
}
