//! Many volumes of one node at once: each is a key of its own, and all write to the same node.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Kind, names};
use control::{Effect, Next, Outcome, Refusal};
use prove_lab::Lab;
use serde_json::json;

use super::world::DRIVER;
use crate::{AttachDetach, Key};

const VOLUMES: usize = 30;

/// Pods with a bound volume each, on node `a`.
fn crowd() -> Lab<AttachDetach> {
    let mut lab = Lab::new("n", ());
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
