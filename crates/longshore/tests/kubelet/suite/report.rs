//! What the suite says of each test, side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

/// What the file about a driver does not ask for.
const NOT_SELECTED: &str = "not selected";

/// The answers of one run, by the name of the test without the driver's.
pub struct Report {
    answers: BTreeMap<String, Answer>,
}

#[derive(Clone)]
enum Answer {
    Passed,
    /// Where the driver declares no topology; where it does, the suite skips the test.
    PassedAnywhere,
    Skipped(String),
    Failed(String),
}

impl Answer {
    fn is_passed(&self) -> bool {
        matches!(self, Answer::Passed | Answer::PassedAnywhere)
    }
}

impl Report {
    /// Reads what `--ginkgo.json-report` wrote.
    pub fn read(text: &str) -> Report {
        let suites: Value = serde_json::from_str(text).unwrap();
        let specs = suites.as_array().unwrap().iter().flat_map(|suite| suite["SpecReports"].as_array().unwrap());
        Report { answers: specs.filter_map(answer).collect() }
    }

    /// What is skipped here has the answer of the same test where no topology is declared.
    pub fn or(mut self, anywhere: Report) -> Report {
        for (name, answer) in anywhere.answers {
            if let Some(skipped @ Answer::Skipped(_)) = self.answers.get_mut(&name) {
                *skipped = if answer.is_passed() { Answer::PassedAnywhere } else { answer };
            }
        }
        self
    }

    pub fn passed(&self) -> Vec<String> {
        self.those(Answer::is_passed)
    }

    pub fn failed(&self) -> Vec<String> {
        self.those(|answer| matches!(answer, Answer::Failed(_)))
    }

    fn those(&self, wanted: impl Fn(&Answer) -> bool) -> Vec<String> {
        let wanted = self.answers.iter().filter(|(_, answer)| wanted(answer));
        wanted.map(|(name, _)| name.clone()).collect()
    }

    fn counts(&self) -> String {
        let skipped = self.those(|answer| matches!(answer, Answer::Skipped(_)));
        let anywhere = self.those(|answer| matches!(answer, Answer::PassedAnywhere)).len();
        let so = if anywhere == 0 { String::new() } else { format!(" ({anywhere} without a topology)") };
        format!("{} passed{so}, {} failed, {} skipped", self.passed().len(), self.failed().len(), skipped.len())
    }

    fn said(&self, name: &str) -> String {
        match self.answers.get(name) {
            Some(Answer::Passed) => "passed".into(),
            Some(Answer::PassedAnywhere) => "passed without a topology".into(),
            Some(Answer::Failed(why)) => format!("failed: {why}"),
            Some(Answer::Skipped(why)) => format!("skipped: {why}"),
            None => NOT_SELECTED.into(),
        }
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

/// How many, each test that ran on one of them, then each that was skipped on both, and why.
pub fn table(ours: &Report, theirs: &Report) -> String {
    let names: BTreeSet<&String> = ours.answers.keys().chain(theirs.answers.keys()).collect();
    let passed_on_both = ours.passed().iter().filter(|name| theirs.passed().contains(name)).count();
    let alone = ours.passed().iter().filter(|name| theirs.said(name) == NOT_SELECTED).count();
    let mut text = format!(
        "| driver | tests |\n|---|---|\n| ours | {} |\n\
         | hostpath, with the Go provisioner, attacher and resizer | {} |\n\
         | both | {passed_on_both} passed; {alone} more passed on ours and are not selected on hostpath |\n\n",
        ours.counts(),
        theirs.counts(),
    );
    let skipped = |report: &Report, name: &str| report.said(name).starts_with("skipped");
    let (skipped, ran): (Vec<&String>, Vec<&String>) =
        names.into_iter().partition(|name| skipped(ours, name) && skipped(theirs, name));
    for (what, names) in [("test", ran), ("test that the suite skips, and why", skipped)] {
        text.push_str(&format!("| {what} | ours | hostpath |\n|---|---|---|\n"));
        for name in names {
            let row = [name.replace('|', "\\|"), ours.said(name), theirs.said(name)];
            text.push_str(&format!("| {} |\n", row.join(" | ")));
        }
        text.push('\n');
    }
    text.trim_end().to_string() + "\n"
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(specs: &[(&str, &str, &str)]) -> Report {
        let spec = |(name, state, why): &(&str, &str, &str)| {
            json!({
                "LeafNodeType": "It", "LeafNodeText": name, "State": state, "Failure": { "Message": why },
                "ContainerHierarchyTexts": ["External Storage [Driver: x]", "[Testpattern: p]"],
            })
        };
        Report::read(&json!([{ "SpecReports": specs.iter().map(spec).collect::<Vec<_>>() }]).to_string())
    }

    #[test]
    fn what_is_skipped_for_its_topology_has_the_answer_of_the_run_without() {
        let declared = "VolumeBindingMode immediate is not compatible";
        let first = [("late", "passed", ""), ("soon", "skipped", declared), ("both", "skipped", declared)];
        let second = [("late", "failed", "?"), ("soon", "passed", ""), ("both", "skipped", "Multiple volumes")];
        let ours = report(&first).or(report(&second));
        assert_eq!(ours.counts(), "2 passed (1 without a topology), 0 failed, 1 skipped");
        assert_eq!(ours.said("[Testpattern: p] soon"), "passed without a topology");
        assert_eq!(ours.said("[Testpattern: p] both"), "skipped: Multiple volumes");
        assert_eq!(report(&first).or(report(&[("soon", "failed", "no pod")])).failed(), ["[Testpattern: p] soon"]);
    }

    #[test]
    fn a_table_says_what_one_was_not_asked_and_names_what_is_skipped() {
        let ours = report(&[("a", "passed", ""), ("b", "passed", ""), ("c", "skipped", "Driver x lacks it")]);
        let theirs = report(&[("a", "passed", ""), ("b", "skipped", ""), ("c", "skipped", "Driver x lacks it")]);
        let table = table(&ours, &theirs);
        for row in [
            "| both | 1 passed; 1 more passed on ours and are not selected on hostpath |\n",
            "| [Testpattern: p] b | passed | not selected |\n",
            "| test that the suite skips, and why | ours | hostpath |\n|---|---|---|\n| [Testpattern: p] c | skipped: ",
        ] {
            assert!(table.contains(row), "{row}\n{table}");
        }
    }
}
