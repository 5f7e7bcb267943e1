//! What the suite says of each test, side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

/// The answers of one run, by the name of the test without the driver's.
pub struct Report {
    answers: BTreeMap<String, Answer>,
}

enum Answer {
    Passed,
    Skipped(String),
    Failed(String),
}

impl Report {
    /// Reads what `--ginkgo.json-report` wrote.
    pub fn read(text: &str) -> Report {
        let suites: Value = serde_json::from_str(text).unwrap();
        let specs = suites.as_array().unwrap().iter().flat_map(|suite| suite["SpecReports"].as_array().unwrap());
        Report { answers: specs.filter_map(answer).collect() }
    }

    pub fn passed(&self) -> Vec<String> {
        let passed = self.answers.iter().filter(|(_, answer)| matches!(answer, Answer::Passed));
        passed.map(|(name, _)| name.clone()).collect()
    }

    pub fn failed(&self) -> Vec<String> {
        let failed = self.answers.iter().filter(|(_, answer)| matches!(answer, Answer::Failed(_)));
        failed.map(|(name, _)| name.clone()).collect()
    }

    fn counts(&self) -> String {
        let skipped = self.answers.len() - self.passed().len() - self.failed().len();
        format!("{} passed, {} failed, {skipped} skipped", self.passed().len(), self.failed().len())
    }

    fn said(&self, name: &str) -> String {
        match self.answers.get(name) {
            Some(Answer::Passed) => "passed".into(),
            Some(Answer::Failed(why)) => format!("failed: {why}"),
            Some(Answer::Skipped(why)) => format!("skipped: {why}"),
            None => "not selected".into(),
        }
    }

    fn skipped(&self) -> BTreeMap<String, usize> {
        let mut reasons = BTreeMap::new();
        for answer in self.answers.values() {
            if let Answer::Skipped(why) = answer {
                *reasons.entry(why.clone()).or_default() += 1;
            }
        }
        reasons
    }
}

/// The answer of one test, if it was selected.
fn answer(spec: &Value) -> Option<(String, Answer)> {
    if spec["LeafNodeType"] != "It" {
        return None;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let why = || line(spec["Failure"]["Message"].as_str().unwrap_or_default());
    let answer = match spec["State"].as_str().unwrap() {
        "passed" => Answer::Passed,
        "skipped" if why().is_empty() => return None,
        "skipped" => Answer::Skipped(why()),
        state => Answer::Failed(format!("{state}, {}", why())),
    };
    let folders = spec["ContainerHierarchyTexts"].as_array().unwrap().iter().map(text);
    // The first is the suite's, with the driver's name in the second.
    let words: Vec<String> =
        folders.filter(|text| !text.contains("[Driver:")).chain([text(&spec["LeafNodeText"])]).collect();
    Some((words.join(" "), answer))
}

/// A reason as a cell of a table: its first line, without names that are made up anew for each run.
fn line(message: &str) -> String {
    let first = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let words = first.split_whitespace().filter(|word| !word.contains("local.csi") && !word.contains("hostpath.csi"));
    let mut text = words.collect::<Vec<_>>().join(" ").replace('|', "\\|");
    text.truncate(text.char_indices().nth(160).map_or(text.len(), |(at, _)| at));
    text
}

/// Each test that ran on one of them, then why the others were skipped.
pub fn table(ours: &Report, theirs: &Report) -> String {
    let ran = |report: &Report| [report.passed(), report.failed()].concat();
    let names: BTreeSet<String> = ran(ours).into_iter().chain(ran(theirs)).collect();
    let mut text = format!(
        "| driver | tests |\n|---|---|\n| ours | {} |\n| hostpath, with the Go provisioner and resizer | {} |\n\n\
         | test | ours | hostpath |\n|---|---|---|\n",
        ours.counts(),
        theirs.counts()
    );
    for name in names {
        text.push_str(&format!("| {} | {} | {} |\n", name.replace('|', "\\|"), ours.said(&name), theirs.said(&name)));
    }
    let (own, other) = (ours.skipped(), theirs.skipped());
    text.push_str("\n| why the suite skips a test | ours | hostpath |\n|---|---|---|\n");
    for why in own.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
        let count = |reasons: &BTreeMap<String, usize>| reasons.get(why).copied().unwrap_or_default();
        text.push_str(&format!("| {why} | {} | {} |\n", count(&own), count(&other)));
    }
    text
}

/// Where reports are kept.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("e2e")
}

/// With `LONGSHORE_RECORD=1` the table takes the place of the one in docs/conformance.md.
pub fn keep(table: &str) {
    if std::env::var_os("LONGSHORE_RECORD").is_none() {
        return;
    }
    let (begin, end) = ("<!-- begin: make e2e -->\n", "<!-- end: make e2e -->");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/conformance.md");
    let page = std::fs::read_to_string(file).unwrap();
    let (head, rest) = page.split_once(begin).unwrap();
    let (_, tail) = rest.split_once(end).unwrap();
    std::fs::write(file, format!("{head}{begin}\n{table}\n{end}{tail}")).unwrap();
}
