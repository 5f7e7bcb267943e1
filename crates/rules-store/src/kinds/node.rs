use alloc::string::ToString;
use alloc::vec::Vec;

use serde_json::Value;
use wire::messages::{NODE, NODE_SPEC, TAINT};

use super::KindRules;
use crate::fields::meta::META;
use crate::fields::tables;
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
    ..KindRules::plain(&FIELDS)
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

tables! {
    FIELDS = NODE {
        honoured metadata => META;
        honoured spec => NODE_WISHES;
        honoured status;
    }
    NODE_WISHES = NODE_SPEC {
        honoured unschedulable: "Whether new pods stay away.";
        honoured taints: "What keeps pods away that do not tolerate it." => TAINTS;
        honoured podCIDR, podCIDRs, providerID, externalID: "For people and programs to read; nothing here acts on it.";
        warned configSource: "the node agent is not set up through the API; its flags say all";
        warned podPreemptionPolicy: "no pod gives way to another here";
    }
    TAINTS = TAINT {
        honoured key, value, timeAdded;
        honoured effect: "NoSchedule keeps new pods away; NoExecute ends those as well that are there and do not \
            tolerate it. PreferNoSchedule does nothing: the scheduler has no preferences.";
    }
}
