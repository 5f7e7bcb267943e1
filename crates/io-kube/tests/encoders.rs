//! Writes reach a store in two ways: the simulator turns them into requests with `Request::from_write`, and this crate
//! encodes them as HTTP. Both must do the same to the store, or what is proved is not what runs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::collections::BTreeSet;

use api::{JsonOp, Kind, Meta, Note, ObjectRef, Patch, PatchBody, Precondition, Subresource, Value, Write};
use control::{Outcome, Refusal};
use io_apiserver::{ApiServer, Config};
use io_kube::Kube;
use rules_store::{Context, Failure, Request, Store};
use serde_json::json;

/// The same objects behind both encoders.
struct Both {
    _folder: tempfile::TempDir,
    kube: Kube,
    store: Store,
    uids: usize,
}

impl Both {
    fn new() -> Both {
        let folder = tempfile::tempdir().unwrap();
        let server = ApiServer::open(Config { data_dir: folder.path().join("api"), ..Config::default() }).unwrap();
        let kube = Kube::in_process(server.service_as("test"));
        let mut both = Both { _folder: folder, kube, store: Store::new(), uids: 0 };
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default" } });
        let target = ObjectRef::cluster(Kind::Namespace, "default");
        both.apply(&Write::Create { target, body: namespace }).unwrap();
        both
    }

    fn apply(&mut self, write: &Write) -> Result<(), Failure> {
        self.uids += 1;
        let uid = format!("uid-{}", self.uids);
        let now_millis = 1_800_000_000_000 + 1000 * self.uids as u64;
        let context = Context { now_millis, new_uid: &uid, actor: "test" };
        self.store.apply(&context, Request::from_write(write)).map(|_| ())
    }

    /// The object as the store of the simulator holds it.
    fn simulated(&self, target: &ObjectRef) -> Option<Value> {
        self.store.get(target.kind, &target.key.namespace, &target.key.name).map(|stored| stored.value.clone())
    }

    /// The object as the API server holds it.
    async fn served(&self, target: &ObjectRef) -> Option<Value> {
        let root = if target.kind.group().is_empty() { "api" } else { "apis" };
        let within =
            if target.kind.namespaced() { format!("namespaces/{}/", target.key.namespace) } else { String::new() };
        let (version, plural) = (target.kind.api_version(), target.kind.plural());
        let (code, body) =
            self.kube.get_raw(&format!("/{root}/{version}/{within}{plural}/{}", target.key.name)).await.unwrap();
        (code == 200).then(|| serde_json::from_slice(&body).unwrap())
    }

    /// Performs a write in both ways, each with the uid and version that its own store gave the object.
    async fn check(&mut self, what: &str, target: &ObjectRef, make: impl Fn(&Meta) -> Write) -> Write {
        let meta = |object: Option<Value>| -> Meta {
            object.map(|object| serde_json::from_value(object["metadata"].clone()).unwrap()).unwrap_or_default()
        };
        let write = make(&meta(self.simulated(target)));
        let json_patch = matches!(write, Write::Patch { patch: Patch { body: PatchBody::Json(_), .. }, .. });
        let simulated = self.apply(&write).map_err(|failure| refusal(&failure, json_patch));
        let served = match self.kube.write(&make(&meta(self.served(target).await))).await {
            Outcome::Done(_) => Ok(()),
            Outcome::Refused(refusal) => Err(refusal),
            Outcome::Unknown(why) => panic!("{what}: {why}"),
        };
        assert_eq!(served, simulated, "{what}");
        let objects = (self.served(target).await, self.simulated(target));
        assert_eq!(objects.0.map(comparable), objects.1.map(comparable), "{what}");
        write
    }
}

fn refusal(failure: &Failure, json_patch: bool) -> Refusal {
    let status = failure.to_status();
    match (failure.code(), status["reason"].as_str()) {
        (404, _) => Refusal::NotFound,
        (409, Some("AlreadyExists")) => Refusal::AlreadyExists,
        (409, _) => Refusal::Conflict,
        (422, _) if json_patch => Refusal::Conflict,
        (_, _) => Refusal::Denied(status["message"].as_str().unwrap_or_default().into()),
    }
}

/// Without what the two stores draw for themselves.
fn comparable(mut object: Value) -> Value {
    let meta = object["metadata"].as_object_mut().unwrap();
    for drawn in ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = meta.get_mut(drawn) {
            *value = json!("drawn");
        }
    }
    meta.remove("managedFields");
    if let Some(conditions) = object["status"].get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.iter_mut().for_each(|condition| condition["lastTransitionTime"] = json!("drawn"));
    }
    if let Some(since) = object["status"].get_mut("lastPhaseTransitionTime") {
        *since = json!("drawn");
    }
    object
}

/// The variant of a write. A new variant does not compile here until it has a name, and fails the test until it is driven.
fn variant(write: &Write) -> &'static str {
    match write {
        Write::Create { .. } => "create",
        Write::Patch { patch: Patch { body: PatchBody::Merge(_), .. }, subresource: None, .. } => "merge patch",
        Write::Patch {
            patch: Patch { body: PatchBody::Merge(_), .. }, subresource: Some(Subresource::Status), ..
        } => "merge patch of status",
        Write::Patch { patch: Patch { body: PatchBody::Json(_), .. }, .. } => "JSON patch",
        Write::Patch { patch: Patch { body: PatchBody::Strategic(_), .. }, .. } => "strategic merge patch",
        Write::Delete { .. } => "delete",
        Write::Bind { .. } => "bind",
        Write::Note(_) => "note",
    }
}

const VARIANTS: [&str; 8] =
    ["create", "merge patch", "merge patch of status", "JSON patch", "strategic merge patch", "delete", "bind", "note"];

fn volume(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name, "labels": { "a": "b" } },
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
            "csi": { "driver": "d.example", "volumeHandle": "h" },
        },
    })
}

fn patch(target: &ObjectRef, patch: Patch) -> Write {
    Write::Patch { target: target.clone(), subresource: None, patch }
}

#[tokio::test]
async fn both_encoders_do_the_same_to_a_store() {
    let mut both = Both::new();
    let mut driven = BTreeSet::new();
    let v = ObjectRef::cluster(Kind::PersistentVolume, "v");
    let create = |body: Value| Write::Create { target: v.clone(), body };
    let other = Precondition { uid: Some("another".into()), resource_version: None };
    let label = json!({ "metadata": { "labels": { "c": "d" } } });
    let mut invalid = volume("v");
    invalid["spec"]["capacity"] = json!({});
    let mut nameless = volume("v");
    nameless["metadata"].as_object_mut().unwrap().remove("name");

    driven.insert(variant(&both.check("an invalid object", &v, |_| create(invalid.clone())).await));
    both.check("a change of what is not there", &v, |_| {
        patch(&v, Patch::merge(Precondition::default(), label.clone()))
    })
    .await;
    both.check("an object whose name is in its path alone", &v, |_| create(nameless.clone())).await;
    both.check("an object that exists", &v, |_| create(volume("v"))).await;

    let merge = both.check("a merge patch", &v, |meta| {
        patch(
            &v,
            Patch::merge(Precondition::unchanged(meta), json!({ "metadata": { "labels": { "c": "d", "a": null } } })),
        )
    });
    driven.insert(variant(&merge.await));
    both.check("a merge patch of a namesake", &v, |_| patch(&v, Patch::merge(other.clone(), label.clone()))).await;
    let stale = Precondition { uid: None, resource_version: Some("1".into()) };
    both.check("a merge patch of an older version", &v, |_| patch(&v, Patch::merge(stale.clone(), label.clone())))
        .await;
    let status = both.check("a merge patch of the status", &v, |meta| {
        let body = json!({ "status": { "phase": "Available" }, "spec": { "storageClassName": "ignored" } });
        let patch = Patch::merge(Precondition::same(meta), body);
        Write::Patch { target: v.clone(), subresource: Some(Subresource::Status), patch }
    });
    driven.insert(variant(&status.await));

    let tested = |value: &str, meta: &Meta| {
        let ops = vec![
            JsonOp::Test { path: "/metadata/labels/c".into(), value: json!(value) },
            JsonOp::Replace { path: "/metadata/labels/c".into(), value: json!("e") },
            JsonOp::Add { path: "/metadata/annotations".into(), value: json!({ "x/y": "z", "gone": "" }) },
            JsonOp::Remove { path: "/metadata/annotations/gone".into() },
        ];
        Patch::json(Precondition::same(meta), ops)
    };
    driven.insert(variant(&both.check("a JSON patch", &v, |meta| patch(&v, tested("d", meta))).await));
    both.check("a JSON patch whose test fails", &v, |meta| patch(&v, tested("d", meta))).await;

    for finalizer in ["example.com/one", "example.com/two"] {
        both.check("a finalizer", &v, |meta| patch(&v, Patch::add_finalizer(meta, finalizer))).await;
    }
    let delete = |only_if| Write::Delete { target: v.clone(), only_if, grace_seconds: None };
    both.check("a delete of a namesake", &v, |_| delete(other.clone())).await;
    both.check("a delete of an older version", &v, |_| delete(stale.clone())).await;
    driven.insert(variant(&both.check("a delete", &v, |meta| delete(Precondition::unchanged(meta))).await));
    for finalizer in ["example.com/one", "example.com/two", "kubernetes.io/pv-protection"] {
        let released =
            both.check("a finalizer that goes", &v, |meta| patch(&v, Patch::remove_finalizer(meta, finalizer)));
        driven.insert(variant(&released.await));
    }
    assert!(both.simulated(&v).is_none());
    both.check("a delete of what is gone", &v, |_| delete(Precondition::default())).await;

    pods_and_leases(&mut both, &mut driven).await;
    assert_eq!(driven, VARIANTS.into_iter().collect());
}

async fn pods_and_leases(both: &mut Both, driven: &mut BTreeSet<&'static str>) {
    let pod = ObjectRef::namespaced(Kind::Pod, "default", "p");
    let body = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "default" },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    both.check("a pod", &pod, |_| Write::Create { target: pod.clone(), body: body.clone() }).await;
    let bind = |uid: &str| Write::Bind { target: pod.clone(), uid: uid.into(), node: "n".into() };
    both.check("a namesake's node", &pod, |_| bind("another")).await;
    driven.insert(variant(&both.check("a node", &pod, |meta| bind(&meta.uid)).await));
    both.check("another node", &pod, |meta| bind(&meta.uid)).await;
    let delete = |meta: &Meta, grace_seconds| Write::Delete {
        target: pod.clone(),
        only_if: Precondition::same(meta),
        grace_seconds,
    };
    both.check("a pod that may take a while", &pod, |meta| delete(meta, None)).await;
    both.check("a pod that goes at once", &pod, |meta| delete(meta, Some(0))).await;

    let lease = ObjectRef::namespaced(Kind::Lease, "default", "l");
    let body = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "l" }, "spec": { "holderIdentity": "somebody" } });
    both.check("a lease", &lease, |_| Write::Create { target: lease.clone(), body: body.clone() }).await;
    let note = |meta: &Meta, uid: &str, value: Option<&str>| {
        let annotations = [("example.com/entry".to_string(), value.map(String::from))].into();
        Write::Note(Note { target: lease.clone(), uid: uid.into(), seen: meta.resource_version.clone(), annotations })
    };
    both.check("a note for a namesake", &lease, |meta| note(meta, "another", Some("x"))).await;
    driven.insert(variant(&both.check("a note", &lease, |meta| note(meta, &meta.uid, Some("x"))).await));
    both.check("a note that goes", &lease, |meta| note(meta, &meta.uid, None)).await;
}
