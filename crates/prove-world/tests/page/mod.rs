//! `docs/worlds.md`: what the tests explore and refute, written down. Numbers of states are exact, so they are
//! compared; times are not. `LONGSHORE_RECORD=1` writes the rows of whatever is run anew.

#![allow(dead_code, reason = "each test program compares the rows of its own")]

use std::path::PathBuf;
use std::sync::Mutex;

use prove_world::{Bounds, Budget, Report, Scenario, explore, worlds};

/// The headings of the tables.
pub const WORLDS: &str = "## The worlds";
pub const TESTED: &str = "## What the tests explore";
pub const PROVED: &str = "## What `make prove` explores";
pub const REFUTED: &str = "## Wrong rules";

/// Tests run side by side.
static PAGE: Mutex<()> = Mutex::new(());

/// Explores a world and compares the number of its states with the page.
pub fn explored(scenario: &Scenario, budget: Budget) -> Report {
    let before = processor_seconds();
    let report = explore(scenario, &Bounds::of(budget));
    let seconds = processor_seconds() - before;
    println!("{report}");
    assert!(report.holds() && report.resting > 0, "{report}");
    row(TESTED, &[scenario.name, &said(&budget)], &[&report.states.to_string()], Some(seconds));
    report
}

/// Explores a world with a wrong rule in it, which has to break a law, and compares that with the page. The scenario is
/// called by the world and the rule.
pub fn refuted(scenario: &Scenario, budget: Budget) -> Report {
    let report = explore(scenario, &Bounds::of(budget));
    println!("{report}");
    let law = report.broken.as_ref().expect("the wrong rule is refuted").violation.law();
    let (world, rule) = scenario.name.split_once(", ").expect("a world and what is wrong in it");
    assert!(worlds().iter().any(|(scenario, _)| scenario.name == world), "{world} is no world");
    row(REFUTED, &[world, rule, law.name()], &[], None);
    report
}

/// How much trouble, in a few words.
pub fn said(budget: &Budget) -> String {
    let count = |count: u8, one: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {one}s")),
    };
    let all = [count(budget.user, "move"), count(budget.faults, "fault"), count(budget.delays, "delay")];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The rows of a table.
pub fn rows(heading: &str) -> Vec<String> {
    let page = std::fs::read_to_string(path()).unwrap_or_default();
    let lines: Vec<&str> = page.lines().collect();
    let (from, to) = table(&lines, heading);
    lines[from..to].iter().map(|line| (*line).to_string()).collect()
}

/// Compares the row that begins with these cells.
pub fn row(heading: &str, key: &[&str], values: &[&str], seconds: Option<f64>) {
    let (begins, wanted) = (cells(key), cells(&[key, values].concat()));
    let _writing = PAGE.lock();
    if std::env::var_os("LONGSHORE_RECORD").is_some() {
        let page = std::fs::read_to_string(path()).unwrap();
        let mut lines: Vec<&str> = page.lines().collect();
        let time = seconds.map(|seconds| format!(" {seconds:.1} |")).unwrap_or_default();
        let line = format!("{wanted}{time}");
        let (from, to) = table(&lines, heading);
        match (from..to).find(|at| lines[*at].starts_with(&begins)) {
            Some(at) => lines[at] = &line,
            None => lines.insert((from..to).find(|at| *lines[*at] > *line).unwrap_or(to), &line),
        }
        std::fs::write(path(), lines.join("\n") + "\n").unwrap();
    }
    let found = rows(heading).into_iter().find(|row| row.starts_with(&begins));
    let same = found.as_ref().is_some_and(|row| row.starts_with(&wanted));
    assert!(same, "docs/worlds.md has {found:?} and not {wanted}; LONGSHORE_RECORD=1 records it anew");
}

fn cells(cells: &[&str]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// From where to where the rows of a table go.
fn table(lines: &[&str], heading: &str) -> (usize, usize) {
    let begins = lines.iter().position(|line| *line == heading).unwrap_or_else(|| panic!("no {heading} in the page"));
    let rule = |line: &&str| line.starts_with("|---");
    let from = begins + lines[begins..].iter().position(rule).expect("a table") + 1;
    let to = lines[from..].iter().position(|line| !line.starts_with('|')).map_or(lines.len(), |rows| from + rows);
    (from, to)
}

fn path() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/worlds.md").into()
}

/// The time that a processor has spent on this thread, whatever else runs meanwhile. Zero where nothing tells.
fn processor_seconds() -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or_default() / 1e9
}
