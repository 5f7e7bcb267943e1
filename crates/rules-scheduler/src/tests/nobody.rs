//! SC-6: what is said of a pod that no node takes. The real kube-scheduler is asked the same by `make interop`.

use alloc::format;

use api::{Kind, Value, names};
use serde_json::json;

use super::scene::Scene;

fn tainted(scene: Scene, name: &str, key: &str, ready: &str) -> Scene {
    scene.node_like(name, json!({ "taints": [{ "key": key, "effect": "NoSchedule" }] }), ready)
}

/// A claim for one pod at a time, which pod `q` on node `a` has.
fn taken(scene: Scene, name: &str) -> Scene {
    let spec = json!({ "accessModes": ["ReadWriteOncePod"], "volumeName": format!("v-{name}") });
    let claim = json!({ "metadata": { "name": name }, "spec": spec, "status": { "phase": "Bound" } });
    scene.with(Kind::PersistentVolumeClaim, claim).volume(&format!("v-{name}"), Value::Null)
}

#[test]
fn nodes_with_different_taints_are_counted_together() {
    let scene = tainted(Scene::default().node_like("c", json!({ "unschedulable": true }), "True"), "a", "one", "True");
    tainted(tainted(scene, "b", "two", "True"), "d", "two", "True").pod("p", &[], "", "Pending").check_text(
        "0/4 nodes are available: 1 node(s) were unschedulable (c), \
         3 node(s) had untolerated taint(s) (taint {one: }: a; taint {two: }: b, d)",
    );
}

// A node that is not ready has a taint, once somebody has looked at it.
#[test]
fn of_a_node_that_is_not_ready_the_taint_is_told() {
    let not_ready = |key| tainted(Scene::default(), "a", key, "False");
    not_ready("node.kubernetes.io/not-ready").pod("p", &[], "", "Pending").check_text(
        "0/1 nodes are available: 1 node(s) had untolerated taint(s) (taint {node.kubernetes.io/not-ready: }: a)",
    );
    let tolerant = json!({ "tolerations": [{ "operator": "Exists" }] });
    not_ready("k").pod_like(tolerant).check_text("0/1 nodes are available: 1 node(s) were not ready (a)");
}

#[test]
fn a_claim_that_is_taken_is_counted_on_the_nodes_that_come_so_far() {
    let nodes = || Scene::default().node("a").node("b").node_like("c", json!({ "unschedulable": true }), "True");
    let held = taken(taken(nodes(), "x"), "y").pod("q", &["x", "y"], "a", "Running");
    held.pod("p", &["x", "y"], "", "Pending").check_text(
        "0/3 nodes are available: 1 node(s) were unschedulable (c), 2 node(s) unavailable due to \
         PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod \
         (claim x; delete pod q to free it: a, b; claim y; delete pod q to free it: a, b)",
    );
}

#[test]
fn what_is_wrong_with_claims_is_told_in_the_order_of_kube_scheduler() {
    let pod = |claims: &[&str]| {
        let lost =
            json!({ "metadata": { "name": "lost" }, "spec": { "volumeName": "v" }, "status": { "phase": "Lost" } });
        let scene = Scene::default().node("a").claim("waits", "", "Pending", json!({}));
        let scene = scene.with(Kind::PersistentVolumeClaim, lost).claim("torn", "", "Bound", json!({}));
        scene.pod("p", claims, "", "Pending")
    };
    pod(&["torn", "waits", "lost", "gone"])
        .check_text("0/1 nodes are available: persistentvolumeclaim \"gone\" not found");
    pod(&["torn", "waits", "lost"]).check_text(
        "0/1 nodes are available: persistentvolumeclaim \"lost\" bound to non-existent persistentvolume \"v\"",
    );
    pod(&["torn"]).check_text("0/1 nodes are available: persistentvolume \"v-torn\" not found (claim torn)");
    pod(&["torn", "waits"])
        .check_text("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims (claim waits)");
}

#[test]
fn a_claim_of_another_is_told_where_a_template_would_make_one() {
    let volume = json!({ "name": "data", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } });
    let pod = |scene: Scene| scene.pod_like(json!({ "volumes": [volume] }));
    pod(Scene::default().node("a").claim("p-data", "", "Pending", json!({})))
        .check_text("0/1 nodes are available: PVC n/p-data was not created for pod n/p (pod is not owner)");
    pod(Scene::default().node("a")).check_text(
        "0/1 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim \
         \"p-data\"",
    );
}

#[test]
fn without_nodes_nothing_else_matters() {
    Scene::default().pod("p", &["gone"], "", "Pending").check_text("no nodes available to schedule pods");
}

// Many taints, many nodes: a few of each are named.
#[test]
fn of_many_subjects_a_few_are_named() {
    let many = (0..5).fold(Scene::default(), |scene, n| tainted(scene, &format!("n{n}"), &format!("t{n}"), "True"));
    many.pod("p", &[], "", "Pending").check_text(
        "0/5 nodes are available: 5 node(s) had untolerated taint(s) (taint {t0: }: n0; taint {t1: }: n1; \
         taint {t2: }: n2; …)",
    );
    let hostname = |name: &str| json!({ "metadata": { "name": name, "labels": { names::HOSTNAME_LABEL: name } } });
    let unready = ["a", "b"].iter().fold(Scene::default(), |scene, name| scene.with(Kind::Node, hostname(name)));
    unready.pod("p", &[], "", "Pending").check_text("0/2 nodes are available: 2 node(s) were not ready (a, b)");
}
