//! Public types of one name.

use std::collections::BTreeMap;

use super::{Finding, SourceFile};

/// Names that mean the same wherever they stand, each relative to its crate.
const BY_CONVENTION: [(&str, &str); 11] = [
    ("Key", "associated type of `control::Rules`: the subject of one decision"),
    ("View", "associated type of `control::Rules`: what one decision reads"),
    ("Action", "associated type of `control::Rules`: what one decision asks for"),
    ("Reason", "associated type of `control::Rules`: why a decision is what it is"),
    ("ClaimView", "what a decision about a claim reads"),
    ("VolumeView", "what a decision about a volume reads"),
    ("Memory", "associated type of `control::Rules`: what a controller remembers between decisions"),
    ("Local", "associated type of `control::Rules`: what a process knows of itself"),
    ("Error", "the one error type of its crate"),
    ("Config", "what a crate's user configures"),
    ("Settings", "what a program's command line sets"),
];

/// Names with two meanings, and why both stay. Shorten this list; do not add to it.
const TWO_MEANINGS: [(&str, &str); 7] = [
    ("Change", "of a cache (`control`) and of a store (`rules-store`): each is what its crate tells about one object"),
    ("EventType", "Kubernetes has both: of an Event (Normal, Warning) and of a watch event (ADDED, DELETED)"),
    ("Failure", "of an operation on a machine is always `host::Failure`; the other is the API server's Status"),
    ("Field", "of a CSI message (`csi`) and of a Kubernetes message (`wire`), both protobuf fields"),
    ("Identity", "CSI's service of that name in the kit for drivers; elsewhere who a client of the API server is"),
    ("Plugin", "in the kit what a driver's author writes; in `rules-translate` an in-tree plugin, as Kubernetes says"),
    ("Reply", "of a machine is always `host::Reply`, one case of the other"),
];

/// Public types that are not the only one of their name, granted by name.
pub fn repeated(sources: &[SourceFile<'_>]) -> Vec<Finding> {
    let mut defined: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_product()) {
        for (number, line) in (1..).zip(source.text.lines()) {
            if let Some(name) = public_type(line) {
                defined.entry(name).or_default().push(format!("{}:{number} defines {name}", source.path));
            }
        }
    }
    defined
        .into_iter()
        .filter(|(name, places)| places.len() > 1 && !is_granted(name))
        .flat_map(|(name, places)| places.into_iter().map(|text| Finding { key: name.to_string(), text }))
        .collect()
}

fn is_granted(name: &str) -> bool {
    BY_CONVENTION.iter().chain(&TWO_MEANINGS).any(|(granted, _)| *granted == name)
}

/// The name of the public type that a line defines. Re-exports define nothing.
fn public_type(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ")?;
    let rest = ["struct ", "enum ", "trait ", "type "].iter().find_map(|keyword| line.strip_prefix(keyword))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_definitions_of_a_name_are_found_and_re_exports_are_not() {
        let sources = [
            SourceFile { path: "crates/a/src/lib.rs", text: "pub struct Place;\npub enum View {}\nstruct Inner;\n" },
            SourceFile {
                path: "crates/b/src/lib.rs",
                text: "pub use a::Place;\npub type Place<T> = T;\npub struct View;\n",
            },
            SourceFile { path: "crates/b/src/tests/x.rs", text: "pub struct Place;\npub struct Inner;\n" },
        ];
        let found = repeated(&sources);
        let texts: Vec<&str> = found.iter().map(|finding| finding.text.as_str()).collect();
        assert_eq!(texts, ["crates/a/src/lib.rs:1 defines Place", "crates/b/src/lib.rs:2 defines Place"]);
    }
}
