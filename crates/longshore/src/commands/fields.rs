//! `longshore fields`: which fields of an object do something on the embedded API server, from the table it judges by.

use anyhow::{Result, bail};
use api::Kind;
use rules_store::{FieldLine, FieldStanding, lines};
use serde_json::{Value, json};

use crate::args::{ListFields, ListOutput};
use crate::out;

/// Prints the fields of a kind, or of all.
pub fn command(args: &ListFields) -> Result<()> {
    let kinds = match &args.kind {
        Some(name) => vec![kind_named(name)?],
        None => Kind::ALL.to_vec(),
    };
    match args.output {
        ListOutput::Text => out::say(text(&kinds).trim_end()),
        ListOutput::Json => out::say(&format!("{:#}", listed(&kinds))),
        ListOutput::Markdown => out::say(document(&kinds).trim_end()),
    }
    Ok(())
}

/// A kind by any name that kubectl takes.
fn kind_named(name: &str) -> Result<Kind> {
    let wanted = name.to_ascii_lowercase();
    let known = Kind::ALL.into_iter().find(|kind| {
        let names = [kind.plural(), kind.singular()];
        names.contains(&wanted.as_str()) || kind.short_names().contains(&wanted.as_str())
    });
    match known {
        Some(kind) => Ok(kind),
        None => bail!("there is no kind {name:?} here; kubectl api-resources lists them"),
    }
}

fn unless(line: &FieldLine) -> String {
    if line.unless.is_empty() { String::new() } else { format!(" unless {}", line.unless.join(", ")) }
}

fn text(kinds: &[Kind]) -> String {
    let mut text = String::new();
    for kind in kinds {
        let lines = lines(*kind);
        let width = lines.iter().map(|line| line.path.len()).max().unwrap_or(0);
        for line in &lines {
            let state = format!("{}{}", line.standing.name(), unless(line));
            let told = if line.sentence.is_empty() { state } else { format!("{state}: {}", line.sentence) };
            text.push_str(&format!("{kind}  {:width$}  {told}\n", line.path));
        }
    }
    text
}

fn listed(kinds: &[Kind]) -> Value {
    let all = kinds.iter().flat_map(|kind| lines(*kind).into_iter().map(move |line| (kind, line)));
    all.map(|(kind, line)| {
        let mut one = json!({
            "kind": kind.name(), "apiVersion": kind.api_version(), "path": line.path, "standing": line.standing.name(),
        });
        if !line.sentence.is_empty() {
            one["sentence"] = line.sentence.into();
        }
        if !line.unless.is_empty() {
            one["unless"] = line.unless.into();
        }
        one
    })
    .collect()
}

const HEAD: &str = "\
# Fields

What becomes of each field that a user can set on the embedded API server of `longshore up`. This page is printed by
`longshore fields -o markdown`; a test compares it with that.

- **refused**: it would change what happens, and does not here. An object that sets it is answered with 422 and the
  sentence.
- **warned**: it does nothing here, and that does no harm. The object is taken, and `kubectl` shows the sentence.
- **honoured**: it does what Kubernetes says of it, or is only for people to read.

Values after *unless* pass. Values that mean the same as leaving the field out are never judged, a change is judged only
for what it sets anew, and a `status` not at all.
";

fn document(kinds: &[Kind]) -> String {
    let mut text = HEAD.to_string();
    for kind in kinds {
        let lines = lines(*kind);
        text.push_str(&format!("\n## {kind}\n"));
        // What all kinds share is told once, at the end.
        let own = lines.iter().filter(|line| !line.path.starts_with("metadata."));
        let (honoured, others): (Vec<_>, Vec<_>) = own.partition(|line| line.standing == FieldStanding::Honoured);
        if !others.is_empty() {
            text.push_str("\n| field | | why, and what to do |\n|---|---|---|\n");
        }
        // Fields of which the same is said stand together.
        for alike in others.chunk_by(|one, next| (one.standing, one.sentence) == (next.standing, next.sentence)) {
            let paths: Vec<String> = alike.iter().map(|line| format!("`{}`", line.path)).collect();
            let told = |line: &&FieldLine| format!("{}{} | {}", line.standing.name(), unless(line), line.sentence);
            let told = alike.first().map(told).unwrap_or_default();
            text.push_str(&format!("| {} | {told} |\n", paths.join(", ")));
        }
        let names: Vec<String> = honoured.iter().map(|line| format!("`{}`", line.path)).collect();
        if !names.is_empty() {
            text.push_str(&format!("\nHonoured: {}.\n", names.join(", ")));
        }
    }
    text.push_str(
        "\n## Metadata of every kind\n\n| field | | what it is for, or why it is not taken |\n|---|---|---|\n",
    );
    for line in lines(Kind::Pod).iter().filter(|line| line.path.starts_with("metadata.")) {
        text.push_str(&format!("| `{}` | {} | {} |\n", line.path, line.standing.name(), line.sentence));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_fields_is_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fields.md");
        let printed = document(&Kind::ALL);
        if std::env::var_os("LONGSHORE_RECORD").is_some() {
            std::fs::write(path, &printed).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(page == printed, "docs/fields.md is old; write it anew with `longshore fields -o markdown`");
    }

    #[test]
    fn kinds_go_by_every_name_that_kubectl_takes() {
        for name in ["pvc", "PersistentVolumeClaim", "persistentvolumeclaims"] {
            assert_eq!(kind_named(name).unwrap(), Kind::PersistentVolumeClaim);
        }
        assert!(kind_named("deployment").unwrap_err().to_string().contains("there is no kind \"deployment\""));
    }
}
