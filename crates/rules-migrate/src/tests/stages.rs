//! How far a migration has come, the steps, and what does not fit together.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::Kind;
use serde_json::json;

use super::{Cluster, EBS, PLUGIN};
use crate::{ControllersSay, MigrationStage, MigrationStep, MigrationVerdict, StepState};

use StepState::{Blocked, Done, ToDo, Unknown};

fn states(steps: &[MigrationStep]) -> Vec<StepState> {
    steps.iter().map(|step| step.state).collect()
}

fn complaints(cluster: &Cluster) -> Vec<String> {
    cluster.only().inconsistencies.iter().map(ToString::to_string).collect()
}

// S4-35, S4-36: every stop on the way up and down again, as the objects show it.
#[test]
fn the_way_there_and_back_in_stages() {
    let at = |marked: bool, one: bool, two: bool| {
        Cluster::live().provisioned("a", marked).node("n1", true, one).node("n2", true, two).only()
    };
    for (plan, stage, up, down) in [
        (at(false, false, false), MigrationStage::NotBegun, [Done, Done, ToDo, ToDo, Blocked], [Done, Done]),
        (at(true, false, false), MigrationStage::Controllers, [Done, Done, Done, ToDo, Blocked], [Done, ToDo]),
        (
            at(true, true, false),
            MigrationStage::Nodes { done: 1, of: 2 },
            [Done, Done, Done, ToDo, Blocked],
            [ToDo, ToDo],
        ),
        (at(true, true, true), MigrationStage::Migrated, [Done, Done, Done, Done, Unknown], [ToDo, ToDo]),
    ] {
        assert_eq!(plan.stage, stage);
        assert_eq!(states(&plan.steps), up, "{stage:?}");
        assert_eq!(states(&plan.back), down, "{stage:?}");
        assert!(plan.inconsistencies.is_empty(), "{:?}", plan.inconsistencies);
    }
    // The controllers come first on the way up and last on the way down; nodes are drained either way (S4-34).
    let half = at(true, true, false);
    assert_eq!(half.steps[3].nodes, ["n2"]);
    assert_eq!(half.back[0].nodes, ["n1"]);
    assert!(half.steps[2].title.starts_with("Switch the controllers on"));
    assert!(half.back[1].title.starts_with("Only then switch the controllers off"));
    for commands in [&half.steps[3].commands, &half.back[0].commands] {
        assert!(commands[1].starts_with("kubectl drain $NODE"), "{commands:?}");
        assert!(commands[3].contains("volumesInUse"), "{commands:?}");
        assert!(commands.last().unwrap().starts_with("kubectl uncordon $NODE"), "{commands:?}");
    }
    let gates = "--feature-gates=CSIMigration=true,CSIMigrationAWS=true,InTreePluginAWSUnregister=false";
    assert!(half.steps[3].commands[4].ends_with(gates), "{:?}", half.steps[3].commands);
    assert!(half.back[0].commands[4].ends_with("--feature-gates=CSIMigrationAWS=false"));
    // What is done needs nothing typed; what is not is shown by the marks.
    assert!(half.steps[2].commands.is_empty());
    let columns = r"NAME:.metadata.name,TAKEN OVER BY:.metadata.annotations.pv\.kubernetes\.io/migrated-to";
    let marks = alloc::format!("kubectl get pv -o custom-columns='{columns}'");
    for commands in [&at(false, false, false).steps[2].commands, &half.back[1].commands] {
        let restart = "# restart kube-controller-manager (or longshore controllers) with --feature-gates=";
        assert!(commands[0].starts_with(restart), "{commands:?}");
        assert_eq!(commands[1], marks);
    }
}

// What comes after a blocked step waits for it; what is done stays done, and what is unknown unknown.
#[test]
fn a_step_that_is_blocked_holds_up_those_after_it() {
    let bad = |marked| Cluster::live().provisioned("a", marked).volume("bad", "aws://x", json!({}));
    let at = |marked, listed| states(&bad(marked).node("n", true, listed).only().steps);
    assert_eq!(at(false, false), [Done, Blocked, Blocked, Blocked, Blocked]);
    assert_eq!(at(true, false), [Done, Blocked, Done, Blocked, Blocked]);
    assert_eq!(at(true, true), [Done, Blocked, Done, Done, Unknown]);
    // A driver that is missing is to be installed all the same.
    assert_eq!(states(&bad(false).node("n", false, false).only().steps)[..2], [ToDo, Blocked]);
}

#[test]
fn every_object_that_a_plan_is_drawn_from_is_counted() {
    let cluster = Cluster::new().provisioned("a", true).node("n", true, true);
    let secret = json!({ "metadata": { "namespace": "x", "name": "s" } });
    assert_eq!(cluster.with(Kind::Secret, secret).0.seen(), 3);
}

// What was not seen is unknown, and unknown is never done.
#[test]
fn a_dump_without_nodes_says_nothing_of_nodes() {
    let nodes_alone = json!({ "metadata": { "name": "n" } });
    for cluster in [
        Cluster::new().provisioned("a", true),
        // Nodes do not say what their CSINodes would.
        Cluster::new().provisioned("a", true).with(Kind::Node, nodes_alone),
    ] {
        let plan = cluster.only();
        assert_eq!(plan.stage, MigrationStage::Unknown);
        assert_eq!(states(&plan.steps), [Unknown, Unknown, Done, Unknown, Unknown]);
        assert_eq!(states(&plan.back), [Unknown, ToDo]);
        assert_eq!(plan.steps[0].note, "no CSINode was seen, so nothing is known of nodes");
        assert_eq!(cluster.plan().verdict(), MigrationVerdict::Unknown);
        assert!(cluster.plan().unseen.contains(&Kind::CSINode));
    }
    // A cluster that was asked and has none is no better: there is no node that could be switched.
    assert_eq!(Cluster::live().provisioned("a", true).only().stage, MigrationStage::Unknown);
}

// S4-32, the last row.
#[test]
fn nodes_that_expect_a_driver_the_controllers_do_not_attach_for_are_disputed() {
    let cluster = Cluster::live().provisioned("a", false).node("n1", true, true).node("n2", true, false);
    assert_eq!(cluster.only().stage, MigrationStage::Disputed);
    assert_eq!(
        complaints(&cluster),
        ["kubernetes.io/aws-ebs is left to its driver on n1, and the controllers have CSIMigrationAWS off: no \
             volume of it is attached there; switch the controllers on, or the nodes off"]
    );
    assert_eq!(cluster.plan().verdict(), MigrationVerdict::Inconsistent);
}

// S4-3, S4-33, S4-42: each alone.
#[test]
fn what_does_not_fit_together_is_named() {
    let absent = Cluster::live().provisioned("a", true).node("n1", false, true).node("n2", true, true);
    assert!(complaints(&absent)[0].starts_with("kubernetes.io/aws-ebs is left to driver ebs.csi.aws.com on n1, where"));

    let partly = Cluster::live().provisioned("a", true).provisioned("b", false).node("n", true, true);
    assert_eq!(partly.only().controllers, ControllersSay::Partly { marked: 1, unmarked: 1 });
    assert!(complaints(&partly)[0].contains("1 are not, such as PersistentVolume b"), "{:?}", complaints(&partly));

    let other = json!({ api::names::PROVISIONED_BY: PLUGIN, api::names::MIGRATED_TO: "other.example.com" });
    let wrong = Cluster::live().volume("a", "vol-1", other).node("n", true, false);
    assert!(complaints(&wrong)[0].starts_with("PersistentVolume a is marked for driver other.example.com"));

    let attachment = json!({ "metadata": { "name": "va" }, "spec": { "attacher": EBS, "nodeName": "n",
        "source": { "persistentVolumeName": "a" } }, "status": { "attached": true } });
    let early = Cluster::live().provisioned("a", true).node("n", true, false).with(Kind::VolumeAttachment, attachment);
    assert!(
        complaints(&early)[0].contains("node or controllers were switched without a drain"),
        "{:?}",
        complaints(&early)
    );

    // By the plugin itself, of another driver's volume, or on a node that is switched.
    let attachment = |attacher: &str, volume: &str, node: &str| {
        let spec = json!({ "attacher": attacher, "nodeName": node, "source": { "persistentVolumeName": volume } });
        json!({ "metadata": { "name": "va" }, "spec": spec, "status": { "attached": true } })
    };
    for (attacher, volume, node) in
        [("other", "a", "n"), (EBS, "native", "n"), ("other", "native", "n"), (EBS, "a", "m")]
    {
        let cluster = Cluster::live().provisioned("a", true).node("n", true, false).node("m", true, true);
        let fine = cluster.with(Kind::VolumeAttachment, attachment(attacher, volume, node));
        assert!(complaints(&fine).is_empty(), "{attacher} {volume} {node}: {:?}", complaints(&fine));
    }

    let lost = Cluster::live().provisioned("a", true).volume("bad", "aws://x", json!({})).node("n", true, true);
    assert!(complaints(&lost)[0].starts_with("1 objects cannot be translated, such as PersistentVolume bad"));
    // Before the migration the plugin still serves it.
    let before = Cluster::live().provisioned("a", false).volume("bad", "aws://x", json!({})).node("n", true, false);
    assert!(complaints(&before).is_empty());
}

// S4-34: what the plugin mounted or attached, and nobody took away before the node was switched on.
#[test]
fn a_node_that_was_switched_on_without_a_drain_is_named() {
    let status = |status: serde_json::Value| json!({ "metadata": { "name": "n" }, "status": status });
    let used = |names: &[&str]| status(json!({ "volumesInUse": names }));
    let cluster = |listed, node| Cluster::live().provisioned("a", true).node("n", true, listed).with(Kind::Node, node);
    let (disk, other) = ("kubernetes.io/aws-ebs/aws://us-west-2a/vol-a", "kubernetes.io/aws-ebs/vol-b");
    let by_driver = "kubernetes.io/csi/ebs.csi.aws.com^vol-a";
    let told = |volumes: &str| {
        alloc::format!(
            "node n leaves kubernetes.io/aws-ebs to its driver and still has {volumes} by the plugin: it was switched \
             without a drain; drain it, before the driver serves there"
        )
    };
    let undrained = cluster(true, used(&[by_driver, other, disk]));
    assert_eq!(complaints(&undrained), [told(&[disk, other].join(", "))]);
    assert_eq!(undrained.plan().verdict(), MigrationVerdict::Inconsistent);
    // Attached is enough, and what is both is said once.
    let attached = json!({ "volumesAttached": [{ "name": disk, "devicePath": "" }], "volumesInUse": [disk] });
    assert_eq!(complaints(&cluster(true, status(attached))), [told(disk)]);
    let attached = json!({ "volumesAttached": [{ "name": disk, "devicePath": "" }] });
    assert_eq!(complaints(&cluster(true, status(attached))), [told(disk)]);
    // The plugin may serve where the node did not leave it to the driver, and the driver where it did.
    for fine in [cluster(false, used(&[disk])), cluster(true, used(&[by_driver])), cluster(true, used(&[]))] {
        assert!(complaints(&fine).is_empty(), "{:?}", complaints(&fine));
    }
    // A volume of another plugin is that one's, and it is known by the node alone.
    let plan = cluster(true, used(&["kubernetes.io/gce-pd/d"])).plan();
    let [aws, gce] = &plan.plugins[..] else { panic!("{plan:?}") };
    assert!(aws.inconsistencies.is_empty(), "{aws:?}");
    let told = gce.inconsistencies[0].to_string();
    assert!(
        told.starts_with("node n leaves kubernetes.io/gce-pd to its driver and still has kubernetes.io/gce-pd/d by")
    );
}

// S4-34, the other way round, of a volume that a pod held itself: its attachment holds it in either form, and is all
// there is to see once the pod is gone.
#[test]
fn an_attachment_that_holds_its_volume_itself_is_the_drivers_too() {
    let csi = json!({ "csi": { "driver": EBS, "volumeHandle": "vol-9" } });
    let in_tree = json!({ "awsElasticBlockStore": { "volumeID": "vol-9" } });
    let of = |attacher: &str, held: &serde_json::Value, listed: bool| {
        let spec = json!({ "attacher": attacher, "nodeName": "n", "source": { "inlineVolumeSpec": held } });
        let attachment = json!({ "metadata": { "name": "va" }, "spec": spec, "status": { "attached": true } });
        Cluster::live().node("n", true, listed).with(Kind::VolumeAttachment, attachment)
    };
    for held in [&csi, &in_tree] {
        assert_eq!(
            complaints(&of(EBS, held, false)),
            ["VolumeAttachment va is for node n, which serves the volume with the plugin: node or controllers were \
                 switched without a drain"]
        );
        assert!(complaints(&of(EBS, held, true)).is_empty(), "{held}");
    }
    assert!(complaints(&of("other.example.com", &in_tree, false)).is_empty());
    assert!(of("other.example.com", &csi, false).plan().plugins.is_empty());
}

// S4-41: a claim that names the driver though its class is the plugin's shows that the controllers are on.
#[test]
fn claims_show_whether_the_controllers_are_on() {
    let class = json!({ "metadata": { "name": "gp2" }, "provisioner": PLUGIN });
    let claim = |class: &str| {
        json!({ "metadata": { "namespace": "x", "name": "c",
        "annotations": { api::names::STORAGE_PROVISIONER: EBS } }, "spec": { "storageClassName": class } })
    };
    let base = || Cluster::live().with(Kind::StorageClass, class.clone()).node("n", true, false);
    assert_eq!(base().only().controllers, ControllersSay::Nothing);
    let on = base().with(Kind::PersistentVolumeClaim, claim("gp2"));
    assert_eq!((on.only().controllers, on.only().stage), (ControllersSay::On, MigrationStage::Controllers));
    // One of the driver's own classes says nothing.
    let native = base().with(Kind::PersistentVolumeClaim, claim("native"));
    assert_eq!(native.only().controllers, ControllersSay::Nothing);
    // Nor a volume of the class's name, nor a class of another plugin.
    let volume = base().volume("native", "vol-1", json!({})).with(Kind::PersistentVolumeClaim, claim("native"));
    assert_eq!(volume.only().controllers, ControllersSay::Nothing);
    let other = json!({ "metadata": { "name": "slow" }, "provisioner": "kubernetes.io/gce-pd" });
    let other = base().with(Kind::StorageClass, other).with(Kind::PersistentVolumeClaim, claim("slow")).plan();
    assert!(other.plugins.iter().all(|plan| plan.controllers == ControllersSay::Nothing), "{other:?}");
}

// S4-34: who is moved by a drain.
#[test]
fn pods_that_a_drain_moves_are_counted() {
    let pod = |name: &str, node: &str, volumes: serde_json::Value, phase: &str| {
        json!({ "metadata": { "namespace": "default", "name": name }, "status": { "phase": phase },
            "spec": { "nodeName": node, "volumes": volumes } })
    };
    let claim = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "a" } }]);
    let own = json!([{ "name": "v", "awsElasticBlockStore": { "volumeID": "vol-7" } }]);
    let cluster = Cluster::live()
        .provisioned("a", true)
        .node("n1", true, false)
        .with(Kind::Pod, pod("one", "n1", claim.clone(), "Running"))
        .with(Kind::Pod, pod("two", "n1", own, "Running"))
        .with(Kind::Pod, pod("ended", "n1", claim.clone(), "Succeeded"))
        .with(Kind::Pod, pod("waiting", "", claim, "Pending"))
        .with(Kind::Pod, pod("other", "n1", json!([{ "name": "e", "emptyDir": {} }]), "Running"));
    assert_eq!(cluster.only().steps[3].note, "0 of 1 nodes are switched; draining the others moves 2 pods");
}

#[test]
fn a_cluster_without_in_tree_objects_has_nothing_to_migrate() {
    let plan = Cluster::live().node("n", true, true).plan();
    assert!(plan.plugins.is_empty() && plan.unseen.is_empty());
    assert_eq!(plan.verdict(), MigrationVerdict::Consistent);
}
