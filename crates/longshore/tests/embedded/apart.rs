//! API server, controllers, node agent and driver as four processes: the same life of a volume as under `longshore
//! up`, at the same cost.
#![allow(clippy::print_stderr, reason = "a test that is not run says why")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::life::pod;
use crate::objects;
use crate::world::{DRIVER, NODE, World, is_root};

/// Requests so far, as `/longshore/v1/counts` tells them.
type Counts = BTreeMap<String, u64>;

fn parse(text: &str) -> Counts {
    let lines = text.lines().filter(|line| line.starts_with("api ") || line.starts_with("csi "));
    let lines = lines.filter_map(|line| line.rsplit_once(' '));
    lines.filter_map(|(name, count)| Some((name.to_string(), count.parse().ok()?))).collect()
}

/// What a process with this HTTP endpoint has asked for.
fn counts_at(endpoint: &str) -> Counts {
    let mut stream = TcpStream::connect(endpoint).unwrap();
    stream.write_all(b"GET /longshore/v1/counts HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    parse(&text)
}

fn sum(all: &[Counts]) -> Counts {
    let mut sum = Counts::new();
    for (name, count) in all.iter().flatten() {
        *sum.entry(name.clone()).or_default() += count;
    }
    sum
}

/// Writes to the API and calls that do something. Events are left out because a process writes as many as its own limit
/// allows, Leases because they are renewed by the clock, and questions and registration because each process asks at a
/// time of its own.
fn cost(before: &Counts, after: &Counts) -> Counts {
    const ASKS: [&str; 4] = ["Get", "List", "Probe", "Registration"];
    let counts = |name: &str| {
        let asks = name.starts_with("csi ") && ASKS.iter().any(|question| name.contains(question));
        let reads = ["api get", "api list", "api watch"].iter().any(|verb| name.starts_with(verb));
        !asks && !reads && !name.contains("events") && !name.contains("leases")
    };
    let grown = after.iter().map(|(name, count)| (name.clone(), count - before.get(name).unwrap_or(&0)));
    grown.filter(|(name, count)| counts(name) && *count > 0).collect()
}

/// A claim, a pod that uses it, and the end of both.
fn life(world: &World) {
    let place = world.place;
    world.api.apply(&objects::place(place, DRIVER, &[]));
    world.api.apply(&objects::claim(place, "data", ""));
    world.wait_bound(&["data"]);
    world.api.apply(&pod(place, "writer", NODE, &["data"], "echo kept > /data/f; sync; exec sleep 1000"));
    world
        .wait("the pod to run", &world.path("pods"), |pods| pods.iter().any(|pod| pod["status"]["phase"] == "Running"));
    // Born with the attacher's finalizer, because the attacher works in the same process as the provisioner.
    let finalizers = world.volume_of("data")["metadata"]["finalizers"].clone();
    assert!(finalizers.to_string().contains("external-attacher/local-csi-longshore"), "{finalizers}");
    world.api.delete(&world.path("pods"));
    world.wait("the pod to go", &world.path("pods"), |pods| pods.is_empty());
    world.end();
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// What a life costs, at its cheapest of two: on a busy machine one that waits for long tells about it, which takes
/// writes of its own.
fn cheapest(world: &World, ask: impl Fn() -> Counts) -> Counts {
    let one = || {
        let before = ask();
        life(world);
        cost(&before, &ask())
    };
    let (first, second) = (one(), one());
    let both = |(name, count): (String, u64)| second.get(&name).map(|other| (name, count.min(*other)));
    first.into_iter().filter_map(both).collect()
}

#[test]
fn four_processes_cost_no_more_than_one() {
    if !is_root() {
        eprintln!("not run: pods mount filesystems, and only root may");
        return;
    }
    let together = World::all_in_one("together");
    // Longer than `up` waits for the driver that it expects: one that registered must not be served twice.
    std::thread::sleep(Duration::from_millis(2500));
    let in_one = cheapest(&together, || parse(&together.api.ask("GET", "/longshore/v1/counts", "", "").unwrap()));
    drop(together);

    let (controllers, node) = (free_address(), free_address());
    let apart = World::apart("apart", &controllers, &node);
    let in_four = cheapest(&apart, || sum(&[counts_at(&controllers), counts_at(&node)]));
    let writes = |all: &Counts| all.iter().filter(|(name, _)| name.starts_with("api")).map(|(_, n)| n).sum::<u64>();
    eprintln!("API writes: {} in one process, {} in four", writes(&in_one), writes(&in_four));
    assert_eq!(in_four, in_one, "{}", apart.told());
}
