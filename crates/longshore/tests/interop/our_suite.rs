//! `longshore sanity` on the Go driver, where it has to find what is known, and on ours, where it has to find nothing.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::stand::Stand;

/// Known defects of the Go hostpath driver v1.7.2, each with a part of what is said of it.
const KNOWN: &[(&str, &str)] = &[
    // A volume id leads out of the state directory (the class of CVE-2026-3864).
    ("hostile/id/publish-ephemeral", "outside the volume"),
    // A page of -1 entries crashes the driver.
    ("controller/list-snapshots/negative-page", "the driver crashed"),
    // The second snapshot of a volume replaces the record of the first.
    ("controller/list-snapshots/pages-complete", "snapshots are"),
    // A volume in use is deleted.
    ("controller/delete/published", "expected FAILED_PRECONDITION"),
    ("data/delete/refused-keeps-data", "cannot be read"),
    // Read-only blocks are written to.
    ("data/blocks/read-only", "were written"),
    ("node/publish/target-of-another-volume", "two volumes"),
];

/// Verdict and reason of every case.
struct Judged {
    cases: BTreeMap<String, (String, String)>,
}

impl Judged {
    fn all(&self, verdict: &str) -> Vec<String> {
        let chosen = self.cases.iter().filter(|(_, (found, _))| found == verdict);
        chosen.map(|(name, (_, reason))| format!("{name}: {reason}")).collect()
    }
}

/// Runs the suite with a restart command that kills the driver, mends what it left, and starts it anew.
fn judge(stand: &Stand, line: &[String], mend: &str, more: &[&str]) -> Judged {
    let pid = stand.path("pid");
    std::fs::write(&pid, stand.process_id().to_string()).unwrap();
    let (pid, log) = (pid.display(), stand.path("restarted.log").display().to_string());
    // `setsid`, because the suite waits for nothing the command leaves running.
    let restart = format!(
        "kill -9 $(cat {pid}) 2>/dev/null; while kill -0 $(cat {pid}) 2>/dev/null && ! grep -q ' Z ' /proc/$(cat {pid})/stat; do sleep 0.01; done; {mend} setsid {} </dev/null >>{log} 2>&1 & echo $! >{pid}",
        line.join(" ")
    );
    let directory = |name: &str| stand.path(name).display().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_longshore"))
        .args(["sanity", "--endpoint", &stand.socket.display().to_string(), "--output", "json", "--parallel", "4"])
        .args([
            "--restart-command",
            &restart,
            "--staging-dir",
            &directory("staging"),
            "--target-dir",
            &directory("target"),
        ])
        .args(more)
        .output()
        .unwrap();
    // The one that was started last is nobody's child.
    let _ = Command::new("sh").args(["-c", &format!("kill -9 $(cat {pid}) 2>/dev/null")]).status();
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    let text = |case: &Value, key: &str| case[key].as_str().unwrap_or_default().to_string();
    let cases = report["cases"].as_array().unwrap().iter();
    let cases = cases.map(|case| (text(case, "name"), (text(case, "verdict"), text(case, "reason")))).collect();
    Judged { cases }
}

#[test]
fn our_suite_finds_the_known_defects_of_the_go_driver() {
    let stand = Stand::go();
    // It empties its state file before it writes it anew. Killed in between, it does not start again, and the rest of the
    // run would have nobody to judge.
    let state = stand.path("state/state.json").display().to_string();
    let mend = format!("[ \"$(tail -c 1 {state} 2>/dev/null)\" = '}}' ] || rm -f {state};");
    let judged = judge(&stand, &stand.go_line(), &mend, &["--size", "16Mi"]);
    let mut missed = Vec::new();
    for (name, words) in KNOWN {
        match judged.cases.get(*name) {
            Some((verdict, reason)) if verdict == "failed" && reason.contains(words) => {}
            found => missed.push(format!("{name}: expected to fail with «{words}», found {found:?}")),
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    // Cases ran side by side: none but the one the driver did not survive is blamed for that.
    let crashed: Vec<String> = judged.all("failed").into_iter().filter(|one| one.contains("crashed")).collect();
    let blamed = crashed.iter().all(|one| one.starts_with("controller/list-snapshots/negative-page"));
    assert!(blamed, "{crashed:#?}");
    assert!(judged.all("passed").len() > 300, "too few passed; is the suite fair? {:#?}", judged.all("failed"));
}

#[test]
fn our_suite_finds_no_fault_in_ours() {
    let stand = Stand::ours(&[]);
    let arguments = ["--size", "32Mi", "--mutable-parameters", "readAheadKiB=256"];
    let judged = judge(&stand, &stand.our_line("csi", &[]), "", &arguments);
    assert!(judged.all("failed").is_empty(), "{:#?}", judged.all("failed"));
    assert!(judged.all("passed").len() >= 400, "only {} passed", judged.all("passed").len());
    assert!(stand.leftovers().is_empty(), "left behind: {:?}", stand.leftovers());
}
