//! Which test reaches which mutants, and how long it takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::Failure;
use crate::build::Program;
use crate::trial::{End, WORKERS, run};

/// One test of one program.
#[derive(Clone, Debug)]
pub struct Test<'a> {
    pub program: &'a Program,
    pub name: String,
    pub takes: Duration,
}

/// The tests, the quick ones first, and the mutants that each reaches.
pub struct Traced<'a> {
    pub tests: Vec<Test<'a>>,
    /// Places in `tests`, in their order.
    pub reach: BTreeMap<u32, Vec<usize>>,
}

/// Far longer than any test takes without a mutant.
const LIMIT: Duration = Duration::from_secs(900);

/// Runs each test by itself. A test that fails without a mutant would seem to catch every one: that is a failure.
pub fn trace<'a>(programs: &[&'a Program], mutants: &BTreeSet<u32>, home: &Path) -> Result<Traced<'a>, Failure> {
    let mut names = Vec::new();
    for program in programs {
        names.extend(list(program)?.into_iter().map(|name| (*program, name)));
    }
    let began = Instant::now();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (next, done, names) = (&next, &done, &names);
            let file = home.join(format!("trace-{worker}"));
            scope.spawn(move || {
                while let Some((program, name)) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let traced = one(program, name, &file);
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(traced);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (mut traced, mut failures) = (Vec::new(), Vec::new());
    for one in done {
        match one {
            Ok(one) => traced.push(one),
            Err(Failure(why)) => failures.push(why),
        }
    }
    if !failures.is_empty() {
        return Err(Failure(failures.join("\n")));
    }
    traced.sort_by_key(|(test, _)| test.takes);
    let mut reach: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, (_, reached)) in traced.iter().enumerate() {
        for id in reached.intersection(mutants) {
            reach.entry(*id).or_default().push(at);
        }
    }
    let tests: Vec<Test> = traced.into_iter().map(|(test, _)| test).collect();
    let slowest = tests.iter().rev().take(3).map(|test| format!("{} {:.1} s", test.name, test.takes.as_secs_f64()));
    let slowest = slowest.collect::<Vec<_>>().join(", ");
    eprintln!(
        "mutants: traced {} tests in {:.0} s; the slowest: {slowest}",
        tests.len(),
        began.elapsed().as_secs_f64()
    );
    Ok(Traced { tests, reach })
}

fn list(program: &Program) -> Result<Vec<String>, Failure> {
    let output =
        Command::new(&program.path).args(["--list", "--format", "terse"]).current_dir(&program.folder).output();
    let output = output.map_err(|error| Failure(format!("{}: {error}", program.path.display())))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test").map(str::to_owned)).collect())
}

fn one<'a>(program: &'a Program, name: &str, file: &Path) -> Result<(Test<'a>, BTreeSet<u32>), Failure> {
    let told = |error: std::io::Error| Failure(format!("{}: {error}", file.display()));
    fs::write(file, []).map_err(told)?;
    let output = file.with_extension("output");
    let stdout = fs::File::create(&output).map_err(told)?;
    let began = Instant::now();
    let end = run(program, &[name], LIMIT, |command| {
        command.env("MUTANT", "trace").env("MUTANT_TRACE", file).stdout(Stdio::from(stdout));
    });
    let test = Test { program, name: name.to_owned(), takes: began.elapsed() };
    match end {
        End::Passed => {}
        End::Failed => {
            let said = fs::read_to_string(&output).unwrap_or_default();
            return Err(Failure(format!("test {name} of {} fails without any mutant:\n{said}", program.package)));
        }
        End::Late => {
            return Err(Failure(format!("test {name} of {} does not end without any mutant", program.package)));
        }
    }
    let ids = fs::read(file).map_err(told)?;
    let ids = ids.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    Ok((test, ids.collect()))
}
