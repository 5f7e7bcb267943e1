//! `longshore deploy`: everything a driver needs in a cluster, as YAML to read, keep and apply.
//!
//! What the sidecars may do is not written here: it is computed from what their rules watch and do (`rights`).

#[cfg(test)]
mod chart;
mod check;
mod controllers;
mod monitoring;
mod objects;
mod passed;
mod rbac;
mod rights;
mod workload;

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::commands::controllers::ClusterController;
use crate::layout::DRIVER;
use crate::out;
use crate::sidecar::{Role, gates};

/// Where kubelet keeps its folders unless it was told otherwise.
const KUBELET_DIR: &str = "/var/lib/kubelet";
/// Where a cluster's own parts live, privileged ones among them.
const NAMESPACE: &str = "kube-system";
/// Our image, and that of our own driver, which `make image` makes.
const IMAGE: &str = concat!("longshore:", env!("CARGO_PKG_VERSION"));
const REFERENCE_IMAGE: &str = concat!("longshore-driver:", env!("CARGO_PKG_VERSION"));

/// `longshore deploy`.
#[derive(Args, Clone)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  longshore deploy --driver-name=csi.example.com --driver-image=example/driver:1.2 --driver-arg='--endpoint=$(CSI_ENDPOINT)' | kubectl apply -f -
  longshore deploy --driver-name=csi.example.com --driver-image=example/driver:1.2 --all-in-one > base/driver.yaml
  longshore deploy --reference-driver --registry=registry.example | kubectl apply -f -
  longshore deploy controllers | kubectl apply -f -
  longshore deploy rbac --roles=attacher --driver-name=csi.example.com

The driver's containers get CSI_ENDPOINT (where to listen) and NODE_NAME in their environment; its arguments may refer to
them as $(CSI_ENDPOINT) and $(NODE_NAME)."
)]
pub struct Deploy {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    driver: Driver,
}

#[derive(Subcommand, Clone)]
enum Part {
    /// Print what the sidecars of some roles, or other parts of Longshore, may do, and nothing else
    Rbac(Rbac),
    /// Print `longshore controllers` as a Deployment of two that stand by for each other, with its rights
    Controllers(controllers::DeployControllers),
}

/// Where our images come from.
#[derive(Args, Clone)]
pub struct Images {
    /// Longshore's image, whose entrypoint is the longshore binary [default: longshore of this version]
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// The registry that has Longshore's images of this version, such as registry.example/storage; those that are named
    /// stay as they are
    #[arg(long, value_name = "REGISTRY")]
    registry: Option<String>,
}

impl Images {
    /// One of ours, from the registry if there is one.
    fn ours(&self, image: &str) -> Result<String, String> {
        let Some(registry) = self.registry.as_deref() else { return Ok(image.into()) };
        Ok(format!("{}/{image}", check::registry(registry)?))
    }

    fn longshore(&self) -> Result<String, String> {
        match &self.image {
            Some(image) => check::image("--image", image),
            None => self.ours(IMAGE),
        }
    }
}

/// The driver to deploy.
#[derive(Args, Clone)]
pub(crate) struct Driver {
    /// The driver's name, as it tells it itself, such as csi.example.com
    #[arg(long, value_name = "NAME")]
    driver_name: Option<String>,
    /// The driver's image
    #[arg(long, value_name = "IMAGE")]
    driver_image: Option<String>,
    /// Longshore's own driver, whose volumes are files on the node that makes them: the same as its name, image and
    /// arguments, --node-deployment, --wait-for-consumer, --capacity, --pod-info and --ephemeral
    #[arg(long, conflicts_with_all = ["driver_name", "all_in_one", "attach_required"])]
    reference_driver: bool,
    /// An argument of the driver, on controller and nodes (repeat for more)
    #[arg(long = "driver-arg", value_name = "ARG", allow_hyphen_values = true)]
    driver_args: Vec<String>,
    /// An argument of the driver on the controller alone, after those of --driver-arg
    #[arg(long = "controller-arg", value_name = "ARG", allow_hyphen_values = true)]
    controller_args: Vec<String>,
    /// An argument of the driver on the nodes alone, after those of --driver-arg
    #[arg(long = "node-arg", value_name = "ARG", allow_hyphen_values = true)]
    node_args: Vec<String>,
    /// What the objects are named after [default: the driver's name with dashes for dots]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    images: Images,
    /// An argument of the sidecars that have such a flag, such as --retry-interval-max=1m (repeat for more)
    #[arg(long = "sidecar-arg", value_name = "ARG", allow_hyphen_values = true)]
    sidecar_args: Vec<String>,
    /// Where everything lives that lives in a namespace; it must exist, and admit privileged pods
    #[arg(long, short, value_name = "NAMESPACE", default_value = NAMESPACE)]
    namespace: String,
    /// One DaemonSet for controller and node alike, for drivers that need no place of their own; the leader's sidecar works
    #[arg(long)]
    all_in_one: bool,
    /// What the controller's sidecar does [default: provisioner,attacher,resizer; provisioner with --node-deployment]
    #[arg(long, value_name = "ROLES", value_delimiter = ',')]
    roles: Vec<String>,
    #[command(flatten)]
    uses: Uses,
    /// Whether volumes are attached to a node before it can use them; false leaves the attacher out [default: true; false
    /// with --node-deployment]
    #[arg(long, value_name = "BOOL")]
    attach_required: Option<bool>,
    /// Tell the driver about the pod when a volume is published
    #[arg(long)]
    pod_info: bool,
    /// Offer volumes that live and die with a pod, too
    #[arg(long)]
    ephemeral: bool,
    /// Who changes the owner of files: None, File or ReadWriteOnceWithFSType
    #[arg(long, value_name = "POLICY", default_value = "File")]
    fs_group_policy: String,
    /// The StorageClass's name [default: the driver's name; empty for no class]
    #[arg(long, value_name = "NAME")]
    storage_class: Option<String>,
    /// Make it the class of claims that name none
    #[arg(long)]
    default_class: bool,
    /// Make volumes only once a pod wants them, where the pod can run
    #[arg(long)]
    wait_for_consumer: bool,
    /// Publish what the driver can still provide, for the scheduler
    #[arg(long)]
    capacity: bool,
    /// Also print a ServiceMonitor, for the Prometheus operator, and a dashboard for Grafana
    #[arg(long)]
    monitoring: bool,
    /// A Secret the sidecars may read (repeat for more); none without
    #[arg(long = "secret", value_name = "NAMESPACE/NAME")]
    secrets: Vec<String>,
    /// Kubelet's directory on the nodes
    #[arg(long, value_name = "DIR", default_value = KUBELET_DIR)]
    kubelet_dir: String,
}

/// What there is a use for.
#[derive(Args, Clone)]
pub struct Uses {
    /// A provisioner on every node, for drivers that make volumes on their own node alone
    #[arg(long)]
    node_deployment: bool,
    /// Gates of the sidecar, such as CrossNamespaceVolumeDataSource=true; rights that a gate leaves no use for are left out
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    feature_gates: String,
    /// Whether the driver makes snapshots; false leaves out the rights to volumes' snapshots
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    snapshots: bool,
}

impl Uses {
    fn extras(&self) -> Result<rights::Extras, String> {
        let gates = gates(&self.feature_gates)?;
        let on = |name: &str, usual: bool| gates.get(name).copied().unwrap_or(usual);
        Ok(rights::Extras {
            per_node: self.node_deployment,
            snapshots: self.snapshots,
            other_namespaces: on("CrossNamespaceVolumeDataSource", false),
            attributes_classes: on("VolumeAttributesClass", true),
            topology: on("Topology", true),
            ..rights::Extras::default()
        })
    }
}

/// `longshore deploy rbac`.
#[derive(Args, Clone)]
pub struct Rbac {
    /// What the sidecar does, such as provisioner,attacher,resizer
    #[arg(long, value_name = "ROLES", value_delimiter = ',')]
    roles: Vec<String>,
    /// What `longshore controllers` runs, such as binding,attachdetach,scheduler; * is these
    #[arg(long, value_name = "NAMES", value_delimiter = ',', allow_hyphen_values = true)]
    controllers: Vec<String>,
    /// Also what `longshore node` needs
    #[arg(long)]
    node: bool,
    /// The driver's name: its leases are the only ones that may be held
    #[arg(long, value_name = "NAME")]
    driver_name: Option<String>,
    /// Where the sidecar and its leases are
    #[arg(long, short, value_name = "NAMESPACE", default_value = NAMESPACE)]
    namespace: String,
    /// Who gets the rights [default: NAME-controller, with the driver's name, dashes for dots]
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
    /// A Secret that may be read (repeat for more); none without
    #[arg(long = "secret", value_name = "NAMESPACE/NAME")]
    secrets: Vec<String>,
    /// Also what the provisioner needs with --enable-capacity
    #[arg(long)]
    capacity: bool,
    /// Also what the registrar needs with --mark-node
    #[arg(long)]
    mark_node: bool,
    #[command(flatten)]
    uses: Uses,
}

/// Prints; what is wrong with the arguments is one sentence.
pub fn command(args: &Deploy) -> ExitCode {
    let text = match &args.part {
        Some(Part::Rbac(args)) => rbac(args),
        Some(Part::Controllers(args)) => controllers::document(args),
        None if args.driver.reference_driver => reference(args.driver.clone()).and_then(|args| manifests(&args)),
        None => manifests(&args.driver),
    };
    match text {
        Ok(text) => {
            out::say(text.trim_end());
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            out::complain(&sentence);
            ExitCode::from(2)
        }
    }
}

fn rbac(args: &Rbac) -> Result<String, String> {
    let (roles, controllers) = (roles_of(&args.roles)?, ClusterController::named(&args.controllers)?);
    if roles.is_empty() && controllers.is_empty() && !args.node {
        return Err("--roles is missing; name what the sidecar does, such as --roles=provisioner,attacher".into());
    }
    let driver = args.driver_name.as_deref().map(check::driver_name).transpose()?;
    let account = match (&args.service_account, &driver) {
        (Some(name), _) => check::subdomain("--service-account", name)?,
        (None, Some(driver)) => format!("{}-controller", check::object_name(None, driver)?),
        (None, None) => "longshore".into(),
    };
    let holder = rbac::Holder { account, namespace: check::label("--namespace", &args.namespace)?, driver };
    let extras = rights::Extras { capacity: args.capacity, mark_node: args.mark_node, ..args.uses.extras()? };
    let secrets = check::secrets(&args.secrets)?;
    let rights = rights::of(&roles, extras).with_controllers(&controllers).with_node(args.node);
    Ok(rbac::document(&holder, &rights::electing(&roles, extras), &rights, &secrets))
}

/// What is said of our own driver where nobody says it.
fn reference(args: Driver) -> Result<Driver, String> {
    let kubelet = args.kubelet_dir.trim_end_matches('/');
    let own = [
        "driver".to_string(),
        "--endpoint=$(CSI_ENDPOINT)".into(),
        "--node-id=$(NODE_NAME)".into(),
        // The one folder that is there on the node, outlasts the pod and shares its mounts with the node.
        format!("--state-dir={kubelet}/plugins/{DRIVER}/state"),
        format!("--shared-dir={kubelet}/pods"),
        "--no-registration".into(),
        "--without=publish".into(),
    ];
    let image = args.driver_image.map_or_else(|| args.images.ours(REFERENCE_IMAGE), Ok)?;
    Ok(Driver {
        driver_name: Some(DRIVER.into()),
        driver_image: Some(image),
        driver_args: own.into_iter().chain(args.driver_args).collect(),
        uses: Uses { node_deployment: true, ..args.uses },
        wait_for_consumer: true,
        capacity: true,
        pod_info: true,
        ephemeral: true,
        ..args
    })
}

fn manifests(args: &Driver) -> Result<String, String> {
    let name = args
        .driver_name
        .as_deref()
        .ok_or("--driver-name is missing; give the name the driver tells of itself, or --reference-driver for ours")?;
    let image = args.driver_image.as_deref().ok_or("--driver-image is missing; give the image the driver runs from")?;
    let attach_required = args.attach_required.unwrap_or(!args.uses.node_deployment);
    let roles = controller_roles(args, attach_required)?;
    if let Some(role) = roles.iter().find(|role| role.lease("").is_none()) {
        return Err(format!(
            "--roles names what the controller does, and the {role} is on every node anyway; leave it out"
        ));
    }
    let driver = check::driver_name(name)?;
    let class = match args.storage_class.as_deref() {
        Some("") => None,
        Some(name) => Some(check::subdomain("--storage-class", name)?),
        None => Some(driver.clone()),
    };
    if args.capacity && !roles.contains(&Role::Provisioner) {
        return Err("--capacity is told by the provisioner; add it to --roles".into());
    }
    if class.is_none() && args.default_class {
        return Err("--default-class needs a class; leave --storage-class out or name one with it".into());
    }
    let extras = rights::Extras { capacity: args.capacity, ..args.uses.extras()? };
    let plan = objects::Plan {
        extras,
        gates: args.uses.feature_gates.clone(),
        name: check::object_name(args.name.as_deref(), &driver)?,
        namespace: check::label("--namespace", &args.namespace)?,
        driver_image: check::image("--driver-image", image)?,
        image: args.images.longshore()?,
        controller_args: [args.driver_args.clone(), args.controller_args.clone()].concat(),
        node_args: [args.driver_args.clone(), args.node_args.clone()].concat(),
        all_in_one: args.all_in_one,
        attach_required,
        pod_info: args.pod_info,
        ephemeral: args.ephemeral,
        fs_group_policy: check::one_of(
            "--fs-group-policy",
            &args.fs_group_policy,
            &["None", "File", "ReadWriteOnceWithFSType"],
        )?,
        class,
        default_class: args.default_class,
        wait_for_consumer: args.wait_for_consumer,
        monitoring: args.monitoring,
        secrets: check::secrets(&args.secrets)?,
        kubelet_dir: check::folder("--kubelet-dir", &args.kubelet_dir)?,
        driver,
        roles,
        sidecar_args: args.sidecar_args.clone(),
    };
    passed::check(&plan)?;
    Ok(objects::document(&plan))
}

/// What the controller's sidecar does, or that of every node where each has its own.
fn controller_roles(args: &Driver, attach_required: bool) -> Result<BTreeSet<Role>, String> {
    let per_node = args.uses.node_deployment;
    if per_node && args.all_in_one {
        return Err("--node-deployment is one set already; leave --all-in-one out".into());
    }
    if per_node && attach_required {
        return Err("--node-deployment is for volumes that never leave their node; leave --attach-required out".into());
    }
    let mut roles = match (args.roles.is_empty(), per_node) {
        (false, _) => roles_of(&args.roles)?,
        (true, true) => [Role::Provisioner].into(),
        (true, false) => [Role::Provisioner, Role::Attacher, Role::Resizer].into(),
    };
    if !attach_required {
        roles.remove(&Role::Attacher);
    }
    if per_node && !roles.contains(&Role::Provisioner) {
        return Err("--node-deployment is about the provisioner; add it to --roles".into());
    }
    Ok(roles)
}

fn roles_of(names: &[String]) -> Result<BTreeSet<Role>, String> {
    let named = names.iter().filter(|name| !name.is_empty()).map(|name| {
        let known: Vec<&str> = Role::ALL.iter().map(|role| role.name()).collect();
        Role::named(name).ok_or_else(|| format!("there is no role {name}; there are {}", known.join(", ")))
    });
    named.collect()
}
