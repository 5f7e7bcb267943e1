//! The tables, the JSON, and the document they go into.

use std::fmt::Write;
use std::fs;
use std::io;

use super::contender::{Contender, Operation};
use super::{CROWDS, Settings};
use crate::bench::document;
use crate::bench::figures::{Figures, ratios, shown, spread, table};

pub(super) const SIZE: &str = "the program, MB";
pub(super) const READY: &str = "exec to the first call, ms";
pub(super) const IDLE: &str = "resident memory, idle, MB";
pub(super) const OURS: &str = "ours, all in one";
pub(super) const PROVISIONER: &str = "Go csi-provisioner";
pub(super) const ATTACHER: &str = "Go csi-attacher";
pub(super) const RESIZER: &str = "Go csi-resizer";
/// The Go programs that together do what ours does in one process.
const GO: [&str; 3] = [PROVISIONER, ATTACHER, RESIZER];
pub(super) const ON_CLAIMS: &str = "on the claim";
pub(super) const IN_JOURNAL: &str = "in a journal";

/// What the document calls the place of these tables.
const PLACE: &str = "make bench-sidecars";

/// Writes a volume of the Go programs, without events.
const GO_WRITES: [(Operation, f64); 5] = [
    (Operation::Provision, 1.0),
    (Operation::Attach, 3.0),
    (Operation::Detach, 2.0),
    (Operation::Resize, 3.0),
    (Operation::Delete, 2.0),
];

/// Who uses processor time, and all of them.
pub const PARTS: [&str; 4] = ["program", "kube-apiserver", "etcd", "together"];

/// The name of the figure of an operation's rate.
pub fn rate(operation: Operation) -> String {
    format!("{}, a second", operation.name())
}

/// The name of the figure of the processor time that a part spends on an operation.
pub fn processor(operation: Operation, part: &str) -> String {
    format!("{}: processor, {part}, ms", operation.name())
}

/// Writes what was asked for and gives the text for people.
pub fn write(settings: &Settings, figures: &Figures) -> io::Result<String> {
    let text = tables(settings, figures);
    if let Some(file) = &settings.json {
        let told = serde_json::json!({
            "machine": document::machine(), "rounds": settings.rounds, "volumes": settings.size.volumes,
            "figures": figures.json(),
        });
        fs::write(file, serde_json::to_string_pretty(&told)?)?;
    }
    if let Some(file) = &settings.doc {
        document::refresh(file, PLACE, &text)?;
    }
    Ok(text)
}

fn tables(settings: &Settings, figures: &Figures) -> String {
    let mut text = String::new();
    let (volumes, slow, rounds) = (settings.size.volumes, settings.slow.volumes, settings.rounds);
    let _ = writeln!(
        text,
        "{}; {volumes} volumes ({slow} for *Go, default*, once), {rounds} rounds, requests and processor time counted in the first two. The median is told, and in parentheses the \
         least and the most; a ratio is taken within each round.\n",
        document::machine()
    );
    if !settings.only.is_empty() {
        let _ = writeln!(text, "### Volumes a second\n\n{}", rates(figures));
        let _ = writeln!(text, "### Milliseconds of processor time a volume\n\n{}", processors(figures));
        let _ =
            writeln!(text, "### Requests to the API server and calls to the driver, a volume\n\n{}", requests(figures));
        let _ = writeln!(text, "### Start and memory\n\n{}", resources(settings, figures));
    }
    if settings.has_intents {
        let title = "### The intent: a finalizer on each claim, or one journal for all";
        let _ = writeln!(text, "{title}\n\n{}", intents(figures));
    }
    text
}

/// Whose rates are columns of a table.
const MEASURED: [Contender; 5] =
    [Contender::GoDefault, Contender::GoLifted, Contender::Ours, Contender::OursSingle, Contender::OursUpstream];

fn rates(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for operation in Operation::ALL {
        let what = rate(operation);
        let ours = figures.rounds(&what, Contender::Ours.name());
        let mut row = vec![operation.name().to_string()];
        row.extend(MEASURED.map(|who| spread(figures.rounds(&what, who.name()), "")));
        let go = [Contender::GoDefault, Contender::GoLifted];
        row.extend(go.map(|who| beaten(ours, figures.rounds(&what, who.name()))));
        rows.push(row);
    }
    let head = [
        "",
        "Go, default",
        "Go, limits lifted",
        "ours, all in one",
        "ours, one role",
        "ours, no intent",
        "all in one : default",
        "all in one : lifted",
    ];
    let mut text = table(&head, &rows);
    for operation in Operation::ALL {
        let (what, other) = (rate(operation), Contender::OursOther.name());
        let pairs = ratios(figures.rounds(&what, Contender::Ours.name()), figures.rounds(&what, other));
        if !pairs.is_empty() {
            let _ = writeln!(text, "\n{}: all in one : {other} = {}", operation.name(), spread(&pairs, "×"));
        }
    }
    text
}

/// How many times as fast ours is. What was measured once is held against every round.
fn beaten(ours: &[f64], theirs: &[f64]) -> String {
    let theirs = if let [once] = theirs { vec![*once; ours.len()] } else { theirs.to_vec() };
    spread(&ratios(ours, &theirs), "×")
}

fn processors(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for operation in Operation::ALL {
        let fast = Contender::ALL.into_iter().filter(|who| *who != Contender::GoDefault && who.can(operation));
        for who in fast {
            let of = |part: &str, who: Contender| figures.rounds(&processor(operation, part), who.name());
            if of(PARTS[0], who).is_empty() {
                continue;
            }
            let mut row = vec![operation.name().to_string(), who.name().to_string()];
            row.extend(PARTS.map(|part| spread(of(part, who), "")));
            row.push(spread(&ratios(of(PARTS[0], who), of(PARTS[0], Contender::GoLifted)), "×"));
            row.push(spread(&ratios(of(PARTS[3], who), of(PARTS[3], Contender::GoLifted)), "×"));
            rows.push(row);
        }
    }
    let head = ["", "", PARTS[0], PARTS[1], PARTS[2], PARTS[3], "program : Go, lifted", "together : Go, lifted"];
    table(&head, &rows)
}

fn requests(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for (operation, documented) in GO_WRITES {
        let name = operation.name();
        let mut row = vec![name.to_string(), shown(documented)];
        for who in [Contender::GoLifted, Contender::Ours] {
            let each = |what: &str| figures.shown(&format!("{name}: {what}"), who.name());
            row.extend([each("writes"), each("reads"), each("events"), each("calls")]);
        }
        row.push(figures.with_prefix(&format!("{name}: "), Contender::Ours.name(), is_request));
        rows.push(row);
    }
    let head = [
        "",
        "writes, Go, as documented",
        "Go: writes",
        "reads",
        "events",
        "calls",
        "ours: writes",
        "reads",
        "events",
        "calls",
        "ours in full",
    ];
    table(&head, &rows)
}

fn is_request(what: &str) -> bool {
    ["create ", "patch ", "update ", "delete ", "get ", "look "].iter().any(|verb| what.starts_with(verb))
}

fn resources(settings: &Settings, figures: &Figures) -> String {
    let mut rows = Vec::new();
    let mut add = |what: &str, go: &[&str]| {
        let mut row = vec![what.to_string(), figures.shown(what, OURS)];
        row.extend((0..GO.len()).map(|at| go.get(at).map_or("–".into(), |go| figures.shown(what, go))));
        let sum: f64 = go.iter().filter_map(|go| figures.median(what, go)).sum();
        let ratio = figures.median(what, OURS).filter(|_| sum > 0.0).map(|ours| format!("{}×", shown(ours / sum)));
        row.push(ratio.unwrap_or("–".into()));
        rows.push(row);
    };
    add(SIZE, &GO);
    add(READY, &[Contender::GoLifted.name()]);
    add(IDLE, &[Contender::GoLifted.name()]);
    for count in &settings.kept {
        add(&format!("resident memory, {count} volumes, MB"), &GO);
    }
    table(&["", OURS, PROVISIONER, ATTACHER, RESIZER, "ours : all Go"], &rows)
}

fn intents(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for at_once in CROWDS {
        for what in ["a second", "ms, middle", "ms, 99 of 100", "writes a volume", "bytes a volume"] {
            let name = format!("intent, {at_once} at once: {what}");
            let ratio = figures.ratio(&name, IN_JOURNAL, ON_CLAIMS);
            rows.push(vec![
                format!("{at_once} at once: {what}"),
                figures.shown(&name, ON_CLAIMS),
                figures.shown(&name, IN_JOURNAL),
                ratio,
            ]);
        }
    }
    table(&["", ON_CLAIMS, IN_JOURNAL, "journal : claim"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_was_measured_once_is_held_against_every_round() {
        assert_eq!(beaten(&[20.0, 40.0], &[10.0]), "3.00× (2.00–4.00)");
        assert_eq!(beaten(&[20.0, 40.0], &[10.0, 40.0]), "1.50× (1.00–2.00)");
        assert_eq!(beaten(&[20.0], &[]), "–");
    }

    #[test]
    fn the_go_attacher_has_figures_of_its_own_beside_ours() {
        let mut figures = Figures::default();
        for (who, rate) in [(Contender::GoDefault, 2.0), (Contender::GoLifted, 100.0), (Contender::Ours, 200.0)] {
            figures.add(super::rate(Operation::Attach), who.name(), rate);
        }
        let table = rates(&figures);
        let row = table.lines().find(|line| line.starts_with("| attach")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[2..9], ["2.00", "100", "200", "–", "–", "100×", "2.00×"]);
    }
}
