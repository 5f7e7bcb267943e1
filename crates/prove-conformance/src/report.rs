use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Case, junit};

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseVerdict {
    Passed,
    /// As promised, but not as it should be.
    Warned(String),
    /// A promise is broken.
    Failed(String),
    Skipped(String),
}

impl CaseVerdict {
    /// The outcome in one word, as a line of the report shows it.
    pub fn word(&self) -> &'static str {
        match self {
            CaseVerdict::Passed => "passed",
            CaseVerdict::Warned(_) => "warned",
            CaseVerdict::Failed(_) => "failed",
            CaseVerdict::Skipped(_) => "skipped",
        }
    }

    /// The reason, if there is one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            CaseVerdict::Passed => None,
            CaseVerdict::Warned(why) | CaseVerdict::Failed(why) | CaseVerdict::Skipped(why) => Some(why),
        }
    }

    fn sign(&self) -> char {
        match self {
            CaseVerdict::Passed => '✓',
            CaseVerdict::Warned(_) => '!',
            CaseVerdict::Failed(_) => '✗',
            CaseVerdict::Skipped(_) => '-',
        }
    }
}

/// A case that has ended.
#[allow(missing_docs, reason = "the names say it all")]
pub struct Finished {
    pub case: &'static Case,
    /// The position of the case in the suite.
    pub number: usize,
    pub verdict: CaseVerdict,
    pub took: Duration,
}

/// The number of cases by verdict. Warned cases are among the passed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it all")]
pub struct Verdicts {
    pub passed: usize,
    pub warned: usize,
    pub failed: usize,
    pub skipped: usize,
}

/// What a run found.
pub struct SuiteReport {
    /// Who was judged.
    pub driver: String,
    /// In which version.
    pub version: String,
    pub endpoint: String,
    /// The cases, in order.
    pub finished: Vec<Finished>,
    /// How long it all took.
    pub took: Duration,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
}

impl SuiteReport {
    /// The verdict on one case.
    pub fn verdict(&self, name: &str) -> Option<&CaseVerdict> {
        self.finished.iter().find(|done| done.case.name == name).map(|done| &done.verdict)
    }

    /// How many ended how.
    pub fn count(&self) -> Verdicts {
        let mut count = Verdicts::default();
        for done in &self.finished {
            match done.verdict {
                CaseVerdict::Passed => count.passed += 1,
                CaseVerdict::Warned(_) => {
                    count.passed += 1;
                    count.warned += 1;
                }
                CaseVerdict::Failed(_) => count.failed += 1,
                CaseVerdict::Skipped(_) => count.skipped += 1,
            }
        }
        count
    }

    /// No promise was broken, and all were looked at.
    pub fn holds(&self) -> bool {
        self.count().failed == 0 && !self.interrupted
    }

    /// A tree with reasons, and the verdict alone on the last line.
    pub fn text(&self, color: bool) -> String {
        let mut text = format!("{} {} at {}\n", self.driver, self.version, self.endpoint);
        let mut before: [&str; 2] = ["", ""];
        for done in &self.finished {
            let mut parts = done.case.name.splitn(3, '/');
            let (service, method, what) =
                (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            if before[0] != service {
                let _ = writeln!(text, "{service}");
            }
            if before != [service, method] {
                let _ = writeln!(text, "  {method}");
            }
            before = [service, method];
            let (on, off) = if color { paint(&done.verdict) } else { ("", "") };
            let _ = write!(text, "    {on}{} {what}{off}", done.verdict.sign());
            match &done.verdict {
                CaseVerdict::Passed => text.push('\n'),
                CaseVerdict::Warned(why) | CaseVerdict::Skipped(why) => drop(writeln!(text, ": {why}")),
                CaseVerdict::Failed(why) => drop(writeln!(text, ": {why}\n        {}", done.case.why)),
            }
        }
        text.push('\n');
        let count = self.count();
        if self.interrupted {
            text.push_str("the run was interrupted and has cleaned up\n");
        }
        let warnings = match count.warned {
            0 => String::new(),
            1 => "1 warning, ".to_string(),
            n => format!("{n} warnings, "),
        };
        let _ = writeln!(text, "{warnings}{:.1} s", self.took.as_secs_f32());
        let _ = writeln!(text, "{} passed, {} failed, {} skipped", count.passed, count.failed, count.skipped);
        text
    }

    /// The report as JSON, for programs.
    pub fn json(&self) -> Value {
        let count = self.count();
        let cases: Vec<Value> = self
            .finished
            .iter()
            .map(|done| {
                json!({
                    "name": done.case.name,
                    "verdict": done.verdict.word(),
                    "reason": done.verdict.reason(),
                    "why": done.case.why,
                    "csiSanity": done.case.parity,
                    "seconds": done.took.as_secs_f64(),
                })
            })
            .collect();
        json!({
            "driver": self.driver,
            "version": self.version,
            "endpoint": self.endpoint,
            "passed": count.passed,
            "warned": count.warned,
            "failed": count.failed,
            "skipped": count.skipped,
            "seconds": self.took.as_secs_f64(),
            "interrupted": self.interrupted,
            "cases": cases,
        })
    }

    /// For build servers.
    pub fn junit(&self) -> String {
        junit::write(self)
    }
}

fn paint(verdict: &CaseVerdict) -> (&'static str, &'static str) {
    let on = match verdict {
        CaseVerdict::Passed => "\x1b[32m",
        CaseVerdict::Warned(_) => "\x1b[33m",
        CaseVerdict::Failed(_) => "\x1b[31m",
        CaseVerdict::Skipped(_) => "\x1b[90m",
    };
    (on, "\x1b[0m")
}
