//! Wrong rules about the gates of in-tree plugins, beside those of the laws' own table.

use crate::page;
use prove_world::worlds::node::gates::{self, PLUGIN, controllers};
use prove_world::{Budget, Law, Scenario, Seat};
use rules_attachdetach::AttachDetach;
use rules_translate::{Migration, Phase};

/// S4-39: what the attach/detach controller asked for before the gate was switched is not attached after it.
#[test]
fn an_attacher_that_keeps_its_gate_is_refuted() {
    let start = || {
        let on = Seat::fixed(|_, _| gates::attacher_local(Migration::OFF.with(PLUGIN, Phase::On)));
        controllers::with_switch(gates::start_with::<AttachDetach>(gates::gate(), on))
    };
    let scenario =
        Scenario { name: "controllers-gate, with an attacher that keeps it", start, ..controllers::SCENARIO };
    let report = page::refuted(&scenario, Budget::calm(1));
    let found = report.broken.as_ref().unwrap();
    assert_eq!(found.violation.law(), Law::GateObeyed, "{report}");
}
