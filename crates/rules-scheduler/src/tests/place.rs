use alloc::string::ToString;
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, Value, names};
use control::{Cache, Decision, Engine, Outcome, Reply, Rules, Timestamp};
use serde_json::json;

use super::scene::{Scene, on, scene};
use crate::{Memory, Scheduler};

// SC-1; SC-2, on purpose otherwise: the phase counts, which binding writes last, and no annotation.
#[test]
fn a_pod_waits_until_every_claim_is_bound() {
    scene().check("ClaimMissing");
    scene().claim("c", "", "Pending", json!({})).check("ClaimUnbound");
    let at_once = json!({ "metadata": { "name": "now" }, "provisioner": "d", "volumeBindingMode": "Immediate" });
    scene().with(Kind::StorageClass, at_once).claim("c", "now", "Pending", json!({})).check("ClaimUnbound");
    scene().claim("c", "", "Lost", json!({})).check("ClaimLost");
    scene().claim("c", "", "Bound", json!({})).check("VolumeNotSeen");
    scene().claim("c", "", "Bound", json!({})).volume("v-c", Value::Null).check("Bind(n/p to a)");
    let metadata = json!({ "name": "c", "deletionTimestamp": "2026-01-01T00:00:00Z" });
    scene().with(Kind::PersistentVolumeClaim, json!({ "metadata": metadata })).check("ClaimBeingDeleted");
}

#[test]
fn the_reason_names_the_claim() {
    let scene = scene().claim("c", "", "Pending", json!({}));
    scene.check_text("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims (claim c)");
}

#[test]
fn fewest_pods_first_then_name_and_ended_pods_do_not_count() {
    let plain = || Scene::default().node("a").node("b").pod("p", &[], "", "Pending");
    plain().check("Bind(n/p to a)");
    plain().pod("q", &[], "a", "Running").check("Bind(n/p to b)");
    plain().pod("q", &[], "a", "Succeeded").check("Bind(n/p to a)");
}

#[test]
fn closed_nodes_are_passed_over() {
    let taint = json!({ "taints": [{ "key": "k", "effect": "NoSchedule" }] });
    let closed = || {
        Scene::default()
            .node_like("a", json!({}), "False")
            .node_like("b", json!({ "unschedulable": true }), "True")
            .node_like("c", taint.clone(), "True")
            .pod("p", &[], "", "Pending")
    };
    closed().check("NoNodeOpen");
    closed().node("d").check("Bind(n/p to d)");
    Scene::default().pod("p", &[], "", "Pending").check("NoNodes");
}

// A walk through the world `life` found it: a claim is deleted and made again while its pod is being placed, and
// upstream nobody names a node for it.
#[test]
fn a_claim_of_delayed_binding_is_told_the_node_its_pod_has_already() {
    let placed = |claim: Value| {
        let scene = Scene::default().node("a").node("b").pod("p", &["c"], "b", "Pending").late_class();
        scene.claim("c", "late", "Pending", claim)
    };
    placed(json!({})).check("SelectNode(n/c for b)");
    let told = json!({ names::SELECTED_NODE: "a" });
    placed(told).check("Placed");
    let scene = || Scene::default().node("a").late_class();
    let spec = |more: Value| {
        let mut spec = json!({ "volumes": [{ "name": "c", "persistentVolumeClaim": { "claimName": "c" } }] });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let on_a = spec(json!({ "nodeName": "a" }));
    let waits = |scene: Scene| scene.claim("c", "late", "Pending", json!({}));
    waits(scene().pod_like(on_a.clone())).check("SelectNode(n/c for a)");
    // Bound, at once or by name, or nobody's: no node is named.
    scene().pod_like(on_a.clone()).claim("c", "late", "Bound", json!({})).check("Placed");
    scene().pod_like(on_a.clone()).claim("c", "", "Pending", json!({})).check("Placed");
    waits(scene().pod_like(on_a.clone())).volume("v-c", Value::Null).check("SelectNode(n/c for a)");
    let reserved = json!({ "claimRef": { "namespace": "n", "name": "c", "uid": "u-c" } });
    let reserved = json!({ "metadata": { "name": "v" }, "spec": reserved });
    waits(scene().pod_like(on_a.clone())).with(Kind::PersistentVolume, reserved).check("Placed");
    // A pod that goes, has ended, is on a node that is gone, or is another scheduler's.
    waits(scene().pod("p", &["c"], "a", "Succeeded")).check("PodEnded");
    waits(scene().pod("p", &["c"], "gone", "Pending")).check("NodeMissing");
    waits(scene().pod_like(spec(json!({ "nodeName": "a", "schedulerName": "mine" })))).check("Placed");
    let deleting = json!({ "name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z" });
    waits(scene().with(Kind::Pod, json!({ "metadata": deleting, "spec": on_a }))).check("Placed");
}

#[test]
fn pods_that_need_no_node_are_left_alone() {
    Scene::default().node("a").check("PodGone");
    Scene::default().node("a").pod("p", &[], "a", "Running").check("Placed");
    Scene::default().node("a").pod("p", &[], "", "Failed").check("PodEnded");
    let metadata = json!({ "name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z" });
    Scene::default().node("a").with(Kind::Pod, json!({ "metadata": metadata })).check("PodBeingDeleted");
    Scene::default().node("a").pod("p", &[], "gone", "Pending").check("NodeMissing");
    Scene::default().node("a").pod_like(json!({ "schedulerName": "mine" })).check("OtherScheduler");
    Scene::default().node("a").pod_like(json!({ "schedulerName": "default-scheduler" })).check("Bind(n/p to a)");
}

// A pod that tolerates what keeps others away is placed.
#[test]
fn tolerations_open_tainted_and_cordoned_nodes() {
    let taint = |effect: &str| json!({ "taints": [{ "key": "a", "value": "b", "effect": effect }] });
    let tolerant = |toleration: Value| json!({ "tolerations": [toleration] });
    let exact = tolerant(json!({ "key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule" }));
    let scene = |spec: Value, pod: Value| Scene::default().node_like("x", spec, "True").pod_like(pod);
    scene(taint("NoSchedule"), json!({})).check("NoNodeOpen");
    scene(taint("PreferNoSchedule"), json!({})).check("Bind(n/p to x)");
    scene(taint("NoSchedule"), exact.clone()).check("Bind(n/p to x)");
    scene(taint("NoExecute"), exact).check("NoNodeOpen");
    scene(taint("NoExecute"), tolerant(json!({ "operator": "Exists" }))).check("Bind(n/p to x)");
    let cordon = tolerant(json!({ "key": "node.kubernetes.io/unschedulable", "operator": "Exists" }));
    scene(json!({ "unschedulable": true }), json!({})).check("NoNodeOpen");
    scene(json!({ "unschedulable": true }), cordon).check("Bind(n/p to x)");
    let cordon = |effect: &str| {
        let key = "node.kubernetes.io/unschedulable";
        tolerant(json!({ "key": key, "operator": "Exists", "effect": effect }))
    };
    scene(json!({ "unschedulable": true }), cordon("NoSchedule")).check("Bind(n/p to x)");
    scene(json!({ "unschedulable": true }), cordon("NoExecute")).check("NoNodeOpen");
}

#[test]
fn a_pod_goes_only_where_it_wants_to_be() {
    let scene = |pod: Value| Scene::default().node("a").node("b").pod_like(pod);
    let host = names::HOSTNAME_LABEL;
    scene(json!({ "nodeSelector": { host: "b" } })).check("Bind(n/p to b)");
    scene(json!({ "nodeSelector": { host: "b", "disk": "ssd" } })).check("NoNodeOpen");
    let required = on("b")["required"].clone();
    let affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } });
    scene(json!({ "affinity": affinity })).check("Bind(n/p to b)");
    let preferred = json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [] } });
    scene(json!({ "affinity": preferred })).check("Bind(n/p to a)");
}

#[test]
fn a_failed_pod_says_why_it_failed() {
    let why = |status: Value| {
        let scene = Scene::default().with(Kind::Pod, json!({ "metadata": { "name": "p" }, "status": status }));
        let view = Scheduler::view(&ObjectKey::new("n", "p"), &scene.cache, &());
        let decision = Scheduler::decide(Timestamp(0), &view, &Memory::default());
        assert!(decision.why().settled);
        decision.why().text.clone()
    };
    let command = json!({ "phase": "Failed", "reason": "CommandMissing", "message": "set a command" });
    assert_eq!(why(command), "the pod has failed: CommandMissing: set a command");
    let ended = json!({ "name": "c", "state": { "terminated": { "exitCode": 3 } } });
    let exit = json!({ "phase": "Failed", "containerStatuses": [ended] });
    assert_eq!(why(exit), "the pod has failed: container c ended with exit code 3");
    assert_eq!(why(json!({ "phase": "Succeeded" })), "the pod has ended");
}

// Reliability 11.
#[test]
fn a_volume_is_used_only_where_it_can_be_reached() {
    let bound = || scene().claim("c", "", "Bound", json!({}));
    bound().volume("v-c", on("b")).check("Bind(n/p to b)");
    bound().volume("v-c", on("elsewhere")).check("NoNodeReachesVolumes");
}

// SC-7.
#[test]
fn affinity_terms_are_read_as_kubernetes_reads_them() {
    let labels = [("zone".to_string(), "z1".to_string()), ("gen".to_string(), "5".to_string())].into();
    let affinity = |value: Value| serde_json::from_value::<api::VolumeNodeAffinity>(value).unwrap();
    let judge = |term: Value| affinity(json!({ "required": { "nodeSelectorTerms": [term] } })).admits("a", &labels);
    let expression =
        |key: &str, operator: &str, values: Value| json!({ "key": key, "operator": operator, "values": values });
    for (key, operator, values, holds) in [
        ("zone", "In", json!(["z0", "z1"]), true),
        ("zone", "NotIn", json!(["z1"]), false),
        ("rack", "NotIn", json!(["r"]), true),
        ("zone", "Exists", json!([]), true),
        ("rack", "DoesNotExist", json!([]), true),
        ("gen", "Gt", json!(["4"]), true),
        ("gen", "Lt", json!(["5"]), false),
        ("zone", "Near", json!(["z1"]), false),
    ] {
        let judged = judge(json!({ "matchExpressions": [expression(key, operator, values)] }));
        assert_eq!(judged, holds, "{key} {operator}");
    }
    assert!(judge(json!({ "matchFields": [expression("metadata.name", "In", json!(["a"]))] })));
    assert!(!judge(json!({})));
    assert!(!affinity(json!({ "required": { "nodeSelectorTerms": [] } })).admits("a", &labels));
    assert!(affinity(json!({})).admits("a", &labels));
}

// PV-37: delayed binding.
#[test]
fn a_claim_of_delayed_binding_is_told_the_node_and_waited_for() {
    let selected = |node: &str| json!({ names::SELECTED_NODE: node });
    let called = |node: &str| json!({ names::SELECTED_NODE: node, names::STORAGE_PROVISIONER: "d" });
    let late = |annotations: Value| scene().late_class().claim("c", "late", "Pending", annotations);
    late(json!({})).check("SelectNode(n/c for a)");
    late(selected("b")).check("VolumeForNodeAwaited");
    late(called("b")).check("VolumeForNodeAwaited");
    // Nothing was begun for a node that is gone: another is chosen. Once begun, it is waited for.
    late(selected("gone")).check("SelectNode(n/c for a)");
    late(called("gone")).check("SelectedNodeClosed");
    late(called("b")).node_like("b", json!({}), "False").check("SelectedNodeClosed");
    late(called("b")).node_like("b", json!({}), "False").check_text(
        "0/2 nodes are available: 1 node(s) didn't find available persistent volumes to bind (claim c: a), \
         1 node(s) were not ready (b) (claim c gets its volume for node b, which is not ready)",
    );
    // PV-43: one that names its volume is bound without a node.
    let spec = json!({ "storageClassName": "late", "volumeName": "v", "accessModes": ["ReadWriteOnce"] });
    let named = json!({ "metadata": { "name": "c" }, "spec": spec, "status": { "phase": "Pending" } });
    scene().late_class().with(Kind::PersistentVolumeClaim, named).check("ClaimUnbound");
    let bound = scene().late_class().claim("c", "late", "Bound", selected("b")).volume("v-c", Value::Null);
    bound.check("Bind(n/p to b)");
}

#[test]
fn two_claims_of_one_pod_get_the_same_node() {
    let both = |first: Value, second: Value| {
        Scene::default()
            .node("a")
            .node("b")
            .late_class()
            .pod("p", &["c", "e"], "", "Pending")
            .claim("c", "late", "Pending", first)
            .claim("e", "late", "Pending", second)
    };
    let called = |node: &str| json!({ names::SELECTED_NODE: node, names::STORAGE_PROVISIONER: "d" });
    both(json!({}), called("b")).check("SelectNode(n/c for b)");
    both(called("a"), called("b")).check("NodesDisagree");
}

#[test]
fn a_claim_for_one_pod_is_not_given_to_a_second() {
    let modes = json!({ "accessModes": ["ReadWriteOncePod"], "volumeName": "v-c" });
    let taken = |phase: &str| {
        scene()
            .with(
                Kind::PersistentVolumeClaim,
                json!({ "metadata": { "name": "c" }, "spec": modes.clone(), "status": { "phase": "Bound" } }),
            )
            .volume("v-c", Value::Null)
            .pod("q", &["c"], "b", phase)
    };
    taken("Running").check("ClaimTaken");
    taken("Succeeded").check("Bind(n/p to a)");
}

#[test]
fn kl_31_a_claim_that_was_not_made_for_the_pod_is_not_used() {
    let spec = json!({ "volumes": [{ "name": "x", "ephemeral": {} }] });
    let pod = json!({ "metadata": { "name": "p" }, "spec": spec });
    Scene::default().node("a").with(Kind::Pod, pod.clone()).check("ClaimMissing");
    let claim = json!({ "metadata": { "name": "p-x" } });
    Scene::default().node("a").with(Kind::Pod, pod).with(Kind::PersistentVolumeClaim, claim).check("ClaimNotOwned");
}

/// An engine that has seen the whole scene.
fn engine(scene: Scene) -> (ObjectKey, Cache, Engine<Scheduler>) {
    let mut cache = scene.cache;
    Scheduler::watches().iter().for_each(|kind| {
        let listed: Vec<Object> = cache.all(*kind).collect();
        cache.replace(*kind, 1_000, listed);
    });
    (ObjectKey::new("n", "p"), cache, Engine::new(()))
}

// SC-11: what was decided lapses as soon as the watch shows another version.
// The answer to a binding is not the pod: until the watch shows it, a second binding would be a wasted write.
#[test]
fn a_pod_is_bound_once_although_its_watch_is_late() {
    let scene = Scene::default().node("a").pod("p", &[], "", "Pending");
    let (pod, mut cache, mut engine) = engine(scene);
    let Decision::Do(action, why) = engine.decide(Timestamp(0), &pod, &cache) else { panic!() };
    engine.begin(&pod, action, why);
    engine.ended(Timestamp(0), &pod, &Outcome::Done(Reply::Nothing), &cache);
    let Decision::Wait(until, why) = engine.decide(Timestamp(0), &pod, &cache) else { panic!() };
    assert_eq!(why.text, "the pod got node a, which its watch has not shown yet");
    // Memory is a hint: a watch that never shows it is not waited for, and neither is a pod that changed.
    assert!(matches!(engine.decide(until, &pod, &cache), Decision::Do(..)));
    let changed = json!({ "metadata": { "name": "p", "namespace": "n", "uid": "u-p", "resourceVersion": "77" } });
    cache.set(Object::from_json(Kind::Pod, changed).unwrap());
    assert!(matches!(engine.decide(Timestamp(0), &pod, &cache), Decision::Do(..)));
}

#[test]
fn a_failed_attempt_is_waited_out_and_told() {
    let (pod, cache, mut engine) = engine(Scene::default().node("a").pod("p", &[], "", "Pending"));
    let Decision::Do(action, why) = engine.decide(Timestamp(0), &pod, &cache) else { panic!() };
    engine.begin(&pod, action, why);
    engine.ended(Timestamp(0), &pod, &Outcome::Unknown("cut off".into()), &cache);
    let Decision::Wait(until, why) = engine.decide(Timestamp(0), &pod, &cache) else { panic!() };
    assert!(why.text.ends_with("cut off"));
    assert!(matches!(engine.decide(until, &pod, &cache), Decision::Do(..)));
}
