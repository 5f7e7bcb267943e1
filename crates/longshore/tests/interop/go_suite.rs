//! csi-sanity, the Go conformance suite.

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use prove_cluster::peer;

use crate::configurations::{self, Configuration};
use crate::stand::Stand;

/// How many drivers are judged at once: most of the time they wait for the disk.
const AT_ONCE: usize = 3;

#[derive(Debug, PartialEq, Eq)]
struct Counts {
    passed: u32,
    failed: u32,
    skipped: u32,
}

/// Runs csi-sanity on a driver: its counts, and the names of what failed.
fn judge(stand: &Stand, arguments: &[String], parameters: Option<&str>) -> Result<(Counts, Vec<String>), String> {
    let path = |name: &str| stand.path(name).display().to_string();
    let mut suite = Command::new(peer("csi-sanity").unwrap());
    suite.args(["--ginkgo.no-color", &format!("--csi.endpoint={}", stand.socket.display())]);
    suite.args([format!("--csi.mountdir={}", path("mount")), format!("--csi.stagingdir={}", path("staging"))]);
    suite.arg(format!("--csi.junitfile={}", path("junit.xml"))).args(arguments);
    if let Some(controller) = &stand.controller {
        suite.arg(format!("--csi.controllerendpoint={}", controller.display()));
    }
    if let Some(parameters) = parameters {
        std::fs::write(path("parameters.yaml"), parameters).unwrap();
        suite.arg(format!("--csi.testvolumeparameters={}", path("parameters.yaml")));
    }
    let output = suite.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = std::fs::read_to_string(path("junit.xml")).map_err(|error| format!("no report ({error}): {said}"))?;
    let counts = read(&report).ok_or_else(|| format!("the report has no counts: {report:.500}"))?;
    let failed = said.lines().filter_map(|line| line.trim().strip_prefix("[FAIL] ")).map(String::from).collect();
    Ok((counts, failed))
}

/// The counts of a JUnit report. What is disabled there is pending in the suite itself: nobody is judged by it.
fn read(report: &str) -> Option<Counts> {
    let line = report.lines().find(|line| line.trim_start().starts_with("<testsuite "))?;
    let number = |name: &str| line.split_once(&format!(" {name}=\""))?.1.split('"').next()?.parse::<u32>().ok();
    let (failed, skipped) = (number("failures")? + number("errors")?, number("skipped")?);
    Some(Counts { passed: number("tests")? - number("disabled")? - failed - skipped, failed, skipped })
}

/// What is wrong with one configuration, if anything is.
fn wrong(configuration: &Configuration) -> Option<String> {
    let stand = configuration.start();
    let told = |what: String| Some(format!("{}: {what}", configuration.name));
    let (counts, failed) = match judge(&stand, &configuration.arguments, configuration.parameters) {
        Ok(judged) => judged,
        Err(error) => return told(error),
    };
    if counts.failed > 0 || counts.passed < configuration.passes {
        return told(format!("{counts:?}, {} should pass; failed: {failed:#?}", configuration.passes));
    }
    let left = stand.leftovers();
    if left.is_empty() { None } else { told(format!("left behind: {left:?}")) }
}

#[test]
fn the_go_suite_finds_no_fault_in_any_configuration() {
    let all = configurations::all();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(configuration) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    found.lock().unwrap().extend(wrong(configuration));
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{} of {} configurations:\n{}", found.len(), all.len(), found.join("\n"));
}

#[test]
fn the_go_suite_skips_less_on_ours_than_on_the_go_driver() {
    let (ours, _) = judge(&Stand::ours(&[]), &[], None).unwrap();
    let (theirs, _) = judge(&Stand::go(), &[], None).unwrap();
    assert!(ours.failed == 0 && ours.skipped < theirs.skipped, "ours {ours:?}, theirs {theirs:?}");
    assert!(ours.passed > theirs.passed, "ours {ours:?}, theirs {theirs:?}");
}
