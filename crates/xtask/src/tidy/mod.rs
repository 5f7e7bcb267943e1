//! Checks of the source as text, each with a list of what was there before the check.
//!
//! A list grants a number of findings to a name (a crate, a file, a type). More findings than granted fail the check, and so
//! do fewer: the list must then shrink. `LONGSHORE_RECORD=1` writes the lists anew, as long as no list grows as a whole.

pub mod docs;
pub mod granted;
pub mod items;
pub mod lines;
pub mod names;

/// One place in the source that a check complains of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name that the list grants findings to.
    pub key: String,
    /// The complaint, with file and line.
    pub text: String,
}

/// A Rust file of the workspace: its path from the root and its text.
#[derive(Debug, Clone, Copy)]
pub struct SourceFile<'a> {
    pub path: &'a str,
    pub text: &'a str,
}

impl SourceFile<'_> {
    /// The crate or example that holds the file.
    pub fn package(&self) -> &str {
        self.path.split('/').nth(1).unwrap_or(self.path)
    }

    /// Whether the file is part of a library or program, rather than of its tests.
    pub fn is_product(&self) -> bool {
        self.path.contains("/src/") && !self.path.contains("/tests/") && !self.path.ends_with("tests.rs")
    }
}
