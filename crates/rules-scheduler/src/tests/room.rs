//! What a node has left decides, too: resources, and SC-14 to SC-17.

use alloc::format;
use alloc::vec::Vec;

use api::{Kind, Value, names};
use serde_json::json;

use super::scene::Scene;

impl Scene {
    fn sized(self, name: &str, allocatable: Value) -> Scene {
        let status = json!({ "conditions": [{ "type": "Ready", "status": "True" }], "allocatable": allocatable });
        let metadata = json!({ "name": name, "labels": { names::HOSTNAME_LABEL: name } });
        self.with(Kind::Node, json!({ "metadata": metadata, "status": status }))
    }

    /// A pod on a node, or on none, with these containers.
    fn runs(self, name: &str, node: &str, phase: &str, init: Value, containers: Value) -> Scene {
        let spec = json!({ "nodeName": node, "initContainers": init, "containers": containers });
        self.with(Kind::Pod, json!({ "metadata": { "name": name }, "spec": spec, "status": { "phase": phase } }))
    }

    /// Driver `d` takes so many volumes on a node.
    fn takes(self, node: &str, limit: Value) -> Scene {
        let driver = json!({ "name": "d", "nodeID": node, "topologyKeys": [], "allocatable": limit });
        self.with(Kind::CSINode, json!({ "metadata": { "name": node }, "spec": { "drivers": [driver] } }))
    }

    /// A claim that is bound to a volume of driver `d`.
    fn bound(self, name: &str) -> Scene {
        let csi = json!({ "driver": "d", "volumeHandle": format!("h-{name}") });
        let holder = json!({ "namespace": "n", "name": name, "uid": format!("u-{name}") });
        self.claim(name, "", "Bound", json!({})).with(
            Kind::PersistentVolume,
            json!({ "metadata": { "name": format!("v-{name}") }, "spec": { "csi": csi, "claimRef": holder } }),
        )
    }

    fn attached(self, volume: &str, node: &str) -> Scene {
        let source = json!({ "persistentVolumeName": volume });
        let spec = json!({ "attacher": "d", "nodeName": node, "source": source });
        self.with(Kind::VolumeAttachment, json!({ "metadata": { "name": format!("a-{volume}") }, "spec": spec }))
    }
}

fn asks(requests: Value) -> Value {
    json!({ "name": "c", "resources": { "requests": requests } })
}

#[test]
fn a_pod_goes_where_there_is_enough_of_all_it_asks_for() {
    let has = |cpu: &str, memory: &str| json!({ "cpu": cpu, "memory": memory, "pods": "3" });
    let two = |init: Value, containers: Value| {
        Scene::default()
            .sized("a", has("1", "1Gi"))
            .sized("b", has("4", "8Gi"))
            .runs("p", "", "Pending", init, containers)
    };
    let none = json!([]);
    two(none.clone(), json!([asks(json!({ "cpu": "1", "memory": "1Gi" }))])).check("Bind(n/p to a)");
    two(none.clone(), json!([asks(json!({ "cpu": "1001m" }))])).check("Bind(n/p to b)");
    two(none.clone(), json!([asks(json!({ "cpu": "600m" })), asks(json!({ "cpu": "600m" }))])).check("Bind(n/p to b)");
    // Init containers run one after the other; sidecars stay beside what comes after.
    let init = |restart: &str| json!([{ "restartPolicy": restart, "resources": { "requests": { "cpu": "600m" } } }]);
    two(init(""), json!([asks(json!({ "cpu": "600m" }))])).check("Bind(n/p to a)");
    two(init("Always"), json!([asks(json!({ "cpu": "600m" }))])).check("Bind(n/p to b)");
    let greedy = json!([{ "resources": { "requests": { "cpu": "2" } } }]);
    two(greedy, json!([asks(json!({ "cpu": "100m" }))])).check("Bind(n/p to b)");
    two(none.clone(), json!([asks(json!({ "cpu": "5", "memory": "2Gi" }))]))
        .check_text("0/2 nodes are available: 1 Insufficient memory (a), 2 Insufficient cpu (a, b)");
    // A resource that no node has.
    two(none, json!([asks(json!({ "example.com/gpu": "1" }))])).check("NoNodeHasRoom");
}

#[test]
fn pods_that_have_ended_free_what_they_asked_for() {
    let used = |phase: &str| {
        let half = json!([asks(json!({ "cpu": "600m" }))]);
        let scene = Scene::default().sized("a", json!({ "cpu": "1", "pods": "10" }));
        scene.runs("q", "a", phase, json!([]), half.clone()).runs("p", "", "Pending", json!([]), half)
    };
    used("Running").check_text("0/1 nodes are available: 1 Insufficient cpu (a)");
    used("Succeeded").check("Bind(n/p to a)");
    // Of what a pod does not ask for there may be too little.
    let over = Scene::default().sized("a", json!({ "cpu": "1", "pods": "10" }));
    let over = over.runs("q", "a", "Running", json!([]), json!([asks(json!({ "cpu": "2" }))]));
    over.runs("p", "", "Pending", json!([]), json!([asks(json!({ "cpu": "0" }))])).check("Bind(n/p to a)");
    let full = Scene::default().sized("a", json!({ "pods": "1" })).pod("q", &[], "a", "Running");
    full.pod("p", &[], "", "Pending").check_text("0/1 nodes are available: 1 Too many pods (a)");
}

fn two_nodes(claims: &[&str]) -> Scene {
    let scene = Scene::default().node("a").node("b").pod("p", claims, "", "Pending");
    claims.iter().fold(scene, |scene, claim| scene.bound(claim))
}

// Reliability 36.
#[test]
fn sc_16_no_node_gets_more_volumes_than_it_takes() {
    let count = |count: i32| json!({ "count": count });
    two_nodes(&["c"]).takes("a", count(1)).check("Bind(n/p to a)");
    two_nodes(&["c", "e"]).takes("a", count(1)).check("Bind(n/p to b)");
    let full = two_nodes(&["c", "e"]).takes("a", count(1)).takes("b", count(1));
    full.check_text("0/2 nodes are available: 2 node(s) exceed max volume count (driver d: a, b)");
    // No limit, and no CSINode, take any number.
    two_nodes(&["c", "e"]).takes("a", Value::Null).check("Bind(n/p to a)");
    // What other pods use counts, and what is attached though nobody uses it.
    let used = || two_nodes(&["c"]).takes("a", count(1)).takes("b", count(0));
    used().pod("q", &["x"], "a", "Running").bound("x").check("NoNodeAttachesMore");
    used().pod("q", &["x"], "a", "Succeeded").bound("x").check("Bind(n/p to a)");
    used().bound("x").attached("v-x", "a").check("NoNodeAttachesMore");
    used().bound("x").attached("v-x", "elsewhere").check("Bind(n/p to a)");
    // A claim of another pod that is gone counts for nothing.
    used().pod("q", &["gone"], "a", "Running").check("Bind(n/p to a)");
}

#[test]
fn sc_15_a_shared_volume_counts_once_and_one_that_is_not_made_yet_counts() {
    let count = |count: i32| json!({ "count": count });
    let shared = two_nodes(&["c"]).takes("a", count(1)).takes("b", count(0)).pod("q", &["c"], "a", "Running");
    shared.check("Bind(n/p to a)");
    // Nor where there are more than the node takes.
    let over = Scene::default().node("a").bound("c").takes("a", count(0)).pod("q", &["c"], "a", "Running");
    over.pod("p", &["c"], "", "Pending").check("Bind(n/p to a)");
    let unmade = |limit: i32| {
        let claims = ["c", "e"];
        let scene = Scene::default().node("a").late_class().pod("p", &claims, "", "Pending").takes("a", count(limit));
        claims.iter().fold(scene, |scene, claim| scene.claim(claim, "late", "Pending", json!({})))
    };
    unmade(2).check("SelectNode(n/c for a)");
    unmade(1).check("NoNodeAttachesMore");
    // SC-14: volumes that pods describe themselves are not counted.
    let inline: Vec<Value> =
        [1, 2].iter().map(|n| json!({ "name": format!("{n}"), "csi": { "driver": "d" } })).collect();
    let scene = Scene::default().node("a").takes("a", count(0));
    scene.pod_like(json!({ "volumes": inline })).check("Bind(n/p to a)");
}

#[test]
fn sc_17_a_driver_may_ask_that_pods_wait_for_it() {
    let asked = |prevent: bool| {
        let spec = json!({ "preventPodSchedulingIfMissing": prevent });
        two_nodes(&["c"]).with(Kind::CSIDriver, json!({ "metadata": { "name": "d" }, "spec": spec }))
    };
    asked(false).check("Bind(n/p to a)");
    asked(true).check_text("0/2 nodes are available: 2 d CSI driver is not installed on the node (a, b)");
    asked(true).takes("b", Value::Null).check("Bind(n/p to b)");
}

// RWOP: other schedulers may end a pod of lower priority for this one; here people are told what to do.
#[test]
fn sc_19_a_claim_for_one_pod_is_told_with_the_pod_that_has_it() {
    let spec = json!({ "accessModes": ["ReadWriteOncePod"], "volumeName": "v-c" });
    let claim = json!({ "metadata": { "name": "c" }, "spec": spec, "status": { "phase": "Bound" } });
    let scene = Scene::default().node("a").pod("p", &["c"], "", "Pending").pod("q", &["c"], "a", "Running");
    scene.bound("c").with(Kind::PersistentVolumeClaim, claim).check_text(
        "0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode \
         already in-use by another pod (claim c; delete pod q to free it: a)",
    );
}

impl Scene {
    /// Driver `ebs.csi.aws.com` takes one volume on a node, which leaves these plugins to their drivers.
    fn takes_one(self, node: &str, plugins: &str) -> Scene {
        let driver = json!({ "name": "ebs.csi.aws.com", "nodeID": node, "allocatable": { "count": 1 } });
        let metadata = json!({ "name": node, "annotations": { names::MIGRATED_PLUGINS: plugins } });
        self.with(Kind::CSINode, json!({ "metadata": metadata, "spec": { "drivers": [driver] } }))
    }

    /// A claim that is bound to a volume of the plugin.
    fn bound_in_tree(self, name: &str, labels: Value) -> Scene {
        let disk = json!({ "volumeID": format!("vol-{name}") });
        let holder = json!({ "namespace": "n", "name": name, "uid": format!("u-{name}") });
        let metadata = json!({ "name": format!("v-{name}"), "labels": labels });
        self.claim(name, "", "Bound", json!({})).with(
            Kind::PersistentVolume,
            json!({ "metadata": metadata, "spec": { "awsElasticBlockStore": disk, "claimRef": holder } }),
        )
    }
}

// S4-25, SC-15, SC-16: a volume of an in-tree plugin counts for the driver where the node leaves the plugin to it:
// bound ones, those still to be made, those that pods hold themselves, and those that are attached.
#[test]
fn s4_25_in_tree_volumes_count_for_the_driver_that_serves_them() {
    for (plugins, fits) in [("kubernetes.io/aws-ebs", false), ("kubernetes.io/gce-pd", true), ("", true)] {
        let scene = || {
            let scene = Scene::default().node("a").takes_one("a", plugins);
            scene.bound_in_tree("one", json!({})).bound_in_tree("two", json!({}))
        };
        let told = |scene: Scene| match fits {
            true => scene.check("Bind(n/p to a)"),
            false => assert!(scene.decide().why().text.contains("ebs.csi.aws.com"), "it should be full"),
        };
        told(scene().pod("q", &["one"], "a", "Running").pod("p", &["two"], "", "Pending"));
        // A volume that is there already takes no more room.
        scene().pod("q", &["one"], "a", "Running").pod("p", &["one"], "", "Pending").check("Bind(n/p to a)");
        let held = |id: &str| json!([{ "name": "d", "awsElasticBlockStore": { "volumeID": id } }]);
        told(scene().pod("q", &["one"], "a", "Running").pod_like(json!({ "volumes": held("vol-own") })));
        scene()
            .pod("q", &["one"], "a", "Running")
            .pod_like(json!({ "volumes": held("vol-one") }))
            .check("Bind(n/p to a)");
        let attached = scene().attached("v-one", "a").pod("p", &["two"], "", "Pending");
        told(attached);
    }
}

// SC-13, S4-39: where such a volume can be used is said in the driver's words on a node that leaves the plugin to it,
// and in the plugin's words elsewhere.
#[test]
fn sc_13_a_translated_volume_is_used_where_its_driver_reaches_it() {
    let zone = "topology.ebs.csi.aws.com/zone";
    let scene = |plugins: &str, label: &str| {
        let status = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        let metadata = json!({ "name": "a", "labels": { zone: label } });
        let node = json!({ "metadata": metadata, "status": status });
        let scene = Scene::default().with(Kind::Node, node).takes_one("a", plugins);
        scene.bound_in_tree("one", json!({ names::ZONE: "z" })).pod("p", &["one"], "", "Pending")
    };
    scene("kubernetes.io/aws-ebs", "z").check("Bind(n/p to a)");
    scene("kubernetes.io/aws-ebs", "y")
        .check_text("0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity (claim one: a)");
    scene("", "y").check("Bind(n/p to a)");
}
