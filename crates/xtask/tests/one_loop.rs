//! There is one loop: whoever runs, explores or tests rules does it through `control::Engine`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use xtask::tree;

#[test]
fn only_the_engine_asks_rules_and_tells_them_outcomes() {
    let steps = ["R::decide(", "R::remember(", "R::learn("];
    let mut complaints = Vec::new();
    for (path, text) in tree::sources().unwrap() {
        let here = path.to_string_lossy().into_owned();
        if here.ends_with("control/src/engine.rs") || here.ends_with("tests/one_loop.rs") {
            continue;
        }
        for step in steps.iter().filter(|step| text.contains(**step)) {
            complaints.push(format!("{here} calls {step}…); let control::Engine do it"));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}
