//! The two encodings an API server makes itself: base64 for secrets, and the tail of a generated name.

use alloc::string::String;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// No vowels, so that no words come out.
const NAME: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Standard base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().enumerate().fold(0_u32, |word, (at, byte)| word | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            if at <= chunk.len() {
                text.push(char::from(BASE64[(word >> (18 - 6 * at)) as usize & 63]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// Standard base64 with padding, as Kubernetes wants the values of a secret.
pub(crate) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4) && text.len() - body.len() <= 2 && body.bytes().all(|byte| BASE64.contains(&byte))
}

/// Five characters out of a seed; another `round` gives others.
pub(crate) fn name_suffix(seed: &str, round: u8) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in seed.bytes().chain([round]) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    (0..5).map(|at| char::from(NAME[(hash >> (8 + 10 * at)) as usize % NAME.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_agrees_with_rfc_4648() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
            assert!(is_base64(coded));
        }
        for bad in ["Zg", "Zg=", "Z===", "Zm9v!aaa", "not base64"] {
            assert!(!is_base64(bad), "{bad}");
        }
    }

    #[test]
    fn suffixes_differ_by_seed_and_round() {
        assert_eq!(name_suffix("a", 0), name_suffix("a", 0));
        assert_ne!(name_suffix("a", 0), name_suffix("b", 0));
        assert_ne!(name_suffix("a", 0), name_suffix("a", 1));
        assert_eq!(name_suffix("a", 0).len(), 5);
    }
}
