//! Classes of every plugin.

use api::names::{FSTYPE_PARAMETER, ZONE, ZONE_BETA};
use api::{StorageClass, Value};
use serde_json::json;

use super::{class, lost, sentence};
use crate::{Plugin, class_to_csi, class_to_in_tree};

fn of(plugin: Plugin, parameters: Value) -> StorageClass {
    class(json!({ "metadata": { "name": "fast" }, "provisioner": plugin.name(), "parameters": parameters }))
}

fn parameters(plugin: Plugin, parameters: Value) -> Value {
    json!(class_to_csi(&of(plugin, parameters)).unwrap().object.parameters)
}

fn allowed(key: &str, values: &[&str]) -> Value {
    json!([{ "matchLabelExpressions": [{ "key": key, "values": values }] }])
}

fn topologies(class: &StorageClass) -> Value {
    json!(class.allowed_topologies)
}

// TR-12: plain, fstype in any case, iops.
#[test]
fn ebs_classes() {
    let me = Plugin::AwsEbs;
    assert_eq!(parameters(me, json!({})), json!({}));
    assert_eq!(
        parameters(me, json!({ "FsType": "xfs", "type": "gp2" })),
        json!({ FSTYPE_PARAMETER: "xfs", "type": "gp2" })
    );
    let more = json!({ "iopsPerGB": "10", "allowautoiopspergbincrease": "true" });
    assert_eq!(parameters(me, json!({ "iopsPerGB": "10" })), more);
}

// TR-10, TR-11: zone, zones, topology, both.
#[test]
fn zones_of_classes_become_places() {
    for plugin in [Plugin::AwsEbs, Plugin::GcePd, Plugin::AzureDisk] {
        let key = plugin.zone_key().unwrap();
        let seen = class_to_csi(&of(plugin, json!({ "zone": "a" }))).unwrap().object;
        assert_eq!((topologies(&seen), json!(seen.parameters)), (allowed(key, &["a"]), json!({})));
        let seen = class_to_csi(&of(plugin, json!({ "Zones": "a, b" }))).unwrap().object;
        assert_eq!(topologies(&seen), allowed(key, &["a", " b"]));
        for zone in [ZONE, ZONE_BETA] {
            let mut there = of(plugin, json!({}));
            there.allowed_topologies = serde_json::from_value(allowed(zone, &["a"])).unwrap();
            assert_eq!(topologies(&class_to_csi(&there).unwrap().object), allowed(key, &["a"]));
            there.parameters.insert("zone".into(), "b".into());
            assert!(class_to_csi(&there).is_err());
        }
        let both = class_to_csi(&of(plugin, json!({ "zone": "a", "zones": "b" })));
        assert_eq!(
            sentence(both),
            "class \"fast\" says more than once which zones it is for, as zone and as zones; keep one"
        );
    }
    // TR-36: Cinder's zones stay parameters.
    assert_eq!(
        parameters(Plugin::Cinder, json!({ "zone": "a", "availability": "b" })),
        json!({ "zone": "a", "availability": "b" })
    );
}

#[test]
fn what_a_class_says_twice_is_refused() {
    for plugin in [Plugin::AwsEbs, Plugin::GcePd, Plugin::Cinder] {
        assert!(class_to_csi(&of(plugin, json!({ "fstype": "a", "fsType": "b" }))).is_err(), "{plugin}");
        assert!(class_to_csi(&of(plugin, json!({ "fstype": "a", FSTYPE_PARAMETER: "b" }))).is_err(), "{plugin}");
    }
}

// TR-24: Azure's zones "0", "1234", "centralus-1".
#[test]
fn azure_disk_classes() {
    let me = Plugin::AzureDisk;
    assert_eq!(
        parameters(me, json!({ "fsType": "xfs", "kind": "Managed" })),
        json!({ "fsType": "xfs", "kind": "Managed" })
    );
    let mut there = of(me, json!({}));
    there.allowed_topologies = serde_json::from_value(allowed(ZONE, &["0", "1234", "centralus-1"])).unwrap();
    let seen = class_to_csi(&there).unwrap().object;
    assert_eq!(topologies(&seen), allowed(me.zone_key().unwrap(), &["", "", "centralus-1"]));
    assert_eq!(
        lost(&class_to_in_tree(&seen).unwrap()),
        ["the number of the fault domain behind an empty zone in allowedTopologies"]
    );
}

// TR-30.
#[test]
fn azure_file_classes_stay() {
    assert_eq!(
        parameters(Plugin::AzureFile, json!({ "skuName": "x", "fstype": "y" })),
        json!({ "skuName": "x", "fstype": "y" })
    );
}

// TR-39, Q-81.
#[test]
fn vsphere_classes_name_what_they_cannot_say() {
    let there =
        of(Plugin::Vsphere, json!({ "diskFormat": "thin", "storagePolicyName": "gold", "fstype": "ext4", "odd": "x" }));
    let seen = class_to_csi(&there).unwrap();
    let want = json!({
        "diskformat-migrationparam": "thin", "storagepolicyname": "gold", FSTYPE_PARAMETER: "ext4", "csimigration": "true",
    });
    assert_eq!(json!(seen.object.parameters), want);
    assert_eq!(lost(&seen), ["parameter odd"]);
}

// TR-43.
#[test]
fn portworx_secrets_go_with_every_call() {
    let there = of(
        Plugin::Portworx,
        json!({ "openstorage.io/auth-secret-name": "s", "openstorage.io/auth-secret-namespace": "n", "repl": "2" }),
    );
    let seen = class_to_csi(&there).unwrap().object;
    assert_eq!(seen.parameters.len(), 13);
    for call in ["provisioner", "controller-publish", "node-publish", "node-stage", "controller-expand", "node-expand"]
    {
        assert_eq!(seen.parameters[&alloc::format!("csi.storage.k8s.io/{call}-secret-name")], "s");
        assert_eq!(seen.parameters[&alloc::format!("csi.storage.k8s.io/{call}-secret-namespace")], "n");
    }
    assert_eq!(class_to_in_tree(&seen).unwrap().object, there);
}

// TR-46.
#[test]
fn rbd_classes() {
    let there = json!({ "monitors": "10.0.0.1:6789,10.0.0.2:6789", "adminSecretName": "s", "adminId": "kube", "userId": "u", "fsType": "ext4" });
    let seen = class_to_csi(&of(Plugin::Rbd, there)).unwrap();
    let want = json!({
        "migration": "true", "pool": "rbd", "monitors": "10.0.0.1:6789,10.0.0.2:6789", "adminId": "kube",
        "clusterID": "7302cda58640a2caf560f9ff34394c6d", FSTYPE_PARAMETER: "ext4",
        "csi.storage.k8s.io/provisioner-secret-name": "s", "csi.storage.k8s.io/provisioner-secret-namespace": "default",
        "csi.storage.k8s.io/node-stage-secret-name": "s", "csi.storage.k8s.io/node-stage-secret-namespace": "default",
        "csi.storage.k8s.io/controller-expand-secret-name": "s", "csi.storage.k8s.io/controller-expand-secret-namespace": "default",
    });
    assert_eq!(json!(seen.object.parameters), want);
    assert_eq!(lost(&seen), ["parameter userId"]);
    assert!(sentence(class_to_csi(&of(Plugin::Rbd, json!({ "monitors": "m" })))).contains("adminSecretName"));
    assert!(sentence(class_to_csi(&of(Plugin::Rbd, json!({ "adminSecretName": "s" })))).contains("monitors"));
}

// The way back, which Kubernetes does not go: the same class again.
#[test]
fn classes_come_back_as_they_were() {
    for (plugin, parameters) in [
        (Plugin::AwsEbs, json!({ "fstype": "xfs", "type": "io1", "iopsPerGB": "10" })),
        (Plugin::GcePd, json!({ "fstype": "xfs", "replication-type": "regional-pd" })),
        (Plugin::AzureDisk, json!({ "kind": "Managed" })),
        (Plugin::AzureFile, json!({ "skuName": "x" })),
        (Plugin::Cinder, json!({ "fstype": "xfs", "availability": "nova" })),
        (Plugin::Vsphere, json!({ "fstype": "xfs", "diskformat": "thin", "iopslimit": "3", "storagepolicyname": "p" })),
        (
            Plugin::Rbd,
            json!({ "monitors": "m", "adminSecretName": "s", "adminSecretNamespace": "n", "pool": "p", "fstype": "x" }),
        ),
    ] {
        let mut there = of(plugin, parameters);
        if plugin.zone_key().is_some() {
            there.allowed_topologies = serde_json::from_value(allowed(ZONE, &["a", "b"])).unwrap();
        }
        let seen = class_to_csi(&there).unwrap().object;
        assert_eq!(seen.provisioner, plugin.driver());
        let again = class_to_in_tree(&seen).unwrap();
        assert_eq!((again.object, again.lost.len()), (there, 0), "{plugin}");
    }
}

// TR-3, S4-11: a plugin nobody here knows is an error, not a guess.
#[test]
fn classes_of_unknown_plugins_are_refused() {
    let unknown = class(json!({ "metadata": { "name": "x" }, "provisioner": "kubernetes.io/flocker" }));
    assert_eq!(
        sentence(class_to_csi(&unknown)),
        "no CSI driver is known to have taken over plugin \"kubernetes.io/flocker\""
    );
    assert!(sentence(class_to_in_tree(&unknown)).contains("kubernetes.io/flocker"));
}

// However many parameters there are, and in whatever letters: two spellings of one leave it to chance which counts.
#[test]
fn parameters_said_twice_are_refused_among_few_and_many() {
    let with = |first: &str, second: &str, others: usize| {
        let mut parameters: serde_json::Map<_, _> =
            (0..others).map(|at| (alloc::format!("other-{at}"), json!("x"))).collect();
        parameters.extend([(first.into(), json!("1")), (second.into(), json!("2"))]);
        class_to_csi(&of(Plugin::GcePd, Value::Object(parameters)))
    };
    for others in [0, 1, 29, 30, 31, 100] {
        assert!(with("type", "kind", others).is_ok(), "{others}");
        assert!(with("type", "Type", others).is_err(), "{others}");
        assert!(with("größe", "preis", others).is_ok(), "{others}");
        assert!(with("größe", "GRÖßE", others).is_err(), "{others}");
    }
}
