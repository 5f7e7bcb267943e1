//! The laws of the workspace, read off the names of the crates.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use xtask::tidy::{Finding, SourceFile, docs, granted, items, lines, names};
use xtask::tree;

const VOCABULARY: [&str; 4] = ["api", "csi", "control", "wire"];
/// Outside crates that neither do I/O, nor read a clock, nor roll a die.
const PURE: [&str; 8] = ["serde", "serde_json", "sha2", "md-5", "base64", "prost", "prost-types", "lz4_flex"];

fn complain(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn rules_depend_on_nothing_that_could_act() {
    let ours = tree::crates().unwrap();
    let mut complaints = Vec::new();
    for krate in ours.iter().filter(|name| name.starts_with("rules-") || VOCABULARY.contains(&name.as_str())) {
        for dependency in tree::dependencies(krate, "dependencies").unwrap() {
            let allowed = VOCABULARY.contains(&dependency.as_str())
                || PURE.contains(&dependency.as_str())
                || dependency == "rules-translate";
            if !allowed {
                complaints
                    .push(format!("{krate} depends on {dependency}; rules depend on vocabulary and pure crates only"));
            }
        }
        let lib = fs::read_to_string(tree::root().join("crates").join(krate).join("src/lib.rs")).unwrap();
        if !lib.contains("#![no_std]") {
            complaints.push(format!("{krate} is not #![no_std]"));
        }
    }
    complain(&complaints);
}

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let output = std::process::Command::new(cargo).args(arguments).current_dir(tree::root()).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

// `#![no_std]` holds for a crate alone: what it depends on may be asked for `std` all the same.
#[test]
fn rules_switch_no_dependency_to_std() {
    let mut complaints = Vec::new();
    for krate in tree::crates().unwrap().iter().filter(|name| name.starts_with("rules-")) {
        let tree = cargo(&["tree", "--offline", "--package", krate, "--edges=normal,features,no-proc-macro"]);
        let std = tree.lines().filter(|line| line.ends_with(" feature \"std\"") || line.contains(" feature \"std\" "));
        complaints
            .extend(std.map(|line| format!("{krate}: {}", line.trim_start_matches(|c: char| !c.is_alphabetic()))));
    }
    complain(&complaints);
}

#[test]
fn what_may_be_published_packs_with_licence_and_readme() {
    for krate in ["api", "rules-translate"] {
        let packed = cargo(&["package", "--offline", "--allow-dirty", "--list", "--package", krate]);
        for file in ["LICENSE", "README.md"] {
            assert!(packed.lines().any(|line| line == file), "{krate} packs no {file}");
        }
    }
}

/// The rooms of a crate with a controller: what a decision reads, how that is found, which changes matter, the decision, what
/// it asks for, and why.
const ROOMS: [&str; 6] = ["view", "build", "wakes", "decide", "action", "reason"];

#[test]
fn controllers_have_the_same_rooms() {
    let mut complaints = Vec::new();
    let mut controllers = 0;
    for krate in tree::crates().unwrap().iter().filter(|name| name.starts_with("rules-")) {
        let src = tree::root().join("crates").join(krate).join("src");
        let lib = fs::read_to_string(src.join("lib.rs")).unwrap();
        if !lib.contains("\nimpl Rules for ") {
            continue;
        }
        controllers += 1;
        let memory = lib.contains("type Memory = Memory;").then_some("memory");
        for room in ROOMS.into_iter().chain(memory) {
            if !src.join(format!("{room}.rs")).exists() && !src.join(room).join("mod.rs").exists() {
                complaints.push(format!("{krate} has no {room}.rs and no {room}/mod.rs"));
            }
        }
    }
    assert_eq!(controllers, 9, "each controller implements Rules in its lib.rs");
    complain(&complaints);
}

#[test]
fn hands_know_no_rules() {
    let mut complaints = Vec::new();
    for krate in tree::crates().unwrap().iter().filter(|name| name.starts_with("io-")) {
        for dependency in tree::dependencies(krate, "dependencies").unwrap() {
            let excepted = krate == "io-apiserver" && dependency == "rules-store";
            if dependency.starts_with("rules-") && !excepted {
                complaints.push(format!("{krate} depends on {dependency}; hands know no rules"));
            }
        }
    }
    complain(&complaints);
}

/// More words of our own than this nobody learns.
const OWN_WORDS: usize = 25;

#[test]
fn the_glossary_is_short_and_names_what_there_is() {
    let text = fs::read_to_string(tree::root().join("docs/glossary.md")).unwrap();
    let entries: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    let mut complaints = Vec::new();
    if entries.is_empty() || entries.len() > OWN_WORDS {
        complaints.push(format!("{} entries in docs/glossary.md; 1 to {OWN_WORDS} are allowed", entries.len()));
    }
    let sources = tree::sources().unwrap();
    for entry in entries {
        for named in entry.split('`').skip(1).step_by(2).filter(|code| code.contains("::")) {
            let name = named.rsplit("::").next().unwrap();
            let items = ["struct", "enum", "trait", "type"].map(|item| format!("{item} {name}"));
            let there = sources.iter().any(|(_, text)| items.iter().any(|item| text.contains(item.as_str())));
            if !there {
                complaints.push(format!("docs/glossary.md names {named}, which is not there"));
            }
        }
    }
    complain(&complaints);
}

#[test]
fn unsafe_code_is_in_io_host_alone() {
    let mut complaints = Vec::new();
    for package in tree::packages().unwrap() {
        let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
        // The workspace forbids unsafe code; a crate that does not take its lints escapes that.
        if !package.ends_with("io-host") && !manifest.contains("[lints]\nworkspace = true") {
            complaints.push(format!("{} does not take the lints of the workspace", package.display()));
        }
    }
    complain(&complaints);
}

#[test]
fn nothing_unfinished_skipped_or_of_one_machine_is_in_the_source() {
    // Spelt in pieces, so that this file does not accuse itself.
    let banned = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("#[", "ignore"),
        concat!("FIX", "ME"),
        concat!("/ro", "ot/"),
        concat!("/wo", "rk/"),
    ];
    let mut complaints = Vec::new();
    for (path, text) in tree::sources().unwrap() {
        for word in banned {
            if text.contains(word) {
                complaints.push(format!("{} contains {word}", path.display()));
            }
        }
    }
    complain(&complaints);
}

#[test]
fn files_hold_one_idea() {
    let mut complaints = Vec::new();
    for (path, text) in tree::sources().unwrap() {
        let lines = text.lines().count();
        if lines > 600 {
            complaints.push(format!("{} has {lines} lines; is there a second idea in it?", path.display()));
        }
    }
    complain(&complaints);
}

#[test]
fn every_library_says_what_it_is() {
    let mut complaints = Vec::new();
    for package in tree::packages().unwrap() {
        let folder = package.join("src");
        let file = if folder.join("lib.rs").exists() { folder.join("lib.rs") } else { folder.join("main.rs") };
        if !fs::read_to_string(&file).unwrap().starts_with("//!") {
            complaints.push(format!("{} does not begin with what the crate is", file.display()));
        }
    }
    complain(&complaints);
}

/// Compares findings with a list under `crates/xtask/tidy`, which `make record` writes anew.
fn check_list(list: &str, findings: &[Finding]) {
    let list = tree::root().join("crates/xtask/tidy").join(list);
    if let Err(complaint) = granted::check(&list, findings, std::env::var_os("LONGSHORE_RECORD").is_some()) {
        panic!("\n{complaint}");
    }
}

/// Every Rust file, by its path from the root.
fn sources() -> Vec<(String, String)> {
    let root = tree::root();
    let relative = |path: PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_string();
    tree::sources().unwrap().into_iter().map(|(path, text)| (relative(path), text)).collect()
}

fn each(check: impl Fn(SourceFile<'_>) -> Vec<Finding>) -> Vec<Finding> {
    sources().iter().flat_map(|(path, text)| check(SourceFile { path, text })).collect()
}

#[test]
fn lines_fit_the_width_of_the_code() {
    check_list("long-lines.txt", &each(lines::too_long));
}

#[test]
fn every_public_item_is_documented() {
    let has_docs = |module: &str| {
        [format!("{module}.rs"), format!("{module}/mod.rs")]
            .iter()
            .any(|file| fs::read_to_string(tree::root().join(file)).is_ok_and(|text| text.starts_with("//!")))
    };
    check_list("missing-docs.txt", &each(|source| docs::missing(source, has_docs)));
}

#[test]
fn no_doc_comment_says_only_what_the_name_says() {
    check_list("empty-docs.txt", &each(docs::empty));
}

#[test]
fn a_public_name_means_one_type() {
    let files = sources();
    let all: Vec<SourceFile<'_>> = files.iter().map(|(path, text)| SourceFile { path, text }).collect();
    check_list("repeated-names.txt", &names::repeated(&all));
}

#[test]
fn each_item_of_the_orchestrator_is_shown_by_a_test_or_told() {
    let (scripts, sources) = (tree::scripts().unwrap(), sources());
    let mut complaints = Vec::new();
    for items in items::ALL {
        let mut tested: BTreeSet<u32> = scripts.iter().flat_map(|(_, text)| items.named(text)).collect();
        for (path, text) in sources.iter().filter(|(path, _)| !path.starts_with("crates/xtask/")) {
            tested.extend(items.named(items::of_tests(SourceFile { path, text })));
        }
        let read = |document: &&str| fs::read_to_string(tree::root().join(document)).unwrap();
        let told: BTreeSet<u32> = items.documents.iter().flat_map(|document| items.named(&read(document))).collect();
        complaints.extend(items.complaints(&tested, &told));
    }
    complain(&complaints);
}
