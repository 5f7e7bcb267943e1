//! Each fact of a view and each change that wakes, by what makes it true and what almost does.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, Value, names};
use control::{Cache, Change, Rules};
use prove_lab::object;
use serde_json::json;

use crate::{AttachDetach, ForcePolicy, Key, Local, Pair, Rival, View, Want, force, inline};

const EBS: &str = "ebs.csi.aws.com";

fn cache(objects: impl IntoIterator<Item = Object>) -> Cache {
    let mut cache = Cache::default();
    for one in objects {
        cache.set(one);
    }
    cache
}

/// The one with the other on top; null takes away.
fn merge(body: &mut Value, more: &Value) {
    let Value::Object(more) = more else { return *body = more.clone() };
    for (key, value) in more {
        match value {
            Value::Null => drop(body.as_object_mut().unwrap().remove(key)),
            value => merge(&mut body[key.as_str()], value),
        }
    }
}

fn node(name: &str, more: Value) -> Object {
    let annotations = json!({ names::CONTROLLER_MANAGED_ATTACH: "true" });
    let mut body = json!({ "metadata": { "name": name, "uid": name, "annotations": annotations } });
    merge(&mut body, &more);
    object(Kind::Node, body)
}

/// Volume `v` of driver `d`, which claim `c` is bound to, with this on top.
fn volume(more: Value) -> Object {
    let csi = json!({ "driver": "d", "volumeHandle": "h" });
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "csi": csi, "storageClassName": "fast",
        "claimRef": { "namespace": "n", "name": "c", "uid": "u-c" } });
    let mut body = json!({ "metadata": { "name": "v", "uid": "u-v" }, "spec": spec });
    merge(&mut body, &more);
    object(Kind::PersistentVolume, body)
}

fn claim(uid: &str, volume: &str, phase: &str) -> Object {
    let metadata = json!({ "namespace": "n", "name": "c", "uid": uid });
    let spec = json!({ "volumeName": volume, "accessModes": ["ReadWriteOnce"] });
    object(Kind::PersistentVolumeClaim, json!({ "metadata": metadata, "spec": spec, "status": { "phase": phase } }))
}

fn pod(name: &str, node: &str, volume: Value) -> Object {
    let mut held = json!({ "name": "v" });
    merge(&mut held, &volume);
    let metadata = json!({ "namespace": "n", "name": name, "uid": name });
    let spec = json!({ "nodeName": node, "volumes": [held] });
    object(Kind::Pod, json!({ "metadata": metadata, "spec": spec, "status": { "phase": "Pending" } }))
}

fn of_claim() -> Value {
    json!({ "persistentVolumeClaim": { "claimName": "c" } })
}

fn disk(id: &str) -> Value {
    json!({ "awsElasticBlockStore": { "volumeID": id } })
}

/// The attachment of `v` to a node, under the name it should have.
fn attachment(node: &str, attached: bool) -> Object {
    named(&names::attachment_name("h", "d", node), node, json!({ "persistentVolumeName": "v" }), "d", attached)
}

fn named(name: &str, node: &str, source: Value, attacher: &str, attached: bool) -> Object {
    let spec = json!({ "attacher": attacher, "nodeName": node, "source": source });
    object(
        Kind::VolumeAttachment,
        json!({ "metadata": { "name": name, "uid": name }, "spec": spec, "status": { "attached": attached } }),
    )
}

fn woken(cache: &Cache, before: Option<Object>, after: Option<Object>) -> Vec<String> {
    let mut keys = AttachDetach::wakes(&Change { before, after }, cache, &Local::default());
    keys.sort();
    keys.dedup();
    keys.iter().map(ToString::to_string).collect()
}

const NOBODY: [&str; 0] = [];

// AD-5: of a node only this is read.
#[test]
fn a_node_wakes_its_volumes_when_anything_that_is_read_of_it_changes() {
    let cache = cache([volume(json!({})), attachment("a", true), attachment("b", true)]);
    let ready = |status: &str| json!({ "status": { "conditions": [{ "type": "Ready", "status": status }] } });
    let after = |more: Value| woken(&cache, Some(node("a", ready("True"))), Some(node("a", more)));
    let taint = json!([{ "key": names::OUT_OF_SERVICE_TAINT, "effect": "NoExecute" }]);
    for more in [
        json!({ "metadata": { "uid": "another" } }),
        json!({ "metadata": { "annotations": { names::CONTROLLER_MANAGED_ATTACH: null } } }),
        json!({ "spec": { "taints": taint } }),
        ready("Unknown"),
    ] {
        assert_eq!(after(more.clone()), ["v on a"], "{more}");
    }
    let other = json!([{ "type": "DiskPressure", "status": "Unknown" }, { "type": "Ready", "status": "True" }]);
    for more in [ready("False"), json!({ "status": { "conditions": other } })] {
        assert_eq!(after(more.clone()), NOBODY, "{more}");
    }
}

#[test]
fn a_class_wakes_its_volumes_when_it_says_something_else_of_dead_nodes() {
    let cache = cache([volume(json!({})), attachment("a", true)]);
    let class = |name: &str, after: Value| {
        let metadata = json!({ "name": name, "annotations": { names::FORCE_DETACH_AFTER: after } });
        Some(object(Kind::StorageClass, json!({ "metadata": metadata, "provisioner": "d" })))
    };
    assert_eq!(woken(&cache, class("fast", Value::Null), class("fast", json!("5m"))), ["v on a"]);
    assert_eq!(woken(&cache, class("fast", json!("5m")), None), ["v on a"]);
    assert_eq!(woken(&cache, class("fast", json!("5m")), class("fast", json!("5m"))), NOBODY);
    assert_eq!(woken(&cache, class("slow", Value::Null), class("slow", json!("5m"))), NOBODY);
}

// S4-33: what a node says of plugins concerns that node alone.
#[test]
fn a_csi_node_wakes_what_is_on_its_node_and_nothing_elsewhere() {
    let cache =
        cache([volume(json!({})), claim("u-c", "v", "Bound"), pod("p", "a", of_claim()), pod("q", "b", of_claim())]);
    let csi_node = |plugins: &str| {
        let annotations = json!({ names::MIGRATED_PLUGINS: plugins });
        Some(object(Kind::CSINode, json!({ "metadata": { "name": "a", "annotations": annotations } })))
    };
    assert_eq!(woken(&cache, csi_node(""), csi_node("kubernetes.io/aws-ebs")), ["v on a"]);
    assert_eq!(woken(&cache, csi_node("x"), csi_node("x")), NOBODY);
}

/// The attachment that is made for a pod's own disk on a node.
fn of_disk(id: &str, node: &str) -> Object {
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "csi": { "driver": EBS, "volumeHandle": id } });
    named(&names::attachment_name(id, EBS, node), node, json!({ "inlineVolumeSpec": spec }), EBS, true)
}

// S4-16, S4-17: a disk that pods hold themselves, on every node with such a pod or an attachment of it.
#[test]
fn pods_with_the_same_disk_wake_each_other() {
    let one = pod("p", "a", disk("vol-1"));
    let cache = cache([one.clone(), pod("q", "b", disk("vol-1")), pod("r", "e", disk("vol-2")), of_disk("vol-1", "c")]);
    let name = names::unique_volume_name(EBS, "vol-1");
    let on = |node: &str| alloc::format!("{name} on {node}");
    let all = [on("a"), on("b"), on("c")];
    assert_eq!(woken(&cache, Some(one), None), all);
    assert_eq!(woken(&cache, None, Some(of_disk("vol-1", "c"))), all);
}

#[test]
fn an_attachment_holds_a_disk_of_a_pod_only_under_the_name_made_for_it() {
    let of = |object: Object| {
        let Object::VolumeAttachment(attachment) = object else { panic!() };
        inline::of_attachment(&attachment)
    };
    assert_eq!(of(of_disk("vol-1", "a")), Some(names::unique_volume_name(EBS, "vol-1")));
    let spec = |driver: &str| json!({ "inlineVolumeSpec": { "csi": { "driver": driver, "volumeHandle": "vol-1" } } });
    assert_eq!(of(named("by-hand", "a", spec(EBS), EBS, true)), None);
    assert_eq!(of(named(&names::attachment_name("vol-1", "d", "a"), "a", spec("d"), "d", true)), None);
}

#[test]
fn a_driver_wakes_the_volumes_it_took_over_and_no_others() {
    let in_tree = json!({ "spec": { "csi": null, "awsElasticBlockStore": { "volumeID": "vol-1" } } });
    let cache = cache([volume(in_tree), attachment("a", true)]);
    let driver = |name: &str| Some(object(Kind::CSIDriver, json!({ "metadata": { "name": name } })));
    assert_eq!(woken(&cache, None, driver(EBS)), ["v on a"]);
    assert_eq!(woken(&cache, None, driver("pd.csi.storage.gke.io")), NOBODY);
}

#[test]
fn a_class_that_says_never_means_it() {
    let policy = |said: &str| {
        let metadata = json!({ "name": "fast", "annotations": { names::FORCE_DETACH_AFTER: said } });
        let class = object(Kind::StorageClass, json!({ "metadata": metadata, "provisioner": "d" }));
        force::policy(&cache([class]), &Local::default(), "fast", "a")
    };
    assert_eq!(policy("never"), ForcePolicy::Never(None));
    assert_eq!(policy("5m"), ForcePolicy::After(300_000));
    assert!(matches!(policy("soon"), ForcePolicy::Never(Some(_))));
}

fn view(objects: impl IntoIterator<Item = Object>, node: &str) -> View {
    AttachDetach::view(&Key::new("v", node), &cache(objects), &Local::default())
}

fn pair(objects: impl IntoIterator<Item = Object>, node: &str) -> Pair {
    match view(objects, node) {
        View::Pair(pair) => pair,
        other => panic!("{other:?}"),
    }
}

// AD-9: both ends of the binding, written to the end.
#[test]
fn ad_9_a_pod_wants_the_volume_its_claim_is_bound_to() {
    let wanted = |claim: Object| {
        let objects = [volume(json!({})), claim, pod("p", "a", of_claim()), node("a", json!({}))];
        matches!(pair(objects, "a").want, Want::Wanted(_))
    };
    assert!(wanted(claim("u-c", "v", "Bound")));
    assert!(!wanted(claim("another", "v", "Bound")));
    assert!(!wanted(claim("u-c", "w", "Bound")));
    assert!(!wanted(claim("u-c", "v", "Pending")));
}

// AD-33: the name of an attachment tells its volume only if it follows from the handle.
#[test]
fn ad_33_an_attachment_of_a_volume_that_is_gone_is_known_by_its_name() {
    let at = |name: &str| named(name, "a", json!({ "persistentVolumeName": "v" }), "d", true);
    let proper = names::attachment_name("h", "d", "a");
    assert!(matches!(view([at(&proper)], "a"), View::Pair(_)));
    let no_hash = alloc::format!("csi-{}", "z".repeat(64));
    for (name, also) in [("csi-abc", None), (no_hash.as_str(), None), ("by-hand", None), (proper.as_str(), Some("two"))]
    {
        let seen = view([at(name)].into_iter().chain(also.map(at)), "a");
        assert!(matches!(seen, View::VolumeMissing { attachment: Some(_), .. }), "{name}: {seen:?}");
    }
}

// Reliability 24: of two attachments that crossed, the one to the first node by name is reported.
#[test]
fn of_two_attachments_only_one_is_reported() {
    let reported = |node_name: &str| {
        let status = json!({ "status": { "volumesAttached": [
            { "name": names::unique_volume_name("d", "h"), "devicePath": "" }] } });
        node(node_name, status)
    };
    let rival = |here: &str, attached: bool, wanted: bool, this: Object, other: Object| {
        let phase = if wanted { "Bound" } else { "Pending" };
        let objects = [
            volume(json!({})),
            claim("u-c", "v", phase),
            pod("p", here, of_claim()),
            this,
            attachment(here, attached),
            other,
        ];
        match pair(objects, here).rival {
            Some(Rival::Attachment { node, .. }) => Some(node),
            Some(other) => panic!("{other:?}"),
            None => None,
        }
    };
    let plain = |name: &str| node(name, json!({}));
    assert_eq!(rival("b", true, true, plain("b"), attachment("a", true)).as_deref(), Some("a"));
    assert_eq!(rival("b", true, true, plain("b"), attachment("a", false)), None, "it is not attached yet");
    assert_eq!(rival("b", true, true, plain("b"), attachment("c", true)), None, "this one comes first");
    assert_eq!(rival("b", false, true, plain("b"), attachment("a", true)), None, "there is nothing to report");
    assert_eq!(rival("b", true, false, plain("b"), attachment("a", true)), None, "nobody wants it");
    assert_eq!(rival("b", true, true, reported("b"), attachment("a", true)), None, "it is reported");
    // Nobody waits where nobody wants it.
    let unwanted = pair([volume(json!({})), plain("b"), attachment("a", true)], "b");
    assert_eq!(unwanted.rival, None);
    let wanted =
        [volume(json!({})), claim("u-c", "v", "Bound"), pod("p", "b", of_claim()), plain("b"), attachment("a", true)];
    assert!(pair(wanted, "b").rival.is_some());
}
