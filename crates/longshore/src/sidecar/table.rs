//! Every flag of the Go programs, with its default and what becomes of it here. `docs/flags.md` is printed from this
//! table, and a test holds it against the `--help` of the programs themselves.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

use super::Role;
use super::Role::{Attacher, Liveness, Provisioner, Registrar, Resizer};

/// The handle of a flag whose values are of this type. Only this table makes them, so a flag that does not exist, or
/// one of another type, does not compile.
pub struct Flag<T> {
    name: &'static str,
    values: PhantomData<fn() -> T>,
}

impl<T> Clone for Flag<T> {
    fn clone(&self) -> Flag<T> {
        *self
    }
}

impl<T> Copy for Flag<T> {}

impl<T> Flag<T> {
    /// The flag without its dashes.
    pub fn name(self) -> &'static str {
        self.name
    }
}

/// The values of a flag of kind [`Kind::Text`].
pub type Text = &'static str;
/// The values of a flag of kind [`Kind::Gates`].
pub type Gates = BTreeMap<String, bool>;
/// The values of a flag of kind [`Kind::Labels`].
pub type Labels = BTreeMap<String, String>;

/// A type that values of flags have.
trait Values {
    const KIND: Kind;
}

macro_rules! values {
    ($($type:ty: $kind:ident)*) => { $(impl Values for $type { const KIND: Kind = Kind::$kind; })* };
}
values! { bool: Bool Text: Text i64: Int f64: Float Duration: Duration Gates: Gates Labels: Labels }

/// One flag, as some of the programs have it.
pub struct FlagRow {
    /// The flag without its dashes.
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
pub(crate) enum Kind {
    /// `true` or `false`; the flag alone means `true`.
    Bool,
    Text,
    /// A whole number.
    Int,
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
pub(crate) enum State {
    /// It means what it means there.
    Honoured,
    /// It is taken and has nothing to act on here.
    Accepted,
    /// It is old there too: taken with a warning.
    Deprecated,
}
use State::{Accepted, Deprecated, Honoured};

/// The same default in the four programs that use the Kubernetes API or the registrar, and so on.
macro_rules! same {
    ($default:literal; $($role:ident)*) => { &[$(($role, $default)),*] };
}

/// Makes the handle of each flag, and the table of all.
macro_rules! flags {
    ($($handle:ident: $type:ty = $name:literal, $state:ident, $defaults:expr, $note:literal;)*) => {
        $(
            #[doc = concat!("`--", $name, "`: ", $note, ".")]
            #[allow(dead_code, reason = "a flag that is only taken has nobody who reads it")]
            pub const $handle: Flag<$type> = Flag { name: $name, values: PhantomData };
        )*

        /// All of them.
        pub const FLAGS: &[FlagRow] = &[$(
            FlagRow { name: $name, kind: <$type as Values>::KIND, defaults: $defaults, state: $state, note: $note },
        )*];
    };
}

flags! {
    // All programs.
    VERSION: bool = "version", Honoured,
        same!("false"; Provisioner Attacher Resizer Registrar Liveness),
        "prints the version and exits";
    CSI_ADDRESS: Text = "csi-address", Honoured,
        same!("/run/csi/socket"; Provisioner Attacher Resizer Registrar Liveness),
        "the driver's socket";
    AUTOMAXPROCS: bool = "automaxprocs", Accepted,
        same!("false"; Provisioner Attacher Resizer Registrar Liveness),
        "one thread decides here, whatever the quota";
    HTTP_ENDPOINT: Text = "http-endpoint", Honoured,
        same!(""; Provisioner Attacher Resizer Registrar Liveness),
        "where metrics and health are served";
    TIMEOUT: Duration = "timeout", Honoured,
        &[(Provisioner, "10s"), (Attacher, "15s"), (Resizer, "10s"), (Registrar, "1s")],
        "the deadline of each call to the driver";
    // Those that use the Kubernetes API.
    KUBECONFIG: Text = "kubeconfig", Honoured,
        same!(""; Provisioner Attacher Resizer Registrar),
        "how to reach the cluster; inside one the service account is used";
    MASTER: Text = "master", Honoured,
        same!(""; Provisioner Resizer),
        "the API server's URL, instead of the kubeconfig's";
    KUBE_API_QPS: f64 = "kube-api-qps", Honoured,
        same!("5"; Provisioner Attacher Resizer),
        "requests a second to the API server; not given, the server's own flow control rules";
    KUBE_API_BURST: i64 = "kube-api-burst", Honoured,
        same!("10"; Provisioner Attacher Resizer),
        "requests at once before `kube-api-qps` counts";
    LEADER_ELECTION: bool = "leader-election", Honoured,
        same!("false"; Provisioner Attacher Resizer),
        "work only while holding the Lease; caches are warm all the time";
    LEADER_ELECTION_NAMESPACE: Text = "leader-election-namespace", Honoured,
        same!(""; Provisioner Attacher Resizer),
        "where the Lease is; POD_NAMESPACE, the service account's namespace, then `default`";
    LEADER_ELECTION_LEASE_DURATION: Duration = "leader-election-lease-duration", Honoured,
        same!("15s"; Provisioner Attacher Resizer),
        "a Lease untouched for so long may be taken";
    LEADER_ELECTION_RENEW_DEADLINE: Duration = "leader-election-renew-deadline", Honoured,
        same!("10s"; Provisioner Attacher Resizer),
        "a leader that could not renew for so long stops working";
    LEADER_ELECTION_RETRY_PERIOD: Duration = "leader-election-retry-period", Honoured,
        same!("5s"; Provisioner Attacher Resizer),
        "between two tries";
    LEADER_ELECTION_LABELS: Labels = "leader-election-labels", Honoured,
        same!(""; Provisioner Attacher Resizer),
        "put on the Lease";
    METRICS_ADDRESS: Text = "metrics-address", Deprecated,
        same!(""; Provisioner Attacher Resizer Liveness),
        "use `http-endpoint`; both together are refused";
    METRICS_PATH: Text = "metrics-path", Honoured,
        same!("/metrics"; Provisioner Attacher Resizer Liveness),
        "the path of the metrics";
    FEATURE_GATES: Gates = "feature-gates", Honoured,
        same!(""; Provisioner Attacher Resizer),
        "unknown gates and contradictions are refused; gates for what is always on are taken";
    RETRY_INTERVAL_START: Duration = "retry-interval-start", Honoured,
        same!("1s"; Provisioner Attacher Resizer),
        "the pause after a first failure, which doubles from there; not given, 0.1 s";
    RETRY_INTERVAL_MAX: Duration = "retry-interval-max", Honoured,
        same!("5m"; Provisioner Attacher Resizer),
        "the longest pause; not given, a minute, and 5m for what the driver calls impossible to resize";
    WORKER_THREADS: i64 = "worker-threads", Honoured,
        &[(Provisioner, "100"), (Attacher, "10")],
        "how many volumes are worked on at once";
    WORKERS: i64 = "workers", Honoured,
        same!("10"; Resizer),
        "how many claims are worked on at once";
    RESYNC: Duration = "resync", Accepted,
        same!("10m"; Attacher),
        "nothing is looked at again without a reason";
    RESYNC_PERIOD: Duration = "resync-period", Accepted,
        same!("10m"; Resizer),
        "nothing is looked at again without a reason";
    DEFAULT_FSTYPE: Text = "default-fstype", Honoured,
        same!(""; Provisioner Attacher),
        "where neither class nor volume names a filesystem";
    ENABLE_PPROF: bool = "enable-pprof", Accepted,
        same!("false"; Provisioner Registrar),
        "there is no Go runtime to profile";
    // The provisioner.
    VOLUME_NAME_PREFIX: Text = "volume-name-prefix", Honoured,
        same!("pvc"; Provisioner),
        "begins the name of every volume";
    VOLUME_NAME_UUID_LENGTH: i64 = "volume-name-uuid-length", Honoured,
        same!("-1"; Provisioner),
        "-1: the claim's uid; else without dashes and cut to so many characters";
    STRICT_TOPOLOGY: bool = "strict-topology", Honoured,
        same!("false"; Provisioner),
        "ask for the selected node's topology alone";
    IMMEDIATE_TOPOLOGY: bool = "immediate-topology", Honoured,
        same!("true"; Provisioner),
        "pass the cluster's topology for immediate binding";
    EXTRA_CREATE_METADATA: bool = "extra-create-metadata", Honoured,
        same!("false"; Provisioner),
        "names of claim and volume go into the parameters";
    CONTROLLER_PUBLISH_READONLY: bool = "controller-publish-readonly", Honoured,
        same!("false"; Provisioner),
        "a claim that is only read gives a read-only volume";
    PREVENT_VOLUME_MODE_CONVERSION: bool = "prevent-volume-mode-conversion", Honoured,
        same!("true"; Provisioner),
        "a snapshot keeps its volume mode";
    CLONING_PROTECTION_THREADS: i64 = "cloning-protection-threads", Accepted,
        same!("1"; Provisioner),
        "claims share one limit";
    SNAPSHOT_ORPHAN_SWEEP_INTERVAL: Duration = "snapshot-orphan-sweep-interval", Accepted,
        same!("5m"; Provisioner),
        "finalizers of lost restores go when the last claim that needs them does, without a sweep";
    ENABLE_CAPACITY: bool = "enable-capacity", Honoured,
        same!("false"; Provisioner),
        "publish CSIStorageCapacity objects; needs NAMESPACE and POD_NAME";
    CAPACITY_FOR_IMMEDIATE_BINDING: bool = "capacity-for-immediate-binding", Honoured,
        same!("false"; Provisioner),
        "also for classes that bind at once";
    CAPACITY_POLL_INTERVAL: Duration = "capacity-poll-interval", Honoured,
        same!("1m"; Provisioner),
        "how often the driver is asked for its capacity, besides after every change that may concern it";
    CAPACITY_OWNERREF_LEVEL: i64 = "capacity-ownerref-level", Honoured,
        same!("1"; Provisioner),
        "who owns them: -1 nobody, 0 this pod, 1 its owner, and so on";
    CAPACITY_THREADS: i64 = "capacity-threads", Honoured,
        same!("1"; Provisioner),
        "how many capacities are asked for at once";
    KUBE_API_CAPACITY_QPS: f64 = "kube-api-capacity-qps", Honoured,
        same!("1"; Provisioner),
        "requests a second for capacity objects; not given, the limit of all requests";
    KUBE_API_CAPACITY_BURST: i64 = "kube-api-capacity-burst", Honoured,
        same!("5"; Provisioner),
        "requests at once for capacity objects before `kube-api-capacity-qps` counts";
    NODE_DEPLOYMENT: bool = "node-deployment", Honoured,
        same!("false"; Provisioner),
        "one provisioner per node, for its own volumes; needs NODE_NAME";
    NODE_DEPLOYMENT_IMMEDIATE_BINDING: bool = "node-deployment-immediate-binding", Honoured,
        same!("true"; Provisioner),
        "such provisioners also race for claims that bind at once";
    NODE_DEPLOYMENT_BASE_DELAY: Duration = "node-deployment-base-delay", Honoured,
        same!("20s"; Provisioner),
        "how long they hold back at first";
    NODE_DEPLOYMENT_MAX_DELAY: Duration = "node-deployment-max-delay", Honoured,
        same!("1m"; Provisioner),
        "how long they hold back at most";
    PROVISIONING_INTENT: Text = "provisioning-intent", Honoured,
        same!("journal"; Provisioner),
        "ours: `journal` notes in a Lease of the driver that a volume is being made, and `claim` on the claim, so that no \
         crash leaves one behind; `memory` is upstream's way";
    // The attacher.
    MAX_ENTRIES: i64 = "max-entries", Honoured,
        same!("0"; Attacher),
        "entries per page of ListVolumes";
    RECONCILE_SYNC: Duration = "reconcile-sync", Honoured,
        same!("1m"; Attacher),
        "how often attachments are held against ListVolumes";
    MAX_GRPC_LOG_LENGTH: i64 = "max-grpc-log-length", Accepted,
        same!("-1"; Attacher),
        "bodies of calls are never logged";
    // The resizer.
    EXTRA_MODIFY_METADATA: bool = "extra-modify-metadata", Honoured,
        same!("false"; Resizer),
        "names of claim and volume go into ModifyVolume's parameters";
    HANDLE_VOLUME_INUSE_ERROR: bool = "handle-volume-inuse-error", Honoured,
        same!("true"; Resizer),
        "a volume refused as in use is tried again when no pod uses it";
    // The registrar.
    KUBELET_REGISTRATION_PATH: Text = "kubelet-registration-path", Honoured,
        same!(""; Registrar),
        "the driver's socket as kubelet sees it; needed";
    PLUGIN_REGISTRATION_PATH: Text = "plugin-registration-path", Honoured,
        same!("/registration"; Registrar),
        "where our registration socket goes";
    MODE: Text = "mode", Deprecated,
        same!(""; Registrar),
        "`kubelet-registration-probe` exits at once with success";
    REQUIRES_PUBLISH_POD: bool = "requires-publish-pod", Honoured,
        same!("false"; Registrar),
        "ours: GetCSIDriverInfo answers that the driver wants to know the pod it publishes a volume for";
    MARK_NODE: bool = "mark-node", Honoured,
        same!("false"; Registrar),
        "ours: write the node's id and topology on the Node, where nobody else does; needs NODE_NAME";
    CONNECTION_TIMEOUT: Duration = "connection-timeout", Deprecated,
        same!("0"; Registrar),
        "has no meaning any more";
    // The registrar and the liveness probe.
    HEALTH_PORT: Text = "health-port", Honoured,
        &[(Registrar, "0"), (Liveness, "9808")],
        "where `/healthz` is served; with `http-endpoint` use that alone";
    PROBE_TIMEOUT: Duration = "probe-timeout", Honoured,
        same!("1s"; Liveness),
        "the deadline of one Probe";
    // Logging.
    V: i64 = "v", Honoured,
        same!("0"; Provisioner Attacher Resizer Registrar Liveness),
        "2 and more: what is done; 5 and more: everything";
    LOGGING_FORMAT: Text = "logging-format", Honoured,
        same!("text"; Provisioner Attacher Resizer Registrar Liveness),
        "`text` or `json`";
    VMODULE: Text = "vmodule", Accepted,
        same!(""; Provisioner Attacher Resizer Registrar Liveness),
        "there are no Go source files";
    LOG_FLUSH_FREQUENCY: Duration = "log-flush-frequency", Accepted,
        same!("5s"; Provisioner Attacher Resizer Registrar Liveness),
        "nothing is held back";
    LOG_TEXT_SPLIT_STREAM: bool = "log-text-split-stream", Accepted,
        same!("false"; Provisioner Attacher Resizer Registrar Liveness),
        "all lines go to standard error";
    LOG_JSON_SPLIT_STREAM: bool = "log-json-split-stream", Accepted,
        same!("false"; Provisioner Attacher Resizer Registrar Liveness),
        "all lines go to standard error";
    LOG_TEXT_INFO_BUFFER_SIZE: Text = "log-text-info-buffer-size", Accepted,
        same!("0"; Provisioner Attacher Resizer Registrar Liveness),
        "nothing is held back";
    LOG_JSON_INFO_BUFFER_SIZE: Text = "log-json-info-buffer-size", Accepted,
        same!("0"; Provisioner Attacher Resizer Registrar Liveness),
        "nothing is held back";
    // Old logging flags, still printed by the help of older releases.
    ADD_DIR_HEADER: bool = "add_dir_header", Deprecated,
        same!("false"; Provisioner Attacher Registrar Liveness),
        "log files are the container runtime's";
    ALSOLOGTOSTDERR: bool = "alsologtostderr", Deprecated,
        same!("false"; Provisioner Attacher Registrar Liveness),
        "log files are the container runtime's";
    LOG_BACKTRACE_AT: Text = "log_backtrace_at", Deprecated,
        same!(":0"; Provisioner Attacher Registrar Liveness),
        "there are no Go source files";
    LOG_DIR: Text = "log_dir", Deprecated,
        same!(""; Provisioner Attacher Registrar Liveness),
        "log files are the container runtime's";
    LOG_FILE: Text = "log_file", Deprecated,
        same!(""; Provisioner Attacher Registrar Liveness),
        "log files are the container runtime's";
    LOG_FILE_MAX_SIZE: i64 = "log_file_max_size", Deprecated,
        same!("1800"; Provisioner Attacher Registrar Liveness),
        "log files are the container runtime's";
    LOGTOSTDERR: bool = "logtostderr", Deprecated,
        same!("true"; Provisioner Attacher Registrar Liveness),
        "always so";
    ONE_OUTPUT: bool = "one_output", Deprecated,
        same!("false"; Provisioner Attacher Registrar Liveness),
        "always so";
    SKIP_HEADERS: bool = "skip_headers", Deprecated,
        same!("false"; Provisioner Attacher Registrar Liveness),
        "lines keep their time and level";
    SKIP_LOG_HEADERS: bool = "skip_log_headers", Deprecated,
        same!("false"; Provisioner Attacher Registrar Liveness),
        "log files are the container runtime's";
    STDERRTHRESHOLD: i64 = "stderrthreshold", Deprecated,
        same!("2"; Provisioner Attacher Registrar Liveness),
        "all lines go to standard error";
}

/// Gates the Go programs know, and whether what they stand for can be switched here.
pub const GATES: &[(&str, &str)] = &[
    ("AllAlpha", "taken; nothing here is behind a gate by its age"),
    ("AllBeta", "taken; nothing here is behind a gate by its age"),
    ("AnnotateFsResize", "always on"),
    (
        "CSIMigration",
        "ours, on unless unset: the driver serves what the in-tree plugin of its name made (docs/migration.md)",
    ),
    ("CSIMigrationInTreeOff", "ours, on unless unset: there is no plugin left that serves anything"),
    (
        "CSIMigrationAWS, …AzureDisk, …AzureFile, …OpenStack, …GCE, …Portworx, …vSphere",
        "ours, on unless unset: the same for one plugin; `CSIMigrationRBD` is off unless set",
    ),
    ("InTreePluginAWSUnregister, …", "ours: `CSIMigrationInTreeOff` for one plugin; older: `CSIMigrationAWSComplete`"),
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
