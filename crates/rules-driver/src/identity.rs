//! The answers of the identity service, and what the node says of itself.

use csi::v1::{GetPluginInfoResponse, NodeGetInfoResponse, ProbeResponse};

use crate::config::Config;
use crate::create::here;
use crate::facts::Facts;
use crate::feature::Feature;

pub fn info(config: &Config) -> GetPluginInfoResponse {
    GetPluginInfoResponse { name: config.name.clone(), vendor_version: config.version.clone(), ..Default::default() }
}

/// The driver is ready when it has loaded its records: before that, it knows nothing about any volume.
pub fn probe(facts: &Facts) -> ProbeResponse {
    ProbeResponse { ready: Some(facts.loaded()) }
}

pub fn node_info(config: &Config) -> NodeGetInfoResponse {
    NodeGetInfoResponse {
        node_id: config.node_id.clone(),
        max_volumes_per_node: config.max_volumes_per_node.into(),
        accessible_topology: config.offers(Feature::Topology).then(|| here(config)),
    }
}
