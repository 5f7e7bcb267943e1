use core::fmt;

use crate::{registration, v1};

/// Calls `$then! { Method(Request) -> Response, "service"; … }` with every method we speak. The one list of methods:
/// enums here, dispatch on both ends in `io-csi`.
#[macro_export]
macro_rules! for_each_method {
    ($then:path) => {
        $then! {
            GetPluginInfo(v1::GetPluginInfoRequest) -> v1::GetPluginInfoResponse, "csi.v1.Identity";
            GetPluginCapabilities(v1::GetPluginCapabilitiesRequest) -> v1::GetPluginCapabilitiesResponse, "csi.v1.Identity";
            Probe(v1::ProbeRequest) -> v1::ProbeResponse, "csi.v1.Identity";
            CreateVolume(v1::CreateVolumeRequest) -> v1::CreateVolumeResponse, "csi.v1.Controller";
            DeleteVolume(v1::DeleteVolumeRequest) -> v1::DeleteVolumeResponse, "csi.v1.Controller";
            ControllerPublishVolume(v1::ControllerPublishVolumeRequest) -> v1::ControllerPublishVolumeResponse, "csi.v1.Controller";
            ControllerUnpublishVolume(v1::ControllerUnpublishVolumeRequest) -> v1::ControllerUnpublishVolumeResponse, "csi.v1.Controller";
            ValidateVolumeCapabilities(v1::ValidateVolumeCapabilitiesRequest) -> v1::ValidateVolumeCapabilitiesResponse, "csi.v1.Controller";
            ListVolumes(v1::ListVolumesRequest) -> v1::ListVolumesResponse, "csi.v1.Controller";
            GetCapacity(v1::GetCapacityRequest) -> v1::GetCapacityResponse, "csi.v1.Controller";
            ControllerGetCapabilities(v1::ControllerGetCapabilitiesRequest) -> v1::ControllerGetCapabilitiesResponse, "csi.v1.Controller";
            CreateSnapshot(v1::CreateSnapshotRequest) -> v1::CreateSnapshotResponse, "csi.v1.Controller";
            DeleteSnapshot(v1::DeleteSnapshotRequest) -> v1::DeleteSnapshotResponse, "csi.v1.Controller";
            ListSnapshots(v1::ListSnapshotsRequest) -> v1::ListSnapshotsResponse, "csi.v1.Controller";
            ControllerExpandVolume(v1::ControllerExpandVolumeRequest) -> v1::ControllerExpandVolumeResponse, "csi.v1.Controller";
            ControllerGetVolume(v1::ControllerGetVolumeRequest) -> v1::ControllerGetVolumeResponse, "csi.v1.Controller";
            ControllerModifyVolume(v1::ControllerModifyVolumeRequest) -> v1::ControllerModifyVolumeResponse, "csi.v1.Controller";
            ControllerGetVolumeHealth(v1::ControllerGetVolumeHealthRequest) -> v1::ControllerGetVolumeHealthResponse, "csi.v1.Controller";
            ControllerListVolumeHealth(v1::ControllerListVolumeHealthRequest) -> v1::ControllerListVolumeHealthResponse, "csi.v1.Controller";
            GetSnapshot(v1::GetSnapshotRequest) -> v1::GetSnapshotResponse, "csi.v1.Controller";
            GroupControllerGetCapabilities(v1::GroupControllerGetCapabilitiesRequest) -> v1::GroupControllerGetCapabilitiesResponse, "csi.v1.GroupController";
            CreateVolumeGroupSnapshot(v1::CreateVolumeGroupSnapshotRequest) -> v1::CreateVolumeGroupSnapshotResponse, "csi.v1.GroupController";
            DeleteVolumeGroupSnapshot(v1::DeleteVolumeGroupSnapshotRequest) -> v1::DeleteVolumeGroupSnapshotResponse, "csi.v1.GroupController";
            GetVolumeGroupSnapshot(v1::GetVolumeGroupSnapshotRequest) -> v1::GetVolumeGroupSnapshotResponse, "csi.v1.GroupController";
            NodeStageVolume(v1::NodeStageVolumeRequest) -> v1::NodeStageVolumeResponse, "csi.v1.Node";
            NodeUnstageVolume(v1::NodeUnstageVolumeRequest) -> v1::NodeUnstageVolumeResponse, "csi.v1.Node";
            NodePublishVolume(v1::NodePublishVolumeRequest) -> v1::NodePublishVolumeResponse, "csi.v1.Node";
            NodeUnpublishVolume(v1::NodeUnpublishVolumeRequest) -> v1::NodeUnpublishVolumeResponse, "csi.v1.Node";
            NodeGetVolumeStats(v1::NodeGetVolumeStatsRequest) -> v1::NodeGetVolumeStatsResponse, "csi.v1.Node";
            NodeExpandVolume(v1::NodeExpandVolumeRequest) -> v1::NodeExpandVolumeResponse, "csi.v1.Node";
            NodeGetVolumeHealth(v1::NodeGetVolumeHealthRequest) -> v1::NodeGetVolumeHealthResponse, "csi.v1.Node";
            NodeGetStorageHealth(v1::NodeGetStorageHealthRequest) -> v1::NodeGetStorageHealthResponse, "csi.v1.Node";
            NodeGetCapabilities(v1::NodeGetCapabilitiesRequest) -> v1::NodeGetCapabilitiesResponse, "csi.v1.Node";
            NodeGetInfo(v1::NodeGetInfoRequest) -> v1::NodeGetInfoResponse, "csi.v1.Node";
            GetInfo(registration::InfoRequest) -> registration::PluginInfo, "pluginregistration.Registration";
            NotifyRegistrationStatus(registration::RegistrationStatus) -> registration::RegistrationStatusResponse, "pluginregistration.Registration";
            GetCSIDriverInfo(registration::CsiDriverInfoRequest) -> registration::CsiDriverInfo, "csiregistration.CSIRegistration";
        }
    };
}

macro_rules! define {
    ($($name:ident($request:ty) -> $response:ty, $service:literal;)*) => {
        /// A method of CSI or of plugin registration.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each variant is the method of the same name")]
        pub enum Method { $($name),* }

        /// A request, ready to be sent.
        #[derive(Clone, PartialEq)]
        #[allow(missing_docs, clippy::large_enum_variant, reason = "each variant is the method of the same name")]
        pub enum Call { $($name($request)),* }

        /// A successful answer.
        #[derive(Clone, PartialEq)]
        #[allow(missing_docs, clippy::large_enum_variant, reason = "each variant is the method of the same name")]
        pub enum Response { $($name($response)),* }

        impl Method {
            /// Every method.
            pub const ALL: &[Method] = &[$(Method::$name),*];

            /// The method's name.
            pub const fn name(self) -> &'static str {
                match self { $(Method::$name => stringify!($name)),* }
            }

            /// The path a request travels to.
            pub const fn path(self) -> &'static str {
                match self { $(Method::$name => concat!("/", $service, "/", stringify!($name))),* }
            }
        }

        impl Call {
            /// Which method it calls.
            pub const fn method(&self) -> Method {
                match self { $(Call::$name(_) => Method::$name),* }
            }
        }

        impl Response {
            /// Which method it answers.
            pub const fn method(&self) -> Method {
                match self { $(Response::$name(_) => Method::$name),* }
            }
        }
    };
}
for_each_method!(define);

impl Call {
    /// The volume the call is about: its id, or the name it is to get. Part of the little that may be logged.
    pub fn volume(&self) -> &str {
        match self {
            Call::CreateVolume(r) => &r.name,
            Call::DeleteVolume(r) => &r.volume_id,
            Call::ControllerPublishVolume(r) => &r.volume_id,
            Call::ControllerUnpublishVolume(r) => &r.volume_id,
            Call::ValidateVolumeCapabilities(r) => &r.volume_id,
            Call::CreateSnapshot(r) => &r.source_volume_id,
            Call::ControllerExpandVolume(r) => &r.volume_id,
            Call::ControllerGetVolume(r) => &r.volume_id,
            Call::ControllerModifyVolume(r) => &r.volume_id,
            Call::NodeStageVolume(r) => &r.volume_id,
            Call::NodeUnstageVolume(r) => &r.volume_id,
            Call::NodePublishVolume(r) => &r.volume_id,
            Call::NodeUnpublishVolume(r) => &r.volume_id,
            Call::NodeGetVolumeStats(r) => &r.volume_id,
            Call::NodeExpandVolume(r) => &r.volume_id,
            Call::ControllerGetVolumeHealth(r) => &r.volume_id,
            Call::NodeGetVolumeHealth(r) => &r.volume_id,
            Call::GetPluginInfo(_)
            | Call::GetPluginCapabilities(_)
            | Call::Probe(_)
            | Call::ListVolumes(_)
            | Call::GetCapacity(_)
            | Call::ControllerGetCapabilities(_)
            | Call::DeleteSnapshot(_)
            | Call::ListSnapshots(_)
            | Call::GetSnapshot(_)
            | Call::ControllerListVolumeHealth(_)
            | Call::GroupControllerGetCapabilities(_)
            | Call::CreateVolumeGroupSnapshot(_)
            | Call::DeleteVolumeGroupSnapshot(_)
            | Call::GetVolumeGroupSnapshot(_)
            | Call::NodeGetStorageHealth(_)
            | Call::NodeGetCapabilities(_)
            | Call::NodeGetInfo(_)
            | Call::GetCSIDriverInfo(_)
            | Call::GetInfo(_)
            | Call::NotifyRegistrationStatus(_) => "",
        }
    }
}

/// Method and volume only: requests carry secrets, and contexts may.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.method().name(), self.volume())
    }
}

/// The method only, for the same reason.
impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answered", self.method().name())
    }
}
