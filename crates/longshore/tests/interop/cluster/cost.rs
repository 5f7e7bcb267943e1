//! One volume's life costs on the real kube-apiserver what it costs under `longshore up`.

use std::time::Duration;

use prove_cluster::{ControlPlane, Options};

use super::plane::define;
use crate::cost::{cheapest, counts_at, free_address, parse, sum, writes};
use crate::world::World;

/// Pods may only be created where there is an account for them; nothing else of theirs runs.
const CONTROLLERS: &str = "serviceaccount-controller";

#[test]
fn a_life_costs_on_kube_apiserver_what_it_costs_under_up() {
    let up = World::all_in_one("together");
    // Longer than `up` waits for the driver that it expects: one that registered must not be served twice.
    std::thread::sleep(Duration::from_millis(2500));
    let in_one = cheapest(&up, || parse(&up.api.ask("GET", "/longshore/v1/counts", "", "").unwrap()));
    drop(up);
    assert!(writes(&in_one) > 20, "a life cannot be that cheap: {in_one:?}");

    let options = Options { controller_manager: true, controllers: CONTROLLERS.into(), ..Options::default() };
    let control = ControlPlane::start(options).unwrap();
    define(&control);
    let endpoints: [String; 3] = std::array::from_fn(|_| free_address());
    let world = World::on("real", control.kubeconfig(), endpoints.each_ref().map(String::as_str));
    let on_real = cheapest(&world, || sum(&endpoints.each_ref().map(|endpoint| counts_at(endpoint))));
    assert_eq!(on_real, in_one, "{} and {} writes\n{}", writes(&on_real), writes(&in_one), world.told());
}
