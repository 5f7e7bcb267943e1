//! Tries mutants: runs the tests that reach one until a test fails.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::build::Program;
use crate::report::Outcome;
use crate::trace::{Test, Traced};

/// How many test programs run at once.
pub const WORKERS: usize = 2;
/// The tests that run together before it is looked whether one failed take this long; the next ones twice as long.
const FIRST: Duration = Duration::from_millis(200);
/// What a mutant may take: ten times what the tests take without it, and never less than this.
const LEAST: Duration = Duration::from_secs(10);
/// What a test program may have of memory, in KiB: a loop that never ends often collects something.
const MEMORY: &str = "6000000";

/// How a run of some tests ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Passed,
    Failed,
    /// It was stopped.
    Late,
}

/// Tries mutants, several at once.
pub fn all(traced: &Traced, mutants: &BTreeSet<u32>) -> BTreeMap<u32, Outcome> {
    let ids: Vec<u32> = mutants.iter().copied().collect();
    let (next, done, began) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(id) = ids.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = traced.reach.get(id).map_or(Outcome::Unreached, |tests| one(traced, tests, *id));
                    let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    done.insert(*id, outcome);
                    if done.len() % 100 == 0 {
                        let seconds = began.elapsed().as_secs();
                        eprintln!("mutants: {} of {} tried in {seconds} s", done.len(), ids.len());
                    }
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn one(traced: &Traced, tests: &[usize], id: u32) -> Outcome {
    for batch in batches(tests.iter().map(|at| &traced.tests[*at])) {
        let takes: Duration = batch.iter().map(|test| test.takes).sum();
        let names: Vec<&str> = batch.iter().map(|test| test.name.as_str()).collect();
        let end = run(batch[0].program, &names, LEAST.max(takes * 10), |command| {
            command.env("MUTANT", id.to_string());
        });
        match end {
            End::Passed => {}
            End::Failed => return Outcome::Caught,
            End::Late => return Outcome::Endless,
        }
    }
    Outcome::Missed
}

/// Tests that run in one process, and batches that take longer and longer.
fn batches<'a, 'b: 'a>(tests: impl Iterator<Item = &'a Test<'b>>) -> Vec<Vec<&'a Test<'b>>> {
    let (mut batches, mut together): (Vec<Vec<&Test>>, BTreeMap<_, Vec<&Test>>) = (Vec::new(), BTreeMap::new());
    let (mut budget, mut taken) = (FIRST, Duration::ZERO);
    for test in tests {
        if taken + test.takes > budget && !together.is_empty() {
            batches.extend(std::mem::take(&mut together).into_values());
            (budget, taken) = (budget * 2, Duration::ZERO);
        }
        taken += test.takes;
        together.entry(&test.program.path).or_default().push(test);
    }
    batches.extend(together.into_values());
    batches
}

/// Runs some tests of a program, one after another, until one fails or the time is over.
pub fn run(program: &Program, tests: &[&str], limit: Duration, prepare: impl FnOnce(&mut Command)) -> End {
    let mut command = Command::new("nice");
    command.args(["-n", "5", "sh", "-c", "ulimit -v $0; exec \"$@\"", MEMORY]).arg(&program.path).args(tests);
    command.args(["--exact", "--quiet", "--test-threads=1", "-Zunstable-options", "--fail-fast"]);
    // `--fail-fast` is not a stable option yet; this allows it, to the test program alone.
    command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_MANIFEST_DIR", &program.folder).env_remove("LONGSHORE_RECORD");
    command.current_dir(&program.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    prepare(&mut command);
    match command.spawn() {
        Ok(child) => wait(child, limit),
        Err(error) => {
            eprintln!("mutants: cannot run {}: {error}", program.path.display());
            End::Late
        }
    }
}

fn wait(mut child: Child, limit: Duration) -> End {
    let began = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return if status.success() { End::Passed } else { End::Failed },
            Ok(None) if began.elapsed() < limit => std::thread::sleep(pause),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return End::Late;
            }
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &str) -> Program {
        Program { package: "rules-x".into(), path: path.into(), folder: "/".into() }
    }

    #[test]
    fn quick_tests_run_together_and_slow_ones_later() {
        let (unit, other) = (program("unit"), program("other"));
        let test = |program, name: &str, milliseconds| Test {
            program,
            name: name.into(),
            takes: Duration::from_millis(milliseconds),
        };
        let tests = [
            test(&unit, "a", 10),
            test(&other, "b", 20),
            test(&unit, "c", 30),
            test(&unit, "d", 300),
            test(&unit, "e", 5000),
        ];
        let named: Vec<Vec<&str>> = batches(tests.iter())
            .into_iter()
            .map(|batch| batch.iter().map(|test| test.name.as_str()).collect())
            .collect();
        assert_eq!(named, [vec!["b"], vec!["a", "c"], vec!["d"], vec!["e"]]);
    }

    #[test]
    fn a_program_passes_fails_or_is_stopped() {
        let run = |path| {
            let limit = Duration::from_millis(300);
            wait(Command::new("sh").args(["-c", path]).spawn().unwrap(), limit)
        };
        assert_eq!(run("exit 0"), End::Passed);
        assert_eq!(run("exit 101"), End::Failed);
        assert_eq!(run("exec sleep 60"), End::Late);
    }
}
