//! The console blocks of README.md and of every document below docs/: what they show is what is printed.
//!
//! A block is a golden script. It is run in a directory of its own, and what it shows is compared with what is printed, but for
//! times, dates, uids and other things that no two runs share ([`masks::mask`]). A comment on the line above a block says more:
//!
//! - `<!-- after: COMMANDS -->` runs these commands first, with the words of the scripts' prelude;
//! - `<!-- as root, after: COMMANDS -->` says also that the block mounts filesystems;
//! - `<!-- tested by FILE: TEST -->` names the test that covers a block which cannot be run alone.
//!
//! A block of `make` commands is not run; its targets must exist. `LONGSHORE_RECORD=1` writes what is printed into the block.

mod masks;

use std::fs;
use std::path::{Path, PathBuf};

use crate::script::{self, Step, World};

const AFTER: &str = "after: ";
const AS_ROOT: &str = "as root, ";
const TESTED_BY: &str = "tested by ";

/// A fenced block of a document, and the comment above it.
struct Block {
    /// The number of the line after the opening fence, from 0.
    first: usize,
    language: String,
    lines: Vec<String>,
    note: String,
}

#[test]
fn every_console_block_shows_what_is_printed() {
    let record = std::env::var_os("LONGSHORE_RECORD").is_some();
    let mut complaints = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        // From the end, so that a block that is written anew moves no other.
        for block in blocks(&text).into_iter().rev() {
            match shown(&block) {
                Ok(printed) if printed == block.lines => {}
                Ok(printed) if record => {
                    lines.splice(block.first..block.first + block.lines.len(), printed);
                }
                Ok(printed) => complaints.push(format!(
                    "{}:{}: the block is out of date; `make record` writes what is printed:\n{}",
                    path.display(),
                    block.first + 1,
                    printed.join("\n")
                )),
                Err(error) => complaints.push(format!("{}:{}: {error}", path.display(), block.first + 1)),
            }
        }
        if record {
            fs::write(&path, lines.join("\n") + "\n").unwrap();
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        let (below, files): (Vec<PathBuf>, Vec<PathBuf>) =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).partition(|path| path.is_dir());
        folders.extend(below);
        found.extend(files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    found.sort();
    found
}

#[test]
fn documents_in_folders_are_read_too() {
    let found = documents();
    for name in ["README.md", "docs/node.md", "docs/controllers/nodes.md", "docs/decisions/04-one-process.md"] {
        assert!(found.contains(&root().join(name)), "{name} is not read");
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    let mut above = "";
    for (index, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            open = !open;
            if open {
                let note = above.strip_prefix("<!-- ").and_then(|note| note.strip_suffix(" -->")).unwrap_or("");
                let (language, note) = (language.to_string(), note.to_string());
                found.push(Block { first: index + 1, language, lines: Vec::new(), note });
            }
        } else if open {
            found.last_mut().unwrap().lines.push(line.to_string());
        }
        above = line;
    }
    found
}

/// The lines that a block should have.
fn shown(block: &Block) -> Result<Vec<String>, String> {
    match block.language.as_str() {
        "" => return Err("say what the block is: console, text, yaml, …".into()),
        "console" => {}
        _ => return Ok(block.lines.clone()),
    }
    if let Some(test) = block.note.strip_prefix(TESTED_BY) {
        return test_exists(test).map(|()| block.lines.clone());
    }
    if !block.lines.first().is_some_and(|line| line.starts_with("$ ")) {
        return Err("a console block begins with a command: $ …".into());
    }
    let steps = script::steps(&(block.lines.join("\n") + "\n"));
    if steps.iter().all(|step| step.command.starts_with("make ")) {
        return targets_exist(&steps).map(|()| block.lines.clone());
    }
    let (as_root, note) = match block.note.strip_prefix(AS_ROOT) {
        Some(rest) => (true, rest),
        None => (false, block.note.as_str()),
    };
    if as_root && !script::is_root() {
        eprintln!("the console block at line {} was not run: it mounts filesystems, and only root may", block.first);
        return Ok(block.lines.clone());
    }
    let world = World::new();
    world.bash(note.strip_prefix(AFTER).unwrap_or("true"));
    Ok(steps.iter().flat_map(|step| run(&world, step)).collect())
}

/// The step with what it prints: as the document shows it where nothing but masked things differ.
fn run(world: &World, step: &Step) -> Vec<String> {
    let expected: Vec<String> = step.expected.iter().map(|line| masks::mask(line)).collect();
    let mut printed;
    let mut attempts = 0;
    loop {
        printed = world.bash(&step.command).replace("$W/d", "/var/lib/longshore");
        let masked: Vec<String> = printed.lines().map(masks::mask).collect();
        let lines: Vec<&str> = masked.iter().map(String::as_str).collect();
        if script::matches(&expected, &lines) {
            return step.lines.clone();
        }
        // A question may be asked again: a controller may be between two attempts.
        attempts += 1;
        if !step.command.starts_with("longshore explain") || attempts == 20 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(250));
    }
    let command = format!("$ {}", step.command);
    command.lines().chain(printed.trim_end().lines()).map(|line| line.trim_end().to_string()).collect()
}

/// `FILE: TEST` names a test.
fn test_exists(named: &str) -> Result<(), String> {
    let (file, test) = named.split_once(": ").ok_or_else(|| format!("{named:?} is not FILE: TEST"))?;
    let text = fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"))?;
    match text.contains(&format!("#[test]\nfn {test}(")) {
        true => Ok(()),
        false => Err(format!("{file} has no test {test}")),
    }
}

fn targets_exist(steps: &[Step]) -> Result<(), String> {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    for step in steps {
        let target = step.command.split_whitespace().nth(1).unwrap_or("");
        if !makefile.lines().any(|line| line.starts_with(&format!("{target}:"))) {
            return Err(format!("the Makefile has no target {target:?}"));
        }
    }
    Ok(())
}

#[test]
fn blocks_know_their_place_and_the_comment_above() {
    let found = blocks("a\n<!-- after: up -->\n```console\n$ x\ny\n```\n```text\nz\n```\n");
    let told: Vec<_> = found.iter().map(|block| (block.first, block.language.as_str(), block.note.as_str())).collect();
    assert_eq!(told, [(3, "console", "after: up"), (7, "text", "")]);
    assert_eq!(found[0].lines, ["$ x", "y"]);
}

#[test]
fn a_block_without_cover_is_not_taken() {
    let block = |language: &str, line: &str, note: &str| Block {
        first: 0,
        language: language.into(),
        lines: vec![line.into()],
        note: note.into(),
    };
    assert!(shown(&block("", "x", "")).is_err());
    assert!(shown(&block("console", "x", "")).is_err());
    assert!(shown(&block("console", "$ make tea", "")).is_err());
    assert!(shown(&block("console", "$ x", "tested by Makefile: tea")).is_err());
    assert_eq!(shown(&block("console", "$ echo 1", "")).unwrap(), ["$ echo 1", "1"]);
}
