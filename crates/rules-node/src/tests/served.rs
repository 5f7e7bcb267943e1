//! Who serves a volume of an in-tree plugin, who waits for whom, how a volume is attached: each condition by itself.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Kind, Object, PersistentVolume, Value};
use control::Cache;
use prove_lab::object;
use rules_translate::{Migration, Phase, Plugin};
use serde_json::json;

use super::plain::{cache, local, merge, pod_of, volume};
use super::world::{MIGRATED, PLUGIN};
use crate::served::{self, CsiVolume};
use crate::{AttachmentState, DriverFacts, Local, PodVolumeView, Record};

fn disk(name: &str) -> Value {
    json!({ "gcePersistentDisk": { "pdName": name, "fsType": "ext4" } })
}

/// Volume `pv` of a disk of the plugin.
fn in_tree(name: &str) -> Object {
    let mut spec = disk(name);
    spec["csi"] = Value::Null;
    volume(json!({ "spec": spec }))
}

fn of_disk(name: &str, local: &Local) -> CsiVolume {
    let cache = cache([in_tree(name)]);
    let found: Vec<Arc<PersistentVolume>> = cache.volumes().collect();
    CsiVolume::of(found[0].clone(), local).unwrap()
}

/// The node on which the plugin is at work, and the gate is this.
fn node(phase: Phase) -> Local {
    let mut local = local();
    local.drivers.insert(PLUGIN.0.into(), DriverFacts::default());
    local.migration = Migration::default().with(Plugin::GcePd, phase);
    local
}

fn attachment(source: Value, status: Value) -> Object {
    let spec = json!({ "attacher": MIGRATED.0, "nodeName": "n", "source": source });
    object(Kind::VolumeAttachment, json!({ "metadata": { "name": "va" }, "spec": spec, "status": status }))
}

// S4-33, S4-36: wherever its driver has the very volume attached, the plugin waits; other volumes are nothing to it.
#[test]
fn s4_33_the_plugin_waits_for_attachments_of_its_own_disk_alone() {
    let local = node(Phase::Off);
    let one = of_disk(PLUGIN.1, &local);
    let inline = |driver: &str, handle: &str| {
        let csi = json!({ "driver": driver, "volumeHandle": handle });
        json!({ "inlineVolumeSpec": { "csi": csi, "accessModes": ["ReadWriteOnce"] } })
    };
    let other = MIGRATED.1.replace("disk-1", "disk-2");
    for (source, waits) in [
        (json!({ "persistentVolumeName": "pv" }), true),
        (json!({ "persistentVolumeName": "other" }), false),
        (inline(MIGRATED.0, MIGRATED.1), true),
        (inline(MIGRATED.0, &other), false),
        (inline("other.example", MIGRATED.1), false),
    ] {
        let cache = cache([attachment(source.clone(), json!({}))]);
        let hindered = one.hindered(&pod_of(json!({})), &cache, &local);
        assert_eq!(matches!(hindered, Some(PodVolumeView::Waiting(_))), waits, "{source}");
    }
}

#[test]
fn s4_13_a_disk_is_found_among_all_volumes_of_its_plugin() {
    let local = node(Phase::Off);
    let named = |name: &str, disk: &str| {
        let mut body = json!({ "metadata": { "name": name }, "spec": { "accessModes": ["ReadWriteOnce"] } });
        merge(&mut body["spec"], &self::disk(disk));
        object(Kind::PersistentVolume, body)
    };
    let cache = cache([named("a", "disk-1"), named("b", "disk-2")]);
    let found = |disk: &str| -> Vec<String> {
        let all = served::of_handle(PLUGIN.0, disk, &cache, &local);
        all.iter().map(|one| one.volume.metadata.name.clone()).collect()
    };
    for (disk, name) in [("disk-1", &["a"][..]), ("disk-2", &["b"]), ("disk-3", &[])] {
        assert_eq!(found(disk), name);
    }
}

// S4-18, KL-31: of the disks that pods hold, each pod wants its own, and only as the filesystem that it is.
#[test]
fn s4_18_a_pod_holds_the_disk_that_its_containers_use_as_what_it_is() {
    let local = node(Phase::Off);
    let holding = |name: &str, used: Value| {
        let mut source = disk(name);
        source["name"] = "v".into();
        let mut container = json!({ "name": "c", "image": "i", "command": ["x"] });
        merge(&mut container, &used);
        pod_of(json!({ "spec": { "volumes": [source], "containers": [container] } }))
    };
    let mounted = json!({ "volumeMounts": [{ "name": "v", "mountPath": "/v" }] });
    let raw = json!({ "volumeDevices": [{ "name": "v", "devicePath": "/dev/v" }] });
    let pod = holding("disk-1", mounted.clone());
    let held = CsiVolume::held(&pod, &pod.spec.volumes[0], &local).unwrap();
    for (name, used, holds) in [
        ("disk-1", &mounted, true),
        ("disk-2", &mounted, false),
        ("disk-1", &raw, false),
        ("disk-1", &json!({}), false),
    ] {
        assert_eq!(served::is_held_by(&holding(name, used.clone()), &held, &local), holds, "{name} {used}");
    }
}

// S4-34: the node is to be drained of what was mounted by the one who does not serve the plugin's volumes any more.
#[test]
fn s4_34_a_volume_is_undrained_where_the_gate_was_switched_since_it_was_mounted() {
    for (driver, migrated, phase, said) in [
        (PLUGIN.0, false, Phase::On, Some("was switched on there since")),
        (PLUGIN.0, false, Phase::Off, None),
        (MIGRATED.0, true, Phase::Off, Some("was switched off there since")),
        (MIGRATED.0, true, Phase::On, None),
        // It was made for the driver, whatever the gate of the plugin.
        (MIGRATED.0, false, Phase::Off, None),
        (MIGRATED.0, false, Phase::On, None),
        ("d", false, Phase::Off, None),
    ] {
        let record = Record { migrated, ..Record::of("pv", driver, "h", "n") };
        let told = served::undrained(&record, &node(phase));
        let as_told = match (&told, said) {
            (Some(told), Some(said)) => told.contains(said),
            (told, said) => told.is_none() && said.is_none(),
        };
        assert!(as_told, "{driver} {migrated} {phase:?}: {told:?}");
    }
}

fn driver(attach_required: bool) -> Object {
    let spec = json!({ "attachRequired": attach_required });
    object(Kind::CSIDriver, json!({ "metadata": { "name": "d" }, "spec": spec }))
}

// KL-40, KL-103: a volume that nobody wants just now is reported as needing its attachment, unless nothing attaches it.
#[test]
fn kl_40_an_unwanted_volume_needs_an_attachment_unless_nobody_makes_one() {
    let of_pod = alloc::format!("csi-{}", "0a".repeat(32));
    let of_pod = of_pod.as_str();
    let handled = |handle: &str| volume(json!({ "spec": { "csi": { "volumeHandle": handle } } }));
    for (driver_name, handle, objects, needed) in [
        ("d", "h", Vec::new(), true),
        ("d", "h", [driver(true)].into(), true),
        ("d", "h", [driver(false)].into(), false),
        // A plugin attaches what it serves itself.
        (PLUGIN.0, PLUGIN.1, Vec::new(), false),
        // What is in a pod's own spec is not attached, and no object has its handle.
        ("d", of_pod, Vec::new(), false),
        ("d", of_pod, [handled(of_pod)].into(), true),
    ] {
        let state = served::unwanted(driver_name, handle, &cache(objects), &local());
        assert_eq!(state != AttachmentState::NotNeeded, needed, "{driver_name} {handle}");
    }
}

// KL-40: only an attachment to this node that is there to stay counts, and a failure is told in its words.
#[test]
fn kl_40_a_volume_is_attached_when_its_attachment_says_so_and_stays() {
    let local = local();
    let of = |cache: &Cache| {
        let found: Vec<_> = served::of_handle("d", "h", cache, &local);
        served::attachment(&found[0], cache, &local)
    };
    let waits = |objects: Vec<Object>| match of(&cache(objects.into_iter().chain([volume(json!({}))]))).0 {
        AttachmentState::Waiting(text) => text,
        AttachmentState::NotNeeded => "not needed".into(),
        AttachmentState::Attached => "attached".into(),
    };
    let named = json!({ "persistentVolumeName": "pv" });
    let attached = json!({ "attached": true, "attachmentMetadata": { "lun": "3" } });
    let with = |status: Value, more: Value| {
        let spec = json!({ "attacher": "d", "nodeName": "n", "source": named });
        let mut body = json!({ "metadata": { "name": "va" }, "spec": spec, "status": status });
        merge(&mut body, &more);
        object(Kind::VolumeAttachment, body)
    };
    let deleting = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let error = json!({ "attached": false, "attachError": { "message": "no such disk" } });
    for (objects, said) in [
        (Vec::new(), "there is no VolumeAttachment of volume pv to node n yet"),
        ([with(attached.clone(), json!({}))].into(), "attached"),
        ([with(attached.clone(), deleting)].into(), "VolumeAttachment va is being deleted"),
        ([with(json!({ "attached": false }), json!({}))].into(), "volume pv is not attached to node n yet"),
        ([with(error, json!({}))].into(), "attaching volume pv fails: no such disk"),
        (
            [with(attached.clone(), json!({ "spec": { "nodeName": "m" } }))].into(),
            "there is no VolumeAttachment of volume pv to node n yet",
        ),
        ([driver(false)].into(), "not needed"),
    ] {
        assert_eq!(waits(objects), said);
    }
    let (_, told) = of(&cache([with(attached, json!({})), volume(json!({}))]));
    assert_eq!(told.get("lun").map(String::as_str), Some("3"));
}
