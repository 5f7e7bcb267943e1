use alloc::string::ToString;
use alloc::vec::Vec;

use serde_json::Value;

use super::KindRules;
use crate::table::{AGE, NAME, or, show, text, wide};
use crate::validate::items;

pub(super) static RULES: KindRules = KindRules {
    selectable: &["spec.unschedulable"],
    columns: &[
        NAME,
        text("Status", |row| status(row.object)),
        text("Roles", |row| roles(row.object)),
        AGE,
        text("Version", |row| show(&row.object["status"]["nodeInfo"]["kubeletVersion"])),
        wide("Internal-IP", |row| address(row.object, "InternalIP")),
        wide("External-IP", |row| address(row.object, "ExternalIP")),
        wide("OS-Image", |row| or(&row.object["status"]["nodeInfo"]["osImage"], "<unknown>")),
        wide("Kernel-Version", |row| or(&row.object["status"]["nodeInfo"]["kernelVersion"], "<unknown>")),
        wide("Container-Runtime", |row| or(&row.object["status"]["nodeInfo"]["containerRuntimeVersion"], "<unknown>")),
    ],
    // A node registers itself with its status in one step.
    created_with_status: true,
    ..KindRules::plain(&wire::messages::NODE)
};

fn status(node: &Value) -> Value {
    let mut conditions = items(&node["status"]["conditions"]);
    let ready = conditions.find(|c| c["type"].as_str() == Some("Ready")).map(|c| c["status"].as_str());
    let mut state = match ready {
        Some(Some("True")) => "Ready".to_string(),
        Some(Some(_) | None) => "NotReady".to_string(),
        None => "Unknown".to_string(),
    };
    if node["spec"]["unschedulable"].as_bool() == Some(true) {
        state.push_str(",SchedulingDisabled");
    }
    state.into()
}

fn roles(node: &Value) -> Value {
    const ROLE: &str = "node-role.kubernetes.io/";
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: Vec<&str> = labels.filter_map(|(key, _)| key.strip_prefix(ROLE)).collect();
    if roles.is_empty() { "<none>".into() } else { roles.join(",").into() }
}

fn address(node: &Value, of: &str) -> Value {
    let address = items(&node["status"]["addresses"]).find(|address| address["type"].as_str() == Some(of));
    or(address.map_or(&Value::Null, |address| &address["address"]), "<none>")
}
