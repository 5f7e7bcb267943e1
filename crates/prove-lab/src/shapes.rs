//! Every shape of something that is built by choosing, and what a function makes of each, as a table.
//!
//! A builder asks for one choice after the other; it is called once for every way to answer. It asks only for what
//! matters after the choices before, so that a table has no rows for fields that a variant does not have.

use std::path::Path;

use control::{Action, Decision, Reason};

use crate::golden;

/// The choices of one row.
#[derive(Debug, Default)]
pub struct Choices {
    /// The answers given, each with how many there are.
    answers: Vec<(usize, usize)>,
    asked: Vec<(&'static str, &'static str)>,
}

impl Choices {
    /// One of some values, which print as given.
    pub fn one_of<T: Clone>(&mut self, field: &'static str, values: &[(&'static str, T)]) -> T {
        let turn = self.asked.len();
        if turn == self.answers.len() {
            self.answers.push((0, values.len()));
        }
        let (label, value) = &values[self.answers[turn].0];
        self.asked.push((field, label));
        value.clone()
    }

    /// One of some words.
    pub fn word(&mut self, field: &'static str, words: &[&'static str]) -> &'static str {
        let values: Vec<(&'static str, &'static str)> = words.iter().map(|word| (*word, *word)).collect();
        self.one_of(field, &values)
    }

    /// No or yes.
    pub fn flag(&mut self, field: &'static str) -> bool {
        self.one_of(field, &[("no", false), ("yes", true)])
    }

    /// Goes on to the next row; `false` if there is none.
    fn advance(&mut self) -> bool {
        self.asked.clear();
        while let Some((answer, of)) = self.answers.pop() {
            if answer + 1 < of {
                self.answers.push((answer + 1, of));
                return true;
            }
        }
        false
    }
}

/// What one row comes to, by its choices in order.
type Row = (Vec<(&'static str, &'static str)>, String);
/// The same with the values that share it.
type Merged = (Vec<(&'static str, String)>, String);

/// Calls `build` for every way to choose, and compares what it comes to with the table `src/tests/tables/NAME.txt` of a
/// crate. Fields that make no difference, given the fields before them, are left out; values that come to the same
/// share a row.
pub fn check_table(manifest: &str, name: &str, mut build: impl FnMut(&mut Choices) -> String) {
    let (mut choices, mut rows) = (Choices::default(), Vec::<Row>::new());
    loop {
        let result = build(&mut choices);
        rows.push((choices.asked.clone(), result));
        if !choices.advance() {
            break;
        }
    }
    let mut text = format!("# {} shapes. Each row: the facts that matter, and what is decided on them.\n", rows.len());
    for (facts, result) in merged(&rows, 0) {
        let facts: Vec<String> = facts.iter().map(|(field, value)| format!("{field}={value}")).collect();
        let facts = if facts.is_empty() { "always".into() } else { facts.join(" ") };
        text += &format!("{facts} -> {result}\n");
    }
    let path = Path::new(manifest).join("src/tests/tables").join(name).with_extension("txt");
    golden::check(&path, &text).unwrap_or_else(|difference| panic!("{difference}"));
}

/// Rows that agree on their first `depth` choices, merged where the next ones make no difference.
fn merged(rows: &[Row], depth: usize) -> Vec<Merged> {
    let Some((field, _)) = rows[0].0.get(depth) else { return vec![(Vec::new(), rows[0].1.clone())] };
    let (mut groups, mut all) = (Vec::<(Vec<&str>, Vec<Merged>)>::new(), Vec::new());
    for run in rows.chunk_by(|one, other| one.0[depth] == other.0[depth]) {
        let (value, below) = (run[0].0[depth].1, merged(run, depth + 1));
        all.push(value);
        match groups.iter_mut().find(|(_, same)| *same == below) {
            Some((values, _)) => values.push(value),
            None => groups.push((vec![value], below)),
        }
    }
    if let [(_, below)] = &mut groups[..] {
        return std::mem::take(below);
    }
    let rows = groups.into_iter().flat_map(|(values, below)| {
        let value = alternatives(&values, &all);
        below.into_iter().map(move |(mut facts, result)| {
            facts.insert(0, (*field, value.clone()));
            (facts, result)
        })
    });
    rows.collect()
}

/// Some of the values a field may have: by name, or by the one that is missing.
fn alternatives(values: &[&str], all: &[&str]) -> String {
    let mut others = all.iter().filter(|value| !values.contains(value));
    match (others.next(), others.next()) {
        (Some(other), None) if values.len() > 1 => format!("!{other}"),
        _ => values.join("|"),
    }
}

/// A decision as a table tells it: the action's name, and the code of the reason.
pub fn verdict<A: Action, C: Reason>(decision: &Decision<A, C>) -> String {
    verdict_with(decision, |action| action.name().to_string())
}

/// The same, with more said of the action than its name.
pub fn verdict_with<A, C: Reason>(decision: &Decision<A, C>, say: impl Copy + Fn(&A) -> String) -> String {
    match decision {
        Decision::Rest(why) => format!("Rest {}", why.code.name()),
        Decision::Wait(_, why) => format!("Wait {}", why.code.name()),
        Decision::Do(action, why) => format!("Do({}) {}", say(action), why.code.name()),
        Decision::Either(first, second) => format!("{}, else {}", verdict_with(first, say), verdict_with(second, say)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(mut build: impl FnMut(&mut Choices) -> String) -> Vec<String> {
        let (mut choices, mut rows) = (Choices::default(), Vec::new());
        loop {
            let result = build(&mut choices);
            rows.push((choices.asked.clone(), result));
            if !choices.advance() {
                break;
            }
        }
        merged(&rows, 0).iter().map(|(facts, result)| format!("{facts:?} {result}")).collect()
    }

    #[test]
    fn fields_without_a_difference_are_left_out_and_equal_values_share_a_row() {
        let rows = rows(|choices| match choices.word("size", &["small", "middle", "large"]) {
            "large" => format!("{}", choices.flag("deep")),
            _ => {
                choices.flag("deep");
                "same".into()
            }
        });
        assert_eq!(
            rows,
            [
                r#"[("size", "!large")] same"#,
                r#"[("size", "large"), ("deep", "no")] false"#,
                r#"[("size", "large"), ("deep", "yes")] true"#,
            ]
        );
    }
}
