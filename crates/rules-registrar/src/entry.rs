//! The entry of a driver in CSINode.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{CSINode, CsiNodeDriver, Precondition, VolumeLimit, names};
use control::{Decision, Why};

use crate::Reason;
use crate::action::Action;
use crate::decide::at;
use crate::local::{NodeInfo, PluginAtSocket};
use crate::view::SocketView;

/// The next write that makes the entry say what the driver said; `None` when it does.
///
/// Each conversation lists its driver once, also where an entry is there that says the same: the entry may only be
/// there in the cache, or a write that takes it away may be under way, decided while the driver was gone. That write
/// carries the version of the object it was decided on, and fails after this one.
pub(crate) fn set(
    view: &SocketView,
    csi_node: &CSINode,
    plugin: &PluginAtSocket,
    place: &NodeInfo,
) -> Option<Decision<Action, Reason>> {
    let wanted = of(plugin, place);
    let held = csi_node.spec.drivers.iter().find(|driver| driver.name == plugin.name);
    let others = csi_node.spec.drivers.iter().filter(|driver| driver.name != plugin.name).cloned();
    let name = &plugin.name;
    let (code, text) = match held {
        Some(held) if !same_identity(held, &wanted) => {
            let (name, only_if) = (csi_node.metadata.name.clone(), Precondition::unchanged(&csi_node.metadata));
            let why = Why::waiting(Reason::NodeIdChanged, format!("the entry of driver {} is made anew", plugin.name));
            return Some(Decision::Do(Action::SetDrivers { name, only_if, drivers: others.collect() }, why));
        }
        Some(held) if held.allocatable != wanted.allocatable => {
            (Reason::DriverLimitChanged, format!("driver {name} changed its volume limit"))
        }
        Some(_) if view.socket.listed => return None,
        Some(_) => (Reason::DriverNotListed, format!("CSINode lists driver {name} from an earlier registration")),
        None => (Reason::DriverNotListed, format!("driver {name} is not in CSINode yet")),
    };
    let action = Action::ListDriver {
        at: at(view),
        name: csi_node.metadata.name.clone(),
        only_if: Precondition::unchanged(&csi_node.metadata),
        drivers: others.chain([wanted]).collect(),
        listings: listings(csi_node).wrapping_add(1),
    };
    Some(Decision::Do(action, Why::waiting(code, text)))
}

fn listings(csi_node: &CSINode) -> u64 {
    csi_node.metadata.annotation(names::DRIVER_LISTINGS).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// What CSINode is to say of a driver.
pub(crate) fn of(plugin: &PluginAtSocket, place: &NodeInfo) -> CsiNodeDriver {
    let keys: Vec<String> = place.topology.keys().cloned().collect();
    // KL-20: zero is no limit, a negative number is nonsense and no limit either.
    let count = i32::try_from(place.max_volumes.clamp(0, i32::MAX.into())).unwrap_or_default();
    CsiNodeDriver {
        name: plugin.name.clone(),
        node_id: place.node_id.clone(),
        topology_keys: (!keys.is_empty()).then_some(keys),
        allocatable: (count > 0).then_some(VolumeLimit { count: Some(count) }),
    }
}

/// Both name the node alike, and say in the same words where it is.
pub(crate) fn same_identity(a: &CsiNodeDriver, b: &CsiNodeDriver) -> bool {
    let keys = |driver: &CsiNodeDriver| driver.topology_keys.iter().flatten().cloned().collect::<BTreeSet<_>>();
    a.node_id == b.node_id && keys(a) == keys(b)
}
