//! The features of the driver, and the capabilities that each of them is.

use csi::{
    Capabilities, ControllerRpc, DriverCapability, GroupRpc, Method, NodeRpc, PluginService, Service, VolumeExpansion,
};

use crate::config::{Config, Services};

macro_rules! features {
    ($($(#[$doc:meta])* $feature:ident, $name:literal: [$($of:ident($capability:path)),*];)*) => {
        /// A group of capabilities that users can turn off together, with `--without`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Feature { $($(#[$doc])* $feature),* }

        impl Feature {
            /// Every feature, in the order in which users see them.
            pub const ALL: &[Feature] = &[$(Feature::$feature),*];

            /// The feature's name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Feature::$feature => $name),* }
            }

            /// The capabilities that the driver reports with this feature, and does not report without it.
            pub const fn capabilities(self) -> &'static [DriverCapability] {
                match self { $(Feature::$feature => &[$(DriverCapability::$of($capability)),*]),* }
            }
        }
    };
}
features! {
    /// Volumes are attached to a node before they are staged.
    Publish, "publish": [
        Controller(ControllerRpc::PublishUnpublishVolume), Controller(ControllerRpc::PublishReadonly)
    ];
    /// Volumes are staged once per node before they are published.
    Stage, "stage": [Node(NodeRpc::StageUnstageVolume)];
    /// Volumes can be listed.
    List, "list": [Controller(ControllerRpc::ListVolumes)];
    /// The driver reports how much room is left.
    Capacity, "capacity": [Controller(ControllerRpc::GetCapacity)];
    /// Snapshots, and volumes made from them.
    Snapshots, "snapshots": [
        Controller(ControllerRpc::CreateDeleteSnapshot), Controller(ControllerRpc::ListSnapshots),
        Controller(ControllerRpc::GetSnapshot)
    ];
    /// Volumes made from other volumes.
    Clone, "clone": [Controller(ControllerRpc::CloneVolume)];
    /// Volumes can grow.
    Expand, "expand": [
        Expansion(VolumeExpansion::Online), Controller(ControllerRpc::ExpandVolume), Node(NodeRpc::ExpandVolume)
    ];
    /// The driver describes single volumes.
    Get, "get": [Controller(ControllerRpc::GetVolume)];
    /// The driver reports the health of volumes and of its disk.
    Health, "health": [
        Controller(ControllerRpc::GetVolumeHealth), Controller(ControllerRpc::ListVolumeHealth),
        Node(NodeRpc::GetVolumeHealth), Node(NodeRpc::GetStorageHealth)
    ];
    /// Mutable parameters of a volume can be changed.
    Modify, "modify": [Controller(ControllerRpc::ModifyVolume)];
    /// Snapshots of several volumes at one moment.
    Groups, "groups": [
        Plugin(PluginService::GroupControllerService), Group(GroupRpc::CreateDeleteGetVolumeGroupSnapshot)
    ];
    /// Volumes that live as long as a pod. CSI has no capability for them.
    Ephemeral, "ephemeral": [];
    /// The driver reports how full a volume is.
    Stats, "stats": [Node(NodeRpc::GetVolumeStats)];
    /// Volumes have an accessible topology.
    Topology, "topology": [Plugin(PluginService::VolumeAccessibilityConstraints)];
}

/// The capabilities of a driver with this configuration. Every process of the driver knows those of all of them.
pub fn capabilities(config: &Config) -> Capabilities {
    let always: [DriverCapability; 4] = [
        PluginService::ControllerService.into(),
        ControllerRpc::CreateDeleteVolume.into(),
        ControllerRpc::SingleNodeMultiWriter.into(),
        NodeRpc::SingleNodeMultiWriter.into(),
    ];
    let lists_nodes = config.offers(Feature::List) && config.offers(Feature::Publish);
    let published_nodes = lists_nodes.then(|| ControllerRpc::ListVolumesPublishedNodes.into());
    let offered = Feature::ALL.iter().filter(|feature| config.offers(**feature));
    let features = offered.flat_map(|feature| feature.capabilities()).copied();
    let all = always.into_iter().chain(published_nodes).chain(features);
    all.filter(|one| config.services != Services::NodeWithoutController || !is_of_controller(*one)).collect()
}

fn is_of_controller(capability: DriverCapability) -> bool {
    match capability {
        DriverCapability::Controller(_) | DriverCapability::Group(_) => true,
        DriverCapability::Plugin(service) => {
            matches!(service, PluginService::ControllerService | PluginService::GroupControllerService)
        }
        DriverCapability::Expansion(_) | DriverCapability::Node(_) => false,
    }
}

/// Whether this process serves a method, with this configuration.
pub fn serves(config: &Config, method: Method) -> bool {
    let here = match method.service() {
        Service::Identity => true,
        Service::Controller | Service::GroupController => config.controls(),
        Service::Node => config.hosts(),
        Service::Registration | Service::CSIRegistration => false,
    };
    here && capabilities(config).serves(method)
}
