//! What was measured, and how it is told.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Every figure by what it is and whose it is, each with all its rounds.
#[derive(Default)]
pub struct Figures {
    all: BTreeMap<(String, String), Vec<f64>>,
}

impl Figures {
    /// One more round of a figure.
    pub fn add(&mut self, what: impl Into<String>, whose: &str, figure: f64) {
        self.all.entry((what.into(), whose.into())).or_default().push(figure);
    }

    /// A figure's rounds, in their order.
    pub fn rounds(&self, what: &str, whose: &str) -> &[f64] {
        self.all.get(&(what.to_string(), whose.to_string())).map_or(&[], Vec::as_slice)
    }

    /// The median of its rounds.
    pub fn median(&self, what: &str, whose: &str) -> Option<f64> {
        median(self.rounds(what, whose))
    }

    /// All rounds of all figures, for programs.
    pub fn json(&self) -> serde_json::Value {
        let figure = |((what, whose), rounds): (&(String, String), &Vec<f64>)| {
            let median = self.median(what, whose);
            serde_json::json!({ "what": what, "whose": whose, "median": median, "rounds": rounds })
        };
        serde_json::Value::Array(self.all.iter().map(figure).collect())
    }

    /// A figure as text, as exact as it deserves.
    pub fn shown(&self, what: &str, whose: &str) -> String {
        self.median(what, whose).map_or("–".into(), shown)
    }

    /// All figures of one whose names begin so and whose rest is wanted, in one line.
    pub fn with_prefix(&self, prefix: &str, whose: &str, wanted: fn(&str) -> bool) -> String {
        let mut all = Vec::new();
        for (what, owner) in self.all.keys().filter(|(what, owner)| owner == whose && what.starts_with(prefix)) {
            let rest = &what[prefix.len()..];
            if wanted(rest) {
                all.push(format!("{rest} {}", self.shown(what, owner)));
            }
        }
        all.join(", ")
    }

    /// How many times as large one driver's figure is as the other's.
    pub fn ratio(&self, what: &str, whose: &str, of: &str) -> String {
        match (self.median(what, whose), self.median(what, of)) {
            (Some(one), Some(other)) if other > 0.0 => format!("{}×", shown(one / other)),
            _ => "–".into(),
        }
    }
}

fn median(rounds: &[f64]) -> Option<f64> {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len().is_multiple_of(2) { (sorted[middle - 1] + upper) / 2.0 } else { upper })
}

/// How many times as large one figure is as the other, round by round: what disturbs a round disturbs both of its figures.
pub fn ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    let pairs = ours.iter().zip(theirs).filter(|(_, theirs)| **theirs > 0.0);
    pairs.map(|(ours, theirs)| ours / theirs).collect()
}

/// The median as text, with the least and the most where there are several.
pub fn spread(rounds: &[f64], unit: &str) -> String {
    let Some(middle) = median(rounds) else { return "–".into() };
    let (least, most) = (rounds.iter().copied().fold(middle, f64::min), rounds.iter().copied().fold(middle, f64::max));
    let middle = shown(middle);
    if rounds.len() > 1 {
        format!("{middle}{unit} ({}–{})", shown(least), shown(most))
    } else {
        format!("{middle}{unit}")
    }
}

/// A figure as text, as exact as it deserves.
pub fn shown(figure: f64) -> String {
    match figure {
        large if large >= 100.0 => format!("{large:.0}"),
        middle if middle >= 10.0 => format!("{middle:.1}"),
        small if small >= 0.1 => format!("{small:.2}"),
        tiny => format!("{tiny:.3}"),
    }
}

/// A table in Markdown, padded so that it can be read as it is.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].chars().count(), 3]).max().unwrap_or(3)
    };
    let widths: Vec<usize> = (0..head.len()).map(wide).collect();
    let mut text = String::new();
    let line = |text: &mut String, cells: &mut dyn Iterator<Item = &str>| {
        for (cell, width) in cells.zip(&widths) {
            let _ = write!(text, "| {cell}{} ", " ".repeat(width - cell.chars().count()));
        }
        text.push_str("|\n");
    };
    line(&mut text, &mut head.iter().copied());
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    line(&mut text, &mut rules.iter().map(String::as_str));
    for row in rows {
        line(&mut text, &mut row.iter().map(String::as_str));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_the_rounds_is_told() {
        let mut figures = Figures::default();
        for figure in [9.0, 1.0, 2.0] {
            figures.add("x", "a", figure);
        }
        figures.add("x", "b", 4.0);
        figures.add("x", "b", 8.0);
        assert_eq!(figures.median("x", "a"), Some(2.0));
        assert_eq!(figures.median("x", "b"), Some(6.0));
        assert_eq!(figures.ratio("x", "b", "a"), "3.00×");
        assert_eq!(figures.ratio("x", "b", "nobody"), "–");
    }

    #[test]
    fn a_slow_round_is_slow_for_both_and_leaves_their_ratio() {
        let (ours, theirs) = ([200.0, 100.0, 220.0], [100.0, 50.0, 100.0]);
        assert_eq!(spread(&ratios(&ours, &theirs), "×"), "2.00× (2.00–2.20)");
        assert_eq!(spread(&ratios(&ours, &[100.0]), "×"), "2.00×");
        assert_eq!(spread(&ratios(&ours, &[]), "×"), "–");
        assert!(ratios(&ours, &[0.0]).is_empty());
    }

    #[test]
    fn a_table_is_padded() {
        let rows = [vec!["long name".to_string(), "1".to_string()]];
        assert_eq!(table(&["a", "b"], &rows), "| a         | b   |\n| --------- | --- |\n| long name | 1   |\n");
    }
}
