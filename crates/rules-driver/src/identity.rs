//! Who the driver is and what it can do.

use alloc::vec;
use alloc::vec::Vec;

use csi::v1::controller_service_capability::{self as controller, rpc::Type as ControllerRpc};
use csi::v1::group_controller_service_capability::{self as group, rpc::Type as GroupRpc};
use csi::v1::node_service_capability::{self as node, rpc::Type as NodeRpc};
use csi::v1::plugin_capability::{self as plugin, service::Type as Service, volume_expansion::Type as Expansion};
use csi::v1::{
    ControllerGetCapabilitiesResponse, ControllerServiceCapability, GetPluginCapabilitiesResponse,
    GetPluginInfoResponse, GroupControllerGetCapabilitiesResponse, GroupControllerServiceCapability,
    NodeGetCapabilitiesResponse, NodeGetInfoResponse, NodeServiceCapability, PluginCapability, ProbeResponse,
};

use crate::config::{Config, Feature, Services};
use crate::create::here;
use crate::facts::Facts;

pub fn info(config: &Config) -> GetPluginInfoResponse {
    GetPluginInfoResponse { name: config.name.clone(), vendor_version: config.version.clone(), ..Default::default() }
}

/// The same from every process of the driver, so that callers of any of them know the whole.
pub fn capabilities(config: &Config) -> GetPluginCapabilitiesResponse {
    let service = |service: Service| plugin::Type::Service(plugin::Service { r#type: service.into() });
    let mut offered = vec![];
    if config.services != Services::NodeWithoutController {
        offered.push(service(Service::ControllerService));
        if config.offers(Feature::Groups) {
            offered.push(service(Service::GroupControllerService));
        }
    }
    if config.offers(Feature::Topology) {
        offered.push(service(Service::VolumeAccessibilityConstraints));
    }
    if config.offers(Feature::Expand) {
        offered.push(plugin::Type::VolumeExpansion(plugin::VolumeExpansion { r#type: Expansion::Online.into() }));
    }
    let say = |one| PluginCapability { r#type: Some(one) };
    GetPluginCapabilitiesResponse { capabilities: offered.into_iter().map(say).collect() }
}

/// Ready when the records are loaded: before, nothing is known about any volume.
pub fn probe(facts: &Facts) -> ProbeResponse {
    ProbeResponse { ready: Some(facts.loaded()) }
}

/// What a feature is called in the controller's capabilities.
fn controller_names(feature: Feature) -> &'static [ControllerRpc] {
    match feature {
        Feature::Publish => &[ControllerRpc::PublishUnpublishVolume, ControllerRpc::PublishReadonly],
        Feature::List => &[ControllerRpc::ListVolumes],
        Feature::Capacity => &[ControllerRpc::GetCapacity],
        Feature::Snapshots => {
            &[ControllerRpc::CreateDeleteSnapshot, ControllerRpc::ListSnapshots, ControllerRpc::GetSnapshot]
        }
        Feature::Clone => &[ControllerRpc::CloneVolume],
        Feature::Expand => &[ControllerRpc::ExpandVolume],
        Feature::Get => &[ControllerRpc::GetVolume],
        Feature::Health => &[ControllerRpc::GetVolumeHealth, ControllerRpc::ListVolumeHealth],
        Feature::Modify => &[ControllerRpc::ModifyVolume],
        Feature::Stage | Feature::Groups | Feature::Ephemeral | Feature::Stats | Feature::Topology => &[],
    }
}

/// What a feature is called in the node's capabilities.
fn node_names(feature: Feature) -> &'static [NodeRpc] {
    match feature {
        Feature::Stage => &[NodeRpc::StageUnstageVolume],
        Feature::Stats => &[NodeRpc::GetVolumeStats],
        Feature::Expand => &[NodeRpc::ExpandVolume],
        Feature::Health => &[NodeRpc::GetVolumeHealth, NodeRpc::GetStorageHealth],
        Feature::Publish
        | Feature::List
        | Feature::Capacity
        | Feature::Snapshots
        | Feature::Clone
        | Feature::Get
        | Feature::Modify
        | Feature::Groups
        | Feature::Ephemeral
        | Feature::Topology => &[],
    }
}

fn offered(config: &Config) -> impl Iterator<Item = Feature> {
    Feature::ALL.iter().copied().filter(|feature| config.offers(*feature))
}

pub fn controller_capabilities(config: &Config) -> ControllerGetCapabilitiesResponse {
    let mut names = vec![ControllerRpc::CreateDeleteVolume, ControllerRpc::SingleNodeMultiWriter];
    names.extend(offered(config).flat_map(controller_names));
    if config.offers(Feature::List) && config.offers(Feature::Publish) {
        names.push(ControllerRpc::ListVolumesPublishedNodes);
    }
    let say = |rpc: ControllerRpc| ControllerServiceCapability {
        r#type: Some(controller::Type::Rpc(controller::Rpc { r#type: rpc.into() })),
    };
    ControllerGetCapabilitiesResponse { capabilities: names.into_iter().map(say).collect() }
}

pub fn group_capabilities() -> GroupControllerGetCapabilitiesResponse {
    let rpc = group::Rpc { r#type: GroupRpc::CreateDeleteGetVolumeGroupSnapshot.into() };
    let one = GroupControllerServiceCapability { r#type: Some(group::Type::Rpc(rpc)) };
    GroupControllerGetCapabilitiesResponse { capabilities: vec![one] }
}

pub fn node_capabilities(config: &Config) -> NodeGetCapabilitiesResponse {
    let say = |rpc: NodeRpc| NodeServiceCapability { r#type: Some(node::Type::Rpc(node::Rpc { r#type: rpc.into() })) };
    let names = offered(config).flat_map(node_names).copied().chain([NodeRpc::SingleNodeMultiWriter]);
    NodeGetCapabilitiesResponse { capabilities: names.map(say).collect::<Vec<_>>() }
}

pub fn node_info(config: &Config) -> NodeGetInfoResponse {
    NodeGetInfoResponse {
        node_id: config.node_id.clone(),
        max_volumes_per_node: config.max_volumes_per_node.into(),
        accessible_topology: config.offers(Feature::Topology).then(|| here(config)),
    }
}
