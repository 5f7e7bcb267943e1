//! What users are told (sidecars 2.13).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, names};
use control::{Action as _, Decision, EventType, Narrate, Outcome, Refusal, Reply, Rules};
use csi::Code;
use serde_json::json;

use super::world::World;
use crate::{OwnNode, Provisioner};

/// What is told on the way to the end of the claim's work: of every beginning and end.
fn told(world: &mut World) -> Vec<String> {
    let mut told = Vec::new();
    while let Decision::Do(action, _) = world.decide(&world.key()) {
        let news = action.news();
        told.extend(news.begun.into_iter().chain(news.done).map(|(reason, _)| reason.to_string()));
        world.run_for(1);
    }
    told
}

fn rest_event(world: &World) -> Option<(EventType, &'static str)> {
    let (key, local) = (world.key(), world.engine.local());
    let view = Provisioner::view(&key, &world.cache, local);
    match Provisioner::decide(world.now, &view, &world.engine.memory(&key)) {
        Decision::Rest(why) => Provisioner::rest_event(&world.key(), &why),
        other @ (Decision::Wait(..) | Decision::Do(..) | Decision::Either(..)) => panic!("{other:?}"),
    }
}

// Sidecars 7.1: two events, no more than upstream has.
#[test]
fn a_volume_is_told_of_when_it_is_begun_and_when_it_is_there() {
    let mut world = World::asked();
    assert_eq!(told(&mut world), ["Provisioning", "ProvisioningSucceeded"]);
    assert_eq!(rest_event(&world), None);
}

#[test]
fn whatever_fails_on_the_way_has_the_reason_users_know() {
    let mut world = World::asked();
    world.driver.answer = Some(Outcome::Refused(Refusal::Driver(Code::Internal, "no".into())));
    while let Decision::Do(action, _) = world.decide(&world.key()) {
        assert_eq!(action.news().failed, Some("ProvisioningFailed"), "{action:?}");
        world.run_for(1);
    }
    let secret = api::SecretReference { namespace: "n".into(), name: "s".into() };
    let read = |needed| crate::Action::ReadSecret { uid: "u".into(), secret: secret.clone(), needed };
    let gone = Outcome::Done(Reply::Gone);
    assert_eq!(read(true).attempt(&gone).failure(), Some("secret n/s does not exist; create it"));
    assert_eq!(read(false).attempt(&gone).failure(), None, "P33: what can do without it does");
}

// P7, P74: what is in the way is told; what is somebody else's business is not, except who fills a volume.
#[test]
fn what_is_in_the_way_is_told_and_what_is_not_ours_is_not() {
    let failed = Some((EventType::Warning, "ProvisioningFailed"));
    for (class, claim, told) in [
        (json!({ "parameters": { "csi.storage.k8s.io/shape": "round" } }), json!({}), failed),
        (json!({}), json!({ "spec": { "selector": { "matchLabels": { "a": "b" } } } }), failed),
        (json!({ "volumeBindingMode": "WaitForFirstConsumer" }), json!({}), None),
        (json!({ "provisioner": "e" }), json!({}), None),
        (
            json!({}),
            json!({ "spec": { "dataSourceRef": { "apiGroup": "x", "kind": "Book", "name": "b" } } }),
            Some((EventType::Normal, "Provisioning")),
        ),
    ] {
        let world = World::new().able().class("fast", "d", class.clone()).with_claim("data", claim);
        assert_eq!(rest_event(&world), told, "{class}");
    }
}

// P93, P94: a node says nothing about a claim that may only be elsewhere.
#[test]
fn a_node_is_silent_about_what_may_not_be_on_it() {
    const ZONE: &str = "topology.d/zone";
    let own = OwnNode {
        name: "n0".into(),
        segments: [(ZONE.into(), "a".into())].into(),
        immediate_binding: true,
        ..OwnNode::default()
    };
    let allowed = json!([{ "matchLabelExpressions": [{ "key": ZONE, "values": ["b"] }] }]);
    let world = World::new()
        .able()
        .with(|settings| (settings.node, settings.strict_topology) = (Some(own), true))
        .class("fast", "d", json!({ "allowedTopologies": allowed }))
        .with_claim("data", json!({}));
    assert_eq!(world.why_claim(), "NotAllowedHere");
    assert_eq!(rest_event(&world), None);
    assert!(
        world.get(Kind::PersistentVolumeClaim, "data").unwrap()["metadata"]["annotations"][names::SELECTED_NODE]
            .is_null()
    );
}
