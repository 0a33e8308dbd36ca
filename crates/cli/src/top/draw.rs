//! Draws the view on a terminal.

use super::sections::{Row, Tone, answer_rows, rows};
use super::session::View;
use super::state::{Section, State};
use crate::answers::Verdict;
use crate::words::{shorten, wrap};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Clear, Paragraph};

/// The height from which on the answers show what they rest on.
const ROOMY: u16 = 45;

/// What the keys do.
const HELP: [&str; 12] = [
    "q, Esc, Ctrl-C   quit; a program that top has started gets SIGTERM",
    "p, space         pause and go on",
    "Tab, 1 to 5      loops, pool, callbacks, handles, stalls come first",
    "up, down, PgUp, PgDn, Home   scroll",
    "l, Enter         the next loop; after the last one all loops",
    "s                sort callbacks by total, longest, count",
    "/                show only lines with a text; Esc gives it up",
    "",
    "busy: callbacks and the loop's own work, as a share of the time",
    "p50, p99: how long callbacks wait in the loop once they are ready",
    "holding: handles that are active and keep the process from exiting",
    "·  fine    !  notice    ✗  bad",
];

/// Whether colours are wanted, by <https://no-color.org>.
pub(super) fn has_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn style(tone: Tone, has_colours: bool) -> Style {
    let colour = |colour: Color| match has_colours {
        true => Style::new().fg(colour),
        false => Style::new(),
    };
    match tone {
        Tone::Plain => Style::new(),
        Tone::Quiet => Style::new().add_modifier(Modifier::DIM),
        Tone::Title => colour(Color::Cyan).add_modifier(Modifier::BOLD),
        Tone::Verdict(Verdict::Fine) => Style::new(),
        Tone::Verdict(Verdict::Notice) => colour(Color::Yellow),
        Tone::Verdict(Verdict::Bad) => colour(Color::Red).add_modifier(Modifier::BOLD),
    }
}

fn lines(rows: &[Row], has_colours: bool) -> Vec<Line<'static>> {
    let lines = rows
        .iter()
        .map(|row| Line::styled(row.text.clone(), style(row.tone, has_colours)));
    lines.collect()
}

/// Draws everything. Brings a scroll that went too far back to the last line.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, state: &mut State, has_colours: bool) {
    let area = frame.area();
    let width = usize::from(area.width);
    let answers = answer_rows(&view.answers, width, area.height >= ROOMY);
    // A third of the screen stays for the sections, however much there is to say.
    let most = (area.height.saturating_sub(2) * 2 / 3).max(1);
    let said = (answers.len() as u16).min(most);
    let [top, upper, rule, lower, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(said),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(area);
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(
        Paragraph::new(header(view, state, width)).style(reversed),
        top,
    );
    frame.render_widget(Paragraph::new(lines(&answers, has_colours)), upper);
    frame.render_widget(Paragraph::new(tabs(state, width)), rule);
    let body = body_rows(view, state, width);
    state.scroll = state
        .scroll
        .min(body.len().saturating_sub(usize::from(lower.height.min(2))));
    let shown = lines(&body[state.scroll..], has_colours);
    frame.render_widget(Paragraph::new(shown), lower);
    frame.render_widget(Paragraph::new(footer(state)).style(reversed), bottom);
    if state.is_help {
        help(frame, area);
    }
}

/// The sections, with rows that are too long broken.
fn body_rows(view: &View, state: &State, width: usize) -> Vec<Row> {
    let mut broken = Vec::new();
    for row in rows(view, state, width) {
        if row.text.chars().count() <= width || !row.text.contains(" ← ") {
            broken.push(row);
            continue;
        }
        let indent = row.text.len() - row.text.trim_start().len();
        for (at, line) in wrap(row.text.trim_start(), width.saturating_sub(12))
            .into_iter()
            .enumerate()
        {
            let indent = if at == 0 { indent } else { 12 };
            let (text, tone) = (format!("{:indent$}{line}", ""), row.tone);
            broken.push(Row { text, tone });
        }
    }
    broken
}

fn header(view: &View, state: &State, width: usize) -> String {
    let loops = match state.chosen {
        Some(id) => {
            let known = view.loops.iter().find(|(of, _)| *of == id);
            format!(
                "only {}",
                known.map_or("a loop that is closed", |(_, title)| title)
            )
        }
        None if view.loops.len() == 1 => "1 loop".into(),
        None => format!("{} loops", view.loops.len()),
    };
    let paused = if state.is_paused { "PAUSED, " } else { "" };
    let right = format!("{paused}{loops} ");
    let room = width.saturating_sub(right.chars().count() + 1);
    let left = shorten(&format!(" blacklight top  {}", view.title), room);
    format!("{left:<room$} {right}")
}

/// The names of the sections between lines, the chosen one in brackets.
fn tabs(state: &State, width: usize) -> Line<'static> {
    let names = Section::ALL.into_iter().map(|section| {
        let (number, name) = (section as usize + 1, section.name());
        match section == state.section {
            true => format!("[{number} {name}]"),
            false => format!(" {number} {name} "),
        }
    });
    let mut text = format!("──{}", names.collect::<Vec<_>>().join("─"));
    let filter = match state.filter.is_empty() {
        true => String::new(),
        false => format!(" only “{}” ", state.filter),
    };
    text += &filter;
    let left = width.saturating_sub(text.chars().count());
    Line::styled(
        text + &"─".repeat(left),
        Style::new().add_modifier(Modifier::DIM),
    )
}

fn footer(state: &State) -> String {
    match state.is_typing {
        true => format!(
            " show only lines with: {}_   Enter keeps it, Esc gives it up",
            state.filter
        ),
        false => {
            " q quit  p pause  Tab section  ↑↓ scroll  l loop  s sort  / filter  ? help".into()
        }
    }
}

fn help(frame: &mut Frame<'_>, area: Rect) {
    let width = area.width.min(74);
    let height = area.height.min(HELP.len() as u16 + 2);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, place);
    let block = ratatui::widgets::Block::bordered().title(" keys and words ");
    let lines: Vec<Line<'_>> = HELP.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines).block(block), place);
}
