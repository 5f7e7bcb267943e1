//! A volume's whole life under the real control plane, in every mix of drivers and sidecars that can be had.

use super::trial::{Driver, Trial};
use super::{backend, objects};

/// Made, attached by the real attach/detach controller, snapshotted by the Go snapshot controllers, restored, cloned,
/// grown, detached and deleted. Nothing is left in the API or the driver.
pub fn live(trial: &mut Trial) {
    let place = trial.place;
    trial.go("csi-snapshotter", &[]);
    trial.apply(&(objects::claim(place, "data", "") + &objects::pod(place, "user", "data")));
    trial.wait_bound(&["data"]);

    let attached =
        ["get", "volumeattachment", "--output=jsonpath={range .items[*]}{.spec.attacher}={.status.attached} {end}"];
    let wanted = format!("{}=true", trial.driver);
    trial.wait_until("the volume to be attached", &attached, |said| said.contains(&wanted));

    trial.apply(&objects::snapshot(place, "moment", "data"));
    let ready = ["get", "volumesnapshot", "moment", "--output=jsonpath={.status.readyToUse}"];
    trial.wait_until("the snapshot to be ready", &ready, |said| said == "true");
    let restored = objects::claim(place, "restored", "VolumeSnapshot/moment");
    trial.apply(&(restored + &objects::claim(place, "clone", "PersistentVolumeClaim/data")));
    trial.wait_bound(&["restored", "clone"]);
    let (volumes, snapshots) = backend::contents(&trial.stand.socket);
    assert_eq!((volumes.len(), snapshots.len()), (3, 1));

    // One that nobody uses and one that a pod uses.
    for claim in ["data", "clone"] {
        let more = "--patch={\"spec\":{\"resources\":{\"requests\":{\"storage\":\"32Mi\"}}}}";
        trial.kubectl(&["patch", "pvc", claim, more]).unwrap();
        let name = trial.kubectl(&["get", "pvc", claim, "--output=jsonpath={.spec.volumeName}"]).unwrap();
        let capacity = ["get", "pv", &name, "--output=jsonpath={.spec.capacity.storage}"];
        trial.wait_until("the volume to grow", &capacity, |said| said == "32Mi");
    }
    end(trial);
}

/// Deletes everything, and waits until nothing is left.
pub fn end(trial: &Trial) {
    trial.kubectl(&["delete", "pod", "--all", "--grace-period=0", "--force"]).unwrap();
    trial.kubectl(&["delete", "volumesnapshot,pvc", "--all", "--wait=false"]).unwrap();
    trial.wait_nothing_left();
}

#[test]
fn our_sidecars_beside_our_driver() {
    let mut trial = Trial::new("ours-ours", Driver::Ours, &[]);
    trial.ours("provisioner,attacher,resizer", None, &[]);
    live(&mut trial);
}

#[test]
fn our_sidecars_beside_the_go_driver() {
    let mut trial = Trial::new("ours-go", Driver::Go, &[]);
    trial.ours("provisioner,attacher,resizer", None, &[]);
    live(&mut trial);
}

/// A mixed fleet; with the Go attacher as well it is tried beneath a real kubelet.
#[test]
fn the_go_provisioner_and_resizer_with_our_attacher_beside_our_driver() {
    let mut trial = Trial::new("go-ours", Driver::Ours, &[]);
    trial.go("csi-provisioner", &[]);
    trial.go("csi-resizer", &[]);
    trial.ours("attacher", None, &[]);
    live(&mut trial);
}

/// The other mix: their provisioner for our resizer and attacher, beside their driver.
#[test]
fn the_go_provisioner_with_our_attacher_and_resizer_beside_the_go_driver() {
    let mut trial = Trial::new("mixed-go", Driver::Go, &[]);
    trial.go("csi-provisioner", &[]);
    trial.ours("attacher,resizer", None, &[]);
    live(&mut trial);
}
