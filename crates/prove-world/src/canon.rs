//! States that differ only in the numbers they drew are one state.
//!
//! Merging is sound only if merged states behave the same, so each number that is not hashed as it is has its reason:
//!
//! - *Resource versions and uids* are drawn from counters, so two orders of the same independent steps leave different
//!   numbers behind. Rules only ever ask whether two such numbers are equal, and of versions of one kind which is newer.
//!   So a number is replaced by its rank among all numbers of its class that the state mentions: the order survives, the
//!   history does not. The pretend world draws every such number as eight digits whose first two say the class (a
//!   kind's versions, uids, incarnations), which makes them easy to find in names, paths, patches and files.
//! - *Moments* between now and the moment of decisions are pauses that are over when anybody looks. Later ones are hashed
//!   as they are: whoever waits for one waits for longer than a world lasts.
//! - *Counts of failures* lengthen pauses, which take no time here, and say whose turn it is (`failures % pods`). They go
//!   round in a cycle that every number of pods up to three divides, and zero stays apart.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::cluster::NOW_MILLIS;
use crate::member::DECIDE;

/// The smallest number that is a token.
pub(crate) const FIRST: u64 = 10_000_000;
/// One past the largest.
pub(crate) const LAST: u64 = 99_999_999;
/// Numbers per class.
pub(crate) const CLASS: u64 = 1_000_000;
/// Counts of failures go round after so many: a multiple of every number of pods up to three.
const CYCLE: u32 = 6;
/// Numbers up to here are counts of failures; larger ones, such as file modes, are something else.
const COUNTS: u32 = 255;

/// Moments from here to there are pauses that are over.
const PAUSES_FROM: u64 = NOW_MILLIS;
const PAUSES_TO: u64 = DECIDE.0;

/// A part of a state, hashed with its tokens taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    digest: u64,
    tokens: Vec<u32>,
}

impl Piece {
    /// The piece a value makes.
    pub(crate) fn of(value: &impl Hash) -> Piece {
        let mut canon = Canon::default();
        value.hash(&mut canon);
        canon.piece()
    }
}

/// Takes tokens out of whatever is hashed into it.
#[derive(Default)]
pub(crate) struct Canon {
    rest: DefaultHasher,
    tokens: Vec<u32>,
}

impl Canon {
    /// Everything hashed so far.
    pub(crate) fn piece(self) -> Piece {
        Piece { digest: self.rest.finish(), tokens: self.tokens }
    }

    /// A piece made elsewhere.
    pub(crate) fn add(&mut self, piece: &Piece) {
        self.rest.write_u64(piece.digest);
        self.rest.write_usize(piece.tokens.len());
        self.tokens.extend_from_slice(&piece.tokens);
    }

    /// The hash of a whole state.
    pub(crate) fn state(self) -> u64 {
        let mut hash = self.rest.clone();
        let mut all = self.tokens.clone();
        all.sort_unstable();
        all.dedup();
        for token in &self.tokens {
            let class = token / CLASS as u32;
            let first = all.partition_point(|other| other / (CLASS as u32) < class);
            let rank = all.partition_point(|other| other < token) - first;
            hash.write_u32(class);
            hash.write_usize(rank);
        }
        hash.finish()
    }

    fn token(&mut self, value: u64) {
        self.rest.write_u8(b'#');
        self.tokens.push(value as u32);
    }
}

/// Eight digits that begin here, with nothing around them that could make them part of a hexadecimal hash.
fn token_at(bytes: &[u8], at: usize) -> Option<u64> {
    let run = bytes.get(at..at + 8)?;
    let clear = |byte: Option<&u8>| byte.is_none_or(|b| !b.is_ascii_hexdigit());
    if !run.iter().all(u8::is_ascii_digit) || run[0] == b'0' || !clear(bytes.get(at + 8)) {
        return None;
    }
    if at > 0 && !clear(bytes.get(at - 1)) {
        return None;
    }
    Some(run.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
}

impl Hasher for Canon {
    fn finish(&self) -> u64 {
        self.rest.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut from = 0;
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at].is_ascii_digit().then(|| token_at(bytes, at)).flatten() {
                Some(value) => {
                    self.rest.write(&bytes[from..at]);
                    self.token(value);
                    at += 8;
                    from = at;
                }
                None => at += 1,
            }
        }
        self.rest.write(&bytes[from..]);
    }

    /// The only small numbers of this type that grow without end are failures in a row.
    fn write_u32(&mut self, value: u32) {
        self.rest.write_u32(if (1..=COUNTS).contains(&value) { (value - 1) % CYCLE + 1 } else { value });
    }

    fn write_u64(&mut self, value: u64) {
        match value {
            FIRST..=LAST => self.token(value),
            PAUSES_FROM..=PAUSES_TO => self.rest.write_u8(b'@'),
            _ => self.rest.write_u64(value),
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.rest.write_u8(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.rest.write_usize(value);
    }

    fn write_isize(&mut self, value: isize) {
        self.rest.write_isize(value);
    }

    fn write_i64(&mut self, value: i64) {
        self.rest.write_i64(value);
    }

    fn write_i32(&mut self, value: i32) {
        self.rest.write_i32(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(parts: &[&str]) -> u64 {
        let mut canon = Canon::default();
        for part in parts {
            part.hash(&mut canon);
        }
        canon.state()
    }

    #[test]
    fn numbers_count_by_rank_within_their_class() {
        assert_eq!(state(&["pod 90000001", "at 10000007"]), state(&["pod 90000044", "at 10000009"]));
        assert_eq!(state(&["10000001", "10000002"]), state(&["10000005", "10000009"]));
    }

    #[test]
    fn order_and_equality_survive() {
        assert_ne!(state(&["10000001", "10000002"]), state(&["10000002", "10000001"]));
        assert_ne!(state(&["10000001", "10000001"]), state(&["10000001", "10000002"]));
        assert_ne!(state(&["10000001"]), state(&["11000001"]));
    }

    fn number(value: u32) -> u64 {
        let mut canon = Canon::default();
        value.hash(&mut canon);
        canon.state()
    }

    #[test]
    fn failures_go_round_and_zero_stays_apart() {
        for pods in 1..=3 {
            for failures in 1..=CYCLE {
                assert_eq!(failures % pods, (failures + CYCLE) % pods);
            }
        }
        assert_eq!(number(1), number(1 + CYCLE));
        let all: std::collections::BTreeSet<u64> = (0..=CYCLE).map(number).collect();
        assert_eq!(all.len(), CYCLE as usize + 1);
        assert_ne!(number(493), number(493 - CYCLE), "a file mode is no count of failures");
    }

    #[test]
    fn pauses_that_are_over_are_alike_and_longer_ones_are_not() {
        let moment = |value: u64| {
            let mut canon = Canon::default();
            value.hash(&mut canon);
            canon.state()
        };
        assert_eq!(moment(NOW_MILLIS + 100), moment(NOW_MILLIS + 200));
        assert_ne!(moment(NOW_MILLIS + 100), moment(DECIDE.0 + 1));
        assert_ne!(moment(DECIDE.0 + 1), moment(DECIDE.0 + 2));
    }

    #[test]
    fn digits_within_a_hash_or_a_size_are_no_tokens() {
        assert_ne!(state(&["a90000001f"]), state(&["a90000002f"]));
        assert_ne!(state(&["1073741824"]), state(&["2147483648"]));
    }
}
