//! `longshore controllers` in the place of kube-controller-manager's volume controllers and of its controller of nodes,
//! with the rights that `longshore deploy rbac` prints for it and no others. Scheduler, driver, provisioner and resizer
//! are not ours.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use prove_cluster::PeerProcess;

use super::objects;
use super::plane::audit;
use super::rights::{Deed, allowed_by, asked_of, write_kubeconfig};
use super::scene::{PATIENCE, PLACE, Scene, of_claim, pod};

pub use prove_cluster::WITHOUT_VOLUMES;

/// And what is taken with `nodelifecycle`.
const NOR_NODES: &str = ",-node-lifecycle-controller,-taint-eviction-controller,-pod-garbage-collector-controller";

const CHOSEN: &str = "*,-scheduler,nodelifecycle";

const ACCOUNT: &str = "controllers";

/// A driver that nobody runs.
const ELSEWHERE: &str = "elsewhere.example.com";

/// Grants an account what is printed for these controllers, and writes its kubeconfig.
pub fn grant(scene: &Scene, controllers: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_longshore"))
        .args(["deploy", "rbac", "--controllers", controllers, "--namespace", PLACE, "--service-account", ACCOUNT])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    scene.apply(&String::from_utf8(output.stdout).unwrap());
    write_kubeconfig(&scene.control, PLACE, ACCOUNT, &scene.stand.path("controllers.kubeconfig"));
}

/// Runs them under this name, as that account.
pub fn ours(scene: &Scene, name: &str, controllers: &str) -> PeerProcess {
    let words = [
        "controllers".to_string(),
        format!("--controllers={controllers}"),
        format!("--kubeconfig={}", scene.stand.path("controllers.kubeconfig").display()),
        "--leader-elect".into(),
        format!("--leader-elect-resource-namespace={PLACE}"),
        "-vv".into(),
    ];
    let program = Path::new(env!("CARGO_BIN_EXE_longshore"));
    PeerProcess::start(name, program, &words, scene.stand.scratch.path()).unwrap()
}

/// What the account asked for, after making sure that nothing was refused, in whatever words.
pub fn granted(scene: &Scene, logs: &[&PeerProcess]) -> BTreeSet<Deed> {
    let (granted, refused) = asked_of(&audit(&scene.control), PLACE, ACCOUNT);
    assert_eq!(refused, BTreeSet::new(), "controllers were refused");
    for process in logs {
        let log = std::fs::read_to_string(process.log()).unwrap();
        assert!(log.contains("leading under the lease"), "{log}");
        for word in ["forbidden", "Forbidden", "403"] {
            let said: Vec<&str> = log.lines().filter(|line| line.contains(word) && line.contains("WARN")).collect();
            assert!(said.is_empty(), "{said:?}");
        }
    }
    granted
}

/// A node that has shown a sign of life once and never again, and its pod, whose volume nobody attaches but this test.
const DEAD: &str = "
---
apiVersion: v1
kind: Node
metadata:
  name: n2
  labels: {kubernetes.io/os: linux, kubernetes.io/hostname: n2}
  annotations: {volumes.kubernetes.io/controller-managed-attach-detach: 'true'}
status:
  allocatable: {cpu: '4', memory: 4Gi, pods: '100'}
  capacity: {cpu: '4', memory: 4Gi, pods: '100'}
  conditions:
  - type: Ready
    status: 'True'
    reason: KubeletReady
    message: ''
    lastHeartbeatTime: '2026-01-01T00:00:00Z'
    lastTransitionTime: '2026-01-01T00:00:00Z'
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: n2, namespace: kube-node-lease}
spec: {holderIdentity: n2, leaseDurationSeconds: 5, renewTime: '2026-01-01T00:00:00.000000Z'}
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: elsewhere.example.com}
spec: {attachRequired: true}
";

/// A pod that is on a node already, and puts up with a silent one for a second.
fn placed(name: &str, claim: &str, node: &str) -> String {
    let tolerates = "{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}";
    let place = format!("spec:\n  nodeName: {node}\n  tolerations: [{tolerates}]\n");
    pod(name, &of_claim(claim), "sleep 100000").replace("spec:\n", &place)
}

/// A claim of a volume that was made by hand.
fn by_hand(name: &str) -> String {
    let claim = objects::claim(PLACE, name, "").replace("16Mi", "1Gi");
    let bound = format!("storageClassName: elsewhere\n  volumeName: {name}");
    objects::volume(name, ELSEWHERE, name, "") + &claim.replace(&format!("storageClassName: {PLACE}"), &bound)
}

/// Attached by hand, as its attacher and its kubelet would tell it; silent, it is said to be off.
fn a_node_dies(scene: &Scene, process: &mut PeerProcess) {
    scene.apply(&(DEAD.to_string() + &by_hand("there") + &placed("there", "there", "n2")));
    let attachment = ["get", "volumeattachment", "--output=jsonpath={.items[?(@.spec.nodeName=='n2')].metadata.name}"];
    let attachment = scene.wait_until("the attachment to be asked for", &attachment, |said| !said.is_empty());
    // Whoever finds it attached after a restart has not made it.
    assert!(process.terminate(PATIENCE).unwrap().success());
    let attached = ["patch", "volumeattachment", &attachment, "--subresource=status", "--type=merge"];
    scene.kubectl(&[&attached[..], &["--patch={\"status\":{\"attached\":true}}"]].concat()).unwrap();
    *process = ours(scene, "controllers", CHOSEN);
    let reported = ["get", "node", "n2", "--output=jsonpath={.status.volumesAttached[*].name}"];
    let volume = scene.wait_until("the node to be told", &reported, |said| said.contains(ELSEWHERE));
    let used = format!("--patch={{\"status\":{{\"volumesInUse\":[\"{volume}\"]}}}}");
    scene.kubectl(&["patch", "node", "n2", "--subresource=status", "--type=merge", &used]).unwrap();

    let taints = ["get", "node", "n2", "--output=jsonpath={.spec.taints[*].key} {.status.conditions[*].status}"];
    scene
        .wait_until("the node to be unreachable", &taints, |said| said.contains("unreachable") && said.contains("Unk"));
    let deleted = ["get", "pod", "there", "--output=jsonpath={.metadata.deletionTimestamp}"];
    scene.wait_until("the pod to be evicted", &deleted, |said| !said.is_empty());
    // Nobody has said that the node is off: it may be writing still.
    let kept = scene.kubectl(&["get", "volumeattachment", &attachment, "--output=name"]).unwrap();
    assert!(kept.contains(&attachment), "{kept}");
    let off = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
    scene.kubectl(&["taint", "node", "n2", off]).unwrap();
    scene.wait_until("the pod to go", &["get", "pod", "--output=name"], |said| !said.contains("there"));
    let gone = |said: &str| !said.contains(&attachment);
    scene.wait_until("the volume to leave", &["get", "volumeattachment", "--output=name"], gone);
    let told = ["get", "events", "--all-namespaces", "--output=jsonpath={.items[*].reason}"];
    scene.wait_until("it to be told", &told, |said| {
        ["NodeNotReady", "TaintManagerEviction", "DeletionByPodGC", "ForceDetachVolume"]
            .iter()
            .all(|one| said.contains(one))
    });
    scene.kubectl(&["delete", "pvc/there", "pv/there", "node/n2", "--wait=false"]).unwrap();
}

/// A claim that comes and goes with its pod, and one that cannot go before its pod.
fn claims_are_kept_for_their_pods(scene: &Scene) {
    let template = format!(
        "ephemeral: {{volumeClaimTemplate: {{spec: {{storageClassName: {PLACE}, accessModes: [ReadWriteOnce], \
         resources: {{requests: {{storage: 16Mi}}}}}}}}}}"
    );
    scene.apply(&(objects::claim(PLACE, "data", "") + &pod("user", &of_claim("data"), "exec sleep 100000")));
    scene.apply(&pod("guest", &template, "exec sleep 100000"));
    scene.wait_phase("user", "Running");
    scene.wait_phase("guest", "Running");
    assert_eq!(scene.get("pvc/guest-data", "{.metadata.ownerReferences[0].name}"), "guest");

    let more = "--patch={\"spec\":{\"resources\":{\"requests\":{\"storage\":\"32Mi\"}}}}";
    scene.kubectl(&["patch", "pvc", "data", more]).unwrap();
    let capacity = ["get", "pvc", "data", "--output=jsonpath={.status.capacity.storage}"];
    scene.wait_until("the claim to have grown", &capacity, |said| said == "32Mi");

    scene.kubectl(&["delete", "pvc", "data", "--wait=false"]).unwrap();
    let volume = scene.get("pvc/data", "{.spec.volumeName}");
    scene.kubectl(&["delete", "pv", &volume, "--wait=false"]).unwrap();
    scene.kubectl(&["delete", "pod", "guest", "--wait=false"]).unwrap();
    scene.wait_until("the guest's claim to go", &["get", "pvc", "--output=name"], |said| !said.contains("guest-data"));
    assert_eq!(scene.get("pvc/data", "{.status.phase}"), "Bound", "a pod uses it");
    assert_eq!(scene.get(&format!("pv/{volume}"), "{.status.phase}"), "Bound", "a claim uses it");
    scene.kubectl(&["delete", "pod", "user", "--wait=false"]).unwrap();
}

/// A volume that is torn from its claim, and an attachment to a node that does not exist.
fn what_is_gone_is_looked_for(scene: &Scene) {
    scene.apply(&(by_hand("torn") + &objects::attachment("nowhere", ELSEWHERE, "torn", "n3")));
    let phase = ["get", "pvc", "torn", "--output=jsonpath={.status.phase}"];
    scene.wait_until("the claim to be bound", &phase, |said| said == "Bound");
    let gone = |said: &str| !said.contains("nowhere");
    scene.wait_until("the attachment to go", &["get", "volumeattachment", "--output=name"], gone);
    scene.kubectl(&["delete", "pv", "torn", "--wait=false"]).unwrap();
    let unprotect = "--patch={\"metadata\":{\"finalizers\":null}}";
    scene.kubectl(&["patch", "pv", "torn", "--type=merge", unprotect]).unwrap();
    scene.wait_until("the claim to be lost", &phase, |said| said == "Lost");
    scene.kubectl(&["delete", "pvc", "torn", "--wait=false"]).unwrap();
}

/// A class of attributes is there as long as a claim names it, and goes when nobody does.
fn a_class_of_attributes_goes(scene: &Scene) {
    scene.apply(
        "apiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata: {name: fast}\n\
         driverName: elsewhere.example.com\nparameters: {iops: '7'}\n",
    );
    let kept = ["get", "volumeattributesclass", "fast", "--output=jsonpath={.metadata.finalizers}"];
    scene.wait_until("the class to be kept", &kept, |said| said.contains("vac-protection"));
    scene.kubectl(&["delete", "volumeattributesclass", "fast", &format!("--timeout={}s", PATIENCE.as_secs())]).unwrap();
}

// The rights are the printed ones: nothing is missing, and what is to spare is named.
#[test]
fn the_controllers_need_what_is_printed_for_them_on_a_real_cluster() {
    let mut scene = Scene::begin(&format!("{WITHOUT_VOLUMES}{NOR_NODES}"));
    grant(&scene, CHOSEN);
    let mut process = ours(&scene, "controllers", CHOSEN);
    scene.join();
    let taints = ["get", "node", "n1", "--output=jsonpath={.spec.taints}"];
    scene.wait_until("the node to be usable", &taints, str::is_empty);
    a_node_dies(&scene, &mut process);
    claims_are_kept_for_their_pods(&scene);
    what_is_gone_is_looked_for(&scene);
    a_class_of_attributes_goes(&scene);
    scene.wait_nothing_left();

    process.check().unwrap();
    let granted = granted(&scene, &[&process]);
    let roles = [["clusterrole", ACCOUNT], ["role", ACCOUNT]];
    let mut spare: BTreeSet<Deed> = allowed_by(&scene.control, PLACE, &roles).difference(&granted).cloned().collect();
    // Words are counted on the event that says them already, when they are said again half a minute later.
    spare.remove(&("patch".into(), String::new(), "events".into()));
    // A node's word is asked for where plugin and driver serve side by side, which here they never do.
    spare.remove(&("get".into(), "storage.k8s.io".into(), "csinodes".into()));
    assert_eq!(spare, BTreeSet::new(), "rights that nobody used");
}
