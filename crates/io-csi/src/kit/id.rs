//! Ids that are safe as file names, made from names that are not.

use sha2::{Digest, Sha256};

const LONGEST: usize = 63;
/// Begins ids that were made from a hash. No name that looks like one is its own id, so two names never share an id.
const HASHED: &str = "id-";

/// Whether a text is fit to be a file's name, on any filesystem and in any message: small letters, digits and dashes.
pub fn is_id(text: &str) -> bool {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('-')
}

/// The id of the thing with this name: the name itself if it is fit to be a file's name, else its hash.
pub fn id_of(name: &str) -> String {
    if is_id(name) && !name.starts_with(HASHED) {
        return name.to_owned();
    }
    Sha256::digest(name.as_bytes()).iter().take(20).fold(HASHED.to_owned(), |id, byte| format!("{id}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Reliability 78.
    #[test]
    fn every_name_has_an_id_of_its_own_that_is_no_path() {
        let names =
            ["pvc-1", "PVC-1", "..", "/", "a/b", "a\0b", "-rf", "", "id-1", "ä", &"x".repeat(63), &"x".repeat(64)];
        let ids: Vec<String> = names.iter().map(|name| id_of(name)).collect();
        assert!(ids.iter().all(|id| is_id(id)), "{ids:?}");
        let different: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(different.len(), names.len());
        assert_eq!(ids[0], "pvc-1");
        // Nobody can name a volume after another one's hash.
        assert_ne!(id_of(&ids[2]), ids[2]);
    }
}
