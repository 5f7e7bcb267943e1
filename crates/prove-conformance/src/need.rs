use csi::{DriverCapability, PluginService};

use crate::Suite;

/// What a case needs from the driver, from the machine or from the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A capability of the driver.
    Capability(DriverCapability),
    /// Root, to look into mounted volumes.
    Root,
    /// A way to restart the driver.
    Restart,
    /// Mutable parameters that the driver understands.
    MutableParameters,
    /// A controller endpoint beside that of the node.
    TwoEndpoints,
    /// No other case at the same time.
    Alone,
}

/// A need as tables of cases write it: `Root`, or a capability as CSI names it, such as `Node(StageUnstageVolume)`.
macro_rules! need {
    (Plugin($capability:ident)) => {
        $crate::Need::Capability(csi::DriverCapability::Plugin(csi::PluginService::$capability))
    };
    (Expansion($capability:ident)) => {
        $crate::Need::Capability(csi::DriverCapability::Expansion(csi::VolumeExpansion::$capability))
    };
    (Controller($capability:ident)) => {
        $crate::Need::Capability(csi::DriverCapability::Controller(csi::ControllerRpc::$capability))
    };
    (Group($capability:ident)) => {
        $crate::Need::Capability(csi::DriverCapability::Group(csi::GroupRpc::$capability))
    };
    (Node($capability:ident)) => {
        $crate::Need::Capability(csi::DriverCapability::Node(csi::NodeRpc::$capability))
    };
    ($other:ident) => {
        $crate::Need::$other
    };
}
pub(crate) use need;

impl Suite {
    /// Why a case with this need cannot run, or nothing if it can.
    pub fn lacks(&self, need: Need) -> Option<String> {
        let given = |has: bool, text: &str| (!has).then(|| text.to_string());
        match need {
            Need::Capability(one) if self.capabilities.has(one) => None,
            Need::Capability(one) => Some(format!("the driver does not offer {}", self.name_of(one))),
            Need::Root => given(self.options.root, "looking into mounted volumes needs root"),
            Need::Restart => given(self.options.restart.is_some(), "no --restart-command was given"),
            Need::MutableParameters => {
                given(!self.options.mutable_parameters.is_empty(), "no --mutable-parameters were given")
            }
            Need::TwoEndpoints => given(self.options.controller_endpoint.is_some(), "there is one endpoint only"),
            Need::Alone => None,
        }
    }

    fn name_of(&self, missing: DriverCapability) -> String {
        match missing {
            DriverCapability::Plugin(one) => one.as_str_name().to_string(),
            DriverCapability::Expansion(one) => format!("{} expansion", one.as_str_name().to_lowercase()),
            DriverCapability::Controller(one) => one.as_str_name().to_string(),
            // Without the service nobody asks for its capabilities.
            DriverCapability::Group(_) if !self.capabilities.has(PluginService::GroupControllerService) => {
                PluginService::GroupControllerService.as_str_name().to_string()
            }
            DriverCapability::Group(one) => one.as_str_name().to_string(),
            DriverCapability::Node(one) => format!("{} on the node", one.as_str_name()),
        }
    }
}
