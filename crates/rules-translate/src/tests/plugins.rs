//! Volumes of every plugin, item by item. What came of hundreds of further inputs is in the recorded answers.

use alloc::vec::Vec;

use api::{AccessMode, PersistentVolume, Value, VolumeMode, names};
use serde_json::json;

use super::{inline, lost, sentence, volume};
use crate::{Error, Plugin, as_csi, inline_to_csi, inline_to_in_tree, plugin_volume_name, repair_handle, same_volume};
use crate::{volume_to_csi, volume_to_in_tree};

fn pv(source: Value) -> PersistentVolume {
    let mut spec = json!({
        "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "mountOptions": ["noatime"],
        "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "fast", "volumeMode": "Filesystem",
        "claimRef": { "namespace": "n", "name": "c", "uid": "u" },
    });
    spec.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    let meta = json!({ "name": "pv", "uid": "1", "labels": { "a": "b" }, "annotations": { "c": "d" } });
    volume(json!({ "metadata": meta, "spec": spec }))
}

fn csi(volume: &PersistentVolume) -> Value {
    serde_json::to_value(volume_to_csi(volume).unwrap().object.spec.csi).unwrap()
}

fn handle(source: Value) -> Result<alloc::string::String, Error> {
    volume_to_csi(&pv(source)).map(|seen| seen.object.spec.csi.unwrap().volume_handle)
}

const URI: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d1";

fn one_of_each() -> Vec<Value> {
    alloc::vec![
        json!({ "awsElasticBlockStore": { "volumeID": "vol-1", "fsType": "ext4", "partition": 1, "readOnly": true } }),
        json!({ "gcePersistentDisk": { "pdName": "d", "fsType": "ext4", "partition": 2, "readOnly": true } }),
        json!({ "azureDisk": { "diskName": "d1", "diskURI": URI, "cachingMode": "None", "fsType": "xfs", "readOnly": true, "kind": "Managed" } }),
        json!({ "azureFile": { "secretName": "azure-storage-account-a-secret", "secretNamespace": "n", "shareName": "s", "readOnly": true } }),
        json!({ "cinder": { "volumeID": "c", "fsType": "ext4", "readOnly": true } }),
        json!({ "portworxVolume": { "volumeID": "p", "fsType": "ext4" } }),
    ]
}

// reliability 130, S4-9, S4-10, TR-5: there and back is the same, and nothing but the source changes.
#[test]
fn there_and_back_is_the_same() {
    for source in one_of_each() {
        let there = pv(source.clone());
        let before = there.clone();
        let seen = volume_to_csi(&there).unwrap();
        assert_eq!(there, before, "what goes in is not changed");
        assert_eq!(seen.lost, [], "{source}");
        let mut rest = seen.object.clone();
        rest.spec.csi = None;
        rest.spec.in_tree = there.spec.in_tree.clone();
        assert_eq!(rest, there, "only the source is replaced");
        let again = volume_to_in_tree(&seen.object).unwrap();
        assert_eq!((again.object, again.lost.len()), (there, 0), "{source}");
    }
}

// S4-33: the names that nodes report for volumes that their plugins serve are those of kubelets.
#[test]
fn plugins_have_names_of_their_own_for_volumes() {
    let name = |source: Value| plugin_volume_name(pv(source).spec.in_tree.as_deref().unwrap());
    for (source, expected) in [
        (json!({ "awsElasticBlockStore": { "volumeID": "aws://z/vol-1" } }), "kubernetes.io/aws-ebs/aws://z/vol-1"),
        (json!({ "gcePersistentDisk": { "pdName": "d" } }), "kubernetes.io/gce-pd/d"),
        (json!({ "azureDisk": { "diskName": "d", "diskURI": "/u/d" } }), "kubernetes.io/azure-disk//u/d"),
        (json!({ "azureFile": { "secretName": "s", "shareName": "x" } }), "kubernetes.io/azure-file/x"),
        (json!({ "cinder": { "volumeID": "c" } }), "kubernetes.io/cinder/c"),
        (json!({ "vsphereVolume": { "volumePath": "p" } }), "kubernetes.io/vsphere-volume/p"),
        (json!({ "portworxVolume": { "volumeID": "p" } }), "kubernetes.io/portworx-volume/p"),
        (json!({ "rbd": { "image": "i", "pool": "p" } }), "kubernetes.io/rbd/p:i"),
    ] {
        assert_eq!(Plugin::of_volume_name(expected), Plugin::of(pv(source.clone()).spec.in_tree.as_deref().unwrap()));
        assert_eq!(name(source).as_deref(), Some(expected));
    }
    for others in ["kubernetes.io/csi/rbd.csi.ceph.com^v", "kubernetes.io/rbd", "kubernetes.io/rbdx/p:i", ""] {
        assert_eq!(Plugin::of_volume_name(others), None, "{others}");
    }
    assert_eq!(name(json!({ "cinder": { "volumeID": "c" }, "rbd": { "image": "i" } })), None);
}

// S4-13: handles are the same every time, and another volume has another one.
#[test]
fn handles_are_unique_and_always_the_same() {
    for source in one_of_each() {
        assert_eq!(handle(source.clone()), handle(source));
    }
    assert_ne!(handle(json!({ "cinder": { "volumeID": "a" } })), handle(json!({ "cinder": { "volumeID": "b" } })));
}

// TR-13, TR-14, Q-78, Q-79.
#[test]
fn ebs_volumes() {
    let disk = |id: &str| json!({ "awsElasticBlockStore": { "volumeID": id } });
    for (id, want) in
        [("vol-1", "vol-1"), ("odd/id", "odd/id"), ("aws:///vol-1", "vol-1"), ("aws://us-east-1a/vol-1", "vol-1")]
    {
        assert_eq!(handle(disk(id)).unwrap(), want);
    }
    for bad in ["aws://us-east-1a/snap-1", "aws://us-east-1a/x/vol-1", "aws://", "aws:///"] {
        assert!(sentence(handle(disk(bad))).ends_with("it should be vol-ID, aws://ZONE/vol-ID or aws:///vol-ID"));
    }
    assert_eq!(csi(&pv(disk("vol-1")))["volumeAttributes"], json!({ "partition": "0" }));
    for bad in ["", "x", "99999999999"] {
        let source =
            json!({ "driver": "ebs.csi.aws.com", "volumeHandle": "v", "volumeAttributes": { "partition": bad } });
        assert!(volume_to_in_tree(&pv(json!({ "csi": source }))).is_err(), "TR-16 {bad:?}");
    }
}

// TR-19, Q-77: the zone label decides.
#[test]
fn gce_handles() {
    let with = |labels: Value| {
        let mut volume = pv(json!({ "gcePersistentDisk": { "pdName": "d" } }));
        volume.metadata.labels = serde_json::from_value(labels).unwrap();
        volume_to_csi(&volume).map(|seen| seen.object.spec.csi.unwrap().volume_handle)
    };
    assert_eq!(with(json!({})).unwrap(), "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d");
    assert_eq!(with(json!({ names::ZONE: "us-east1-a" })).unwrap(), "projects/UNSPECIFIED/zones/us-east1-a/disks/d");
    let both = json!({ names::ZONE: "us-east1-a", names::ZONE_BETA: "us-east1-b" });
    assert_eq!(with(both).unwrap(), "projects/UNSPECIFIED/zones/us-east1-b/disks/d");
    let regional = json!({ names::ZONE: "us-east1-a__us-east1-b" });
    assert_eq!(with(regional).unwrap(), "projects/UNSPECIFIED/regions/us-east1/disks/d");
    assert!(with(json!({ names::ZONE: "us-east1-a__eu-west1-b" })).is_err());
}

// TR-20: ROX; RWO; RWX; RWO+ROX; RWO+RWX; RWX+ROX; all.
#[test]
fn gce_access_modes() {
    let (rwo, rox, rwx) = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany");
    for (modes, want) in [
        (&[rox][..], rox),
        (&[rwo], rwo),
        (&[rwx], rwo),
        (&[rwo, rox], rwo),
        (&[rwo, rwx], rwo),
        (&[rwx, rox], rwo),
        (&[rwo, rox, rwx], rwo),
        (&["ReadWriteOncePod"], rwo),
    ] {
        let mut volume = pv(json!({ "gcePersistentDisk": { "pdName": "d" } }));
        volume.spec.access_modes = modes.iter().map(|mode| AccessMode::from(*mode)).collect();
        assert_eq!(volume_to_csi(&volume).unwrap().object.spec.access_modes, [AccessMode::from(want)], "{modes:?}");
    }
}

// TR-22, TR-23: the repair table.
#[test]
fn gce_handles_are_completed_by_the_node() {
    let repair = |handle: &str, node: &str| repair_handle(Plugin::GcePd.driver(), handle, node);
    let node = "projects/np/zones/us-east1-b/instances/i";
    for (handle, want) in [
        ("projects/p/zones/z/disks/d", "projects/p/zones/z/disks/d"),
        ("projects/p/regions/r/disks/d", "projects/p/regions/r/disks/d"),
        ("projects/UNSPECIFIED/zones/z/disks/d", "projects/np/zones/z/disks/d"),
        ("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d", "projects/np/zones/us-east1-b/disks/d"),
        ("projects/UNSPECIFIED/regions/UNSPECIFIED/disks/d", "projects/np/regions/us-east1/disks/d"),
        ("projects/UNSPECIFIED/regions/r/disks/d", "projects/np/regions/r/disks/d"),
    ] {
        assert_eq!(repair(handle, node).unwrap(), want);
        assert!(same_volume(Plugin::GcePd.driver(), handle, want));
    }
    assert!(repair("bad", node).is_err() && repair("projects/UNSPECIFIED/moons/m/disks/d", node).is_err());
    let open = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d";
    assert!(sentence(repair(open, "bad")).ends_with("it should be projects/PROJECT/zones/ZONE/instances/NAME"));
    assert!(!same_volume(Plugin::GcePd.driver(), open, "projects/p/zones/z/disks/e"));
    assert!(!same_volume(Plugin::AwsEbs.driver(), open, "projects/p/zones/z/disks/d"));
    // TR-17, TR-29, TR-35, TR-38, TR-42, TR-45, TR-48: nobody else leaves anything open.
    for plugin in Plugin::ALL.into_iter().filter(|plugin| *plugin != Plugin::GcePd) {
        assert_eq!(repair_handle(plugin.driver(), "h", "n").unwrap(), "h");
    }
    assert!(repair_handle("other", "h", "n").is_err());
}

// TR-25 to TR-28, Q-82.
#[test]
fn azure_disks() {
    for kind in ["Dedicated", "Shared", ""] {
        let bad = volume_to_csi(&pv(json!({ "azureDisk": { "diskName": "d", "diskURI": URI, "kind": kind } })));
        assert!(sentence(bad).contains("Managed, because the CSI driver serves no other"));
    }
    let seen =
        csi(&pv(json!({ "azureDisk": { "diskName": "d1", "diskURI": URI, "cachingMode": "", "fsType": "xfs" } })));
    assert_eq!(seen["volumeAttributes"], json!({ "kind": "Managed", "cachingmode": "", "fstype": "xfs" }));
    let mut there = pv(json!({ "csi": { "driver": Plugin::AzureDisk.driver(), "volumeHandle": "nonsense" } }));
    assert!(
        sentence(volume_to_in_tree(&there)).contains("/resourceGroups/GROUP/providers/Microsoft.Compute/disks/NAME")
    );
    there.spec.csi.as_mut().unwrap().volume_handle = "https://a/vhds/x.vhd".into();
    let back = serde_json::to_value(volume_to_in_tree(&there).unwrap().object).unwrap();
    assert_eq!(back["spec"]["azureDisk"]["diskName"], "x.vhd");
    // A name the handle does not tell is not kept.
    let named = pv(json!({ "azureDisk": { "diskName": "mine", "diskURI": URI } }));
    assert_eq!(lost(&volume_to_csi(&named).unwrap()), ["azureDisk.diskName"]);
}

// TR-31, TR-32, TR-34.
#[test]
fn azure_files() {
    let share = json!({ "secretName": "azure-storage-account-acc-secret", "shareName": "s" });
    let mut there = pv(json!({ "azureFile": share }));
    there.metadata.annotations.insert(names::AZURE_FILE_RESOURCE_GROUP.into(), "rg".into());
    let seen = csi(&there);
    assert_eq!(seen["volumeHandle"], "rg#acc#s#pv#n");
    assert_eq!(seen["nodeStageSecretRef"], json!({ "name": "azure-storage-account-acc-secret", "namespace": "n" }));
    there.spec.claim_ref = None;
    assert!(sentence(volume_to_csi(&there)).contains("azureFile.secretNamespace"));
    let bare = json!({ "csi": { "driver": Plugin::AzureFile.driver(), "volumeHandle": "rg#acc#s" } });
    let back = serde_json::to_value(volume_to_in_tree(&pv(bare)).unwrap().object).unwrap();
    let want =
        json!({ "secretName": "azure-storage-account-acc-secret", "secretNamespace": "default", "shareName": "s" });
    assert_eq!(back["spec"]["azureFile"], want);
    assert_eq!(back["metadata"]["annotations"][names::AZURE_FILE_RESOURCE_GROUP], "rg");
    let short = json!({ "csi": { "driver": Plugin::AzureFile.driver(), "volumeHandle": "rg#acc" } });
    assert!(volume_to_in_tree(&pv(short)).is_err());
}

// TR-37, TR-40, TR-44, Q-80: what CSI has no word for is named.
#[test]
fn what_is_lost_is_named() {
    for (source, want) in [
        (json!({ "cinder": { "volumeID": "c", "secretRef": { "name": "s" } } }), "cinder.secretRef"),
        (json!({ "vsphereVolume": { "volumePath": "p", "storagePolicyID": "i" } }), "vsphereVolume.storagePolicyID"),
        (json!({ "portworxVolume": { "volumeID": "p", "readOnly": true } }), "portworxVolume.readOnly"),
        (json!({ "gcePersistentDisk": { "pdName": "d", "newField": 1 } }), "gcePersistentDisk.newField"),
    ] {
        let seen = volume_to_csi(&pv(source)).unwrap();
        assert_eq!(lost(&seen), [want]);
        assert_eq!(alloc::format!("{}", seen.lost[0]), alloc::format!("{want} has no counterpart and is left out"));
    }
    let source = json!({ "driver": "ebs.csi.aws.com", "volumeHandle": "v", "volumeAttributes": { "odd": "x" },
        "nodeStageSecretRef": { "name": "s", "namespace": "n" } });
    let back = volume_to_in_tree(&pv(json!({ "csi": source }))).unwrap();
    assert_eq!(lost(&back), ["attribute odd", "csi.nodeStageSecretRef"]);
}

// TR-40 to TR-42.
#[test]
fn vsphere_volumes() {
    let mut there =
        pv(json!({ "vsphereVolume": { "volumePath": "[ds] d.vmdk", "fsType": "ext4", "storagePolicyName": "gold" } }));
    there.metadata.labels = [(names::ZONE.into(), "z__y".into()), (names::REGION.into(), "r".into())].into();
    let seen = volume_to_csi(&there).unwrap().object;
    let json = serde_json::to_value(&seen).unwrap();
    assert_eq!(json["spec"]["csi"]["volumeHandle"], "[ds] d.vmdk");
    assert_eq!(json["spec"]["csi"]["volumeAttributes"], json!({ "storagepolicyname": "gold" }));
    let wanted = json!([
        { "key": "topology.csi.vmware.com/zone", "operator": "In", "values": ["z__y"] },
        { "key": "topology.csi.vmware.com/region", "operator": "In", "values": ["r"] },
    ]);
    assert_eq!(json["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"], wanted);
    let source = json!({ "driver": Plugin::Vsphere.driver(), "volumeHandle": "uuid",
        "volumeAttributes": { "initialvolumefilepath": "[ds] d.vmdk" } });
    let back = volume_to_in_tree(&pv(json!({ "csi": source }))).unwrap();
    assert_eq!(
        serde_json::to_value(&back.object).unwrap()["spec"]["vsphereVolume"],
        json!({ "volumePath": "[ds] d.vmdk" })
    );
    // TR-41: a pod's own volume with a policy, which upstream cannot translate.
    let own = inline(json!({ "name": "v", "vsphereVolume": { "volumePath": "p", "storagePolicyName": "gold" } }));
    let seen = inline_to_csi(&own, "n").unwrap().object;
    assert_eq!(seen.metadata.name, "csi.vsphere.vmware.com-p");
    assert_eq!(seen.spec.csi.unwrap().volume_attributes["storagepolicyname"], "gold");
}

// TR-44.
#[test]
fn portworx_secrets_come_from_annotations() {
    let mut there = pv(json!({ "portworxVolume": { "volumeID": "p" } }));
    there.metadata.annotations.insert(names::PORTWORX_SECRET_NAME.into(), "s".into());
    assert!(csi(&there)["nodeStageSecretRef"].is_null());
    there.metadata.annotations.insert(names::PORTWORX_SECRET_NAMESPACE.into(), "n".into());
    let seen = csi(&there);
    for call in ["controllerPublish", "nodeStage", "nodePublish", "controllerExpand", "nodeExpand"] {
        assert_eq!(seen[alloc::format!("{call}SecretRef")], json!({ "name": "s", "namespace": "n" }), "{call}");
    }
}

// TR-47, TR-48.
#[test]
fn rbd_images() {
    let image = json!({ "monitors": ["10.0.0.1:6789", "10.0.0.2:6789"], "image": "kubernetes-dynamic-pvc-1-2", "pool": "replicapool",
        "secretRef": { "name": "s", "namespace": "n" }, "fsType": "ext4" });
    let seen = csi(&pv(json!({ "rbd": image })));
    assert_eq!(seen["volumeHandle"], "mig_mons-7302cda58640a2caf560f9ff34394c6d_image-1-2_7265706c696361706f6f6c");
    let want = json!({
        "clusterID": "7302cda58640a2caf560f9ff34394c6d", "imageName": "kubernetes-dynamic-pvc-1-2", "pool": "replicapool",
        "imageFeatures": "layering", "imageFormat": "", "journalPool": "", "migration": "true", "staticVolume": "true",
        "tryOtherMounters": "true",
    });
    assert_eq!(seen["volumeAttributes"], want);
    assert_eq!(seen["controllerExpandSecretRef"], json!({ "name": "s", "namespace": "n" }));
    // An image by another name is no reason to fail.
    let plain = csi(&pv(json!({ "rbd": { "monitors": ["m"], "image": "plain", "pool": "p" } })));
    assert!(plain["volumeHandle"].as_str().unwrap().contains("_image-plain_"));
    // The handle survives the way back and is used again.
    let there = pv(json!({ "csi": { "driver": Plugin::Rbd.driver(), "volumeHandle": "0001-x", "volumeAttributes": {
        "imageName": "i", "pool": "p", "clusterID": "c", "imageFeatures": "layering" } } }));
    let back = volume_to_in_tree(&there).unwrap();
    assert_eq!(lost(&back), ["the addresses of the monitors"]);
    assert_eq!(csi(&back.object)["volumeHandle"], "0001-x");
    assert_eq!(csi(&back.object)["volumeAttributes"]["clusterID"], "c");
    // Today's sidecars leave such volumes alone.
    assert!(as_csi(&back.object).is_err());
    let own = inline(
        json!({ "name": "v", "rbd": { "monitors": ["m"], "image": "i", "secretRef": { "name": "s" }, "readOnly": true } }),
    );
    let seen = inline_to_csi(&own, "pod-ns").unwrap().object;
    assert_eq!(
        (seen.metadata.name.as_str(), &seen.spec.access_modes[..]),
        ("rbd.csi.ceph.com-i", &[AccessMode::ReadOnlyMany][..])
    );
    assert_eq!(seen.spec.csi.unwrap().node_stage_secret_ref.unwrap().namespace, "pod-ns");
}

// S4-16, S4-17, TR-4, TR-15, TR-21, TR-27, TR-33, TR-37: pods' own volumes, and back.
#[test]
fn volumes_of_pods() {
    for (source, name, mode) in [
        (
            json!({ "awsElasticBlockStore": { "volumeID": "aws:///vol-1", "partition": 1 } }),
            "ebs.csi.aws.com-vol-1",
            "ReadWriteOnce",
        ),
        (
            json!({ "gcePersistentDisk": { "pdName": "d", "readOnly": true } }),
            "pd.csi.storage.gke.io-d",
            "ReadOnlyMany",
        ),
        (json!({ "gcePersistentDisk": { "pdName": "d" } }), "pd.csi.storage.gke.io-d", "ReadWriteOnce"),
        (json!({ "azureDisk": { "diskName": "d1", "diskURI": URI } }), URI, "ReadWriteOnce"),
        (json!({ "azureFile": { "secretName": "x", "shareName": "s" } }), "#x#s#data#pod-ns", "ReadWriteMany"),
        (json!({ "cinder": { "volumeID": "c" } }), "cinder.csi.openstack.org-c", "ReadWriteOnce"),
        (json!({ "portworxVolume": { "volumeID": "p", "readOnly": true } }), "pxd.portworx.com-p", "ReadOnlyMany"),
    ] {
        let mut own = source.clone();
        own["name"] = json!("data");
        let own = inline(own);
        let seen = inline_to_csi(&own, "pod-ns").unwrap().object;
        assert_eq!((seen.metadata.name.as_str(), seen.spec.access_modes[0].as_str()), (name, mode));
        assert_eq!(seen.spec.volume_mode, Some(VolumeMode::Filesystem));
        let back = inline_to_in_tree("data", &seen).unwrap().object;
        let again = inline_to_csi(&back, "pod-ns").unwrap().object;
        assert_eq!(again.spec.csi.unwrap().volume_handle, seen.spec.csi.unwrap().volume_handle, "{source}");
    }
}

// TR-3: what has no source, or more than one, is refused in words.
#[test]
fn sources_that_are_not_there_or_not_alone_are_refused() {
    let two = json!({ "cinder": { "volumeID": "c" }, "portworxVolume": { "volumeID": "p" } });
    assert_eq!(sentence(volume_to_csi(&pv(two))), "volume pv has more than one source; remove all but one");
    let both = pv(json!({ "cinder": { "volumeID": "c" }, "csi": { "driver": "d", "volumeHandle": "h" } }));
    assert!(volume_to_csi(&both).is_err() && volume_to_in_tree(&both).is_err() && as_csi(&both).is_err());
    assert!(matches!(volume_to_csi(&pv(json!({}))), Err(Error::NotInTree(_))));
    assert_eq!(sentence(volume_to_in_tree(&pv(json!({})))), "volume pv has no CSI source");
    let other = pv(json!({ "csi": { "driver": "d", "volumeHandle": "h" } }));
    assert!(matches!(volume_to_in_tree(&other), Err(Error::UnknownDriver(_))));
    assert!(matches!(as_csi(&other), Ok(alloc::borrow::Cow::Borrowed(_))));
    assert!(inline_to_csi(&inline(json!({ "name": "v", "emptyDir": {} })), "n").is_err());
}

// TR-23: what an attacher has filled in is still the volume whose translation left it open.
#[test]
fn a_handle_that_was_filled_in_is_among_those_that_leave_less_said() {
    let driver = Plugin::GcePd.driver();
    let node = "projects/p/zones/z/instances/i";
    for open in ["projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d", "projects/UNSPECIFIED/zones/z/disks/d"] {
        let repaired = crate::repair_handle(driver, open, node).unwrap();
        assert_ne!(repaired, open);
        assert!(crate::open_handles(driver, &repaired).iter().any(|handle| handle == open), "{repaired}");
    }
    assert_eq!(crate::open_handles("d.example", "a/b"), ["a/b"]);
    assert_eq!(crate::open_handles(driver, "no-handle"), ["no-handle"]);
}
