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
pub(super) const RESIZER: &str = "Go csi-resizer";
pub(super) const ON_CLAIMS: &str = "on the claim";
pub(super) const IN_JOURNAL: &str = "in a journal";

/// What the document calls the place of these tables.
const PLACE: &str = "make bench-sidecars";

/// Volumes a second seen for the Go attacher on a machine of this size, with its default flags and with limits lifted, and
/// for the Go provisioner with limits lifted on that machine. There is no Go attacher here to measure.
const QUOTED: [(Operation, f64, f64); 2] = [(Operation::Attach, 1.8, 152.0), (Operation::Detach, 4.7, 205.0)];
const QUOTED_PROVISION: f64 = 288.0;
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

fn rates(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for operation in Operation::ALL {
        let what = rate(operation);
        let ours = figures.rounds(&what, Contender::Ours.name());
        let by_default = GoRate::find(figures, operation, Contender::GoDefault);
        let lifted = GoRate::find(figures, operation, Contender::GoLifted);
        let go = [&by_default, &lifted];
        let mut row = vec![operation.name().to_string()];
        row.extend(go.map(|rate| rate.as_ref().map_or("–".into(), GoRate::shown)));
        for who in [Contender::Ours, Contender::OursSingle, Contender::OursUpstream] {
            row.push(spread(figures.rounds(&what, who.name()), ""));
        }
        row.extend(go.map(|rate| rate.as_ref().map_or("–".into(), |rate| rate.beaten(ours))));
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
    text.push_str(
        "\nWith ≈: the Go attacher is not here. The figure is the one known from a machine of this size (attach 1.8 and 152 a \
         second, detach 4.7 and 205), times what csi-provisioner with its limits lifted reached here against there \
         (288 a second); with default flags it is its own limit, and as it is known.\n",
    );
    text
}

/// The rate of a Go program.
enum GoRate {
    /// Round by round.
    Measured(Vec<f64>),
    Quoted(f64),
}

impl GoRate {
    fn find(figures: &Figures, operation: Operation, who: Contender) -> Option<GoRate> {
        let Some((_, by_default, lifted)) = QUOTED.into_iter().find(|(quoted, ..)| *quoted == operation) else {
            return Some(GoRate::Measured(figures.rounds(&rate(operation), who.name()).to_vec()));
        };
        if who == Contender::GoDefault {
            return Some(GoRate::Quoted(by_default));
        }
        // Not by the round: two operations of one round are further apart than two programs with the same operation.
        let here = figures.median(&rate(Operation::Provision), who.name())?;
        Some(GoRate::Quoted(lifted * here / QUOTED_PROVISION))
    }

    fn shown(&self) -> String {
        match self {
            GoRate::Measured(rounds) => spread(rounds, ""),
            GoRate::Quoted(rate) => format!("≈ {}", shown(*rate)),
        }
    }

    /// How many times as fast ours is. What was measured once is held against every round.
    fn beaten(&self, ours: &[f64]) -> String {
        let theirs = match self {
            GoRate::Measured(rounds) if rounds.len() > 1 => rounds.clone(),
            GoRate::Measured(rounds) => rounds.iter().flat_map(|once| vec![*once; ours.len()]).collect(),
            GoRate::Quoted(rate) => vec![*rate; ours.len()],
        };
        spread(&ratios(ours, &theirs), "×")
    }
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
        row.push(go.first().map_or("–".into(), |go| figures.shown(what, go)));
        row.push(go.get(1).map_or("–".into(), |go| figures.shown(what, go)));
        let sum: f64 = go.iter().filter_map(|go| figures.median(what, go)).sum();
        let ratio = figures.median(what, OURS).filter(|_| sum > 0.0).map(|ours| format!("{}×", shown(ours / sum)));
        row.push(ratio.unwrap_or("–".into()));
        rows.push(row);
    };
    add(SIZE, &[PROVISIONER, RESIZER]);
    add(READY, &[Contender::GoLifted.name()]);
    add(IDLE, &[Contender::GoLifted.name()]);
    for count in &settings.kept {
        add(&format!("resident memory, {count} volumes, MB"), &[PROVISIONER, RESIZER]);
    }
    table(&["", "ours, all in one", "Go csi-provisioner", "Go csi-resizer", "ours : both Go"], &rows)
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
