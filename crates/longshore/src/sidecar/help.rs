//! The flags, told: `--help`, and the document that lists every one with its state.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Role;
use super::table::{FLAGS, FlagRow, GATES, State};

/// What `--help` prints for a process with these roles.
pub fn help(roles: &BTreeSet<Role>) -> String {
    let mut text = String::from("Flags, as the programs replaced here know them (one dash or two):\n\n");
    for flag in FLAGS.iter().filter(|flag| flag.defaults.iter().any(|(role, _)| roles.contains(role))) {
        let defaults: BTreeSet<&str> =
            flag.defaults.iter().filter(|(role, _)| roles.contains(role)).map(|(_, value)| *value).collect();
        let told: Vec<&str> = defaults.into_iter().filter(|value| !value.is_empty()).collect();
        let default = if told.is_empty() { String::new() } else { format!(" [default: {}]", told.join(" or ")) };
        let _ = writeln!(text, "  --{}\n        {}{default}{}", flag.name, flag.note, remark(flag.state));
    }
    text
}

fn remark(state: State) -> &'static str {
    match state {
        State::Honoured => "",
        State::Accepted => " (taken, without effect)",
        State::Deprecated => " (deprecated)",
    }
}

/// The document: every flag of every program, with its state.
pub fn document() -> String {
    let mut text = String::from(
        "# Flags of the sidecars\n\n\
         Called as `csi-provisioner`, `csi-attacher`, `csi-resizer`, `csi-node-driver-registrar` or `livenessprobe`, or as\n\
         `longshore sidecar --roles …`, Longshore takes every flag of these programs, and a few of its own. This page is printed by\n\
         `longshore sidecar --flags`; a test compares it with that, and another with the `--help` of the programs.\n\n\
         | flag | programs and defaults | state | what it does |\n|---|---|---|---|\n",
    );
    for flag in FLAGS {
        let state = match flag.state {
            State::Honoured => "honoured",
            State::Accepted => "taken, without effect",
            State::Deprecated => "deprecated, taken with a warning",
        };
        let _ = writeln!(text, "| `--{}` | {} | {state} | {} |", flag.name, owners(flag), flag.note);
    }
    text.push_str("\nGates of `--feature-gates`:\n\n| gate | here |\n|---|---|\n");
    for (gate, note) in GATES {
        let _ = writeln!(text, "| `{gate}` | {note} |");
    }
    text
}

/// Which programs have it, grouped by default.
fn owners(flag: &FlagRow) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (role, default) in flag.defaults {
        match groups.iter_mut().find(|(value, _)| value == default) {
            Some((_, roles)) => roles.push(role.name()),
            None => groups.push((default, vec![role.name()])),
        }
    }
    let told = groups.into_iter().map(|(default, roles)| {
        let shown = if default.is_empty() { "empty".to_string() } else { format!("`{default}`") };
        format!("{}: {shown}", roles.join(", "))
    });
    told.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_flags_is_the_table() {
        let page = include_str!("../../../../docs/flags.md");
        assert!(page == document(), "docs/flags.md is old; write it anew with `longshore sidecar --flags`");
    }
}
