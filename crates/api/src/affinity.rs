//! Where things may be: node selectors of volumes and pods, taints and tolerations, allowed topologies of classes.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::Taint;
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

part! {
    /// Where a pod wants to be. What it merely prefers is not read.
    Affinity { node_affinity: PodNodeAffinity }
}

part! {
    /// Which nodes a pod accepts.
    PodNodeAffinity { required_during_scheduling_ignored_during_execution: Option<NodeSelector> }
}

part! {
    /// A taint that a pod puts up with.
    Toleration { key: String, operator: String, value: String, effect: String, toleration_seconds: Option<i64> }
}

impl VolumeNodeAffinity {
    /// The volume can be reached from the node.
    pub fn admits(&self, node: &str, labels: &BTreeMap<String, String>) -> bool {
        self.required.as_ref().is_none_or(|required| required.admits(node, labels))
    }
}

impl Affinity {
    /// The pod accepts the node.
    pub fn admits(&self, node: &str, labels: &BTreeMap<String, String>) -> bool {
        let required = &self.node_affinity.required_during_scheduling_ignored_during_execution;
        required.as_ref().is_none_or(|required| required.admits(node, labels))
    }
}

impl NodeSelector {
    /// Any of the terms holds, in full. An operator nobody knows does not, because a volume might be out of reach.
    pub fn admits(&self, node: &str, labels: &BTreeMap<String, String>) -> bool {
        self.node_selector_terms.iter().any(|term| term.holds(node, labels))
    }
}

impl TopologySelectorTerm {
    /// A class with these terms allows volumes for a node with these labels (SC-4): one term holds in full. No terms
    /// allow every node; a term without expressions allows none.
    pub fn allow(terms: &[TopologySelectorTerm], labels: &BTreeMap<String, String>) -> bool {
        let listed =
            |wanted: &TopologyRequirement| labels.get(&wanted.key).is_some_and(|found| wanted.values.contains(found));
        let holds = |term: &TopologySelectorTerm| {
            !term.match_label_expressions.is_empty() && term.match_label_expressions.iter().all(listed)
        };
        terms.is_empty() || terms.iter().any(holds)
    }
}

impl Toleration {
    /// The pod puts up with this taint. A toleration without a key is for all, one without an effect for all effects.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let anything = self.key.is_empty() && self.operator == "Exists";
        (self.effect.is_empty() || self.effect == taint.effect)
            && (anything || !self.key.is_empty() && self.key == taint.key)
            && match self.operator.as_str() {
                "Exists" => true,
                "" | "Equal" => self.value == taint.value,
                _unknown => false,
            }
    }
}

impl Taint {
    /// It keeps new pods away, unless they tolerate it.
    pub fn closes(&self) -> bool {
        matches!(self.effect.as_str(), "NoSchedule" | "NoExecute")
    }

    /// It ends pods that are there already, unless they tolerate it.
    pub fn evicts(&self) -> bool {
        self.effect == "NoExecute"
    }
}

/// As `kubectl taint` takes it.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Taint { key, value, effect, time_added: _ } = self;
        match value.is_empty() {
            true => write!(f, "{key}:{effect}"),
            false => write!(f, "{key}={value}:{effect}"),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn toleration(key: &str, operator: &str, value: &str, effect: &str) -> Toleration {
        let [key, operator, value, effect] = [key, operator, value, effect].map(String::from);
        Toleration { key, operator, value, effect, toleration_seconds: None }
    }

    #[test]
    fn tolerations_are_read_as_kubernetes_reads_them() {
        let taint = Taint { key: "a".into(), value: "b".into(), effect: "NoSchedule".into(), time_added: None };
        for (key, operator, value, effect, tolerated) in [
            ("a", "Equal", "b", "NoSchedule", true),
            ("a", "", "b", "", true),
            ("a", "Exists", "", "NoSchedule", true),
            ("", "Exists", "", "", true),
            ("a", "Equal", "c", "NoSchedule", false),
            ("a", "Equal", "", "NoSchedule", false),
            ("a", "Exists", "", "NoExecute", false),
            ("c", "Exists", "", "", false),
            ("", "Equal", "b", "", false),
            ("a", "Gt", "b", "", false),
        ] {
            let judged = toleration(key, operator, value, effect).tolerates(&taint);
            assert_eq!(judged, tolerated, "{key} {operator} {value} {effect}");
        }
        assert_eq!(taint.to_string(), "a=b:NoSchedule");
        assert!(taint.closes() && !taint.evicts() && !Taint { effect: "PreferNoSchedule".into(), ..taint }.closes());
    }
}
