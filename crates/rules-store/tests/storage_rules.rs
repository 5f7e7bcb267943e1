//! What the objects of storage must be, and what they are where nobody says it (API-1 to API-10).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod common;

use common::{Cluster, pod, volume};
use rules_store::{Failure, FieldProblem};
use serde_json::{Value, json};

fn refused(result: Result<rules_store::Applied, Failure>) -> Vec<(String, FieldProblem)> {
    match result {
        Err(Failure::Invalid { causes, .. }) => causes.into_iter().map(|one| (one.field, one.problem)).collect(),
        Err(other) => panic!("{other}"),
        Ok(_) => Vec::new(),
    }
}

fn driver(spec: Value) -> Value {
    json!({ "metadata": { "name": "d.example" }, "spec": spec })
}

fn csi_node(driver: Value) -> Value {
    json!({ "metadata": { "name": "n" }, "spec": { "drivers": [driver] } })
}

fn attachment(attacher: &str) -> Value {
    let spec = json!({ "attacher": attacher, "nodeName": "n", "source": { "persistentVolumeName": "v" } });
    json!({ "metadata": { "name": "a" }, "spec": spec })
}

// S0-12, API-3: wherever an object names a driver, the name is one that a driver can have.
#[test]
fn api_3_a_name_that_no_driver_can_have_is_refused_everywhere() {
    let longest = "x".repeat(63);
    let too_long = "x".repeat(64);
    for (name, good) in [
        ("d.example", true),
        ("Mixed.Example-1", true),
        (longest.as_str(), true),
        (too_long.as_str(), false),
        ("-d", false),
        ("d-.example", false),
        ("d..example", false),
        ("d/e", false),
        ("d_e", false),
    ] {
        let mut cluster = Cluster::new();
        let mut of_volume = volume("v");
        of_volume["spec"]["csi"]["driver"] = json!(name);
        let mut of_pod = pod("p");
        of_pod["spec"]["volumes"] = json!([{ "name": "data", "csi": { "driver": name } }]);
        for (plural, body, field) in [
            ("persistentvolumes", of_volume, "spec.csi.driver"),
            ("pods", of_pod, "spec.volumes[0].csi.driver"),
            ("volumeattachments", attachment(name), "spec.attacher"),
            ("csinodes", csi_node(json!({ "name": name, "nodeID": "i" })), "spec.drivers[0].name"),
        ] {
            let wrong = refused(cluster.try_create(plural, body));
            let told: Vec<&str> = wrong.iter().map(|(field, _)| field.as_str()).collect();
            assert_eq!(told, if good { Vec::new() } else { vec![field] }, "{plural} {name}");
        }
        // An object's own name is in lower case besides.
        let body = json!({ "metadata": { "name": name } });
        let good = good && name == name.to_lowercase();
        assert_eq!(refused(cluster.try_create("csidrivers", body)).is_empty(), good, "{name}");
    }
}

// API-4.
#[test]
fn api_4_a_node_is_named_and_placed_within_reason() {
    let id = |length: usize| json!({ "name": "d", "nodeID": "i".repeat(length) });
    let keys = |keys: Value| json!({ "name": "d", "nodeID": "i", "topologyKeys": keys });
    for (entry, field) in [
        (id(256), None),
        (id(257), Some(("spec.drivers[0].nodeID", FieldProblem::TooLong))),
        (id(0), Some(("spec.drivers[0].nodeID", FieldProblem::Required))),
        (keys(json!(["example/zone", "rack"])), None),
        (keys(json!(["a b"])), Some(("spec.drivers[0].topologyKeys[0]", FieldProblem::Invalid))),
        (keys(json!(["zone", "zone"])), Some(("spec.drivers[0].topologyKeys[1]", FieldProblem::Duplicate))),
    ] {
        let wrong = refused(Cluster::new().try_create("csinodes", csi_node(entry.clone())));
        let wanted: Vec<_> = field.into_iter().map(|(field, problem)| (field.to_owned(), problem)).collect();
        assert_eq!(wrong, wanted, "{entry}");
    }
}

// API-5: what is reported of an attachment, and only as it is reported.
#[test]
fn api_5_a_report_of_an_attachment_stays_within_bounds() {
    let mut cluster = Cluster::new();
    cluster.create("volumeattachments", attachment("d"));
    let path = "volumeattachments/a";
    let error = |side: &str, message: String, code: i64| {
        let told = json!({ "message": message, "errorCode": code });
        json!({ "status": { side: told } })
    };
    for (patch, field) in [
        (error("attachError", "x".repeat(1024), 8), None),
        (error("attachError", "x".repeat(1025), 8), Some("status.attachError.message")),
        (error("detachError", "x".repeat(1025), 0), Some("status.detachError.message")),
        (error("attachError", "x".into(), -1), Some("status.attachError.errorCode")),
        (json!({ "status": { "attached": true, "attachmentMetadata": { "a": "x".repeat(200 * 1024) } } }), None),
        (
            json!({ "status": { "attachmentMetadata": { "a": "x".repeat(200 * 1024), "b": "x".repeat(57 * 1024) } } }),
            Some("status.attachmentMetadata"),
        ),
    ] {
        let wrong = refused(cluster.merge_status(path, patch));
        let fields: Vec<&str> = wrong.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, field.into_iter().collect::<Vec<_>>());
    }
}

// API-5, S0-48: an attachment is of a volume by name or of one that it holds itself; never of both, never of none.
#[test]
fn api_5_an_attachment_has_one_source() {
    let inline = json!({ "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
        "csi": { "driver": "d.example", "volumeHandle": "h" } });
    for (source, field) in [
        (json!({ "persistentVolumeName": "v" }), None),
        (json!({ "inlineVolumeSpec": inline }), None),
        (json!({ "persistentVolumeName": "v", "inlineVolumeSpec": inline }), Some("spec.source")),
        (json!({}), Some("spec.source.persistentVolumeName")),
        (json!({ "persistentVolumeName": "" }), Some("spec.source.persistentVolumeName")),
    ] {
        let mut body = attachment("d.example");
        body["spec"]["source"] = source.clone();
        let wrong = refused(Cluster::new().try_create("volumeattachments", body));
        let fields: Vec<&str> = wrong.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, field.into_iter().collect::<Vec<_>>(), "{source}");
    }
}

// API-6.
#[test]
fn api_6_wishes_of_a_driver_make_sense() {
    let token = |audience: &str, seconds: i64| json!({ "audience": audience, "expirationSeconds": seconds });
    for (spec, field) in [
        (json!({ "tokenRequests": [token("a", 600), token("", 1 << 32)] }), None),
        (json!({ "tokenRequests": [token("a", 599)] }), Some("spec.tokenRequests[0].expirationSeconds")),
        (json!({ "tokenRequests": [token("a", (1 << 32) + 1)] }), Some("spec.tokenRequests[0].expirationSeconds")),
        (json!({ "tokenRequests": [token("a", 600), token("a", 700)] }), Some("spec.tokenRequests[1].audience")),
        (json!({ "serviceAccountTokenInSecrets": true }), Some("spec.serviceAccountTokenInSecrets")),
        (json!({ "serviceAccountTokenInSecrets": true, "tokenRequests": [token("a", 600)] }), None),
        (json!({ "nodeAllocatableUpdatePeriodSeconds": 10 }), None),
        (json!({ "nodeAllocatableUpdatePeriodSeconds": 9 }), Some("spec.nodeAllocatableUpdatePeriodSeconds")),
    ] {
        let wrong = refused(Cluster::new().try_create("csidrivers", driver(spec.clone())));
        let fields: Vec<&str> = wrong.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, field.into_iter().collect::<Vec<_>>(), "{spec}");
    }
}

// API-8.
#[test]
fn api_8_the_parameters_of_a_class_stay_within_bounds() {
    let class = |parameters: Value| {
        let metadata = json!({ "name": "s" });
        json!({ "metadata": metadata, "provisioner": "d.example", "parameters": parameters })
    };
    let many = |count: usize| (0..count).map(|at| (format!("p{at}"), json!("x"))).collect::<Value>();
    for (parameters, good) in [
        (many(512), true),
        (many(513), false),
        (json!({ "a": "x".repeat(256 * 1024 - 1) }), true),
        (json!({ "a": "x".repeat(256 * 1024) }), false),
    ] {
        let wrong = refused(Cluster::new().try_create("storageclasses", class(parameters)));
        let wanted = if good { Vec::new() } else { vec![("parameters".to_owned(), FieldProblem::TooLong)] };
        assert_eq!(wrong, wanted);
    }
}

// API-1, API-2: what a class and a driver are where nobody says it.
#[test]
fn api_1_api_2_what_is_not_said_of_a_class_or_a_driver_is_filled_in() {
    let mut cluster = Cluster::new();
    let class = json!({ "metadata": { "name": "s" }, "provisioner": "d.example" });
    let made = &cluster.create("storageclasses", class).value;
    assert_eq!((&made["reclaimPolicy"], &made["volumeBindingMode"]), (&json!("Delete"), &json!("Immediate")));
    let made = &cluster.create("csidrivers", json!({ "metadata": { "name": "d.example" } })).value;
    let wanted = json!({
        "attachRequired": true, "podInfoOnMount": false, "storageCapacity": false, "requiresRepublish": false,
        "fsGroupPolicy": "ReadWriteOnceWithFSType", "volumeLifecycleModes": ["Persistent"], "seLinuxMount": false,
        "preventPodSchedulingIfMissing": false,
    });
    assert_eq!(made["spec"], wanted);
    // What is said stays.
    let said = json!({
        "attachRequired": false, "podInfoOnMount": true, "storageCapacity": true, "requiresRepublish": true,
        "fsGroupPolicy": "File", "volumeLifecycleModes": ["Ephemeral"], "seLinuxMount": true,
        "preventPodSchedulingIfMissing": true,
    });
    let body = json!({ "metadata": { "name": "e.example" }, "spec": said });
    assert_eq!(cluster.create("csidrivers", body).value["spec"], said);
}

// API-7.
#[test]
fn api_7_room_is_told_of_one_place_and_class_for_ever() {
    let mut cluster = Cluster::new();
    let nowhere = json!({ "metadata": { "name": "r" }, "capacity": "1Gi" });
    let wrong = refused(cluster.try_create("csistoragecapacities", nowhere));
    assert_eq!(wrong, [("storageClassName".to_owned(), FieldProblem::Required)]);
    let selector = |zone: &str| json!({ "matchLabels": { "zone": zone } });
    let room = json!({
        "metadata": { "name": "r" }, "storageClassName": "s", "nodeTopology": selector("a"), "capacity": "1Gi",
    });
    assert_eq!(cluster.create("csistoragecapacities", room).value["metadata"]["namespace"], "default");
    for (patch, field) in [
        (json!({ "nodeTopology": selector("b") }), Some("nodeTopology")),
        (json!({ "storageClassName": "t" }), Some("storageClassName")),
        (json!({ "capacity": "2Gi" }), None),
        (json!({ "maximumVolumeSize": "1Gi" }), None),
    ] {
        let wrong = refused(cluster.merge("csistoragecapacities/default/r", patch));
        let fields: Vec<&str> = wrong.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, field.into_iter().collect::<Vec<_>>());
    }
}

// API-10: each field of a CSI source is understood, in a volume and in a pod.
#[test]
fn api_10_each_field_of_a_source_is_kept() {
    let mut cluster = Cluster::new();
    let secret = |name: &str| json!({ "name": name, "namespace": "default" });
    let source = json!({
        "driver": "d.example", "volumeHandle": "h", "readOnly": true, "fsType": "ext4",
        "volumeAttributes": { "a": "b" }, "controllerPublishSecretRef": secret("a"), "nodeStageSecretRef": secret("b"),
        "nodePublishSecretRef": secret("c"), "controllerExpandSecretRef": secret("d"),
        "nodeExpandSecretRef": secret("e"),
    });
    let mut body = volume("v");
    body["spec"]["csi"] = source.clone();
    assert_eq!(cluster.create("persistentvolumes", body).value["spec"]["csi"], source);
    let source = json!({
        "driver": "d.example", "readOnly": true, "fsType": "ext4", "volumeAttributes": { "a": "b" },
        "nodePublishSecretRef": { "name": "c" },
    });
    let mut body = pod("p");
    body["spec"]["volumes"] = json!([{ "name": "data", "csi": source }]);
    assert_eq!(cluster.create("pods", body).value["spec"]["volumes"][0]["csi"], source);
}
