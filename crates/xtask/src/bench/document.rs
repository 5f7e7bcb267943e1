//! A document that holds figures between marks.

use std::fs;
use std::io;
use std::path::Path;

const END: &str = "<!-- end of figures -->";

/// Replaces the tables that a command writes into a document.
pub fn refresh(file: &Path, command: &str, tables: &str) -> io::Result<()> {
    let document = fs::read_to_string(file)?;
    let begin = format!("<!-- figures: written by {command} -->");
    let marks = || io::Error::other(format!("{} has no place for figures; it needs {begin} and {END}", file.display()));
    let (before, rest) = document.split_once(&begin).ok_or_else(marks)?;
    let (_, after) = rest.split_once(END).ok_or_else(marks)?;
    fs::write(file, format!("{before}{begin}\n\n{tables}\n{END}{after}"))
}

/// What was measured on.
pub fn machine() -> String {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default().trim().to_string();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("\t: a processor");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = model.trim_start_matches([' ', '\t', ':']);
    format!("{cores} cores of {model}, Linux {}", read("/proc/sys/kernel/osrelease"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_place_of_its_own_in_the_document() {
        let folder = prove_cluster::Scratch::new("document").unwrap();
        let file = folder.path().join("page.md");
        let place = |command: &str| format!("<!-- figures: written by {command} -->\nold\n{END}\n");
        fs::write(&file, format!("a\n{}b\n{}c\n", place("one"), place("two"))).unwrap();
        refresh(&file, "two", "new").unwrap();
        let page = fs::read_to_string(&file).unwrap();
        let (first, second) = page.split_once("b\n").unwrap();
        assert!(first.contains("old") && second.contains("new") && !second.contains("old"), "{page}");
        assert!(page.ends_with("c\n"));
        assert!(refresh(&file, "three", "new").is_err());
    }
}
