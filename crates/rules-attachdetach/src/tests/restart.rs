//! What is wanted against what is, with nothing in memory (AD-48 to AD-50): every key is found, and nothing is done
//! twice.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use api::Kind;
use control::Rules;
use serde_json::json;

use super::world::*;
use crate::{AttachDetach, Key};

/// A new incarnation looks at every key it finds, until all rest; what it did, by key.
fn restart(world: &mut World) -> Vec<(String, &'static str)> {
    world.restart(Default::default());
    world.sync();
    let mut done = Vec::new();
    for _ in 0..10 {
        let keys: BTreeSet<Key> = AttachDetach::keys(&world.cache, &Default::default()).into_iter().collect();
        let before = done.len();
        for key in keys {
            done.extend(world.run(&key).into_iter().map(|action| (alloc::format!("{key}"), action)));
        }
        if done.len() == before {
            return done;
        }
    }
    panic!("it does not come to rest: {done:?}")
}

fn acts(done: &[(String, &'static str)]) -> Vec<&'static str> {
    done.iter().map(|(_, action)| *action).collect()
}

// AD-2, AD-50: attached and wanted: nothing is done, because the objects say all there is to know.
#[test]
fn what_is_as_it_should_be_is_left_alone() {
    let mut world = World::attached();
    world.in_use("a", true);
    assert!(restart(&mut world).is_empty());
}

// AD-49: an attachment with a pod is used, one without is deleted.
#[test]
fn attachments_are_used_or_deleted() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    world.attach("a");
    assert_eq!(acts(&restart(&mut world)), ["AdoptAttachment", "ReportAttached"]);
    world.delete(Kind::Pod, "p");
    assert_eq!(acts(&restart(&mut world)), ["TakeReportBack", "DeleteAttachment"]);
    assert!(restart(&mut world).is_empty(), "what was asked for is waited for");
}

// AD-48: what a node was told is taken back, with and without an attachment, and not while it is in use.
#[test]
fn reports_are_found_by_themselves() {
    let mut world = World::new(&["ReadWriteOnce"]);
    let reports = json!([{ "name": unique_name(), "devicePath": "" }]);
    world.patch_status(Kind::Node, "a", json!({ "volumesAttached": reports }));
    assert_eq!(restart(&mut world), [(String::from("v on a"), "TakeReportBack")]);
    world.patch_status(Kind::Node, "a", json!({ "volumesAttached": null }));
    assert!(restart(&mut world).is_empty());
}

// A pod alone is enough.
#[test]
fn pods_are_found() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    assert_eq!(restart(&mut world), [(String::from("v on a"), "CreateAttachment")]);
}
