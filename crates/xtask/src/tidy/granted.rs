//! The lists of what was there before a check.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::Finding;

/// How many findings a list grants to each name.
pub type Granted = BTreeMap<String, usize>;

/// Reads the lines `COUNT NAME` of a list. Empty lines and lines that begin with `#` are for readers.
pub fn parse(text: &str) -> Result<Granted, String> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (count, key) = line.split_once(' ').ok_or_else(|| format!("no count and name in {line:?}"))?;
            let count = count.parse().map_err(|_| format!("no count in {line:?}"))?;
            Ok((key.to_string(), count))
        })
        .collect()
}

/// What is wrong with the findings or with the list that grants them.
pub fn compare(granted: &Granted, findings: &[Finding]) -> Vec<String> {
    let found = by_key(findings);
    let mut complaints = Vec::new();
    for (key, texts) in &found {
        let allowed = granted.get(*key).copied().unwrap_or(0);
        if texts.len() > allowed {
            complaints.push(format!("{key}: {} found, {allowed} granted\n  {}", texts.len(), texts.join("\n  ")));
        }
    }
    for (key, &allowed) in granted {
        let count = found.get(key.as_str()).map_or(0, Vec::len);
        if count < allowed {
            complaints.push(format!("{key}: {allowed} granted, only {count} found; shrink the list (`make record`)"));
        }
    }
    complaints
}

/// Compares the findings with the list in a file, or writes that list anew when `record` is set.
pub fn check(list: &Path, findings: &[Finding], record: bool) -> Result<(), String> {
    let text = fs::read_to_string(list).map_err(|error| format!("{}: {error}", list.display()))?;
    let granted = parse(&text).map_err(|error| format!("{}: {error}", list.display()))?;
    if record && findings.len() <= granted.values().sum() {
        let heading: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
        return fs::write(list, render(&heading, findings)).map_err(|error| format!("{}: {error}", list.display()));
    }
    match compare(&granted, findings) {
        complaints if complaints.is_empty() => Ok(()),
        complaints => Err(format!("{}:\n{}", list.display(), complaints.join("\n"))),
    }
}

fn render(heading: &[&str], findings: &[Finding]) -> String {
    let mut text: String = heading.iter().map(|line| format!("{line}\n")).collect();
    for (key, texts) in by_key(findings) {
        text.push_str(&format!("{} {key}\n", texts.len()));
    }
    text
}

fn by_key(findings: &[Finding]) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for finding in findings {
        found.entry(&finding.key).or_default().push(&finding.text);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(keys: &[&str]) -> Vec<Finding> {
        keys.iter().map(|key| Finding { key: key.to_string(), text: format!("in {key}") }).collect()
    }

    #[test]
    fn more_than_granted_and_less_than_granted_are_both_wrong() {
        let granted = parse("# why\n2 a\n1 b\n").unwrap();
        assert_eq!(compare(&granted, &findings(&["a", "a", "b"])), Vec::<String>::new());
        assert_eq!(compare(&granted, &findings(&["a", "a", "b", "c"])).len(), 1);
        assert_eq!(compare(&granted, &findings(&["a", "b"])).len(), 1);
        assert_eq!(compare(&granted, &findings(&["a", "a"])).len(), 1);
    }

    #[test]
    fn a_list_is_written_anew_only_when_it_does_not_grow() {
        let list = std::env::temp_dir().join(format!("longshore-tidy-{}", std::process::id()));
        fs::write(&list, "# why\n2 a\n").unwrap();
        check(&list, &findings(&["a", "b"]), true).unwrap();
        assert_eq!(fs::read_to_string(&list).unwrap(), "# why\n1 a\n1 b\n");
        check(&list, &findings(&["a", "b", "c"]), true).unwrap_err();
        assert_eq!(fs::read_to_string(&list).unwrap(), "# why\n1 a\n1 b\n");
        fs::remove_file(&list).unwrap();
    }
}
