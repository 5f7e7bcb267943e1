//! Volumes decide where pods go: SC-3 to SC-5, SC-8 to SC-10, SC-21.

use alloc::format;

use api::{Kind, Value, names};
use serde_json::json;

use super::scene::{Scene, on, scene};

impl Scene {
    /// A class of delayed binding with this on top.
    fn class(self, name: &str, provisioner: &str, more: Value) -> Scene {
        let mode = "WaitForFirstConsumer";
        let mut class = json!({ "metadata": { "name": name }, "provisioner": provisioner, "volumeBindingMode": mode });
        more.as_object().into_iter().flatten().for_each(|(key, value)| class[key] = value.clone());
        self.with(Kind::StorageClass, class)
    }

    fn delayed(self, name: &str, class: &str, size: &str) -> Scene {
        let requests = json!({ "requests": { "storage": size } });
        let spec = json!({ "storageClassName": class, "accessModes": ["ReadWriteOnce"], "resources": requests });
        self.with(Kind::PersistentVolumeClaim, json!({ "metadata": { "name": name }, "spec": spec }))
    }

    /// A volume of class `local` that belongs to nobody.
    fn free(self, name: &str, size: &str, node: &str) -> Scene {
        self.free_like(name, size, json!({ "nodeAffinity": on(node) }))
    }

    fn free_like(self, name: &str, size: &str, more: Value) -> Scene {
        let mut spec = json!({
            "storageClassName": "local", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": size },
            "csi": { "driver": "d", "volumeHandle": name },
        });
        more.as_object().into_iter().flatten().for_each(|(key, value)| spec[key] = value.clone());
        let status = json!({ "phase": "Available" });
        self.with(Kind::PersistentVolume, json!({ "metadata": { "name": name }, "spec": spec, "status": status }))
    }

    /// What driver `d` says it has left for a class on a node.
    fn capacity(self, class: &str, node: &str, capacity: &str, largest: Option<&str>) -> Scene {
        let topology = json!({ "matchLabels": { names::HOSTNAME_LABEL: node } });
        let metadata = json!({ "name": format!("{class}-{node}") });
        self.with(
            Kind::CSIStorageCapacity,
            json!({
                "metadata": metadata, "storageClassName": class, "nodeTopology": topology, "capacity": capacity,
                "maximumVolumeSize": largest,
            }),
        )
    }

    fn driver(self, spec: Value) -> Scene {
        self.with(Kind::CSIDriver, json!({ "metadata": { "name": "d" }, "spec": spec }))
    }
}

fn local() -> Scene {
    scene().class("local", names::NO_PROVISIONER, json!({}))
}

// Local volumes under delayed binding: the node that has one is chosen, and the volume reserved.
#[test]
fn sc_3_sc_9_a_free_volume_decides_where_the_pod_goes() {
    local().delayed("c", "local", "1Gi").free("v", "1Gi", "b").check("ReserveVolume(v for n/c on b)");
    // The smallest that suffices.
    let two = local().delayed("c", "local", "2Gi").free("v1", "1Gi", "b").free("v9", "9Gi", "b").free("v3", "3Gi", "b");
    two.check("ReserveVolume(v3 for n/c on b)");
}

#[test]
fn sc_10_a_reserved_volume_is_waited_for_where_it_is() {
    let holder = |uid: Value| json!({ "namespace": "n", "name": "c", "uid": uid });
    let reserved = |uid: Value| {
        let more = json!({ "claimRef": holder(uid), "nodeAffinity": on("b") });
        local().delayed("c", "local", "1Gi").free_like("v", "1Gi", more).free("w", "1Gi", "a")
    };
    reserved(json!("u-c")).check("VolumeForNodeAwaited");
    reserved(json!("u-c")).check_text("waiting for volumes for node b to be bound to claims c");
    // A user may reserve a volume by the claim's name alone.
    reserved(Value::Null).check("VolumeForNodeAwaited");
    // Of one by name and one by uid it is the one by uid.
    let by_name = json!({ "claimRef": holder(Value::Null), "nodeAffinity": on("a") });
    reserved(json!("u-c"))
        .free_like("u", "1Gi", by_name)
        .check_text("waiting for volumes for node b to be bound to claims c");
    // One that is reserved for an earlier claim of the name is not ours.
    reserved(json!("another")).check("ReserveVolume(w for n/c on a)");
}

#[test]
fn sc_3_volumes_that_do_not_suit_or_belong_to_somebody_are_passed_over() {
    let with = |name: &str, size: &str, more: Value| local().delayed("c", "local", "1Gi").free_like(name, size, more);
    with("v", "1Gi", json!({ "storageClassName": "other" })).check("NoNodeReachesVolumes");
    with("v", "1Gi", json!({ "volumeMode": "Block" })).check("NoNodeReachesVolumes");
    with("v", "1Mi", json!({})).check("NoNodeReachesVolumes");
    with("v", "1Gi", json!({ "claimRef": { "namespace": "n", "name": "x" } })).check("NoNodeReachesVolumes");
    with("v", "1Gi", json!({})).check("ReserveVolume(v for n/c on a)");
    // Reliability 16: a bound claim still names it.
    let metadata = json!({ "name": "x", "annotations": { names::BIND_COMPLETED: "yes" } });
    let robbed = json!({ "metadata": metadata, "spec": { "volumeName": "v" } });
    with("v", "1Gi", json!({})).with(Kind::PersistentVolumeClaim, robbed).check("NoNodeReachesVolumes");
}

#[test]
fn sc_3_two_claims_get_two_volumes_of_one_node_the_smaller_claim_first() {
    let pods = || {
        Scene::default().node("a").node("b").pod("p", &["large", "small"], "", "Pending").class(
            "local",
            names::NO_PROVISIONER,
            json!({}),
        )
    };
    let claims = |scene: Scene| scene.delayed("large", "local", "5Gi").delayed("small", "local", "1Gi");
    // Node a has one volume, which each claim alone would be content with.
    let one_each = claims(pods()).free("a1", "9Gi", "a").free("b1", "5Gi", "b").free("b2", "6Gi", "b");
    one_each.check("ReserveVolume(b1 for n/small on b)");
    claims(pods()).free("a1", "9Gi", "a").free("b1", "5Gi", "b").check("NoNodeReachesVolumes");
}

#[test]
fn sc_4_a_class_makes_volumes_only_where_it_may() {
    local().delayed("c", "local", "1Gi").check_text(
        "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind (claim c: a, b)",
    );
    let allowed =
        |terms: Value| scene().class("x", "d", json!({ "allowedTopologies": terms })).delayed("c", "x", "1Gi");
    let term = |node: &str| json!({ "matchLabelExpressions": [{ "key": names::HOSTNAME_LABEL, "values": [node] }] });
    allowed(json!([])).check("SelectNode(n/c for a)");
    allowed(json!([term("b")])).check("SelectNode(n/c for b)");
    allowed(json!([term("z"), term("b")])).check("SelectNode(n/c for b)");
    allowed(json!([term("z")])).check("NoNodeReachesVolumes");
    allowed(json!([{}])).check("NoNodeReachesVolumes");
    scene().class("x", "", json!({})).delayed("c", "x", "1Gi").check("NoNodeReachesVolumes");
}

#[test]
fn sc_5_a_volume_is_made_where_there_is_room_for_it() {
    let says = json!({ "storageCapacity": true });
    let asks = |size: &str| scene().class("x", "d", json!({})).delayed("c", "x", size);
    let room = |scene: Scene| scene.capacity("x", "a", "1Gi", None).capacity("x", "b", "9Gi", None);
    room(asks("2Gi").driver(says.clone())).check("SelectNode(n/c for b)");
    room(asks("20Gi").driver(says.clone()))
        .check_text("0/2 nodes are available: 2 node(s) did not have enough free storage (claim c: a, b)");
    // The largest single volume counts, where it is said.
    asks("2Gi").driver(says.clone()).capacity("x", "b", "9Gi", Some("1Gi")).check("NoNodeReachesVolumes");
    // Nobody asks a driver that does not say, nor for a claim that asks for no size.
    room(asks("20Gi").driver(json!({}))).check("SelectNode(n/c for a)");
    asks("0").driver(says.clone()).check("SelectNode(n/c for a)");
    // Objects of other classes say nothing, and neither do those for no nodes.
    asks("1Gi").driver(says.clone()).capacity("y", "a", "9Gi", None).check("NoNodeReachesVolumes");
    let nowhere = json!({ "metadata": { "name": "q" }, "storageClassName": "x", "capacity": "9Gi" });
    asks("1Gi").driver(says).with(Kind::CSIStorageCapacity, nowhere).check("NoNodeReachesVolumes");
}

#[test]
fn sc_8_of_nodes_with_room_the_one_with_most_left_is_taken() {
    let says = json!({ "storageCapacity": true });
    let made = || scene().class("x", "d", json!({})).driver(says.clone()).delayed("c", "x", "1Gi");
    made().capacity("x", "a", "2Gi", None).capacity("x", "b", "9Gi", None).check("SelectNode(n/c for b)");
    made().capacity("x", "a", "9Gi", None).capacity("x", "b", "2Gi", None).check("SelectNode(n/c for a)");
    // Equally much: fewest pods, then name.
    made().capacity("x", "a", "9Gi", None).capacity("x", "b", "9Gi", None).check("SelectNode(n/c for a)");
    let found = local().delayed("c", "local", "1Gi").free("v1", "2Gi", "a").free("v2", "4Gi", "b");
    found.check("ReserveVolume(v2 for n/c on b)");
    let six = scene().class("x", "d", json!({})).driver(says).delayed("c", "x", "6Gi");
    six.capacity("x", "a", "8Gi", None).capacity("x", "b", "10Gi", None).check("SelectNode(n/c for b)");
    // The mean over the classes of the volumes that are there: one half full beside two at 60 %.
    let two = Scene::default().node("a").node("b").pod("p", &["c", "e"], "", "Pending");
    let two = two.class("x", "d", json!({})).class("y", "d", json!({}));
    let there = |class: &str, node: &str| json!({ "storageClassName": class, "nodeAffinity": on(node) });
    two.delayed("c", "x", "6Gi")
        .delayed("e", "y", "6Gi")
        .free_like("v1", "12Gi", there("x", "a"))
        .free_like("v2", "10Gi", there("x", "b"))
        .free_like("v3", "10Gi", there("y", "b"))
        .check("ReserveVolume(v1 for n/c on a)");
}

#[test]
fn sc_21_a_volume_in_a_zone_is_used_in_that_zone() {
    let zoned = |node: Value, volume: Value| {
        let status = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        let spec = json!({ "claimRef": { "namespace": "n", "name": "c", "uid": "u-c" } });
        Scene::default()
            .with(Kind::Node, json!({ "metadata": { "name": "a", "labels": node }, "status": status }))
            .pod("p", &["c"], "", "Pending")
            .claim("c", "", "Bound", json!({}))
            .with(Kind::PersistentVolume, json!({ "metadata": { "name": "v-c", "labels": volume }, "spec": spec }))
    };
    let (zone, beta) = (names::ZONE, names::ZONE_BETA);
    zoned(json!({ zone: "x" }), json!({ zone: "x" })).check("Bind(n/p to a)");
    zoned(json!({ zone: "x" }), json!({ zone: "w__x" })).check("Bind(n/p to a)");
    zoned(json!({ zone: "x" }), json!({ beta: "x" })).check("Bind(n/p to a)");
    zoned(json!({}), json!({ zone: "y" })).check("Bind(n/p to a)");
    zoned(json!({ names::REGION: "r" }), json!({ names::REGION_BETA: "r" })).check("Bind(n/p to a)");
    zoned(json!({ zone: "x" }), json!({ names::REGION: "r" })).check("NoNodeReachesVolumes");
    zoned(json!({ zone: "x" }), json!({ zone: "y" }))
        .check_text("0/1 nodes are available: 1 node(s) had no available volume zone (claim c: a)");
}
