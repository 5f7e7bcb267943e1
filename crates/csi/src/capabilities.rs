//! What a driver can do, as it reports it through the capability RPCs, in the words of CSI.

use core::fmt;

use crate::{Method, Service, v1};

/// Capabilities of the controller service.
pub use v1::controller_service_capability::rpc::Type as ControllerRpc;
/// Capabilities of the group controller service.
pub use v1::group_controller_service_capability::rpc::Type as GroupRpc;
/// Capabilities of the node service.
pub use v1::node_service_capability::rpc::Type as NodeRpc;
/// Services of a plugin, and properties of all its volumes.
pub use v1::plugin_capability::service::Type as PluginService;
/// When a plugin can expand volumes.
pub use v1::plugin_capability::volume_expansion::Type as VolumeExpansion;

/// The types of [`DriverCapability`]'s variants under the variants' names, for the table of methods.
pub(crate) mod by_service {
    pub use super::{ControllerRpc as Controller, GroupRpc as Group, NodeRpc as Node, PluginService as Plugin};
}

/// One capability of a driver. (What a *volume* is asked for is [`v1::VolumeCapability`].)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DriverCapability {
    /// From `GetPluginCapabilities`: a service, or a property of all volumes.
    Plugin(PluginService),
    /// From `GetPluginCapabilities`: when volumes can be expanded.
    Expansion(VolumeExpansion),
    /// From `ControllerGetCapabilities`.
    Controller(ControllerRpc),
    /// From `GroupControllerGetCapabilities`.
    Group(GroupRpc),
    /// From `NodeGetCapabilities`.
    Node(NodeRpc),
}

macro_rules! from {
    ($($variant:ident($type:ty);)*) => {
        $(impl From<$type> for DriverCapability {
            fn from(one: $type) -> DriverCapability {
                DriverCapability::$variant(one)
            }
        })*
    };
}
from! {
    Plugin(PluginService);
    Expansion(VolumeExpansion);
    Controller(ControllerRpc);
    Group(GroupRpc);
    Node(NodeRpc);
}

/// Prints who reports it and the name that CSI gives it: `controller LIST_VOLUMES`.
impl fmt::Display for DriverCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriverCapability::Plugin(one) => write!(f, "plugin {}", one.as_str_name()),
            DriverCapability::Expansion(one) => write!(f, "expansion {}", one.as_str_name()),
            DriverCapability::Controller(one) => write!(f, "controller {}", one.as_str_name()),
            DriverCapability::Group(one) => write!(f, "group controller {}", one.as_str_name()),
            DriverCapability::Node(one) => write!(f, "node {}", one.as_str_name()),
        }
    }
}

impl fmt::Debug for DriverCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The capabilities of a driver: a set of bits, cheap to copy, compare and hash.
///
/// ```
/// use csi::{Capabilities, ControllerRpc, Method, NodeRpc};
///
/// let capabilities = Capabilities::from_iter([ControllerRpc::CreateDeleteVolume, ControllerRpc::PublishReadonly]);
/// assert!(capabilities.has(ControllerRpc::PublishReadonly) && !capabilities.has(NodeRpc::StageUnstageVolume));
/// assert!(capabilities.serves(Method::CreateVolume) && !capabilities.serves(Method::ListVolumes));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capabilities {
    plugin: u32,
    expansion: u32,
    controller: u32,
    group: u32,
    node: u32,
}

/// CSI numbers its capabilities from 0; none has a number beyond the bits of a word yet.
const BITS: i32 = 32;

const fn bit(number: i32) -> u32 {
    assert!(0 <= number && number < BITS, "a capability's number does not fit into the set");
    1 << number
}

impl Capabilities {
    /// No capability at all.
    pub const NONE: Capabilities = Capabilities { plugin: 0, expansion: 0, controller: 0, group: 0, node: 0 };

    /// The set with one more capability. For constants; otherwise collect an iterator.
    pub const fn with(mut self, one: DriverCapability) -> Capabilities {
        match one {
            DriverCapability::Plugin(one) => self.plugin |= bit(one as i32),
            DriverCapability::Expansion(one) => self.expansion |= bit(one as i32),
            DriverCapability::Controller(one) => self.controller |= bit(one as i32),
            DriverCapability::Group(one) => self.group |= bit(one as i32),
            DriverCapability::Node(one) => self.node |= bit(one as i32),
        }
        self
    }

    /// Whether the driver has a capability.
    pub fn has(self, one: impl Into<DriverCapability>) -> bool {
        self.contains(one.into())
    }

    /// The same, for constants.
    pub const fn contains(self, one: DriverCapability) -> bool {
        match one {
            DriverCapability::Plugin(one) => self.plugin & bit(one as i32) != 0,
            DriverCapability::Expansion(one) => self.expansion & bit(one as i32) != 0,
            DriverCapability::Controller(one) => self.controller & bit(one as i32) != 0,
            DriverCapability::Group(one) => self.group & bit(one as i32) != 0,
            DriverCapability::Node(one) => self.node & bit(one as i32) != 0,
        }
    }

    /// Whether the driver has the capability that a method needs, if it needs one.
    pub const fn serves(self, method: Method) -> bool {
        match method.capability() {
            Some(needed) => self.contains(needed),
            None => true,
        }
    }

    /// Whether there is a capability of this service among them, or the service itself.
    pub fn has_service(self, service: Service) -> bool {
        match service {
            Service::Controller => self.controller != 0 || self.has(PluginService::ControllerService),
            Service::GroupController => self.group != 0 || self.has(PluginService::GroupControllerService),
            Service::Node => self.node != 0,
            Service::Identity => true,
            Service::Registration | Service::CSIRegistration => false,
        }
    }

    /// The set with the services that its capabilities imply: a driver with a capability of the controller service has a
    /// controller service.
    pub fn with_implied_services(self) -> Capabilities {
        let implied = [
            (Service::Controller, PluginService::ControllerService),
            (Service::GroupController, PluginService::GroupControllerService),
        ];
        implied
            .iter()
            .filter(|(service, _)| self.has_service(*service))
            .fold(self, |all, (_, one)| all.with(DriverCapability::Plugin(*one)))
    }

    /// The capabilities in either set.
    pub const fn union(self, other: Capabilities) -> Capabilities {
        Capabilities {
            plugin: self.plugin | other.plugin,
            expansion: self.expansion | other.expansion,
            controller: self.controller | other.controller,
            group: self.group | other.group,
            node: self.node | other.node,
        }
    }

    /// The capabilities in this set that are not in the other.
    pub const fn difference(self, other: Capabilities) -> Capabilities {
        Capabilities {
            plugin: self.plugin & !other.plugin,
            expansion: self.expansion & !other.expansion,
            controller: self.controller & !other.controller,
            group: self.group & !other.group,
            node: self.node & !other.node,
        }
    }

    /// Every capability, in the order of the services and then of CSI's numbers.
    pub fn iter(self) -> impl Iterator<Item = DriverCapability> {
        fn numbers(bits: u32) -> impl Iterator<Item = i32> {
            (0..BITS).filter(move |number| bits & bit(*number) != 0)
        }
        fn named<T: TryFrom<i32> + Into<DriverCapability>>(number: i32) -> Option<DriverCapability> {
            T::try_from(number).ok().map(Into::into)
        }
        let plugin = numbers(self.plugin).filter_map(named::<PluginService>);
        let expansion = numbers(self.expansion).filter_map(named::<VolumeExpansion>);
        let controller = numbers(self.controller).filter_map(named::<ControllerRpc>);
        let group = numbers(self.group).filter_map(named::<GroupRpc>);
        plugin.chain(expansion).chain(controller).chain(group).chain(numbers(self.node).filter_map(named::<NodeRpc>))
    }
}

impl<C: Into<DriverCapability>> FromIterator<C> for Capabilities {
    fn from_iter<I: IntoIterator<Item = C>>(all: I) -> Capabilities {
        all.into_iter().fold(Capabilities::NONE, |set, one| set.with(one.into()))
    }
}

impl<C: Into<DriverCapability>> Extend<C> for Capabilities {
    fn extend<I: IntoIterator<Item = C>>(&mut self, more: I) {
        *self = self.union(Capabilities::from_iter(more));
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// `GetPluginCapabilities`, without what has no name here.
impl From<&v1::GetPluginCapabilitiesResponse> for Capabilities {
    fn from(response: &v1::GetPluginCapabilitiesResponse) -> Capabilities {
        use v1::plugin_capability::Type;
        let named = |one: &Type| match one {
            Type::Service(one) => PluginService::try_from(one.r#type).ok().map(DriverCapability::Plugin),
            Type::VolumeExpansion(one) => VolumeExpansion::try_from(one.r#type).ok().map(DriverCapability::Expansion),
        };
        response.capabilities.iter().filter_map(|one| one.r#type.as_ref()).filter_map(named).collect()
    }
}

impl From<Capabilities> for v1::GetPluginCapabilitiesResponse {
    fn from(all: Capabilities) -> v1::GetPluginCapabilitiesResponse {
        use v1::plugin_capability::{Service, Type, VolumeExpansion};
        let reported = |one: DriverCapability| match one {
            DriverCapability::Plugin(one) => Some(Type::Service(Service { r#type: one as i32 })),
            DriverCapability::Expansion(one) => Some(Type::VolumeExpansion(VolumeExpansion { r#type: one as i32 })),
            DriverCapability::Controller(_) | DriverCapability::Group(_) | DriverCapability::Node(_) => None,
        };
        let capability = |one| v1::PluginCapability { r#type: Some(one) };
        v1::GetPluginCapabilitiesResponse { capabilities: all.iter().filter_map(reported).map(capability).collect() }
    }
}

/// The answers of the services that report RPCs. They differ in their types alone.
macro_rules! rpc_capabilities {
    ($($variant:ident($rpc:ty): $response:ident, $capability:ident, $module:ident;)*) => {
        $(
            #[doc = concat!("[`v1::", stringify!($response), "`], without what has no name here.")]
            impl From<&v1::$response> for Capabilities {
                fn from(response: &v1::$response) -> Capabilities {
                    use v1::$module::Type;
                    let reported = response.capabilities.iter().filter_map(|one| one.r#type.as_ref());
                    reported.filter_map(|Type::Rpc(one)| <$rpc>::try_from(one.r#type).ok()).collect()
                }
            }

            impl From<Capabilities> for v1::$response {
                fn from(all: Capabilities) -> v1::$response {
                    use v1::$module::{Rpc, Type};
                    let reported = |one: DriverCapability| match one {
                        DriverCapability::$variant(one) => {
                            Some(v1::$capability { r#type: Some(Type::Rpc(Rpc { r#type: one as i32 })) })
                        }
                        _ => None,
                    };
                    v1::$response { capabilities: all.iter().filter_map(reported).collect() }
                }
            }
        )*
    };
}
rpc_capabilities! {
    Controller(ControllerRpc):
        ControllerGetCapabilitiesResponse, ControllerServiceCapability, controller_service_capability;
    Group(GroupRpc):
        GroupControllerGetCapabilitiesResponse, GroupControllerServiceCapability, group_controller_service_capability;
    Node(NodeRpc):
        NodeGetCapabilitiesResponse, NodeServiceCapability, node_service_capability;
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;

    #[test]
    fn what_a_driver_reports_is_what_its_caller_understands() {
        let declared: [DriverCapability; 5] = [
            VolumeExpansion::Online.into(),
            ControllerRpc::CreateDeleteVolume.into(),
            ControllerRpc::GetSnapshot.into(),
            GroupRpc::CreateDeleteGetVolumeGroupSnapshot.into(),
            NodeRpc::VolumeMountGroup.into(),
        ];
        let all = Capabilities::from_iter(declared).with_implied_services();
        assert!(all.has(PluginService::ControllerService) && all.has(PluginService::GroupControllerService));
        assert!(!all.has(PluginService::VolumeAccessibilityConstraints));
        let understood = Capabilities::from(&v1::GetPluginCapabilitiesResponse::from(all))
            .union((&v1::ControllerGetCapabilitiesResponse::from(all)).into())
            .union((&v1::GroupControllerGetCapabilitiesResponse::from(all)).into())
            .union((&v1::NodeGetCapabilitiesResponse::from(all)).into());
        assert_eq!(understood, all);
        assert_eq!(all.iter().count(), 7);
    }

    // A number beyond the set's bits would be lost in silence.
    #[test]
    fn every_capability_that_csi_names_fits() {
        let beyond = BITS..1000;
        assert!(beyond.clone().all(|number| ControllerRpc::try_from(number).is_err()));
        assert!(beyond.clone().all(|number| NodeRpc::try_from(number).is_err()));
        assert!(beyond.clone().all(|number| GroupRpc::try_from(number).is_err()));
        assert!(beyond.clone().all(|number| PluginService::try_from(number).is_err()));
        assert!(beyond.clone().all(|number| VolumeExpansion::try_from(number).is_err()));
    }

    #[test]
    fn a_number_without_a_name_is_left_out() {
        use v1::controller_service_capability::{Rpc, Type};
        let one = |number| v1::ControllerServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type: number })) };
        let answer = v1::ControllerGetCapabilitiesResponse { capabilities: [1, 11, 99, -1].map(one).into() };
        assert_eq!(Capabilities::from(&answer), Capabilities::from_iter([ControllerRpc::CreateDeleteVolume]));
    }

    #[test]
    fn sets_are_compared_and_printed_by_name() {
        const PUBLISHES: Capabilities =
            Capabilities::NONE.with(DriverCapability::Controller(ControllerRpc::PublishUnpublishVolume));
        let more = PUBLISHES.union(Capabilities::from_iter([NodeRpc::ExpandVolume]));
        assert_eq!(format!("{more:?}"), "{controller PUBLISH_UNPUBLISH_VOLUME, node EXPAND_VOLUME}");
        assert_eq!(more.difference(PUBLISHES).iter().collect::<Vec<_>>(), [NodeRpc::ExpandVolume.into()]);
        assert!(more.serves(Method::ControllerPublishVolume) && !more.serves(Method::ControllerExpandVolume));
        assert!(more.serves(Method::Probe));
    }
}
