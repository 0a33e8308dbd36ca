//! The arithmetic of every comparison: medians, spreads, means, and numbers as people read them.

use serde::Serialize;

/// The middle value; the mean of the two in the middle if their number is even.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The median distance from the median, which a single outlier does not move.
pub(crate) fn spread(values: &[f64]) -> f64 {
    let middle = median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&distances)
}

/// The mean in which twice and half cancel out; `None` without values.
pub(crate) fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    Some((logarithms / values.len() as f64).exp())
}

/// The smallest difference of ratios that [`Ratio::in_words`] shows.
const RESOLUTION: f64 = 0.01;

/// How many times as good the judged subject is as another one; above 1 it is better.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    /// The ratio of the medians, or a mean of such ratios.
    pub(crate) value: f64,
    /// The spread of the ratios of the single rounds.
    pub(crate) spread: f64,
    /// The ratio of each round by itself.
    pub(crate) rounds: Vec<f64>,
}

impl Ratio {
    pub(crate) fn new(value: f64, rounds: Vec<f64>) -> Ratio {
        Ratio {
            value,
            spread: spread(&rounds),
            rounds,
        }
    }

    /// The geometric mean of ratios that rest on the same rounds; round by round for the spread.
    pub(crate) fn mean(ratios: &[Ratio]) -> Option<Ratio> {
        let values: Vec<f64> = ratios.iter().map(|ratio| ratio.value).collect();
        let rounds = ratios.first()?.rounds.len();
        let of_round = |round: usize| {
            let values: Vec<f64> = ratios.iter().map(|ratio| ratio.rounds[round]).collect();
            geometric_mean(&values)
        };
        let rounds: Option<Vec<f64>> = (0..rounds).map(of_round).collect();
        Some(Ratio::new(geometric_mean(&values)?, rounds?))
    }

    /// Whether the judged subject is worse by more than the rounds differ among themselves, and by
    /// more than a ratio is printed with: few rounds may agree by chance.
    pub(crate) fn is_worse(&self) -> bool {
        let printed = (self.value / RESOLUTION).round() * RESOLUTION;
        self.value + self.spread < 1.0 && printed + RESOLUTION < 1.0 - RESOLUTION / 10.0
    }

    /// The ratio with its spread.
    pub(crate) fn in_words(&self) -> String {
        format!("{:.2} ±{:.2}", self.value, self.spread)
    }

    /// The worst and the best round.
    pub(crate) fn range(&self) -> String {
        let worst = self.rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let best = self.rounds.iter().copied().fold(0.0, f64::max);
        format!("{worst:.2}–{best:.2}")
    }
}

/// The median of the values, and their spread in per cent of it.
pub(crate) fn median_and_spread(values: &[f64]) -> String {
    let middle = median(values);
    let percent = match spread(values) {
        0.0 => 0.0,
        spread => 100.0 * spread / middle,
    };
    format!("{} ±{percent:.1}%", readable(middle))
}

/// A number with as many digits as one can take in.
fn readable(value: f64) -> String {
    match value.abs() {
        size if size >= 1e8 => format!("{:.0}M", value / 1e6),
        size if size >= 1e6 => format!("{:.2}M", value / 1e6),
        size if size >= 1e4 => format!("{:.1}k", value / 1e3),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn an_outlier_does_not_move_the_spread() {
        assert_eq!(spread(&[1.0, 1.5, 0.5, 50.0, 1.0]), 0.5);
        assert_eq!(spread(&[7.0]), 0.0);
    }

    #[test]
    fn geometric_mean_balances_twice_and_half() {
        assert!((geometric_mean(&[2.0, 0.5]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }

    #[test]
    fn worse_is_what_is_below_one_by_more_than_its_spread() {
        assert!(Ratio::new(0.9, vec![0.88, 0.9, 0.92]).is_worse());
        assert!(!Ratio::new(0.9, vec![0.7, 0.9, 1.1]).is_worse());
        assert!(!Ratio::new(1.1, vec![1.1, 1.1]).is_worse());
        // Rounds that agree do not make a difference of one in the last place.
        assert!(!Ratio::new(0.985, vec![0.985; 3]).is_worse());
        assert!(!Ratio::new(0.994, vec![0.994; 3]).is_worse());
        assert!(Ratio::new(0.98, vec![0.98; 3]).is_worse());
    }

    #[test]
    fn mean_of_ratios_has_a_spread_of_its_own() {
        let up = Ratio::new(4.0, vec![2.0, 4.0, 8.0]);
        let down = Ratio::new(1.0, vec![2.0, 1.0, 0.5]);
        let mean = Ratio::mean(&[up, down]).unwrap();
        assert!((mean.value - 2.0).abs() < 1e-12);
        // What one row gains in a round the other loses, so their mean does not vary.
        assert!(mean.spread.abs() < 1e-12);
        assert_eq!(mean.range(), "2.00–2.00");
        assert_eq!(Ratio::mean(&[]), None);
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(median_and_spread(&[1.5e9]), "1500M ±0.0%");
        assert_eq!(median_and_spread(&[900e3, 1e6, 1.1e6]), "1.00M ±10.0%");
        assert_eq!(median_and_spread(&[12_345.0]), "12.3k ±0.0%");
        assert_eq!(median_and_spread(&[12.34]), "12.3 ±0.0%");
        assert_eq!(median_and_spread(&[0.0, 0.0]), "0.000 ±0.0%");
    }
}
