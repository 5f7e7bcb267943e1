//! Volumes of in-tree plugins that a driver has taken over (sidecars 4.3; S4-20 to S4-22).

use api::{Kind, Value, names};
use csi::Call;
use rules_translate::{Phase, Plugin};
use serde_json::json;

use super::world::*;
use crate::{Expansion, Resizer};
use control::Rules;

const GCE: &str = "pd.csi.storage.gke.io";

fn in_tree(source: Value) -> World {
    let mut world = World::of_source(Expansion::Controller, source);
    world.update_local(|local| local.driver = GCE.into());
    world
}

fn disk() -> Value {
    json!({ "gcePersistentDisk": { "pdName": "d", "fsType": "xfs" } })
}

fn give(world: &mut World, driver: &str) {
    let annotations = json!({ names::STORAGE_RESIZER: driver });
    world.patch(Kind::PersistentVolumeClaim, "c", json!({ "metadata": { "annotations": annotations } }));
}

// S4-20, S4-21: the volume grows under the driver's name for it, and keeps its source.
#[test]
fn a_volume_given_to_our_driver_grows() {
    let mut world = in_tree(disk());
    give(&mut world, GCE);
    world.request("2Gi");
    assert_eq!(world.run(), ["BeginResize", "ControllerExpandVolume", "SetVolumeSize", "FinishResize"]);
    let Call::ControllerExpandVolume(request) = &world.backend.calls[0] else { panic!("{:?}", world.backend.calls) };
    assert_eq!(request.volume_id, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d");
    assert_eq!(bytes(&world.volume().spec.capacity), 2 * GI);
    assert_eq!(bytes(&world.claim().status.capacity), 2 * GI);
    let spec = &world.json(Kind::PersistentVolume, "v")["spec"];
    assert_eq!(spec["gcePersistentDisk"], disk()["gcePersistentDisk"]);
    assert!(spec["csi"].is_null());
    assert_eq!(Resizer::keys(&world.cache, world.local()), [key()]);
}

// S4-21: without the annotation, or with another name in it, it yields.
#[test]
fn a_volume_that_was_not_given_to_our_driver_is_left_alone() {
    for driver in ["", "kubernetes.io/gce-pd", "other"] {
        let mut world = in_tree(disk());
        give(&mut world, driver);
        world.request("2Gi");
        assert!(world.run().is_empty() && world.backend.calls.is_empty());
        assert_eq!(world.code(), "NotOurs");
        // The annotation is what it waits for.
        give(&mut world, GCE);
        assert_eq!(world.run().len(), 4);
    }
}

#[test]
fn volumes_of_other_plugins_and_malformed_ones_are_left_alone() {
    let mut world = in_tree(json!({ "cinder": { "volumeID": "c" } }));
    give(&mut world, GCE);
    world.request("2Gi");
    assert!(world.run().is_empty());
    assert_eq!(world.code(), "NotOurs");
    let mut world = in_tree(disk());
    let labels = json!({ "metadata": { "labels": { names::ZONE: "moon__mars" } } });
    world.patch(Kind::PersistentVolume, "v", labels);
    give(&mut world, GCE);
    world.request("2Gi");
    assert!(world.run().is_empty() && world.backend.calls.is_empty());
    assert!(world.look().why().text.contains("do not name exactly one region"), "{:?}", world.look().why());
}

// Sidecars 4.5: attributes are changed for CSI volumes alone.
#[test]
fn attributes_of_in_tree_volumes_are_not_changed() {
    let mut world = in_tree(disk());
    give(&mut world, GCE);
    world.make_class("gold", GCE);
    world.ask_class("gold");
    assert!(world.run().is_empty() && world.backend.calls.is_empty());
}

// S4-1, S4-2: with the gate off the volume is its plugin's, whatever the claim says; with it on, in either phase, ours.
#[test]
fn a_plugin_that_serves_its_volumes_grows_them() {
    for (phase, ours) in [(Phase::Off, false), (Phase::On, true), (Phase::Complete, true)] {
        let mut world = in_tree(disk());
        world.update_local(|local| local.migration = local.migration.with(Plugin::GcePd, phase));
        give(&mut world, GCE);
        world.request("2Gi");
        assert_eq!((world.run().is_empty(), world.backend.calls.is_empty()), (!ours, !ours), "{phase:?}");
        assert_eq!(world.code() == "NotOurs", !ours, "{phase:?}");
    }
}

// S4-20, S4-40: with the gate off the plugin itself is called, if the claim names it; with the gate on it stands down.
#[test]
fn s4_40_a_plugin_grows_its_own_volumes_while_its_gate_is_off() {
    const PLUGIN: &str = "kubernetes.io/gce-pd";
    for (phase, named, ours) in [(Phase::Off, PLUGIN, true), (Phase::Off, GCE, false), (Phase::On, PLUGIN, false)] {
        let mut world = in_tree(disk());
        world.update_local(|local| {
            local.driver = PLUGIN.into();
            local.migration = local.migration.with(Plugin::GcePd, phase);
        });
        give(&mut world, named);
        world.request("2Gi");
        assert_eq!(world.run().is_empty(), !ours, "{phase:?} {named}");
        assert_eq!(bytes(&world.volume().spec.capacity), if ours { 2 * GI } else { GI }, "{phase:?} {named}");
    }
}
