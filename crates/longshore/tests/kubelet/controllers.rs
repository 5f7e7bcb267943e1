//! `longshore controllers` as pods in the place of kube-controller-manager's volume controllers, beside our driver and
//! sidecars, the real kube-scheduler and a real kubelet: nobody else binds, attaches, detaches or lets a claim go.

use std::process::Command;
use std::time::Instant;

use prove_cluster::{Options, WITHOUT_VOLUMES};

use crate::install::{self, DRIVER};
use crate::objects::{claim, pod};
use crate::scene::{IMAGE, Scene};
use crate::{ours, steps};

const DEPLOYMENT: &str = "deployment/longshore-controllers";
const IN: &str = "--namespace=kube-system";
const LEADER: [&str; 4] = ["get", "lease/longshore-controllers", IN, "--output=jsonpath={.spec.holderIdentity}"];

#[test]
fn our_controllers_bind_and_attach_beneath_a_real_kubelet() {
    let mut scene = Scene::start_with(Options { controllers: WITHOUT_VOLUMES.into(), ..Options::default() });
    install::install(&mut scene);
    nobody_binds(&mut scene);
    let begun = Instant::now();
    deploy(&mut scene);
    scene.wait_for("pod/early", "Ready");
    println!("controllers applied to the waiting claim's pod ready: {:.1} s", begun.elapsed().as_secs_f64());
    scene.delete(&["pod/early", "pvc/early"]);

    ours::a_claim_and_a_pod(&mut scene);
    the_leader_goes_while_a_pod_writes(&mut scene);
    scene.delete(&["pod/app", "pvc/app"]);
    steps::who_owns_the_files(&mut scene, "ext4");
    steps::raw_blocks(&mut scene, "ext4");
    ours::growth(&mut scene, "xfs");
    steps::volumes_of_pods(&mut scene, "ext4");
    steps::one_pod_alone(&mut scene, "ext4");
    a_pod_is_placed_before_its_volume_is_made(&mut scene);

    scene.wait_none("pvc,pv,volumeattachments");
    scene.wait_nothing_mounted();
    assert_eq!(install::files(&scene).len(), 0, "the volumes' files");
}

/// Without our controllers the claim waits: what is bound later, they bind.
fn nobody_binds(scene: &mut Scene) {
    scene.apply(&(claim("early", "ext4", "64Mi", "ReadWriteOnce", "") + &pod("early", "early")));
    let words = ["get", "pod/early", "--output=jsonpath={.status.conditions[?(@.type==\"PodScheduled\")].message}"];
    scene.wait_until("the scheduler to wait for the claim", &words, |said| said.contains("unbound immediate"));
    assert_eq!(scene.get("pvc/early", "{.status.phase}{.spec.volumeName}"), "Pending");
}

/// As a user deploys them: what `longshore deploy controllers` prints, with the image of this build.
fn deploy(scene: &mut Scene) {
    let output = Command::new(env!("CARGO_BIN_EXE_longshore"))
        .args(["deploy", "controllers", "--image", IMAGE, "--controllers=*,-scheduler"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    scene.apply(&String::from_utf8(output.stdout).unwrap());
    let ready = ["get", DEPLOYMENT, IN, "--output=jsonpath={.status.readyReplicas}"];
    scene.wait_until("both pods to be ready", &ready, |said| said == "2");
}

/// The leader's pod is deleted at once; the one that stands by takes over, detaches nothing, and serves the next claim.
fn the_leader_goes_while_a_pod_writes(scene: &mut Scene) {
    let attached = "{.items[*].metadata.name} {.items[*].metadata.uid}";
    let before = scene.get("volumeattachments", attached);
    let leader = scene.kubectl(&LEADER).unwrap();
    let pods = scene.kubectl(&["get", "pods", IN, "--output=jsonpath={.items[*].metadata.name}"]).unwrap();
    let pod_of_leader = pods.split(' ').find(|pod| leader.contains(*pod));
    let pod_of_leader = pod_of_leader.unwrap_or_else(|| panic!("the leader {leader} is none of the pods {pods}"));
    let begun = Instant::now();
    scene.kubectl(&["delete", "pod", pod_of_leader, IN, "--grace-period=0", "--force"]).unwrap();
    scene.wait_until("another to lead", &LEADER, |said| !said.is_empty() && said != leader);
    println!("leader deleted to another leading: {:.1} s", begun.elapsed().as_secs_f64());
    scene.apply(&(claim("next", "ext4", "64Mi", "ReadWriteOnce", "") + &pod("next", "next")));
    scene.wait_for("pod/next", "Ready");
    scene.delete(&["pod/next", "pvc/next"]);
    let words = ["get", "volumeattachments", &format!("--output=jsonpath={attached}")];
    scene.wait_until("only the attachment of before to be left", &words, |said| said == before);
    assert_eq!(scene.inside("app", "cat /data/word").unwrap(), "kept\n");
}

/// Delayed binding: kube-scheduler names the node, ours binds what the sidecar makes for it.
fn a_pod_is_placed_before_its_volume_is_made(scene: &mut Scene) {
    scene.apply(&claim("late", "late", "64Mi", "ReadWriteOnce", ""));
    let words = ["get", "events", "--output=jsonpath={.items[?(@.involvedObject.name==\"late\")].reason}"];
    scene.wait_until("the claim to say what it waits for", &words, |said| said.contains("WaitForFirstConsumer"));
    scene.apply(&pod("late", "late"));
    scene.wait_for("pod/late", "Ready");
    assert_eq!(scene.get("pvc/late", "{.metadata.annotations.volume\\.kubernetes\\.io/selected-node}"), "n1");
    let driver = scene.get("volumeattachments", "{.items[*].spec.attacher}");
    assert_eq!(driver, DRIVER);
    scene.delete(&["pod/late", "pvc/late"]);
}
