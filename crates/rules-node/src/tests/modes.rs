//! What of a volume and its uses decides how it is published, or whether at all.

use alloc::string::String;
use alloc::vec::Vec;

use api::Kind;
use control::Mode;
use csi::{Call, NodeRpc};
use serde_json::json;

use super::world::World;
use crate::{DriverFacts, VolumeSpec};

// KL-37: a driver that stops needing attachments is believed at once, under the same name of the volume.
#[test]
fn kl_37_a_volume_that_needs_no_attachment_any_more_is_mounted_without() {
    let mut world = World::new();
    world.report_attached(false);
    world.delete(Kind::VolumeAttachment, "va");
    world.pod("a");
    world.settle();
    assert_eq!(world.why(&World::volume_key()).code, "NotAttached");
    world.driver(json!({ "attachRequired": false }));
    world.settle();
    assert_eq!(world.status("a")["phase"], "Running");
    assert!(world.local().records.contains_key(&super::world::unique()));
}

// KL-106: what counts where there is no CSIDriver object: attachments, no pod information, no tokens, no publishing
// again, the default policy for groups, claims only.
#[test]
fn kl_106_without_a_driver_object_the_defaults_count() {
    let mut world = World::new();
    let spec = VolumeSpec::default().by(None);
    assert!(!spec.pod_info && !spec.republish && spec.refused.is_none());
    assert_eq!(spec.tokens, crate::TokenWishes::default());
    assert!(VolumeSpec { ephemeral: true, ..VolumeSpec::default() }.by(None).refused.is_some());
    world.report_attached(false);
    world.delete(Kind::VolumeAttachment, "va");
    world.pod_with("a", json!({ "securityContext": { "fsGroup": 2000 } }));
    world.settle();
    assert_eq!(world.why(&World::volume_key()).code, "NotAttached", "attachments are needed");
    world.attach();
    let done = world.settle();
    assert!(done.contains(&String::from("SetGroup")), "ReadWriteOnce with a type of filesystem: {done:?}");
}

// KL-73, both columns.
#[test]
fn kl_73_access_modes_for_drivers_that_tell_one_writer_from_several() {
    use Mode::*;
    let unable = DriverFacts::default();
    let able = DriverFacts::new([NodeRpc::SingleNodeMultiWriter]);
    for (modes, plain, apart) in [
        (&["ReadWriteOnce"][..], SingleNodeWriter, SingleNodeMultiWriter),
        (&["ReadWriteOncePod"], SingleNodeWriter, SingleNodeSingleWriter),
        (&["ReadOnlyMany"], MultiNodeReader, MultiNodeReader),
        (&["ReadWriteMany"], MultiNodeWriter, MultiNodeWriter),
        (&["ReadWriteOnce", "ReadWriteMany"], SingleNodeWriter, SingleNodeMultiWriter),
        (&[], SingleNodeWriter, SingleNodeMultiWriter),
    ] {
        let body = json!({ "metadata": { "name": "v" }, "spec": { "accessModes": modes } });
        let volume = serde_json::from_value(body).unwrap();
        let mode = |facts| VolumeSpec::of(&volume, facts).capability.mode;
        assert_eq!(mode(None), plain, "{modes:?}");
        assert_eq!(mode(Some(&unable)), plain, "{modes:?}");
        assert_eq!(mode(Some(&able)), apart, "{modes:?}");
    }
}

fn publish(world: &mut World) -> csi::v1::NodePublishVolumeRequest {
    let calls = world.calls();
    let found = calls.into_iter().find_map(|call| match call {
        Call::NodePublishVolume(request) => Some(request),
        _other => None,
    });
    found.unwrap_or_else(|| panic!("{}", world.why(&World::volume_key())))
}

// KL-71, KL-72: what the pod says of its claim counts, and not what the volume says of itself.
#[test]
fn kl_72_a_read_only_volume_is_attached_so_and_published_as_the_pod_says() {
    for (volume, claim) in [(true, false), (true, true), (false, true), (false, false)] {
        let mut world = World::new();
        world.volume_with(|spec| spec["csi"]["readOnly"] = json!(volume));
        let used = json!({ "claimName": "data", "readOnly": claim });
        world.pod_with("a", json!({ "volumes": [{ "name": "v", "persistentVolumeClaim": used }] }));
        assert_eq!(publish(&mut world).readonly, claim);
    }
}

// KL-70: without an object only claims; with one what it lists.
#[test]
fn kl_70_the_driver_must_offer_the_way_a_volume_is_asked_for() {
    for (modes, taken) in
        [(json!(["Ephemeral"]), false), (json!(["Persistent"]), true), (json!(["Ephemeral", "Persistent"]), true)]
    {
        let mut world = World::new();
        world.driver(json!({ "attachRequired": true, "volumeLifecycleModes": modes }));
        world.pod("a");
        assert_eq!(!world.calls().is_empty(), taken, "{modes}");
        if !taken {
            let why = world.why(&World::volume_key());
            assert_eq!(why.code, "VolumeNotSupported");
            assert!(why.text.contains("does not list Persistent"), "{why}");
        }
    }
}

// KL-30: a volume that no container uses is not mounted, and the pod does not wait for it.
#[test]
fn kl_30_only_volumes_that_a_container_uses_are_mounted() {
    let mut world = World::new();
    let containers = json!([{ "name": "c", "image": "i", "command": ["/bin/true"] }]);
    world.pod_with("a", json!({ "containers": containers }));
    assert_eq!(world.calls(), Vec::<Call>::new());
    assert_eq!(world.status("a")["phase"], "Running");
    assert!(!world.node_lists("volumesInUse"));
}

// KL-31: filesystems are mounted and devices are devices.
#[test]
fn kl_31_volume_mode_and_use_must_agree() {
    let device = json!([{ "name": "c", "image": "i", "command": ["/bin/true"],
                          "volumeDevices": [{ "name": "v", "devicePath": "/dev/xvda" }] }]);
    for (mode, spec, right) in [
        ("Block", json!({}), "volumeDevices alone"),
        ("Filesystem", json!({ "containers": device }), "volumeMounts alone"),
    ] {
        let mut world = World::new();
        world.volume_with(|spec| spec["volumeMode"] = json!(mode));
        world.pod_with("a", spec);
        assert_eq!(world.calls(), Vec::<Call>::new());
        let text: String = world.why(&World::pod_key("a")).text;
        assert!(text.contains(mode) && text.contains(right), "{text}");
        assert_eq!(world.why(&World::pod_key("a")).code, "VolumeNotSupported");
    }
}

// KL-102: a driver that asks for it publishes again each minute; nothing is staged again, and the pod runs on.
#[test]
fn kl_102_a_volume_is_published_again_and_again_if_the_driver_asks_for_it() {
    let mut world = World::new();
    world.driver(json!({ "attachRequired": true, "podInfoOnMount": true, "requiresRepublish": true }));
    world.pod("a");
    assert_eq!(world.calls().len(), 2);
    for _ in 0..3 {
        assert!(world.calls().is_empty(), "not before its time");
        world.pass(61_000);
        let again = publish(&mut world);
        assert_eq!(again.volume_context["csi.storage.k8s.io/pod.name"], "a");
    }
    // A failure leaves it mounted.
    world.faults.insert("Publish", prove_lab::Fault::Refused);
    world.pass(61_000);
    world.calls();
    assert_eq!(world.status("a")["phase"], "Running");
    assert_eq!(world.machine.published.len(), 1);
    world.delete_pod("a");
    world.settle();
    assert!(world.machine.dirs.is_empty(), "{:?}", world.machine.dirs);
}
