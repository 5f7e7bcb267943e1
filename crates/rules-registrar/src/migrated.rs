//! What the node's CSINode says about in-tree plugins: those whose volumes the node has left to drivers.

use alloc::format;
use alloc::string::String;

use api::{CSINode, Kind, Node, Precondition, names};
use control::{Decision, Effect, Timestamp, Why};
use serde_json::json;

use crate::Reason;
use crate::action::{Action, before_list, patch};
use crate::decide::with_ready;
use crate::view::SelfView;

/// KL-23, S4-30, S4-31: the list is written before the node is ready, so that no pod is placed there whose volumes
/// would be attached in the other way; a node that was ready in an earlier life, with other gates, is not any more
/// until then. S4-36: the list goes again with the gates.
pub(crate) fn decide(
    now: Timestamp,
    view: &SelfView,
    node: &Node,
    csi_node: &CSINode,
) -> Option<Decision<Action, Reason>> {
    let wanted = view.migrated_plugins.as_deref();
    if csi_node.metadata.annotation(names::MIGRATED_PLUGINS) == wanted {
        return None;
    }
    let name = view.name.clone();
    let text = match wanted {
        Some(_) => format!("CSINode {name} does not list the in-tree plugins that the node has left to drivers"),
        None => format!("CSINode {name} lists in-tree plugins, and the node has left none to drivers"),
    };
    let action = if node.is_ready() {
        let conditions = with_ready(node, before_list(&now.to_time()));
        Action::SetNotReady { name, only_if: Precondition::unchanged(&node.metadata), conditions }
    } else {
        let plugins = view.migrated_plugins.clone();
        Action::ListMigrated { name, only_if: Precondition::unchanged(&csi_node.metadata), plugins }
    };
    Some(Decision::Do(action, Why::waiting(Reason::MigratedPluginsNotListed, text)))
}

/// Writes the list on the CSINode, or takes it away, and touches no other annotation.
pub(crate) fn list(name: &str, only_if: &Precondition, plugins: Option<&String>) -> Effect {
    let body = json!({ "metadata": { "annotations": { names::MIGRATED_PLUGINS: plugins } } });
    patch(Kind::CSINode, name, None, only_if, body)
}
