//! The pods: the driver, and beside it one sidecar.

use std::collections::BTreeSet;

use super::check::{quoted, scalar};
use super::objects::Plan;
use super::rights;
use crate::sidecar::{Role, health};

/// Where the driver's socket is, in every container (S0-67).
const SOCKETS: &str = "/var/lib/csi/sockets/pluginproxy";
/// Where the sidecar answers for itself and for the driver.
pub const PORT: u16 = 9808;
/// What that port is called.
pub const PORT_NAME: &str = "health";
/// Where programs look for the token of their service account.
pub const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Where the sidecar puts the socket through which kubelet hears of the driver.
const REGISTRATION: &str = "/registration";

/// What a set of pods is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// One pod that works on the cluster's objects.
    Controller,
    /// A pod on every node that serves kubelet.
    Node,
    /// Both in a pod on every node: of one leader (S0-71), or of each node for itself.
    AllInOne,
}

impl Part {
    /// What its objects' names end with.
    pub fn suffix(self) -> &'static str {
        match self {
            Part::Controller => "controller",
            Part::Node | Part::AllInOne => "node",
        }
    }

    /// What the sidecar does there.
    pub fn roles(self, plan: &Plan) -> BTreeSet<Role> {
        let node = [Role::Registrar, Role::Liveness];
        match self {
            Part::Controller => plan.roles.iter().copied().chain([Role::Liveness]).collect(),
            Part::Node => node.into(),
            Part::AllInOne => plan.roles.iter().copied().chain(node).collect(),
        }
    }

    fn on_nodes(self) -> bool {
        matches!(self, Part::Node | Part::AllInOne)
    }

    /// The sidecar talks to the API server.
    fn controls(self) -> bool {
        matches!(self, Part::Controller | Part::AllInOne)
    }
}

/// The StatefulSet or DaemonSet.
pub fn workload(plan: &Plan, part: Part) -> String {
    let name = scalar(&format!("{}-{}", plan.name, part.suffix()));
    let (kind, head) = if part.on_nodes() {
        ("DaemonSet", String::new())
    } else {
        // S0-66: one at a time, also while it moves to another node.
        ("StatefulSet", format!("  replicas: 1\n  serviceName: {name}\n"))
    };
    let labels =
        format!("app.kubernetes.io/name: {}, app.kubernetes.io/component: {}", scalar(&plan.name), part.suffix());
    let pod = indented(6, &pod(plan, part, &name));
    format!(
        "apiVersion: apps/v1\nkind: {kind}\nmetadata:\n  name: {name}\n  namespace: {}\n  labels: {{{labels}}}\n\
         spec:\n{head}  selector:\n    matchLabels: {{{labels}}}\n  template:\n    metadata:\n      labels: {{{labels}}}\n    \
         spec:\n{pod}",
        scalar(&plan.namespace),
    )
}

fn pod(plan: &Plan, part: Part, account: &str) -> String {
    let class = if part.on_nodes() { "system-node-critical" } else { "system-cluster-critical" };
    let tolerations = if part.on_nodes() { "tolerations: [{operator: Exists}]\n" } else { "" };
    format!(
        "serviceAccountName: {account}\nautomountServiceAccountToken: false\npriorityClassName: {class}\n\
         nodeSelector: {{kubernetes.io/os: linux}}\n{tolerations}containers:\n{}{}volumes:\n{}",
        driver(plan, part),
        sidecar(plan, part),
        volumes(plan, part),
    )
}

fn driver(plan: &Plan, part: Part) -> String {
    let mut text = format!("- name: driver\n  image: {}\n", quoted(&plan.driver_image));
    let arguments = match part {
        Part::Controller => plan.controller_args.clone(),
        Part::Node => plan.node_args.clone(),
        // One process is both: what only one of them was told, it is told too.
        Part::AllInOne => {
            let more = plan.node_args.iter().filter(|argument| !plan.controller_args.contains(argument));
            plan.controller_args.iter().chain(more).cloned().collect()
        }
    };
    text.push_str(&args(&arguments));
    text.push_str(&format!(
        "  env:\n  - {{name: CSI_ENDPOINT, value: \"unix://{SOCKETS}/csi.sock\"}}\n  \
         - {{name: NODE_NAME, valueFrom: {{fieldRef: {{fieldPath: spec.nodeName}}}}}}\n  \
         livenessProbe: # answered by the sidecar, which asks the driver\n    \
         httpGet: {{path: {}, port: {PORT}}}\n    \
         initialDelaySeconds: 10\n    periodSeconds: 10\n    timeoutSeconds: 3\n    failureThreshold: 5\n  \
         resources: {{requests: {{cpu: 10m, memory: 32Mi}}}}\n",
        health::DRIVER,
    ));
    if part.on_nodes() {
        let kubelet = &plan.kubelet_dir;
        text.push_str(&format!(
            "  securityContext: {{privileged: true}} # mounts filesystems for pods; nothing else here is privileged\n  \
             volumeMounts:\n  - {{name: socket, mountPath: {SOCKETS}}}\n  \
             - {{name: pods, mountPath: {kubelet}/pods, mountPropagation: Bidirectional}}\n  \
             - {{name: plugins, mountPath: {kubelet}/plugins, mountPropagation: Bidirectional}}\n  \
             - {{name: devices, mountPath: /dev}}\n"
        ));
    } else {
        text.push_str(&format!(
            "  securityContext: {{allowPrivilegeEscalation: false, seccompProfile: {{type: RuntimeDefault}}}}\n  \
             volumeMounts:\n  - {{name: socket, mountPath: {SOCKETS}}}\n"
        ));
    }
    text
}

/// What the sidecar of a part is told, but for what was asked for in its own words.
pub fn sidecar_args(plan: &Plan, part: Part) -> Vec<String> {
    let roles: Vec<&str> = part.roles(plan).into_iter().map(Role::name).collect();
    let mut arguments = vec![
        format!("--roles={}", roles.join(",")),
        format!("--csi-address={SOCKETS}/csi.sock"),
        format!("--http-endpoint=:{PORT}"),
    ];
    if !rights::electing(&part.roles(plan), plan.extras).is_empty() {
        arguments.push("--leader-election".into());
    }
    if part.controls() && plan.extras.per_node {
        arguments.push("--node-deployment".into());
    }
    if part.controls() && !plan.gates.is_empty() {
        arguments.push(format!("--feature-gates={}", plan.gates));
    }
    if part.controls() && plan.extras.capacity {
        arguments.push("--enable-capacity".into());
    }
    if part.on_nodes() {
        arguments.push(format!("--kubelet-registration-path={}", node_socket(plan)));
        arguments.push(format!("--plugin-registration-path={REGISTRATION}"));
    }
    arguments
}

fn sidecar(plan: &Plan, part: Part) -> String {
    let more = super::passed::for_roles(&plan.sidecar_args, &part.roles(plan));
    let arguments: Vec<String> =
        std::iter::once("sidecar".to_string()).chain(sidecar_args(plan, part)).chain(more).collect();
    let (per_node, publishes) = (part.controls() && plan.extras.per_node, part.controls() && plan.extras.capacity);
    let mut text = format!("- name: longshore\n  image: {}\n{}", quoted(&plan.image), args(&arguments));
    text.push_str(&environment(per_node, publishes));
    text.push_str(&probed(health::OWN));
    text.push_str(
        "  resources: {requests: {cpu: 10m, memory: 16Mi}}\n  securityContext:\n    \
         runAsUser: 0 # the owner of the driver's socket and of kubelet's folder, without any of root's capabilities\n    \
         readOnlyRootFilesystem: true\n    allowPrivilegeEscalation: false\n    capabilities: {drop: [ALL]}\n    \
         seccompProfile: {type: RuntimeDefault}\n",
    );
    text.push_str(&format!("  volumeMounts:\n  - {{name: socket, mountPath: {SOCKETS}}}\n"));
    if part.on_nodes() {
        text.push_str(&format!("  - {{name: registration, mountPath: {REGISTRATION}}}\n"));
    }
    if part.controls() {
        text.push_str(&format!("  - {{name: token, mountPath: {TOKEN}, readOnly: true}}\n"));
    }
    text
}

/// Where our own container answers, and its probe. One that hangs is started again before the driver's probe, which it
/// answers too, has failed often enough to end the driver.
pub fn probed(path: &str) -> String {
    format!(
        "  ports:\n  - {{name: {PORT_NAME}, containerPort: {PORT}}}\n  livenessProbe: # of this process alone\n    \
         httpGet: {{path: {path}, port: {PORT_NAME}}}\n    initialDelaySeconds: 10\n    periodSeconds: 5\n    \
         timeoutSeconds: 3\n    failureThreshold: 4\n    terminationGracePeriodSeconds: 10\n"
    )
}

/// What the sidecar has to know of its node and its pod.
fn environment(per_node: bool, publishes: bool) -> String {
    let node = "  - {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}} # whose volumes it makes\n";
    let pod = "  - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}} # whose capacity objects they are\n  \
               - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}\n";
    match (per_node, publishes) {
        (false, false) => String::new(),
        (true, false) => format!("  env:\n{node}"),
        (false, true) => format!("  env:\n{pod}"),
        (true, true) => format!("  env:\n{node}{pod}"),
    }
}

fn volumes(plan: &Plan, part: Part) -> String {
    let host =
        |name: &str, path: &str, kind: &str| format!("- {{name: {name}, hostPath: {{path: {path}, type: {kind}}}}}\n");
    let mut text = String::new();
    if part.on_nodes() {
        let (kubelet, own) = (&plan.kubelet_dir, node_folder(plan));
        // S0-69.
        text.push_str(&host("socket", &own, "DirectoryOrCreate"));
        text.push_str(&host("registration", &format!("{kubelet}/plugins_registry"), "Directory"));
        text.push_str(&host("pods", &format!("{kubelet}/pods"), "Directory"));
        text.push_str(&host("plugins", &format!("{kubelet}/plugins"), "Directory"));
        text.push_str(&host("devices", "/dev", "Directory"));
    } else {
        text.push_str("- {name: socket, emptyDir: {}}\n");
    }
    if part.controls() {
        text.push_str(&token(" # for the sidecar alone: the driver has no business with the API"));
    }
    text
}

/// The volume with what programs know the API server and themselves by.
pub fn token(remark: &str) -> String {
    format!(
        "- name: token{remark}\n  projected:\n    sources:\n    \
         - {{serviceAccountToken: {{path: token, expirationSeconds: 3607}}}}\n    \
         - {{configMap: {{name: kube-root-ca.crt, items: [{{key: ca.crt, path: ca.crt}}]}}}}\n    \
         - {{downwardAPI: {{items: [{{path: namespace, \
         fieldRef: {{apiVersion: v1, fieldPath: metadata.namespace}}}}]}}}}\n"
    )
}

fn node_folder(plan: &Plan) -> String {
    format!("{}/plugins/{}", plan.kubelet_dir, plan.driver)
}

/// The driver's socket as kubelet sees it.
fn node_socket(plan: &Plan) -> String {
    format!("{}/csi.sock", node_folder(plan))
}

/// The lines of a container's arguments.
pub fn args(arguments: &[String]) -> String {
    if arguments.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = arguments.iter().map(|argument| format!("  - {}\n", quoted(argument))).collect();
    format!("  args:\n{}", lines.concat())
}

/// Each line further to the right.
pub fn indented(by: usize, text: &str) -> String {
    let blank = " ".repeat(by);
    text.lines().map(|line| format!("{blank}{line}\n")).collect()
}
