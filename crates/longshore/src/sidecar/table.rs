//! Every flag of the Go programs, with its default and what becomes of it here. `docs/flags.md` is printed from this table,
//! and a test holds it against the `--help` of the programs themselves.

use super::Role;
use super::Role::{Attacher, Liveness, Provisioner, Registrar, Resizer};

/// One flag, as some of the programs have it.
pub struct Flag {
    /// Without dashes.
    pub name: &'static str,
    /// What a value looks like.
    pub kind: Kind,
    /// The programs that have it, each with its default.
    pub defaults: &'static [(Role, &'static str)],
    /// What becomes of it.
    pub state: State,
    /// What it does, or why it does nothing.
    pub note: &'static str,
}

/// What a value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`; the flag alone means `true`.
    Bool,
    /// Any text.
    Text,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// Such as `1m30s`.
    Duration,
    /// Such as `Topology=true,AllAlpha=false`.
    Gates,
    /// Such as `team:storage,tier:gold`.
    Labels,
}

/// What becomes of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It means what it means there.
    Honoured,
    /// It is taken and has nothing to act on here.
    Accepted,
    /// It is old there too: taken with a warning.
    Deprecated,
}
use State::{Accepted, Deprecated, Honoured};

const fn flag(
    name: &'static str,
    kind: Kind,
    defaults: &'static [(Role, &'static str)],
    state: State,
    note: &'static str,
) -> Flag {
    Flag { name, kind, defaults, state, note }
}

/// The same default in the four programs that use the Kubernetes API or the registrar, and so on.
macro_rules! same {
    ($default:literal; $($role:ident)*) => { &[$(($role, $default)),*] };
}

/// All of them.
pub const FLAGS: &[Flag] = &[
    // All programs.
    flag(
        "version",
        Kind::Bool,
        same!("false"; Provisioner Attacher Resizer Registrar Liveness),
        Honoured,
        "prints the version and exits",
    ),
    flag(
        "csi-address",
        Kind::Text,
        same!("/run/csi/socket"; Provisioner Attacher Resizer Registrar Liveness),
        Honoured,
        "the driver's socket",
    ),
    flag(
        "automaxprocs",
        Kind::Bool,
        same!("false"; Provisioner Attacher Resizer Registrar Liveness),
        Accepted,
        "one thread decides here, whatever the quota",
    ),
    flag(
        "http-endpoint",
        Kind::Text,
        same!(""; Provisioner Attacher Resizer Registrar Liveness),
        Honoured,
        "where metrics and health are served",
    ),
    flag(
        "timeout",
        Kind::Duration,
        &[(Provisioner, "10s"), (Attacher, "15s"), (Resizer, "10s"), (Registrar, "1s")],
        Honoured,
        "the deadline of each call to the driver",
    ),
    // Those that use the Kubernetes API.
    flag(
        "kubeconfig",
        Kind::Text,
        same!(""; Provisioner Attacher Resizer Registrar),
        Honoured,
        "how to reach the cluster; inside one the service account is used",
    ),
    flag(
        "master",
        Kind::Text,
        same!(""; Provisioner Resizer),
        Honoured,
        "the API server's URL, instead of the kubeconfig's",
    ),
    flag(
        "kube-api-qps",
        Kind::Float,
        same!("5"; Provisioner Attacher Resizer),
        Honoured,
        "requests a second to the API server; not given, the server's own flow control rules",
    ),
    flag(
        "kube-api-burst",
        Kind::Int,
        same!("10"; Provisioner Attacher Resizer),
        Honoured,
        "requests at once before `kube-api-qps` counts",
    ),
    flag(
        "leader-election",
        Kind::Bool,
        same!("false"; Provisioner Attacher Resizer),
        Honoured,
        "work only while holding the Lease; caches are warm all the time",
    ),
    flag(
        "leader-election-namespace",
        Kind::Text,
        same!(""; Provisioner Attacher Resizer),
        Honoured,
        "where the Lease is; POD_NAMESPACE, the service account's namespace, then `default`",
    ),
    flag(
        "leader-election-lease-duration",
        Kind::Duration,
        same!("15s"; Provisioner Attacher Resizer),
        Honoured,
        "a Lease untouched for so long may be taken",
    ),
    flag(
        "leader-election-renew-deadline",
        Kind::Duration,
        same!("10s"; Provisioner Attacher Resizer),
        Honoured,
        "a leader that could not renew for so long stops working",
    ),
    flag(
        "leader-election-retry-period",
        Kind::Duration,
        same!("5s"; Provisioner Attacher Resizer),
        Honoured,
        "between two tries",
    ),
    flag("leader-election-labels", Kind::Labels, same!(""; Provisioner Attacher Resizer), Honoured, "put on the Lease"),
    flag(
        "metrics-address",
        Kind::Text,
        same!(""; Provisioner Attacher Resizer Liveness),
        Deprecated,
        "use `http-endpoint`; both together are refused",
    ),
    flag(
        "metrics-path",
        Kind::Text,
        same!("/metrics"; Provisioner Attacher Resizer Liveness),
        Honoured,
        "the path of the metrics",
    ),
    flag(
        "feature-gates",
        Kind::Gates,
        same!(""; Provisioner Attacher Resizer),
        Honoured,
        "unknown gates are refused; gates for what is always on are taken",
    ),
    flag(
        "retry-interval-start",
        Kind::Duration,
        same!("1s"; Provisioner Attacher Resizer),
        Honoured,
        "the pause after a first failure, which doubles from there; not given, 0.1 s",
    ),
    flag(
        "retry-interval-max",
        Kind::Duration,
        same!("5m"; Provisioner Attacher Resizer),
        Honoured,
        "the longest pause; not given, a minute, and 5m for what the driver calls impossible to resize",
    ),
    flag(
        "worker-threads",
        Kind::Int,
        &[(Provisioner, "100"), (Attacher, "10")],
        Honoured,
        "how many volumes are worked on at once",
    ),
    flag("workers", Kind::Int, same!("10"; Resizer), Honoured, "how many claims are worked on at once"),
    flag("resync", Kind::Duration, same!("10m"; Attacher), Accepted, "nothing is looked at again without a reason"),
    flag(
        "resync-period",
        Kind::Duration,
        same!("10m"; Resizer),
        Accepted,
        "nothing is looked at again without a reason",
    ),
    flag(
        "default-fstype",
        Kind::Text,
        same!(""; Provisioner Attacher),
        Honoured,
        "where neither class nor volume names a filesystem",
    ),
    flag(
        "enable-pprof",
        Kind::Bool,
        same!("false"; Provisioner Registrar),
        Accepted,
        "there is no Go runtime to profile",
    ),
    // The provisioner.
    flag("volume-name-prefix", Kind::Text, same!("pvc"; Provisioner), Honoured, "begins the name of every volume"),
    flag(
        "volume-name-uuid-length",
        Kind::Int,
        same!("-1"; Provisioner),
        Honoured,
        "-1: the claim's uid; else without dashes and cut to so many characters",
    ),
    flag(
        "strict-topology",
        Kind::Bool,
        same!("false"; Provisioner),
        Honoured,
        "ask for the selected node's topology alone",
    ),
    flag(
        "immediate-topology",
        Kind::Bool,
        same!("true"; Provisioner),
        Honoured,
        "pass the cluster's topology for immediate binding",
    ),
    flag(
        "extra-create-metadata",
        Kind::Bool,
        same!("false"; Provisioner),
        Honoured,
        "names of claim and volume go into the parameters",
    ),
    flag(
        "controller-publish-readonly",
        Kind::Bool,
        same!("false"; Provisioner),
        Honoured,
        "a claim that is only read gives a read-only volume",
    ),
    flag(
        "prevent-volume-mode-conversion",
        Kind::Bool,
        same!("true"; Provisioner),
        Honoured,
        "a snapshot keeps its volume mode",
    ),
    flag("cloning-protection-threads", Kind::Int, same!("1"; Provisioner), Accepted, "claims share one limit"),
    flag(
        "snapshot-orphan-sweep-interval",
        Kind::Duration,
        same!("5m"; Provisioner),
        Accepted,
        "finalizers of lost restores go when the last claim that needs them does, without a sweep",
    ),
    flag(
        "enable-capacity",
        Kind::Bool,
        same!("false"; Provisioner),
        Honoured,
        "publish CSIStorageCapacity objects; needs NAMESPACE and POD_NAME",
    ),
    flag(
        "capacity-for-immediate-binding",
        Kind::Bool,
        same!("false"; Provisioner),
        Honoured,
        "also for classes that bind at once",
    ),
    flag(
        "capacity-poll-interval",
        Kind::Duration,
        same!("1m"; Provisioner),
        Honoured,
        "how often the driver is asked for its capacity, besides after every change that may concern it",
    ),
    flag(
        "capacity-ownerref-level",
        Kind::Int,
        same!("1"; Provisioner),
        Honoured,
        "who owns them: -1 nobody, 0 this pod, 1 its owner, and so on",
    ),
    flag("capacity-threads", Kind::Int, same!("1"; Provisioner), Honoured, "how many capacities are asked for at once"),
    flag(
        "kube-api-capacity-qps",
        Kind::Float,
        same!("1"; Provisioner),
        Honoured,
        "requests a second for capacity objects; not given, the limit of all requests",
    ),
    flag(
        "kube-api-capacity-burst",
        Kind::Int,
        same!("5"; Provisioner),
        Honoured,
        "requests at once for capacity objects before `kube-api-capacity-qps` counts",
    ),
    flag(
        "node-deployment",
        Kind::Bool,
        same!("false"; Provisioner),
        Honoured,
        "one provisioner per node, for its own volumes; needs NODE_NAME",
    ),
    flag(
        "node-deployment-immediate-binding",
        Kind::Bool,
        same!("true"; Provisioner),
        Honoured,
        "such provisioners also race for claims that bind at once",
    ),
    flag(
        "node-deployment-base-delay",
        Kind::Duration,
        same!("20s"; Provisioner),
        Honoured,
        "how long they hold back at first",
    ),
    flag(
        "node-deployment-max-delay",
        Kind::Duration,
        same!("1m"; Provisioner),
        Honoured,
        "how long they hold back at most",
    ),
    flag(
        "provisioning-intent",
        Kind::Text,
        same!("journal"; Provisioner),
        Honoured,
        "ours: `journal` notes in a Lease of the driver that a volume is being made, and `claim` on the claim, so that no \
         crash leaves one behind; `memory` is upstream's way",
    ),
    // The attacher.
    flag("max-entries", Kind::Int, same!("0"; Attacher), Honoured, "entries per page of ListVolumes"),
    flag(
        "reconcile-sync",
        Kind::Duration,
        same!("1m"; Attacher),
        Honoured,
        "how often attachments are held against ListVolumes",
    ),
    flag("max-grpc-log-length", Kind::Int, same!("-1"; Attacher), Accepted, "bodies of calls are never logged"),
    // The resizer.
    flag(
        "extra-modify-metadata",
        Kind::Bool,
        same!("false"; Resizer),
        Honoured,
        "names of claim and volume go into ModifyVolume's parameters",
    ),
    flag(
        "handle-volume-inuse-error",
        Kind::Bool,
        same!("true"; Resizer),
        Honoured,
        "a volume refused as in use is tried again when no pod uses it",
    ),
    // The registrar.
    flag(
        "kubelet-registration-path",
        Kind::Text,
        same!(""; Registrar),
        Honoured,
        "the driver's socket as kubelet sees it; needed",
    ),
    flag(
        "plugin-registration-path",
        Kind::Text,
        same!("/registration"; Registrar),
        Honoured,
        "where our registration socket goes",
    ),
    flag(
        "mode",
        Kind::Text,
        same!(""; Registrar),
        Deprecated,
        "`kubelet-registration-probe` exits at once with success",
    ),
    flag(
        "requires-publish-pod",
        Kind::Bool,
        same!("false"; Registrar),
        Honoured,
        "ours: GetCSIDriverInfo answers that the driver wants to know the pod it publishes a volume for",
    ),
    flag(
        "mark-node",
        Kind::Bool,
        same!("false"; Registrar),
        Honoured,
        "ours: write the node's id and topology on the Node, where nobody else does; needs NODE_NAME",
    ),
    flag("connection-timeout", Kind::Duration, same!("0"; Registrar), Deprecated, "has no meaning any more"),
    // The registrar and the liveness probe.
    flag(
        "health-port",
        Kind::Text,
        &[(Registrar, "0"), (Liveness, "9808")],
        Honoured,
        "where `/healthz` is served; with `http-endpoint` use that alone",
    ),
    flag("probe-timeout", Kind::Duration, same!("1s"; Liveness), Honoured, "the deadline of one Probe"),
    // Logging.
    flag(
        "v",
        Kind::Int,
        same!("0"; Provisioner Attacher Resizer Registrar Liveness),
        Honoured,
        "2 and more: what is done; 5 and more: everything",
    ),
    flag(
        "logging-format",
        Kind::Text,
        same!("text"; Provisioner Attacher Resizer Registrar Liveness),
        Honoured,
        "`text` or `json`",
    ),
    flag(
        "vmodule",
        Kind::Text,
        same!(""; Provisioner Attacher Resizer Registrar Liveness),
        Accepted,
        "there are no Go source files",
    ),
    flag(
        "log-flush-frequency",
        Kind::Duration,
        same!("5s"; Provisioner Attacher Resizer Registrar Liveness),
        Accepted,
        "nothing is held back",
    ),
    flag(
        "log-text-split-stream",
        Kind::Bool,
        same!("false"; Provisioner Attacher Resizer Registrar Liveness),
        Accepted,
        "all lines go to standard error",
    ),
    flag(
        "log-json-split-stream",
        Kind::Bool,
        same!("false"; Provisioner Attacher Resizer Registrar Liveness),
        Accepted,
        "all lines go to standard error",
    ),
    flag(
        "log-text-info-buffer-size",
        Kind::Text,
        same!("0"; Provisioner Attacher Resizer Registrar Liveness),
        Accepted,
        "nothing is held back",
    ),
    flag(
        "log-json-info-buffer-size",
        Kind::Text,
        same!("0"; Provisioner Attacher Resizer Registrar Liveness),
        Accepted,
        "nothing is held back",
    ),
    // Old logging flags, still printed by the help of older releases.
    flag(
        "add_dir_header",
        Kind::Bool,
        same!("false"; Provisioner Attacher Registrar Liveness),
        Deprecated,
        "log files are the container runtime's",
    ),
    flag(
        "alsologtostderr",
        Kind::Bool,
        same!("false"; Provisioner Attacher Registrar Liveness),
        Deprecated,
        "log files are the container runtime's",
    ),
    flag(
        "log_backtrace_at",
        Kind::Text,
        same!(":0"; Provisioner Attacher Registrar Liveness),
        Deprecated,
        "there are no Go source files",
    ),
    flag(
        "log_dir",
        Kind::Text,
        same!(""; Provisioner Attacher Registrar Liveness),
        Deprecated,
        "log files are the container runtime's",
    ),
    flag(
        "log_file",
        Kind::Text,
        same!(""; Provisioner Attacher Registrar Liveness),
        Deprecated,
        "log files are the container runtime's",
    ),
    flag(
        "log_file_max_size",
        Kind::Int,
        same!("1800"; Provisioner Attacher Registrar Liveness),
        Deprecated,
        "log files are the container runtime's",
    ),
    flag("logtostderr", Kind::Bool, same!("true"; Provisioner Attacher Registrar Liveness), Deprecated, "always so"),
    flag("one_output", Kind::Bool, same!("false"; Provisioner Attacher Registrar Liveness), Deprecated, "always so"),
    flag(
        "skip_headers",
        Kind::Bool,
        same!("false"; Provisioner Attacher Registrar Liveness),
        Deprecated,
        "lines keep their time and level",
    ),
    flag(
        "skip_log_headers",
        Kind::Bool,
        same!("false"; Provisioner Attacher Registrar Liveness),
        Deprecated,
        "log files are the container runtime's",
    ),
    flag(
        "stderrthreshold",
        Kind::Int,
        same!("2"; Provisioner Attacher Registrar Liveness),
        Deprecated,
        "all lines go to standard error",
    ),
];

/// Gates the Go programs know, and whether what they stand for can be switched here.
pub const GATES: &[(&str, &str)] = &[
    ("AllAlpha", "taken; nothing here is behind a gate by its age"),
    ("AllBeta", "taken; nothing here is behind a gate by its age"),
    ("AnnotateFsResize", "always on"),
    ("CSINodeExpandSecret", "always on"),
    ("CrossNamespaceVolumeDataSource", "off unless set"),
    ("HonorPVReclaimPolicy", "always on"),
    ("LoggingAlphaOptions", "taken"),
    ("LoggingBetaOptions", "taken"),
    ("MutableCSINodeAllocatableCount", "always on"),
    ("RecoverVolumeExpansionFailure", "always on"),
    ("ReleaseLeaderElectionOnExit", "always on"),
    ("Topology", "on unless unset"),
    ("VolumeAttributesClass", "on unless unset, where the cluster has the kind"),
];
