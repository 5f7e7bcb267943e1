//! What is deployed for a driver (S0-65 to S0-71), object by object.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::check::{SecretName, scalar};
use super::workload::{Part, workload};
use super::{monitoring, rbac, rights};
use crate::sidecar::Role;

/// Everything that was asked for, checked.
pub struct Plan {
    /// The driver's name.
    pub driver: String,
    /// What objects are named after.
    pub name: String,
    /// The driver's image.
    pub driver_image: String,
    /// The driver's arguments beside the controller's sidecar.
    pub controller_args: Vec<String>,
    /// The driver's arguments on nodes.
    pub node_args: Vec<String>,
    pub image: String,
    /// Where it all is.
    pub namespace: String,
    /// Controller and node in one pod on every node.
    pub all_in_one: bool,
    /// What the controller's sidecar does.
    pub roles: BTreeSet<Role>,
    /// CSIDriver: volumes are attached first.
    pub attach_required: bool,
    /// CSIDriver: the driver is told of the pod.
    pub pod_info: bool,
    /// CSIDriver: volumes that live and die with a pod.
    pub ephemeral: bool,
    /// CSIDriver: who changes the owner of files.
    pub fs_group_policy: String,
    /// The class's name, if there is to be one.
    pub class: Option<String>,
    /// It is the class of claims that name none.
    pub default_class: bool,
    /// Volumes wait for a pod.
    pub wait_for_consumer: bool,
    /// Somebody is to watch it.
    pub monitoring: bool,
    /// What the sidecars do besides, or leave.
    pub extras: rights::Extras,
    /// What the sidecars are told besides: each what it has a flag for.
    pub sidecar_args: Vec<String>,
    /// Gates of the sidecars, as they were given.
    pub gates: String,
    /// What may be read that is secret.
    pub secrets: Vec<SecretName>,
    pub kubelet_dir: String,
}

impl Plan {
    /// The sets of pods.
    pub fn parts(&self) -> &'static [Part] {
        let one_set = self.all_in_one || self.extras.per_node;
        if one_set { &[Part::AllInOne] } else { &[Part::Controller, Part::Node] }
    }
}

/// All objects, in an order in which they can be applied.
pub fn document(plan: &Plan) -> String {
    let mut objects = vec![csi_driver(plan)];
    objects.extend(plan.class.as_deref().map(|name| class(plan, name)));
    for part in plan.parts() {
        let roles = part.roles(plan);
        let account = format!("{}-{}", plan.name, part.suffix());
        let holder = rbac::Holder { account, namespace: plan.namespace.clone(), driver: Some(plan.driver.clone()) };
        let (rights, electing) = (rights::of(&roles, plan.extras), rights::electing(&roles, plan.extras));
        objects.push(rbac::document(&holder, &electing, &rights, &plan.secrets));
        objects.push(workload(plan, *part));
    }
    objects.extend(plan.monitoring.then(|| monitoring::objects(plan)));
    objects.join("---\n")
}

fn csi_driver(plan: &Plan) -> String {
    let modes = if plan.ephemeral { "Persistent, Ephemeral" } else { "Persistent" };
    format!(
        "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata:\n  name: {}\nspec:\n  attachRequired: {}\n  \
         podInfoOnMount: {}\n  fsGroupPolicy: {}\n  volumeLifecycleModes: [{modes}]\n  storageCapacity: {}\n",
        scalar(&plan.driver),
        plan.attach_required,
        plan.pod_info,
        quoted_none(&plan.fs_group_policy),
        plan.extras.capacity,
    )
}

/// `None` is text here, which some readers of YAML forget.
fn quoted_none(policy: &str) -> String {
    if policy == "None" { "\"None\"".into() } else { policy.into() }
}

fn class(plan: &Plan, name: &str) -> String {
    let mut text = format!("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata:\n  name: {}\n", scalar(name));
    if plan.default_class {
        text.push_str("  annotations:\n    storageclass.kubernetes.io/is-default-class: \"true\"\n");
    }
    let mode = if plan.wait_for_consumer { "WaitForFirstConsumer" } else { "Immediate" };
    let _ = write!(
        text,
        "provisioner: {}\nreclaimPolicy: Delete\nvolumeBindingMode: {mode}\nallowVolumeExpansion: {}\n",
        scalar(&plan.driver),
        plan.roles.contains(&Role::Resizer),
    );
    text
}
