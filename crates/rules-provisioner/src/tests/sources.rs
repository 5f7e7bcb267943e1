use alloc::string::ToString;

use api::{Kind, ObjectKey, names};
use csi::v1::volume_content_source::Type;
use serde_json::{Value, json};

use super::world::{CLAIM, VOLUME, World};

const SNAPSHOT: Kind = Kind::VolumeSnapshot;
const CONTENT: Kind = Kind::VolumeSnapshotContent;

fn from_snapshot() -> Value {
    json!({ "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "snap" })
}

fn merged(mut base: Value, more: &Value) -> Value {
    rules_store::merge_patch(&mut base, more);
    base
}

/// A ready snapshot `snap` of 1Gi and its content, each changed by a merge.
pub(super) fn with_snapshot(snapshot: Value, content: Value) -> World {
    let mut world = World::new().able().with(|settings| settings.topology = false);
    let source = json!({ "volumeSnapshotContentName": "content" });
    let status = json!({
        "boundVolumeSnapshotContentName": "content", "readyToUse": true, "restoreSize": "1Gi",
    });
    let base = json!({ "metadata": { "name": "snap" }, "spec": { "source": source }, "status": status });
    create(&mut world, SNAPSHOT, merged(base, &snapshot));
    let uid = world.get(SNAPSHOT, "snap").unwrap()["metadata"]["uid"].clone();
    let spec = json!({
        "driver": "d", "deletionPolicy": "Delete", "source": { "snapshotHandle": "h" }, "sourceVolumeMode": "Filesystem",
        "volumeSnapshotRef": { "namespace": "n", "name": "snap", "uid": uid },
    });
    let base = json!({ "metadata": { "name": "content" }, "spec": spec, "status": { "snapshotHandle": "h" } });
    create(&mut world, CONTENT, merged(base, &content));
    world.class("fast", "d", json!({}))
}

/// Creates an object with its status, which the API takes in a write of its own.
fn create(world: &mut World, kind: Kind, body: Value) {
    world.create(kind, body.clone());
    if !body["status"].is_null() {
        let name = body["metadata"]["name"].as_str().unwrap().to_string();
        world.patch_status(kind, &name, body["status"].clone());
    }
}

pub(super) fn restoring(mut world: World, spec: Value) -> World {
    world = world
        .with_claim("data", merged(json!({ "spec": { "dataSource": from_snapshot() } }), &json!({ "spec": spec })));
    world
}

/// Why a claim from a snapshot that is changed like this cannot be served.
fn snapshot_code(snapshot: Value, content: Value, spec: Value) -> &'static str {
    let mut world = restoring(with_snapshot(snapshot, content), spec);
    world.run();
    if world.driver.volumes.is_empty() {
        assert!(world.log.is_empty(), "{:?}", world.log);
    }
    world.why_claim()
}

// P49 to P58, in upstream's order.
#[test]
fn a_snapshot_must_be_fit_to_be_restored() {
    let status = |status: Value| json!({ "status": status });
    let spec = |spec: Value| json!({ "spec": spec });
    let plain = || json!({});
    for (snapshot, content, claim, code) in [
        (plain(), plain(), json!({ "dataSource": { "name": "other" } }), "SnapshotMissing"), // P49
        (status(json!({ "boundVolumeSnapshotContentName": null })), plain(), plain(), "SnapshotUnbound"), // P50
        (status(json!({ "boundVolumeSnapshotContentName": "gone" })), plain(), plain(), "ContentMissing"), // P51
        (plain(), spec(json!({ "volumeSnapshotRef": { "uid": "x" } })), plain(), "ContentOfAnother"), // P52
        (plain(), spec(json!({ "volumeSnapshotRef": { "name": "x" } })), plain(), "ContentOfAnother"), // P52
        (plain(), spec(json!({ "driver": "e" })), plain(), "SnapshotOfAnotherDriver"),       // P53
        (status(json!({ "readyToUse": false })), plain(), plain(), "SnapshotNotReady"),      // P54
        (plain(), status(json!({ "snapshotHandle": null })), plain(), "NoSnapshotHandle"),   // P55
        (status(json!({ "restoreSize": "2Gi" })), plain(), plain(), "SmallerThanSnapshot"),  // P56
        (status(json!({ "restoreSize": "1Mi" })), plain(), plain(), "VolumeMade"),           // P57: larger is fine
        (plain(), spec(json!({ "sourceVolumeMode": "Block" })), plain(), "VolumeModeChanged"), // P58
        (plain(), spec(json!({ "sourceVolumeMode": null })), plain(), "VolumeMade"),         // P58
        (plain(), plain(), json!({ "dataSource": { "apiGroup": "other" } }), "WrongSourceGroup"),
        (plain(), plain(), plain(), "VolumeMade"),
    ] {
        assert_eq!(snapshot_code(snapshot, content, claim), code);
    }
}

// Sidecars 2.4 step 4. The API server lets no such claim in.
#[test]
fn a_source_must_have_a_name() {
    let nameless = merged(from_snapshot(), &json!({ "name": "" }));
    let claim = super::request::claim(json!({ "dataSource": nameless }));
    let local = World::new().able().engine.local().clone();
    let terms = super::request::under(&claim, &super::request::class(&[]), &local, &[]);
    assert_eq!(terms, Err("SourceUnnamed"));
}

// P58: changed where it is allowed, or where nobody minds.
#[test]
fn the_mode_of_a_snapshot_may_change_where_it_is_allowed() {
    let block = json!({
        "metadata": { "annotations": { names::ALLOW_MODE_CHANGE: "true" } }, "spec": { "sourceVolumeMode": "Block" },
    });
    assert_eq!(snapshot_code(json!({}), block, json!({})), "VolumeMade");
    let mut world = with_snapshot(json!({}), json!({ "spec": { "sourceVolumeMode": "Block" } }));
    world = restoring(world.with(|settings| settings.prevent_volume_mode_conversion = false), json!({}));
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
}

fn finalizers(world: &World, kind: Kind, name: &str) -> alloc::string::String {
    world.get(kind, name).unwrap()["metadata"]["finalizers"].to_string()
}

fn bind(world: &mut World, claim: &str) {
    let name = world.engine.local().volume_name(world.claim(claim)["metadata"]["uid"].as_str().unwrap());
    world.patch(CLAIM, claim, json!({ "spec": { "volumeName": name } }));
    world.patch_status(CLAIM, claim, json!({ "phase": "Bound" }));
    world.patch_status(VOLUME, &name, json!({ "phase": "Bound" }));
}

// P61, reliability 12: held before the call, sent along, and let go once the claim has its volume.
#[test]
fn a_snapshot_is_held_while_it_is_copied() {
    let mut world = restoring(with_snapshot(json!({}), json!({})), json!({}));
    world.run_for(2);
    assert_eq!(world.log[1], "AddSourceFinalizer(VolumeSnapshot n/snap)");
    assert!(finalizers(&world, SNAPSHOT, "snap").contains(names::SNAPSHOT_SOURCE_PROTECTION));
    world.run();
    let source = world.request().volume_content_source.clone().unwrap().r#type;
    assert!(matches!(source, Some(Type::Snapshot(snapshot)) if snapshot.snapshot_id == "h"));
    assert!(world.run_sources().is_empty(), "the claim is not bound yet");
    bind(&mut world, "data");
    assert_eq!(world.run_sources(), ["RemoveSourceFinalizer(VolumeSnapshot n/snap)"]);
    assert_eq!(finalizers(&world, SNAPSHOT, "snap"), "null");
    assert!(world.run_sources().is_empty());
}

// P59: one that is being deleted is copied only if it is held already.
#[test]
fn a_snapshot_being_deleted_is_copied_only_if_it_is_held() {
    for (held, code) in
        [("someone.else/holds", "SnapshotBeingDeleted"), (names::SNAPSHOT_SOURCE_PROTECTION, "VolumeMade")]
    {
        let mut world = with_snapshot(json!({ "metadata": { "finalizers": [held] } }), json!({}));
        world.delete(SNAPSHOT, "snap");
        world = restoring(world, json!({}));
        world.run();
        assert_eq!(world.why_claim(), code);
    }
}

// P60: where we may not write to snapshots, they are restored all the same.
#[test]
fn a_snapshot_we_may_not_hold_is_restored_all_the_same() {
    let mut world = restoring(with_snapshot(json!({}), json!({})), json!({}));
    world.forbidden = [SNAPSHOT].into();
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
    assert_eq!(finalizers(&world, SNAPSHOT, "snap"), "null");
}

// P62: what was left held is let go at the start; what is still copied is not, also across namespaces by reference.
#[test]
fn leftovers_are_let_go_and_what_is_copied_is_not() {
    let held = || json!({ "metadata": { "finalizers": [names::SNAPSHOT_SOURCE_PROTECTION] } });
    let mut world = with_snapshot(held(), json!({}));
    assert_eq!(world.run_sources(), ["RemoveSourceFinalizer(VolumeSnapshot n/snap)"]);
    let mut world = with_snapshot(held(), json!({}));
    let reference = json!({ "spec": { "dataSourceRef": from_snapshot(), "storageClassName": "other" } });
    world = world.with_claim("data", reference);
    assert!(world.run_sources().is_empty());
    world.delete(SNAPSHOT, "snap");
    assert!(world.run_sources().is_empty());
    world.patch(CLAIM, "data", json!({ "metadata": { "finalizers": null } }));
    world.delete(CLAIM, "data");
    assert_eq!(world.run_sources(), ["RemoveSourceFinalizer(VolumeSnapshot n/snap)"]);
    assert!(world.get(SNAPSHOT, "snap").is_none());
}

// The snapshot's readiness wakes the claim (no polling).
#[test]
fn a_snapshot_that_becomes_ready_wakes_its_claims() {
    let mut world = restoring(with_snapshot(json!({ "status": { "readyToUse": false } }), json!({})), json!({}));
    world.run();
    assert_eq!(world.why_claim(), "SnapshotNotReady");
    world.patch_status(SNAPSHOT, "snap", json!({ "readyToUse": true }));
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
}

// P76, reliability 12: a driver that does not name the source has its volume deleted again.
#[test]
fn a_driver_must_say_what_it_made_the_volume_from() {
    let mut world = restoring(with_snapshot(json!({}), json!({})), json!({}));
    world.driver.names_source = false;
    assert!(!world.run_for(12));
    assert!(world.log.iter().any(|line| line.starts_with("DeleteVolume")));
    assert!(world.get(VOLUME, &world.pv_name()).is_none());
    world.driver.names_source = true;
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
}

/// Claim `src` with a bound volume, changed by merges.
pub(super) fn with_source(claim: Value, volume: Value) -> World {
    let mut world = World::new().able().with(|settings| settings.topology = false).class("fast", "d", json!({}));
    world = world.with_claim("src", json!({ "metadata": { "annotations": null } }));
    let uid = world.claim("src")["metadata"]["uid"].clone();
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
        "claimRef": { "namespace": "n", "name": "src", "uid": uid },
        "csi": { "driver": "d", "volumeHandle": "v" }, "persistentVolumeReclaimPolicy": "Retain",
    });
    let base = json!({ "metadata": { "name": "pv" }, "spec": spec, "status": { "phase": "Bound" } });
    create(&mut world, VOLUME, merged(base, &volume));
    world.patch(CLAIM, "src", json!({ "spec": { "volumeName": "pv" } }));
    let status = merged(json!({ "status": { "phase": "Bound" } }), &claim)["status"].clone();
    world.patch_status(CLAIM, "src", status);
    world
}

pub(super) fn cloning(world: World, spec: Value) -> World {
    let source = json!({ "kind": "PersistentVolumeClaim", "name": "src" });
    world.with_claim("data", merged(json!({ "spec": { "dataSource": source } }), &json!({ "spec": spec })))
}

fn clone_code(claim: Value, volume: Value, spec: Value) -> &'static str {
    let mut world = cloning(with_source(claim, volume), spec);
    world.run();
    world.why_claim()
}

// P63 to P72, in upstream's order.
#[test]
fn a_source_must_be_fit_to_be_copied() {
    let plain = || json!({});
    let spec = |spec: Value| json!({ "spec": spec });
    let half = json!({ "resources": { "requests": { "storage": "512Mi" } } });
    for (claim, volume, copy, code) in [
        (plain(), plain(), json!({ "dataSource": { "name": "other" } }), "SourceMissing"), // P63
        (json!({ "status": { "phase": "Pending" } }), plain(), plain(), "SourceNotBound"), // P64
        (plain(), plain(), half, "SmallerThanSource"),                                     // P66
        (plain(), json!({ "metadata": { "name": "other" } }), plain(), "SourceVolumeMissing"), // P67
        (plain(), spec(json!({ "csi": null, "hostPath": { "path": "/x" } })), plain(), "SourceNotCsi"), // P68
        (plain(), spec(json!({ "csi": { "driver": "e" } })), plain(), "SourceOfAnotherDriver"), // P69
        (plain(), spec(json!({ "claimRef": { "uid": "x" } })), plain(), "SourceVolumeOfAnother"), // P70
        (plain(), json!({ "status": { "phase": "Released" } }), plain(), "SourceVolumeNotBound"), // P71
        (plain(), plain(), json!({ "volumeMode": "Block" }), "SourceModeDiffers"),         // P72
        (plain(), plain(), plain(), "VolumeMade"),
    ] {
        assert_eq!(clone_code(claim, volume, copy), code);
    }
}

// P65: a source that is going is not copied; one already under way is.
#[test]
fn a_source_being_deleted_is_not_copied() {
    let mut world = with_source(json!({}), json!({}));
    world.delete(CLAIM, "src");
    world = cloning(world, json!({}));
    world.run();
    assert_eq!(world.why_claim(), "SourceBeingDeleted");
    let mut world = cloning(with_source(json!({}), json!({})), json!({}));
    world.run_for(2);
    world.delete(CLAIM, "src");
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
}

// P73, reliability 12: the source is held, stays held, and is let go when it is deleted and nobody copies it.
#[test]
fn a_copied_claim_is_held_until_it_is_deleted_and_no_copy_is_made() {
    let mut world = cloning(with_source(json!({}), json!({})), json!({}));
    world.run();
    assert!(world.log.contains(&"AddSourceFinalizer(PersistentVolumeClaim n/src)".to_string()));
    let source = world.request().volume_content_source.clone().unwrap().r#type;
    assert!(matches!(source, Some(Type::Volume(volume)) if volume.volume_id == "v"));
    assert!(world.run_sources().is_empty());
    world.delete(CLAIM, "src");
    assert_eq!(world.run_sources(), ["RemoveSourceFinalizer(PersistentVolumeClaim n/src)"]);
    assert!(!finalizers(&world, CLAIM, "src").contains(names::CLONE_PROTECTION));
}

// Reliability 12: while a copy may be under way, the source stays.
#[test]
fn a_claim_whose_copy_has_begun_is_not_let_go() {
    let mut world = cloning(with_source(json!({}), json!({})), json!({}));
    world.run_for(2);
    assert_eq!(world.log.last().unwrap(), "AddSourceFinalizer(PersistentVolumeClaim n/src)");
    world.delete(CLAIM, "src");
    assert!(world.run_sources().is_empty());
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
    assert_eq!(world.run_sources(), ["RemoveSourceFinalizer(PersistentVolumeClaim n/src)"]);
}

// Reliability 12: a finalizer that was there before the intent may be about to go, so it is made sure of.
#[test]
fn a_source_that_is_held_already_is_held_once_more() {
    let held = json!({ "metadata": { "finalizers": [names::CLONE_PROTECTION] } });
    let mut world = with_source(json!({}), json!({}));
    world.patch(CLAIM, "src", held);
    world = cloning(world, json!({}));
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
    let holds = world.log.iter().filter(|action| action.starts_with("AddSourceFinalizer")).count();
    assert_eq!(holds, 1);
    assert!(world.get(CLAIM, "src").unwrap()["metadata"]["annotations"][names::SOURCE_HELD].is_string());
}

// P74: what others fill is left to them, and said.
#[test]
fn other_sources_are_left_to_whoever_fills_them() {
    let source = json!({ "apiGroup": "example.org", "kind": "Backup", "name": "b" });
    let mut world = World::new().able().with(|settings| settings.topology = false).class("fast", "d", json!({}));
    world = world.with_claim("data", json!({ "spec": { "dataSourceRef": source } }));
    world.run();
    assert!(world.log.is_empty());
    assert_eq!(world.why_claim(), "ExternalPopulator");
}

fn grant(from: Value, to: Value) -> Value {
    let from = merged(json!({ "group": "", "kind": "PersistentVolumeClaim", "namespace": "n" }), &from);
    let to = merged(json!({ "group": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot" }), &to);
    json!({ "metadata": { "name": "g", "namespace": "far" }, "spec": { "from": [from], "to": [to] } })
}

/// What becomes of a claim whose snapshot is in namespace `far`.
fn across(enabled: bool, grant: Option<Value>) -> &'static str {
    let reference = merged(from_snapshot(), &json!({ "namespace": "far" }));
    let mut body = json!({
        "metadata": { "namespace": "n", "name": "c", "uid": "u" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } }, "dataSourceRef": reference,
        },
    });
    body["metadata"]["resourceVersion"] = "1".into();
    let claim = serde_json::from_value(body).unwrap();
    let mut local = World::new().able().engine.local().clone();
    local.settings =
        crate::Settings { cross_namespace_sources: enabled, topology: false, ..crate::Settings::default() }.into();
    let grants: alloc::vec::Vec<_> = grant.into_iter().map(|grant| (Kind::ReferenceGrant, grant)).collect();
    match super::request::under(&claim, &super::request::class(&[]), &local, &grants) {
        Ok(_) => "Standing",
        Err(code) => code,
    }
}

// P75: who may refer to what. A grant lets the reference through to the checks of the snapshot itself.
#[test]
fn a_source_in_another_namespace_needs_leave() {
    assert_eq!(across(false, Some(grant(json!({}), json!({})))), "CrossNamespaceOff");
    assert_eq!(across(true, None), "NotGranted");
    for (from, to, code) in [
        (json!({}), json!({}), "SnapshotMissing"),
        (json!({}), json!({ "name": "snap" }), "SnapshotMissing"),
        (json!({}), json!({ "name": "" }), "SnapshotMissing"),
        (json!({}), json!({ "name": "other" }), "NotGranted"),
        (json!({}), json!({ "group": "" }), "NotGranted"),
        (json!({}), json!({ "kind": "PersistentVolumeClaim" }), "NotGranted"),
        (json!({ "namespace": "m" }), json!({}), "NotGranted"),
        (json!({ "kind": "Pod" }), json!({}), "NotGranted"),
        (json!({ "group": "apps" }), json!({}), "NotGranted"),
    ] {
        assert_eq!(across(true, Some(grant(from.clone(), to.clone()))), code, "{from} {to}");
    }
    let elsewhere = merged(grant(json!({}), json!({})), &json!({ "metadata": { "namespace": "n" } }));
    assert_eq!(across(true, Some(elsewhere)), "NotGranted");
}

// A claim deleted while its copy is uncertain still holds the source (reliability 12).
#[test]
fn a_claim_being_undone_still_holds_its_source() {
    let mut world = restoring(with_snapshot(json!({}), json!({})), json!({}));
    world.lose_answer = Some(2);
    world.run_for(3);
    world.delete_claim();
    world.delete(SNAPSHOT, "snap");
    assert!(world.run_sources().is_empty());
    world.run_to_the_end();
    assert!(world.driver.volumes.is_empty() && world.cache.claim(&ObjectKey::new("n", "data")).is_none());
    assert_eq!(world.run_sources(), ["RemoveSourceFinalizer(VolumeSnapshot n/snap)"]);
    assert!(world.get(SNAPSHOT, "snap").is_none());
}
