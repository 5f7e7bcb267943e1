//! Numbered items of a reference: each is named by a test, or by a sentence that says how things are.

use std::collections::BTreeSet;

use super::SourceFile;

/// The kubelet's items, from the first to the last.
pub const KUBELET: std::ops::RangeInclusive<u32> = 1..=106;

/// The numbers that a text names, as `KL-7` or, in the name of a test, as `kl_7`.
pub fn named(text: &str) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for prefix in ["KL-", "kl_"] {
        for (at, _) in text.match_indices(prefix) {
            let within_a_word = text[..at].ends_with(|letter: char| letter.is_ascii_alphanumeric());
            let digits: String = text[at + prefix.len()..].chars().take_while(char::is_ascii_digit).collect();
            if let (false, Ok(number)) = (within_a_word, digits.parse()) {
                found.insert(number);
            }
        }
    }
    found
}

/// The part of a source file that is about tests: all of it, or what is behind `#[cfg(test)]`.
pub fn of_tests<'a>(source: SourceFile<'a>) -> &'a str {
    match source.is_product() {
        true => source.text.split_once("#[cfg(test)]").map_or("", |(_, tests)| tests),
        false => source.text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_comments_and_in_names() {
        assert_eq!(named("// KL-7, KL-12: so.\nfn kl_99_it_is_swept() {}"), [7, 12, 99].into());
        assert_eq!(named("KL-, SKL-3, KL-x"), BTreeSet::new());
    }

    #[test]
    fn code_that_runs_shows_nothing() {
        let text = "// KL-1\nfn a() {}\n#[cfg(test)]\nmod tests { /* KL-2 */ }";
        assert_eq!(named(of_tests(SourceFile { path: "crates/a/src/lib.rs", text })), [2].into());
        assert_eq!(named(of_tests(SourceFile { path: "crates/a/src/tests/b.rs", text })), [1, 2].into());
        let text = "// KL-3\nfn a() {}";
        assert_eq!(named(of_tests(SourceFile { path: "crates/a/src/lib.rs", text })), BTreeSet::new());
    }
}
