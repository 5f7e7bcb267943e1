//! What each role may do in the API: what its rules watch and what their actions write, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use api::Kind;
use control::{Action, Permission, Rules};
use rules_attacher::Attacher;
use rules_provisioner::{Capacity, Provisioner, Sources};
use rules_registrar::Marker;
use rules_resizer::Resizer;

use crate::sidecar::Role;

/// Verbs on resources, by API group and resource (`volumeattachments/status`).
pub type Verbs = BTreeMap<(&'static str, String), BTreeSet<&'static str>>;

/// What some roles may do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Everywhere.
    pub cluster: Verbs,
    /// In the namespace of the sidecar alone.
    pub own_namespace: Verbs,
    /// They read the secrets that classes and volumes name.
    pub secrets: bool,
    /// They hold leases.
    pub leases: bool,
    /// They keep a journal, which is a Lease of its own.
    pub journal: bool,
}

/// What roles do only when told to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras {
    /// The provisioner publishes capacities.
    pub capacity: bool,
    /// The registrar writes on its Node.
    pub mark_node: bool,
}

/// What these roles may do together.
pub fn of(roles: &BTreeSet<Role>, extras: Extras) -> Rights {
    let mut rights = Rights::default();
    for role in roles {
        match role {
            Role::Provisioner => {
                rights.take::<Provisioner>();
                rights.take::<Sources>();
                rights.speak();
                if extras.capacity {
                    rights.take::<Capacity>();
                    // Whose disappearance takes the capacity objects along: our pod's owner.
                    rights.allow(Permission { kind: Kind::Pod, subresource: "", verb: "get" }, Reach::OwnNamespace);
                }
            }
            // What it has to say it says in the attachment.
            Role::Attacher => rights.take::<Attacher>(),
            Role::Resizer => {
                rights.take::<Resizer>();
                rights.speak();
            }
            Role::Registrar if extras.mark_node => {
                rights.take::<Marker>();
                rights.speak();
            }
            // These talk to kubelet and the driver alone.
            Role::Registrar | Role::Liveness => {}
        }
        rights.leases |= role.lease("").is_some();
    }
    rights
}

/// Where a right holds.
#[derive(Clone, Copy)]
enum Reach {
    Cluster,
    OwnNamespace,
}

/// Where objects of a kind are that roles look at or write.
fn reach(kind: Kind) -> Reach {
    match kind {
        // Kept beside our own pod.
        Kind::CSIStorageCapacity => Reach::OwnNamespace,
        _elsewhere => Reach::Cluster,
    }
}

impl Rights {
    fn take<R: Rules>(&mut self) {
        // The journal is granted by name.
        self.journal |= R::watches().contains(&Kind::Lease);
        for kind in R::watches().iter().filter(|kind| **kind != Kind::Lease) {
            for verb in ["list", "watch"] {
                self.allow(Permission { kind: *kind, subresource: "", verb }, reach(*kind));
            }
        }
        for permission in R::Action::permissions() {
            // Secrets are granted by name.
            match permission.kind {
                Kind::Secret => self.secrets = true,
                Kind::Lease => self.journal = true,
                kind => self.allow(*permission, reach(kind)),
            }
        }
    }

    /// Users are told of what happens where they look for it.
    fn speak(&mut self) {
        self.allow(Permission { kind: Kind::Event, subresource: "", verb: "create" }, Reach::Cluster);
    }

    fn allow(&mut self, permission: Permission, reach: Reach) {
        let Permission { kind, subresource, verb } = permission;
        let resource =
            if subresource.is_empty() { kind.plural().to_string() } else { format!("{}/{subresource}", kind.plural()) };
        let verbs = match reach {
            Reach::Cluster => &mut self.cluster,
            Reach::OwnNamespace => &mut self.own_namespace,
        };
        verbs.entry((kind.group(), resource)).or_default().insert(verb);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verbs(roles: &[Role], group: &'static str, resource: &str) -> Vec<&'static str> {
        let rights = of(&roles.iter().copied().collect(), Extras::default());
        rights.cluster.get(&(group, resource.to_string())).into_iter().flatten().copied().collect()
    }

    // sidecars 3.8: what the Go attacher asks for, and nodes for the old place of their ids.
    #[test]
    fn the_attacher_may_no_more_than_the_go_attacher() {
        let (storage, attacher) = ("storage.k8s.io", [Role::Attacher]);
        assert_eq!(verbs(&attacher, "", "persistentvolumes"), ["list", "patch", "watch"]);
        assert_eq!(verbs(&attacher, storage, "volumeattachments"), ["get", "list", "patch", "watch"]);
        assert_eq!(verbs(&attacher, storage, "volumeattachments/status"), ["patch"]);
        assert_eq!(verbs(&attacher, storage, "csinodes"), ["list", "watch"]);
        for nothing in ["persistentvolumeclaims", "events"] {
            assert_eq!(verbs(&attacher, "", nothing), [""; 0]);
        }
    }

    #[test]
    fn no_role_may_read_secrets_everywhere_or_change_what_it_does_not_own() {
        let all = of(&Role::ALL.into(), Extras { capacity: true, mark_node: false });
        assert!(all.secrets && all.cluster.keys().all(|(_, resource)| resource != "secrets"));
        let writes = |resource: &str| {
            let found = all.cluster.iter().filter(|((_, name), _)| name == resource);
            found.flat_map(|(_, verbs)| verbs).any(|verb| !matches!(*verb, "get" | "list" | "watch"))
        };
        for read_only in ["nodes", "pods", "storageclasses", "csinodes", "volumesnapshotcontents", "referencegrants"] {
            assert!(!writes(read_only), "{read_only}");
        }
        assert!(all.own_namespace.contains_key(&("storage.k8s.io", "csistoragecapacities".to_string())));
    }

    #[test]
    fn roles_that_talk_to_kubelet_alone_may_nothing() {
        let (roles, capacity) = ([Role::Registrar, Role::Liveness].into(), true);
        assert_eq!(of(&roles, Extras { capacity, mark_node: false }), Rights::default());
        let marks = of(&roles, Extras { capacity, mark_node: true });
        assert_eq!(marks.cluster.len(), 2, "nodes and events: {marks:?}");
        assert!(!marks.leases && !marks.secrets);
    }
}
