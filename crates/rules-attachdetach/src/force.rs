//! Taking a volume from a node that does not answer: when that may be considered. What shows that the node is dead is
//! its [`Pulse`].

use alloc::format;
use alloc::string::String;

use api::{Node, ObjectKey, names};
use control::{Cache, Pulse};
use rules_translate::Migration;

/// Whether a volume may be taken from a node without the node's word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ForcePolicy {
    /// Never; with what is wrong about the class that says something else.
    Never(Option<String>),
    /// The node has the taint `node.kubernetes.io/out-of-service`.
    OutOfService,
    /// The volume's class lets its volumes go from a node that has shown no sign of life for so many milliseconds.
    After(u64),
    /// The controller was told to let every volume go from such a node, and somebody says that this node is Unknown.
    Everywhere(u64),
}

/// What the controller was told when it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Local {
    /// Volumes whose class says nothing about it may leave a dead node that has shown no sign of life for so many
    /// milliseconds; never without.
    pub force_after: Option<u64>,
    /// How far the migration of each in-tree plugin has come.
    pub migration: Migration,
}

/// What may be done about the volumes of a class on a node.
pub(crate) fn policy(cache: &Cache, local: &Local, class: &str, node: &str) -> ForcePolicy {
    let node = cache.node(&ObjectKey::cluster(node));
    if node.as_ref().is_some_and(|node| is_out_of_service(node)) {
        return ForcePolicy::OutOfService;
    }
    let class = cache.class(&ObjectKey::cluster(class));
    let Some(said) = class.as_ref().and_then(|class| class.metadata.annotation(names::FORCE_DETACH_AFTER)) else {
        // For every volume of the cluster: a pod that ends on a node that is heard of must not cost a read of a Lease.
        let unheard = node.is_some_and(|node| is_unheard(&node));
        let everywhere = local.force_after.filter(|_| unheard).map(ForcePolicy::Everywhere);
        return everywhere.unwrap_or(ForcePolicy::Never(None));
    };
    match millis(said) {
        // Less than the Lease lasts shows nothing, and is waited out by the pulse.
        Some(millis) => ForcePolicy::After(millis),
        None if said == "never" => ForcePolicy::Never(None),
        None => {
            let annotation = names::FORCE_DETACH_AFTER;
            let problem = format!("the class's annotation {annotation} must be like 5m, or never, and is {said:?}");
            ForcePolicy::Never(Some(problem))
        }
    }
}

/// Somebody has said that the node is shut down.
pub(crate) fn is_out_of_service(node: &Node) -> bool {
    node.spec.taints.iter().any(|taint| taint.key == names::OUT_OF_SERVICE_TAINT)
}

/// Somebody else has noticed that the node is not heard of any more: then its condition Ready is Unknown.
pub(crate) fn is_unheard(node: &Node) -> bool {
    node.status.conditions.iter().any(|condition| condition.r#type == "Ready" && condition.status == "Unknown")
}

/// A whole number of seconds, minutes or hours, in milliseconds.
pub fn millis(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _other => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

impl ForcePolicy {
    /// For how long a node must have shown no sign of life, beyond what shows that it is dead.
    pub(crate) fn silence(&self) -> u64 {
        match self {
            ForcePolicy::After(millis) | ForcePolicy::Everywhere(millis) => *millis,
            ForcePolicy::OutOfService | ForcePolicy::Never(_) => 0,
        }
    }
}

/// What is written down about a volume that was taken from a node.
pub(crate) fn evidence(policy: &ForcePolicy, pulse: Option<&Pulse>, unheard: bool) -> String {
    let why = match policy {
        ForcePolicy::OutOfService => format!("the node has the taint {}", names::OUT_OF_SERVICE_TAINT),
        ForcePolicy::After(millis) => {
            format!("the class lets volumes go from a node without a sign of life for {} s", millis / 1_000)
        }
        ForcePolicy::Everywhere(millis) => {
            let seconds = millis / 1_000;
            format!("--force-detach-after lets volumes go from a node without a sign of life for {seconds} s")
        }
        ForcePolicy::Never(_) => String::new(),
    };
    format!("{why}; {}", pulse.map(|pulse| pulse.evidence(unheard)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_with_a_unit() {
        assert_eq!((millis("90s"), millis("5m"), millis("1h")), (Some(90_000), Some(300_000), Some(3_600_000)));
        for odd in ["", "5", "m", "5 m", "-5m", "1.5h", "5ü", "99999999999999999999s"] {
            assert_eq!(millis(odd), None, "{odd}");
        }
    }
}
