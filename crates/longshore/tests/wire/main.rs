//! Both forms against the real API server: whatever is read or written in the binary form is what JSON says.
#![allow(clippy::unwrap_used)]

mod objects;
mod stand;

use std::collections::BTreeMap;
use std::time::Duration;

use api::{JsonOp, Kind, Object, ObjectRef, Patch, Precondition, Subresource, Value, Write};
use control::{Outcome, Refusal, Reply};
use io_kube::{Kube, WatchEvent};
use serde_json::json;
use tokio::sync::mpsc;

use stand::Stand;

const PATIENCE: Duration = Duration::from_secs(60);

fn create(body: &Value) -> Write {
    let kind = *Kind::ALL.iter().find(|kind| body["kind"] == kind.name()).unwrap();
    let name = body["metadata"]["name"].as_str().unwrap();
    let target = match body["metadata"]["namespace"].as_str() {
        Some(namespace) => ObjectRef::namespaced(kind, namespace, name),
        None => ObjectRef::cluster(kind, name),
    };
    Write::Create { target, body: body.clone() }
}

async fn created(kube: &Kube, body: &Value) -> Object {
    match kube.write(&create(body)).await {
        Outcome::Done(Reply::Object(object)) => object,
        other => panic!("{body} should be there now: {other:?}"),
    }
}

async fn with_status(kube: &Kube, object: &Object, status: &Value) -> Object {
    let patch = Patch::merge(Precondition::same(object.meta()), json!({ "status": status }));
    let write = Write::Patch { target: object.reference(), subresource: Some(Subresource::Status), patch };
    match kube.write(&write).await {
        Outcome::Done(Reply::Object(object)) => object,
        other => panic!("{} should have a status now: {other:?}", object.reference()),
    }
}

async fn read(kube: &Kube, target: &ObjectRef) -> Object {
    match kube.read(target).await {
        Outcome::Done(Reply::Object(object)) => object,
        other => panic!("{target} should be there: {other:?}"),
    }
}

/// The object as the server stores it, without what differs between any two.
async fn stored(kube: &Kube, target: &ObjectRef) -> Value {
    let (root, namespace) = match target.kind.group() {
        "" => ("api", &target.key.namespace),
        _group => ("apis", &target.key.namespace),
    };
    let within = if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") };
    let path = format!("/{root}/{}/{within}{}/{}", target.kind.api_version(), target.kind.plural(), target.key.name);
    let (status, body) = kube.get_raw(&path).await.unwrap();
    assert_eq!(status, 200, "{path}");
    let mut value: Value = serde_json::from_slice(&body).unwrap();
    for key in ["name", "uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        value["metadata"].as_object_mut().unwrap().remove(key);
    }
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
    }
    value
}

fn by_name(objects: Vec<Object>) -> BTreeMap<String, Object> {
    objects.into_iter().map(|object| (object.meta().key().to_string(), object)).collect()
}

/// Those that nobody but the test writes: the server renews leases of its own.
fn ours(objects: Vec<Object>) -> BTreeMap<String, Object> {
    by_name(objects.into_iter().filter(|object| object.meta().namespace != "kube-system").collect())
}

/// A watch's own account of what there is and what happens.
async fn watching(kube: &Kube, kind: Kind) -> (mpsc::Receiver<WatchEvent>, BTreeMap<String, Object>) {
    let (send, mut news) = mpsc::channel(1024);
    tokio::spawn(kube.clone().watch(kind, send));
    let mut known = BTreeMap::new();
    loop {
        match tokio::time::timeout(PATIENCE, news.recv()).await.unwrap().unwrap() {
            WatchEvent::InitApply(objects) => known.extend(by_name(objects)),
            WatchEvent::InitDone { objects, .. } => {
                known.extend(by_name(objects));
                return (news, known);
            }
            WatchEvent::Apply(_) | WatchEvent::Delete(_) => panic!("news before the list"),
        }
    }
}

async fn next(news: &mut mpsc::Receiver<WatchEvent>) -> (&'static str, Object) {
    match tokio::time::timeout(PATIENCE, news.recv()).await.unwrap().unwrap() {
        WatchEvent::Apply(object) => ("set", object),
        WatchEvent::Delete(object) => ("removed", object),
        WatchEvent::InitApply(_) | WatchEvent::InitDone { .. } => panic!("a list where news should be"),
    }
}

#[tokio::test]
async fn what_is_read_in_either_form_is_the_same() {
    let stand = Stand::start();
    let (binary, in_json) = (stand.speaking_both().await, stand.speaking_json().await);
    let mut all = Vec::new();
    for (body, status) in objects::all() {
        let mut object = created(&binary, &body).await;
        if let Some(status) = status {
            object = with_status(&binary, &object, &status).await;
        }
        all.push(object);
    }
    for object in &all {
        let target = object.reference();
        assert_eq!(read(&binary, &target).await, *object, "{target}");
        assert_eq!(read(&in_json, &target).await, *object, "{target}");
    }
    for kind in [Kind::PersistentVolume, Kind::PersistentVolumeClaim, Kind::VolumeAttachment, Kind::Lease] {
        let (_, listed) = binary.list(kind).await.unwrap();
        let (_, wanted) = in_json.list(kind).await.unwrap();
        let (listed, wanted) = (ours(listed), ours(wanted));
        assert!(!wanted.is_empty());
        assert_eq!(listed, wanted, "{kind}");
    }
    assert!(stand.spoken().iter().any(|spoken| spoken.answer == wire::TYPE));
    for spoken in stand.spoken().iter().filter(|spoken| spoken.both) {
        assert_eq!(spoken.answer, wire::TYPE, "{spoken:?}");
    }
}

#[tokio::test]
async fn what_is_written_in_either_form_is_the_same() {
    let stand = Stand::start();
    let (binary, in_json) = (stand.speaking_both().await, stand.speaking_json().await);
    for (mut body, _) in objects::all() {
        let name = body["metadata"]["name"].as_str().unwrap().to_string();
        body["metadata"]["name"] = json!(format!("{name}-binary"));
        let one = created(&binary, &body).await.reference();
        body["metadata"]["name"] = json!(format!("{name}-json"));
        let other = created(&in_json, &body).await.reference();
        assert_eq!(stored(&in_json, &one).await, stored(&in_json, &other).await, "{name}");
    }
    let sent = |both: bool| -> Vec<String> {
        let all = stand.spoken();
        all.into_iter()
            .filter(|spoken| spoken.both == both && spoken.method == "POST")
            .map(|spoken| spoken.sent)
            .collect()
    };
    let count = objects::all().len();
    assert_eq!(sent(true).iter().filter(|sent| *sent == wire::TYPE).count(), count);
    assert_eq!(sent(true).iter().filter(|sent| *sent == "application/json").count(), 0);
    // A server that does not take the binary form is asked once.
    assert_eq!(sent(false).iter().filter(|sent| *sent == wire::TYPE).count(), 1);
    assert_eq!(sent(false).iter().filter(|sent| *sent == "application/json").count(), count);
}

#[tokio::test]
async fn watches_in_either_form_tell_the_same() {
    let stand = Stand::start();
    let (binary, in_json) = (stand.speaking_both().await, stand.speaking_json().await);
    // More than one page.
    for number in 0..260 {
        created(&binary, &objects::volume(&format!("many-{number}"), json!({ "csi": objects::csi() }))).await;
    }
    let (mut news, known) = watching(&binary, Kind::PersistentVolume).await;
    let (mut wanted_news, wanted) = watching(&in_json, Kind::PersistentVolume).await;
    assert_eq!(known.len(), 260);
    assert_eq!(known, wanted);
    let object = created(&binary, &objects::volume("watched", json!({ "csi": objects::csi() }))).await;
    let target = object.reference();
    with_status(&binary, &object, &json!({ "phase": "Failed", "message": "m", "reason": "r" })).await;
    let delete =
        Write::Delete { target: target.clone(), only_if: Precondition::same(object.meta()), grace_seconds: None };
    let Outcome::Done(Reply::Object(going)) = binary.write(&delete).await else { panic!("its finalizers hold it") };
    let release: Vec<&str> = going.meta().finalizers.iter().map(String::as_str).collect();
    let patch = Patch::remove_finalizers_of(&going.meta().uid, &release);
    let released = binary.write(&Write::Patch { target, subresource: None, patch }).await;
    assert_eq!(released, Outcome::Done(Reply::Gone));
    let mut told = Vec::new();
    loop {
        let (what, object) = next(&mut news).await;
        let (wanted_what, wanted) = next(&mut wanted_news).await;
        assert_eq!((what, &object), (wanted_what, &wanted));
        told.push(what);
        if what == "removed" {
            break;
        }
    }
    assert_eq!(told, ["set", "set", "set", "removed"]);
    let watches = stand.spoken().into_iter().filter(|spoken| spoken.path.contains("watch=true"));
    let forms: Vec<(bool, String)> = watches.map(|spoken| (spoken.both, spoken.answer)).collect();
    assert_eq!(forms, [(true, wire::TYPE.to_string()), (false, "application/json".to_string())]);
}

#[tokio::test]
async fn refusals_in_either_form_are_the_same() {
    let stand = Stand::start();
    let (binary, in_json) = (stand.speaking_both().await, stand.speaking_json().await);
    let body = objects::volume("v", json!({ "csi": objects::csi() }));
    let object = created(&binary, &body).await;
    let (target, absent) = (object.reference(), ObjectRef::cluster(Kind::PersistentVolume, "absent"));
    let stale = Precondition { uid: None, resource_version: Some("1".into()) };
    let namesake = Precondition { uid: Some("another".into()), resource_version: None };
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    let patch = |target: &ObjectRef, patch| Write::Patch { target: target.clone(), subresource: None, patch };
    let tested = Patch::json(
        Precondition::default(),
        vec![JsonOp::Test { path: "/metadata/uid".into(), value: json!("another") }],
    );
    let delete = |target: &ObjectRef, only_if| Write::Delete { target: target.clone(), only_if, grace_seconds: None };
    let mut sourceless = objects::volume("nothing", json!({}));
    sourceless["spec"].as_object_mut().unwrap().remove("capacity");
    let mut refusals = Vec::new();
    for write in [
        create(&body),
        patch(&target, Patch::merge(stale, label.clone())),
        patch(&target, tested),
        patch(&absent, Patch::merge(Precondition::default(), label)),
        delete(&target, namesake),
        delete(&absent, Precondition::default()),
        create(&sourceless),
    ] {
        let refused = binary.write(&write).await;
        assert_eq!(refused, in_json.write(&write).await, "{write:?}");
        let Outcome::Refused(refusal) = refused else { panic!("{write:?} should be refused: {refused:?}") };
        refusals.push(refusal);
    }
    let denied = refusals.pop().unwrap();
    let expected = [
        Refusal::AlreadyExists,
        Refusal::Conflict,
        Refusal::Conflict,
        Refusal::NotFound,
        Refusal::Conflict,
        Refusal::NotFound,
    ];
    assert_eq!(refusals, expected);
    assert!(matches!(&denied, Refusal::Denied(why) if why.contains("spec.capacity")), "{denied:?}");
    assert_eq!(binary.read(&absent).await, Outcome::Done(Reply::Gone));
    for spoken in stand.spoken().iter().filter(|spoken| spoken.both) {
        assert_eq!(spoken.answer, wire::TYPE, "{spoken:?}");
    }
}
