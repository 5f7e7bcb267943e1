//! Volumes of in-tree plugins that a driver has taken over (sidecars 3; S4-14, S4-18, S4-42).

use api::names;
use api::{Kind, Value};
use control::{Action as _, Decision, Effect, Rules};
use csi::Call;
use rules_translate::{Phase, Plugin};
use serde_json::json;

use super::world::World;
use crate::{Action, Attacher, Key};

const EBS: &str = "ebs.csi.aws.com";
const GCE: &str = "pd.csi.storage.gke.io";
const NODE_ID: &str = "projects/p/zones/us-east1-b/instances/a";

/// A cluster with a volume of this in-tree source, the driver on node `n`, and an attachment that names the volume.
fn world(driver: &str, source: Value, metadata: Value) -> World {
    let mut world = World::empty(driver);
    let mut spec = json!({ "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain" });
    rules_store::merge_patch(&mut spec, &source);
    let mut meta = json!({ "name": "v" });
    rules_store::merge_patch(&mut meta, &metadata);
    world.create(Kind::PersistentVolume, json!({ "metadata": meta, "spec": spec }));
    world.create(Kind::Node, json!({ "metadata": { "name": "n" } }));
    let entry = json!({ "name": driver, "nodeID": NODE_ID, "topologyKeys": null });
    world.create(Kind::CSINode, json!({ "metadata": { "name": "n" }, "spec": { "drivers": [entry] } }));
    world.sync();
    world
}

fn want(world: &mut World, source: Value) {
    let spec = json!({ "attacher": world.local().driver, "nodeName": "n", "source": source });
    world.create(Kind::VolumeAttachment, json!({ "metadata": { "name": "va" }, "spec": spec }));
    world.sync();
}

fn named() -> Value {
    json!({ "persistentVolumeName": "v" })
}

fn va() -> Key {
    Key::Attachment("va".into())
}

fn volume() -> Key {
    Key::Volume("v".into())
}

fn disk() -> Value {
    json!({ "awsElasticBlockStore": { "volumeID": "aws://us-west-2a/vol-1", "fsType": "xfs", "partition": 1 } })
}

fn held(world: &World) -> bool {
    world.real_volume().unwrap().metadata.has_finalizer(&names::attacher_finalizer(&world.local().driver))
}

// S4-14, A2: an in-tree volume is translated for the call, and stays as it is.
#[test]
fn an_in_tree_volume_is_published_under_the_drivers_name_for_it() {
    let mut world = world(EBS, disk(), json!({ "annotations": { names::MIGRATED_TO: EBS } }));
    want(&mut world, named());
    assert_eq!(
        world.run(&va()),
        ["AddVolumeFinalizer", "AddAttachmentFinalizer", "ControllerPublishVolume", "ConfirmAttached"]
    );
    let Call::ControllerPublishVolume(request) = &world.driver.calls[0] else { panic!("{:?}", world.driver.calls) };
    assert_eq!((request.volume_id.as_str(), request.node_id.as_str()), ("vol-1", NODE_ID));
    assert_eq!(request.volume_context, [("partition".into(), "1".into())].into());
    assert_eq!(world.json(Kind::PersistentVolume, "v")["spec"]["awsElasticBlockStore"], disk()["awsElasticBlockStore"]);
    world.delete(Kind::VolumeAttachment, "va");
    assert_eq!(world.run(&va()), ["RecheckAttachment", "ControllerUnpublishVolume", "RemoveAttachmentFinalizer"]);
    let Call::ControllerUnpublishVolume(request) = &world.driver.calls[1] else { panic!("{:?}", world.driver.calls) };
    assert_eq!(request.volume_id, "vol-1");
    // A15: a volume that is our driver's keeps the finalizer for the next attachment.
    assert!(world.run(&volume()).is_empty() && held(&world));
}

// Sidecars 3.5, S4-42, S4-43: a volume that nobody gave to our driver, or that was taken back, is let go when nothing is
// attached, on an unchanged object.
#[test]
fn a_volume_given_back_to_its_plugin_is_let_go_after_the_last_attachment() {
    for annotations in [json!({}), json!({ names::MIGRATED_TO: "other" }), json!({ names::MIGRATED_TO_BETA: "" })] {
        let mut world = world(EBS, disk(), json!({ "annotations": annotations }));
        want(&mut world, named());
        world.run(&va());
        assert_eq!(world.code(&volume()), "StillAttached");
        assert!(world.run(&volume()).is_empty() && held(&world));
        world.delete(Kind::VolumeAttachment, "va");
        world.run(&va());
        let Decision::Do(act, _) = world.decide(&volume()) else { panic!("{}", world.code(&volume())) };
        let Effect::Write(write) = act.effect() else { panic!("{act:?}") };
        let seen = api::Seen::of::<api::PersistentVolume>(&world.real_volume().unwrap().metadata);
        assert_eq!(write, seen.remove_finalizer(&names::attacher_finalizer(EBS)));
        assert_eq!(world.run(&volume()), ["RemoveVolumeFinalizer"]);
        assert!(!held(&world));
    }
}

// S4-42 under the seed's key.
#[test]
fn the_seeds_key_is_read_as_well() {
    let mut world = world(EBS, disk(), json!({ "annotations": { names::MIGRATED_TO_BETA: EBS } }));
    want(&mut world, named());
    world.run(&va());
    world.delete(Kind::VolumeAttachment, "va");
    world.run(&va());
    assert_eq!(world.code(&volume()), "VolumeStays");
}

// The write that lets a volume go may land after the next attachment came: then the volume is held again.
#[test]
fn a_volume_let_go_as_it_is_attached_again_is_held_again() {
    let mut world = world(EBS, disk(), json!({}));
    want(&mut world, named());
    world.run(&va());
    let bare = json!({ "metadata": { "finalizers": [names::PV_PROTECTION] } });
    world.patch(Kind::PersistentVolume, "v", bare);
    assert_eq!(world.run(&va()), ["AddVolumeFinalizer"]);
    assert!(held(&world));
    assert_eq!(world.code(&va()), "Attached");
}

// S4-16, S4-18: the attachment's own volume is used, and no object is looked for.
#[test]
fn an_attachment_may_hold_the_volume_itself_in_either_form() {
    let csi = json!({ "driver": EBS, "volumeHandle": "vol-1", "volumeAttributes": { "partition": "1" } });
    for source in [json!({ "csi": csi }), disk()] {
        let mut world = world(EBS, disk(), json!({}));
        let mut spec = json!({ "accessModes": ["ReadWriteOnce"] });
        rules_store::merge_patch(&mut spec, &source);
        want(&mut world, json!({ "inlineVolumeSpec": spec }));
        assert_eq!(world.run(&va()), ["AddAttachmentFinalizer", "ControllerPublishVolume", "ConfirmAttached"]);
        let Call::ControllerPublishVolume(request) = &world.driver.calls[0] else { panic!("{:?}", world.driver.calls) };
        assert_eq!(request.volume_id, "vol-1");
        assert!(!held(&world), "an inline volume marks no object");
    }
}

// S4-11, TR-3: what cannot be translated, or is another driver's, is told and nothing is called.
#[test]
fn what_cannot_be_translated_is_told() {
    for (source, code, word) in [
        (json!({ "awsElasticBlockStore": { "volumeID": "aws://nowhere" } }), "Impossible", "cannot be translated"),
        (json!({ "cinder": { "volumeID": "c" } }), "Impossible", "does not belong to driver ebs.csi.aws.com"),
    ] {
        let mut world = world(EBS, source, json!({}));
        want(&mut world, named());
        assert_eq!(world.run(&va()), ["ReportAttachError"]);
        assert_eq!(world.code(&va()), code);
        let told = world.json(Kind::VolumeAttachment, "va")["status"]["attachError"]["message"].clone();
        assert!(told.as_str().unwrap().contains(word), "{told}");
        assert!(world.driver.calls.is_empty());
    }
}

// A14, TR-23: the driver lists a volume under its whole name, which a translated one leaves open.
#[test]
fn lists_are_compared_under_the_repaired_handle() {
    let mut world = world(
        GCE,
        json!({ "gcePersistentDisk": { "pdName": "d" } }),
        json!({ "labels": { names::ZONE: "us-east1-b" } }),
    );
    world.update_local(|local| local.list_every_millis = 60_000);
    want(&mut world, named());
    world.run(&va());
    let Call::ControllerPublishVolume(request) = &world.driver.calls[0] else { panic!("{:?}", world.driver.calls) };
    assert_eq!(request.volume_id, "projects/UNSPECIFIED/zones/us-east1-b/disks/d", "the call is upstream's");
    let whole = ("projects/p/zones/us-east1-b/disks/d".into(), NODE_ID.into());
    world.update_local(|local| local.listing.whole = Some([whole].into()));
    assert_eq!(world.code(&va()), "Attached");
    world.update_local(|local| local.listing.whole = Some([].into()));
    assert_eq!(world.code(&va()), "Publishing");
    // Our own call counts as listed, so that it is not repeated.
    assert_eq!(world.run(&va()), ["ControllerPublishVolume"]);
    assert!(Attacher::keys(&world.cache, world.local()).contains(&va()));
    assert!(matches!(world.decide(&va()), Decision::Rest(_)));
}

// The printed name of the action and its wish to leave are what they were for volumes that are being deleted.
#[test]
fn a_volume_that_is_being_deleted_is_let_go_whatever_was_written_meanwhile() {
    let mut world = world(EBS, disk(), json!({ "annotations": { names::MIGRATED_TO: EBS } }));
    want(&mut world, named());
    world.run(&va());
    world.delete(Kind::VolumeAttachment, "va");
    world.run(&va());
    world.delete(Kind::PersistentVolume, "v");
    world.sync();
    assert!(matches!(world.decide(&volume()), Decision::Do(Action::RemoveVolumeFinalizer { leaving: true, .. }, _)));
    assert_eq!(world.run(&volume()), ["RemoveVolumeFinalizer"]);
}

// S4-2, S4-36: with the gate off nothing new is published, and what was published before is still unpublished.
#[test]
fn a_plugin_that_serves_its_volumes_keeps_them_and_gets_back_what_the_driver_has() {
    let mut world = world(EBS, disk(), json!({ "annotations": { names::MIGRATED_TO: EBS } }));
    want(&mut world, named());
    world.run(&va());
    world.update_local(|local| local.migration = local.migration.with(Plugin::AwsEbs, Phase::Off));
    world.delete(Kind::VolumeAttachment, "va");
    assert_eq!(world.run(&va()), ["RecheckAttachment", "ControllerUnpublishVolume", "RemoveAttachmentFinalizer"]);
    let calls = world.driver.calls.len();
    want(&mut world, named());
    world.run(&va());
    assert_eq!(world.driver.calls.len(), calls, "{:?}", world.driver.calls);
    let told = world.json(Kind::VolumeAttachment, "va")["status"]["attachError"]["message"].clone();
    assert_eq!(told, "volume v is left to kubernetes.io/aws-ebs: gate CSIMigrationAWS is off here");
    // S4-1: and with the gate on again it is.
    world.update_local(|local| local.migration = local.migration.with(Plugin::AwsEbs, Phase::On));
    world.run(&va());
    assert_eq!(world.driver.calls.len(), calls + 1);
}
