//! The Lease by which others see that a node lives, as kubelet keeps it: a small object of its own, so that the Node
//! need not be written every few seconds.

use alloc::format;

use api::{Kind, Lease, ObjectKey, ObjectRef, Patch, Precondition, Time, Value, Write};
use control::{Decision, Effect, Timestamp, Why};
use serde_json::json;

use crate::action::Action;
use crate::view::LeaseView;
use crate::{NODE_LEASES, Reason};

/// How long others may believe that the node lives, unless somebody says otherwise: as kubelet does.
pub(crate) const DURATION_SECONDS: u32 = 40;

/// How often it is renewed, as kubelet does: four times while it counts.
fn renew_millis(seconds: u32) -> u64 {
    u64::from(seconds) * 250
}

/// Where a node's Lease is.
pub(crate) fn key_of(node: &str) -> ObjectKey {
    ObjectKey::new(NODE_LEASES, node)
}

pub(crate) fn decide(now: Timestamp, view: &LeaseView) -> Decision<Action, Reason> {
    let name = &view.name;
    let Some(node) = &view.node else {
        let text = format!("the Lease of node {name} waits until the node is in the API");
        return Decision::Rest(Why::waiting(Reason::NodeMissing, text));
    };
    let at = Time::micro_from_unix_millis(now.0);
    let Some(lease) = &view.lease else {
        let (node_uid, seconds) = (node.metadata.uid.clone(), view.seconds);
        let action = Action::CreateLease { name: name.clone(), node_uid, seconds, at };
        return Decision::Do(action, Why::waiting(Reason::LeaseMissing, format!("node {name} has no Lease yet")));
    };
    let every = renew_millis(view.seconds);
    match renewed(lease, name, view.seconds).map(|renewed| Timestamp(renewed).after_millis(every)) {
        // A moment further away is of a clock that was wrong.
        Some(due) if now < due && due <= now.after_millis(every) => {
            Decision::Wait(due, Why::settled(Reason::LeaseHeld, format!("the Lease shows that node {name} lives")))
        }
        Some(_) | None => {
            let only_if = Precondition::unchanged(&lease.metadata);
            let why = Why::settled(Reason::LeaseDue, format!("the Lease of node {name} is renewed"));
            Decision::Do(Action::RenewLease { name: name.clone(), only_if, seconds: view.seconds, at }, why)
        }
    }
}

/// When the Lease was last renewed by this node.
fn renewed(lease: &Lease, name: &str, seconds: u32) -> Option<u64> {
    let ours = lease.spec.holder_identity.as_deref() == Some(name);
    let lasting = lease.spec.lease_duration_seconds == Some(seconds);
    lease.spec.renew_time.as_ref().filter(|_| ours && lasting)?.unix_millis()
}

fn spec(name: &str, seconds: u32, at: &Time) -> Value {
    json!({ "holderIdentity": name, "leaseDurationSeconds": seconds, "renewTime": at })
}

fn target(name: &str) -> ObjectRef {
    ObjectRef { kind: Kind::Lease, key: key_of(name) }
}

/// The Lease goes with its Node.
pub(crate) fn create(name: &str, node_uid: &str, seconds: u32, at: &Time) -> Effect {
    let owner = json!([{ "apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid }]);
    let metadata = json!({ "name": name, "namespace": NODE_LEASES, "ownerReferences": owner });
    let body = json!({
        "apiVersion": Kind::Lease.api_version(), "kind": "Lease", "metadata": metadata, "spec": spec(name, seconds, at),
    });
    Effect::Write(Write::Create { target: target(name), body })
}

pub(crate) fn renew(name: &str, only_if: &Precondition, seconds: u32, at: &Time) -> Effect {
    let patch = Patch::merge(only_if.clone(), json!({ "spec": spec(name, seconds, at) }));
    Effect::Write(Write::Patch { target: target(name), subresource: None, patch })
}

/// The node that a Lease is about, if it is about one.
pub(crate) fn node_of(lease: &Lease) -> Option<&str> {
    (lease.metadata.namespace == NODE_LEASES).then_some(lease.metadata.name.as_str())
}
