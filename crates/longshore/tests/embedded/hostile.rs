//! Objects nobody should have written: they change nothing, and nobody else waits for them.

use serde_json::{Value, json};

use crate::objects::{self, claim};
use crate::world::{ATTACHMENTS, CONTENTS, DRIVER, NODE, VOLUMES, World, pod};
use crate::{backend, life};

const STRANGER: &str = "stranger.example.com";

fn version(world: &World, path: &str) -> Value {
    world.api.get(path).unwrap_or_else(|| panic!("{path} is gone"))["metadata"]["resourceVersion"].clone()
}

/// A volume by hand, and a claim and a pod that want it: so somebody wants it attached.
fn wanted(world: &World, name: &str, handle: &str, node: &str, more: &str) {
    let (place, class) = (world.place, "storageClassName: elsewhere");
    let bound = format!("  volumeName: {name}\n  {class}");
    world.api.apply(&objects::volume(name, DRIVER, handle, more));
    world
        .api
        .apply(&claim(place, name, "").replace(&format!("  storageClassName: {place}"), &bound).replace("16Mi", "1Gi"));
    world.api.apply(&pod(place, name, node, &[name], "sleep 1000"));
}

/// Waits until an attachment of the volume says what is wrong.
fn wait_error(world: &World, volume: &str, words: &str) {
    world.wait(&format!("the attachment of {volume} to say {words:?}"), ATTACHMENTS, |all| {
        let of = |one: &&&Value| one["spec"]["source"]["persistentVolumeName"] == volume;
        let said = |one: &Value| one["status"]["attachError"]["message"].as_str().unwrap_or_default().to_string();
        all.iter().filter(of).any(|one| said(one).contains(words))
    });
}

// sidecars C1; reliability 5.1: what is another driver's is left alone, whatever it looks like.
#[test]
fn objects_of_others_and_objects_out_of_bounds_change_nothing() {
    let mut world = World::new("hostile", &[]);
    let place = world.place;
    world.api.apply(&objects::place("stranger", STRANGER, &[]));
    world.api.apply(&objects::volume("foreign", STRANGER, "../../etc", ""));
    world.api.apply(&claim(place, "foreign", "").replace("storageClassName: hostile", "storageClassName: stranger"));
    let claims = world.path("persistentvolumeclaims");
    // The binder says whose the claim is; from then on nobody has a reason to write to it.
    world.wait("the binder", &claims, |all| all.iter().any(|one| one.to_string().contains(STRANGER)));
    let foreign = [format!("{VOLUMES}/foreign"), format!("{claims}/foreign")];
    world.wait("the binder", VOLUMES, |all| all.iter().any(|one| one["status"]["phase"] == "Available"));
    let before = foreign.each_ref().map(|path| version(&world, path));

    world.sidecar("provisioner,attacher,resizer", &world.kubeconfig(), &[]);
    let long = "x".repeat(200 << 10);
    let huge = claim(place, "huge", "");
    world.api.apply(&huge.replace("{name: huge,", &format!("{{annotations: {{note: {long}}}, name: huge,")));
    // Ours by name, and wrong in every other way: a handle that climbs, a node without a driver, a secret that is not there,
    // a volume that is not there.
    let managed = "volumes.kubernetes.io/controller-managed-attach-detach: 'true'";
    world.api.apply(&format!("apiVersion: v1\nkind: Node\nmetadata: {{name: n9, annotations: {{{managed}}}}}\n"));
    wanted(&world, "climbing", "../../../etc/passwd", NODE, "");
    wanted(&world, "nowhere", "handle", "n9", "");
    let secret = ", controllerPublishSecretRef: {name: late, namespace: hostile}";
    wanted(&world, "secretive", "handle", NODE, secret);
    world.api.apply(&objects::attachment("no-volume", DRIVER, "no-such-volume", NODE));
    wait_error(&world, "climbing", "refused");
    wait_error(&world, "nowhere", "n9");
    wait_error(&world, "secretive", "secret");
    wait_error(&world, "no-such-volume", "does not exist");

    // Others live on among them, and what was left alone still is.
    world.api.apply(&claim(place, "good", ""));
    world.wait_bound(&["good", "huge"]);
    assert_eq!(backend::contents(&world.socket()).0.len(), 2);
    assert_eq!(foreign.each_ref().map(|path| version(&world, path)), before);

    // A secret that detaching needs, too, may come late.
    world.api.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: late, namespace: hostile}\nstringData: {a: b}\n");
    // There is no agent on the node that is none, to say that its pod has ended.
    for name in ["pods/climbing", "pods/nowhere?gracePeriodSeconds=0", "pods/secretive"] {
        world.api.delete(&world.path(name));
    }
    world.api.delete(&format!("{ATTACHMENTS}/no-volume"));
    for name in ["foreign", "climbing", "nowhere", "secretive"] {
        world.api.delete(&format!("{claims}/{name}"));
        world.api.delete(&format!("{VOLUMES}/{name}"));
    }
    world.end();
}

/// CVE-2019-11255: a snapshot says that it is bound to a content that belongs to somebody else's snapshot.
#[test]
fn a_snapshot_content_that_does_not_point_back_is_no_source() {
    let mut world = World::new("stolen", &[]);
    let place = world.place;
    world.sidecar("provisioner", &world.kubeconfig(), &[]);
    world.api.apply(&claim(place, "data", ""));
    world.wait_bound(&["data"]);
    let taken = life::snapshot(&world, "moment", "data");

    // The thief's: it was never made from anything, and says it is ready.
    world.api.apply(&objects::place("thief", DRIVER, &[]));
    let content = format!("{place}-moment");
    world.api.apply(&format!(
        "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {{name: stolen, namespace: thief}}\n\
         spec: {{source: {{volumeSnapshotContentName: {content}}}}}\n"
    ));
    let status = json!({"boundVolumeSnapshotContentName": content, "readyToUse": true, "restoreSize": "16Mi"});
    let stolen = "/apis/snapshot.storage.k8s.io/v1/namespaces/thief/volumesnapshots/stolen";
    world.api.patch(&format!("{stolen}/status"), json!({ "status": status }));
    world.api.apply(&claim("thief", "loot", "VolumeSnapshot/stolen"));
    world.wait("the thief to be told", "/api/v1/namespaces/thief/events", |events| {
        events.iter().any(|event| event["involvedObject"]["name"] == "loot" && event["reason"] == "ProvisioningFailed")
    });

    // An honest claim of the thief, made later, is served, and so is the owner's own.
    world.api.apply(&(claim("thief", "honest", "") + &claim(place, "restored", "VolumeSnapshot/moment")));
    let theirs = "/api/v1/namespaces/thief/persistentvolumeclaims";
    let phase = |all: &[&Value], name: &str| {
        all.iter().find(|one| one["metadata"]["name"] == name).map(|one| one["status"]["phase"].clone())
    };
    let both = world.wait("the honest claim", theirs, |all| phase(all, "honest") == Some("Bound".into()));
    assert_eq!(phase(&both.iter().collect::<Vec<_>>(), "loot"), Some("Pending".into()));
    world.wait_bound(&["restored"]);
    assert_eq!(backend::contents(&world.socket()).0.len(), 3, "the thief has a volume");

    life::drop_snapshot(&world, "moment", &taken);
    for path in [theirs, stolen] {
        world.api.delete(path);
    }
    assert!(world.api.get(&format!("{CONTENTS}/{content}")).is_none());
    world.end();
}
