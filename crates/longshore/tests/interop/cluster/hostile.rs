//! Objects nobody should have written: they change nothing, and nobody else waits for them.

use super::objects::{attachment, volume};
use super::trial::{Driver, Trial};
use super::{backend, life, objects};

/// Everything about an object that somebody could have changed.
fn state(trial: &Trial, kind: &str, name: &str) -> String {
    trial.kubectl(&["get", kind, name, "--output=jsonpath={.metadata.resourceVersion}"]).unwrap()
}

// sidecars C1; reliability 5.1: what is another driver's is left alone, whatever it looks like.
#[test]
fn objects_of_others_and_objects_out_of_bounds_change_nothing() {
    let mut trial = Trial::new("hostile", Driver::Ours, &[]);
    let driver = trial.driver;
    trial.apply(&objects::place("stranger", "stranger.example.com", &[]));
    let foreign = [("pv", "foreign"), ("volumeattachment", "foreign"), ("pvc", "foreign")];
    trial.apply(
        &(volume("foreign", "stranger.example.com", "../../etc", "")
            + &attachment("foreign", "stranger.example.com", "foreign", "n1")
            + &objects::claim(trial.place, "foreign", "")
                .replace("storageClassName: hostile", "storageClassName: stranger")),
    );
    // The binder says whose the claim is; from then on nobody has a reason to write to it.
    let named = ["get", "pvc", "foreign", "--output=jsonpath={.metadata.annotations}"];
    trial.wait_until("the binder", &named, |said| said.contains("stranger.example.com"));
    let before = foreign.map(|(kind, name)| state(&trial, kind, name));

    trial.ours("provisioner,attacher,resizer", None, &[]);
    let long = "x".repeat(200 << 10);
    let huge = objects::claim(trial.place, "huge", "")
        .replace("metadata: {name: huge,", &format!("metadata: {{annotations: {{note: {long}}}, name: huge,"));
    // Applying it would say it twice.
    let file = trial.stand.path("huge.yaml");
    std::fs::write(&file, huge).unwrap();
    trial.kubectl(&["create", &format!("--filename={}", file.display())]).unwrap();
    // Ours by name, and wrong in every other way: no such volume, no such node, no such secret, a handle that climbs.
    let secret = ", controllerPublishSecretRef: {name: late, namespace: hostile}";
    trial.apply(
        &(volume("climbing", driver, "../../../etc/passwd", "")
            + &volume("secretive", driver, "handle", secret)
            + &attachment("no-volume", driver, "nowhere", "n1")
            + &attachment("no-node", driver, "climbing", "n9")
            + &attachment("no-handle", driver, "climbing", "n1")
            + &attachment("no-secret", driver, "secretive", "n1")),
    );
    for (name, words) in
        [("no-volume", "nowhere"), ("no-node", "n9"), ("no-handle", "refused"), ("no-secret", "secret")]
    {
        let error = ["get", "volumeattachment", name, "--output=jsonpath={.status.attachError.message}"];
        trial.wait_until(&format!("{name} to say what is wrong"), &error, |said| said.contains(words));
    }

    // Others live on among them, and what was left alone still is.
    trial.apply(&(objects::claim(trial.place, "good", "")));
    trial.wait_bound(&["good", "huge"]);
    assert_eq!(backend::contents(&trial.stand.socket).0.len(), 2);
    assert_eq!(foreign.map(|(kind, name)| state(&trial, kind, name)), before);

    // A secret that detaching needs, too, may come late.
    trial.kubectl(&["delete", "volumeattachment", "--all", "--wait=false"]).unwrap();
    trial.kubectl(&["create", "secret", "generic", "late", "--from-literal=a=b"]).unwrap();
    trial.kubectl(&["delete", "pv", "foreign", "climbing", "secretive", "--wait=false"]).unwrap();
    life::end(&trial);
}

/// CVE-2019-11255: a snapshot says that it is bound to a content that belongs to somebody else's snapshot.
#[test]
fn a_snapshot_content_that_does_not_point_back_is_no_source() {
    let mut trial = Trial::new("stolen", Driver::Ours, &[]);
    let place = trial.place;
    trial.ours("provisioner", None, &[]);
    trial.go("csi-snapshotter", &[]);
    // The owner's snapshot.
    trial.apply(&(objects::claim(place, "data", "") + &objects::snapshot(place, "moment", "data")));
    let ready = ["get", "volumesnapshot", "moment", "--output=jsonpath={.status.readyToUse}"];
    trial.wait_until("the snapshot to be ready", &ready, |said| said == "true");
    let content = ["get", "volumesnapshot", "moment", "--output=jsonpath={.status.boundVolumeSnapshotContentName}"];
    let content = trial.kubectl(&content).unwrap();

    // The thief's: it was never made from anything, and says it is ready.
    trial.apply(&objects::place("thief", trial.driver, &[]));
    trial.apply(&format!(
        "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {{name: stolen, namespace: thief}}\n\
         spec: {{source: {{volumeSnapshotContentName: {content}}}}}\n"
    ));
    let status = format!(
        "--patch={{\"status\":{{\"boundVolumeSnapshotContentName\":\"{content}\",\"readyToUse\":true,\"restoreSize\":\"16Mi\"}}}}"
    );
    let control = &trial.plane().control;
    let patch =
        ["patch", "volumesnapshot", "stolen", "--namespace=thief", "--subresource=status", "--type=merge", &status];
    control.kubectl(&patch).unwrap();
    trial.apply(&objects::claim("thief", "loot", "VolumeSnapshot/stolen"));
    let told = [
        "get",
        "events",
        "--all-namespaces",
        "--output=jsonpath={range .items[*]}{.involvedObject.name} {.reason}: {.message}{\"\\n\"}{end}",
    ];
    trial.wait_until("the thief to be told", &told, |said| said.contains("loot ProvisioningFailed:"));
    // An honest claim of the thief, made later, is served.
    trial.apply(&objects::claim("thief", "honest", ""));
    let honest =
        ["get", "pvc", "--all-namespaces", "--output=jsonpath={range .items[*]}{.metadata.name}={.status.phase} {end}"];
    let phases = trial.wait_until("the honest claim", &honest, |said| said.contains("honest=Bound"));
    assert!(phases.contains("loot=Pending"), "{phases}");
    let (volumes, _) = backend::contents(&trial.stand.socket);
    assert_eq!(volumes.len(), 2, "the thief has a volume");

    control.kubectl(&["delete", "pvc,volumesnapshot", "--all", "--namespace=thief", "--wait=false"]).unwrap();
    life::end(&trial);
}
