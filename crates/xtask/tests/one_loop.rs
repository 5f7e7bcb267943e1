//! There is one loop: whoever runs, explores or tests rules does it through `control::Engine`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::collections::BTreeSet;

use xtask::tree;

/// Asking rules.
const ASK: &str = "decide";
/// Telling them outcomes.
const TELL: [&str; 2] = ["remember", "learn"];

/// A function of a file, with all that is in it.
struct Function {
    name: String,
    text: String,
}

/// The functions of a file that are in no other function, by their indentation.
fn functions(text: &str) -> Vec<Function> {
    let mut found: Vec<Function> = Vec::new();
    let mut end: Option<String> = None;
    for line in text.lines() {
        if let Some(closing) = &end {
            let function = found.last_mut().unwrap();
            function.text.push_str(line);
            function.text.push('\n');
            if line == closing {
                end = None;
            }
            continue;
        }
        let code = line.trim_start();
        let words: Vec<&str> = code.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| *word == "fn").filter(|_| !code.starts_with("//")) else {
            continue;
        };
        let name = words.get(at + 1).copied().unwrap_or("");
        let name = name.split(['(', '<']).next().unwrap_or("").to_string();
        found.push(Function { name, text: format!("{line}\n") });
        if !line.ends_with(['}', ';']) {
            end = Some(format!("{}}}", &line[..line.len() - code.len()]));
        }
    }
    found
}

/// The steps of the loop that are taken by naming a type: `Binding::decide(`, `R::learn(`, `<T as Rules>::remember(`. A
/// module's function, `claim::decide(`, is a part of a decision.
fn steps(text: &str) -> BTreeSet<&'static str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = code.collect::<Vec<_>>().join("\n");
    let is_type = |before: &str| {
        let name = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
        before.ends_with('>') || name.starts_with(|c: char| c.is_uppercase())
    };
    let taken = |step: &&'static str| {
        let call = format!("::{step}");
        code.match_indices(&call).any(|(at, _)| {
            let after = code[at + call.len()..].chars().next();
            is_type(&code[..at]) && !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
        })
    };
    [ASK].into_iter().chain(TELL).filter(taken).collect()
}

/// Whether the function goes round; going through a list of cases is not that.
fn repeats(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| {
        let line = line.split_once(": ").filter(|(label, _)| label.starts_with('\'')).map_or(line, |(_, rest)| rest);
        ["loop {", "while ", "for _ in "].iter().any(|word| line.starts_with(word))
    })
}

/// What is wrong with a file. Rules may wrap rules, and their tests may take a step by hand, but not go on and on.
fn complaints(path: &str, text: &str) -> Vec<String> {
    let of_rules = path.contains("/rules-") && path.contains("/src/tests/");
    let wraps = |function: &Function| function.name == ASK || TELL.contains(&function.name.as_str());
    let mut complaints = Vec::new();
    for function in functions(text).iter().filter(|function| !wraps(function)) {
        let steps = steps(&function.text);
        let loops = steps.contains(ASK) && steps.len() > 1 && repeats(&function.text);
        if if of_rules { loops } else { !steps.is_empty() } {
            complaints.push(format!("{path}: {} calls {steps:?}; let control::Engine do it", function.name));
        }
    }
    complaints
}

#[test]
fn only_the_engine_asks_rules_and_tells_them_outcomes() {
    let mut found = Vec::new();
    let mut asked = false;
    for (path, text) in tree::sources().unwrap() {
        let here = path.to_string_lossy().into_owned();
        if here.ends_with("control/src/engine.rs") {
            asked = functions(&text).iter().any(|function| steps(&function.text).contains(ASK));
        } else if !here.ends_with("tests/one_loop.rs") {
            found.extend(complaints(&here, &text));
        }
    }
    assert!(asked, "the engine asks rules, and this test does not see it");
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_loop_is_found_however_it_names_the_rules() {
    let by_hand = |ask: &str, tell: &str| {
        let steps =
            format!("        let did = {ask}(now, &view);\n        memory = {tell}(now, memory, &did, &got);\n");
        format!("fn run() {{\n    loop {{\n{steps}    }}\n}}\n")
    };
    for rules in ["R", "Binding", "<T as Rules>", "<Binding as control::Rules>"] {
        let text = by_hand(&format!("{rules}::decide"), &format!("{rules}::remember"));
        assert_eq!(complaints("crates/io-run/src/x.rs", &text).len(), 1, "{text}");
        assert_eq!(complaints("crates/rules-binding/src/tests/x.rs", &text).len(), 1, "{text}");
    }
    // One step by hand is a test of that step, in a test of the rules alone.
    let step = "fn asked() {\n    Binding::decide(now, &view, &memory);\n}\n";
    assert!(complaints("crates/rules-binding/src/tests/x.rs", step).is_empty());
    assert_eq!(complaints("crates/prove-world/src/x.rs", step).len(), 1);
    assert_eq!(
        complaints("crates/prove-world/src/x.rs", "fn asked() {\n    views.map(Binding::decide);\n}\n").len(),
        1
    );
    // Rules that wrap rules, and parts of a decision.
    let wraps = "impl Rules for Wrong {\n    fn decide() {\n        Binding::decide(now, view, memory)\n    }\n}\n";
    assert!(complaints("crates/prove-world/src/x.rs", wraps).is_empty());
    assert!(complaints("crates/rules-node/src/x.rs", "fn x() {\n    pod::decide(view);\n}\n").is_empty());
}
