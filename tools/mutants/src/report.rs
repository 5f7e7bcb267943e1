//! What became of the mutants, kept in files and told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::list::Mutant;
use crate::tree::write;

/// Of what can be built, this share must be noticed, in percent.
pub const ENOUGH: usize = 95;
/// Of a hundred that were drawn some may be bad luck; what a change made weak shows in more than that.
pub const ENOUGH_OF_A_SAMPLE: usize = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// A test of the crate fails.
    Caught,
    /// A test of the crate does not end.
    Endless,
    /// Tests reach it and pass.
    Missed,
    /// No test reaches it.
    Unreached,
    /// It does not compile.
    Unviable,
    /// It cannot be in a build with others: the compiler itself runs the code.
    Left,
}

impl Outcome {
    const WORDS: [(Outcome, &str); 6] = [
        (Outcome::Caught, "caught"),
        (Outcome::Endless, "never-ends"),
        (Outcome::Missed, "missed"),
        (Outcome::Unreached, "unreached"),
        (Outcome::Unviable, "does-not-build"),
        (Outcome::Left, "not-tried"),
    ];

    pub fn is_noticed(self) -> bool {
        matches!(self, Outcome::Caught | Outcome::Endless)
    }
}

/// What became of the mutants of a crate, by name.
#[derive(Default)]
pub struct Report {
    pub outcomes: BTreeMap<String, Outcome>,
}

impl Report {
    /// What the last run wrote; nothing if there was none.
    pub fn read(folder: &Path, name: &str) -> Report {
        let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
        let outcomes = text.lines().filter_map(|line| {
            let (word, mutant) = line.split_once(' ')?;
            let (outcome, _) = Outcome::WORDS.into_iter().find(|(_, it)| *it == word)?;
            Some((mutant.to_owned(), outcome))
        });
        Report { outcomes: outcomes.collect() }
    }

    /// One file with every mutant, and one with those that go unnoticed, as cargo-mutants names them.
    pub fn write(&self, folder: &Path, name: &str) -> Result<(), Failure> {
        let (mut all, mut missed) = (String::new(), String::new());
        for (mutant, outcome) in &self.outcomes {
            let word = Outcome::WORDS.into_iter().find(|(it, _)| it == outcome).map_or("", |(_, word)| word);
            let _ = writeln!(all, "{word} {mutant}");
            if matches!(outcome, Outcome::Missed | Outcome::Unreached) {
                let _ = writeln!(missed, "{mutant}");
            }
        }
        let missed = write(&folder.join(format!("{name}.missed")), missed.as_bytes());
        let all = write(&folder.join(name), all.as_bytes());
        all.and(missed).map_err(|error| Failure(format!("cannot write to {}: {error}", folder.display())))
    }

    fn count(&self, outcomes: &[Outcome]) -> usize {
        self.outcomes.values().filter(|outcome| outcomes.contains(outcome)).count()
    }

    fn share(&self) -> (usize, usize) {
        let noticed = self.count(&[Outcome::Caught, Outcome::Endless]);
        (noticed, noticed + self.count(&[Outcome::Missed, Outcome::Unreached]))
    }

    /// Whether at least this share is noticed, in percent.
    pub fn is_enough(&self, least: usize) -> bool {
        let (noticed, viable) = self.share();
        noticed * 100 >= viable * least
    }

    pub fn told(&self, name: &str) -> String {
        let (noticed, viable) = self.share();
        let percent = if viable == 0 { 100.0 } else { noticed as f64 * 100.0 / viable as f64 };
        let mut text = format!(
            "{name}: {} mutants, {viable} build and were tried, {noticed} noticed = {percent:.1} %: {} fail a test, {} never end",
            self.outcomes.len(),
            self.count(&[Outcome::Caught]),
            self.count(&[Outcome::Endless]),
        );
        for (outcome, words) in [
            (Outcome::Missed, "missed"),
            (Outcome::Unreached, "reached by no test"),
            (Outcome::Unviable, "do not build"),
            (Outcome::Left, "not tried"),
        ] {
            match self.count(&[outcome]) {
                0 => {}
                count => drop(write!(text, "; {count} {words}")),
            }
        }
        for (mutant, outcome) in &self.outcomes {
            match outcome {
                Outcome::Missed => drop(write!(text, "\n  missed: {mutant}")),
                Outcome::Unreached => drop(write!(text, "\n  not reached: {mutant}")),
                _ => {}
            }
        }
        text
    }
}

/// What did not compile in earlier runs, so that it need not be found out again while its file stays the same.
pub struct Known {
    pub unviable: BTreeSet<u32>,
    path: PathBuf,
    files: BTreeMap<String, u64>,
}

impl Known {
    pub fn read(path: &Path, source: &Path, mutants: &BTreeMap<u32, Mutant>) -> Known {
        let mut files = BTreeMap::new();
        for mutant in mutants.values() {
            files.entry(mutant.file.clone()).or_insert_with(|| {
                let mut hasher = DefaultHasher::new();
                fs::read(source.join(&mutant.file)).unwrap_or_default().hash(&mut hasher);
                hasher.finish()
            });
        }
        let text = fs::read_to_string(path).unwrap_or_default();
        let known: BTreeSet<&str> = text.lines().collect();
        let is_known = |mutant: &Mutant| known.contains(line(&files, mutant).as_str());
        let unviable = mutants.iter().filter(|(_, mutant)| is_known(mutant)).map(|(id, _)| *id).collect();
        Known { unviable, path: path.to_owned(), files }
    }

    pub fn write(&self, mutants: &BTreeMap<u32, Mutant>) -> Result<(), Failure> {
        let lines = self.unviable.iter().map(|id| line(&self.files, &mutants[id]) + "\n");
        let told = |error| Failure(format!("{}: {error}", self.path.display()));
        write(&self.path, lines.collect::<String>().as_bytes()).map_err(told)
    }
}

fn line(files: &BTreeMap<String, u64>, mutant: &Mutant) -> String {
    format!("{:016x} {}", files[&mutant.file], mutant.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcomes: &[(&str, Outcome)]) -> Report {
        Report { outcomes: outcomes.iter().map(|(name, outcome)| ((*name).to_owned(), *outcome)).collect() }
    }

    #[test]
    fn what_does_not_build_and_what_is_not_tried_counts_neither_way() {
        let told = report(&[
            ("a", Outcome::Caught),
            ("b", Outcome::Endless),
            ("c", Outcome::Missed),
            ("d", Outcome::Unreached),
            ("e", Outcome::Unviable),
            ("f", Outcome::Left),
        ])
        .told("rules-x");
        assert_eq!(
            told,
            "rules-x: 6 mutants, 4 build and were tried, 2 noticed = 50.0 %: 1 fail a test, 1 never end; 1 missed; \
             1 reached by no test; 1 do not build; 1 not tried\n  missed: c\n  not reached: d"
        );
    }

    #[test]
    fn nineteen_of_twenty_are_enough_and_eighteen_are_not() {
        let of = |noticed: usize| {
            let names: Vec<String> = (0..20).map(|number| format!("{number:02}")).collect();
            let outcome = |at| if at < noticed { Outcome::Caught } else { Outcome::Missed };
            report(&names.iter().enumerate().map(|(at, name)| (name.as_str(), outcome(at))).collect::<Vec<_>>())
        };
        assert!(of(19).is_enough(ENOUGH));
        assert!(!of(18).is_enough(ENOUGH));
    }
}
