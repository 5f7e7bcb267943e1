//! What each role may do in the API: what its rules watch and what their actions write, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use api::Kind;
use control::{Action, Permission, Rules};
use rules_attachdetach::AttachDetach;
use rules_attacher::Attacher;
use rules_binding::{AttributesProtection, Binding};
use rules_node::Node;
use rules_nodelifecycle::NodeLifecycle;
use rules_provisioner::{Capacity, Provisioner, Sources};
use rules_registrar::{Marker, Registrar};
use rules_resizer::Resizer;
use rules_scheduler::Scheduler;

use crate::commands::controllers::ClusterController;
use crate::sidecar::Role;

/// Verbs on resources, by API group and resource (`volumeattachments/status`).
pub type Verbs = BTreeMap<(&'static str, String), BTreeSet<&'static str>>;

/// What some roles may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    pub cluster: Verbs,
    /// In the namespace of the sidecar alone.
    pub own_namespace: Verbs,
    /// They read the secrets that classes and volumes name.
    pub secrets: bool,
    /// They hold leases.
    pub leases: bool,
    /// They keep a journal, which is a Lease of its own.
    pub journal: Option<Journal>,
    /// The controllers that work for no driver in particular hold a lease of their own.
    pub cluster_lease: bool,
}

/// Whose journal is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Journal {
    Driver,
    /// Every node its own: which nodes there are nobody knows.
    Nodes,
}

/// What roles do only when told to, or unless told not to.
#[derive(Clone, Copy, Debug)]
pub struct Extras {
    /// The provisioner publishes capacities.
    pub capacity: bool,
    /// The registrar writes on its Node.
    pub mark_node: bool,
    /// Every node has a provisioner, which asks nobody where its node is and waits for no other.
    pub per_node: bool,
    /// Volumes may be made from snapshots.
    pub snapshots: bool,
    /// Volumes may be made from what is in another namespace.
    pub other_namespaces: bool,
    /// Classes of attributes are looked at.
    pub attributes_classes: bool,
    /// It counts where volumes can be reached from.
    pub topology: bool,
}

impl Default for Extras {
    fn default() -> Extras {
        Extras {
            capacity: false,
            mark_node: false,
            per_node: false,
            snapshots: true,
            other_namespaces: false,
            attributes_classes: true,
            topology: true,
        }
    }
}

impl Extras {
    /// Whether the provisioner has a use for a kind: that without one it neither watches nor writes.
    fn provisioner_uses(self, kind: Kind) -> bool {
        match kind {
            Kind::CSINode | Kind::Node => self.topology && !self.per_node,
            Kind::VolumeSnapshot | Kind::VolumeSnapshotContent => self.snapshots,
            Kind::ReferenceGrant => self.other_namespaces,
            Kind::VolumeAttributesClass => self.attributes_classes,
            _always => true,
        }
    }

    fn resizer_uses(self, kind: Kind) -> bool {
        kind != Kind::VolumeAttributesClass || self.attributes_classes
    }
}

/// Those of some roles that wait for a lease.
pub fn electing(roles: &BTreeSet<Role>, extras: Extras) -> BTreeSet<Role> {
    let alone = |role: Role| role == Role::Provisioner && extras.per_node;
    roles.iter().copied().filter(|role| role.lease("").is_some() && !alone(*role)).collect()
}

/// What these roles may do together.
pub fn of(roles: &BTreeSet<Role>, extras: Extras) -> Rights {
    let mut rights = Rights { leases: !electing(roles, extras).is_empty(), ..Rights::default() };
    for role in roles {
        match role {
            Role::Provisioner => {
                let uses = |kind| extras.provisioner_uses(kind);
                rights.take::<Provisioner>(uses);
                rights.journal = Some(if extras.per_node { Journal::Nodes } else { Journal::Driver });
                rights.take::<Sources>(uses);
                rights.speak();
                if extras.capacity {
                    rights.take::<Capacity>(uses);
                    // Whose disappearance takes the capacity objects along: our pod's owner.
                    rights.allow(Permission { kind: Kind::Pod, subresource: "", verb: "get" }, Reach::OwnNamespace);
                }
            }
            Role::Attacher => {
                rights.take::<Attacher>(|_| true);
                rights.speak();
            }
            Role::Resizer => {
                rights.take::<Resizer>(|kind| extras.resizer_uses(kind));
                rights.speak();
            }
            Role::Registrar if extras.mark_node => {
                rights.take::<Marker>(|_| true);
                rights.speak();
            }
            // These talk to kubelet and the driver alone.
            Role::Registrar | Role::Liveness => {}
        }
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
    /// And what these of `longshore controllers` may do.
    pub fn with_controllers(mut self, controllers: &BTreeSet<ClusterController>) -> Rights {
        for one in controllers {
            match one {
                ClusterController::Binding => {
                    self.take::<Binding>(|_| true);
                    self.take::<AttributesProtection>(|_| true);
                }
                ClusterController::AttachDetach => {
                    self.take::<AttachDetach>(|_| true);
                    // Whether a node lives, before a volume is taken from it. It reads one by its name, and lists none.
                    self.allow(Permission { kind: Kind::Lease, subresource: "", verb: "get" }, Reach::Cluster);
                }
                // Capacities are beside the pods of drivers, wherever those are.
                ClusterController::Scheduler => self.take_within::<Scheduler>(|_| true, |_| Reach::Cluster),
                ClusterController::NodeLifecycle => {
                    self.take::<NodeLifecycle>(|_| true);
                    // Whether nodes live; which ones there are nobody knows beforehand.
                    for verb in ["get", "list", "watch"] {
                        self.allow(Permission { kind: Kind::Lease, subresource: "", verb }, Reach::Cluster);
                    }
                }
            }
            self.speak();
            self.cluster_lease = true;
        }
        self
    }

    /// And what `longshore node` may do.
    pub fn with_node(mut self, node: bool) -> Rights {
        if node {
            self.take::<Registrar>(|_| true);
            self.take::<Node>(|_| true);
            // Which secrets its pods name nobody knows beforehand. It reads one by its name, and lists none.
            self.allow(Permission { kind: Kind::Secret, subresource: "", verb: "get" }, Reach::Cluster);
            // Its own, by which it shows that it lives. Which one that is depends on the node.
            for verb in ["create", "list", "patch", "watch"] {
                self.allow(Permission { kind: Kind::Lease, subresource: "", verb }, Reach::Cluster);
            }
            self.speak();
        }
        self
    }

    fn take<R: Rules>(&mut self, uses: impl Fn(Kind) -> bool) {
        self.take_within::<R>(uses, reach);
    }

    fn take_within<R: Rules>(&mut self, uses: impl Fn(Kind) -> bool, reach: fn(Kind) -> Reach) {
        // The journal is granted by name.
        for kind in R::watches().iter().filter(|kind| **kind != Kind::Lease && uses(**kind)) {
            for verb in ["list", "watch"] {
                self.allow(Permission { kind: *kind, subresource: "", verb }, reach(*kind));
            }
        }
        for permission in R::Action::permissions().iter().filter(|permission| uses(permission.kind)) {
            // Secrets, too.
            match permission.kind {
                Kind::Secret => self.secrets = true,
                Kind::Lease => {}
                kind => self.allow(*permission, reach(kind)),
            }
        }
    }

    /// Users are told of what happens where they look for it.
    fn speak(&mut self) {
        for verb in ["create", "patch"] {
            self.allow(Permission { kind: Kind::Event, subresource: "", verb }, Reach::Cluster);
        }
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
impl Rights {
    /// Takes over the verbs of others.
    pub fn add(&mut self, other: &Rights) {
        let ours = [(&mut self.cluster, &other.cluster), (&mut self.own_namespace, &other.own_namespace)];
        for (mine, theirs) in ours {
            for (resource, verbs) in theirs {
                mine.entry(resource.clone()).or_default().extend(verbs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verbs(roles: &[Role], group: &'static str, resource: &str) -> Vec<&'static str> {
        let rights = of(&roles.iter().copied().collect(), Extras::default());
        rights.cluster.get(&(group, resource.to_string())).into_iter().flatten().copied().collect()
    }

    // Sidecars 3.8: what the Go attacher asks for, and nodes for the old place of their ids; S0-40, S0-45: events.
    #[test]
    fn the_attacher_may_tell_and_else_no_more_than_the_go_attacher() {
        let (storage, attacher) = ("storage.k8s.io", [Role::Attacher]);
        assert_eq!(verbs(&attacher, "", "persistentvolumes"), ["list", "patch", "watch"]);
        assert_eq!(verbs(&attacher, storage, "volumeattachments"), ["get", "list", "patch", "watch"]);
        assert_eq!(verbs(&attacher, storage, "volumeattachments/status"), ["patch"]);
        assert_eq!(verbs(&attacher, storage, "csinodes"), ["list", "watch"]);
        assert_eq!(verbs(&attacher, "", "events"), ["create", "patch"]);
        assert_eq!(verbs(&attacher, "", "persistentvolumeclaims"), [""; 0]);
    }

    // AD-17: the Lease of a node is read past the cache, and only who looks after nodes watches them.
    #[test]
    fn attachdetach_reads_leases_and_nodelifecycle_watches_them() {
        let leases = |one: ClusterController| -> Vec<&'static str> {
            let rights = Rights::default().with_controllers(&[one].into());
            rights.cluster.get(&("coordination.k8s.io", "leases".to_string())).into_iter().flatten().copied().collect()
        };
        assert_eq!(leases(ClusterController::AttachDetach), ["get"]);
        assert_eq!(leases(ClusterController::NodeLifecycle), ["get", "list", "watch"]);
        assert_eq!(leases(ClusterController::Binding), [""; 0]);
    }

    fn node(group: &'static str, resource: &str) -> Vec<&'static str> {
        let rights = Rights::default().with_node(true);
        rights.cluster.get(&(group, resource.to_string())).into_iter().flatten().copied().collect()
    }

    // API-12: what the agent may beside its own objects. KL-79: tokens are of the pods' own accounts; EX-15: a claim's
    // size is in its status.
    #[test]
    fn api_12_the_agent_asks_for_tokens_and_tells_claims_their_size() {
        assert_eq!(node("", "serviceaccounts/token"), ["create"]);
        assert_eq!(node("", "persistentvolumeclaims/status"), ["patch"]);
        assert!(!node("", "persistentvolumeclaims").contains(&"patch"));
        assert_eq!((node("", "secrets"), node("", "configmaps")), (vec!["get"], vec!["get"]));
    }

    // API-13: it makes and deletes attachments and writes the status of nodes; drivers and their nodes it only reads.
    #[test]
    fn api_13_attachdetach_may_what_the_attach_detach_controller_may() {
        let rights = Rights::default().with_controllers(&[ClusterController::AttachDetach].into());
        let verbs = |group, resource: &str| -> Vec<&'static str> {
            rights.cluster.get(&(group, resource.to_string())).into_iter().flatten().copied().collect()
        };
        let storage = "storage.k8s.io";
        // `patch` puts the mark of adoption on attachments that others made, and the fence on nodes.
        assert_eq!(verbs(storage, "volumeattachments"), ["create", "delete", "list", "patch", "watch"]);
        assert_eq!(verbs(storage, "volumeattachments/status"), [""; 0]);
        assert_eq!((verbs(storage, "csidrivers"), verbs("", "nodes/status")), (vec!["list", "watch"], vec!["patch"]));
        assert_eq!(verbs(storage, "csinodes"), ["get", "list", "watch"]);
    }

    // A driver and its capacities may be in any namespace.
    #[test]
    fn the_scheduler_sees_capacities_everywhere() {
        let rights = Rights::default().with_controllers(&[ClusterController::Scheduler].into());
        let capacities = ("storage.k8s.io", "csistoragecapacities".to_string());
        assert_eq!(rights.cluster.get(&capacities), Some(&["list", "watch"].into()));
        assert!(rights.own_namespace.is_empty());
    }

    #[test]
    fn no_role_may_read_secrets_everywhere_or_change_what_it_does_not_own() {
        let all = of(&Role::ALL.into(), Extras { capacity: true, other_namespaces: true, ..Extras::default() });
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
        assert_eq!(of(&roles, Extras { capacity, ..Extras::default() }), Rights::default());
        let marks = of(&roles, Extras { capacity, mark_node: true, ..Extras::default() });
        assert_eq!(marks.cluster.len(), 2, "nodes and events: {marks:?}");
        assert!(!marks.leases && !marks.secrets);
    }

    // Sidecars 2.2: what a gate or the driver leaves no use for is not granted.
    #[test]
    fn what_nobody_has_a_use_for_is_not_granted() {
        let resources = |extras: Extras| -> BTreeSet<String> {
            let rights = of(&[Role::Provisioner, Role::Resizer].into(), extras);
            rights.cluster.into_keys().map(|(_, resource)| resource).collect()
        };
        let usual = resources(Extras::default());
        let less = |extras: Extras| usual.difference(&resources(extras)).cloned().collect::<Vec<_>>();
        assert!(!usual.contains("referencegrants"));
        let more = resources(Extras { other_namespaces: true, ..Extras::default() });
        assert_eq!(more.difference(&usual).collect::<Vec<_>>(), ["referencegrants"]);
        let without = less(Extras { snapshots: false, ..Extras::default() });
        assert_eq!(without, ["volumesnapshotcontents", "volumesnapshots"]);
        let without = less(Extras { attributes_classes: false, ..Extras::default() });
        assert_eq!(without, ["volumeattributesclasses"]);
        assert_eq!(less(Extras { topology: false, ..Extras::default() }), ["csinodes", "nodes"]);
    }

    // P93.
    #[test]
    fn a_provisioner_of_a_node_needs_no_lease_and_no_other_node() {
        let own = of(&[Role::Provisioner].into(), Extras { per_node: true, capacity: true, ..Extras::default() });
        assert!(!own.leases && own.cluster.keys().all(|(_, resource)| resource != "nodes" && resource != "csinodes"));
        let both = of(&[Role::Provisioner, Role::Resizer].into(), Extras { per_node: true, ..Extras::default() });
        assert!(both.leases, "the resizer waits for its own");
    }
}
