//! How many rounds a benchmark takes: as many as it was told, or fewer where the result is clear.

use serde::Serialize;

/// With fewer rounds a spread says nothing.
pub(crate) const ENOUGH: usize = 3;

/// So few will do where ours is better by far in each of them.
const FEWEST: usize = 2;

/// The ratio from which on ours is better by far.
const BY_FAR: f64 = 2.0;

#[derive(Clone, Copy, Serialize)]
pub(crate) struct Rounds {
    pub(crate) most: usize,
    /// Whether a benchmark stops when its result is clear.
    pub(crate) until_clear: bool,
}

impl Rounds {
    /// How many a benchmark takes at least.
    pub(crate) fn fewest(self) -> usize {
        if self.until_clear {
            FEWEST.min(self.most)
        } else {
            self.most
        }
    }

    /// Whether a benchmark needs one more; `rows` has the ratios of its rounds so far, row by row.
    pub(crate) fn need_another(self, rows: &[Vec<f64>]) -> bool {
        let done = rows.first().map_or(self.most, Vec::len);
        let all_from = |least: f64| rows.iter().flatten().all(|ratio| *ratio >= least);
        let clear = done >= FEWEST && all_from(BY_FAR) || done >= ENOUGH && all_from(1.0);
        done < self.most && !(self.until_clear && clear)
    }
}

/// So many rounds, in words.
pub(crate) fn in_words(fewest: usize, most: usize) -> String {
    match (fewest, most) {
        (1, 1) => "1 round".to_owned(),
        _ if fewest == most => format!("{most} rounds"),
        _ => format!("{fewest} to {most} rounds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNTIL_CLEAR: Rounds = Rounds {
        most: 5,
        until_clear: true,
    };

    fn need_another(rows: &[&[f64]]) -> bool {
        let rows: Vec<Vec<f64>> = rows.iter().map(|row| row.to_vec()).collect();
        UNTIL_CLEAR.need_another(&rows)
    }

    #[test]
    fn two_rounds_will_do_if_both_are_better_by_far() {
        assert!(need_another(&[&[]]));
        assert!(need_another(&[&[50.0]]));
        assert!(!need_another(&[&[2.0, 50.0]]));
        assert!(need_another(&[&[1.99, 50.0]]));
        assert!(need_another(&[&[50.0, 1.99]]));
    }

    #[test]
    fn three_rounds_will_do_if_none_is_worse() {
        assert!(!need_another(&[&[1.0, 1.2, 50.0]]));
        assert!(need_another(&[&[0.99, 1.2, 50.0]]));
        assert!(need_another(&[&[1.2, 50.0, 0.99]]));
    }

    #[test]
    fn what_was_worse_once_or_is_no_number_takes_all() {
        assert!(need_another(&[&[50.0, 0.99, 50.0, 50.0]]));
        assert!(need_another(&[&[f64::NAN, 50.0, 50.0, 50.0]]));
    }

    #[test]
    fn one_unclear_row_holds_the_others() {
        assert!(!need_another(&[&[3.0, 3.0], &[2.0, 2.0]]));
        assert!(need_another(&[&[3.0, 3.0], &[2.0, 1.5]]));
        assert!(!need_another(&[&[3.0, 3.0, 3.0], &[2.0, 1.5, 1.0]]));
        assert!(need_another(&[&[3.0, 3.0, 3.0], &[2.0, 1.5, 0.9]]));
    }

    #[test]
    fn the_most_are_never_exceeded() {
        assert!(need_another(&[&[0.5; 4]]));
        assert!(!need_another(&[&[0.5; 5]]));
        assert!(!need_another(&[]));
    }

    #[test]
    fn a_fixed_number_is_kept_however_clear_it_is() {
        let fixed = Rounds {
            until_clear: false,
            ..UNTIL_CLEAR
        };
        assert!(fixed.need_another(&[vec![50.0; 4]]));
        assert!(!fixed.need_another(&[vec![50.0; 5]]));
        assert_eq!((fixed.fewest(), UNTIL_CLEAR.fewest()), (5, 2));
    }

    #[test]
    fn words_name_both_ends_only_if_they_differ() {
        assert_eq!(in_words(1, 1), "1 round");
        assert_eq!(in_words(3, 3), "3 rounds");
        assert_eq!(in_words(2, 7), "2 to 7 rounds");
    }
}
