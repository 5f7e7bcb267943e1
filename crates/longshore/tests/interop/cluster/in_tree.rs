//! Volumes of an in-tree plugin on the real control plane, which leaves them to CSI drivers for good: objects of the
//! plugin, its driver's calls. The driver is the reference driver in the place of the plugin's own.

use api::names;
use serde_json::{Value, json};

use super::objects;
use super::plane::turn_with;
use super::trial::{Driver, Trial};

const PLUGIN: &str = "kubernetes.io/gce-pd";
/// kube-controller-manager without its controllers of volumes.
const NO_VOLUMES: &str = "serviceaccount-controller,garbage-collector-controller";

/// The node as its kubelet and the driver's registrar would have it (S4-29, S4-30).
fn furnish(trial: &Trial) {
    let driver = trial.driver;
    trial.apply(&format!(
        "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {{name: {driver}}}\nspec: {{attachRequired: true}}\n"
    ));
    let listed = trial.kubectl(&["get", "csinode", "n1", "--output=json"]).unwrap();
    let mut node: Value = serde_json::from_str(&listed).unwrap();
    let drivers = node["spec"]["drivers"].as_array_mut().unwrap();
    drivers.retain(|one| one["name"] != driver);
    drivers.push(json!({ "name": driver, "nodeID": "projects/rehearsal/zones/here-one1-a/instances/n1" }));
    let patch = json!({
        "metadata": { "annotations": { names::MIGRATED_PLUGINS: PLUGIN } },
        "spec": { "drivers": drivers },
    });
    trial.kubectl(&["patch", "csinode", "n1", "--type=merge", &format!("--patch={patch}")]).unwrap();
}

/// Every kind of class that one machine's disks can serve, each with a claim of a filesystem and one of a device.
const CLASSES: [(&str, &str); 3] = [
    ("plain", "parameters: {type: pd-standard}"),
    ("formatted", "parameters: {type: pd-ssd, fstype: xfs, replication-type: none}\nmountOptions: [noatime]"),
    ("kept", "parameters: {csi.storage.k8s.io/fstype: ext4}\nreclaimPolicy: Retain\nallowVolumeExpansion: true"),
];

fn classes() -> String {
    let class = |(name, more): &(&str, &str)| {
        format!(
            "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: pd-{name}}}\n\
             provisioner: {PLUGIN}\n{more}\n"
        )
    };
    CLASSES.iter().map(class).collect()
}

/// Claims of every class under names that begin so, with what is asked for.
fn claims(place: &str, who: &str) -> Vec<(String, String)> {
    let claim = |(class, _): &(&str, &str), mode: &str| {
        let name = format!("{who}-{class}-{}", mode.to_lowercase());
        let body = objects::claim(place, &name, "");
        let body = body.replace(&format!("storageClassName: {place}"), &format!("storageClassName: pd-{class}"));
        (name, body + &format!("  volumeMode: {mode}\n"))
    };
    CLASSES.iter().flat_map(|class| [claim(class, "Filesystem"), claim(class, "Block")]).collect()
}

/// The volume of a claim but for names, uids, versions and times.
fn made_for(trial: &Trial, claim: &str) -> Value {
    let name = trial.kubectl(&["get", "pvc", claim, "--output=jsonpath={.spec.volumeName}"]).unwrap();
    let volume = trial.kubectl(&["get", "pv", &name, "--output=json"]).unwrap();
    let mut volume: Value = serde_json::from_str(&volume.replace(&name, "VOLUME")).unwrap();
    for (field, key) in [
        ("metadata", "uid"),
        ("metadata", "resourceVersion"),
        ("metadata", "creationTimestamp"),
        ("status", "lastPhaseTransitionTime"),
    ] {
        assert!(volume[field].as_object_mut().unwrap().remove(key).is_some(), "{volume}");
    }
    let held = volume["spec"]["claimRef"].as_object_mut().unwrap();
    assert!(held.remove("uid").is_some());
    held.remove("resourceVersion");
    assert_eq!(held["name"], claim);
    held.insert("name".into(), "CLAIM".into());
    volume
}

/// The volumes of the claims, once they are bound and all that is written to them is.
fn all_made(trial: &Trial, who: &str) -> Vec<Value> {
    let claims = claims(trial.place, who);
    trial.apply(&claims.iter().map(|(_, body)| body.clone()).collect::<String>());
    let names: Vec<&str> = claims.iter().map(|(name, _)| &**name).collect();
    trial.wait_bound(&names);
    let bound = ["get", "pv", "--output=jsonpath={.items[*].status.phase}"];
    trial.wait_until("the volumes to be bound", &bound, |said| said.split(' ').all(|phase| phase == "Bound"));
    names.iter().map(|claim| made_for(trial, claim)).collect()
}

/// How many disks the driver has a record of; it tells no list of them, as the plugin's driver never did.
fn disks(trial: &Trial) -> usize {
    std::fs::read_dir(trial.stand.path("state/volumes")).unwrap().count()
}

/// Deletes the claims, and waits until nothing of them is left. Volumes to be kept are let go before.
fn delete_all(trial: &Trial) {
    for (class, _) in CLASSES.map(|(name, more)| (format!("pd-{name}"), more)) {
        for volume in trial.listed("pv", "{.spec.storageClassName}", &class) {
            let patch = "--patch={\"spec\":{\"persistentVolumeReclaimPolicy\":\"Delete\"}}";
            trial.kubectl(&["patch", "pv", &volume, patch]).unwrap();
        }
    }
    trial.kubectl(&["delete", "pvc", "--all", "--wait=false"]).unwrap();
    trial.wait_until("the volumes to go", &["get", "pv", "--output=name"], str::is_empty);
    assert_eq!(disks(trial), 0);
    assert_eq!(trial.stand.leftovers(), Vec::<String>::new());
}

// S4-8, S4-9, S4-45: a class of the plugin gets from our provisioner what it gets from the Go one, field by field, and
// either deletes what the other made.
#[test]
fn an_in_tree_class_gets_the_volumes_that_the_go_provisioner_makes() {
    let mut trial = Trial::new("in-tree-class", Driver::InPlace, &[]);
    furnish(&trial);
    trial.apply(&classes());
    let go = trial.go("csi-provisioner", &[]);
    let theirs = all_made(&trial, "theirs");
    trial.kill(go);
    let own = trial.ours("provisioner", None, &[]);
    let made = all_made(&trial, "ours");
    for (own, theirs) in made.iter().zip(&theirs) {
        assert_eq!(own, theirs);
        assert!(own["spec"]["csi"].is_null() && own["spec"]["gcePersistentDisk"]["pdName"].is_string(), "{own}");
        assert_eq!(own["metadata"]["annotations"][names::MIGRATED_TO], trial.driver);
    }
    assert_eq!((made.len(), disks(&trial)), (2 * CLASSES.len(), 4 * CLASSES.len()));
    trial.kubectl(&["delete", "pvc", "theirs-plain-filesystem", "--wait=false"]).unwrap();
    let fewer = |said: &str| said.lines().count() == 4 * CLASSES.len() - 1;
    trial.wait_until("ours to delete theirs", &["get", "pv", "--output=name"], fewer);
    assert_eq!(disks(&trial), 4 * CLASSES.len() - 1);
    trial.kill(own);
    trial.go("csi-provisioner", &[]);
    delete_all(&trial);
}

/// A pod's volume of the plugin is attached by the driver, under the name that its translation gives, and detached when
/// the pod is gone.
fn attaches_and_detaches(trial: &Trial) {
    furnish(trial);
    trial.apply(&(objects::claim(trial.place, "data", "") + &objects::pod(trial.place, "user", "data")));
    trial.wait_bound(&["data"]);
    let volume = trial.kubectl(&["get", "pvc", "data", "--output=jsonpath={.spec.volumeName}"]).unwrap();
    let disk = trial.kubectl(&["get", "pv", &volume, "--output=jsonpath={.spec.gcePersistentDisk.pdName}"]).unwrap();
    assert!(!disk.is_empty());
    let handle = format!("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{disk}");
    let name = names::attachment_name(&handle, trial.driver, "n1");
    let says = "--output=jsonpath={.spec.attacher} {.spec.source.persistentVolumeName} {.spec.source.inlineVolumeSpec} \
                {.status.attached}";
    let wanted = format!("{} {volume}  true", trial.driver);
    trial.wait_until("the volume to be attached", &["get", "volumeattachment", &name, says], |said| said == wanted);
    let reported = ["get", "node", "n1", "--output=jsonpath={.status.volumesAttached[*].name}"];
    let unique = names::unique_volume_name(trial.driver, &handle);
    trial.wait_until("the node to be told", &reported, |said| said.contains(&unique));

    trial.kubectl(&["delete", "pod", "user", "--grace-period=0", "--force"]).unwrap();
    let none = |said: &str| !said.contains(&name);
    trial.wait_until("the volume to be detached", &["get", "volumeattachment", "--output=name"], none);
    trial.wait_until("the node to be told", &reported, |said| !said.contains(&unique));
    delete_all(trial);
}

// S4-14, S4-17: the attachment that kube-controller-manager makes for a volume of the plugin names the volume as it is;
// our attacher translates it for the driver.
#[test]
fn our_attacher_attaches_in_tree_volumes_for_the_go_controllers() {
    let mut trial = Trial::new("in-tree-theirs", Driver::InPlace, &[]);
    trial.ours("provisioner,attacher", None, &[]);
    attaches_and_detaches(&trial);
}

// S4-12, S4-17, S4-39, S4-42: ours make the same attachment under the same name, and mark the claim.
#[test]
fn our_controllers_attach_in_tree_volumes_as_the_go_controllers_do() {
    let mut trial = Trial::on(turn_with(NO_VOLUMES), "in-tree-ours", Driver::InPlace, &[]);
    trial.our_controllers();
    trial.ours("provisioner,attacher", None, &[]);
    attaches_and_detaches(&trial);
}
