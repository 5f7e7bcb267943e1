//! The objects the benchmark makes, and how it makes many of them.

use std::future::Future;
use std::io;

use api::{Kind, Object, ObjectRef, Patch, Precondition, Subresource, Value, Write, names};
use control::Outcome;
use io_kube::Kube;
use serde_json::json;
use tokio::task::JoinSet;

use super::nothing::NAME;

/// The class of all volumes.
pub const CLASS: &str = "nothing";
/// The node they are attached to.
pub const NODE: &str = "bench-node";
/// Requests of the benchmark itself at once.
const AT_ONCE: usize = 48;

/// Performs one write; anything but success is an error.
pub async fn write(kube: &Kube, write: Write) -> io::Result<()> {
    match kube.write(&write).await {
        Outcome::Done(_) => Ok(()),
        other => Err(io::Error::other(format!("the benchmark could not write {}: {other:?}", write.target()))),
    }
}

/// Does something for each of many, some at a time.
pub async fn for_each<T, F>(items: impl IntoIterator<Item = T>, act: impl Fn(T) -> F) -> io::Result<()>
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for item in items {
        if running.len() >= AT_ONCE
            && let Some(ended) = running.join_next().await
        {
            ended??;
        }
        running.spawn(act(item));
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}

/// Creates an object; `body` need not say what it is.
pub fn create(kind: Kind, namespace: &str, name: &str, mut body: Value) -> Write {
    body["apiVersion"] = kind.api_version().into();
    body["kind"] = kind.name().into();
    body["metadata"]["name"] = name.into();
    Write::Create { target: ObjectRef::namespaced(kind, namespace, name), body }
}

/// Merges `body` into an object or its status.
pub fn patch(target: ObjectRef, status: bool, body: Value) -> Write {
    let patch = Patch::merge(Precondition::default(), body);
    Write::Patch { target, subresource: status.then_some(Subresource::Status), patch }
}

/// Deletes an object, whatever its version.
pub fn delete(target: ObjectRef) -> Write {
    Write::Delete { target, only_if: Precondition::default(), grace_seconds: None }
}

/// The class, the node, and the driver on it.
pub async fn lay_out(kube: &Kube) -> io::Result<()> {
    let class = json!({ "metadata": {}, "provisioner": NAME, "reclaimPolicy": "Delete", "allowVolumeExpansion": true });
    write(kube, create(Kind::StorageClass, "", CLASS, class)).await?;
    write(kube, create(Kind::Node, "", NODE, json!({ "metadata": {} }))).await?;
    let drivers = json!([{ "name": NAME, "nodeID": "bench-node-id", "topologyKeys": null }]);
    let node = json!({ "metadata": {}, "spec": { "drivers": drivers } });
    write(kube, create(Kind::CSINode, "", NODE, node)).await
}

/// A claim that names our driver, as the volume controller would have annotated it.
pub fn claim(name: &str) -> Write {
    let annotations = json!({ names::STORAGE_PROVISIONER: NAME, names::STORAGE_PROVISIONER_BETA: NAME });
    create(
        Kind::PersistentVolumeClaim,
        "default",
        name,
        json!({
            "metadata": { "annotations": annotations },
            "spec": { "accessModes": ["ReadWriteOnce"], "storageClassName": CLASS, "resources": { "requests": { "storage": "1Gi" } } },
        }),
    )
}

/// A wish to have the volume on the node.
pub fn attachment(volume: &str, handle: &str, held: bool) -> Write {
    let finalizers = if held { json!([names::attacher_finalizer(NAME)]) } else { json!([]) };
    create(
        Kind::VolumeAttachment,
        "",
        &names::attachment_name(handle, NAME, NODE),
        json!({
            "metadata": { "finalizers": finalizers },
            "spec": { "attacher": NAME, "nodeName": NODE, "source": { "persistentVolumeName": volume } },
        }),
    )
}

/// Binds a claim to its volume as the volume controller would, with a status that says so. Who wrote which field before is
/// forgotten, so that the claim is the same whoever had it.
pub async fn bind(kube: Kube, claim: ObjectRef, volume: String) -> io::Result<()> {
    let metadata = json!({ "annotations": { names::BIND_COMPLETED: "yes" }, "managedFields": [{}] });
    let named = json!({ "metadata": metadata, "spec": { "volumeName": volume } });
    write(&kube, patch(claim.clone(), false, named)).await?;
    let status = json!({ "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" } });
    write(&kube, patch(claim, true, json!({ "status": status }))).await
}

/// Asks for a larger volume.
pub async fn grow(kube: Kube, claim: ObjectRef) -> io::Result<()> {
    let larger = json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } });
    write(&kube, patch(claim, false, larger)).await
}

/// Every object of a kind.
pub async fn list(kube: &Kube, kind: Kind) -> io::Result<Vec<Object>> {
    kube.list(kind).await.map(|(_, objects)| objects).map_err(io::Error::other)
}

/// A volume in use, complete from the start: claim, volume and attachment as they are when nothing is left to do.
pub async fn in_use(kube: Kube, number: usize) -> io::Result<()> {
    let name = format!("data-web-{number}");
    let claim = ObjectRef::namespaced(Kind::PersistentVolumeClaim, "default", name.as_str());
    let Outcome::Done(control::Reply::Object(made)) = kube.write(&self::claim(&name)).await else {
        return Err(io::Error::other("the benchmark could not make a claim"));
    };
    let uid = &made.meta().uid;
    let (volume, handle) = (format!("pvc-{uid}"), io_csi::kit::id_of(&format!("pvc-{uid}")));
    let metadata = json!({
        "annotations": {
            names::PROVISIONED_BY: NAME, names::DELETION_SECRET_NAME: "", names::DELETION_SECRET_NAMESPACE: "",
        },
        "finalizers": [names::PROVISIONER_FINALIZER, names::attacher_finalizer(NAME)],
    });
    let claim_ref = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": uid });
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "claimRef": claim_ref,
        "persistentVolumeReclaimPolicy": "Delete", "storageClassName": CLASS, "volumeMode": "Filesystem",
        "csi": {
            "driver": NAME, "volumeHandle": handle, "fsType": "ext4",
            "volumeAttributes": { names::PROVISIONER_IDENTITY: format!("1763251200000-4711-{NAME}") },
        },
    });
    write(&kube, create(Kind::PersistentVolume, "", &volume, json!({ "metadata": metadata, "spec": spec }))).await?;
    bind(kube.clone(), claim, volume.clone()).await?;
    write(&kube, attachment(&volume, &handle, true)).await?;
    let target = ObjectRef::cluster(Kind::VolumeAttachment, names::attachment_name(&handle, NAME, NODE));
    let attached = json!({ "status": { "attached": true, "attachmentMetadata": { "device": "/dev/null" } } });
    write(&kube, patch(target, true, attached)).await
}
