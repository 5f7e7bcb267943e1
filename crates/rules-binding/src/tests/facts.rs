//! Each fact of a view, each finding and each word by itself: what makes it true, and what almost does.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use api::{Kind, Object, ObjectKey, PersistentVolume, PersistentVolumeClaim, Pod, Value, names};
use control::{Action as _, Cache, Decision, EventType, Narrate, Outcome, Reply, Rules, Timestamp, Why};
use prove_lab::object;
use serde_json::json;

use crate::memory::Looked;
use crate::migration::Handover;
use crate::{Action, Binding, Key, Local, Memory, MigrationMark, Reason, users};

fn cache(objects: impl IntoIterator<Item = Object>) -> Cache {
    let mut cache = Cache::default();
    for one in objects {
        cache.set(one);
    }
    cache
}

fn claim(spec: Value, annotations: Value) -> Object {
    let metadata = json!({ "namespace": "n", "name": "c", "uid": "u-c", "annotations": annotations,
        "finalizers": [names::PVC_PROTECTION] });
    let mut body = json!({ "metadata": metadata, "spec": { "accessModes": ["ReadWriteOnce"],
        "storageClassName": "", "resources": { "requests": { "storage": "1Gi" } } } });
    rules_store::merge_patch(&mut body["spec"], &spec);
    object(Kind::PersistentVolumeClaim, body)
}

/// An available volume that refers to this claim.
fn volume(name: &str, size: &str, holder: Value) -> Object {
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "capacity": { "storage": size }, "claimRef": holder,
        "csi": { "driver": "d", "volumeHandle": name }, "persistentVolumeReclaimPolicy": "Retain" });
    let metadata = json!({ "name": name, "uid": name, "finalizers": [names::PV_PROTECTION] });
    object(Kind::PersistentVolume, json!({ "metadata": metadata, "spec": spec, "status": { "phase": "Available" } }))
}

fn decide(key: &Key, cache: &Cache) -> Decision<Action, Reason> {
    let view = Binding::view(key, cache, &Local::default());
    Binding::decide(Timestamp(0), &view, &Memory::default())
}

/// What is decided about claim `n/c`.
fn of_claim(objects: impl IntoIterator<Item = Object>) -> String {
    let decision = decide(&Key::Claim(ObjectKey::new("n", "c")), &cache(objects));
    match decision {
        Decision::Do(action, _) => format!("{action:?}"),
        other => format!("{:?}", other.why().code),
    }
}

fn holder(namespace: &str, name: &str, uid: &str) -> Value {
    json!({ "namespace": namespace, "name": name, "uid": uid })
}

// PV-8: a volume that a claim names is its own only by namespace and name.
#[test]
fn pv_8_a_volume_held_for_a_namesake_is_taken() {
    let names_v = || claim(json!({ "volumeName": "v" }), json!({}));
    let with = |namespace: &str, name: &str| of_claim([names_v(), volume("v", "1Gi", holder(namespace, name, ""))]);
    assert_eq!(with("n", "another"), "VolumeTaken");
    assert_eq!(with("other", "c"), "VolumeTaken");
    assert!(with("n", "c").contains("v"), "{}", with("n", "c"));
}

// PV-16: a binding half written comes first, and of those one that fits.
#[test]
fn pv_16_of_several_reserved_volumes_the_one_by_uid_is_taken() {
    let open = || claim(json!({}), json!({}));
    let (by_name, by_uid) = (|| holder("n", "c", ""), || holder("n", "c", "u-c"));
    let said = of_claim([open(), volume("a", "1Gi", by_name()), volume("b", "1Gi", by_uid())]);
    assert!(said.contains("(b") || said.contains("b "), "{said}");
    assert!(!said.contains("(a"), "{said}");
    let said = of_claim([open(), volume("a", "1Mi", by_uid()), volume("b", "1Gi", by_uid())]);
    assert!(!said.contains("(a") && said != "VolumeMismatch", "{said}");
}

// Reliability 16.
#[test]
fn a_volume_that_a_bound_claim_still_names_is_not_free() {
    let robbed = |bound: bool| {
        let annotations = if bound { json!({ names::BIND_COMPLETED: "yes" }) } else { json!({}) };
        let metadata = json!({ "namespace": "n", "name": "x", "uid": "u-x", "annotations": annotations });
        object(Kind::PersistentVolumeClaim, json!({ "metadata": metadata, "spec": { "volumeName": "v" } }))
    };
    let with = |bound| of_claim([claim(json!({}), json!({})), volume("v", "1Gi", Value::Null), robbed(bound)]);
    assert_eq!(with(true), "NoVolumeFits");
    assert!(with(false).contains("v"), "{}", with(false));
}

// PV-19.
#[test]
fn pv_19_the_first_consumer_is_a_pod_that_has_no_node_and_has_not_ended() {
    let mode = "WaitForFirstConsumer";
    let class = || {
        let metadata = json!({ "name": "late" });
        object(Kind::StorageClass, json!({ "metadata": metadata, "provisioner": "d", "volumeBindingMode": mode }))
    };
    let with = |node: &str, phase: &str| {
        let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }]);
        let metadata = json!({ "namespace": "n", "name": "p", "uid": "u-p" });
        let spec = json!({ "nodeName": node, "volumes": volumes });
        let pod = object(Kind::Pod, json!({ "metadata": metadata, "spec": spec, "status": { "phase": phase } }));
        of_claim([claim(json!({ "storageClassName": "late" }), json!({})), class(), pod])
    };
    assert_eq!(with("", "Pending"), "WaitForPodScheduled");
    assert_eq!(with("a", "Running"), "WaitForFirstConsumer");
    assert_eq!(with("", "Failed"), "WaitForFirstConsumer");
}

#[test]
fn a_claim_that_is_going_waits_only_for_who_still_holds_it() {
    let why = |finalizers: Value| {
        let metadata = json!({ "namespace": "n", "name": "c", "uid": "u-c", "finalizers": finalizers,
            "deletionTimestamp": "2026-01-01T00:00:00Z" });
        let claim = object(Kind::PersistentVolumeClaim, json!({ "metadata": metadata, "spec": {} }));
        decide(&Key::Claim(ObjectKey::new("n", "c")), &cache([claim])).why().clone()
    };
    assert!(why(json!([])).settled);
    assert!(!why(json!(["else/where"])).settled);
}

/// Pod `p` with a template for volume `v`, which makes claim `p-v`.
fn templated(metadata: Value, node: &str, phase: &str) -> Object {
    let mut meta = json!({ "namespace": "n", "name": "p", "uid": "u-p" });
    rules_store::merge_patch(&mut meta, &metadata);
    let volumes = json!([{ "name": "v", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } }]);
    let spec = json!({ "nodeName": node, "volumes": volumes });
    object(Kind::Pod, json!({ "metadata": meta, "spec": spec, "status": { "phase": phase } }))
}

// PV-59, PV-60: every claim that its templates ask for, once, and none for a pod that is over.
#[test]
fn a_pod_that_lives_has_the_claims_it_makes() {
    let code = |pod: Object, owner: Option<&str>| {
        let made = owner.map(|uid| {
            let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": true });
            let metadata = json!({ "namespace": "n", "name": "p-v", "uid": "u", "ownerReferences": [owner] });
            object(Kind::PersistentVolumeClaim, json!({ "metadata": metadata, "spec": {} }))
        });
        let decision = decide(&Key::Pod(ObjectKey::new("n", "p")), &cache([pod].into_iter().chain(made)));
        decision.why().code
    };
    let living = || templated(json!({}), "", "Pending");
    assert_eq!(code(living(), None), Reason::MakingClaim);
    assert_eq!(code(living(), Some("u-p")), Reason::ClaimsMade);
    assert_eq!(code(living(), Some("another")), Reason::ClaimNotOwned);
    let going = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
    assert_eq!(code(templated(going, "", "Pending"), None), Reason::PodGone);
    assert_eq!(code(templated(json!({}), "", "Succeeded"), None), Reason::PodGone);
}

// PV-55: a claim made from a template goes with its pod, as soon as nobody waits for that pod's end any more.
#[test]
fn who_holds_a_claim() {
    let going =
        |grace: u32| json!({ "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace });
    let holds = |metadata: Value, node: &str, claim: &str, made_for: Option<&str>| {
        let Object::Pod(pod) = templated(metadata, node, "Running") else { panic!() };
        users::holds(&pod, claim, made_for)
    };
    let ours = Some("u-p");
    assert!(holds(json!({}), "a", "p-v", ours));
    assert!(!holds(json!({}), "", "p-v", ours), "it is on no node");
    assert!(!holds(json!({}), "a", "other", ours));
    assert!(!holds(json!({}), "a", "p-v", Some("u-q")) && !holds(json!({}), "a", "p-v", None), "another pod's");
    assert!(holds(going(30), "a", "p-v", ours));
    assert!(!holds(going(0), "a", "p-v", ours));
    assert!(holds(json!({ "deletionGracePeriodSeconds": 0 }), "a", "p-v", ours));
    // One that it did not make it holds until it is gone.
    let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }]);
    let metadata = json!({ "namespace": "n", "name": "p", "uid": "u-p", "deletionGracePeriodSeconds": 0,
        "deletionTimestamp": "2026-01-01T00:00:00Z" });
    let body = json!({ "metadata": metadata, "spec": { "nodeName": "a", "volumes": volumes } });
    let pod: Pod = serde_json::from_value(body).unwrap();
    assert!(users::holds(&pod, "c", None) && users::holds(&pod, "c", Some("u-q")));
}

#[test]
fn a_claim_was_made_for_its_controller() {
    let owner =
        |uid: &str, controller: bool| json!({ "kind": "Pod", "name": uid, "uid": uid, "controller": controller });
    let made_for = |owners: Value| {
        let metadata = json!({ "namespace": "n", "name": "c", "ownerReferences": owners });
        let claim: PersistentVolumeClaim = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        users::made_for(&claim).map(String::from)
    };
    assert_eq!(made_for(json!([owner("one", false), owner("two", true)])).as_deref(), Some("two"));
    assert_eq!(made_for(json!([owner("one", false)])), None);
}

fn persistent(metadata: Value, holder: Value) -> Arc<PersistentVolume> {
    let mut meta = json!({ "name": "v", "uid": "u-v" });
    rules_store::merge_patch(&mut meta, &metadata);
    Arc::new(serde_json::from_value(json!({ "metadata": meta, "spec": { "claimRef": holder } })).unwrap())
}

// Reliability 19: what was read past the cache of a claim's volume.
#[test]
fn a_volume_is_there_if_it_refers_to_the_claim_or_to_nobody() {
    let looked = |reply: Reply| {
        let did = Action::LookForVolume { volume: "v".into(), claim_uid: "u-c".into() };
        Binding::remember(Timestamp(5), Memory::default(), &did, &Outcome::Done(reply)).looked
    };
    let found = |holder: Value| looked(Reply::Object(Object::PersistentVolume(persistent(json!({}), holder))));
    let there = |looked: &Looked| looked.says_there("v", "u-c", Timestamp(5)).is_some();
    for referring in [Value::Null, holder("n", "c", ""), holder("n", "c", "u-c")] {
        assert!(there(&found(referring.clone())) && !found(referring.clone()).says_gone("v", "u-c"), "{referring}");
    }
    for gone in [found(holder("n", "c", "another")), looked(Reply::Gone)] {
        assert!(gone.says_gone("v", "u-c") && !there(&gone), "{gone:?}");
    }
    // Only of that very pair, and not for ever.
    let found = found(Value::Null);
    assert!(found.says_there("w", "u-c", Timestamp(5)).is_none());
    assert!(found.says_there("v", "another", Timestamp(5)).is_none());
    assert!(found.says_there("v", "u-c", Timestamp(1_000_000)).is_none());
}

// PV-50, PV-51: what a driver has taken over is not held for the plugin any more; else nobody's finalizer changes.
#[test]
fn the_plugins_finalizer_goes_with_the_mark_alone() {
    let told = json!({ names::PROVISIONED_BY: "kubernetes.io/x", names::MIGRATED_TO: "d" });
    let handed = |mark: MigrationMark, annotations: &Value, finalizers: &[&str]| {
        let metadata = json!({ "finalizers": finalizers, "annotations": annotations });
        let volume = persistent(metadata, Value::Null);
        let handover = Handover::of(&volume, mark, false);
        let written = format!("{:?}", Action::MarkVolumeMigrated { volume, mark, handover }.effect());
        assert_eq!(written.contains("finalizers"), handover.is_some(), "{written}");
        handover.is_some()
    };
    let held = [names::PV_CONTROLLER, "else/where"];
    assert!(handed(MigrationMark::Set("d"), &json!({}), &held));
    assert!(handed(MigrationMark::Right, &told, &held));
    assert!(!handed(MigrationMark::Right, &json!({}), &held));
    assert!(!handed(MigrationMark::Remove, &told, &held));
    assert!(!handed(MigrationMark::Set("d"), &told, &["else/where"]));
}

// PV-32.
#[test]
fn a_volume_of_a_policy_that_nobody_knows_is_told_of() {
    let event = |code| Binding::rest_event(&Key::Volume("v".into()), &Why::waiting(code, ""));
    let warning = |reason| Some((EventType::Warning, reason));
    assert_eq!(event(Reason::VolumeUnknownReclaimPolicy), warning("VolumeUnknownReclaimPolicy"));
    assert_eq!(event(Reason::VolumeMismatch), warning("VolumeMismatch"));
    assert_eq!(event(Reason::Bound), None);
}
