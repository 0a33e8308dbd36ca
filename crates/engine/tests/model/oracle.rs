//! Choices that the rules leave open.
//!
//! A kernel may report events in any order, interrupt a wait or refuse a descriptor, and
//! nobody is told directly. Where the model comes to such a point it asks an oracle, and
//! it is run again and again until the oracle has given every combination of answers. The
//! paths that disagree with what was seen are dropped; the model is wrong about the engine
//! when no path is left.

/// Answers questions, one path through them at a time.
#[derive(Default, Debug)]
pub(crate) struct Oracle {
    /// The answers of this path, each with the number of answers there are.
    path: Vec<(usize, usize)>,
    at: usize,
}

impl Oracle {
    /// One of `options` answers: on the first path always the first.
    pub(crate) fn choose(&mut self, options: usize) -> usize {
        if self.at == self.path.len() {
            self.path.push((0, options));
        }
        let (answer, of) = self.path[self.at];
        assert_eq!(of, options, "the same path leads to another question");
        self.at += 1;
        answer
    }

    /// Goes on to the next path, if there is one.
    pub(crate) fn next_path(&mut self) -> bool {
        self.at = 0;
        while let Some((answer, of)) = self.path.pop() {
            if answer + 1 < of {
                self.path.push((answer + 1, of));
                return true;
            }
        }
        false
    }
}
