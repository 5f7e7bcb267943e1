//! What the life of one claim costs beside few and beside many others: the news of it as watches tell it, one by one,
//! from the claim to the end of its volume, and every decision that this wakes.

use std::fmt::Write;
use std::io;
use std::time::Duration;

use api::{Kind, Value, names};
use control::{Cache, Change, Engine, Next, Rules, Timestamp};
use csi::ControllerRpc;
use rules_attachdetach::AttachDetach;
use rules_attacher::Attacher;
use rules_binding::{AttributesProtection, Binding};
use rules_nodelifecycle::NodeLifecycle;
use rules_provisioner::{Provisioner, Sources};
use rules_resizer::Resizer;
use serde_json::json;

use super::super::figures::table as print;
use super::super::sidecars::usage;
use super::objects::{attachment, claim, node, pod, volume};
use super::{Clock, DRIVER, LISTED, Settings, fill, read};

/// So many other claims, each with its volume, attachment and pod.
const OTHERS: [usize; 4] = [100, 1_000, 5_000, 20_000];
const NODES: usize = 50;
/// So many news make a claim Bound.
const BOUND: usize = 8;
/// How many lives are measured beside them.
const LIVES: usize = 100;

/// One after the other, on a growing number of others.
pub(super) fn table() -> io::Result<String> {
    // Kept until the end, so that what one has given back is not taken for room that another needs not.
    let (mut rows, mut measured) = (Vec::new(), Vec::new());
    for others in OTHERS {
        let before = usage::memory(std::process::id())?;
        let mut cluster = Cluster::with(others)?;
        let held = usage::memory(std::process::id())? - before;
        let mut spent = Spent::default();
        for number in 0..LIVES {
            cluster.live(others + number, &mut spent)?;
        }
        let each = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e6 / LIVES as f64);
        let decisions = format!("{:.1}", spent.decisions as f64 / LIVES as f64);
        let kilobytes = format!("{:.1}", held * 1024.0 / others as f64);
        rows.push(vec![others.to_string(), each(spent.bound), each(spent.used), decisions, kilobytes]);
        measured.push(cluster);
    }
    let head = ["a claim beside so many", "to Bound, µs", "attached and gone, µs", "decisions", "memory, kB each"];
    let mut text = String::new();
    let _ = writeln!(text, "{}", print(&head, &rows));
    Ok(text)
}

/// What lives cost.
#[derive(Default)]
struct Spent {
    /// From the claim to Bound.
    bound: Duration,
    /// From then on: attached, detached and deleted.
    used: Duration,
    decisions: usize,
    /// Objects that were looked at, by the news that made somebody look. Known in debug builds alone.
    looks: Vec<(&'static str, usize)>,
}

struct Cluster {
    cache: Cache,
    settings: Settings,
    version: usize,
}

impl Cluster {
    fn with(others: usize) -> io::Result<Cluster> {
        let settings = Settings { volumes: others, nodes: NODES };
        let (cache, ..) = fill(&settings)?;
        Ok(Cluster { cache, settings, version: 2 })
    }

    fn live(&mut self, number: usize, spent: &mut Spent) -> io::Result<()> {
        for (at, (news, kind, body)) in self.story(number).into_iter().enumerate() {
            self.version += 1;
            let version = (LISTED as usize + self.version).to_string();
            let (mut body, gone) = body;
            body["metadata"]["resourceVersion"] = json!(version);
            let object = read(kind, &body.to_string())?;
            let began = Clock::now();
            let change = if gone { self.cache.remove(&object) } else { self.cache.set(object) };
            let change = change.ok_or_else(|| io::Error::other(format!("{news} is no news")))?;
            let looked = looked_at(&self.cache);
            spent.decisions += hear_all(&change, &self.cache);
            let part = if at < BOUND { &mut spent.bound } else { &mut spent.used };
            *part += began.elapsed();
            spent.looks.push((news, looked_at(&self.cache) - looked));
        }
        Ok(())
    }

    /// What watches tell of a claim, its volume, its pod and its attachment, in the order in which they do.
    fn story(&self, number: usize) -> Vec<(&'static str, Kind, (Value, bool))> {
        let (there, gone) = (|body: Value| (body, false), |body: Value| (body, true));
        let nodes = self.settings.nodes;
        let unbound = claim(number, false, 2);
        let mut asked = unbound.clone();
        asked["metadata"]["annotations"] =
            json!({ names::STORAGE_PROVISIONER: DRIVER, names::STORAGE_PROVISIONER_BETA: DRIVER });
        let mut journal = json!({ "metadata": { "name": names::journal(DRIVER, None), "namespace": "default",
            "uid": "journal" }, "spec": {} });
        let empty = journal.clone();
        let entry = format!("{}{}.1", names::JOURNAL_ENTRY, asked["metadata"]["uid"].as_str().unwrap_or_default());
        let of = &asked["metadata"];
        let record = json!({ "c": { "ns": of["namespace"], "n": of["name"], "s": "10Gi" }, "u": "c" });
        journal["metadata"]["annotations"] = json!({ entry: record.to_string() });
        let bound = volume(number, 2);
        let mut made = bound.clone();
        made["status"]["phase"] = json!("Pending");
        let mut named = claim(number, true, 2);
        named["status"]["phase"] = json!("Pending");
        let mut released = bound.clone();
        released["status"]["phase"] = json!("Released");
        let mut unattached = attachment(number, nodes, 2);
        unattached["status"] = json!({});
        let mut leaving = attachment(number, nodes, 2);
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let mut deleted = claim(number, true, 2);
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let (pods, home) = (Kind::Pod, number % nodes);
        let reported = node(home, number + 1, nodes, (number + 1).div_ceil(nodes), 2);
        let before = node(home, number, nodes, number.div_ceil(nodes), 2);
        let (claims, volumes, attachments) =
            (Kind::PersistentVolumeClaim, Kind::PersistentVolume, Kind::VolumeAttachment);
        vec![
            ("a claim is made", claims, there(unbound)),
            ("the driver is asked", claims, there(asked)),
            ("the intent is recorded", Kind::Lease, there(journal)),
            ("the volume is made", volumes, there(made)),
            ("the intent has served", Kind::Lease, there(empty)),
            ("the volume is bound", volumes, there(bound.clone())),
            ("the claim names its volume", claims, there(named)),
            ("the claim is bound", claims, there(claim(number, true, 2))),
            ("a pod is placed", pods, there(pod(number, nodes, 2))),
            ("an attachment is made", attachments, there(unattached)),
            ("it is attached", attachments, there(attachment(number, nodes, 2))),
            ("the node is told", Kind::Node, there(reported)),
            ("the pod is gone", pods, gone(pod(number, nodes, 2))),
            ("the node is done", Kind::Node, there(before)),
            ("the attachment is to go", attachments, there(leaving.clone())),
            ("the attachment is gone", attachments, gone(leaving)),
            ("the claim is to go", claims, there(deleted.clone())),
            ("the claim is gone", claims, gone(deleted)),
            ("the volume is released", volumes, there(released.clone())),
            ("the volume is gone", volumes, gone(released)),
        ]
    }
}

#[cfg(debug_assertions)]
fn looked_at(cache: &Cache) -> usize {
    cache.looked_at()
}

#[cfg(not(debug_assertions))]
fn looked_at(_: &Cache) -> usize {
    0
}

/// All that hear of volumes but for the scheduler, which is to look at every node. How many decisions that made.
fn hear_all(change: &Change, cache: &Cache) -> usize {
    let attacher = rules_attacher::Local::new(DRIVER, [ControllerRpc::PublishUnpublishVolume]);
    let provisioner = rules_provisioner::Local::new(DRIVER);
    hear::<Binding>(rules_binding::Local::default(), change, cache)
        + hear::<AttributesProtection>((), change, cache)
        + hear::<AttachDetach>(Default::default(), change, cache)
        + hear::<NodeLifecycle>((), change, cache)
        + hear::<Attacher>(attacher, change, cache)
        + hear::<Provisioner>(provisioner.clone(), change, cache)
        + hear::<Sources>(provisioner, change, cache)
        + hear::<Resizer>(rules_resizer::Local::new(DRIVER, [ControllerRpc::ExpandVolume]), change, cache)
}

/// Rules that have heard of nothing else: nothing is under way that would keep them from looking.
fn hear<R: Rules>(local: R::Local, change: &Change, cache: &Cache) -> usize {
    let mut engine = Engine::<R>::new(local);
    engine.changed(Timestamp(1), change, cache);
    let mut decisions = 0;
    while !matches!(engine.next(Timestamp(1), cache), Next::Idle(_)) {
        decisions += 1;
    }
    decisions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(others: usize) -> Spent {
        let (mut cluster, mut spent) = (Cluster::with(others).unwrap(), Spent::default());
        cluster.live(others, &mut spent).unwrap();
        spent
    }

    // What a claim costs must not grow with the claims of others. The number of nodes is the same.
    #[test]
    fn a_claims_life_looks_at_no_more_objects_however_many_others_there_are() {
        let (few, many) = (looks(NODES * 2), looks(NODES * 40));
        assert_eq!(few.looks, many.looks);
        assert_eq!(few.decisions, many.decisions);
        assert!(few.decisions > 40, "somebody decides: {}", few.decisions);
    }
}
