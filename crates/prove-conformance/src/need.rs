use csi::v1;
use v1::controller_service_capability::rpc::Type as Rpc;
use v1::node_service_capability::rpc::Type as NodeRpc;
use v1::plugin_capability::service::Type as Service;
use v1::plugin_capability::volume_expansion::Type as Expansion;

/// What a case needs from the driver or the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The controller service.
    Controller,
    /// The group controller service, with group snapshots.
    Group,
    /// Volumes that not every node can reach.
    Topology,
    /// Expansion of volumes in use.
    Online,
    /// CreateVolume and DeleteVolume.
    Create,
    /// ControllerPublishVolume.
    Attach,
    /// Attaching read-only.
    AttachReadOnly,
    /// ListVolumes.
    List,
    /// Nodes of each volume in lists.
    ListNodes,
    /// GetCapacity.
    Capacity,
    /// CreateSnapshot and DeleteSnapshot.
    Snapshot,
    /// ListSnapshots.
    ListSnapshots,
    /// GetSnapshot.
    GetSnapshot,
    /// Volumes from volumes.
    Clone,
    /// ControllerExpandVolume.
    Expand,
    /// ControllerGetVolume.
    GetVolume,
    /// ControllerModifyVolume.
    Modify,
    /// ControllerGetVolumeHealth.
    Health,
    /// ControllerListVolumeHealth.
    ListHealth,
    /// NodeStageVolume.
    Stage,
    /// NodeGetVolumeStats.
    Stats,
    /// NodeExpandVolume.
    NodeExpand,
    /// The access modes for one and for many writers on one node.
    Writers,
    /// A group owning the mounted files.
    MountGroup,
    /// NodeGetVolumeHealth.
    NodeHealth,
    /// NodeGetStorageHealth.
    StorageHealth,
    /// Root, to look into mounted volumes.
    Root,
    /// A way to restart the driver.
    Restart,
    /// Mutable parameters the driver understands.
    MutableParameters,
    /// A second endpoint.
    TwoEndpoints,
    /// No other case at the same time.
    Alone,
}

/// What the driver says it offers.
#[derive(Clone, Default)]
pub struct Abilities {
    /// Plugin services, by number.
    pub services: Vec<i32>,
    /// Plugin expansions, by number.
    pub expansions: Vec<i32>,
    /// Controller capabilities, by number.
    pub controller: Vec<i32>,
    /// Node capabilities, by number.
    pub node: Vec<i32>,
    /// Group controller capabilities, by number.
    pub group: Vec<i32>,
    /// This process is root.
    pub root: bool,
    /// The driver can be restarted.
    pub restart: bool,
    /// Mutable parameters were given.
    pub mutable_parameters: bool,
    /// The controller has an endpoint of its own.
    pub two_endpoints: bool,
}

impl Abilities {
    /// Why a case cannot run, if so.
    pub fn lacks(&self, need: Need) -> Option<String> {
        let offers = |has: bool, name: &str| (!has).then(|| format!("the driver does not offer {name}"));
        let service = |s: Service| offers(self.services.contains(&(s as i32)), s.as_str_name());
        let rpc = |r: Rpc| offers(self.controller.contains(&(r as i32)), r.as_str_name());
        let node = |r: NodeRpc| offers(self.node.contains(&(r as i32)), &format!("{} on the node", r.as_str_name()));
        let given = |has: bool, text: &str| (!has).then(|| text.to_string());
        match need {
            Need::Controller => service(Service::ControllerService),
            Need::Group => service(Service::GroupControllerService)
                .or_else(|| offers(self.group.contains(&1), "CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT")),
            Need::Topology => service(Service::VolumeAccessibilityConstraints),
            Need::Online => offers(self.expansions.contains(&(Expansion::Online as i32)), "online expansion"),
            Need::Create => rpc(Rpc::CreateDeleteVolume),
            Need::Attach => rpc(Rpc::PublishUnpublishVolume),
            Need::AttachReadOnly => rpc(Rpc::PublishReadonly),
            Need::List => rpc(Rpc::ListVolumes),
            Need::ListNodes => rpc(Rpc::ListVolumesPublishedNodes),
            Need::Capacity => rpc(Rpc::GetCapacity),
            Need::Snapshot => rpc(Rpc::CreateDeleteSnapshot),
            Need::ListSnapshots => rpc(Rpc::ListSnapshots),
            Need::GetSnapshot => rpc(Rpc::GetSnapshot),
            Need::Clone => rpc(Rpc::CloneVolume),
            Need::Expand => rpc(Rpc::ExpandVolume),
            Need::GetVolume => rpc(Rpc::GetVolume),
            Need::Modify => rpc(Rpc::ModifyVolume),
            Need::Health => rpc(Rpc::GetVolumeHealth),
            Need::ListHealth => rpc(Rpc::ListVolumeHealth),
            Need::Stage => node(NodeRpc::StageUnstageVolume),
            Need::Stats => node(NodeRpc::GetVolumeStats),
            Need::NodeExpand => node(NodeRpc::ExpandVolume),
            Need::Writers => rpc(Rpc::SingleNodeMultiWriter).or_else(|| node(NodeRpc::SingleNodeMultiWriter)),
            Need::MountGroup => node(NodeRpc::VolumeMountGroup),
            Need::NodeHealth => node(NodeRpc::GetVolumeHealth),
            Need::StorageHealth => node(NodeRpc::GetStorageHealth),
            Need::Root => given(self.root, "looking into mounted volumes needs root"),
            Need::Restart => given(self.restart, "no --restart-command was given"),
            Need::MutableParameters => given(self.mutable_parameters, "no --mutable-parameters were given"),
            Need::TwoEndpoints => given(self.two_endpoints, "there is one endpoint only"),
            Need::Alone => None,
        }
    }

    /// Whether the driver offers it.
    pub fn has(&self, need: Need) -> bool {
        self.lacks(need).is_none()
    }
}
