//! The tables, the JSON, and the document they go into.

use std::fmt::Write;
use std::fs;
use std::io;

use super::phase::Measured;
use super::stand::Contender;
use super::{Phase, Settings};
use crate::bench::document;
use crate::bench::figures::{Figures, ratios, spread, table};

pub(super) const MEMORY: &str = "resident memory, MB";
/// The programs of each contender: the controllers, and what stands beside the driver.
pub(super) const PROGRAMS: [&str; 2] = ["controllers, MB", "sidecars, MB"];

/// What the document calls the place of these tables.
const PLACE: &str = "make bench-controllers";

/// Whose figures with so many claims there are.
pub(super) fn grown(count: usize) -> String {
    format!("ours, {count} claims")
}

fn name(phase: Phase, what: &str) -> String {
    format!("{}: {what}", phase.name())
}

const RATE: &str = "a second";
const MIDDLE: &str = "p50, ms";
const MOST: &str = "p99, ms";
const WRITES: &str = "writes";
const OF_CONTROLLERS: &str = "writes of the controllers";
const REFUSED: &str = "writes refused";
const EVENTS: &str = "events";
const READS: &str = "reads";
const PROGRAM: &str = "processor, programs, ms";
const SERVERS: &str = "processor, kube-apiserver and etcd, ms";

/// Keeps what a phase cost.
pub(super) fn remember(phase: Phase, who: &str, measured: &Measured, figures: &mut Figures) {
    for (what, figure) in [
        (RATE, measured.rate),
        (MIDDLE, measured.middle),
        (MOST, measured.most),
        (WRITES, measured.writes),
        (OF_CONTROLLERS, measured.writes_of_controllers),
        (REFUSED, measured.refused),
        (EVENTS, measured.events),
        (READS, measured.reads),
        (PROGRAM, measured.spent.program),
        (SERVERS, measured.spent.server + measured.spent.store),
    ] {
        figures.add(name(phase, what), who, figure);
    }
    for (sort, count) in &measured.sorts {
        figures.add(name(phase, sort), who, *count);
    }
}

/// Writes what was asked for and gives the text for people.
pub(super) fn write(settings: &Settings, figures: &Figures) -> io::Result<String> {
    let text = tables(settings, figures);
    if let Some(file) = &settings.json {
        let told = serde_json::json!({
            "machine": document::machine(), "rounds": settings.rounds, "claims": settings.size.claims,
            "pods": settings.size.pods, "figures": figures.json(),
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
    let (size, slow, rounds) = (settings.size, settings.slow, settings.rounds);
    let _ = writeln!(
        text,
        "{}; {} claims, of which pods use {} ({} and {} for *Go, default*, once), {rounds} round(s). The median is \
         told, and in parentheses the least and the most; a ratio is taken within each round.\n",
        document::machine(),
        size.claims,
        size.pods,
        slow.claims,
        slow.pods
    );
    // Without rounds there is but what grows.
    if !settings.only.is_empty() && settings.rounds > 0 {
        let _ = writeln!(text, "### How fast\n\n{}", rates(figures));
        let _ = writeln!(text, "### Requests to the API server, processor time, each\n\n{}", costs(figures));
        let _ = writeln!(text, "### Memory after all claims are bound, MB\n\n{}", memory(figures));
        let _ = writeln!(text, "Our writes in full:\n\n{}", in_full(figures));
    }
    if !settings.grown.is_empty() && settings.only.contains(&Contender::Ours) {
        let _ = writeln!(text, "### The last hundred of many claims, ours\n\n{}", growth(settings, figures));
    }
    text
}

/// Ours against theirs, round by round; what was measured once is held against every round.
fn beaten(figures: &Figures, what: &str, who: Contender, inverse: bool) -> String {
    let ours = figures.rounds(what, Contender::Ours.name());
    let theirs = figures.rounds(what, who.name());
    let theirs = if theirs.len() == 1 { vec![theirs[0]; ours.len()] } else { theirs.to_vec() };
    spread(&if inverse { ratios(&theirs, ours) } else { ratios(ours, &theirs) }, "×")
}

fn rates(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for phase in Phase::ALL {
        for what in [RATE, MIDDLE, MOST] {
            let what_of = name(phase, what);
            let mut row = vec![what_of.clone()];
            row.extend(Contender::ALL.map(|who| spread(figures.rounds(&what_of, who.name()), "")));
            row.extend(
                [Contender::GoDefault, Contender::GoLifted].map(|who| beaten(figures, &what_of, who, what != RATE)),
            );
            rows.push(row);
        }
    }
    table(&["", "Go, default", "Go, limits lifted", "ours", "times default", "times lifted"], &rows)
}

fn costs(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for phase in Phase::ALL {
        for what in [WRITES, OF_CONTROLLERS, REFUSED, EVENTS, READS, PROGRAM, SERVERS] {
            let what = name(phase, what);
            let mut row = vec![what.clone()];
            row.extend(Contender::ALL.map(|who| spread(figures.rounds(&what, who.name()), "")));
            row.push(beaten(figures, &what, Contender::GoLifted, false));
            rows.push(row);
        }
    }
    table(&["", "Go, default", "Go, limits lifted", "ours", "ours : lifted"], &rows)
}

fn memory(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for what in PROGRAMS.into_iter().chain([MEMORY]) {
        let mut row = vec![what.to_string()];
        row.extend(Contender::ALL.map(|who| spread(figures.rounds(what, who.name()), "")));
        row.push(beaten(figures, what, Contender::GoLifted, false));
        rows.push(row);
    }
    table(&["", "Go, default", "Go, limits lifted", "ours", "ours : lifted"], &rows)
}

fn in_full(figures: &Figures) -> String {
    let is_sort = |what: &str| what.starts_with("controllers ") || what.starts_with("sidecar ");
    let row = |phase: Phase| {
        let prefix = name(phase, "");
        vec![phase.name().to_string(), figures.with_prefix(&prefix, Contender::Ours.name(), is_sort)]
    };
    table(&["", "each"], &Phase::ALL.map(row))
}

fn growth(settings: &Settings, figures: &Figures) -> String {
    let all = [
        "a second",
        "p50, ms",
        "p99, ms",
        "writes a claim",
        "processor, programs, ms a claim",
        "processor, kube-apiserver and etcd, ms a claim",
        "controllers, MB",
        "sidecar, MB",
    ];
    let rows = all.map(|what| {
        let mut row = vec![what.to_string()];
        row.extend(settings.grown.iter().map(|count| figures.shown(what, &grown(*count))));
        row
    });
    let head: Vec<String> = settings.grown.iter().map(|count| format!("{count} claims")).collect();
    let head: Vec<&str> = [""].into_iter().chain(head.iter().map(String::as_str)).collect();
    table(&head, &rows)
}
