//! The tables, the JSON, and the document they go into.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::time::Duration;

use super::contender::{Contender, Maker};
use super::kernel::Share;
use super::load::Part;
use super::{CLIENTS, Settings, load_name};
use crate::bench::document;
use crate::bench::figures::{Figures, table};

/// What the document calls the place of these tables.
const PLACE: &str = "make bench-driver";

const EXT4: &str = "ours, ext4";
const DIRECTORY: &str = "ours, directory";
const BLOCK: &str = "ours, block";
const GO: &str = "Go, directory";
const GO_BLOCK: &str = "Go, block";

/// What the cost among so many volumes is called.
pub fn at(part: Part, volumes: usize) -> String {
    format!("{} among {volumes} volumes, ms", part.name())
}

/// What the time of a snapshot is called.
pub fn snapshot_name(bytes: i64) -> String {
    format!("snapshot of a half-full volume of {} MiB, s", bytes >> 20)
}

/// The middle time of each call, in milliseconds.
pub fn medians(calls: Vec<(&'static str, Duration)>) -> BTreeMap<&'static str, f64> {
    let mut by_name: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, took) in calls {
        by_name.entry(name).or_default().push(took.as_secs_f64() * 1000.0);
    }
    let middle = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    by_name.into_iter().map(|(name, all)| (name, middle(all))).collect()
}

fn parts(share: &Share) -> [(&'static str, f64); 5] {
    [("mkfs", share.mkfs), ("mount", share.mount), ("loop", share.loops), ("fsync", share.sync), ("whole", share.whole)]
}

/// Remembers where the time of a part goes.
pub fn add_share(figures: &mut Figures, contender: Contender, part: Part, share: &Share) {
    for (name, milliseconds) in parts(share) {
        figures.add(format!("{}: {name}, ms", part.name()), contender.name(), milliseconds);
    }
}

/// Writes what was asked for and gives the text for people.
pub fn write(settings: &Settings, figures: &Figures) -> io::Result<String> {
    let text = tables(settings, figures);
    if let Some(file) = &settings.json {
        let told =
            serde_json::json!({ "machine": document::machine(), "rounds": settings.rounds, "figures": figures.json() });
        fs::write(file, serde_json::to_string_pretty(&told)?)?;
    }
    if let Some(file) = &settings.doc {
        document::refresh(file, PLACE, &text)?;
    }
    Ok(text)
}

fn tables(settings: &Settings, figures: &Figures) -> String {
    let mut text = String::new();
    let (rounds, seconds) = (settings.rounds, settings.time.as_secs_f64());
    let _ = writeln!(
        text,
        "{}; {rounds} rounds, drivers in turn, {seconds} s a load; the median is told.\n",
        document::machine()
    );
    let _ = writeln!(text, "### Per second\n\n{}", per_second(figures));
    let _ = writeln!(text, "### Milliseconds a call, one client, whole life\n\n{}", by_call(figures));
    let _ = writeln!(
        text,
        "### Milliseconds a time (each call's median), one client, by the number of volumes there are\n\n{}",
        flat(settings, figures)
    );
    let _ = writeln!(text, "### Start, memory, snapshots\n\n{}", others(settings, figures));
    let _ = writeln!(
        text,
        "### Where the time of our driver goes: milliseconds a time, one client, traced\n\n{}",
        shares(figures)
    );
    text
}

fn per_second(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for part in Part::ALL {
        for clients in CLIENTS {
            let what = load_name(part, clients);
            let mut row: Vec<String> = [EXT4, DIRECTORY, GO].map(|who| figures.shown(&what, who)).into();
            row.extend([figures.ratio(&what, EXT4, GO), figures.ratio(&what, DIRECTORY, GO)]);
            row.extend([BLOCK, GO_BLOCK].map(|who| figures.shown(&what, who)));
            row.push(figures.ratio(&what, BLOCK, GO_BLOCK));
            row.insert(0, what);
            rows.push(row);
        }
    }
    let head = ["", EXT4, DIRECTORY, GO, "ext4 : Go", "directory : Go", BLOCK, GO_BLOCK, "block : Go"];
    table(&head, &rows)
}

fn by_call(figures: &Figures) -> String {
    let calls = [
        "CreateVolume",
        "NodeStageVolume",
        "NodePublishVolume",
        "NodeUnpublishVolume",
        "NodeUnstageVolume",
        "DeleteVolume",
    ];
    let row = |call: &&str| {
        let what = format!("{call}, ms");
        let mut row: Vec<String> = [EXT4, DIRECTORY, GO, BLOCK, GO_BLOCK].map(|who| figures.shown(&what, who)).into();
        row.insert(0, (*call).to_string());
        row
    };
    table(&["", EXT4, DIRECTORY, GO, BLOCK, GO_BLOCK], &calls.iter().map(row).collect::<Vec<_>>())
}

fn flat(settings: &Settings, figures: &Figures) -> String {
    let mut rows = Vec::new();
    for who in [EXT4, GO] {
        for part in [Part::Exist, Part::Use, Part::Life] {
            let mut row = vec![format!("{who}: {}", part.name())];
            row.extend(settings.ours.iter().map(|count| figures.shown(&at(part, *count), who)));
            rows.push(row);
        }
    }
    let counts: Vec<String> = settings.ours.iter().map(usize::to_string).collect();
    let head: Vec<&str> = [""].into_iter().chain(counts.iter().map(String::as_str)).collect();
    table(&head, &rows)
}

fn others(settings: &Settings, figures: &Figures) -> String {
    let mut rows = Vec::new();
    let mut add = |what: String, ours: &str, go: &str| {
        let ratio = figures.ratio(&what, ours, go);
        let whose = ours.trim_start_matches("ours, ");
        rows.push(vec![format!("{what} ({whose})"), figures.shown(&what, ours), figures.shown(&what, go), ratio]);
    };
    add("exec to ready, no volumes, ms".into(), EXT4, GO);
    let fewer = settings.go.iter().chain(&settings.ours).copied().collect::<std::collections::BTreeSet<_>>();
    for count in fewer.iter().filter(|count| **count >= 1000) {
        add(format!("exec to ready, {count} volumes, ms"), EXT4, GO);
    }
    let moments = fewer.iter().filter(|count| **count >= 1000).map(|count| format!("{count} volumes"));
    for when in ["idle".to_string()].into_iter().chain(moments) {
        for what in ["resident memory", "of it anonymous", "of it files"] {
            add(format!("{what}, {when}, MB"), EXT4, GO);
        }
        if when != "idle" {
            add(format!("resident memory, {when}, after a restart, MB"), EXT4, GO);
        }
    }
    for what in [snapshot_name(settings.snapshot_bytes), "volume from that snapshot, s".into()] {
        add(what.clone(), EXT4, GO);
        add(what, BLOCK, GO_BLOCK);
    }
    table(&["", "ours", "Go", "ours : Go"], &rows)
}

fn shares(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for contender in Contender::ALL.into_iter().filter(|contender| contender.maker == Maker::Ours) {
        for part in Part::ALL {
            let figure = |name: &str| figures.median(&format!("{}: {name}, ms", part.name()), contender.name());
            let (Some(whole), Some(mkfs), Some(mount), Some(loops), Some(sync)) =
                (figure("whole"), figure("mkfs"), figure("mount"), figure("loop"), figure("fsync"))
            else {
                continue;
            };
            let share = |part: f64| format!("{part:.2} ({:.0} %)", 100.0 * part / whole);
            let kernel = mkfs + mount + loops + sync;
            let untraced = figures.median(&load_name(part, 1), contender.name()).map_or(f64::NAN, |each| 1000.0 / each);
            let mut row = vec![format!("{}: {}", contender.name(), part.name())];
            row.extend([mkfs, mount, loops, sync, kernel].map(share));
            row.extend([format!("{whole:.2}"), format!("{untraced:.2}")]);
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return "Not measured: strace is missing.\n".into();
    }
    let head = ["", "mkfs", "mount, unmount", "loop devices", "fsync", "together", "whole", "whole, untraced"];
    table(&head, &rows)
}
