//! Numbered items of a reference: each is named by a test, or by a sentence that says how things are.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::SourceFile;

/// Items that are numbered in one row.
pub struct Items {
    /// How they are called, `KL` of `KL-7`.
    pub prefix: &'static str,
    /// From the first to the last.
    pub numbers: RangeInclusive<u32>,
    /// The documents that tell of them.
    pub documents: &'static [&'static str],
    /// Those that no test can show, and a document tells of: more of them is a step back.
    pub told_alone: &'static [u32],
}

/// Kubelet, binding and protection, attaching, growing, scheduling, objects and the rights to them; of the designs:
/// what a driver is told of pods, drivers that attach nothing, the words and shapes of CSI, migration.
pub const ALL: [Items; 10] = [
    Items { prefix: "KL", numbers: 1..=106, documents: &["docs/node.md"], told_alone: &[4] },
    Items { prefix: "PV", numbers: 1..=61, documents: &["docs/controllers/binding.md"], told_alone: &[34, 41] },
    Items { prefix: "AD", numbers: 1..=51, documents: &["docs/controllers/attachdetach.md"], told_alone: &[35] },
    Items { prefix: "EX", numbers: 1..=21, documents: &["docs/controllers/growing.md"], told_alone: &[] },
    Items { prefix: "SC", numbers: 1..=21, documents: &["docs/controllers/scheduling.md"], told_alone: &[20] },
    Items { prefix: "API", numbers: 1..=13, documents: &["docs/node.md"], told_alone: &[11] },
    Items { prefix: "S1", numbers: 1..=15, documents: &["docs/node.md"], told_alone: &[7] },
    Items { prefix: "S2", numbers: 1..=14, documents: &["docs/controllers/attachdetach.md"], told_alone: &[] },
    Items { prefix: "S3", numbers: 1..=9, documents: &["docs/glossary.md"], told_alone: &[1] },
    Items { prefix: "S4", numbers: 1..=50, documents: &["docs/migration.md"], told_alone: &[4, 7] },
];

impl Items {
    /// The numbers that a text names, as `KL-7` or, in the name of a test, as `kl_7`.
    pub fn named(&self, text: &str) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        for prefix in [format!("{}-", self.prefix), format!("{}_", self.prefix.to_lowercase())] {
            for (at, _) in text.match_indices(&prefix) {
                let within_a_word = text[..at].ends_with(|letter: char| letter.is_ascii_alphanumeric());
                let digits: String = text[at + prefix.len()..].chars().take_while(char::is_ascii_digit).collect();
                if let (false, Ok(number)) = (within_a_word, digits.parse()) {
                    found.insert(number);
                }
            }
        }
        found
    }

    /// What is wrong, given the numbers that tests name and those that the documents name.
    pub fn complaints(&self, tested: &BTreeSet<u32>, told: &BTreeSet<u32>) -> Vec<String> {
        let (prefix, documents) = (self.prefix, self.documents.join(", "));
        let mut complaints = Vec::new();
        for number in self.numbers.clone() {
            let alone = self.told_alone.contains(&number);
            match (tested.contains(&number), told.contains(&number)) {
                (true, _) if alone => {
                    complaints
                        .push(format!("a test names {prefix}-{number}: take it off the list of what is told alone"));
                }
                (true, _) => {}
                (false, true) if alone => {}
                (false, true) => {
                    complaints.push(format!("no test names {prefix}-{number}; {documents} alone tells of it"))
                }
                (false, false) => {
                    complaints
                        .push(format!("{prefix}-{number} is named by no test, and by no sentence of {documents}"));
                }
            }
        }
        complaints
    }
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

    const SOME: Items = Items { prefix: "KL", numbers: 1..=4, documents: &["a.md"], told_alone: &[3] };

    #[test]
    fn numbers_are_found_in_comments_and_in_names() {
        assert_eq!(SOME.named("// KL-7, KL-12: so.\nfn kl_99_it_is_swept() {}"), [7, 12, 99].into());
        assert_eq!(SOME.named("KL-, SKL-3, KL-x, PV-3"), BTreeSet::new());
    }

    #[test]
    fn code_that_runs_shows_nothing() {
        let text = "// KL-1\nfn a() {}\n#[cfg(test)]\nmod tests { /* KL-2 */ }";
        assert_eq!(SOME.named(of_tests(SourceFile { path: "crates/a/src/lib.rs", text })), [2].into());
        assert_eq!(SOME.named(of_tests(SourceFile { path: "crates/a/src/tests/b.rs", text })), [1, 2].into());
        let text = "// KL-3\nfn a() {}";
        assert_eq!(SOME.named(of_tests(SourceFile { path: "crates/a/src/lib.rs", text })), BTreeSet::new());
    }

    #[test]
    fn what_nobody_shows_is_complained_of() {
        let complaints = |tested: &[u32], told: &[u32]| {
            SOME.complaints(&tested.iter().copied().collect(), &told.iter().copied().collect())
        };
        assert_eq!(complaints(&[1, 2, 4], &[3]), Vec::<String>::new());
        assert_eq!(complaints(&[2, 4], &[3]), ["KL-1 is named by no test, and by no sentence of a.md"]);
        assert_eq!(complaints(&[2, 4], &[1, 3]), ["no test names KL-1; a.md alone tells of it"]);
        assert_eq!(complaints(&[1, 2, 4], &[]), ["KL-3 is named by no test, and by no sentence of a.md"]);
        let listed = "a test names KL-3: take it off the list of what is told alone";
        assert_eq!(complaints(&[1, 2, 3, 4], &[3]), [listed]);
    }
}
