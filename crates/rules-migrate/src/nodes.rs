//! What the nodes say about one plugin.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use api::Kind;
use rules_translate::{Migration, Phase, Plugin, Served};
use serde::Serialize;

use crate::Survey;

/// What the nodes say about one plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NodesSay {
    /// No node was seen, so nothing is known of any.
    Nothing,
    /// What was seen.
    This(NodesKnown),
}

/// Nodes by what they say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodesKnown {
    /// All of them.
    pub all: Vec<String>,
    /// Those whose CSINode lists the plugin: they leave its volumes to the driver.
    pub migrated: Vec<String>,
    /// Those that do not: their kubelets serve the volumes with the plugin.
    pub lagging: Vec<String>,
    /// Those on which the driver is not registered.
    pub without_driver: Vec<String>,
    /// Those without a CSINode.
    pub without_csi_node: Vec<String>,
    /// How many pods on each use volumes of the plugin; nodes without such pods are left out.
    pub pods: BTreeMap<String, usize>,
}

impl NodesKnown {
    /// Every node leaves the plugin's volumes to the driver.
    pub fn all_migrated(&self) -> bool {
        self.lagging.is_empty() && !self.all.is_empty()
    }
}

/// What the nodes say about a plugin. CSINodes are what speaks for nodes: a dump with Nodes alone says nothing.
pub(crate) fn say(survey: &Survey, plugin: Plugin) -> NodesSay {
    if survey.nodes.is_empty() || !survey.knows(Kind::CSINode) {
        return NodesSay::Nothing;
    }
    // The table of S4-32, asked with the gate on, tells what the node says.
    let asked = Migration::OFF.with(plugin, Phase::On);
    let mut known = NodesKnown::default();
    for (name, node) in &survey.nodes {
        known.all.push(name.clone());
        match asked.served_by(plugin, node.says()) {
            Served::ByDriver => known.migrated.push(name.clone()),
            Served::ByPlugin | Served::Disputed => known.lagging.push(name.clone()),
        }
        if node.csi.is_none() {
            known.without_csi_node.push(name.clone());
        }
        if !node.has(plugin.driver()) {
            known.without_driver.push(name.clone());
        }
    }
    for pod in &survey.pods {
        let of_claim = |claim: &String| survey.volume_of.get(&(pod.namespace.clone(), claim.clone())) == Some(&plugin);
        if pod.own.contains(&plugin) || pod.claims.iter().any(of_claim) {
            *known.pods.entry(pod.node.clone()).or_default() += 1;
        }
    }
    NodesSay::This(known)
}
