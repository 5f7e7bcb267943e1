//! Wrong rules about nodes that fall silent. The laws are those of every world: what a living node has mounted is
//! neither taken off its list nor detached, and a volume for one node is attached to one, whoever has it mounted.

use crate::page;
use crate::planted::{attacher, none};
use crate::wrong::{Led, SaysDetached, TrustsTaint};
use prove_world::worlds::node::dead::{self, Patient};
use prove_world::{Budget, Law, Scenario};
use rules_attacher::Attacher;

/// AD-17, AD-19: upstream takes the volumes of a node that has the taint, whatever the node does.
#[test]
fn taking_a_volume_from_a_node_that_renews_its_lease_is_refuted() {
    let start = || dead::start::<Led<TrustsTaint>, Attacher>(none(), attacher());
    let scenario = Scenario { name: "node-dead, trusting the taint", start, ..dead::SCENARIO };
    let report = page::refuted(&scenario, Budget::calm(1));
    let found = report.broken.as_ref().unwrap();
    assert_eq!(found.violation.law(), Law::MountedIsInUse, "{report}");
    // Past that symptom: it is torn off the node under the pod's feet.
    let scenario = Scenario { waives: &[Law::MountedIsInUse], ..scenario };
    let report = page::refuted(&scenario, Budget::calm(1));
    let found = report.broken.as_ref().unwrap();
    assert_eq!(found.violation.law(), Law::NoDetachWhileMounted, "{report}");
}

/// The fence: without the driver's word that a volume is detached, a node that comes back writes beside another.
#[test]
fn giving_a_volume_of_a_silent_node_away_without_detaching_it_is_refuted() {
    let start = || dead::start::<Patient, Led<SaysDetached>>(none(), attacher());
    let name = "node-dead, saying detached";
    let scenario = Scenario { name, start, waives: &[Law::FinalizerAfterDetach], ..dead::SCENARIO };
    let report = page::refuted(&scenario, Budget::calm(2));
    let found = report.broken.as_ref().unwrap();
    assert_eq!(found.violation.law(), Law::OneNode, "{report}");
}
