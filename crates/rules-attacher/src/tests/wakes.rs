//! Who is looked at after a change, and who is not.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, Value, names};
use control::{Cache, Rules};
use csi::Capabilities;
use prove_lab::{check_wakes, object};
use serde_json::json;

use super::world::{World, finalizer, on};
use crate::{Attacher, Key, Local};

fn attachment(name: &str, attacher: &str, volume: &str, node: &str) -> Object {
    let spec = json!({ "attacher": attacher, "nodeName": node, "source": { "persistentVolumeName": volume } });
    object(Kind::VolumeAttachment, json!({ "metadata": { "name": name }, "spec": spec }))
}

fn volume(name: &str, held: bool) -> Object {
    let finalizers = if held { json!([finalizer()]) } else { json!([]) };
    object(Kind::PersistentVolume, json!({ "metadata": { "name": name, "finalizers": finalizers } }))
}

fn node(id: &str, labels: Value) -> Object {
    let annotations = json!({ names::NODE_ID: id });
    object(Kind::Node, json!({ "metadata": { "name": "a", "annotations": annotations, "labels": labels } }))
}

fn local() -> Local {
    World::new(&["ReadWriteOnce"]).local().clone()
}

fn cache(driver: &str) -> Cache {
    let mut cache = Cache::default();
    for one in [
        attachment("v-on-a", driver, "v", "a"),
        attachment("v-on-b", driver, "v", "b"),
        attachment("w-on-a", driver, "w", "a"),
        attachment("theirs-v-on-a", "other", "v", "a"),
        volume("v", true),
        volume("w", false),
    ] {
        cache.set(one);
    }
    cache
}

fn sorted(keys: &[Key]) -> String {
    let mut keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    keys.sort();
    keys.dedup();
    format!("{keys:?}")
}

#[test]
fn every_change_and_whom_it_wakes() {
    let local = local();
    let cache = cache(&local.driver);
    let csi_node = |name: &str| object(Kind::CSINode, json!({ "metadata": { "name": name } }));
    let plain = || node("1", json!({}));
    let changes = [
        ("attachment", None, Some(attachment("v-on-a", &local.driver, "v", "a"))),
        ("attachment-gone", Some(attachment("v-on-a", &local.driver, "v", "a")), None),
        ("attachment-of-the-other-volume", None, Some(attachment("w-on-a", &local.driver, "w", "a"))),
        ("attachment-of-another-driver", None, Some(attachment("theirs-v-on-a", "other", "v", "a"))),
        ("volume", None, Some(volume("v", true))),
        ("volume-of-nobody", None, Some(volume("x", true))),
        ("csi-node", None, Some(csi_node("b"))),
        ("csi-node-of-nobody", None, Some(csi_node("c"))),
        ("node-new", None, Some(plain())),
        ("node-gone", Some(plain()), None),
        ("node-with-another-id", Some(plain()), Some(node("2", json!({})))),
        ("node-heartbeat", Some(plain()), Some(node("1", json!({ "beat": "2" })))),
    ];
    check_wakes::<Attacher>(env!("CARGO_MANIFEST_DIR"), &cache, &local, &changes);
}

#[test]
fn at_the_start_our_attachments_and_held_volumes_are_looked_at() {
    let local = local();
    let cache = cache(&local.driver);
    let at_start = "[\"attachment v-on-a\", \"attachment v-on-b\", \"attachment w-on-a\", \"volume v\"]";
    assert_eq!(sorted(&Attacher::keys(&cache, &local)), at_start);
    for (publishes, every, lists) in [(true, 60_000, true), (false, 60_000, false), (true, 0, false)] {
        let capabilities = if publishes { local.capabilities } else { Capabilities::NONE };
        let local = Local { capabilities, list_every_millis: every, ..local.clone() };
        let found = Attacher::keys(&cache, &local).contains(&Key::Listing(local.driver.clone()));
        assert_eq!(found, lists, "publishes: {publishes}, every {every} ms");
    }
}

// A14: whoever disagrees with a list is woken when it is whole, and not again by half of the next.
#[test]
fn a14_half_a_list_wakes_nobody() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.update_local(|local| local.list_every_millis = 60_000);
    world.want("a");
    world.run(&on("a"));
    world.driver.attached.clear();
    let listing = Key::Listing(world.local().driver.clone());
    world.run(&listing);
    assert!(world.engine.queued().any(|key| *key == on("a")), "the list is whole");
    world.pass(60_000);
    let queued: Vec<Key> = world.engine.queued().cloned().collect();
    queued.iter().for_each(|key| world.engine.rest(key));
    assert_eq!(world.step(&listing), Some("ListVolumes"));
    assert!(world.engine.queued().all(|key| *key == listing), "one page of two");
}
