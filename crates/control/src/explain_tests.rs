use alloc::format;
use alloc::string::ToString;
use alloc::vec;

use api::Value;
use serde_json::json;

use super::*;
use crate::{Verdict, Why};

const POD: Kind = Kind::Pod;
const CLAIM: Kind = Kind::PersistentVolumeClaim;
const VOLUME: Kind = Kind::PersistentVolume;
const ATTACHMENT: Kind = Kind::VolumeAttachment;
const GONE: &str = "2026-01-01T00:00:00Z";

/// Each object is newer than all before it.
fn put(cache: &mut Cache, kind: Kind, mut json: Value) {
    let version = Kind::ALL.iter().flat_map(|kind| cache.all(*kind)).map(|one| one.meta().version()).max();
    json["metadata"]["resourceVersion"] = (version.unwrap_or(0) + 1).to_string().into();
    cache.set(Object::from_json(kind, json).unwrap());
}

fn at(kind: Kind, key: &str) -> ObjectRef {
    match key.split_once('/') {
        Some((namespace, name)) => ObjectRef::namespaced(kind, namespace, name),
        None => ObjectRef::cluster(kind, key),
    }
}

fn pod(name: &str, node: &str, claim: &str) -> Value {
    let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": claim } });
    json!({
        "metadata": { "namespace": "default", "name": name, "uid": name },
        "spec": { "nodeName": node, "volumes": [volume] },
    })
}

fn claim(key: &str, volume: &str) -> Value {
    let (namespace, name) = key.split_once('/').unwrap();
    let phase = if volume.is_empty() { "Pending" } else { "Bound" };
    json!({
        "metadata": { "namespace": namespace, "name": name, "uid": key },
        "spec": { "volumeName": volume, "storageClassName": "late" },
        "status": { "phase": phase },
    })
}

fn volume(name: &str, owner: &str) -> Value {
    let (namespace, claim) = owner.split_once('/').unwrap();
    json!({
        "metadata": { "name": name },
        "spec": { "claimRef": { "namespace": namespace, "name": claim, "uid": owner } },
    })
}

fn attachment(name: &str, volume: &str, node: &str) -> Value {
    let source = json!({ "persistentVolumeName": volume });
    json!({ "metadata": { "name": name }, "spec": { "attacher": "d", "nodeName": node, "source": source } })
}

/// Pods `a` and `b` share claim `data`, on volume `pv`; `a` runs on `here`. Claim `demo/mine` has volume `other`.
fn cluster() -> Cache {
    let mut cache = Cache::default();
    for node in ["here", "there"] {
        put(&mut cache, Kind::Node, json!({ "metadata": { "name": node } }));
        put(&mut cache, ATTACHMENT, attachment(&format!("pv-{node}"), "pv", node));
    }
    put(&mut cache, POD, pod("a", "here", "data"));
    put(&mut cache, POD, pod("b", "", "data"));
    put(&mut cache, CLAIM, claim("default/data", "pv"));
    put(&mut cache, VOLUME, volume("pv", "default/data"));
    put(&mut cache, CLAIM, claim("demo/mine", "other"));
    put(&mut cache, CLAIM, claim("default/thief", "other"));
    put(&mut cache, VOLUME, volume("other", "demo/mine"));
    cache
}

fn chain(cache: &Cache, kind: Kind, key: &str) -> Vec<String> {
    let all = hangs_on(cache, &at(kind, key)).unwrap();
    all.iter().map(|object| object.reference().to_string()).collect()
}

#[test]
fn an_object_hangs_on_what_is_its_own_and_never_on_a_neighbour() {
    let cache = cluster();
    let data = "PersistentVolumeClaim default/data";
    let pod = ["Pod default/a", data, "PersistentVolume pv", "VolumeAttachment pv-here", "Node here"];
    assert_eq!(chain(&cache, POD, "default/a"), pod);
    assert_eq!(chain(&cache, POD, "default/b"), ["Pod default/b", data]);
    assert_eq!(chain(&cache, CLAIM, "default/data"), [data, "PersistentVolume pv"]);
    assert_eq!(chain(&cache, VOLUME, "pv"), ["PersistentVolume pv", data]);
    let attached = ["VolumeAttachment pv-here", "PersistentVolume pv", "Node here"];
    assert_eq!(chain(&cache, ATTACHMENT, "pv-here"), attached);
    // demo/mine has the volume that default/thief names.
    assert_eq!(chain(&cache, CLAIM, "default/thief"), ["PersistentVolumeClaim default/thief"]);
    assert_eq!(chain(&cache, VOLUME, "other"), ["PersistentVolume other", "PersistentVolumeClaim demo/mine"]);
    assert!(hangs_on(&cache, &at(POD, "default/none")).is_none());
}

#[test]
fn what_waits_for_the_object_is_no_cause_of_its_state() {
    let mut cache = cluster();
    let mut going = claim("default/data", "pv");
    going["metadata"]["deletionTimestamp"] = GONE.into();
    put(&mut cache, CLAIM, going);
    assert_eq!(chain(&cache, POD, "default/a"), ["Pod default/a", "Node here"]);
    // A volume goes after its claim, so there the claim is the cause.
    assert_eq!(chain(&cache, VOLUME, "pv").len(), 2);

    let class = json!({ "metadata": { "name": "late" }, "volumeBindingMode": "WaitForFirstConsumer" });
    put(&mut cache, Kind::StorageClass, class);
    put(&mut cache, CLAIM, claim("default/data", ""));
    assert_eq!(chain(&cache, POD, "default/b"), ["Pod default/b"]);
    let mut selected = claim("default/data", "");
    selected["metadata"]["annotations"] = json!({ (names::SELECTED_NODE): "here" });
    put(&mut cache, CLAIM, selected);
    assert_eq!(chain(&cache, POD, "default/b").len(), 2);
}

fn said(controller: &'static str, about: &[ObjectRef], settled: bool) -> Explanation {
    let why = if settled { Why::settled("Done", controller) } else { Why::waiting("Waits", controller) };
    Explanation { controller, key: String::new(), about: about.to_vec(), verdict: Verdict::Rests, why }
}

fn told(asked: &Object, said: &[Explanation]) -> String {
    match tell(asked, said, &["node", "binding"]) {
        Telling::Waits(one) => format!("waits: {}", one.controller),
        Telling::Held(by) => format!("held: {}", by.join(" ")),
        Telling::Settled(one) => format!("settled: {}", one.controller),
        Telling::Nothing => "nothing".into(),
    }
}

#[test]
fn its_own_rules_say_whether_it_is_settled_and_the_deepest_cause_says_why_not() {
    let cache = cluster();
    let this = at(POD, "default/a");
    let pod = cache.get(this.kind, &this.key).unwrap();
    let data = [at(CLAIM, "default/data")];
    let (own, claims) = ([this.clone()], data);
    let running = [said("binding", &claims, false), said("scheduler", &own, true), said("node", &own, true)];
    assert_eq!(told(&pod, &running), "settled: node");
    let pending = [said("binding", &claims, false), said("scheduler", &own, false)];
    assert_eq!(told(&pod, &pending), "waits: binding");
    let alone = [said("binding", &claims, true), said("scheduler", &own, true), said("node", &own, false)];
    assert_eq!(told(&pod, &alone), "waits: node");
    // A process without rules about pods tells what it knows.
    assert_eq!(told(&pod, &[said("binding", &claims, false)]), "waits: binding");
    assert_eq!(told(&pod, &[said("binding", &claims, true)]), "nothing");
}

#[test]
fn finalizers_of_others_hold_what_the_rules_are_done_with() {
    let mut held = claim("default/data", "pv");
    held["metadata"]["deletionTimestamp"] = GONE.into();
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let held = Object::from_json(CLAIM, held).unwrap();
    let own = vec![held.reference()];
    assert_eq!(told(&held, &[said("binding", &own, true)]), "held: example.com/hold");
    assert_eq!(told(&held, &[said("binding", &own, false)]), "waits: binding");
}
