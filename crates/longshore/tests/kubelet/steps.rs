//! What pods can do with volumes of a class, however the driver was installed; nothing is left of any of it.

use crate::install::DRIVER;
use crate::objects::{claim, pod, pod_with};
use crate::scene::Scene;

/// The kubelet gives the files to the pod's group, as the CSIDriver says.
pub fn who_owns_the_files(scene: &mut Scene, class: &str) {
    let volume = "{name: data, persistentVolumeClaim: {claimName: owned}}";
    let user = "securityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 2000},";
    scene.apply(&(claim("owned", class, "64Mi", "ReadWriteOnce", "") + &pod_with("owned", volume, user, "")));
    scene.wait_for("pod/owned", "Ready");
    scene.inside("owned", "echo mine > /data/file").unwrap();
    assert_eq!(scene.inside("owned", "stat -c %u:%g /data/file").unwrap(), "1000:2000\n");
    assert_eq!(scene.inside("owned", "stat -c %g /data").unwrap(), "2000\n");
    scene.delete(&["pod/owned", "pvc/owned"]);
}

/// A raw device reaches the pod, with the data of the pod before it.
pub fn raw_blocks(scene: &mut Scene, class: &str) {
    let volume = "{name: data, persistentVolumeClaim: {claimName: raw}}";
    let device = "volumeDevices: [{name: data, devicePath: /dev/raw}]";
    scene.apply(&claim("raw", class, "64Mi", "ReadWriteOnce", "volumeMode: Block"));
    scene.apply(&pod_with("raw", volume, "", device));
    scene.wait_for("pod/raw", "Ready");
    assert_eq!(scene.inside("raw", "blockdev --getsize64 /dev/raw").unwrap(), "67108864\n");
    scene.inside("raw", "printf abcdefgh | dd of=/dev/raw bs=8 seek=512 conv=fsync status=none").unwrap();
    scene.delete(&["pod/raw"]);
    scene.apply(&pod_with("raw", volume, "", device));
    scene.wait_for("pod/raw", "Ready");
    assert_eq!(scene.inside("raw", "dd if=/dev/raw bs=8 skip=512 count=1 status=none").unwrap(), "abcdefgh");
    scene.delete(&["pod/raw", "pvc/raw"]);
}

/// Volumes without a claim of their own: inline ones, and claims the pod brings with it.
pub fn volumes_of_pods(scene: &mut Scene, class: &str) {
    let inline = format!("{{name: data, csi: {{driver: {DRIVER}, fsType: ext4, volumeAttributes: {{size: 64Mi}}}}}}");
    let generic = format!(
        "{{name: data, ephemeral: {{volumeClaimTemplate: {{spec: {{storageClassName: {class}, \
         accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 64Mi}}}}}}}}}}}}"
    );
    for (name, volume) in [("inline", inline), ("generic", generic)] {
        scene.apply(&pod_with(name, &volume, "", ""));
        scene.wait_for(&format!("pod/{name}"), "Ready");
        scene.inside(name, "echo here > /data/word && sync && cat /data/word").unwrap();
        scene.delete(&[&format!("pod/{name}")]);
    }
    let words = ["get", "pvc", "generic-data", "--ignore-not-found", "--output=name"];
    scene.wait_until("the pod's own claim to go with it", &words, str::is_empty);
}

/// A ReadWriteOncePod volume is one pod's alone: another waits until the first is gone.
pub fn one_pod_alone(scene: &mut Scene, class: &str) {
    scene.apply(&(claim("alone", class, "64Mi", "ReadWriteOncePod", "") + &pod("first", "alone")));
    scene.wait_for("pod/first", "Ready");
    scene.apply(&pod("second", "alone"));
    let words = ["get", "pod/second", "--output=jsonpath={.status.conditions[?(@.type==\"PodScheduled\")].message}"];
    scene.wait_until("the second pod to be told to wait", &words, |said| said.contains("ReadWriteOncePod"));
    scene.delete(&["pod/first"]);
    scene.wait_for("pod/second", "Ready");
    scene.delete(&["pod/second", "pvc/alone"]);
}
