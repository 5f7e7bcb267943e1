//! Dumps of clusters: what `kubectl get … -o yaml` or `-o json` printed, in files, directories, archives or on standard
//! input, as lists or as many documents.

mod files;
mod split;
mod tar;
mod yaml;

pub use files::each_file;
pub use split::{Found, each_document, each_object};

/// A place in a dump, for sentences about what is wrong there.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The file, or standard input.
    pub name: &'a str,
    /// The line that the text begins with, from 1.
    pub line: usize,
}

impl Place<'_> {
    /// A text of this place is no YAML.
    fn no_yaml(self, at: Option<(usize, usize)>) -> String {
        let (line, column) = at.map_or((self.line, 1), |(line, column)| (self.line + line.saturating_sub(1), column));
        format!("{} is neither YAML nor JSON (line {line}, column {column})", self.name)
    }
}
