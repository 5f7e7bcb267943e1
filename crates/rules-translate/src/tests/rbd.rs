//! Images of RBD, field by field: Kubernetes' library translates them no more, so that there are no recorded answers.

use alloc::format;

use api::{AccessMode, PersistentVolume, Value, names};
use serde_json::json;

use super::{inline, lost, volume};
use crate::{inline_to_csi, volume_to_csi, volume_to_in_tree};

/// The md5 of "m" and the hexadecimal of "p", as in the handle.
const CLUSTER: &str = "6f8f57715090da2632453988d9a1501b";

fn pv(source: Value) -> PersistentVolume {
    let mut spec = json!({ "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"] });
    spec.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    volume(json!({ "metadata": { "name": "pv" }, "spec": spec }))
}

fn image(more: Value) -> Value {
    let mut image = json!({
        "monitors": ["m"], "image": "i", "pool": "p", "fsType": "xfs", "secretRef": { "name": "s", "namespace": "n" },
    });
    image.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    image
}

// TR-47.
#[test]
fn a_volume_says_all_that_its_driver_has_to_know() {
    for (read_only, mode) in [(false, AccessMode::ReadWriteOnce), (true, AccessMode::ReadOnlyMany)] {
        let seen = volume_to_csi(&pv(json!({ "rbd": image(json!({ "readOnly": read_only })) }))).unwrap().object;
        assert_eq!(seen.spec.access_modes, [mode]);
        let secret = json!({ "name": "s", "namespace": "n" });
        assert_eq!(
            serde_json::to_value(seen.spec.csi).unwrap(),
            json!({
                "driver": "rbd.csi.ceph.com", "volumeHandle": format!("mig_mons-{CLUSTER}_image-i_70"), "fsType": "xfs",
                "volumeAttributes": {
                    "clusterID": CLUSTER, "imageName": "i", "pool": "p", "imageFeatures": "layering", "imageFormat": "",
                    "journalPool": "", "migration": "true", "staticVolume": "true", "tryOtherMounters": "true",
                },
                "nodeStageSecretRef": secret, "controllerExpandSecretRef": secret,
            })
        );
    }
}

// TR-48: the secret of a pod's own image is in the pod's namespace, the pool is rbd unless it is named.
#[test]
fn a_pods_own_image_says_all_that_its_driver_has_to_know() {
    for (pool, named) in [(json!("p"), "p"), (json!(""), "rbd")] {
        let own = image(json!({ "pool": pool, "secretRef": { "name": "s" } }));
        let seen = inline_to_csi(&inline(json!({ "name": "v", "rbd": own })), "pod-ns").unwrap().object;
        assert_eq!(seen.spec.access_modes, [AccessMode::ReadWriteOnce]);
        let secret = json!({ "name": "s", "namespace": "pod-ns" });
        assert_eq!(
            serde_json::to_value(seen.spec.csi).unwrap(),
            json!({
                "driver": "rbd.csi.ceph.com", "volumeHandle": "i", "fsType": "xfs",
                "volumeAttributes": {
                    "clusterID": CLUSTER, "pool": named, "staticVolume": "true", "imageFeatures": "layering",
                },
                "nodeStageSecretRef": secret, "controllerExpandSecretRef": secret,
            })
        );
    }
}

// TR-48: what of an image has no place in CSI's form is told by name, and what stands for itself is not.
#[test]
fn what_is_lost_of_an_image_is_named() {
    for (more, named) in [
        (json!({ "monitors": [] }), &[][..]),
        (json!({ "monitors": [], "user": "admin" }), &[]),
        (json!({ "monitors": [], "user": "bob" }), &["rbd.user"]),
        (json!({ "monitors": [], "keyring": "/etc/ceph/keyring" }), &["rbd.keyring"]),
        (json!({}), &["rbd.monitors"]),
    ] {
        let seen = volume_to_csi(&pv(json!({ "rbd": image(more.clone()) }))).unwrap();
        assert_eq!(lost(&seen), named, "{more}");
        let own = inline_to_csi(&inline(json!({ "name": "v", "rbd": image(more.clone()) })), "n").unwrap();
        assert_eq!(lost(&own), named, "{more}");
    }
}

// TR-48: the way back.
#[test]
fn a_volume_of_the_driver_is_an_image_again() {
    for (admin, user) in [(json!({}), "admin"), (json!({ "adminId": "bob" }), "bob")] {
        let mut attributes = json!({
            "imageName": "i", "pool": "p", "clusterID": "c",
            "imageFeatures": "f", "imageFormat": "2", "journalPool": "j",
        });
        attributes.as_object_mut().unwrap().extend(admin.as_object().unwrap().clone());
        let there = pv(json!({ "csi": {
            "driver": "rbd.csi.ceph.com", "volumeHandle": "h", "fsType": "xfs", "readOnly": true,
            "volumeAttributes": attributes, "nodeStageSecretRef": { "name": "s", "namespace": "n" },
        } }));
        let back = volume_to_in_tree(&there).unwrap();
        assert_eq!(lost(&back), ["the addresses of the monitors"]);
        let seen = serde_json::to_value(&back.object).unwrap();
        let want = json!({
            "monitors": [""], "image": "i", "pool": "p", "fsType": "xfs", "user": user, "readOnly": true,
            "secretRef": { "name": "s", "namespace": "n" },
        });
        assert_eq!(seen["spec"]["rbd"], want);
        let kept = json!({
            names::RBD_VOLUME_HANDLE: "h", "clusterID": "c",
            "imageFeatures": "f", "imageFormat": "2", "journalPool": "j",
        });
        assert_eq!(seen["metadata"]["annotations"], kept);
    }
}
