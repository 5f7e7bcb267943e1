//! The files of a dump, one after the other.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::tar;

/// What files of objects are called.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Hands over every file that these paths name: a file, a directory with everything beneath it, an archive, or `-` for
/// standard input. An error is a sentence.
pub fn each_file(paths: &[PathBuf], hand: &mut dyn FnMut(&str, &str) -> Result<(), String>) -> Result<(), String> {
    for path in paths {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| format!("cannot read standard input: {error}"))?;
            one("standard input", bytes, hand)?;
        } else {
            let about = fs::metadata(path).map_err(|error| cannot_read(path, &error))?;
            if about.is_dir() { directory(path, hand)? } else { file(path, hand)? }
        }
    }
    Ok(())
}

fn cannot_read(path: &Path, error: &std::io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}

fn file(path: &Path, hand: &mut dyn FnMut(&str, &str) -> Result<(), String>) -> Result<(), String> {
    let bytes = fs::read(path).map_err(|error| cannot_read(path, &error))?;
    one(&path.display().to_string(), bytes, hand)
}

/// In the order of their names, so that two runs say the same. Files of other kinds are passed over.
fn directory(path: &Path, hand: &mut dyn FnMut(&str, &str) -> Result<(), String>) -> Result<(), String> {
    let mut files = Vec::new();
    let mut open = vec![path.to_path_buf()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| cannot_read(&folder, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| cannot_read(&folder, &error))?;
            let kind = entry.file_type().map_err(|error| cannot_read(&entry.path(), &error))?;
            // A link may lead anywhere, also back to where it is.
            if kind.is_dir() {
                open.push(entry.path());
            } else if holds_objects(&entry.path()) {
                files.push(entry.path());
            }
        }
    }
    if files.is_empty() {
        return Err(format!("{} holds no .yaml, .yml or .json file", path.display()));
    }
    files.sort();
    files.iter().try_for_each(|path| file(path, hand))
}

fn holds_objects(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

fn one(name: &str, bytes: Vec<u8>, hand: &mut dyn FnMut(&str, &str) -> Result<(), String>) -> Result<(), String> {
    if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Err(format!("{name} is compressed; decompress it first, such as with `gzip -dc`"));
    }
    if tar::is_archive(name, &bytes) {
        let mut held = 0;
        tar::each(&bytes, &mut |inner, bytes| {
            if !holds_objects(Path::new(inner)) {
                return Ok(());
            }
            held += 1;
            let name = format!("{name}: {inner}");
            hand(&name, std::str::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8 text"))?)
        })
        .map_err(|problem| match problem {
            tar::TarProblem::Archive(what) => format!("{name} cannot be read as a tar archive: {what}"),
            tar::TarProblem::Content(sentence) => sentence,
        })?;
        return if held > 0 { Ok(()) } else { Err(format!("{name} holds no .yaml, .yml or .json file")) };
    }
    hand(name, std::str::from_utf8(&bytes).map_err(|_| format!("{name} is not UTF-8 text"))?)
}
