//! Many volumes of one node at once: each is a key of its own, and all write to the same node.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Kind, names};
use control::{Change, Effect, Next, Outcome, Refusal, Rules};
use prove_lab::Lab;
use serde_json::json;

use super::world::DRIVER;
use crate::{AttachDetach, Key};

const VOLUMES: usize = 30;

/// Pods with a bound volume each, on node `a`.
fn crowd() -> Lab<AttachDetach> {
    let mut lab = Lab::new("n", crate::Local::default());
    lab.make(&format!(r#"node a @{}="true""#, names::CONTROLLER_MANAGED_ATTACH));
    for number in 0..VOLUMES {
        lab.make(&format!(r#"claim c{number} class="" volume=v{number} modes=["ReadWriteOnce"]"#));
        lab.change(&format!("claim c{number} status.phase=Bound"));
        let volume = format!("volume v{number} driver={DRIVER} handle=h{number}");
        lab.make(&format!(r#"{volume} modes=["ReadWriteOnce"] policy=Delete claim=c{number}"#));
        lab.make(&format!("pod p{number} node=a claim=c{number} spec.terminationGracePeriodSeconds=0"));
    }
    lab
}

/// Begins everything that is due before any of it is answered, as hands do that are many; again until nothing is left
/// to do. How many writes were made, and how many met a conflict.
fn run_at_once(lab: &mut Lab<AttachDetach>) -> (usize, usize) {
    let (mut writes, mut conflicts) = (0, 0);
    loop {
        let mut begun: Vec<(Arc<Key>, Effect)> = Vec::new();
        loop {
            match lab.engine.next(lab.now, &lab.cache) {
                Next::Begin { key, effect } => begun.push((key, effect)),
                Next::Rested { .. } | Next::Waiting { .. } => {}
                Next::Idle(Some(until)) if begun.is_empty() => lab.now = until.max(lab.now),
                Next::Idle(None) if begun.is_empty() => return (writes, conflicts),
                Next::Idle(_) => break,
            }
        }
        for (key, effect) in begun {
            let outcome = lab.api(&effect).unwrap();
            writes += usize::from(matches!(effect, Effect::Write(_)));
            conflicts += usize::from(outcome == Outcome::Refused(Refusal::Conflict));
            lab.finish(&key, &outcome);
        }
        lab.sync();
        assert!(writes < 100 * VOLUMES, "it does not come to rest");
    }
}

fn attachments(lab: &Lab<AttachDetach>) -> Vec<String> {
    let named = lab.list(Kind::VolumeAttachment).into_iter();
    named.map(|attachment| attachment["metadata"]["name"].as_str().unwrap().into()).collect()
}

// Volumes that come to a node, or leave it, at once write to it one after the other: no write meets a conflict.
#[test]
fn many_volumes_of_one_node_do_not_stand_in_each_others_way() {
    let mut lab = crowd();
    assert_eq!(run_at_once(&mut lab), (VOLUMES, 0), "each has its attachment");
    for name in attachments(&lab) {
        lab.patch_status(Kind::VolumeAttachment, &name, json!({ "attached": true }));
    }
    assert_eq!(run_at_once(&mut lab), (VOLUMES, 0), "each is reported");
    for number in 0..VOLUMES {
        lab.delete(Kind::Pod, &format!("p{number}"));
    }
    assert_eq!(run_at_once(&mut lab), (2 * VOLUMES, 0), "each report is taken back, and each attachment deleted");
    assert!(attachments(&lab).is_empty());
}

// The write for one volume is no news for the others of its node.
#[test]
fn a_report_wakes_the_volume_it_is_about_and_no_other() {
    let mut lab = crowd();
    run_at_once(&mut lab);
    let name = |number: usize| names::unique_volume_name(DRIVER, &format!("h{number}"));
    let node = |lab: &Lab<AttachDetach>| lab.object(&api::ObjectRef::cluster(Kind::Node, "a"));
    let entry = |number: usize, path: &str| json!({ "name": name(number), "devicePath": path });
    let mut before = node(&lab);
    for (status, woken) in [
        (json!({ "volumesAttached": [entry(1, ""), entry(2, "")] }), &["v1 on a", "v2 on a"][..]),
        (json!({ "volumesAttached": [entry(2, ""), entry(1, "")] }), &[]),
        (json!({ "volumesAttached": [entry(1, ""), entry(2, "/dev/x")] }), &["v2 on a"]),
        (json!({ "volumesInUse": [name(3)] }), &["v3 on a"]),
        (json!({ "volumesInUse": [name(3), name(4), name(5)] }), &["v4 on a", "v5 on a"]),
        (json!({ "volumesInUse": [name(3), name(5)] }), &["v4 on a"]),
        (json!({ "volumesInUse": [name(6), name(3)] }), &["v5 on a", "v6 on a"]),
        (json!({ "volumesInUse": [name(3), name(6)] }), &[]),
        (json!({ "volumesInUse": [name(3)] }), &["v6 on a"]),
        (json!({ "volumesInUse": null, "volumesAttached": null }), &["v1 on a", "v2 on a", "v3 on a"]),
    ] {
        lab.patch_status(Kind::Node, "a", status.clone());
        lab.sync();
        let change = Change { before, after: node(&lab) };
        before = node(&lab);
        let keys = AttachDetach::wakes(&change, &lab.cache, &crate::Local::default());
        assert_eq!(keys.iter().map(|key| format!("{key}")).collect::<Vec<_>>(), woken, "{status}");
    }
}

// A driver's object is written to for many reasons, and all its volumes are concerned by two of them.
#[test]
fn a_driver_wakes_its_volumes_when_it_comes_or_goes_or_attaches_otherwise() {
    let lab = crowd();
    let driver = |required: Option<bool>, capacity: bool| {
        let spec = json!({ "attachRequired": required, "storageCapacity": capacity });
        Some(prove_lab::object(Kind::CSIDriver, json!({ "metadata": { "name": DRIVER }, "spec": spec })))
    };
    let woken =
        |before, after| AttachDetach::wakes(&Change { before, after }, &lab.cache, &crate::Local::default()).len();
    assert_eq!(woken(None, driver(Some(true), false)), VOLUMES);
    assert_eq!(woken(driver(None, false), None), VOLUMES);
    assert_eq!(woken(driver(Some(true), false), driver(Some(false), false)), VOLUMES);
    assert_eq!(woken(driver(None, false), driver(Some(true), true)), 0, "attached all the same");
}
