//! Text files that a test writes anew when asked to, and compares otherwise.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of agreement shown around a difference.
const CONTEXT: usize = 3;

/// Compares a text with the file that holds what was recorded. With `LONGSHORE_RECORD` set it writes the file instead.
pub fn check(path: &Path, actual: &str) -> Result<(), String> {
    let recorded = fs::read_to_string(path).unwrap_or_default();
    if recorded == actual {
        return Ok(());
    }
    if std::env::var_os("LONGSHORE_RECORD").is_some() {
        return fs::write(path, actual).map_err(|error| format!("{}: {error}", path.display()));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Err(format!("{name} is not what happens (LONGSHORE_RECORD=1 records it anew):\n{}", difference(&recorded, actual)))
}

/// The text files of a folder, by name.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "txt"));
    files.sort();
    files
}

/// The lines between the first and the last that differ, with some around them.
fn difference(recorded: &str, actual: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (recorded.lines().collect(), actual.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();
    let mut text = String::new();
    let mut show = |mark: &str, lines: &[&str]| lines.iter().for_each(|line| writeln!(text, "{mark} {line}").unwrap());
    show(" ", &old[head.saturating_sub(CONTEXT)..head]);
    show("-", &old[head..old.len() - tail]);
    show("+", &new[head..new.len() - tail]);
    show(" ", &new[new.len() - tail..(new.len() - tail + CONTEXT).min(new.len())]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_was_and_what_is_with_a_little_around_it() {
        let shown = difference("1\n2\n3\n4\nold\n5\n6\n7\n8\n", "1\n2\n3\n4\nnew\nmore\n5\n6\n7\n8\n");
        assert_eq!(shown, "  2\n  3\n  4\n- old\n+ new\n+ more\n  5\n  6\n  7\n");
        assert_eq!(difference("a\n", "a\nb\n"), "  a\n+ b\n");
        assert_eq!(difference("a\na\n", "a\n"), "  a\n- a\n");
    }
}
