//! The whole life in one world: its parts explored under any one fault, all of it walked through by seed.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod page;

use prove_world::worlds::life;
use prove_world::{Bounds, Budget, Law, Scenario, Violation, WALKED, explore, find, wander, wander_wide};

fn holds(name: &str, budget: Budget) {
    page::explored(find(name).unwrap(), budget);
}

// Reliability 1 to 8, 11, 16, 24 to 45: from a claim and a pod to a process, under any one fault.
#[test]
fn one_volume_comes_to_life_under_any_one_fault() {
    holds("life-one", Budget::troubled(0, 1, 0));
}

// Reliability 26, 37, 38, 42, 55: the pod or the claim is deleted, moved or grown, under any one fault.
#[test]
fn one_volume_is_used_up_moved_and_grown_under_any_one_fault() {
    holds("life-running", Budget::troubled(1, 1, 0));
}

// Reliability 11, 13: claim and pod are deleted and made again around the placing, under any one fault or any one
// delay.
#[test]
fn a_pod_is_placed_while_its_claim_comes_and_goes_under_a_fault_or_a_delay() {
    holds("life-placing", Budget::troubled(1, 1, 0));
    holds("life-placing", Budget::troubled(1, 0, 1));
}

// A sample; `make prove-nightly` takes many thousands.
#[test]
fn walks_through_the_whole_of_it_keep_the_laws() {
    let walks = wander(find("life").unwrap(), WALKED, 0..120);
    println!("{walks}");
    assert!(walks.broken.is_none() && walks.walks == 120, "{walks}");
}

#[test]
fn a_seed_walks_the_same_way_again_whoever_walks_it() {
    let life = find("life-placing").unwrap();
    let (alone, wide) = (wander(life, WALKED, 7..27), wander_wide(life, WALKED, 7..27, 3));
    assert_eq!((alone.walks, alone.steps), (20, wide.steps));
    assert!(alone.broken.is_none() && wide.broken.is_none() && wide.walks == 20);
    assert_eq!(wander_wide(life, WALKED, 7..7, 2).walks, 0);
}

// Whoever calls it a fault that a claim is there finds a walk that shows it, with the steps that it takes and no
// others.
#[test]
fn a_walk_that_breaks_a_law_is_told_with_its_seed_and_shortened() {
    let wrong = Scenario {
        rest: |world| {
            let name = world.claims().find(|claim| claim.metadata.is_deleting())?.metadata.name.clone();
            Some(Violation::ClaimLeft { claim: name })
        },
        ..life::PLACING
    };
    let walks = wander_wide(&wrong, WALKED, 0..200, 2);
    let (seed, broken) = walks.broken.as_ref().expect("a placed pod holds its claim at rest");
    assert_eq!(broken.violation.law(), Law::AsAsked);
    assert!(walks.to_string().contains(&format!("with seed {seed}, broken after")), "{walks}");
    assert!(broken.script.iter().any(|line| line == "user: delete claim late"), "{walks}");
    assert_eq!(broken.script.iter().filter(|line| line.starts_with("user")).count(), 1, "{walks}");
    let alone = wander(&wrong, WALKED, *seed..*seed + 1);
    assert_eq!(alone.broken.as_ref().map(|(seed, broken)| (seed, &broken.script)), Some((seed, &broken.script)));
    let shortest = explore(&wrong, &Bounds::of(Budget::calm(1)));
    assert!(broken.script.len() <= shortest.broken.unwrap().script.len() + 3, "{walks}");
}
