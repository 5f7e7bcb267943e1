//! What a volume's life costs: writes to the API, and calls to the driver that do something.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::objects;
use crate::world::{DRIVER, NODE, World, pod};

/// Requests so far, as `/longshore/v1/counts` tells them.
pub type Counts = BTreeMap<String, u64>;

pub fn parse(text: &str) -> Counts {
    let lines = text.lines().filter(|line| line.starts_with("api ") || line.starts_with("csi "));
    let lines = lines.filter_map(|line| line.rsplit_once(' '));
    lines.filter_map(|(name, count)| Some((name.to_string(), count.parse().ok()?))).collect()
}

/// What a process with this HTTP endpoint has asked for.
pub fn counts_at(endpoint: &str) -> Counts {
    let mut stream = TcpStream::connect(endpoint).unwrap();
    stream.write_all(b"GET /longshore/v1/counts HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    parse(&text)
}

pub fn sum(all: &[Counts]) -> Counts {
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

pub fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// What a life costs, at its cheapest of two: on a busy machine one that waits for long tells about it, which takes
/// writes of its own.
pub fn cheapest(world: &World, ask: impl Fn() -> Counts) -> Counts {
    let one = || {
        let before = ask();
        life(world);
        cost(&before, &ask())
    };
    let (first, second) = (one(), one());
    let both = |(name, count): (String, u64)| second.get(&name).map(|other| (name, count.min(*other)));
    first.into_iter().filter_map(both).collect()
}

/// How many of them are writes to the API.
pub fn writes(all: &Counts) -> u64 {
    all.iter().filter(|(name, _)| name.starts_with("api")).map(|(_, count)| count).sum()
}
