//! What is told of the volumes of this node: KL-104.

use super::world::{DRIVER, World};
use crate::{ManagedVolumes, managed_volumes, published_volumes};
use csi::NodeRpc;

#[test]
fn kl_104_what_is_mounted_is_asked_about_by_pod_and_claim() {
    let mut world = World::new();
    world.pod("a");
    world.settle();
    assert!(published_volumes(&world.cache, world.local()).is_empty(), "the driver cannot say");
    world.update_local(|local| {
        local.drivers.values_mut().for_each(|driver| driver.capabilities.extend([NodeRpc::GetVolumeStats]))
    });
    let all = published_volumes(&world.cache, world.local());
    let [one] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((one.pod.name.as_str(), one.name.as_str()), ("a", "v"));
    assert_eq!(one.claim.as_ref().unwrap().name, "data");
    assert!(world.local().mounts.contains(&one.target));
    let target = one.target.clone();
    world.update_local(|local| local.mounts.retain(|mount| *mount != target));
    assert!(published_volumes(&world.cache, world.local()).is_empty(), "it is not mounted");
}

#[test]
fn volumes_are_counted_as_they_should_be_and_as_they_are() {
    let mut world = World::new();
    let counted = |world: &World| {
        let all = managed_volumes(&world.cache, world.local());
        all.get(DRIVER).map(|ManagedVolumes { wanted, published }| (*wanted, *published))
    };
    assert_eq!(counted(&world), None);
    world.pod("a");
    assert_eq!(counted(&world), Some((1, 0)));
    world.settle();
    assert_eq!(counted(&world), Some((1, 1)));
    world.force_delete_pod("a");
    assert_eq!(counted(&world), Some((0, 1)), "it is still to be taken down");
    world.settle();
    assert_eq!(counted(&world), None);
}
