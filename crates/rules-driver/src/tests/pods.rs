//! Volumes that live and die with a pod, and volumes nobody stages.

use super::*;

pub fn inline(id: &str, pod: &str, parameters: &[(&str, &str)]) -> Call {
    let mut request = publish_request(id, &target(pod));
    request.staging_target_path.clear();
    request.volume_context = parameters.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    request.volume_context.insert("csi.storage.k8s.io/ephemeral".into(), "true".into());
    request.volume_context.insert("csi.storage.k8s.io/pod.name".into(), pod.into());
    Call::NodePublishVolume(request)
}

const LONG: &str = "csi-0123456789012345678901234567890123456789012345678901234567890123";

pub fn life() -> Vec<Call> {
    vec![
        inline(LONG, "p1", &[("size", "32Mi"), ("fsType", "xfs")]),
        growth::stats(LONG, &target("p1")),
        unpublish(LONG, "p1"),
        inline("d", "p2", &[("kind", "directory")]),
        unpublish("d", "p2"),
    ]
}

#[test]
fn a_pods_volume_is_made_by_publishing_and_gone_with_it() {
    let mut driver = Driver::new();
    let before = driver.world.clone();
    let up = inline(LONG, "p1", &[("size", "32Mi")]);
    driver.bring(&[up.clone(), up]);
    assert!(driver.ops.is_empty(), "the second time nothing is done: {:?}", driver.ops);
    assert_eq!(driver.world.images.values().next().unwrap().size, 32 << 20);
    assert_eq!(driver.world.mounts[&target("p1")].fstype, "ext4");
    // It is nobody else's: not listed, not deleted, not staged.
    let Ok(Response::ListVolumes(listed)) = driver.call(Call::ListVolumes(Default::default())) else { panic!() };
    assert!(listed.entries.is_empty());
    let id = driver.facts.volumes().keys().next().unwrap().clone();
    driver.bring(&[delete(&id), delete(LONG)]);
    assert_eq!(driver.code(stage(&id)), Code::NotFound);
    assert_eq!(driver.code(snapshots::take(&id, "s")), Code::NotFound);
    driver.bring(&[unpublish(LONG, "p1"), unpublish(LONG, "p1")]);
    assert_eq!(driver.world, before);
}

#[test]
fn what_a_pod_asks_for_is_checked() {
    let mut driver = Driver::new();
    driver.bring(&[create("v")]);
    for (call, code) in [
        (inline("x", "p1", &[("size", "8Gi")]), Code::OutOfRange),
        (inline("x", "p1", &[("size", "many")]), Code::InvalidArgument),
        (inline("x", "p1", &[("size", "99999999999Ti")]), Code::InvalidArgument),
        (inline("x", "p1", &[("colour", "red")]), Code::InvalidArgument),
        (inline("x", "p1", &[("kind", "file")]), Code::InvalidArgument),
        (inline("v", "p1", &[]), Code::InvalidArgument),
    ] {
        assert_eq!(driver.code(call.clone()), code, "{call:?}");
        assert!(driver.ops.is_empty() && driver.facts.volumes().len() == 1);
    }
    let mut driver = Driver::with(without(&[Feature::Ephemeral]));
    assert_eq!(driver.code(inline("x", "p1", &[])), Code::InvalidArgument);
}

// The lifecycle without staging: publishing does it all, and the last one takes it down.
#[test]
fn without_staging_the_first_target_mounts_and_the_last_unmounts() {
    let mut driver = Driver::with(without(&[Feature::Stage]));
    driver.bring(&[create("v")]);
    let before = driver.world.clone();
    assert_eq!(driver.code(stage("v")), Code::Unimplemented);
    assert_eq!(driver.code(publish("v", "p1")), Code::FailedPrecondition, "not attached");
    driver.bring(&[attach("v"), publish("v", "p1"), publish("v", "p1"), publish("v", "p2")]);
    assert_eq!(driver.world.mounts.len(), 3);
    driver.bring(&[unpublish("v", "p1"), unpublish("v", "p1")]);
    assert_eq!(driver.world.mounts.len(), 2);
    assert_eq!(driver.code(detach("v", "n1")), Code::FailedPrecondition);
    driver.bring(&[unpublish("v", "p2"), detach("v", "n1")]);
    // The filesystem stays.
    assert_eq!((driver.world.mounts.len(), driver.world.loops.len()), (0, 0));
    driver.bring(&[delete("v")]);
    assert_eq!(driver.world.dirs, before.dirs);
}

#[test]
fn without_staging_a_device_can_be_shown_too() {
    let mut driver = Driver::with(without(&[Feature::Stage, Feature::Publish]));
    driver.bring(&[create("v")]);
    let mut request = publish_request("v", &target("p1"));
    request.volume_capability = Some(block());
    driver.bring(&[Call::NodePublishVolume(request.clone()), Call::NodePublishVolume(request)]);
    assert!(driver.world.mounts[&target("p1")].block);
    driver.bring(&[unpublish("v", "p1"), delete("v")]);
    assert!(driver.world.loops.is_empty() && driver.world.places.is_empty());
}

// The shape without any controller: only pods' volumes.
#[test]
fn a_node_alone_serves_pods() {
    let mut driver = Driver::with(Config { services: Services::NodeWithoutController, ..config() });
    driver.bring(&life());
    assert_eq!(driver.code(create("v")), Code::Unimplemented);
    let Ok(Response::GetPluginCapabilities(answer)) = driver.call(Call::GetPluginCapabilities(Default::default()))
    else {
        panic!()
    };
    let service = |one: &v1::PluginCapability| match &one.r#type {
        Some(v1::plugin_capability::Type::Service(service)) => service.r#type,
        _ => 0,
    };
    let controller = v1::plugin_capability::service::Type::ControllerService as i32;
    assert!(answer.capabilities.iter().all(|one| service(one) != controller));
}
