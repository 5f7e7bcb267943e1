//! Who is looked at after a change, and who is not.

use api::{Kind, Object};
use control::{Cache, Rules};
use prove_lab::{check_wakes, object};
use serde_json::{Value, json};

use crate::{Local, Resizer};

fn claim(name: &str, volume: &str, class: Value, target: Value) -> Object {
    let metadata = json!({ "namespace": "n", "name": name, "uid": name });
    let spec = json!({ "volumeName": volume, "volumeAttributesClassName": class });
    let modify = target.as_str().map(|class| json!({ "targetVolumeAttributesClassName": class, "status": "Pending" }));
    let status = json!({ "modifyVolumeStatus": modify });
    object(Kind::PersistentVolumeClaim, json!({ "metadata": metadata, "spec": spec, "status": status }))
}

fn volume(name: &str, source: Value, holder: Option<&str>) -> Object {
    let mut spec = json!({ "claimRef": holder.map(|name| json!({ "namespace": "n", "name": name })) });
    rules_store::merge_patch(&mut spec, &source);
    object(Kind::PersistentVolume, json!({ "metadata": { "name": name }, "spec": spec }))
}

fn csi(driver: &str) -> Value {
    json!({ "csi": { "driver": driver, "volumeHandle": "h" } })
}

const EBS: &str = "ebs.csi.aws.com";

fn disk() -> Value {
    json!({ "awsElasticBlockStore": { "volumeID": "vol-1" } })
}

#[test]
fn every_change_and_whom_it_wakes() {
    let local = Local { driver: EBS.into(), asks_pods: true, ..Local::default() };
    let ours = || claim("ours", "v-ours", json!("gold"), Value::Null);
    let theirs = || claim("theirs", "v-theirs", json!("gold"), Value::Null);
    let unseen = || claim("unseen", "v-unseen", json!("silver"), json!("gold"));
    let unbound = || claim("unbound", "", json!("gold"), Value::Null);
    let in_tree = || volume("v-disk", disk(), Some("disk"));
    let mut cache = Cache::default();
    for one in [
        ours(),
        theirs(),
        unseen(),
        unbound(),
        volume("v-ours", csi(EBS), Some("ours")),
        volume("v-theirs", csi("other"), Some("theirs")),
        in_tree(),
    ] {
        cache.set(one);
    }
    let class = |name: &str| {
        let body = json!({ "metadata": { "name": name }, "driverName": EBS });
        Some(object(Kind::VolumeAttributesClass, body))
    };
    let pod = |claim: &str| {
        let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": claim } }]);
        let metadata = json!({ "namespace": "n", "name": "p" });
        Some(object(Kind::Pod, json!({ "metadata": metadata, "spec": { "volumes": volumes } })))
    };
    let changes = [
        ("claim-of-ours", None, Some(ours())),
        ("claim-of-another-driver", None, Some(theirs())),
        ("claim-whose-volume-is-unseen", None, Some(unseen())),
        ("claim-without-a-volume", None, Some(unbound())),
        ("volume-of-ours", None, Some(volume("v-ours", csi(EBS), Some("ours")))),
        ("volume-of-ours-for-nobody", None, Some(volume("v-ours", csi(EBS), None))),
        ("volume-of-another-driver", None, Some(volume("v-theirs", csi("other"), Some("theirs")))),
        ("volume-taken-over", None, Some(in_tree())),
        ("volume-of-another-plugin", None, Some(volume("c", json!({ "cinder": { "volumeID": "c" } }), Some("c")))),
        ("class-gold", None, class("gold")),
        ("class-silver", None, class("silver")),
        ("class-of-nobody", None, class("bronze")),
        ("pod-of-ours", None, pod("ours")),
        ("pod-of-another-driver", None, pod("theirs")),
        ("pod-of-a-missing-claim", None, pod("later")),
    ];
    check_wakes::<Resizer>(env!("CARGO_MANIFEST_DIR"), &cache, &local, &changes);
    // Pods are not looked at unless asked for.
    let asks_not = Local { asks_pods: false, ..local };
    let change = control::Change { before: None, after: pod("ours") };
    assert!(Resizer::wakes(&change, &cache, &asks_not).is_empty());
}
