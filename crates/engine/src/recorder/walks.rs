//! When the recorder walks over the handles of its loop.
//!
//! A walk takes time in proportion to the handles, so walks may take a five-hundredth of the time for
//! which the loop's thread is busy. What one takes beyond that is a debt, and no other begins before
//! it is paid. So the table of a loop with many handles gets old, whether it has much to do or
//! little, and so may that of a loop which then sleeps: a reader that wants it asks for a walk.
//! Walks on request have an account of their own, which earns while the loop sleeps too and may run
//! up a debt, but not without end: a reader that asks all the time gets a hundredth of it.

/// The part of a loop's busy time that walks of its own accord may take.
const OWN_SHARE: u64 = 500;
/// The part of a loop's time that walks on request may take.
const ASKED_SHARE: u64 = 100;
/// The most time that walks may have saved up.
const MAX_CREDIT_NS: i64 = 5_000_000;
/// How deep in debt walks may be while a reader's requests are still granted.
const MAX_DEBT_NS: i64 = 50_000_000;
/// The most that one walk counts for: one that took longer was held up by the system.
const MAX_COST_NS: i64 = 50_000_000;
/// How old the table of handles may be while the loop does not sleep.
const MAX_AGE_NS: u64 = 200_000_000;

/// The time that walks may still take. If it is negative, they have taken too much.
#[derive(Debug)]
struct Credit {
    /// The part of the time for which credit is given.
    share: u64,
    left_ns: i64,
    /// The time up to which credit has been given.
    given_ns: u64,
}

impl Credit {
    fn new(share: u64, now_ns: u64) -> Credit {
        Credit {
            share,
            left_ns: MAX_CREDIT_NS,
            given_ns: now_ns,
        }
    }

    /// Gives credit for the time since the last time.
    fn give(&mut self, now_ns: u64) -> i64 {
        let earned_ns = now_ns.saturating_sub(self.given_ns) / self.share;
        // What is too little to count goes on.
        self.given_ns += earned_ns * self.share;
        let earned_ns = i64::try_from(earned_ns).unwrap_or(MAX_CREDIT_NS);
        self.left_ns = (self.left_ns.saturating_add(earned_ns)).min(MAX_CREDIT_NS);
        self.left_ns
    }
}

/// What walks have taken, and what has been asked for.
#[derive(Debug)]
pub(super) struct Walks {
    /// For walks of the loop's own accord, by the time for which its thread is busy.
    own: Credit,
    /// For walks that readers ask for, by the clock.
    asked: Credit,
    /// Whether the walk that begins was asked for.
    is_asked: bool,
    /// When the last walk was, and in which turn.
    walked_ns: u64,
    walked_turn: u64,
    /// The last request of a reader that was considered.
    considered: u32,
}

impl Walks {
    pub(super) fn new(now_ns: u64, asked: u32) -> Walks {
        Walks {
            own: Credit::new(OWN_SHARE, 0),
            asked: Credit::new(ASKED_SHARE, now_ns),
            is_asked: false,
            walked_ns: 0,
            walked_turn: 0,
            considered: asked,
        }
    }

    /// Whether a reader has asked for a walk. `asked` is the number of its request.
    pub(super) fn is_asked(&self, asked: u32) -> bool {
        self.considered != asked
    }

    /// Whether to walk now: on request, before the loop sleeps, and where the last walk was long
    /// ago, but once in a turn. The thread has been busy for `busy_ns` since the loop was recorded
    /// first.
    pub(super) fn may_walk(
        &mut self,
        now_ns: u64,
        busy_ns: u64,
        turn: u64,
        may_sleep: bool,
        asked: u32,
    ) -> bool {
        let is_asked = std::mem::replace(&mut self.considered, asked) != asked;
        let is_old = now_ns.saturating_sub(self.walked_ns) >= MAX_AGE_NS;
        if turn == self.walked_turn || !(is_asked || may_sleep || is_old) {
            return false;
        }
        self.is_asked = is_asked;
        match is_asked {
            true => self.asked.give(now_ns) > -MAX_DEBT_NS,
            false => self.own.give(busy_ns) > 0,
        }
    }

    /// Counts a walk.
    pub(super) fn walked(&mut self, from_ns: u64, to_ns: u64, turn: u64) {
        let took_ns = i64::try_from(to_ns.saturating_sub(from_ns)).unwrap_or(MAX_COST_NS);
        let credit = match self.is_asked {
            true => &mut self.asked,
            false => &mut self.own,
        };
        credit.left_ns -= took_ns.min(MAX_COST_NS);
        self.walked_ns = to_ns;
        self.walked_turn = turn;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks of this length, in turns of that length, for so many turns: how many walks there were,
    /// and the time.
    fn walk(walks: &mut Walks, walk_ns: u64, turn_ns: u64, turns: u64, asks: bool) -> (u64, u64) {
        let (mut now_ns, mut count) = (walks.asked.given_ns, 0);
        let begun_ns = now_ns;
        for turn in 10..10 + turns {
            now_ns += turn_ns;
            let busy_ns = now_ns - begun_ns;
            let asked = if asks { turn as u32 } else { 7 };
            if walks.may_walk(now_ns, busy_ns, turn, true, asked) {
                walks.walked(now_ns, now_ns + walk_ns, turn);
                now_ns += walk_ns;
                count += 1;
            }
        }
        (count, now_ns - begun_ns)
    }

    #[test]
    fn walks_take_their_share_of_the_time() {
        for (walk_ns, turn_ns) in [
            (25_000, 100_000),
            (1_000_000, 100_000),
            (4_900_000, 150),
            (40_000_000, 1_000_000),
        ] {
            let mut walks = Walks::new(1_000, 7);
            let (count, took_ns) = walk(&mut walks, walk_ns, turn_ns, 200_000, false);
            let allowed_ns = MAX_CREDIT_NS as u64 + took_ns / OWN_SHARE + walk_ns;
            assert!(
                count * walk_ns <= allowed_ns,
                "{count} walks of {walk_ns} ns"
            );
            assert!(
                (count + 1) * walk_ns >= took_ns / OWN_SHARE - turn_ns,
                "{count}"
            );
        }
        // A loop that has time to spare walks in each turn.
        let mut walks = Walks::new(1_000, 7);
        assert_eq!(walk(&mut walks, 1_900, 1_000_000, 1_000, false).0, 1_000);
    }

    #[test]
    fn requests_are_granted_in_debt_but_not_all_of_them() {
        let mut walks = Walks::new(0, 0);
        walks.walked(0, 45_000_000, 1);
        assert!(!walks.is_asked(0) && walks.is_asked(1));
        assert!(!walks.may_walk(1, 1, 2, true, 0), "in debt");
        assert!(
            !walks.may_walk(1, 1, 1, true, 1),
            "the table is that of this turn"
        );
        assert!(!walks.is_asked(1));
        assert!(walks.may_walk(1, 1, 2, true, 2), "asked for");
        walks.walked(0, 45_000_000, 2);
        assert!(!walks.may_walk(1, 1, 3, true, 2), "the same request");
        assert!(
            walks.may_walk(1, 1, 3, true, 3),
            "in debt, but not too deep"
        );
        let (count, took_ns) = walk(&mut walks, 1_000_000, 100_000, 100_000, true);
        let debts_ns = (MAX_CREDIT_NS + MAX_DEBT_NS) as u64;
        assert!(count * 1_000_000 <= debts_ns + took_ns / ASKED_SHARE + 1_000_000);
    }

    #[test]
    fn a_walk_that_the_system_has_held_up_does_not_count_in_full() {
        let mut walks = Walks::new(0, 0);
        walks.walked(0, 3_600_000_000_000, 1);
        let now_ns = 3_600_000_000_000;
        let later_ns = now_ns + OWN_SHARE * MAX_COST_NS as u64;
        assert!(walks.may_walk(later_ns, later_ns, 2, true, 0));
    }

    #[test]
    fn a_loop_that_does_not_sleep_walks_now_and_then() {
        let mut walks = Walks::new(0, 0);
        let may_walk =
            |walks: &mut Walks, now_ns, turn| walks.may_walk(now_ns, now_ns, turn, false, 0);
        assert!(may_walk(&mut walks, MAX_AGE_NS, 1));
        walks.walked(MAX_AGE_NS, MAX_AGE_NS + 5, 1);
        assert!(!may_walk(&mut walks, 2 * MAX_AGE_NS, 2));
        assert!(may_walk(&mut walks, 2 * MAX_AGE_NS + 5, 2));
    }

    #[test]
    fn walks_of_a_loop_that_mostly_sleeps_take_their_share_of_what_it_does() {
        let mut walks = Walks::new(0, 7);
        let (mut now_ns, mut busy_ns, mut spent_ns) = (0, 0, 0);
        for turn in 1..=1_000_000 {
            now_ns += 1_000_000;
            busy_ns += 10_000;
            if walks.may_walk(now_ns, busy_ns, turn, true, 7) {
                walks.walked(now_ns, now_ns + 9_000, turn);
                (now_ns, busy_ns) = (now_ns + 9_000, busy_ns + 9_000);
                spent_ns += 9_000;
            }
        }
        let allowed_ns = busy_ns / OWN_SHARE + MAX_CREDIT_NS as u64 + 9_000;
        assert!(spent_ns <= allowed_ns, "{spent_ns} of {busy_ns}");
        // A reader that asks gets what it asks for, long after the loop has used up its own.
        assert!(walks.may_walk(now_ns, busy_ns, 1_000_001, true, 8));
    }
}
