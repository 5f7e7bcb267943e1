//! What each object becomes, and what stands in the way.

use alloc::string::ToString;
use alloc::vec::Vec;

use api::Kind;
use serde_json::json;

use super::{Cluster, EBS, PLUGIN};
use crate::{Becomes, ItemKind, Mark};

#[test]
fn every_kind_of_object_is_named_with_what_it_becomes() {
    let disk = json!({ "awsElasticBlockStore": { "volumeID": "vol-9" } });
    let cluster = Cluster::new()
        .provisioned("a", true)
        .with(Kind::StorageClass, json!({ "metadata": { "name": "gp2" }, "provisioner": PLUGIN }))
        .with(
            Kind::PersistentVolumeClaim,
            json!({ "metadata": { "namespace": "x", "name": "data",
            "annotations": { api::names::STORAGE_PROVISIONER_BETA: PLUGIN } } }),
        )
        .with(
            Kind::Pod,
            json!({ "metadata": { "namespace": "x", "name": "p" }, "spec": { "volumes": [
            { "name": "v", "awsElasticBlockStore": { "volumeID": "vol-8" } }, { "name": "e", "emptyDir": {} }] } }),
        )
        .with(
            Kind::VolumeAttachment,
            json!({ "metadata": { "name": "va" }, "spec": { "attacher": EBS, "nodeName": "n",
            "source": { "inlineVolumeSpec": disk } }, "status": { "attached": true } }),
        )
        .with(
            Kind::PersistentVolume,
            json!({ "metadata": { "name": "csi" },
            "spec": { "csi": { "driver": EBS, "volumeHandle": "h" } } }),
        )
        .with(Kind::PersistentVolume, json!({ "metadata": { "name": "nfs" }, "spec": { "nfs": { "server": "s" } } }));
    let told: Vec<_> = cluster
        .0
        .items()
        .iter()
        .map(|item| (item.kind, item.object().to_string(), item.handle().map(str::to_string)))
        .collect();
    assert_eq!(
        told,
        [
            (ItemKind::Volume, "PersistentVolume a".to_string(), Some("vol-a".to_string())),
            (ItemKind::Class, "StorageClass gp2".into(), None),
            (ItemKind::Claim, "PersistentVolumeClaim x/data".into(), None),
            (ItemKind::PodVolume, "Pod x/p".into(), Some("vol-8".into())),
            (ItemKind::Attachment, "VolumeAttachment va".into(), Some("vol-9".into())),
        ]
    );
    let counts = cluster.only().counts;
    assert_eq!((counts.volumes, counts.classes, counts.claims, counts.pod_volumes), (1, 1, 1, 1));
    assert_eq!((counts.attachments, counts.blocked, counts.native), (1, 0, 1));
    let first = cluster.0.items()[0].clone();
    assert_eq!(first.mark, Mark::Set);
    assert_eq!(first.becomes, Some(Becomes::Volume { handle: "vol-a".into(), zones: ["us-west-2a".into()].into() }));
}

// The library's own sentence, and a class that says something twice.
#[test]
fn what_cannot_be_translated_blocks_with_the_librarys_sentence() {
    let cluster = Cluster::live().volume("bad", "aws://x", json!({})).node("n", true, false).with(
        Kind::StorageClass,
        json!({ "metadata": { "name": "two" }, "provisioner": PLUGIN, "parameters": { "zone": "a", "zones": "a,b" } }),
    );
    let found = cluster.obstacles(true);
    assert!(found[0].starts_with("PersistentVolume bad cannot be translated: volumeID \"aws://x\""), "{found:?}");
    let twice = "StorageClass two cannot be translated: class \"two\" says more than once which zones it is for, as \
                 zone and as zones; keep one";
    assert_eq!(found[1], twice);
    let plan = cluster.only();
    assert_eq!(plan.counts.blocked, 2);
    assert_eq!(plan.steps[1].state, crate::StepState::Blocked);
    assert_eq!(plan.steps[1].note, "2 obstacles, named above");
    assert_eq!(cluster.plan().blocking(), 2);
    // There is no CSIDriver either, which blocks nothing and is told last.
    let blocks: Vec<bool> = plan.obstacles.iter().map(crate::MigrationObstacle::blocks).collect();
    assert_eq!(blocks, [true, true, false]);
}

#[test]
fn a_driver_that_is_missing_is_named_with_the_nodes() {
    let some = Cluster::live().provisioned("a", false).node("n1", true, false).node("n2", false, false);
    assert_eq!(some.obstacles(true), ["driver ebs.csi.aws.com is not registered on n2; install it there first"]);
    let none = Cluster::live().provisioned("a", false).node("n1", false, false);
    assert_eq!(none.obstacles(true), ["driver ebs.csi.aws.com is registered on no node; install it first"]);
    // A step of its own is to install it.
    let [install, resolve, ..] = &some.only().steps[..] else { panic!() };
    assert_eq!((install.state, install.nodes.as_slice()), (crate::StepState::ToDo, &["n2".to_string()][..]));
    assert_eq!(install.note, "not registered on 1 of 2 nodes");
    assert!(install.commands[0].contains("deploy driver ebs.csi.aws.com"), "{:?}", install.commands);
    assert_eq!((resolve.state, resolve.note.as_str()), (crate::StepState::Done, "nothing stands in the way"));
    let everywhere = Cluster::live().provisioned("a", false).node("n1", true, false);
    assert!(everywhere.only().steps[0].commands.is_empty());
    assert_eq!(everywhere.plan().blocking(), 0);
    let told = "there is no CSIDriver object ebs.csi.aws.com: its defaults hold, also for attachment";
    assert_eq!(none.obstacles(false), [told]);
    let described = none.with(Kind::CSIDriver, json!({ "metadata": { "name": EBS } }));
    assert!(described.obstacles(false).is_empty());
}

#[test]
fn attachments_that_are_on_their_way_are_named() {
    let attachment = |name: &str, status: bool, going: bool| {
        let mut metadata = json!({ "name": name });
        if going {
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        let source = json!({ "persistentVolumeName": "a" });
        json!({ "metadata": metadata, "spec": { "attacher": EBS, "nodeName": "n", "source": source },
            "status": { "attached": status } })
    };
    let inline = |name: &str, attacher: &str| {
        let source = json!({ "inlineVolumeSpec": { "awsElasticBlockStore": { "volumeID": "vol-9" } } });
        json!({ "metadata": { "name": name }, "spec": { "attacher": attacher, "nodeName": "n", "source": source } })
    };
    let base = || Cluster::live().provisioned("a", true).node("n", true, true);
    let cluster = base().with(Kind::VolumeAttachment, attachment("fine", true, false));
    assert!(cluster.obstacles(true).is_empty());
    let cluster = base()
        .with(Kind::VolumeAttachment, attachment("coming", false, false))
        .with(Kind::VolumeAttachment, attachment("going", true, true))
        .with(Kind::VolumeAttachment, inline("held", EBS))
        .with(Kind::VolumeAttachment, inline("theirs", "other.example.com"));
    assert_eq!(
        cluster.obstacles(true),
        [
            "VolumeAttachment coming is still being attached to node n; wait for it",
            "VolumeAttachment going is still being detached from node n; wait for it",
            "VolumeAttachment held is still being attached to node n; wait for it",
        ]
    );
}

#[test]
fn zones_that_nodes_do_not_tell_or_are_not_in_are_named() {
    let bare = json!({ "metadata": { "name": "n" }, "spec": { "drivers": [{ "name": EBS, "nodeID": "n" }] } });
    let elsewhere = json!({ "metadata": { "name": "n", "labels": { api::names::ZONE: "us-west-2b" } } });
    let cluster = Cluster::new().provisioned("a", false).with(Kind::CSINode, bare).with(Kind::Node, elsewhere);
    assert_eq!(
        cluster.obstacles(true),
        ["driver ebs.csi.aws.com does not tell the zone of n (no topology key topology.ebs.csi.aws.com/zone), and \
             1 of the volumes can be reached from one zone only"]
    );
    assert_eq!(cluster.obstacles(false), ["no node is in zone us-west-2a, where 1 of the volumes are"]);
    // Where a volume is that a pod holds itself the pod says.
    let own = json!([{ "name": "v", "awsElasticBlockStore": { "volumeID": "vol-7" } }]);
    let pod = json!({ "metadata": { "namespace": "x", "name": "p" }, "spec": { "volumes": own } });
    assert!(Cluster::new().provisioned("a", false).with(Kind::Pod, pod).obstacles(false).is_empty());
    let spec = json!({ "awsElasticBlockStore": { "volumeID": "vol-1" } });
    let cluster = Cluster::new().with(Kind::PersistentVolume, json!({ "metadata": { "name": "old" }, "spec": spec }));
    assert_eq!(
        cluster.obstacles(false),
        ["1 volumes of kubernetes.io/aws-ebs name no zone, such as PersistentVolume old: their pods may be placed \
             where the disk is not"]
    );
}

#[test]
fn two_volumes_that_become_one_and_what_is_lost_are_named() {
    let cluster = Cluster::new().volume("a", "aws://us-west-2a/vol-1", json!({})).volume("b", "vol-1", json!({}));
    assert_eq!(
        cluster.obstacles(true),
        ["PersistentVolume a and PersistentVolume b are one volume to the driver (vol-1); keep one of them"]
    );
    let spec = json!({ "awsElasticBlockStore": { "volumeID": "vol-1", "colour": "red" } });
    let metadata = json!({ "name": "a", "labels": { api::names::ZONE: "us-west-2a" } });
    let cluster = Cluster::new().with(Kind::PersistentVolume, json!({ "metadata": metadata, "spec": spec }));
    let lost = "awsElasticBlockStore.colour of PersistentVolume a has no counterpart and is left out";
    assert_eq!(cluster.obstacles(false), [lost]);
}

#[test]
fn a_volume_with_two_sources_is_nobodys() {
    let spec = json!({ "awsElasticBlockStore": { "volumeID": "v" }, "cinder": { "volumeID": "c" } });
    let plan =
        Cluster::new().with(Kind::PersistentVolume, json!({ "metadata": { "name": "two" }, "spec": spec })).plan();
    assert!(plan.plugins.is_empty());
    assert_eq!(
        plan.unclear[0].to_string(),
        "PersistentVolume two cannot be translated: volume two has more than one source; remove all but one"
    );
    assert_eq!(plan.blocking(), 1);
}
