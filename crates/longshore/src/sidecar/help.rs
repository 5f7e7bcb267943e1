//! The flags, told: `--help`, and the document that lists every one with its state.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Role;
use super::table::{FLAGS, FlagRow, GATES, State};

/// What `--help` prints for a process with these roles, called by this name: a Go program's, or ours.
pub fn help(roles: &BTreeSet<Role>, called: &str) -> String {
    let mut text = match Role::named(called) {
        Some(role) => format!("Plays {}.\n\nUsage: {called} [FLAGS]\n\n", role.program()),
        None => {
            let names = Role::ALL.map(Role::name).join(",");
            format!(
                "Plays the sidecars of a CSI driver, in one process.\n\n\
                 Usage: longshore sidecar --roles={names} [FLAGS]\n\n  \
                 --roles\n        what to do, one or more of: {}\n  \
                 --flags\n        prints the table of every flag, with its state, and exits\n  \
                 --help\n        prints this; with --roles only what concerns those roles\n\n",
                Role::ALL.map(|role| format!("{role} (as {})", role.program())).join(", ")
            )
        }
    };
    text.push_str("Flags are those of the programs replaced here, with one dash or two.\n");
    let ours = |flag: &&FlagRow| flag.defaults.iter().any(|(role, _)| roles.contains(role));
    let (live, dead): (Vec<&FlagRow>, Vec<&FlagRow>) =
        FLAGS.iter().filter(ours).partition(|flag| flag.state != State::Accepted);
    let of = |flag: &FlagRow| flag.defaults.iter().map(|(role, _)| *role).filter(|r| roles.contains(r)).collect();
    let shared = |flag: &&&FlagRow| Vec::len(&of(flag)) > 1;
    section(&mut text, "Flags of several roles:", roles, live.iter().filter(shared).copied());
    for role in roles {
        let title = format!("Flags of the {role} alone:");
        section(&mut text, &title, roles, live.iter().filter(|flag| of(flag) == [*role]).copied());
    }
    section(&mut text, "Taken, without effect here:", roles, dead.into_iter());
    text
}

fn section<'a>(text: &mut String, title: &str, roles: &BTreeSet<Role>, flags: impl Iterator<Item = &'a FlagRow>) {
    let mut title = Some(title);
    for flag in flags {
        if let Some(title) = title.take() {
            let _ = writeln!(text, "\n{title}");
        }
        let defaults = flag.defaults.iter().filter(|(role, _)| roles.contains(role));
        let (owners, values): (Vec<&str>, BTreeSet<&str>) = defaults.map(|(role, value)| (role.name(), *value)).unzip();
        let told: Vec<&str> = values.into_iter().filter(|value| !value.is_empty()).collect();
        let default = if told.is_empty() { String::new() } else { format!(" [default: {}]", told.join(" or ")) };
        let owners = if owners.len() > 1 { format!(" ({})", owners.join(", ")) } else { String::new() };
        let old = if flag.state == State::Deprecated { " (deprecated)" } else { "" };
        let _ = writeln!(text, "  --{}{owners}\n        {}{default}{old}", flag.name, flag.note);
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
    fn help_begins_with_usage_groups_by_role_and_ends_with_what_does_nothing() {
        let all = help(&Role::ALL.into(), "longshore");
        let place = |words: &str| all.find(words).unwrap_or_else(|| panic!("{words} is not in:\n{all}"));
        let order = [
            "Usage: longshore sidecar --roles=",
            "  --roles\n",
            "Flags of several roles:",
            "  --csi-address (",
            "Flags of the provisioner alone:",
            "  --node-deployment\n",
            "Flags of the attacher alone:",
            "Flags of the resizer alone:",
            "Flags of the registrar alone:",
            "Taken, without effect here:",
        ];
        assert!(order.map(place).is_sorted(), "{all}");
        let dead = place("Taken, without effect here:");
        for flag in FLAGS {
            let here = ["\n", " ("].iter().find_map(|end| all.find(&format!("\n  --{}{end}", flag.name)));
            assert_eq!(here.map(|at| at > dead), Some(flag.state == State::Accepted), "{}", flag.name);
        }
        let alone = help(&[Role::Attacher].into(), "csi-attacher");
        assert!(alone.contains("Usage: csi-attacher [FLAGS]") && !alone.contains("--roles"), "{alone}");
        assert!(!alone.contains("--node-deployment"), "{alone}");
    }

    #[test]
    fn the_page_of_flags_is_the_table() {
        let page = include_str!("../../../../docs/flags.md");
        assert!(page == document(), "docs/flags.md is old; write it anew with `longshore sidecar --flags`");
    }
}
