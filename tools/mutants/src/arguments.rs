//! What the user asks for.

use crate::Failure;

const USAGE: &str = "usage: mutants [--missed] [--sample COMMIT] [CRATE ...]
  CRATE            crates to try, such as rules-node; without any, all that decide
  --missed         try only what the last run missed
  --sample COMMIT  try a hundred mutants of one crate, both chosen by the commit";

/// So many mutants are a sample.
const SAMPLE: usize = 100;

#[derive(Debug, Default, PartialEq)]
pub struct Arguments {
    pub missed: bool,
    sample: Option<u32>,
    crates: Vec<String>,
}

impl Arguments {
    pub fn read(words: impl Iterator<Item = String>) -> Result<Arguments, Failure> {
        let mut arguments = Arguments::default();
        let mut words = words;
        while let Some(word) = words.next() {
            match word.as_str() {
                "--missed" => arguments.missed = true,
                "--sample" => {
                    let commit = words.next().unwrap_or_default();
                    let number = commit.get(..8).and_then(|start| u32::from_str_radix(start, 16).ok());
                    arguments.sample = Some(number.ok_or_else(|| {
                        Failure(format!("--sample wants a commit, at least its first eight digits, not {commit:?}"))
                    })?);
                }
                _ if word.starts_with('-') => return Err(Failure(format!("there is no option {word}\n{USAGE}"))),
                _ => arguments.crates.push(word),
            }
        }
        Ok(arguments)
    }

    pub fn is_sample(&self) -> bool {
        self.sample.is_some()
    }

    /// Those of a crate's mutants that are tried.
    pub fn part<T>(&self, mutants: Vec<T>) -> Vec<T> {
        let Some(number) = self.sample else { return mutants };
        let step = mutants.len().div_ceil(SAMPLE).max(1);
        mutants.into_iter().skip(number as usize % step).step_by(step).collect()
    }

    /// The crates to try, of all that decide.
    pub fn choose(&self, all: &[String]) -> Result<Vec<String>, Failure> {
        if let Some(unknown) = self.crates.iter().find(|name| !all.contains(name)) {
            return Err(Failure(format!("{unknown} is no crate with rules; there are: {}", all.join(", "))));
        }
        let chosen = if self.crates.is_empty() { all } else { &self.crates };
        Ok(match self.sample {
            Some(number) => vec![chosen[number as usize % chosen.len()].clone()],
            None => chosen.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Arguments, String> {
        Arguments::read(words.iter().map(|word| (*word).to_owned())).map_err(|Failure(why)| why)
    }

    #[test]
    fn a_commit_always_chooses_the_same_crate() {
        let all = ["rules-a", "rules-b", "rules-c"].map(String::from);
        let chosen = |commit| read(&["--sample", commit]).unwrap().choose(&all).unwrap_or_default();
        assert_eq!(chosen("00000004e58d4"), ["rules-b"]);
        assert_eq!(chosen("00000005e58d4"), ["rules-c"]);
    }

    #[test]
    fn a_sample_is_spread_over_the_crate() {
        let part = |commit: &str, all: u32| read(&["--sample", commit]).unwrap().part((0..all).collect::<Vec<_>>());
        assert_eq!(part("00000001", 90), (0..90).collect::<Vec<_>>());
        assert_eq!(part("00000001", 200), (0..100).map(|n| 2 * n + 1).collect::<Vec<_>>());
        assert_eq!(part("00000004", 201), (0..67).map(|n| 3 * n + 1).collect::<Vec<_>>());
        assert_eq!(Arguments::default().part(vec![1, 2, 3]), [1, 2, 3]);
    }

    #[test]
    fn what_is_not_known_is_told() {
        assert!(read(&["--all"]).unwrap_err().starts_with("there is no option --all\nusage"));
        assert!(read(&["--sample", "main"]).unwrap_err().starts_with("--sample wants a commit"));
        let Failure(why) = read(&["io-run"]).unwrap().choose(&["rules-a".into()]).unwrap_err();
        assert_eq!(why, "io-run is no crate with rules; there are: rules-a");
    }
}
