//! Whose fullness can be asked for: KL-104.

use super::world::World;
use crate::published_volumes;

#[test]
fn kl_104_what_is_mounted_is_asked_about_by_pod_and_claim() {
    let mut world = World::new();
    world.pod("a");
    world.settle();
    assert!(published_volumes(&world.cache, world.local()).is_empty(), "the driver cannot say");
    world.update_local(|local| local.drivers.values_mut().for_each(|driver| driver.tells_stats = true));
    let all = published_volumes(&world.cache, world.local());
    let [one] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((one.pod.name.as_str(), one.name.as_str()), ("a", "v"));
    assert_eq!(one.claim.as_ref().unwrap().name, "data");
    assert!(world.local().mounts.contains(&one.target));
    let target = one.target.clone();
    world.update_local(|local| local.mounts.retain(|mount| *mount != target));
    assert!(published_volumes(&world.cache, world.local()).is_empty(), "it is not mounted");
}
