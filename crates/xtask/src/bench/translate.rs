//! The translation library beside Kubernetes' own, in turn, each on one core, on the same volumes and classes.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::document;
use super::figures::{Figures, ratios, shown, spread, table};

const OURS: &str = "ours";
const THEIRS: &str = "Go";
const PEER: &str = "bench-translations";
const CRATE: &str = "rules-translate";
/// The files of cases, and what they hold.
const FILES: [(&str, &str); 2] = [
    ("crates/rules-translate/benches/volumes.jsonl", "Volumes and classes as a cluster holds them"),
    ("crates/rules-translate/src/tests/golden.jsonl", "The recorded cases, mostly of few fields"),
];
/// The operations: ours, theirs, and what they are.
const OPERATIONS: [(&str, &str, &str); 6] = [
    ("pv_to_csi", "pv_to_csi", "in-tree volume to CSI"),
    ("pv_to_in_tree", "pv_to_in_tree", "CSI volume to in-tree"),
    ("there_and_back", "there_and_back", "to CSI and back"),
    ("there_and_back_moved", "there_and_back", "to CSI and back, ours without a copy"),
    ("class", "class", "in-tree class to CSI"),
    ("copy", "copy", "a copy of a volume, nothing else"),
];

/// How much is measured.
pub struct Settings {
    doc: Option<PathBuf>,
    rounds: usize,
    seconds: &'static str,
}

impl Settings {
    /// From the command line; nothing if that is wrong.
    pub fn read(options: &[&str]) -> Option<Settings> {
        let mut settings = Settings { doc: None, rounds: 5, seconds: "0.5" };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match *option {
                "--doc" => settings.doc = Some(options.next()?.into()),
                "--quick" => (settings.rounds, settings.seconds) = (1, "0.1"),
                _ => return None,
            }
        }
        Some(settings)
    }
}

/// Measures and reports.
pub fn run(settings: &Settings) -> io::Result<String> {
    let peer = prove_cluster::peer(PEER).map_err(io::Error::other)?;
    let root = crate::tree::root();
    let files = FILES.map(|(file, _)| root.join(file));
    let mut figures = Figures::default();
    // From the first run of Go's its allocations as well.
    let mut counted = printed(bench("allocations", &root).args(&files))?;
    for round in 0..settings.rounds {
        let mut theirs = Command::new(&peer);
        // One core for the program and its collector.
        theirs.env("GOMAXPROCS", "1").arg(settings.seconds).args(&files);
        let mut ours = bench("translate", &root);
        ours.arg(settings.seconds).args(&files);
        // Whoever is first in one round is last in the next.
        let (ours, theirs) = if round % 2 == 0 {
            let ours = printed(&mut ours)?;
            (ours, printed(&mut theirs)?)
        } else {
            let theirs = printed(&mut theirs)?;
            (printed(&mut ours)?, theirs)
        };
        for (whose, lines) in [(OURS, &ours), (THEIRS, &theirs)] {
            lines
                .iter()
                .for_each(|line| figures.add(name(line), whose, line["perSecond"].as_f64().unwrap_or_default()));
        }
        if round == 0 {
            note(&mut figures, &theirs, THEIRS);
            note(&mut figures, &std::mem::take(&mut counted), OURS);
        }
    }
    let report = report(settings, &figures);
    if let Some(doc) = &settings.doc {
        document::refresh(doc, "make bench-translate", &report)?;
    }
    Ok(report)
}

/// One of our benches, built in release where it is not.
fn bench(name: &str, root: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["bench", "--quiet", "--locked", "--package", CRATE, "--bench", name, "--"]);
    cargo
}

fn printed(command: &mut Command) -> io::Result<Vec<Value>> {
    let done = command.output()?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stderr);
        return Err(io::Error::other(format!("a bench ended with {}: {}", done.status, words.trim())));
    }
    let text = String::from_utf8_lossy(&done.stdout);
    text.lines().map(|line| serde_json::from_str(line).map_err(io::Error::other)).collect()
}

/// The allocations of a run.
fn note(figures: &mut Figures, lines: &[Value], whose: &str) {
    for line in lines {
        for what in ["allocations", "bytes", "cases"] {
            figures.add(format!("{what} of {}", name(line)), whose, line[what].as_f64().unwrap_or_default());
        }
    }
}

/// An operation on a file.
fn name(line: &Value) -> String {
    let text = |key: &str| line[key].as_str().unwrap_or_default().to_string();
    let file = text("file");
    format!("{} {}", text("op"), FILES.iter().position(|(known, _)| file.ends_with(known)).unwrap_or_default())
}

fn report(settings: &Settings, figures: &Figures) -> String {
    let rounds = settings.rounds;
    let mut text = format!("{}; {rounds} rounds, in turn; the median is told.\n", document::machine());
    for (file, (_, title)) in FILES.iter().enumerate() {
        let rows = OPERATIONS.iter().map(|(ours, theirs, what)| {
            let (ours, theirs) = (format!("{ours} {file}"), format!("{theirs} {file}"));
            let thousands =
                |name: &str, whose: &str| figures.median(name, whose).map_or("–".into(), |rate| shown(rate / 1000.0));
            let ratios = ratios(figures.rounds(&ours, OURS), figures.rounds(&theirs, THEIRS));
            let mut row = vec![(*what).to_string(), figures.shown(&format!("cases of {ours}"), OURS)];
            row.extend([thousands(&ours, OURS), thousands(&theirs, THEIRS), spread(&ratios, "×")]);
            for unit in ["allocations", "bytes"] {
                row.push(figures.shown(&format!("{unit} of {ours}"), OURS));
                row.push(figures.shown(&format!("{unit} of {theirs}"), THEIRS));
            }
            row
        });
        let head = ["", "cases", "ours", "Go", "ours : Go", "allocations, ours", "Go", "bytes, ours", "Go"];
        text += &format!("\n### {title}: thousands a second of processor time, and what each allocates\n\n");
        text += &table(&head, &rows.collect::<Vec<_>>());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_print_comes_together_in_one_row() {
        let line = |op: &str, rate: f64| {
            let file = format!("/anywhere/{}", FILES[1].0);
            serde_json::json!({"file": file, "op": op, "perSecond": rate, "cases": 2, "allocations": 7.0, "bytes": 9.0})
        };
        let mut figures = Figures::default();
        for (whose, op, rate) in [(OURS, "there_and_back_moved", 4e6), (THEIRS, "there_and_back", 1e6)] {
            let line = line(op, rate);
            figures.add(name(&line), whose, rate);
            note(&mut figures, &[line], whose);
        }
        let report = report(&Settings { doc: None, rounds: 1, seconds: "1" }, &figures);
        let row = report.lines().rfind(|line| line.starts_with("| to CSI and back, ours without a copy")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[2..], ["2.00", "4000", "1000", "4.00×", "7.00", "7.00", "9.00", "9.00", ""], "{report}");
    }
}
