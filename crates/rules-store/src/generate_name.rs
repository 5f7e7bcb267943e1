//! The tail of a generated name.

use alloc::string::String;

/// No vowels, so that no words come out.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Five characters out of a seed; another `round` gives others.
pub(crate) fn suffix(seed: &str, round: u8) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in seed.bytes().chain([round]) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    (0..5).map(|at| char::from(ALPHABET[(hash >> (8 + 10 * at)) as usize % ALPHABET.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_differ_by_seed_and_round() {
        assert_eq!(suffix("a", 0), suffix("a", 0));
        assert_ne!(suffix("a", 0), suffix("b", 0));
        assert_ne!(suffix("a", 0), suffix("a", 1));
        assert_eq!(suffix("a", 0).len(), 5);
    }
}
