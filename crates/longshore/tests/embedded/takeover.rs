//! One sidecar is killed with no warning in the middle of its work, another goes on.

use std::time::Duration;

use prove_cluster::eventually;
use serde_json::Value;

use crate::world::{VOLUMES, World};
use crate::{backend, objects};

const BATCH: usize = 40;

/// A killed holder leaves its Lease behind until that runs out.
const ELECTION: [&str; 5] = [
    "--leader-election",
    "--leader-election-namespace=takeover",
    "--leader-election-lease-duration=4s",
    "--leader-election-renew-deadline=3s",
    "--leader-election-retry-period=500ms",
];

fn sidecar(world: &mut World, more: &[&str]) -> usize {
    let kubeconfig = world.kubeconfig();
    // Few claims at once, so that there is a middle to be killed in.
    world.sidecar("provisioner", &kubeconfig, &[more, &["--worker-threads=4", "-v=5"]].concat())
}

fn claims(world: &World) -> Vec<String> {
    let names: Vec<String> = (0..BATCH).map(|number| format!("claim-{number}")).collect();
    world.api.apply(&names.iter().map(|name| objects::claim(world.place, name, "")).collect::<String>());
    names
}

fn signal(world: &World, signal: &str) {
    let number = world.driver_id().to_string();
    assert!(std::process::Command::new("kill").args([signal, &number]).status().unwrap().success());
}

/// Waits until a quarter is done, and stops the driver there: what the sidecar has asked it for
/// by now it asks in vain. Then the sidecar is killed, and only after that the driver does what it was asked for.
fn kill_in_the_middle(world: &mut World, sidecar: usize, call: &str, done: impl Fn(usize) -> usize) {
    world.wait("the middle of the work", VOLUMES, |volumes| done(volumes.len()) >= BATCH / 4);
    signal(world, "-STOP");
    // Now calls are under way that nobody will hear the answer of.
    eventually("calls under way", Duration::from_secs(30), || {
        let (asked, done) = (world.log(sidecar).matches(call).count(), done(world.api.list(VOLUMES).len()));
        if asked > done { Ok(()) } else { Err(format!("{asked} asked for, {done} done")) }
    })
    .unwrap_or_else(|error| panic!("{error}\n{}", world.told()));
    world.kill(sidecar);
    signal(world, "-CONT");
    let held = backend::contents(&world.socket()).0.len();
    assert!(0 < held && held < BATCH, "killed too late: the driver has {held} volumes");
}

// reliability 6, scenario 1: volumes that were asked for and never heard of, whose claims nobody wants any more.
#[test]
fn claims_deleted_while_nobody_works_leave_no_volume_behind() {
    let mut world = World::new("orphans", &[]);
    claims(&world);
    let first = sidecar(&mut world, &[]);
    kill_in_the_middle(&mut world, first, "action=\"CreateVolume\"", |volumes| volumes);
    world.api.delete(&world.path("persistentvolumeclaims"));
    sidecar(&mut world, &[]);
    world.end();
}

// C6; reliability 1, 6, 7: across owners of the work, no volume is lost, none is made twice and none is left over.
#[test]
fn a_standby_goes_on_where_the_killed_leader_stopped() {
    let mut world = World::new("takeover", &[]);
    let claims = claims(&world);
    let first = sidecar(&mut world, &ELECTION);
    let led = "/apis/coordination.k8s.io/v1/namespaces/takeover/leases";
    let held = |lease: &Value| lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
    world.wait("the first to lead", led, |leases| leases.iter().any(|lease| held(lease)));
    let second = sidecar(&mut world, &ELECTION);
    kill_in_the_middle(&mut world, first, "action=\"CreateVolume\"", |volumes| volumes);
    world.wait_bound(&claims.iter().map(String::as_str).collect::<Vec<_>>());
    let handles = |volumes: Vec<Value>| {
        let mut all: Vec<String> =
            volumes.iter().map(|volume| volume["spec"]["csi"]["volumeHandle"].as_str().unwrap().to_string()).collect();
        all.sort();
        all
    };
    let mut held = backend::contents(&world.socket()).0;
    held.sort();
    assert_eq!((held.len(), held), (BATCH, handles(world.api.list(VOLUMES))));

    let third = sidecar(&mut world, &ELECTION);
    world.api.delete(&world.path("persistentvolumeclaims"));
    kill_in_the_middle(&mut world, second, "action=\"DeleteVolume\"", |volumes| BATCH - volumes);
    world.end();
    assert!(world.log(third).contains("leading under the lease"), "the third did the rest");
}
