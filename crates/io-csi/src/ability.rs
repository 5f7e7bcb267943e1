//! What a driver offers, and which of it a call needs: one list for both ends.

use std::collections::BTreeSet;
use std::fmt;

use csi::{Method, v1};

/// What a controller offers.
pub use v1::controller_service_capability::rpc::Type as ControllerRpc;
/// What a group controller offers.
pub use v1::group_controller_service_capability::rpc::Type as GroupRpc;
/// What a node offers.
pub use v1::node_service_capability::rpc::Type as NodeRpc;
/// Services of a plugin.
pub use v1::plugin_capability::service::Type as PluginService;
/// When a plugin can grow volumes.
pub use v1::plugin_capability::volume_expansion::Type as Expansion;

/// One thing a driver offers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ability {
    /// A service of the plugin, or a property of all its volumes.
    Plugin(PluginService),
    /// Volumes grow, in use or not.
    Expansion(Expansion),
    /// A capability of the controller.
    Controller(ControllerRpc),
    /// A capability of the group controller.
    Group(GroupRpc),
    /// A capability of the node.
    Node(NodeRpc),
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ability::Plugin(one) => write!(f, "plugin {}", one.as_str_name()),
            Ability::Expansion(one) => write!(f, "expansion {}", one.as_str_name()),
            Ability::Controller(one) => write!(f, "controller {}", one.as_str_name()),
            Ability::Group(one) => write!(f, "group controller {}", one.as_str_name()),
            Ability::Node(one) => write!(f, "node {}", one.as_str_name()),
        }
    }
}

impl fmt::Debug for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a call needs the driver to offer; nothing if every driver must answer it, or if only the answer shows whether the
/// node's service is there.
pub fn needed(method: Method) -> Option<Ability> {
    Some(match method {
        Method::CreateVolume | Method::DeleteVolume => Ability::Controller(ControllerRpc::CreateDeleteVolume),
        Method::ControllerPublishVolume | Method::ControllerUnpublishVolume => {
            Ability::Controller(ControllerRpc::PublishUnpublishVolume)
        }
        Method::ValidateVolumeCapabilities | Method::ControllerGetCapabilities => {
            Ability::Plugin(PluginService::ControllerService)
        }
        Method::ListVolumes => Ability::Controller(ControllerRpc::ListVolumes),
        Method::GetCapacity => Ability::Controller(ControllerRpc::GetCapacity),
        Method::CreateSnapshot | Method::DeleteSnapshot => Ability::Controller(ControllerRpc::CreateDeleteSnapshot),
        Method::ListSnapshots => Ability::Controller(ControllerRpc::ListSnapshots),
        Method::GetSnapshot => Ability::Controller(ControllerRpc::GetSnapshot),
        Method::ControllerExpandVolume => Ability::Controller(ControllerRpc::ExpandVolume),
        Method::ControllerGetVolume => Ability::Controller(ControllerRpc::GetVolume),
        Method::ControllerModifyVolume => Ability::Controller(ControllerRpc::ModifyVolume),
        Method::ControllerGetVolumeHealth => Ability::Controller(ControllerRpc::GetVolumeHealth),
        Method::ControllerListVolumeHealth => Ability::Controller(ControllerRpc::ListVolumeHealth),
        Method::GroupControllerGetCapabilities => Ability::Plugin(PluginService::GroupControllerService),
        Method::CreateVolumeGroupSnapshot | Method::DeleteVolumeGroupSnapshot | Method::GetVolumeGroupSnapshot => {
            Ability::Group(GroupRpc::CreateDeleteGetVolumeGroupSnapshot)
        }
        Method::NodeStageVolume | Method::NodeUnstageVolume => Ability::Node(NodeRpc::StageUnstageVolume),
        Method::NodeGetVolumeStats => Ability::Node(NodeRpc::GetVolumeStats),
        Method::NodeExpandVolume => Ability::Node(NodeRpc::ExpandVolume),
        Method::NodeGetVolumeHealth => Ability::Node(NodeRpc::GetVolumeHealth),
        Method::NodeGetStorageHealth => Ability::Node(NodeRpc::GetStorageHealth),
        Method::GetPluginInfo
        | Method::GetPluginCapabilities
        | Method::Probe
        | Method::NodePublishVolume
        | Method::NodeUnpublishVolume
        | Method::NodeGetCapabilities
        | Method::NodeGetInfo
        | Method::GetCSIDriverInfo
        | Method::GetInfo
        | Method::NotifyRegistrationStatus => return None,
    })
}

/// What follows from what is offered: who offers anything of a controller has one.
pub fn completed(declared: impl IntoIterator<Item = Ability>) -> BTreeSet<Ability> {
    let mut all: BTreeSet<Ability> = declared.into_iter().collect();
    if all.iter().any(|one| matches!(one, Ability::Controller(_))) {
        all.insert(Ability::Plugin(PluginService::ControllerService));
    }
    if all.iter().any(|one| matches!(one, Ability::Group(_))) {
        all.insert(Ability::Plugin(PluginService::GroupControllerService));
    }
    all
}

/// The answers by which a driver tells.
pub fn plugin_answer(all: &BTreeSet<Ability>) -> v1::GetPluginCapabilitiesResponse {
    use v1::plugin_capability::{Service, Type, VolumeExpansion};
    let told = |one: &Ability| match one {
        Ability::Plugin(one) => Some(Type::Service(Service { r#type: *one as i32 })),
        Ability::Expansion(one) => Some(Type::VolumeExpansion(VolumeExpansion { r#type: *one as i32 })),
        Ability::Controller(_) | Ability::Group(_) | Ability::Node(_) => None,
    };
    let capability = |one| v1::PluginCapability { r#type: Some(one) };
    v1::GetPluginCapabilitiesResponse { capabilities: all.iter().filter_map(told).map(capability).collect() }
}

macro_rules! answers {
    ($($to:ident, $from:ident, $variant:ident: $rpc:ty, $module:ident, $capability:ident, $response:ident;)*) => {
        $(
            pub fn $to(all: &BTreeSet<Ability>) -> v1::$response {
                use v1::$module::{Rpc, Type};
                let told = |one: &Ability| match one {
                    Ability::$variant(one) => {
                        Some(v1::$capability { r#type: Some(Type::Rpc(Rpc { r#type: *one as i32 })) })
                    }
                    _ => None,
                };
                v1::$response { capabilities: all.iter().filter_map(told).collect() }
            }

            /// What was told, without what we have no name for.
            pub fn $from(answer: &v1::$response) -> impl Iterator<Item = Ability> + '_ {
                use v1::$module::Type;
                answer
                    .capabilities
                    .iter()
                    .filter_map(|one| one.r#type.as_ref())
                    .filter_map(|Type::Rpc(one)| <$rpc>::try_from(one.r#type).ok())
                    .map(Ability::$variant)
            }
        )*
    };
}
answers! {
    controller_answer, controller_told, Controller: ControllerRpc,
        controller_service_capability, ControllerServiceCapability, ControllerGetCapabilitiesResponse;
    group_answer, group_told, Group: GroupRpc,
        group_controller_service_capability, GroupControllerServiceCapability, GroupControllerGetCapabilitiesResponse;
    node_answer, node_told, Node: NodeRpc,
        node_service_capability, NodeServiceCapability, NodeGetCapabilitiesResponse;
}

/// What a plugin told of itself, without what we have no name for.
pub fn plugin_told(answer: &v1::GetPluginCapabilitiesResponse) -> impl Iterator<Item = Ability> + '_ {
    use v1::plugin_capability::Type;
    answer.capabilities.iter().filter_map(|one| one.r#type.as_ref()).filter_map(|one| match one {
        Type::Service(one) => PluginService::try_from(one.r#type).ok().map(Ability::Plugin),
        Type::VolumeExpansion(one) => Expansion::try_from(one.r#type).ok().map(Ability::Expansion),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_tells_is_what_its_caller_understands() {
        let all = completed([
            Ability::Expansion(Expansion::Online),
            Ability::Controller(ControllerRpc::CreateDeleteVolume),
            Ability::Controller(ControllerRpc::GetSnapshot),
            Ability::Group(GroupRpc::CreateDeleteGetVolumeGroupSnapshot),
            Ability::Node(NodeRpc::VolumeMountGroup),
        ]);
        assert!(all.contains(&Ability::Plugin(PluginService::ControllerService)));
        assert!(all.contains(&Ability::Plugin(PluginService::GroupControllerService)));
        let (plugin, controller) = (plugin_answer(&all), controller_answer(&all));
        let (group, node) = (group_answer(&all), node_answer(&all));
        let told: BTreeSet<Ability> = plugin_told(&plugin)
            .chain(controller_told(&controller))
            .chain(group_told(&group))
            .chain(node_told(&node))
            .collect();
        assert_eq!(told, all);
    }
}
