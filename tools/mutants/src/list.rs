//! The mutants, as cargo-mutants lists them.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::Failure;

/// One place changed in one way.
#[derive(Clone, Debug, Deserialize)]
pub struct Mutant {
    /// File, line, column and change: how people call it.
    pub name: String,
    pub package: String,
    /// Relative to the tree.
    pub file: String,
    pub span: Span,
    /// What takes the place of the span's text.
    pub replacement: String,
    pub genre: Genre,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Span {
    pub start: Place,
    pub end: Place,
}

/// Both count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

/// The mutants of some crates, in the order of their files.
pub fn list(tree: &Path, crates: &[String]) -> Result<Vec<Mutant>, Failure> {
    let mut command = Command::new("cargo");
    command.args(["mutants", "--list", "--json", "--colors", "never"]).current_dir(tree);
    for name in crates {
        command.arg("--package").arg(name);
    }
    let output = command.output().map_err(|error| Failure(format!("cannot run cargo mutants: {error}")))?;
    if !output.status.success() {
        return Err(Failure(format!("cargo mutants --list: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure(format!("cargo mutants lists its mutants in a form that is not known: {error}")))
}
