//! Where things may be: node selectors of volumes, allowed topologies of classes.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::core_v1::part;

part! {
    /// Which nodes can reach a volume.
    VolumeNodeAffinity { required: Option<NodeSelector> }
}

part! {
    /// Terms of which one must hold.
    NodeSelector { node_selector_terms: Vec<NodeSelectorTerm> }
}

part! {
    /// Requirements of which all must hold.
    NodeSelectorTerm { match_expressions: Vec<NodeRequirement>, match_fields: Vec<NodeRequirement> }
}

part! {
    /// What a label or field must be.
    NodeRequirement { key: String, operator: String, values: Vec<String> }
}

part! {
    /// One place a class allows: every expression must hold.
    TopologySelectorTerm { match_label_expressions: Vec<TopologyRequirement> }
}

part! {
    /// A label and the values it may have.
    TopologyRequirement { key: String, values: Vec<String> }
}

impl VolumeNodeAffinity {
    /// Any of the required terms holds, in full. An operator nobody knows does not, because the volume might be out of
    /// reach.
    pub fn admits(&self, node: &str, labels: &BTreeMap<String, String>) -> bool {
        let Some(required) = &self.required else { return true };
        required.node_selector_terms.iter().any(|term| term.holds(node, labels))
    }
}

impl NodeSelectorTerm {
    fn holds(&self, node: &str, labels: &BTreeMap<String, String>) -> bool {
        // An empty term selects nothing.
        !(self.match_expressions.is_empty() && self.match_fields.is_empty())
            && self.match_expressions.iter().all(|wanted| wanted.holds(labels.get(&wanted.key).map(String::as_str)))
            && self.match_fields.iter().all(|wanted| wanted.holds((wanted.key == "metadata.name").then_some(node)))
    }
}

impl NodeRequirement {
    /// The label has exactly this value.
    pub fn is(key: impl Into<String>, value: impl Into<String>) -> Self {
        NodeRequirement { key: key.into(), operator: "In".into(), values: alloc::vec![value.into()] }
    }

    fn holds(&self, found: Option<&str>) -> bool {
        let listed = found.is_some_and(|found| self.values.iter().any(|value| value == found));
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = self.values.first().and_then(|value| number(value));
        let compared = found.and_then(number).zip(bound);
        match self.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            "Gt" => compared.is_some_and(|(found, bound)| found > bound),
            "Lt" => compared.is_some_and(|(found, bound)| found < bound),
            _unknown => false,
        }
    }
}
