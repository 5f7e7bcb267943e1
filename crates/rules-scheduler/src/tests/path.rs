//! The rules' own writes, applied by a real store, wake the rules.

use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, ObjectKey, names};
use control::{Action as _, Engine};
use prove_lab::Lab;
use serde_json::json;

use crate::Scheduler;

/// What was done to place pods, beside telling that they wait.
fn placing(world: &Lab<Scheduler>) -> Vec<&String> {
    world.actions.iter().filter(|action| !action.starts_with("Report")).collect()
}

#[test]
fn every_change_a_pod_waits_for_wakes_it() {
    let mut world = Lab::<Scheduler>::new("n", ());
    let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": "c" } });
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }], "volumes": [volume] });
    world.create(Kind::Pod, json!({ "metadata": { "name": "p" }, "spec": spec }));
    world.settle();
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "late",
        "resources": { "requests": { "storage": "1Gi" } },
    });
    world.create(Kind::PersistentVolumeClaim, json!({ "metadata": { "name": "c" }, "spec": spec }));
    world.settle();
    world.create(Kind::Node, json!({ "metadata": { "name": "a" } }));
    world.settle();
    assert!(placing(&world).is_empty());
    let mode = "WaitForFirstConsumer";
    let class = json!({ "metadata": { "name": "late" }, "provisioner": "d", "volumeBindingMode": mode });
    world.create(Kind::StorageClass, class);
    world.settle();
    assert!(placing(&world).is_empty(), "the node is not ready");
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    world.patch_status(Kind::Node, "a", json!({ "conditions": ready }));
    world.settle();
    assert_eq!(placing(&world), ["SelectNode(n/c for a)"]);
    let claim = world.cache.claim(&ObjectKey::new("n", "c")).unwrap().clone();
    assert_eq!(claim.metadata.annotation(names::SELECTED_NODE), Some("a"));

    world.patch(Kind::PersistentVolumeClaim, "c", json!({ "spec": { "volumeName": "v" } }));
    world.patch_status(Kind::PersistentVolumeClaim, "c", json!({ "phase": "Bound" }));
    world.settle();
    assert_eq!(placing(&world).len(), 1, "the volume is not seen yet");
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
        "csi": { "driver": "d", "volumeHandle": "h" },
        "claimRef": { "namespace": "n", "name": "c", "uid": claim.metadata.uid },
    });
    world.create(Kind::PersistentVolume, json!({ "metadata": { "name": "v" }, "spec": spec }));
    world.settle();
    assert_eq!(placing(&world), ["SelectNode(n/c for a)", "Bind(n/p to a)"]);
    assert_eq!(world.cache.pod(&ObjectKey::new("n", "p")).unwrap().spec.node_name, "a");
}

// Nodes write their status all the time; pods are not looked at for that.
#[test]
fn a_node_report_that_bears_on_nothing_wakes_nobody() {
    let mut world = Lab::<Scheduler>::new("n", ());
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
    world.create(Kind::Node, json!({ "metadata": { "name": "a" } }));
    world.create(Kind::Pod, json!({ "metadata": { "name": "p" }, "spec": spec }));
    world.engine = Engine::new(());
    world.patch_status(Kind::Node, "a", json!({ "volumesInUse": ["x"] }));
    assert!(world.engine.waiting() == 0);
    world.patch(Kind::Node, "a", json!({ "spec": { "unschedulable": true } }));
    assert_eq!(world.engine.waiting(), 1, "it takes no pod either way, and something else is told of it");
    world.engine = Engine::new(());
    world.patch_status(Kind::Node, "a", json!({ "conditions": [{ "type": "Ready", "status": "True" }] }));
    assert_eq!(world.engine.waiting(), 1);
}

// Users see in `kubectl describe` what a pod waits for, and when it is over.
#[test]
fn a_wait_that_lasts_is_in_the_status_until_the_pod_is_placed() {
    let mut world = Lab::<Scheduler>::new("n", ());
    let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": "c" } });
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }], "volumes": [volume] });
    let key = ObjectKey::new("n", "p");
    world.create(Kind::Node, json!({ "metadata": { "name": "a" } }));
    world.create(Kind::Pod, json!({ "metadata": { "name": "p" }, "spec": spec }));
    assert!(world.step(&key).is_none(), "it may be over in a moment");
    world.settle();
    world.pass(60_000);
    world.settle();
    assert_eq!(
        world.actions,
        ["ReportUnschedulable(n/p: 0/1 nodes are available: persistentvolumeclaim \"c\" not found)"],
        "written once"
    );
    let told = |world: &Lab<Scheduler>| {
        let pod = world.cache.pod(&key).unwrap().clone();
        let mut conditions = pod.status.conditions.iter().filter(|told| told.r#type == "PodScheduled");
        let told = conditions.next().unwrap().clone();
        assert!(conditions.next().is_none());
        (told.status, told.reason, told.message)
    };
    assert_eq!(
        told(&world),
        (
            "False".into(),
            "Unschedulable".into(),
            "0/1 nodes are available: persistentvolumeclaim \"c\" not found".into()
        )
    );

    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "volumeName": "v", "resources": { "requests": { "storage": "1Gi" } },
    });
    world.create(Kind::PersistentVolumeClaim, json!({ "metadata": { "name": "c" }, "spec": spec }));
    assert!(world.step(&key).is_none(), "the claim is new, and may be bound in a moment");
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
        "csi": { "driver": "d", "volumeHandle": "h" }, "claimRef": { "namespace": "n", "name": "c" },
    });
    world.create(Kind::PersistentVolume, json!({ "metadata": { "name": "v" }, "spec": spec }));
    world.patch_status(Kind::Node, "a", json!({ "conditions": [{ "type": "Ready", "status": "True" }] }));
    world.patch_status(Kind::PersistentVolumeClaim, "c", json!({ "phase": "Bound" }));
    let (action, _) = world.begin(&key).unwrap();
    let told_of = Some(("Scheduled", "the pod got node a".into()));
    assert_eq!(action.news().done, told_of, "who was told to wait is told that it is over");
    let outcome = world.api(&action.effect()).unwrap();
    world.finish(&key, &outcome);
    world.settle();
    assert_eq!(told(&world), ("True".into(), String::new(), String::new()), "what was said before is gone");
    assert_eq!(world.actions.len(), 2);
}
