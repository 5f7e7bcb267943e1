//! Breaks the rules on purpose, one place at a time, and counts how many breaks a test notices.
//!
//! cargo-mutants says what to break. All of it is compiled into one build, behind a switch that is read when a test
//! program starts (`splice`, `switch.rs`). Each test runs once by itself and notes which mutants it reaches (`trace`);
//! then each mutant is tried with the tests that reach it, the quick ones first (`trial`).

mod arguments;
mod build;
mod list;
mod report;
mod splice;
mod trace;
mod tree;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use arguments::Arguments;
use list::Mutant;
use report::{Outcome, Report};

/// Why nothing can be said.
#[derive(Debug)]
pub struct Failure(pub String);

fn main() -> ExitCode {
    match Arguments::read(std::env::args().skip(1)).and_then(|arguments| run(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(Failure(why)) => {
            eprintln!("mutants: {why}");
            ExitCode::from(2)
        }
    }
}

/// Whether enough of each crate is caught.
fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let source = Path::new(".").canonicalize().map_err(|error| Failure(error.to_string()))?;
    let home = home()?;
    let _lock = lock(&home)?;
    let all = tree::rules(&source)?;
    let crates = arguments.choose(&all)?;
    eprintln!("mutants: {}", crates.join(", "));

    let mutants: BTreeMap<u32, Mutant> = (0..).zip(list::list(&source, &all)?).collect();
    let out = home.join("out");
    let copy = home.join("tree");
    tree::copy(&source, &copy, &mutants.values().map(|mutant| mutant.file.as_str()).collect())?;
    let settings = build::settings(&all);
    let tree = build::Tree { path: &copy, source: &source, target: &home.join("target"), settings: &settings };
    let mut known = report::Known::read(&out.join("unviable"), &source, &mutants);
    let built = tree.build(&mutants, &crates, known.unviable.clone());
    if let Ok(built) = &built {
        known.unviable.clone_from(&built.unviable);
        known.write(&mutants)?;
    }
    let built = built?;

    let mut enough = true;
    for name in &crates {
        let before = Report::read(&out, name);
        let mine = arguments.part(mutants.iter().filter(|(_, mutant)| mutant.package == *name).collect());
        let mut report = Report::default();
        let mut tried = BTreeSet::new();
        for (id, mutant) in mine {
            let last = before.outcomes.get(&mutant.name).copied();
            if built.unviable.contains(id) {
                report.outcomes.insert(mutant.name.clone(), Outcome::Unviable);
            } else if built.left.contains(id) {
                report.outcomes.insert(mutant.name.clone(), Outcome::Left);
            } else if let (true, Some(last)) = (arguments.missed, last.filter(|last| last.is_noticed())) {
                report.outcomes.insert(mutant.name.clone(), last);
            } else {
                tried.insert(*id);
            }
        }
        let programs: Vec<_> = built.programs.iter().filter(|program| program.package == *name).collect();
        let traced = trace::trace(&programs, &tried, &home)?;
        let outcomes = trial::all(&traced, &tried);
        report.outcomes.extend(outcomes.into_iter().map(|(id, outcome)| (mutants[&id].name.clone(), outcome)));
        if !arguments.is_sample() {
            report.write(&out, name)?;
        }
        println!("{}", report.told(name));
        enough &= report.is_enough(if arguments.is_sample() { report::ENOUGH_OF_A_SAMPLE } else { report::ENOUGH });
    }
    Ok(enough)
}

/// One run at a time: they share the copy and its build.
fn lock(home: &Path) -> Result<fs::File, Failure> {
    let told = |error: std::io::Error| Failure(format!("{}: {error}", home.display()));
    fs::create_dir_all(home).map_err(told)?;
    let file = fs::File::create(home.join("lock")).map_err(told)?;
    if file.try_lock().is_err() {
        eprintln!("mutants: waiting for another run to end");
        file.lock().map_err(told)?;
    }
    Ok(file)
}

/// Where the copy, its build and the results are.
fn home() -> Result<PathBuf, Failure> {
    if let Some(path) = std::env::var_os("MUTANTS_DIR") {
        return Ok(path.into());
    }
    let home = std::env::var_os("HOME").ok_or(Failure("HOME is not set; set it, or MUTANTS_DIR".into()))?;
    Ok(Path::new(&home).join(".cache/longshore/mutants"))
}
