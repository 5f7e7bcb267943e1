//! Builds the tests with every mutant in them, leaving out those that do not compile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Failure;
use crate::list::Mutant;
use crate::splice::{SWITCH, splice};
use crate::tree::write;

/// A test program and the folder it runs in.
#[derive(Clone, Debug)]
pub struct Program {
    pub package: String,
    pub path: PathBuf,
    pub folder: PathBuf,
}

/// What came of a build.
pub struct Built {
    pub programs: Vec<Program>,
    /// Mutants that do not compile.
    pub unviable: BTreeSet<u32>,
    /// Mutants that cannot be in one build with others.
    pub left: BTreeSet<u32>,
}

pub struct Tree<'a> {
    /// The copy that is built.
    pub path: &'a Path,
    /// The files as they are without mutants.
    pub source: &'a Path,
    pub target: &'a Path,
    pub settings: &'a [String],
}

/// How it is built: what is mutated compiles quickly, what the tests run on runs quickly, and nobody debugs it.
pub fn settings(crates: &[String]) -> Vec<String> {
    let mut settings = vec!["profile.dev.debug=0".to_owned(), "profile.dev.package.prove-lab.opt-level=2".to_owned()];
    settings.extend(crates.iter().map(|name| format!("profile.dev.package.{name}.opt-level=1")));
    settings.into_iter().map(|setting| format!("--config={setting}")).collect()
}

/// A file of the copy, as far as errors in it are concerned.
struct Written {
    ranges: Vec<(Range<usize>, u32)>,
    places: Vec<(Range<usize>, Vec<u32>)>,
}

/// More rounds than errors of types, of borrowing and of what depends on those ever took.
const ROUNDS: u32 = 40;

impl Tree<'_> {
    /// Builds the tests of some crates, again and again until only mutants that compile are left.
    pub fn build(
        &self,
        mutants: &BTreeMap<u32, Mutant>,
        crates: &[String],
        mut unviable: BTreeSet<u32>,
    ) -> Result<Built, Failure> {
        let mut stubborn = BTreeSet::new();
        for round in 1..=ROUNDS {
            let out = unviable.union(&stubborn).copied().collect();
            let (written, never, mut left) = self.splice(mutants, &out)?;
            unviable.extend(never);
            left.extend(&stubborn);
            let count = mutants.len() - unviable.len() - left.len();
            eprintln!("mutants: build {round}, with {count} of {} mutants", mutants.len());
            let (programs, errors) = read(&self.cargo(crates)?);
            if errors.is_empty() && !programs.is_empty() {
                return Ok(Built { programs, unviable, left });
            }
            let before = unviable.len() + stubborn.len();
            for error in &errors {
                match blamed(error, &written) {
                    Blame::Mutants(ids) => unviable.extend(ids),
                    Blame::Place(ids) => stubborn.extend(ids),
                    Blame::Nobody => {}
                }
            }
            if unviable.len() + stubborn.len() == before {
                let told: Vec<&str> = errors.iter().filter_map(|error| error["rendered"].as_str()).take(20).collect();
                return Err(Failure(format!(
                    "the tree does not compile, and no mutant is to blame:\n{}",
                    told.join("\n")
                )));
            }
        }
        Err(Failure("mutants keep failing to compile".into()))
    }

    /// Writes every file with its mutants; returns where they are, by file, those that never compile, and those left.
    #[allow(clippy::type_complexity)]
    fn splice(
        &self,
        mutants: &BTreeMap<u32, Mutant>,
        out: &BTreeSet<u32>,
    ) -> Result<(BTreeMap<String, Written>, BTreeSet<u32>, BTreeSet<u32>), Failure> {
        let mut files: BTreeMap<String, Vec<(u32, &Mutant)>> = BTreeMap::new();
        for (id, mutant) in mutants {
            files.entry(root(&mutant.package)).or_default();
            let file = files.entry(mutant.file.clone()).or_default();
            if !out.contains(id) {
                file.push((*id, mutant));
            }
        }
        let roots: BTreeSet<String> = mutants.values().map(|mutant| root(&mutant.package)).collect();
        let (mut written, mut never, mut left) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        for (file, mutants) in files {
            let told = |error: &dyn std::fmt::Display| Failure(format!("{file}: {error}"));
            let text = fs::read_to_string(self.source.join(&file)).map_err(|error| told(&error))?;
            let mut spliced = splice(&text, &mutants).map_err(|error| told(&error))?;
            if roots.contains(&file) {
                spliced.text.push_str(SWITCH);
            }
            write(&self.path.join(&file), spliced.text.as_bytes()).map_err(|error| told(&error))?;
            never.extend(spliced.unviable);
            left.extend(spliced.left);
            written.insert(file, Written { ranges: spliced.ranges, places: spliced.places });
        }
        Ok((written, never, left))
    }

    fn cargo(&self, crates: &[String]) -> Result<Vec<u8>, Failure> {
        let mut command = Command::new("cargo");
        command.args(["build", "--tests", "--keep-going", "--message-format=json", "--quiet", "--locked"]);
        command.args(self.settings);
        for name in crates {
            command.arg("--package").arg(name);
        }
        command.current_dir(self.path).env("CARGO_TARGET_DIR", self.target).env("RUSTFLAGS", "--cap-lints=allow");
        let output = command.output().map_err(|error| Failure(format!("cannot run cargo: {error}")))?;
        if output.stdout.is_empty() {
            return Err(Failure(format!("cargo build: {}", String::from_utf8_lossy(&output.stderr).trim())));
        }
        Ok(output.stdout)
    }
}

/// The file that the switch goes into.
fn root(package: &str) -> String {
    format!("crates/{package}/src/lib.rs")
}

/// The test programs and the errors that cargo tells of.
fn read(output: &[u8]) -> (Vec<Program>, Vec<Value>) {
    let (mut programs, mut errors) = (Vec::new(), Vec::new());
    for line in output.split(|byte| *byte == b'\n') {
        let Ok(message) = serde_json::from_slice::<Value>(line) else { continue };
        match message["reason"].as_str() {
            Some("compiler-message") if message["message"]["level"] == "error" => {
                errors.push(message["message"].clone());
            }
            Some("compiler-artifact") if message["profile"]["test"] == true => {
                let manifest = Path::new(message["manifest_path"].as_str().unwrap_or_default());
                let folder = manifest.parent().unwrap_or(Path::new("")).to_owned();
                let package = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if let Some(path) = message["executable"].as_str() {
                    programs.push(Program { package, path: path.into(), folder });
                }
            }
            _ => {}
        }
    }
    // "aborting due to 3 previous errors" has no place and blames nobody.
    errors.retain(|error| error["spans"].as_array().is_some_and(|spans| !spans.is_empty()));
    (programs, errors)
}

/// Whom an error is about.
#[derive(Debug, PartialEq, Eq)]
enum Blame {
    /// They do not compile.
    Mutants(BTreeSet<u32>),
    /// What the code does at this place does not compile within a question.
    Place(BTreeSet<u32>),
    Nobody,
}

/// The mutants at the main places of an error, or else at any place that it names; or else the question around it.
fn blamed(error: &Value, written: &BTreeMap<String, Written>) -> Blame {
    let mut spans = Vec::new();
    collect(error, &mut spans);
    for wanted in [true, false] {
        let mut found = BTreeSet::new();
        for (file, range, _) in spans.iter().filter(|(_, _, primary)| *primary || !wanted) {
            let ranges = written.get(*file).map_or(&[][..], |written| &written.ranges);
            found.extend(
                ranges.iter().filter(|(it, _)| it.start <= range.start && range.end <= it.end).map(|(_, id)| *id),
            );
        }
        if !found.is_empty() {
            return Blame::Mutants(found);
        }
    }
    for (file, range, _) in spans {
        let places = written.get(file).map_or(&[][..], |written| &written.places);
        if let Some((_, ids)) = places.iter().find(|(it, _)| it.start <= range.start && range.end <= it.end) {
            return Blame::Place(ids.iter().copied().collect());
        }
    }
    Blame::Nobody
}

/// The places that an error names: file, bytes, whether it is a main place. Of a macro also where it is used.
fn collect<'a>(diagnostic: &'a Value, spans: &mut Vec<(&'a str, Range<usize>, bool)>) {
    for span in diagnostic["spans"].as_array().into_iter().flatten() {
        let primary = span["is_primary"] == true;
        let mut next = span;
        while next.is_object() {
            let number = |name: &str| next[name].as_u64().unwrap_or(0) as usize;
            let file = next["file_name"].as_str().unwrap_or_default();
            spans.push((file, number("byte_start")..number("byte_end"), primary));
            next = &next["expansion"]["span"];
        }
    }
    for child in diagnostic["children"].as_array().into_iter().flatten() {
        collect(child, spans);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(start: usize, end: usize) -> Value {
        serde_json::json!({ "spans": [{ "file_name": "lib.rs", "byte_start": start, "byte_end": end, "is_primary": true }] })
    }

    #[test]
    fn an_error_blames_the_mutant_it_is_in_or_else_the_question_around_it() {
        let places = vec![(15..40, vec![8]), (5..50, vec![7, 8])];
        let lib = Written { ranges: vec![(6..12, 7), (16..22, 8)], places };
        let written = BTreeMap::from([("lib.rs".to_owned(), lib)]);
        assert_eq!(blamed(&error(7, 9), &written), Blame::Mutants([7].into()));
        assert_eq!(blamed(&error(30, 32), &written), Blame::Place([8].into()));
        assert_eq!(blamed(&error(60, 61), &written), Blame::Nobody);
    }

    #[test]
    fn an_error_in_a_macro_is_one_where_it_is_used() {
        let mut error = error(0, 3);
        error["spans"][0]["file_name"] = "/std/macros.rs".into();
        error["spans"][0]["expansion"] = serde_json::json!({
            "span": { "file_name": "lib.rs", "byte_start": 7, "byte_end": 9 }
        });
        let written = BTreeMap::from([("lib.rs".to_owned(), Written { ranges: vec![(6..12, 7)], places: Vec::new() })]);
        assert_eq!(blamed(&error, &written), Blame::Mutants([7].into()));
    }
}
