//! Who the driver is and what it can do.

use alloc::vec;
use alloc::vec::Vec;

use csi::v1::controller_service_capability::{self as controller, rpc::Type as ControllerRpc};
use csi::v1::node_service_capability::{self as node, rpc::Type as NodeRpc};
use csi::v1::plugin_capability::{self as plugin, service::Type as Service};
use csi::v1::{
    ControllerGetCapabilitiesResponse, ControllerServiceCapability, GetPluginCapabilitiesResponse,
    GetPluginInfoResponse, NodeGetCapabilitiesResponse, NodeGetInfoResponse, NodeServiceCapability, PluginCapability,
    ProbeResponse,
};

use crate::config::Config;
use crate::facts::Facts;

pub fn info(config: &Config) -> GetPluginInfoResponse {
    GetPluginInfoResponse { name: config.name.clone(), vendor_version: config.version.clone(), ..Default::default() }
}

pub fn capabilities() -> GetPluginCapabilitiesResponse {
    let service = plugin::Service { r#type: Service::ControllerService.into() };
    let controller = PluginCapability { r#type: Some(plugin::Type::Service(service)) };
    GetPluginCapabilitiesResponse { capabilities: vec![controller] }
}

/// Ready when the records are loaded: before, nothing is known about any volume.
pub fn probe(facts: &Facts) -> ProbeResponse {
    ProbeResponse { ready: Some(facts.loaded()) }
}

pub fn controller_capabilities(config: &Config) -> ControllerGetCapabilitiesResponse {
    let mut offered = vec![ControllerRpc::CreateDeleteVolume, ControllerRpc::SingleNodeMultiWriter];
    if config.attach {
        offered.extend([ControllerRpc::PublishUnpublishVolume, ControllerRpc::PublishReadonly]);
    }
    let say = |rpc: ControllerRpc| ControllerServiceCapability {
        r#type: Some(controller::Type::Rpc(controller::Rpc { r#type: rpc.into() })),
    };
    ControllerGetCapabilitiesResponse { capabilities: offered.into_iter().map(say).collect::<Vec<_>>() }
}

pub fn node_capabilities() -> NodeGetCapabilitiesResponse {
    let say = |rpc: NodeRpc| NodeServiceCapability { r#type: Some(node::Type::Rpc(node::Rpc { r#type: rpc.into() })) };
    let offered = [NodeRpc::StageUnstageVolume, NodeRpc::SingleNodeMultiWriter];
    NodeGetCapabilitiesResponse { capabilities: offered.map(say).into() }
}

pub fn node_info(config: &Config) -> NodeGetInfoResponse {
    NodeGetInfoResponse {
        node_id: config.node_id.clone(),
        max_volumes_per_node: config.max_volumes_per_node.into(),
        ..Default::default()
    }
}
