//! What a driver says it can still provide, and the classes of attributes that can change on a living volume.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::core_v1::part;
use crate::{Meta, Quantity};

part! {
    /// How much a driver can provide for a class in one place.
    CSIStorageCapacity {
        metadata: Meta,
        node_topology: Option<LabelSelector>,
        storage_class_name: String,
        capacity: Option<Quantity>,
        maximum_volume_size: Option<Quantity>,
    }
}

part! {
    /// Labels that must be there, and requirements on labels.
    LabelSelector { match_labels: BTreeMap<String, String>, match_expressions: Vec<LabelRequirement> }
}

part! {
    /// What a label must be.
    LabelRequirement { key: String, operator: String, values: Vec<String> }
}

part! {
    /// Attributes of volumes that may change while they live.
    VolumeAttributesClass { metadata: Meta, driver_name: String, parameters: BTreeMap<String, String> }
}

impl LabelSelector {
    /// Every label and every requirement holds. An empty selector selects everything; an operator nobody knows, nothing.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|wanted| {
                let found = labels.get(&wanted.key);
                let listed = found.is_some_and(|found| wanted.values.contains(found));
                match wanted.operator.as_str() {
                    "In" => listed,
                    "NotIn" => !listed,
                    "Exists" => found.is_some(),
                    "DoesNotExist" => found.is_none(),
                    _unknown => false,
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_selector_wants_all_it_says() {
        let labels = [("zone".into(), "a".into())].into();
        let asks = |key: &str, operator: &str, values: &[&str]| LabelSelector {
            match_expressions: vec![LabelRequirement {
                key: key.into(),
                operator: operator.into(),
                values: values.iter().map(|value| (*value).into()).collect(),
            }],
            ..LabelSelector::default()
        };
        assert!(LabelSelector::default().selects(&labels));
        assert!(asks("zone", "In", &["a", "b"]).selects(&labels));
        assert!(!asks("zone", "NotIn", &["a"]).selects(&labels));
        assert!(asks("rack", "NotIn", &["a"]).selects(&labels));
        assert!(asks("zone", "Exists", &[]).selects(&labels));
        assert!(asks("rack", "DoesNotExist", &[]).selects(&labels));
        assert!(!asks("zone", "Near", &["a"]).selects(&labels));
        let other = LabelSelector { match_labels: [("zone".into(), "b".into())].into(), ..LabelSelector::default() };
        assert!(!other.selects(&labels));
    }
}
