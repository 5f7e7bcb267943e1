//! `longshore status`: one screen of what runs, where its data is, and what waits.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use api::{ClaimPhase, Object, ObjectRef, VolumePhase};
use control::Cache;
use control::host::ProcessState;
use io_host::{Host, Orphans};
use io_run::Manager;
use serde_json::{Value, json};

use crate::args::{self, Output};
use crate::commands::down::{count, holder, orphans_found};
use crate::explain;
use crate::layout::{Layout, text};
use crate::out;

/// The path the running process answers at.
pub const PATH: &str = "/longshore/v1/status";

/// How many objects are looked at, and how many of those that wait are told.
const LOOKED_AT: usize = 200;
const TOLD: usize = 10;

/// What the running process answers.
pub fn report(manager: &Manager) -> Value {
    let (counted, mut unready) = manager.cache().look(|cache| (counts(cache), unready(cache)));
    let not_looked_at = unready.len().saturating_sub(LOOKED_AT);
    unready.truncate(LOOKED_AT);
    let answers = unready.iter().filter_map(|one| Some((one, explain::answer_cached(manager, one)?)));
    let waits = answers.filter(|(_, answer)| !answer.settled);
    let mut waiting: Vec<Value> =
        waits.map(|(one, answer)| json!({ "object": one.to_string(), "sentence": answer.sentence })).collect();
    let more = waiting.len().saturating_sub(TOLD) + not_looked_at;
    waiting.truncate(TOLD);
    let mut report = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "controllers": manager.controllers(),
        "waiting": waiting,
        "waitingMore": more,
    });
    for (name, value) in counted {
        report[name] = value;
    }
    report
}

/// What is counted by phase, and the nodes with their drivers.
fn counts(cache: &Cache) -> Vec<(&'static str, Value)> {
    fn by_phase(phases: impl Iterator<Item = String>) -> Value {
        let mut counted: BTreeMap<String, usize> = BTreeMap::new();
        phases.for_each(|phase| *counted.entry(phase).or_default() += 1);
        json!(counted)
    }
    let nodes: Vec<Value> = cache
        .nodes()
        .map(|node| {
            let csi_node = cache.csi_node(&node.metadata.key());
            let drivers = csi_node.iter().flat_map(|node| &node.spec.drivers).map(|driver| driver.name.as_str());
            json!({ "name": node.metadata.name, "ready": node.is_ready(), "drivers": drivers.collect::<Vec<_>>() })
        })
        .collect();
    vec![
        ("nodes", json!(nodes)),
        ("pods", by_phase(cache.pods().map(|pod| phase(&pod.status.phase)))),
        ("claims", by_phase(cache.claims().map(|claim| phase(&claim.status.phase)))),
        ("volumes", by_phase(cache.volumes().map(|volume| phase(&volume.status.phase)))),
        ("attachments", json!(cache.attachments().count())),
    ]
}

/// A phase as the API has it.
fn phase(phase: &impl serde::Serialize) -> String {
    json!(phase).as_str().filter(|text| !text.is_empty()).unwrap_or("Pending").to_string()
}

/// The objects that may wait for something, by what can be seen of them.
fn unready(cache: &Cache) -> Vec<ObjectRef> {
    let pods = cache.pods().filter(|pod| !pod.is_terminal() && !ready(&pod.status.conditions));
    let claims = cache.claims().filter(|claim| {
        let grows = claim.requested().is_some_and(|wanted| claim.status.capacity.get("storage") != Some(wanted));
        claim.status.phase != ClaimPhase::Bound || grows
    });
    let attachments = cache.attachments().filter(|attachment| !attachment.status.attached);
    let volumes = cache.volumes().filter(|volume| volume.status.phase != VolumePhase::Bound);
    let mut found: Vec<ObjectRef> = pods.map(|one| Object::Pod(one).reference()).collect();
    found.extend(claims.map(|one| Object::PersistentVolumeClaim(one).reference()));
    found.extend(attachments.map(|one| Object::VolumeAttachment(one).reference()));
    found.extend(volumes.map(|one| Object::PersistentVolume(one).reference()));
    let going =
        [api::Kind::Pod, api::Kind::PersistentVolumeClaim, api::Kind::VolumeAttachment, api::Kind::PersistentVolume];
    let going = going.iter().flat_map(|kind| cache.all(*kind)).filter(|object| object.meta().is_deleting());
    for object in going.map(|object| object.reference()).collect::<Vec<_>>() {
        if !found.contains(&object) {
            found.push(object);
        }
    }
    found
}

fn ready(conditions: &[api::Condition]) -> bool {
    conditions.iter().any(|condition| condition.r#type == "Ready" && condition.status == "True")
}

/// The whole command.
pub async fn command(args: args::ShowStatus) -> Result<ExitCode> {
    let layout = Layout::new(args.data_dir)?;
    let mut told = match ask(&layout).await {
        Some(said) => said,
        None => json!({}),
    };
    let runs = told.is_object() && told.get("version").is_some();
    told["running"] = runs.into();
    told["data"] = data(&layout);
    let orphans = Orphans::find().unwrap_or_default();
    told["orphans"] = json!({
        "processes": orphans.processes.iter().map(|one| one.pid).collect::<Vec<_>>(),
        "mounts": orphans.mounts,
        "loops": orphans.loops.iter().map(|(device, _)| device).collect::<Vec<_>>(),
    });
    if runs {
        told["server"] = server(&layout).into();
        told["process"] = json!(holder(&layout.api().join("lock")).ok().flatten());
    }
    match args.output {
        Output::Json => out::say(&told.to_string()),
        Output::Text => {
            let mut screen = screen(&told);
            if !orphans.is_empty() {
                let _ = write!(screen, "\norphans:     {}", orphans_found(&orphans));
            }
            out::say(&screen);
        }
    }
    Ok(if runs { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the process of this data directory says, if there is one.
async fn ask(layout: &Layout) -> Option<Value> {
    let kube = io_kube::Kube::from_kubeconfig(&layout.kubeconfig()).await.ok()?;
    let (status, body) = kube.get_raw(PATH).await.ok()?;
    serde_json::from_slice(&body).ok().filter(|_| status == 200)
}

/// The address in the kubeconfig.
fn server(layout: &Layout) -> Option<String> {
    let text = std::fs::read_to_string(layout.kubeconfig()).ok()?;
    let line = text.lines().find_map(|line| line.trim().trim_start_matches("- ").strip_prefix("server:"))?;
    Some(line.trim().trim_matches('"').to_string())
}

/// Where the data is, how large it is, and what of it is in use.
fn data(layout: &Layout) -> Value {
    let running = |folder: PathBuf| {
        let processes = io_host::list_dir(&folder).map_or(0, |names| names.len());
        let host = (processes > 0).then(|| Host::new(folder).ok()).flatten();
        let states = host.and_then(|host| host.processes().ok()).unwrap_or_default();
        states.values().filter(|state| matches!(state, ProcessState::Running { .. })).count()
    };
    let further = layout.all_further().into_iter().map(|(_, further)| further.processes());
    let running: usize = further.chain([layout.processes()]).map(running).sum();
    json!({
        "directory": layout.root(),
        "exists": layout.api().join("format").exists(),
        "bytes": size(layout.root()),
        "volumeBytes": size(&layout.driver()),
        "runningContainers": running,
        "mounts": io_host::mounts_beneath(&text(layout.root())).map_or(0, |mounts| mounts.len()),
    })
}

/// What a directory takes on its disk, without what is mounted in it.
fn size(dir: &Path) -> u64 {
    let Ok(top) = std::fs::symlink_metadata(dir) else { return 0 };
    let (mut bytes, mut folders) = (0, vec![dir.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(meta) = std::fs::symlink_metadata(entry.path()) else { continue };
            if meta.dev() != top.dev() {
                continue;
            }
            bytes += meta.blocks() * 512;
            if meta.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    bytes
}

/// The report for people.
fn screen(told: &Value) -> String {
    let mut text = String::new();
    let data = &told["data"];
    let directory = data["directory"].as_str().unwrap_or_default();
    let mib = |name: &str| data[name].as_u64().unwrap_or(0) >> 20;
    let number = |name: &str| usize::try_from(data[name].as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
    let kept = format!("{directory}, {} MiB, of which volumes take {} MiB", mib("bytes"), mib("volumeBytes"));
    if told["running"] != true {
        let what =
            if data["exists"] == true { "`longshore up` goes on from there" } else { "there is nothing in it yet" };
        let _ = writeln!(text, "Longshore is not running with this data directory; start it with `longshore up`.");
        let _ = write!(text, "data:        {kept}; {what}");
        let (containers, mounts) = (number("runningContainers"), number("mounts"));
        // What is left of a directory that was removed are orphans.
        if data["exists"] == true && containers + mounts > 0 {
            let (containers, mounts) = (count(containers, "container"), count(mounts, "mount"));
            let _ = write!(text, "\nstill there: {containers}, {mounts}; `longshore down` ends them");
        }
        return text;
    }
    let process = told["process"].as_i64().map(|pid| format!(" (process {pid})")).unwrap_or_default();
    let _ = writeln!(text, "Longshore {} is up at {}{process}.", plain(&told["version"]), plain(&told["server"]));
    for node in told["nodes"].as_array().into_iter().flatten() {
        let state = if node["ready"] == true { "ready" } else { "not ready" };
        let drivers: Vec<&str> = node["drivers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let drivers = if drivers.is_empty() { "none".to_string() } else { drivers.join(", ") };
        let _ = writeln!(text, "node:        {}, {state}; drivers registered: {drivers}", plain(&node["name"]));
    }
    let groups = told["controllers"].as_object().into_iter().flatten().map(|(group, names)| {
        let names: Vec<&str> = names.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        format!("{} ({group})", names.join(", "))
    });
    let _ = writeln!(text, "controllers: {}", groups.collect::<Vec<_>>().join("; "));
    for (title, name) in [("pods:", "pods"), ("claims:", "claims"), ("volumes:", "volumes")] {
        let phases = told[name].as_object().into_iter().flatten().map(|(phase, number)| format!("{number} {phase}"));
        let phases = phases.collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "{title:<12} {}", if phases.is_empty() { "none" } else { &phases });
    }
    let _ = write!(text, "data:        {kept}");
    let waiting = told["waiting"].as_array().map(Vec::as_slice).unwrap_or_default();
    if waiting.is_empty() {
        let _ = write!(text, "\nwaiting:     nothing");
    }
    for (at, one) in waiting.iter().enumerate() {
        let title = if at == 0 { "waiting:" } else { "" };
        let _ = write!(text, "\n{title:<12} {}", plain(&one["sentence"]));
    }
    if let Some(more) = told["waitingMore"].as_u64().filter(|more| *more > 0) {
        let _ = write!(text, "\n             and {more} more; `longshore explain` tells of each");
    }
    text
}

fn plain(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_shows_what_runs_and_what_waits() {
        let told = json!({
            "running": true, "version": "1", "server": "https://127.0.0.1:7443", "process": 7,
            "nodes": [{ "name": "vm", "ready": true, "drivers": ["d"] }],
            "controllers": { "d": ["attacher", "provisioner"] },
            "pods": { "Running": 2 }, "claims": {}, "volumes": { "Bound": 1, "Released": 1 },
            "waiting": [{ "object": "x", "sentence": "claim a/b: binding is waiting: no." }], "waitingMore": 3,
            "data": { "directory": "/d", "bytes": 5 << 20, "volumeBytes": 3 << 20 },
        });
        let lines = [
            "Longshore 1 is up at https://127.0.0.1:7443 (process 7).",
            "node:        vm, ready; drivers registered: d",
            "controllers: attacher, provisioner (d)",
            "pods:        2 Running",
            "claims:      none",
            "volumes:     1 Bound, 1 Released",
            "data:        /d, 5 MiB, of which volumes take 3 MiB",
            "waiting:     claim a/b: binding is waiting: no.",
            "             and 3 more; `longshore explain` tells of each",
        ];
        assert_eq!(screen(&told).lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn a_directory_without_a_process_says_what_is_in_it() {
        let data = json!({ "directory": "/d", "exists": true, "bytes": 0, "runningContainers": 1, "mounts": 2 });
        let told = screen(&json!({ "running": false, "data": data }));
        assert!(told.starts_with("Longshore is not running") && told.ends_with("`longshore down` ends them"), "{told}");
    }
}
