//! Reads command lines as the Go programs read theirs: one dash or two, `--x=v` or `--x v`, a bool alone is `true`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rules_translate::Migration;

use super::Role;
use super::table::{self, FLAGS, Flag, FlagRow, GATES, Kind, Labels, State, Text};

/// The flags given, checked against the table.
#[derive(Debug, Default)]
pub struct Flags {
    given: BTreeMap<&'static str, String>,
    /// What users should know and is no error.
    pub warnings: Vec<String>,
}

/// Reads the flags of a process with these roles. An error is a sentence.
pub fn parse(roles: &BTreeSet<Role>, arguments: &[String]) -> Result<Flags, String> {
    let mut flags = Flags::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let (name, inline) = split(argument)?;
        let flag = find(roles, name)?;
        let value = match (inline, flag.kind) {
            (Some(value), _) => value.to_string(),
            (None, Kind::Bool) => "true".to_string(),
            (None, _) => match rest.next() {
                Some(value) => value.clone(),
                None => return Err(format!("--{name} needs a value; write --{name}={}", example(flag.kind))),
            },
        };
        check(flag, &value)?;
        if flag.state == State::Deprecated {
            flags.warnings.push(format!("--{name} is deprecated: {}", flag.note));
        }
        // The last one counts, except for gates, which add up.
        let held = flags.given.entry(flag.name).or_default();
        *held = if flag.kind == Kind::Gates && !held.is_empty() { format!("{held},{value}") } else { value };
    }
    Ok(flags)
}

fn split(argument: &str) -> Result<(&str, Option<&str>), String> {
    let name = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')).filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Err(format!("{argument} is no flag; flags begin with two dashes"));
    };
    Ok(match name.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (name, None),
    })
}

fn find(roles: &BTreeSet<Role>, name: &str) -> Result<&'static FlagRow, String> {
    let known = FLAGS.iter().find(|flag| flag.name == name);
    match known {
        Some(flag) if flag.defaults.iter().any(|(role, _)| roles.contains(role)) => Ok(flag),
        Some(flag) => {
            let owners: Vec<&str> = flag.defaults.iter().map(|(role, _)| role.name()).collect();
            Err(format!(
                "--{name} is a flag of the {}, which is not among the roles of this process",
                owners.join(" and the ")
            ))
        }
        None => Err(format!("there is no flag --{name}{}", suggestion(roles, name))),
    }
}

/// The roles that have a flag of this name.
pub fn owners(name: &str) -> Vec<Role> {
    let row = FLAGS.iter().find(|flag| flag.name == name);
    row.map(|flag| flag.defaults.iter().map(|(role, _)| *role).collect()).unwrap_or_default()
}

fn suggestion(roles: &BTreeSet<Role>, name: &str) -> String {
    let ours = FLAGS.iter().filter(|flag| flag.defaults.iter().any(|(role, _)| roles.contains(role)));
    let near = ours.map(|flag| (distance(flag.name, name), flag.name)).min();
    match near {
        Some((steps, near)) if steps <= 2 => format!("; did you mean --{near}?"),
        Some(_) | None => "; --help lists them".to_string(),
    }
}

/// How many letters must change to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let change = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

fn check(flag: &FlagRow, value: &str) -> Result<(), String> {
    let fine = match flag.kind {
        Kind::Text => true,
        Kind::Bool => boolean(value).is_some(),
        Kind::Int => value.parse::<i64>().is_ok(),
        Kind::Float => value.parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0),
        Kind::Duration => duration(value).is_some(),
        Kind::Gates => return gates(value).map(|_| ()),
        Kind::Labels => return labels(value).map(|_| ()),
    };
    if fine { Ok(()) } else { Err(format!("--{} cannot be {value:?}; write --{0}={}", flag.name, example(flag.kind))) }
}

fn example(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "true or false",
        Kind::Text => "TEXT",
        Kind::Int => "10",
        Kind::Float => "5.0",
        Kind::Duration => "1m30s",
        Kind::Gates => "Topology=true",
        Kind::Labels => "team:storage",
    }
}

/// The words Go reads as truth.
pub fn boolean(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A duration as Go writes it: `1h2m3.5s`, `300ms`, `0`.
pub fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest.is_empty() {
        return None;
    }
    let mut nanos = 0.0_f64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let number: f64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let letters = rest.bytes().take_while(|b| !b.is_ascii_digit() && *b != b'.').count();
        let unit = match rest.get(..letters)? {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 6e10,
            "h" => 3.6e12,
            _ => return None,
        };
        rest = rest.get(letters..)?;
        nanos += number * unit;
    }
    Duration::try_from_secs_f64(nanos / 1e9).ok()
}

/// Gates, as they are given: `Name=true,Other=false`. An error is a sentence.
pub fn gates(value: &str) -> Result<BTreeMap<String, bool>, String> {
    let mut all = BTreeMap::new();
    for (name, on) in crate::gates::pairs(value)? {
        if !GATES.iter().any(|(known, _)| *known == name) && !Migration::is_gate(name) {
            return Err(format!("--feature-gates knows no gate {name}; docs/flags.md lists them"));
        }
        all.insert(name.to_string(), on);
    }
    Ok(all)
}

fn labels(value: &str) -> Result<BTreeMap<String, String>, String> {
    value
        .split(',')
        .filter(|pair| !pair.is_empty())
        .map(|pair| match pair.split(':').collect::<Vec<_>>()[..] {
            [key, value] => Ok((key.to_string(), value.to_string())),
            _ => Err(format!("--leader-election-labels cannot read {pair:?}; write each as key:value")),
        })
        .collect()
}

impl Flags {
    /// Whether it was given on the command line.
    pub fn is_given<T>(&self, flag: Flag<T>) -> bool {
        self.given.contains_key(flag.name())
    }

    /// The value for a role: the one that was given, or the role's default; `None` for a role that has no such flag.
    fn value<T>(&self, role: Role, flag: Flag<T>) -> Option<&str> {
        let default = || {
            let row = FLAGS.iter().find(|row| row.name == flag.name())?;
            row.defaults.iter().find(|(owner, _)| *owner == role).map(|(_, value)| *value)
        };
        self.given.get(flag.name()).map(String::as_str).or_else(default)
    }

    /// Its text for a role; empty for a role without it.
    pub fn text(&self, role: Role, flag: Flag<Text>) -> &str {
        self.value(role, flag).unwrap_or_default()
    }

    /// Its truth for a role; false for a role without it.
    pub fn is(&self, role: Role, flag: Flag<bool>) -> bool {
        self.value(role, flag).and_then(boolean).unwrap_or_default()
    }

    /// Its whole number for a role; 0 for a role without it.
    pub fn int(&self, role: Role, flag: Flag<i64>) -> i64 {
        self.value(role, flag).and_then(|value| value.parse().ok()).unwrap_or_default()
    }

    /// Its number for a role; 0 for a role without it.
    pub fn float(&self, role: Role, flag: Flag<f64>) -> f64 {
        self.value(role, flag).and_then(|value| value.parse().ok()).unwrap_or_default()
    }

    /// Its duration for a role; none at all for a role without it.
    pub fn duration(&self, role: Role, flag: Flag<Duration>) -> Duration {
        self.value(role, flag).and_then(duration).unwrap_or_default()
    }

    /// A gate, if it was given.
    pub fn gate(&self, name: &str) -> Option<bool> {
        gates(self.given.get(table::FEATURE_GATES.name())?).ok()?.get(name).copied()
    }

    /// How far the migration of each in-tree plugin has come, as the gates of migration say. An error is a sentence.
    pub fn migration(&self) -> Result<Migration, String> {
        let given = self.given.get(table::FEATURE_GATES.name()).map_or("", String::as_str);
        let of_migration = |(name, _): &(&str, bool)| Migration::is_gate(name);
        let given = crate::gates::pairs(given)?.into_iter().filter(of_migration);
        Migration::of_gates(given).map_err(|error| format!("--feature-gates: {error}"))
    }

    /// The labels for the Lease.
    pub fn labels(&self, role: Role) -> Labels {
        self.value(role, table::LEADER_ELECTION_LABELS).and_then(|value| labels(value).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(roles: &[Role], line: &str) -> Result<Flags, String> {
        let arguments: Vec<String> = line.split_whitespace().map(String::from).collect();
        parse(&roles.iter().copied().collect(), &arguments)
    }

    #[test]
    fn one_dash_or_two_and_both_ways_to_give_a_value_are_the_same() {
        for line in ["--timeout 30s", "--timeout=30s", "-timeout 30s", "-timeout=30s"] {
            let flags = read(&[Role::Attacher], line).unwrap();
            assert_eq!(flags.duration(Role::Attacher, table::TIMEOUT), Duration::from_secs(30), "{line}");
        }
        let flags = read(&[Role::Provisioner], "--leader-election -v=5 --strict-topology=false").unwrap();
        assert!(
            flags.is(Role::Provisioner, table::LEADER_ELECTION) && !flags.is(Role::Provisioner, table::STRICT_TOPOLOGY)
        );
        assert_eq!(flags.int(Role::Provisioner, table::V), 5);
    }

    #[test]
    fn each_role_keeps_its_own_default() {
        let flags = read(&[Role::Provisioner, Role::Attacher], "").unwrap();
        assert_eq!(flags.duration(Role::Provisioner, table::TIMEOUT), Duration::from_secs(10));
        assert_eq!(flags.duration(Role::Attacher, table::TIMEOUT), Duration::from_secs(15));
    }

    #[test]
    fn what_cannot_be_understood_is_one_sentence() {
        let wrong = [
            ("--no-such-thing", "there is no flag --no-such-thing; --help lists them"),
            ("--timout 5s", "there is no flag --timout; did you mean --timeout?"),
            ("--timeout", "--timeout needs a value; write --timeout=1m30s"),
            ("--timeout=soon", "--timeout cannot be \"soon\"; write --timeout=1m30s"),
            ("--leader-election=maybe", "--leader-election cannot be \"maybe\"; write --leader-election=true or false"),
            ("--workers=3", "--workers is a flag of the resizer, which is not among the roles of this process"),
            ("--feature-gates=Tea=true", "--feature-gates knows no gate Tea; docs/flags.md lists them"),
            (
                "--feature-gates=Topology",
                "--feature-gates cannot read \"Topology\"; write it as Topology=true or Topology=false",
            ),
            (
                "--leader-election-labels=a:b:c",
                "--leader-election-labels cannot read \"a:b:c\"; write each as key:value",
            ),
            ("stray", "stray is no flag; flags begin with two dashes"),
        ];
        for (line, sentence) in wrong {
            assert_eq!(read(&[Role::Attacher], line).map(|_| ()), Err(sentence.to_string()));
        }
    }

    #[test]
    fn durations_are_those_of_go() {
        let same = [("1m30s", 90_000), ("0", 0), ("300ms", 300), ("1.5h", 5_400_000), ("5m0s", 300_000)];
        for (text, millis) in same {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "5", "s", "1d", "-1s", "1 s", "NaNs"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn deprecated_flags_are_taken_with_a_warning_and_gates_add_up() {
        let flags = read(
            &[Role::Provisioner],
            "--metrics-address=:1 --feature-gates=Topology=false --feature-gates=AllAlpha=true",
        )
        .unwrap();
        assert_eq!(flags.warnings.len(), 1);
        assert_eq!(
            (flags.gate("Topology"), flags.gate("AllAlpha"), flags.gate("AllBeta")),
            (Some(false), Some(true), None)
        );
    }

    #[test]
    fn every_default_in_the_table_is_a_value_of_its_flag() {
        for flag in FLAGS {
            for (role, default) in flag.defaults {
                assert!(check(flag, default).is_ok(), "--{} of {}: {default:?}", flag.name, role.name());
            }
            assert_eq!(FLAGS.iter().filter(|other| other.name == flag.name).count(), 1, "--{} twice", flag.name);
        }
    }
}
