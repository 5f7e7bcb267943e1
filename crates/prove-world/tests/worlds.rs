//! The rules as they are keep every law in every state of the small worlds, and on walks through larger ones.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod page;

use prove_world::{Budget, find, run, wander, worlds};

/// What the tests explore. `make prove` goes further in each of these worlds.
const TESTED: [(&str, Budget); 45] = [
    ("attach", Budget::troubled(1, 1, 0)),
    ("attach-reported", Budget::troubled(1, 0, 1)),
    ("attach-forced", Budget::calm(2)),
    ("controllers-gate", Budget::troubled(1, 1, 0)),
    ("controllers-gate", Budget::calm(2)),
    ("controllers-gate-late", Budget::troubled(2, 0, 1)),
    ("copy", Budget::troubled(1, 1, 0)),
    ("copy", Budget::troubled(1, 0, 1)),
    ("copy-on-claim", Budget::troubled(1, 1, 0)),
    ("copy-on-claim", Budget::troubled(1, 0, 1)),
    ("life-one", Budget::troubled(0, 1, 0)),
    ("life-running", Budget::troubled(1, 1, 0)),
    ("life-placing", Budget::troubled(1, 1, 0)),
    ("life-placing", Budget::troubled(1, 0, 1)),
    ("node", Budget::troubled(0, 1, 0)),
    ("node-one-pod", Budget::troubled(0, 1, 0)),
    ("node-block", Budget::troubled(0, 1, 0)),
    ("node-secret", Budget::troubled(0, 1, 0)),
    ("node-inline", Budget::troubled(1, 1, 0)),
    ("node-tidy", Budget::calm(2)),
    ("node-growth", Budget::calm(2)),
    ("node-growth", Budget::troubled(1, 1, 0)),
    ("node-growth-left", Budget::calm(2)),
    ("node-unreadable", Budget::troubled(1, 1, 1)),
    ("node-dead", Budget::calm(2)),
    ("node-back", Budget::calm(2)),
    ("node-evicted", Budget::calm(2)),
    ("node-evicted", Budget::troubled(1, 1, 0)),
    ("node-gates", Budget::troubled(1, 1, 0)),
    ("node-gates-held", Budget::troubled(1, 1, 0)),
    ("node-gates-held", Budget::troubled(1, 0, 1)),
    ("node-gates-switched", Budget::troubled(2, 0, 1)),
    ("node-lost", Budget::troubled(2, 1, 1)),
    ("protect", Budget::troubled(3, 1, 1)),
    ("provision", Budget::troubled(1, 1, 1)),
    ("provision-on-claim", Budget::troubled(1, 1, 1)),
    ("reclaim", Budget::troubled(2, 0, 2)),
    ("reclaim", Budget::troubled(1, 1, 1)),
    ("register", Budget::troubled(1, 1, 0)),
    ("register", Budget::troubled(2, 0, 1)),
    ("register-in-use", Budget::troubled(1, 1, 0)),
    ("register-in-use", Budget::troubled(2, 0, 1)),
    ("resize", Budget::troubled(1, 1, 1)),
    ("resize", Budget::troubled(2, 1, 0)),
    ("store", Budget::troubled(1, 1, 1)),
];

/// `tests/life.rs` explores those of `life`.
fn holds(name: &str, budget: Budget) {
    assert!(TESTED.contains(&(name, budget)), "{name} with {budget} is missing in the table");
    page::explored(find(name).unwrap(), budget);
}

#[test]
fn the_page_of_worlds_is_about_these_worlds() {
    for (scenario, bounds) in worlds() {
        page::row(page::WORLDS, &[scenario.name], &[scenario.about], None);
        let wanted = format!("| {} | {} |", scenario.name, page::said(&bounds.budget));
        let proved = page::rows(page::PROVED);
        assert!(proved.iter().any(|row| row.starts_with(&wanted)), "docs/worlds.md does not tell of {wanted}");
    }
    assert_eq!(page::rows(page::WORLDS).len(), worlds().len());
    assert_eq!(page::rows(page::PROVED).len(), worlds().len());
    assert_eq!(page::rows(page::TESTED).len(), TESTED.len());
}

#[test]
fn prove_goes_further_than_the_tests() {
    for (scenario, bounds) in worlds() {
        let tested: Vec<_> = TESTED.iter().filter(|(name, _)| *name == scenario.name).collect();
        assert!(!tested.is_empty(), "{} is not tested", scenario.name);
        for (name, budget) in tested {
            assert!(bounds.budget.covers(budget) && bounds.budget != *budget, "{name}: {budget}");
        }
    }
}

fn walks(name: &str, budget: Budget, seeds: u64) {
    let scenario = find(name).unwrap();
    let walks = wander(scenario, budget, 0..seeds);
    println!("{walks}");
    assert!(walks.broken.is_none(), "{walks}");
}

// Reliability 24 to 34, 39 to 49, 114: any one fault while a pod moves.
#[test]
fn a_volume_moves_between_nodes_under_any_one_fault() {
    holds("attach", Budget::troubled(1, 1, 0));
}

// Pods deleted by force, with nothing else going wrong.
#[test]
fn a_volume_moves_between_nodes_while_pods_are_deleted_by_force() {
    holds("attach-forced", Budget::calm(2));
}

// Reliability 28, 104, 105: any one stale cache or action held up while a pod moves.
#[test]
fn a_volume_moves_between_nodes_under_any_one_delay() {
    holds("attach-reported", Budget::troubled(1, 0, 1));
}

// Reliability 21, H8: a claim and the pod that uses it go in any order, with a fault and a watch that is behind.
#[test]
fn a_claim_stays_while_a_pod_uses_it_under_a_fault_and_a_delay() {
    holds("protect", Budget::troubled(3, 1, 1));
}

// Reliability 8, 105: what the user keeps is not deleted, however late the news and whichever look answers.
#[test]
fn a_volume_that_is_kept_before_the_last_look_is_not_deleted() {
    holds("reclaim", Budget::troubled(2, 0, 2));
    holds("reclaim", Budget::troubled(1, 1, 1));
}

// Reliability 1 to 10, 16: a fault and a delay at once while a claim comes and goes.
#[test]
fn a_claim_comes_and_goes_under_a_fault_and_a_delay() {
    holds("provision", Budget::troubled(1, 1, 1));
    holds("provision-on-claim", Budget::troubled(1, 1, 1));
}

// Reliability 12: a fault, or a delay, while a claim is copied and it or its copy is deleted.
#[test]
fn a_claim_is_copied_while_it_goes_under_any_one_fault() {
    holds("copy", Budget::troubled(1, 1, 0));
    holds("copy", Budget::troubled(1, 0, 1));
    holds("copy-on-claim", Budget::troubled(1, 1, 0));
    holds("copy-on-claim", Budget::troubled(1, 0, 1));
}

// Reliability 55 to 62, 69: a fault and a delay at once while a claim is asked to grow or to change.
#[test]
fn a_claim_grows_and_changes_under_a_fault_and_a_delay() {
    holds("resize", Budget::troubled(1, 1, 1));
}

// Reliability 58, 62: asked for too much and then for less, or for other attributes and back, under any one fault.
#[test]
fn a_user_thinks_twice_about_a_size_under_any_one_fault() {
    holds("resize", Budget::troubled(2, 1, 0));
}

// Reliability 63 to 65: two drivers of one name come and go under any one fault.
#[test]
fn one_of_two_drivers_of_a_name_is_registered_under_any_one_fault() {
    holds("register", Budget::troubled(1, 1, 0));
}

// Reliability 28, 104: writes of CSINode that were decided before a driver came back, and arrive after it.
#[test]
fn one_of_two_drivers_of_a_name_is_registered_whatever_is_late() {
    holds("register", Budget::troubled(2, 0, 1));
    holds("register-in-use", Budget::troubled(2, 0, 1));
}

// Reliability 64: the same while a volume is in use that only one of them can serve.
#[test]
fn a_driver_in_use_stays_registered_under_any_one_fault() {
    holds("register-in-use", Budget::troubled(1, 1, 0));
}

// S4-33 to S4-36: a node is switched to its plugin and back, and a pod moves, under any one fault.
#[test]
fn a_volume_is_served_by_plugin_or_driver_under_any_one_fault() {
    holds("node-gates", Budget::troubled(1, 1, 0));
    holds("node-gates-held", Budget::troubled(1, 1, 0));
}

// S4-32, S4-35, S4-36, S4-46: the controllers are started again with the gate off, and on, under any one fault, or any
// one delay: nothing is attached while it is off, and nothing is stuck once it is on.
#[test]
fn controllers_obey_the_gate_they_were_started_with() {
    holds("controllers-gate", Budget::troubled(1, 1, 0));
    holds("controllers-gate", Budget::calm(2));
    holds("controllers-gate-late", Budget::troubled(2, 0, 1));
}

// S4-33: a node is switched and gets a pod, with any one stale cache or action held up.
#[test]
fn a_volume_is_served_by_plugin_or_driver_under_any_one_delay() {
    holds("node-gates-held", Budget::troubled(1, 0, 1));
    holds("node-gates-switched", Budget::troubled(2, 0, 1));
}

// Reliability 37.
#[test]
fn what_was_attached_to_a_node_that_is_gone_is_detached_under_a_fault_and_a_delay() {
    holds("node-lost", Budget::troubled(2, 1, 1));
}

// Reliability 24 to 28, 37: a node falls silent with a volume mounted, its pod moves, and it is heard again. Nothing is
// taken from it while it renews its Lease, and there are never two that can write.
#[test]
fn a_volume_leaves_a_node_that_is_dead_and_no_other() {
    holds("node-dead", Budget::calm(2));
    holds("node-back", Budget::calm(2));
}

// The same, and nobody says that the node is silent: the lifecycle controller finds it out, under any one fault.
#[test]
fn a_node_that_falls_silent_is_noticed_and_forgiven() {
    holds("node-evicted", Budget::calm(2));
    holds("node-evicted", Budget::troubled(1, 1, 0));
}

// Reliability 39 to 49: any one operation of the machine or of the driver fails, hangs or is cut short, or power is
// lost, while two pods get one volume.
#[test]
fn two_pods_get_one_volume_on_a_machine_that_fails() {
    holds("node", Budget::troubled(0, 1, 0));
}

// Reliability 49: k/k#105536.
#[test]
fn nothing_is_left_of_pods_that_went() {
    holds("node-tidy", Budget::calm(2));
}

// Reliability 44.
#[test]
fn a_volume_for_one_pod_goes_to_one_on_a_machine_that_fails() {
    holds("node-one-pod", Budget::troubled(0, 1, 0));
}

// Reliability 53: a pod gets a raw device under any one fault.
#[test]
fn a_pod_gets_a_raw_device_on_a_machine_that_fails() {
    holds("node-block", Budget::troubled(0, 1, 0));
}

// A secret that is missing and comes, under any one fault.
#[test]
fn a_volume_waits_for_its_secret_on_a_machine_that_fails() {
    holds("node-secret", Budget::troubled(0, 1, 0));
}

// Reliability 54 to 59: the resizer and the real agent hand a growth over, with nothing going wrong.
#[test]
fn the_filesystem_of_a_running_pod_grows() {
    holds("node-growth", Budget::calm(2));
}

// Reliability 54 to 59: the same under any one fault.
#[test]
fn the_filesystem_of_a_running_pod_grows_on_a_machine_that_fails() {
    holds("node-growth", Budget::troubled(1, 1, 0));
}

// Reliability 56: a pod that goes while its filesystem grows leaves no claim that says less than there is.
#[test]
fn a_claim_is_told_of_a_growth_whose_pod_is_gone() {
    holds("node-growth-left", Budget::calm(2));
}

// Reliability 52, KL-103: a pod and its own volume come and go under any one fault.
#[test]
fn a_volume_of_a_pods_own_lives_as_long_as_its_pod() {
    holds("node-inline", Budget::troubled(1, 1, 0));
}

// Reliability 48.
#[test]
fn a_volume_whose_record_cannot_be_read_is_left_alone() {
    holds("node-unreadable", Budget::troubled(1, 1, 1));
}

// Reliability 85, 86, 99.
#[test]
fn the_store_keeps_its_laws_under_two_stale_writers() {
    holds("store", Budget::troubled(1, 1, 1));
}

#[test]
fn long_walks_with_much_trouble_keep_the_laws() {
    walks("attach", Budget::troubled(3, 3, 3), 100);
    walks("attach-forced", Budget::troubled(4, 2, 2), 100);
    walks("provision", Budget::troubled(3, 3, 3), 500);
    walks("provision-on-claim", Budget::troubled(3, 3, 3), 500);
    walks("copy", Budget::troubled(2, 3, 3), 300);
    walks("copy-on-claim", Budget::troubled(2, 3, 3), 300);
    walks("resize", Budget::troubled(4, 3, 3), 500);
    walks("node", Budget::troubled(2, 2, 2), 15);
    walks("node-block", Budget::troubled(3, 3, 3), 20);
    walks("node-secret", Budget::troubled(3, 3, 3), 20);
    walks("node-dead", Budget::troubled(4, 2, 0), 50);
    walks("node-back", Budget::troubled(3, 2, 0), 50);
    walks("node-evicted", Budget::troubled(3, 2, 1), 50);
    walks("node-lost", Budget::troubled(2, 3, 3), 300);
    walks("register", Budget::troubled(4, 1, 3), 300);
    walks("register-in-use", Budget::troubled(4, 1, 3), 300);
    walks("store", Budget::troubled(3, 3, 3), 500);
}

#[test]
fn a_world_that_is_too_large_says_so() {
    let error = run("life", None).unwrap_err();
    assert_eq!(error.to_string(), "life is too large to be enumerated; --walks 1000 walks through it");
    assert!(find("life").is_ok() && find("nowhere").is_err());
}

#[test]
fn a_world_nobody_knows_is_named_with_those_that_are_known() {
    let error = run("nowhere", None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no world called nowhere; choose one of attach, attach-reported, attach-forced, \
         controllers-gate, controllers-gate-late, copy, copy-on-claim, life-one, life-running, life-placing, node, \
         node-one-pod, node-block, node-secret, node-inline, node-tidy, node-growth, node-growth-left, \
         node-unreadable, node-dead, node-back, node-evicted, node-gates, node-gates-held, node-gates-switched, \
         node-lost, protect, provision, provision-on-claim, reclaim, register, register-in-use, resize, store"
    );
}
