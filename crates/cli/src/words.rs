//! Words and numbers as the views print them.
//!
//! Text from another process may have any characters, so all of it goes through [`clean`].

use blacklight_record::layout::REQUEST_KINDS;
use std::io::{self, ErrorKind, Write};
use std::time::Duration;

/// Prints text. A reader that has seen enough and is gone, as `head` is, is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Says something to the user beside the output. Nobody may be there to hear it.
pub(crate) fn tell(text: &str) {
    // Standard error has no buffer, and the program writes to it too: in several writes the line could
    // be torn apart.
    let line = format!("blacklight: {text}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Text that may be shown on a terminal: characters that would move the cursor or turn the direction of
/// writing are replaced.
pub(crate) fn clean(text: &str) -> String {
    let is_shown = |c: char| {
        let is_format = matches!(
            c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        );
        !c.is_control() && !is_format
    };
    let shown = |c: char| if is_shown(c) { c } else { '\u{fffd}' };
    text.chars().map(shown).collect()
}

/// Text of at most `width` characters; an ellipsis takes the place of what is left out at the end.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// A name of code with its place, as `crunch (app.js:12)`, of which the place is kept if there is room.
pub(crate) fn shorten_name(text: &str, width: usize) -> String {
    let place = text.rfind(" (").map_or("", |at| &text[at..]);
    let room = width.saturating_sub(place.chars().count());
    match text.strip_suffix(place) {
        Some(name) if place.ends_with(')') && room >= 12 => shorten(name, room) + place,
        _ => shorten(text, width),
    }
}

/// A span of time, to two or three digits.
pub(crate) fn duration(ns: u64) -> String {
    let (number, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        1_000_000_000..120_000_000_000 => (ns as f64 / 1e9, "s"),
        120_000_000_000..7_200_000_000_000 => (ns as f64 / 60e9, "min"),
        7_200_000_000_000..172_800_000_000_000 => (ns as f64 / 3600e9, "h"),
        _ => (ns as f64 / 86_400e9, "days"),
    };
    let text = if number < 9.95 {
        format!("{number:.1}")
    } else {
        format!("{number:.0}")
    };
    let text = text.strip_suffix(".0").unwrap_or(&text);
    format!("{text} {unit}")
}

/// A count with its noun, which is in the singular for one: `2 loops`. A noun that has no plural in `s` names it
/// after a bar: `process|processes`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let (one, many) = match noun.split_once('|') {
        Some((one, many)) => (one.to_owned(), many.to_owned()),
        // Kinds of requests, which are verbs or names of calls.
        None if REQUEST_KINDS.contains(&noun) => (noun.to_owned(), noun.to_owned()),
        None => (noun.to_owned(), format!("{noun}s")),
    };
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The command line of a process, in words; its name where it has none.
pub(crate) fn program(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| clean(&String::from_utf8_lossy(word)))
        .collect();
    if !words.is_empty() {
        return words.join(" ");
    }
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    match String::from_utf8_lossy(&name).trim_end() {
        "" => "unknown".to_owned(),
        name => clean(name),
    }
}

/// A command line whose program has no directory in front.
pub(crate) fn without_directory(line: &str) -> &str {
    let first = line.split(' ').next().unwrap_or_default();
    &line[first.rfind('/').map_or(0, |at| at + 1)..]
}

/// A part of a whole as a number of percents.
pub(crate) fn percent(part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    ((part as f64 / whole as f64) * 100.0).round() as u64
}

/// A large number, shortened so that it fits a column.
pub(crate) fn number(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{}k", number / 1_000),
        _ => format!("{}M", number / 1_000_000),
    }
}

/// The items in one sentence, with "and" before the last.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => "nothing".into(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Reads a time such as `100ms` or `1.5s`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time such as 100ms, 1s or 1.5s".to_string();
    let end = text.find(|c: char| c.is_ascii_alphabetic());
    let (digits, unit) = text.split_at(end.ok_or_else(wrong)?);
    let digits: f64 = digits.trim().parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "us" => digits / 1e6,
        "ms" => digits / 1e3,
        "s" => digits,
        "m" | "min" => digits * 60.0,
        _ => return Err(wrong()),
    };
    if !(0.0..=86_400.0).contains(&seconds) {
        return Err("expected a time of at most a day".into());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Breaks text at spaces into lines of at most `width` characters. A word that is longer is broken too.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = vec![String::new()];
    for word in text.split(' ').flat_map(|word| pieces(word, width)) {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else if let Some(line) = lines.last_mut() {
            if last > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// A word in pieces of at most `width` characters.
fn pieces(word: &str, width: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some((end, _)) = rest.char_indices().nth(width) {
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_shown_cannot_move_the_cursor() {
        assert_eq!(
            clean("a\x1b[2Jb\u{202e}c\nd é"),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d é"
        );
        assert_eq!(shorten("blacklight", 10), "blacklight");
        assert_eq!(shorten("blacklight", 6), "black…");
    }

    #[test]
    fn times_have_two_or_three_digits_and_a_unit() {
        let second = 1_000_000_000;
        let texts = [
            (0, "0 ns"),
            (1_500, "1.5 µs"),
            (12_340_000, "12 ms"),
            (3_240_000_000, "3.2 s"),
            (9_960_000_000, "10 s"),
            (5 * second, "5 s"),
            (119 * second, "119 s"),
            (180 * second, "3 min"),
            (3 * 86_400 * second, "3 days"),
        ];
        for (ns, text) in texts {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn counts_agree_with_their_nouns() {
        assert_eq!(count(1, "loop"), "1 loop");
        assert_eq!(count(0, "loop"), "0 loops");
        assert_eq!(count(2, "process|processes"), "2 processes");
    }
}
