use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Condition, CsiNodeDriver, Kind, ObjectRef, Patch, Precondition, Subresource, Time, Write, names};
use control::{Attempt, Effect, Endpoint, Lane, Outcome, Permission, Timestamp};
use csi::{Call, registration, v1};
use serde_json::json;

use crate::lease;
use crate::limit::LimitAsked;
use crate::local::MachineFacts;
use crate::migrated;

/// What the registrar does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Make the Node object.
    CreateNode {
        name: String,
        /// The incarnation it is to carry.
        incarnation: String,
        at: Time,
        /// What the machine is.
        machine: Option<MachineFacts>,
    },
    /// Set annotations and labels of the Node.
    DescribeNode {
        name: String,
        /// The object as seen.
        only_if: Precondition,
        /// Annotations to set, or to remove.
        annotations: BTreeMap<String, Option<String>>,
        /// Labels to set.
        labels: BTreeMap<String, String>,
    },
    /// Say that the node is ready.
    SetReady {
        name: String,
        /// The object as seen.
        only_if: Precondition,
        /// All conditions, the Ready one among them.
        conditions: Vec<Condition>,
        /// What the machine is.
        machine: Option<MachineFacts>,
    },
    /// Say that the node is not ready before its CSINode is put right.
    SetNotReady {
        name: String,
        /// The object as seen.
        only_if: Precondition,
        /// All conditions, the Ready one among them.
        conditions: Vec<Condition>,
    },
    /// Make the Lease by which the node shows that it lives.
    CreateLease {
        /// Its name, which is the node's.
        name: String,
        /// The Node that owns it.
        node_uid: String,
        /// For how long it counts.
        seconds: u32,
        at: Time,
    },
    /// Say in the Lease that the node lived at this time.
    RenewLease { name: String, only_if: Precondition, seconds: u32, at: Time },
    /// Make the CSINode object.
    CreateCsiNode {
        /// Its name, which is the node's.
        name: String,
        /// The Node that owns it.
        node_uid: String,
    },
    /// Delete a CSINode object that belongs to an earlier Node.
    DeleteCsiNode {
        name: String,
        /// The object as seen.
        only_if: Precondition,
    },
    /// List the in-tree plugins that the node has left to drivers; `None` takes the list away.
    ListMigrated { name: String, only_if: Precondition, plugins: Option<String> },
    /// Set the list of drivers to one that has the driver at this socket.
    ListDriver {
        at: At,
        /// The node's name.
        name: String,
        /// The object as seen.
        only_if: Precondition,
        /// The whole list.
        drivers: Vec<CsiNodeDriver>,
        /// How many times a driver has been listed then.
        listings: u64,
    },
    /// Set the list of drivers to one that has one less.
    SetDrivers {
        /// The node's name.
        name: String,
        /// The object as seen.
        only_if: Precondition,
        /// The whole list.
        drivers: Vec<CsiNodeDriver>,
    },
    /// Ask a registration socket who it is.
    AskWho(At),
    /// Ask a registration socket what else there is to know about the driver.
    AskOptions(At),
    /// Ask the driver where it is.
    AskPlace(At, String),
    /// Ask the driver what it can do.
    AskAbilities(At, String),
    /// Ask the driver again how many volumes the node takes.
    AskLimit {
        at: At,
        /// The driver's own socket.
        socket: String,
        /// What is known of it once it was asked, whatever it answers.
        asked: LimitAsked,
    },
    /// Give the driver's name to this socket, unless another has it.
    TakeName(At),
    /// Tell the driver that it is registered.
    Welcome(At),
    /// Tell the driver why it is not registered.
    TurnAway {
        at: At,
        problem: String,
        /// When that was decided.
        now: Timestamp,
    },
}

/// A registration socket, and which one of those that were at its path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct At {
    pub path: String,
    pub incarnation: u64,
}

impl control::Action for Action {
    fn name(&self) -> &'static str {
        match self {
            Action::CreateNode { .. } => "CreateNode",
            Action::DescribeNode { .. } => "DescribeNode",
            Action::SetReady { .. } => "SetReady",
            Action::SetNotReady { .. } => "SetNotReady",
            Action::CreateLease { .. } => "CreateLease",
            Action::RenewLease { .. } => "RenewLease",
            Action::CreateCsiNode { .. } => "CreateCSINode",
            Action::DeleteCsiNode { .. } => "DeleteCSINode",
            Action::ListMigrated { .. } => "ListMigrated",
            Action::ListDriver { .. } => "ListDriver",
            Action::SetDrivers { .. } => "SetDrivers",
            Action::AskWho(_) => "AskWho",
            Action::AskOptions(_) => "AskOptions",
            Action::AskPlace(..) => "AskPlace",
            Action::AskAbilities(..) => "AskAbilities",
            Action::AskLimit { .. } => "AskLimit",
            Action::TakeName(_) => "TakeName",
            Action::Welcome(_) => "Welcome",
            Action::TurnAway { .. } => "TurnAway",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Action::CreateNode { name, incarnation, at, machine } => {
                create_node(name, incarnation, at, machine.as_ref())
            }
            Action::CreateLease { name, node_uid, seconds, at } => lease::create(name, node_uid, *seconds, at),
            Action::RenewLease { name, only_if, seconds, at } => lease::renew(name, only_if, *seconds, at),
            Action::DescribeNode { name, only_if, annotations, labels } => {
                let body = json!({ "metadata": { "annotations": annotations, "labels": labels } });
                patch(Kind::Node, name, None, only_if, body)
            }
            Action::SetReady { name, only_if, conditions, machine } => {
                let body = json!({ "status": status(conditions, machine.as_ref()) });
                patch(Kind::Node, name, Some(Subresource::Status), only_if, body)
            }
            Action::SetNotReady { name, only_if, conditions } => {
                let body = json!({ "status": status(conditions, None) });
                patch(Kind::Node, name, Some(Subresource::Status), only_if, body)
            }
            Action::CreateCsiNode { name, node_uid } => create_csi_node(name, node_uid),
            Action::DeleteCsiNode { name, only_if } => Effect::Write(Write::Delete {
                target: ObjectRef::cluster(Kind::CSINode, name.clone()),
                only_if: only_if.clone(),
                grace_seconds: None,
            }),
            Action::ListMigrated { name, only_if, plugins } => migrated::list(name, only_if, plugins.as_ref()),
            Action::ListDriver { name, only_if, drivers, listings, .. } => {
                let annotations = json!({ names::DRIVER_LISTINGS: format!("{listings}") });
                let body = json!({ "metadata": { "annotations": annotations }, "spec": { "drivers": drivers } });
                patch(Kind::CSINode, name, None, only_if, body)
            }
            Action::SetDrivers { name, only_if, drivers } => {
                patch(Kind::CSINode, name, None, only_if, json!({ "spec": { "drivers": drivers } }))
            }
            Action::AskWho(at) => call(&at.path, Call::GetInfo(registration::InfoRequest {})),
            Action::AskOptions(at) => call(&at.path, Call::GetCSIDriverInfo(registration::CsiDriverInfoRequest {})),
            Action::AskPlace(_, socket) | Action::AskLimit { socket, .. } => {
                call(socket, Call::NodeGetInfo(v1::NodeGetInfoRequest {}))
            }
            Action::AskAbilities(_, socket) => {
                call(socket, Call::NodeGetCapabilities(v1::NodeGetCapabilitiesRequest {}))
            }
            Action::TakeName(_) => Effect::Nothing,
            Action::Welcome(at) => notify(at, true, ""),
            Action::TurnAway { at, problem, .. } => notify(at, false, problem),
        }
    }

    fn attempt(&self, got: &Outcome) -> Attempt {
        match (self, got) {
            // S1-10: no is an answer.
            (Action::AskOptions(_), Outcome::Refused(_)) => Attempt::Succeeded,
            (_, got) => Attempt::of(got),
        }
    }

    /// Failures of an earlier socket at the same path delay nobody.
    fn lane(&self) -> Lane<'_> {
        let subject = self.at().map(|at| format!("{}/", at.incarnation));
        // A driver that does not say its limit again is registered all the same.
        let number = u8::from(matches!(self, Action::AskLimit { .. }));
        Lane { number, subject: subject.unwrap_or_default().into() }
    }

    fn permissions() -> &'static [Permission] {
        const ALL: &[Permission] = &[
            Permission::new(Kind::Node, "", "create"),
            Permission::new(Kind::Node, "", "patch"),
            Permission::new(Kind::Node, "status", "patch"),
            Permission::new(Kind::Lease, "", "create"),
            Permission::new(Kind::Lease, "", "patch"),
            Permission::new(Kind::CSINode, "", "create"),
            Permission::new(Kind::CSINode, "", "patch"),
            Permission::new(Kind::CSINode, "", "delete"),
        ];
        ALL
    }
}

/// The part of a Node's status that the agent writes.
fn status(conditions: &[Condition], machine: Option<&MachineFacts>) -> api::Value {
    let mut status = json!({ "conditions": conditions });
    if let Some(machine) = machine {
        status["nodeInfo"] = json!(machine.info);
        status["addresses"] = json!(machine.addresses);
        status["capacity"] = json!(machine.capacity);
        status["allocatable"] = json!(machine.allocatable);
    }
    status
}

fn create_node(name: &str, incarnation: &str, at: &Time, machine: Option<&MachineFacts>) -> Effect {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": { names::HOSTNAME_LABEL: name },
            "annotations": { names::CONTROLLER_MANAGED_ATTACH: "true", names::AGENT_INCARNATION: incarnation },
        },
        "status": status(&[before_csi_node(at)], machine),
    });
    Effect::Write(Write::Create { target: ObjectRef::cluster(Kind::Node, name), body })
}

/// The condition of a node whose agent works, since this moment if it did before.
pub fn ready(at: &Time, since: Option<Time>) -> Condition {
    Condition {
        r#type: "Ready".into(),
        status: "True".into(),
        reason: "AgentReady".into(),
        message: "the node agent is at work".into(),
        last_heartbeat_time: Some(at.clone()),
        last_transition_time: Some(since.unwrap_or_else(|| at.clone())),
    }
}

/// The condition of a node that is not ready since this moment.
fn not_ready(at: &Time, reason: &str, message: &str) -> Condition {
    Condition { status: "False".into(), reason: reason.into(), message: message.into(), ..ready(at, None) }
}

/// KL-24: a node is not ready before its CSINode is there, or pods could be placed that its drivers cannot serve.
fn before_csi_node(at: &Time) -> Condition {
    not_ready(at, "CSINodeMissing", "the CSINode object of this node is not there yet")
}

/// S4-31: nor before its CSINode says which plugins it leaves to drivers, or volumes could be attached for its pods in
/// the way in which it does not mount them.
pub fn before_list(at: &Time) -> Condition {
    let message = "the CSINode object of this node does not say yet which in-tree plugins the node leaves to drivers";
    not_ready(at, "MigratedPluginsNotListed", message)
}

fn create_csi_node(name: &str, node_uid: &str) -> Effect {
    let body = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "name": name,
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid }],
        },
        "spec": { "drivers": [] },
    });
    Effect::Write(Write::Create { target: ObjectRef::cluster(Kind::CSINode, name), body })
}

pub(crate) fn patch(
    kind: Kind,
    name: &str,
    subresource: Option<Subresource>,
    only_if: &Precondition,
    body: serde_json::Value,
) -> Effect {
    let target = ObjectRef::cluster(kind, name);
    Effect::Write(Write::Patch { target, subresource, patch: Patch::merge(only_if.clone(), body) })
}

fn call(socket: &str, call: Call) -> Effect {
    Effect::Call { to: Endpoint::Socket(socket.into()), call }
}

fn notify(at: &At, plugin_registered: bool, error: &str) -> Effect {
    let status = registration::RegistrationStatus { plugin_registered, error: error.into() };
    call(&at.path, Call::NotifyRegistrationStatus(status))
}

impl Action {
    /// The socket it is about.
    pub(crate) fn at(&self) -> Option<&At> {
        match self {
            Action::AskWho(at)
            | Action::AskOptions(at)
            | Action::AskPlace(at, _)
            | Action::AskAbilities(at, _)
            | Action::AskLimit { at, .. }
            | Action::ListDriver { at, .. }
            | Action::TakeName(at)
            | Action::Welcome(at)
            | Action::TurnAway { at, .. } => Some(at),
            Action::CreateNode { .. }
            | Action::DescribeNode { .. }
            | Action::SetReady { .. }
            | Action::SetNotReady { .. }
            | Action::CreateLease { .. }
            | Action::RenewLease { .. }
            | Action::CreateCsiNode { .. }
            | Action::DeleteCsiNode { .. }
            | Action::ListMigrated { .. }
            | Action::SetDrivers { .. } => None,
        }
    }
}
