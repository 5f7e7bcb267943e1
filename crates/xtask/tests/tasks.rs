//! Nothing that should work as long as the process ends unnoticed: such a task is started with `Manager::keep`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::collections::BTreeMap;

use xtask::tree;

/// The crates whose code runs in a process of the product.
const CRATES: [&str; 5] = ["io-apiserver", "io-csi", "io-kube", "io-run", "longshore"];

/// Where tasks are started that nobody waits for, how many, and why nobody misses them. A panic in one is told by the
/// health check all the same.
const SHORT: [(&str, usize, &str); 11] = [
    ("io-apiserver/src/tls.rs", 1, "one connection"),
    ("io-kube/src/batch.rs", 1, "notes for one object, until there are no more"),
    ("io-kube/src/past.rs", 1, "one question, until nobody asks it"),
    ("io-run/src/controller.rs", 1, "one action"),
    ("io-run/src/events.rs", 1, "ends with the last who says something"),
    ("io-run/src/manager/lead.rs", 1, "ends with the election, whose end is waited for"),
    ("io-run/src/manager/looks.rs", 1, "a rest after one look"),
    ("longshore/src/driver/mod.rs", 1, "one copy"),
    ("longshore/src/exec.rs", 5, "one program in a pod"),
    ("longshore/src/sidecar/driver.rs", 1, "ends with the folder of the driver's socket"),
    ("longshore/src/sidecar/run.rs", 2, "the server of health itself: whoever asks has no answer"),
];

/// How many tasks a file starts and detaches: the handle is neither bound nor asked for anything.
fn detached(text: &str) -> usize {
    // Tests start what they like.
    let code = text.split("#[cfg(test)]").next().unwrap();
    let lines: Vec<&str> = code.lines().collect();
    let starts = |line: &str| line.trim_start().starts_with("tokio::spawn(");
    let mut count = 0;
    for at in (0..lines.len()).filter(|at| starts(lines[*at])) {
        let indent = lines[at].len() - lines[at].trim_start().len();
        let own = |line: &&&str| line.len() - line.trim_start().len() == indent && !line.trim().is_empty();
        let last = if lines[at].ends_with('{') { lines[at + 1..].iter().find(own).unwrap() } else { &lines[at] };
        count += usize::from(last.ends_with(");"));
    }
    count
}

#[test]
fn a_task_that_lasts_is_kept() {
    let mut granted: BTreeMap<&str, usize> = SHORT.into_iter().map(|(file, count, _)| (file, count)).collect();
    let mut complaints = Vec::new();
    for (path, text) in tree::sources().unwrap() {
        let path = path.to_string_lossy().replace('\\', "/");
        let Some((_, file)) = path.rsplit_once("/crates/") else { continue };
        let Some((krate, rest)) = file.split_once('/') else { continue };
        if !CRATES.contains(&krate) || !rest.starts_with("src/") {
            continue;
        }
        let (found, allowed) = (detached(&text), granted.remove(file).unwrap_or(0));
        if found != allowed {
            complaints.push(format!(
                "{file} starts {found} tasks that nobody waits for, {allowed} known as short; one that lasts is \
                 started with Manager::keep, one that is short is named in this test"
            ));
        }
    }
    complaints.extend(granted.keys().map(|file| format!("{file} is not there")));
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn a_detached_task_is_told_from_one_that_is_not() {
    assert_eq!(detached("    tokio::spawn(work());\n"), 1);
    assert_eq!(detached("    tokio::spawn(async move {\n        work().await;\n    });\n"), 1);
    assert_eq!(detached("    let task = tokio::spawn(work());\n"), 0);
    assert_eq!(detached("    tokio::spawn(kept).abort_handle()\n"), 0);
    assert_eq!(detached("        tokio::spawn(work())\n    });\n"), 0);
    assert_eq!(detached("#[cfg(test)]\nmod tests {\n    tokio::spawn(work());\n"), 0);
}
