//! What an exploration found, for people: whether it was complete within its bounds or where it stopped, which of the
//! counts were used up, and the shortest history of a broken law.

use std::fmt;

use crate::bounds::{Bounds, Budget};
use crate::cluster::POD_UID;
use crate::laws::Violation;

/// The result of exploring one world.
#[derive(Clone, Debug)]
pub struct Report {
    pub name: &'static str,
    /// One sentence about it.
    pub about: &'static str,
    /// How much trouble there could be.
    pub bounds: Bounds,
    /// Different states found.
    pub states: usize,
    pub transitions: u64,
    /// Steps of the longest shortest history.
    pub depth: u32,
    /// States in which nobody has anything left to do.
    pub resting: usize,
    /// Time it took.
    pub seconds: f64,
    /// States found whose steps were not tried, because the exploration stopped first.
    pub open: usize,
    /// The least that was left of each count in any state.
    pub least: Budget,
    /// Every state within the bounds was reached.
    pub complete: bool,
    /// The law that does not hold, if one does not.
    pub broken: Option<Counterexample>,
}

/// The shortest history that breaks a law.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// The law, and what broke it.
    pub violation: Violation,
    /// One line per step.
    pub script: Vec<String>,
    /// The state it ends in.
    pub state: String,
}

impl Report {
    /// Every law held in every state within the bounds.
    pub fn holds(&self) -> bool {
        self.complete && self.broken.is_none()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match (&self.broken, self.complete) {
            (Some(_), _) => "a law is broken".into(),
            (None, true) => "every law holds in every state within the bounds".into(),
            (None, false) => {
                format!(
                    "stopped at {} states, {} of them not looked into; no law is broken so far",
                    self.states, self.open
                )
            }
        };
        writeln!(f, "{}: {verdict}", self.name)?;
        writeln!(f, "  {}", self.about)?;
        writeln!(f, "  bounds: {}", self.bounds.budget)?;
        let listed = |names: Vec<&str>| if names.is_empty() { "nothing".into() } else { names.join(", ") };
        writeln!(f, "  used up: {}", listed(self.bounds.budget.used_up(&self.least)))?;
        let unused = self.bounds.budget.unused(&self.least);
        if self.complete && !unused.is_empty() {
            writeln!(f, "  never came up: {}", unused.join(", "))?;
        }
        writeln!(
            f,
            "  {} states, {} of them at rest; {} steps tried; depth {}; {:.1} seconds",
            self.states, self.resting, self.transitions, self.depth, self.seconds
        )?;
        if let Some(broken) = &self.broken {
            write!(f, "{broken}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (law, found) = (self.violation.law(), self.violation.to_string());
        writeln!(f, "broken after {} steps: {law}: {}", self.script.len(), short(&found))?;
        for (at, line) in self.script.iter().enumerate() {
            writeln!(f, "{:>4}. {}", at + 1, short(line))?;
        }
        writeln!(f, "the world then:")?;
        f.write_str(&short(&self.state))
    }
}

/// Hashes and the uids of pods are recognised by their first digits.
fn short(text: &str) -> String {
    let text = &text.replace(POD_UID, "");
    const HASH: usize = 64;
    const KEPT: usize = 6;
    let mut out = String::with_capacity(text.len());
    let mut run = String::new();
    for letter in text.chars().chain(std::iter::once('\n')) {
        if letter.is_ascii_hexdigit() {
            run.push(letter);
            continue;
        }
        out.push_str(if run.len() == HASH { &run[..KEPT] } else { &run });
        run.clear();
        out.push(letter);
    }
    out.pop();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_shortened_and_nothing_else() {
        let hash = "0123456789abcdef".repeat(4);
        assert_eq!(short(&format!("csi-{hash} on node-a, 90000001")), "csi-012345 on node-a, 90000001");
        assert_eq!(short(&format!("pod 90000001{POD_UID}")), "pod 90000001");
    }
}
