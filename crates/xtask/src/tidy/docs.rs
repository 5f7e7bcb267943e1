//! Doc comments: every public item has one, and none says what the name says already.
//!
//! The compiler's lint `missing_docs` also asks for one on each field and variant, and so gets "The claim." on `claim`. This
//! check leaves fields and variants free.

use super::{Finding, SourceFile};

/// Public items and methods of public traits without a doc comment, granted by crate. `has_docs` says whether the file of a
/// module, named by its path without `.rs`, begins with a doc comment of its own.
pub fn missing(source: SourceFile<'_>, has_docs: impl Fn(&str) -> bool) -> Vec<Finding> {
    if !source.is_product() {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    let mut trait_indent = None;
    for (index, line) in lines.iter().enumerate() {
        let (indent, text) = (line.len() - line.trim_start().len(), line.trim());
        if text.starts_with('}') && trait_indent == Some(indent) {
            trait_indent = None;
        }
        let public = text.strip_prefix("pub ");
        let in_trait = trait_indent.is_some_and(|outer| indent == outer + 4);
        let Some((keyword, name)) = public.or(in_trait.then_some(text)).and_then(item) else { continue };
        if public.is_some() && keyword == "trait" && text.ends_with('{') {
            trait_indent = Some(indent);
        }
        let documented = is_documented(&lines[..index])
            || keyword == "mod" && text.ends_with(';') && has_docs(&format!("{}/{name}", folder(source.path)));
        if !documented {
            let text = format!("{}:{} {keyword} {name} has no doc comment", source.path, index + 1);
            found.push(Finding { key: source.package().to_string(), text });
        }
    }
    found
}

/// Doc comments of one or two words that name nothing, granted by crate. Command lines are left out: there the comments are
/// what `--help` prints.
pub fn empty(source: SourceFile<'_>) -> Vec<Finding> {
    if source.text.contains("clap::") {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let comment = |index: usize| lines.get(index).and_then(|line| line.trim_start().strip_prefix("///"));
    let mut found = Vec::new();
    for index in 0..lines.len() {
        let Some(words) = comment(index) else { continue };
        let alone = index.checked_sub(1).and_then(comment).is_none() && comment(index + 1).is_none();
        if alone && words.split_whitespace().count() <= 2 && !has_name(words) {
            let text = format!("{}:{} ///{words} says no more than the name", source.path, index + 1);
            found.push(Finding { key: source.package().to_string(), text });
        }
    }
    found
}

/// Whether something in a comment is a name: the number of a requirement, code, or a word with capitals within, as RPCs have.
fn has_name(words: &str) -> bool {
    let inner_capital = |word: &str| word.chars().skip(1).any(char::is_uppercase);
    words.contains(|c: char| c.is_ascii_digit() || c == '`' || c == '/') || words.split_whitespace().any(inner_capital)
}

/// Keyword and name of the item that a line begins, without its visibility.
fn item(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split([' ', '(', '<', ':', ';', '{']).filter(|word| !word.is_empty()).peekable();
    loop {
        let word = words.next()?;
        match word {
            "const" if words.peek() == Some(&"fn") => {}
            "async" | "unsafe" => {}
            "fn" | "struct" | "enum" | "trait" | "mod" | "const" | "static" | "type" => {
                return words.next().map(|name| (word, name));
            }
            _ => return None,
        }
    }
}

/// Whether the lines before an item end with a doc comment, attributes aside.
fn is_documented(before: &[&str]) -> bool {
    let mut attribute = false;
    for line in before.iter().rev().map(|line| line.trim()) {
        if line.starts_with("///") || line.starts_with("#[doc") {
            return true;
        }
        if line.starts_with("#[") || line.starts_with("$(#[") {
            attribute = false;
        } else if line.ends_with(")]") {
            attribute = true;
        } else if !attribute {
            return false;
        }
    }
    false
}

/// The folder in which the modules that a file declares are.
fn folder(path: &str) -> &str {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    if ["lib.rs", "main.rs", "mod.rs"].contains(&file) { folder } else { path.trim_end_matches(".rs") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let found = missing(SourceFile { path: "crates/a/src/lib.rs", text }, |module| module == "crates/a/src/told");
        found.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn items_and_methods_of_traits_need_docs_and_fields_do_not() {
        let text = "/// A.\n#[derive(Debug)]\npub struct A {\n    pub field: u8,\n}\npub const fn b() {}\n/// C.\n\
                    #[allow(\n    dead_code\n)]\npub trait C {\n    fn d(&self);\n    /// E.\n    fn e(&self) {\n        \
                    const X: u8 = 1;\n    }\n}\nfn private() {}\npub mod told;\npub mod untold;\npub use x::y;\n";
        assert_eq!(
            names(text),
            [
                "crates/a/src/lib.rs:6 fn b has no doc comment",
                "crates/a/src/lib.rs:12 fn d has no doc comment",
                "crates/a/src/lib.rs:20 mod untold has no doc comment",
            ]
        );
    }

    #[test]
    fn one_or_two_words_are_no_doc_comment() {
        let text = "/// Which.\na: u8,\n/// Its name.\nb: u8,\n/// The name of the claim.\nc: u8,\n/// Two\n/// lines.\n\
                    d: u8,\n/// Reliability 26.\ne: u8,\n/// NodeStageVolume.\nf: u8,\n/// `up`.\n";
        let found = empty(SourceFile { path: "crates/a/src/lib.rs", text });
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].text, "crates/a/src/lib.rs:3 /// Its name. says no more than the name");
    }
}
