//! What `blacklight top --once` prints, taken apart.

use anyhow::{Context, Result, ensure};

/// The answer to one question.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// `fine`, `notice` or `bad`.
    pub(super) verdict: String,
    /// Its lines as one.
    pub(super) sentence: String,
}

impl Answer {
    /// Fails unless the answer has this verdict and all of these texts.
    pub(super) fn must_say(&self, verdict: &str, texts: &[&str]) -> Result<()> {
        let is_right =
            self.verdict == verdict && texts.iter().all(|text| self.sentence.contains(text));
        ensure!(
            is_right,
            "{verdict}, {texts:?} was expected, and the answer is {self:?}"
        );
        Ok(())
    }
}

/// The answer to the question of this name. Its further lines are indented by 18; what it rests on is by more.
pub(super) fn answer(report: &str, question: &str) -> Result<Answer> {
    let mut lines = report.lines();
    let first = lines.by_ref().find_map(|line| {
        let (verdict, rest) = line.split_once(' ')?;
        let rest = rest
            .trim_start()
            .trim_start_matches(['·', '!', '✗'])
            .trim_start();
        let said = rest.strip_prefix(question)?.strip_prefix(' ')?;
        Some((verdict.to_owned(), said.trim_start().to_owned()))
    });
    let (verdict, mut sentence) =
        first.with_context(|| format!("no answer to {question} in:\n{report}"))?;
    for line in lines {
        let indent = line.len() - line.trim_start().len();
        if indent != 18 {
            break;
        }
        sentence.push(' ');
        sentence.push_str(line.trim_start());
    }
    Ok(Answer { verdict, sentence })
}

/// The part of a report that begins with this title, up to the next one.
pub(super) fn section<'a>(report: &'a str, title: &str) -> Result<&'a str> {
    let (_, rest) = report
        .split_once(&format!("\n{title}"))
        .with_context(|| format!("no {title} in:\n{report}"))?;
    Ok(rest.split("\n\n").next().unwrap_or(rest))
}

/// Fails unless the text has all of these. A view may have broken its lines anywhere.
pub(super) fn must_have(text: &str, wanted: &[&str]) -> Result<()> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let unbroken = words.join(" ");
    for wanted in wanted {
        let found = text.contains(wanted) || unbroken.contains(wanted);
        ensure!(found, "{wanted:?} is not in:\n{text}");
    }
    Ok(())
}

/// The line of a program in `xtask/views` that has this text, as `file:line`.
pub(super) fn place(file: &str, source: &str, text: &str) -> Result<String> {
    let line = source.lines().position(|line| line.contains(text));
    let line = line.with_context(|| format!("{text:?} is not in {file}"))?;
    Ok(format!("{file}:{}", line + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "process 1 node\n\n\
        bad    ✗ blocked  The loop is blocked now, for 1 s so far: computing in crunch\n\
        \x20                 (crunch.js:5), called by a read callback.\n\
        \x20                   evidence\n\
        fine   · pool     The thread pool is not in use.\n";

    #[test]
    fn an_answer_has_all_its_lines_and_no_evidence() {
        let blocked = answer(REPORT, "blocked").unwrap();
        assert_eq!(blocked.verdict, "bad");
        assert!(
            blocked
                .sentence
                .ends_with("computing in crunch (crunch.js:5), called by a read callback.")
        );
        blocked.must_say("bad", &["crunch (crunch.js:5)"]).unwrap();
        assert!(blocked.must_say("fine", &[]).is_err());
        assert!(blocked.must_say("bad", &["grind"]).is_err());
        assert_eq!(
            answer(REPORT, "pool").unwrap().sentence,
            "The thread pool is not in use."
        );
        assert!(answer(REPORT, "time").is_err());
    }
}
