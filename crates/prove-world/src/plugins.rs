//! Drivers that register with a node's agent: each runs while its pod is there and listens at a socket of its own.
//!
//! A driver that ends takes its connections with it: a call under way to it is never carried out by the next one at its
//! path. Calls to one socket are carried out in the order in which they were sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use control::{Effect, Endpoint, Outcome, Refusal, Reply};
use csi::{Call, Code, Response, registration, v1};

use crate::cluster::POD_UID;
use crate::world::{Stepped, World};

/// The drivers of a node that register with its agent. Worlds without any have none of this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Plugins {
    /// The incarnation the agent is in; 0 in worlds in which nobody registers.
    pub agent: u64,
    /// Drivers by the path of their socket.
    pub running: BTreeMap<String, Plugin>,
    /// Sockets to which a call was under way when their driver ended.
    pub cut: BTreeSet<String>,
}

/// A driver that listens at a registration socket, in one of its lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Plugin {
    /// No two drivers share one, also not two at the same path.
    pub number: u64,
    /// What it is called in GetInfo.
    pub name: String,
    /// The version it speaks.
    pub version: String,
    /// What it calls the node.
    pub node_id: String,
    /// What it was last told, registered or not, and the incarnation of the agent that said so.
    pub told: Option<(bool, u64)>,
}

/// What a pod says of the driver in it.
pub(crate) const NAME: &str = "driver";
pub(crate) const VERSION: &str = "version";
pub(crate) const NODE_ID: &str = "node-id";

impl Plugins {
    /// The sockets of the drivers that this incarnation of the agent has told that they are registered, and of which
    /// it has not said the contrary since.
    pub(crate) fn registered(&self) -> impl Iterator<Item = (&String, &Plugin)> {
        self.running.iter().filter(|(_, plugin)| plugin.told == Some((true, self.agent)))
    }

    /// The driver at a socket does what it is asked.
    pub(crate) fn call(&mut self, socket: &str, call: &Call) -> Outcome {
        let agent = self.agent;
        let cut = self.cut.remove(socket);
        let Some(plugin) = self.running.get_mut(socket).filter(|_| !cut) else {
            return Outcome::Unknown("nobody listens any more".into());
        };
        let answer = match call {
            Call::GetInfo(_) => Response::GetInfo(registration::PluginInfo {
                r#type: "CSIPlugin".into(),
                name: plugin.name.clone(),
                endpoint: String::new(),
                supported_versions: vec![plugin.version.clone()],
            }),
            Call::NodeGetInfo(_) => {
                let node_id = plugin.node_id.clone();
                Response::NodeGetInfo(v1::NodeGetInfoResponse { node_id, ..v1::NodeGetInfoResponse::default() })
            }
            Call::NodeGetCapabilities(_) => Response::NodeGetCapabilities(v1::NodeGetCapabilitiesResponse::default()),
            Call::NotifyRegistrationStatus(status) => {
                plugin.told = Some((status.plugin_registered, agent));
                Response::NotifyRegistrationStatus(registration::RegistrationStatusResponse {})
            }
            other => {
                let text = format!("{} is not part of this world", other.method().name());
                return Outcome::Refused(Refusal::Driver(Code::Unimplemented, text));
            }
        };
        Outcome::Done(Reply::Csi(answer))
    }

    /// The agent is another from here on, and waits for no answer.
    pub(crate) fn agent_restarts(&mut self) {
        if self.agent > 0 {
            self.agent += 1;
            self.cut.clear();
        }
    }
}

/// The socket a call goes to.
fn socket(effect: &Effect) -> Option<&String> {
    match effect {
        Effect::Call { to: Endpoint::Socket(at), .. } => Some(at),
        Effect::Call { to: Endpoint::Driver(_), .. }
        | Effect::Read(_)
        | Effect::List { .. }
        | Effect::Token(_)
        | Effect::Write(_)
        | Effect::Host(_)
        | Effect::Nothing => None,
    }
}

impl World {
    /// A driver is still working on another call to its socket.
    pub(crate) fn is_asked(&self, at: &str) -> bool {
        self.late.iter().any(|late| socket(&late.intent.effect).is_some_and(|other| other == at))
    }

    /// The drivers whose pods are there.
    pub(crate) fn plugins_of_pods(&self) -> BTreeMap<String, Plugin> {
        let plugin = |pod: &api::Pod| {
            let said = |key: &str| pod.metadata.annotation(key).map(str::to_string);
            let number = pod.metadata.uid.trim_end_matches(POD_UID).parse().ok()?;
            let (name, version, node_id) = (said(NAME)?, said(VERSION)?, said(NODE_ID)?);
            let path = format!("/reg/{}.sock", pod.metadata.name);
            Some((path, Plugin { number, name, version, node_id, told: None }))
        };
        self.cluster.pods().filter_map(|pod| plugin(pod)).collect()
    }
}

impl Stepped {
    /// Drivers come and go with their pods, and the agent notices.
    pub(crate) fn drivers_follow(&mut self) {
        if self.world.truth.plugins.agent == 0 {
            return;
        }
        let wanted = self.world.plugins_of_pods();
        let same = |path: &String, plugin: &Plugin| wanted.get(path).is_some_and(|new| new.number == plugin.number);
        let running = self.world.truth.plugins.running.iter();
        let ended: BTreeSet<String> =
            running.filter(|(path, old)| !same(path, old)).map(|(path, _)| path.clone()).collect();
        let under_way =
            self.world.members.iter().flat_map(|member| (0..member.held()).map(|at| member.held_intent(at)));
        let cut = under_way.filter_map(|intent| socket(&intent.effect)).filter(|at| ended.contains(*at));
        let cut: Vec<String> = cut.cloned().collect();
        self.world.late.retain(|late| socket(&late.intent.effect).is_none_or(|at| !ended.contains(at)));
        let plugins = &mut Arc::make_mut(&mut self.world.truth).plugins;
        plugins.cut.extend(cut);
        plugins.running.retain(|path, _| !ended.contains(path));
        for (path, plugin) in wanted {
            plugins.running.entry(path).or_insert(plugin);
        }
        let nodes: BTreeSet<String> = self.world.members.iter().map(|member| member.node().to_string()).collect();
        nodes.iter().for_each(|node| self.refresh(node));
    }
}
