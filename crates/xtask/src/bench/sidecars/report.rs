//! The tables, the JSON, and the document they go into.

use std::fmt::Write;
use std::fs;
use std::io;

use super::contender::{Contender, Operation};
use super::{CROWDS, Settings};
use crate::bench::document;
use crate::bench::figures::{Figures, shown, table};

pub const SIZE: &str = "the program, MB";
pub const READY: &str = "exec to the first call, ms";
pub const IDLE: &str = "resident memory, idle, MB";
pub const OURS: &str = "ours, all in one";
pub const PROVISIONER: &str = "Go csi-provisioner";
pub const RESIZER: &str = "Go csi-resizer";
pub const ON_CLAIMS: &str = "on the claim";
pub const IN_JOURNAL: &str = "in a journal";

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

pub fn rate(operation: Operation) -> String {
    format!("{}, a second", operation.name())
}

/// Writes what was asked for and gives the text for people.
pub fn write(settings: &Settings, figures: &Figures) -> io::Result<String> {
    let text = tables(settings, figures);
    if let Some(file) = &settings.json {
        let told = serde_json::json!({
            "machine": document::machine(), "rounds": settings.rounds, "volumes": settings.volumes,
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
    let (volumes, slow, rounds) = (settings.volumes, settings.slow_volumes, settings.rounds);
    let _ = writeln!(
        text,
        "{}; {volumes} volumes ({slow} for *Go, default*, once), {rounds} rounds, programs in turn; the median is told.\n",
        document::machine()
    );
    let _ = writeln!(text, "### Volumes a second\n\n{}", rates(figures));
    let _ = writeln!(text, "### Requests to the API server and calls to the driver, a volume\n\n{}", requests(figures));
    let _ = writeln!(text, "### Start and memory\n\n{}", resources(settings, figures));
    let _ = writeln!(text, "### The intent: a finalizer on each claim, or one journal for all\n\n{}", intents(figures));
    text
}

fn rates(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for operation in Operation::ALL {
        let what = rate(operation);
        let median = |who: Contender| figures.median(&what, who.name());
        let (go, lifted) = (go_rate(figures, operation, false), go_rate(figures, operation, true));
        let ratio = |against: &Option<(f64, bool)>| match (median(Contender::Ours), against) {
            (Some(ours), Some((go, _))) => format!("{}×", shown(ours / go)),
            (_, _) => "–".into(),
        };
        let told = |figure: &Option<(f64, bool)>| match figure {
            Some((figure, true)) => shown(*figure),
            Some((figure, false)) => format!("({})", shown(*figure)),
            None => "–".into(),
        };
        let mut row = vec![operation.name().to_string(), told(&go), told(&lifted)];
        row.extend(
            [Contender::Ours, Contender::OursSingle, Contender::OursUpstream]
                .map(|who| figures.shown(&what, who.name())),
        );
        row.extend([ratio(&go), ratio(&lifted)]);
        let processor = format!("{}: processor, ms", operation.name());
        row.push(figures.shown(&processor, Contender::GoLifted.name()));
        row.push(figures.shown(&processor, Contender::Ours.name()));
        rows.push(row);
    }
    let head = [
        "",
        "Go, default",
        "Go, limits lifted",
        "ours, all in one",
        "ours, one role",
        "ours, no intent",
        "ours : default",
        "ours : lifted",
        "CPU ms a volume, Go",
        "CPU ms a volume, ours",
    ];
    let mut text = table(&head, &rows);
    text.push_str(
        "\nIn parentheses: the Go attacher is not here. The figure is the one known from a machine of this size (attach 1.8 \
         and 152 a second, detach 4.7 and 205), times what csi-provisioner with its limits lifted reached here against there \
         (288 a second); with default flags it is its own limit, and as it is known.\n",
    );
    text
}

/// The rate of the Go program, and whether it was measured here.
fn go_rate(figures: &Figures, operation: Operation, lifted: bool) -> Option<(f64, bool)> {
    let who = if lifted { Contender::GoLifted } else { Contender::GoDefault };
    if let Some(measured) = figures.median(&rate(operation), who.name()) {
        return Some((measured, true));
    }
    let (_, by_default, with_limits_lifted) = QUOTED.into_iter().find(|(quoted, ..)| *quoted == operation)?;
    let here = figures.median(&rate(Operation::Provision), Contender::GoLifted.name())? / QUOTED_PROVISION;
    Some((if lifted { with_limits_lifted * here } else { by_default }, false))
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
    ["create ", "patch ", "update ", "delete ", "get "].iter().any(|verb| what.starts_with(verb))
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
