//! The copy of the tree: at a place that stays the same, so that what did not change is not built again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Failure;

/// The crates with rules.
pub fn rules(source: &Path) -> Result<Vec<String>, Failure> {
    let folder = source.join("crates");
    let entries = fs::read_dir(&folder).map_err(|error| {
        Failure(format!("{}: {error}; run this in the root of the project, with `make mutants`", folder.display()))
    })?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut crates: Vec<String> = names.filter(|name| name.starts_with("rules-")).collect();
    crates.sort();
    Ok(crates)
}

/// Brings the copy up to date and touches only what differs. Files that get mutants are written with those.
pub fn copy(source: &Path, copy: &Path, mutated: &BTreeSet<&str>) -> Result<(), Failure> {
    let wanted: BTreeSet<String> = files(source, &["ls-files", "--cached", "--others", "--exclude-standard"])?
        .into_iter()
        .filter(|file| source.join(file).is_file())
        .collect();
    for file in wanted.iter().filter(|file| !mutated.contains(file.as_str())) {
        let told = |error: std::io::Error| Failure(format!("cannot copy {file}: {error}"));
        let text = fs::read(source.join(file)).map_err(told)?;
        write(&copy.join(file), &text).map_err(told)?;
    }
    remove(copy, copy, &wanted).map_err(|error| Failure(format!("cannot tidy {}: {error}", copy.display())))
}

/// Writes a file unless it says so already.
pub fn write(path: &Path, text: &[u8]) -> std::io::Result<()> {
    if fs::read(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

fn files(source: &Path, words: &[&str]) -> Result<Vec<String>, Failure> {
    let output = Command::new("git").args(words).arg("-z").current_dir(source).output();
    let output = output.map_err(|error| Failure(format!("cannot run git: {error}")))?;
    if !output.status.success() {
        return Err(Failure(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// Removes what is in the copy alone, such as what a test left behind.
fn remove(root: &Path, folder: &Path, wanted: &BTreeSet<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if path.is_dir() {
            remove(root, &path, wanted)?;
        } else if !wanted.contains(&name) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
