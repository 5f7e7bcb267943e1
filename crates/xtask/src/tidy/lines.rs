//! Lines that do not fit the width of the code.

use super::{Finding, SourceFile};

/// The columns of a line, as in `rustfmt.toml`, which leaves comments, macros and long strings alone.
const WIDTH: usize = 120;

/// The lines that are too long, granted by file.
pub fn too_long(source: SourceFile<'_>) -> Vec<Finding> {
    (1..)
        .zip(source.text.lines())
        .filter_map(|(number, line)| {
            let columns = line.chars().count();
            (columns > WIDTH).then(|| Finding {
                key: source.path.to_string(),
                text: format!("{}:{number} has {columns} columns", source.path),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let text = format!("{}\n{}\n{}", "x".repeat(120), "ä".repeat(120), "x".repeat(121));
        let found = too_long(SourceFile { path: "crates/a/src/lib.rs", text: &text });
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].text, "crates/a/src/lib.rs:3 has 121 columns");
    }
}
