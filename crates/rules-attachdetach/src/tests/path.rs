use alloc::format;
use alloc::vec::Vec;

use api::{Kind, ObjectRef};
use control::{Change, Decision, Rules as _};
use serde_json::{Value, json};

use super::world::*;
use crate::{AttachDetach, Key};

// The straight path, and reliability 37 and 38: attach, report, take back, detach, and no wait on the way. AD-28: what
// is wanted and nowhere is attached. AD-20, AD-44: the report goes before the attachment, and neither goes while the
// node uses the volume.
#[test]
fn a_volume_comes_and_goes_with_its_pod() {
    let mut world = World::new(&["ReadWriteOnce"]);
    assert_eq!(world.code(&on("a")), "NotWanted");
    world.pod("p", "a");
    assert_eq!(world.run(&on("a")), ["CreateAttachment"]);
    assert_eq!(world.code(&on("a")), "WaitingForAttacher");
    let made = world.real_attachment("a").unwrap();
    assert_eq!((made.spec.attacher.as_str(), made.volume()), (DRIVER, Some("v")));
    assert_eq!(made.metadata.name, attachment_name("a")); // reliability 31
    world.attach("a");
    assert_eq!(world.run(&on("a")), ["ReportAttached"]);
    assert!(world.reported("a"));
    assert!(world.decide(&on("a")).why().settled);
    world.in_use("a", true);
    world.delete(Kind::Pod, "p");
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "InUse");
    world.in_use("a", false);
    assert_eq!(world.run(&on("a")), ["TakeReportBack", "DeleteAttachment"]);
    assert_eq!(world.code(&on("a")), "Detaching");
    world.release("a");
    assert!(world.run(&on("a")).is_empty());
    assert!(world.decide(&on("a")).why().settled);
    assert_eq!(world.writes, 4, "four writes for a whole life");
}

// Memory is a hint: losing it before every look costs an adoption and a fence, and changes nothing else.
#[test]
fn the_same_without_any_memory() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    assert_eq!(world.run_forgetful(&on("a")), ["CreateAttachment"]);
    world.attach("a");
    world.sync();
    assert_eq!(world.step(&on("a")), Some("AdoptAttachment"));
    assert_eq!(world.step(&on("a")), Some("ReportAttached"));
    assert!(world.run_forgetful(&on("a")).is_empty(), "nothing is repeated at rest (109, AD-25)");
    world.delete(Kind::Pod, "p");
    world.sync();
    world.forget();
    assert_eq!(world.step(&on("a")), Some("TakeReportBack"));
    world.forget();
    assert_eq!(world.step(&on("a")), Some("FenceNode"));
    assert_eq!(world.step(&on("a")), Some("DeleteAttachment"));
}

// AD-8: a pod that ended, or is being deleted and runs no more, wants nothing.
#[test]
fn a_finished_pod_wants_nothing() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    world.patch_status(Kind::Pod, "p", json!({ "phase": "Succeeded" }));
    assert_eq!(world.run(&on("a")), ["FenceNode", "DeleteAttachment"]);
}

// AD-8: any container that runs keeps the volume of a pod that is being deleted, whatever sort it is of.
#[test]
fn a_pod_that_is_deleted_keeps_its_volume_while_any_container_runs() {
    for list in ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"] {
        let mut world = World::new(&["ReadWriteOnce"]);
        world.make("pod p node=a claim=c");
        world.run(&on("a"));
        let status = |state: &str| {
            json!({ "phase": "Running", list: [{ "name": "main", "image": "i", "imageID": "", "ready": false,
                "restartCount": 0, "state": { state: {} } }] })
        };
        world.patch_status(Kind::Pod, "p", status("running"));
        world.delete_within(Kind::Pod, "p", 30);
        assert!(world.run(&on("a")).is_empty(), "{list}");
        assert_eq!(world.code(&on("a")), "WaitingForAttacher", "{list}");
        world.patch_status(Kind::Pod, "p", status("waiting"));
        assert_eq!(world.run(&on("a")), ["FenceNode", "DeleteAttachment"], "{list}");
    }
}

// AD-9: a claim made from a pod's template is for that pod alone; one of the same name that is somebody else's is not.
#[test]
fn a_template_s_claim_counts_only_for_its_own_pod() {
    let mut world = World::new(&["ReadWriteOnce"]);
    let claim = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    let volume = json!({ "name": "x", "ephemeral": { "volumeClaimTemplate": { "spec": claim } } });
    let containers = json!([{ "name": "main", "image": "i" }]);
    let spec = json!({ "nodeName": "a", "containers": containers, "volumes": [volume] });
    world.create(Kind::Pod, json!({ "metadata": { "name": "p" }, "spec": spec }));
    world.make(r#"claim p-x class="" volume=w"#);
    world.change("claim p-x status.phase=Bound");
    world.make(&format!("volume w driver={DRIVER} handle=h-2 policy=Delete claim=p-x"));
    world.sync();
    let key = Key::new("w", "a");
    assert!(world.run(&key).is_empty(), "the claim is somebody else's");
    assert_eq!(world.code(&key), "NotWanted");
    let uid = world.json(Kind::Pod, "p")["metadata"]["uid"].clone();
    let owner = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": true }]);
    world.patch(Kind::PersistentVolumeClaim, "p-x", json!({ "metadata": { "ownerReferences": owner } }));
    assert_eq!(world.run(&key), ["CreateAttachment"]);
}

// AD-34, AD-41: what turns out not to be attached is taken back from the node, and attached again; so is what has no
// attachment any more.
#[test]
fn a_volume_that_is_not_attached_any_more_is_attached_again() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    world.attach("a");
    assert_eq!(world.run(&on("a")), ["ReportAttached"]);
    world.patch_status(Kind::VolumeAttachment, &attachment_name("a"), json!({ "attached": false }));
    assert_eq!(world.run(&on("a")), ["TakeReportBack", "AdoptAttachment"]);
    assert_eq!(world.code(&on("a")), "WaitingForAttacher");
    world.attach("a");
    assert_eq!(world.run(&on("a")), ["ReportAttached"]);
    world.delete(Kind::VolumeAttachment, &attachment_name("a"));
    world.release("a");
    assert_eq!(world.run(&on("a")), ["TakeReportBack", "CreateAttachment"]);
    assert!(!world.reported("a"));
}

// AD-5: a node that comes anew, or has lost its list, is told again; one that is away is not, and nothing fails for it.
#[test]
fn ad_5_a_node_that_comes_back_without_its_list_is_told_again() {
    let mut world = World::attached();
    world.patch_status(Kind::Node, "a", json!({ "volumesAttached": null }));
    assert_eq!(world.run(&on("a")), ["ReportAttached"]);
    assert!(world.reported("a"));
    // AD-30: the list goes out whole, with the names of others in it. AD-39: a device has no path here.
    let other = json!({ "name": "kubernetes.io/csi/other^1", "devicePath": "/dev/x" });
    world.patch_status(Kind::Node, "a", json!({ "volumesAttached": [other] }));
    world.run(&on("a"));
    let told = world.json(Kind::Node, "a")["status"]["volumesAttached"].clone();
    assert_eq!(told, json!([other, { "name": unique_name(), "devicePath": "" }]));
    world.delete(Kind::Node, "a");
    world.node("a");
    world.run(&on("a"));
    assert!(world.reported("a"));
}

// AD-38: an attachment stays when the driver fails, and is the one that is attached in the end, whatever it last said.
#[test]
fn ad_38_an_attachment_outlives_the_failures_of_its_driver() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    let made = world.real_attachment("a").unwrap().metadata.uid;
    let error = json!({ "attachError": { "message": "not now" } });
    world.patch_status(Kind::VolumeAttachment, &attachment_name("a"), error);
    for _ in 0..3 {
        assert!(world.run(&on("a")).is_empty());
        assert_eq!(world.code(&on("a")), "AttachFailing");
        world.pass(600_000);
    }
    world.attach("a");
    assert_eq!(world.run(&on("a")), ["ReportAttached"], "an old error is no reason not to");
    assert_eq!(world.real_attachment("a").unwrap().metadata.uid, made);
}

// RWOP is for one node as well; that it is for one pod is the scheduler's and the node's business.
#[test]
fn a_volume_for_one_pod_is_for_one_node() {
    let mut world = World::new(&["ReadWriteOncePod"]);
    world.pod("p", "b");
    world.run(&on("b"));
    world.pod("q", "a");
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "AttachedElsewhere");
}

// S0-60, AD-36: attachments of the oldest name are no reason not to make one of today's, which kubelets look for, and
// are deleted with it. An attachment with both members of its source set is nobody's; the attacher says so.
#[test]
fn attachments_of_both_names_are_known() {
    let mut world = World::new(&["ReadWriteOnce"]);
    let spec = json!({ "attacher": DRIVER, "nodeName": "a", "source": { "persistentVolumeName": "v" } });
    world.create(Kind::VolumeAttachment, json!({ "metadata": { "name": OLDEST_NAME }, "spec": spec }));
    world.pod("p", "a");
    assert_eq!(world.run(&on("a")), ["CreateAttachment"]);
    world.attach("a");
    assert_eq!(world.run(&on("a")), ["AdoptAttachment", "ReportAttached"], "the one it found is adopted");
    world.pod("q", "b");
    world.delete(Kind::Pod, "p");
    world.sync();
    assert_eq!(world.run(&on("b")).len(), 0, "both hold the volume");
    assert_eq!(world.run(&on("a")), ["TakeReportBack", "DeleteAttachment", "DeleteAttachment"]);
    assert!(world.json(Kind::VolumeAttachment, OLDEST_NAME).is_null());
    world.release("a");
    assert_eq!(world.run(&on("b")), ["CreateAttachment"]);
}

// AD-10, AD-12: a driver that needs no attachments gets none, and leftovers go.
#[test]
fn a_driver_that_needs_no_attachment_gets_none() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    world.create(Kind::CSIDriver, json!({ "metadata": { "name": DRIVER }, "spec": { "attachRequired": false } }));
    assert_eq!(world.run(&on("a")), ["FenceNode", "DeleteAttachment"]);
    world.sync();
    assert_eq!(world.code(&on("a")), "NoAttachRequired");
}

// AD-10, inline ephemeral: what a pod's spec asks of a driver by itself is made on the node and never attached, though
// the driver attaches its other volumes.
#[test]
fn ad_10_a_volume_in_a_pod_s_own_spec_is_not_attached() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.create(Kind::CSIDriver, json!({ "metadata": { "name": DRIVER }, "spec": { "attachRequired": true } }));
    let inline = json!({ "name": "scratch", "csi": { "driver": DRIVER, "volumeAttributes": { "a": "b" } } });
    let claimed = json!({ "name": "data", "persistentVolumeClaim": { "claimName": "c" } });
    let pod = |name: &str, volumes: Value| {
        let containers = json!([{ "name": "main", "image": "i" }]);
        let spec = json!({ "nodeName": "a", "containers": containers, "volumes": volumes });
        json!({ "metadata": { "name": name }, "spec": spec })
    };
    world.create(Kind::Pod, pod("inline", json!([inline])));
    world.sync();
    let made = world.object(&ObjectRef::namespaced(Kind::Pod, "n", "inline"));
    let woken: Vec<Key> = AttachDetach::wakes(&Change { before: None, after: made }, &world.cache, &Default::default());
    assert!(woken.is_empty(), "{woken:?}");
    assert_eq!(AttachDetach::keys(&world.cache, &Default::default()), [], "nor after a restart");
    // Beside a claim, the claim's volume alone.
    world.create(Kind::Pod, pod("both", json!([inline, claimed])));
    world.sync();
    assert_eq!(AttachDetach::keys(&world.cache, &Default::default()), [on("a")]);
    assert_eq!(world.run(&on("a")), ["CreateAttachment"]);
    assert_eq!(world.list(Kind::VolumeAttachment).len(), 1);
    assert_eq!(world.real_attachment("a").unwrap().volume(), Some("v"));
}

// AD-6, on purpose otherwise: a node that takes attaching into its own hands gets no new attachment from then on, and
// what it has is kept while it is needed and taken away after.
#[test]
fn a_node_that_leaves_us_keeps_what_it_has() {
    let mut world = World::attached();
    let annotations = json!({ api::names::CONTROLLER_MANAGED_ATTACH: null });
    world.patch(Kind::Node, "a", json!({ "metadata": { "annotations": annotations } }));
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "Attached");
    world.delete(Kind::Pod, "p");
    assert_eq!(world.run(&on("a")), ["TakeReportBack", "DeleteAttachment"]);
    world.release("a");
    world.pod("q", "a");
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "NodeNotManaged");
}

// AD-1: a node that does not leave attaching to us gets no attachment.
#[test]
fn an_unmanaged_node_is_left_alone() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.create(Kind::Node, json!({ "metadata": { "name": "c" } }));
    world.pod("p", "c");
    assert!(world.run(&on("c")).is_empty());
    assert_eq!(world.code(&on("c")), "NodeNotManaged");
}

// Reliability 35, AD-48, AD-51: nothing before every kind is in the cache, however long a list takes to succeed.
#[test]
fn an_unfilled_cache_decides_nothing() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    for missing in AttachDetach::watches() {
        world.cache = control::Cache::default();
        AttachDetach::watches().iter().filter(|kind| *kind != missing).for_each(|kind| world.sync_kind(*kind));
        assert!(matches!(world.decide(&on("a")), Decision::Rest(_)), "{missing} was not awaited");
        assert_eq!(world.code(&on("a")), "CacheNotSynced");
    }
}
