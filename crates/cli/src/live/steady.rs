//! Answers that do not flicker: a worse one is given at once, and a better one when it has held for a while.

use crate::answers::Answer;

/// How long an answer must have been better.
const HOLD_NS: u64 = 2_000_000_000;

/// One question.
struct Given {
    answer: Answer,
    /// When the answer was as bad as this last.
    at_ns: u64,
}

/// The answers as they were given last.
#[derive(Default)]
pub(super) struct Steady(Vec<Given>);

impl Steady {
    /// The answer to give in place of this one.
    pub(super) fn answer(&mut self, answer: Answer, at_ns: u64) -> Answer {
        let mut given = self.0.iter_mut();
        let Some(given) = given.find(|given| given.answer.question == answer.question) else {
            let given = answer.clone();
            self.0.push(Given {
                answer: given,
                at_ns,
            });
            return answer;
        };
        let is_better = answer.verdict < given.answer.verdict;
        if !is_better || at_ns.saturating_sub(given.at_ns) >= HOLD_NS {
            *given = Given { answer, at_ns };
        }
        given.answer.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::{Question, Verdict};

    #[test]
    fn what_is_bad_is_said_at_once_and_what_is_better_when_it_has_held() {
        let mut steady = Steady::default();
        let mut said = |verdict, at_ms: u64| {
            let answer = Answer {
                question: Question::Headroom,
                verdict,
                sentence: format!("at {at_ms}"),
                evidence: Vec::new(),
            };
            let other = Answer {
                question: Question::Pool,
                ..answer.clone()
            };
            assert_eq!(steady.answer(other.clone(), 0).question, other.question);
            steady.answer(answer, at_ms * 1_000_000).sentence
        };
        assert_eq!(said(Verdict::Fine, 0), "at 0");
        assert_eq!(said(Verdict::Bad, 500), "at 500");
        assert_eq!(said(Verdict::Fine, 1_000), "at 500");
        assert_eq!(said(Verdict::Bad, 1_500), "at 1500", "its words change");
        assert_eq!(said(Verdict::Notice, 3_000), "at 1500");
        assert_eq!(said(Verdict::Notice, 3_500), "at 3500");
        assert_eq!(said(Verdict::Fine, 5_000), "at 3500");
        assert_eq!(said(Verdict::Fine, 5_500), "at 5500");
    }
}
