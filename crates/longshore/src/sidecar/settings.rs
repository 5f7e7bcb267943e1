//! What the flags and the environment ask of a process, checked as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use control::{BackOff, LeaseConfig};
use rules_translate::Migration;

use super::Role;
use super::flags::Flags;
use super::table::{self, Flag, Text};

/// What a process is to do.
#[derive(Debug)]
pub struct Settings {
    /// What it does.
    pub roles: BTreeSet<Role>,
    /// The driver's socket.
    pub socket: String,
    /// Where metrics and health are served.
    pub http: Option<Http>,
    /// How to reach the cluster.
    pub cluster: Cluster,
    /// How leaders are found, if they are.
    pub election: Option<Election>,
    /// What the registrar needs.
    pub registration: Option<Registration>,
    /// Where the liveness probe answers, beside `http`.
    pub health: Option<String>,
    /// The namespace of our Leases: those of leaders, and the journal.
    pub home: String,
    /// Where this process runs, as far as a role needs to know.
    pub identity: Identity,
    /// How far the migration of each in-tree plugin has come.
    pub migration: Migration,
    /// The flags, for what only one role reads.
    pub flags: Flags,
}

/// Where a process runs. What a role needs is there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its node (`NODE_NAME`).
    pub node: String,
    /// Its namespace (`NAMESPACE`).
    pub namespace: String,
    /// Its pod (`POD_NAME`).
    pub pod: String,
}

/// Where metrics and health are served.
#[derive(Debug, PartialEq, Eq)]
pub struct Http {
    /// Such as `:8080`.
    pub address: String,
    /// The path of the metrics.
    pub metrics_path: String,
    /// Health is served there too; not under the old flag.
    pub health: bool,
}

/// How to reach the cluster.
#[derive(Debug, PartialEq)]
pub struct Cluster {
    /// A file, or the environment.
    pub kubeconfig: Option<String>,
    /// A URL, instead of the file's.
    pub master: Option<String>,
    /// Requests a second and at once, where a limit was asked for.
    pub limit: Option<(f64, u32)>,
}

/// How leaders are found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Election {
    /// What is put on their Leases.
    pub labels: BTreeMap<String, String>,
    /// The rules of the game.
    pub config: LeaseConfig,
}

/// What the registrar needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Registration {
    /// The driver's socket as kubelet sees it.
    pub endpoint: String,
    /// Where our own socket goes.
    pub folder: String,
    /// Only asked whether it could be started.
    pub probe: bool,
    /// The driver wants to know the pod it publishes a volume for.
    pub requires_publish_pod: bool,
}

/// What is taken from outside the command line.
pub struct ProcessEnvironment {
    pub variables: BTreeMap<String, String>,
    /// This machine's name.
    pub host: String,
    /// The namespace of the service account, if there is one.
    pub namespace: Option<String>,
}

impl Settings {
    /// Checks the flags as a whole. An error is a sentence.
    pub fn new(roles: BTreeSet<Role>, flags: Flags, environment: &ProcessEnvironment) -> Result<Settings, String> {
        let Some(first) = roles.first().copied() else {
            return Err("there is no role to play; name some with --roles=provisioner,attacher,…".into());
        };
        let text = |flag: Flag<Text>| flags.text(first, flag).to_string();
        let some = |flag: Flag<Text>| Some(text(flag)).filter(|value| !value.is_empty());
        if let (Some(_), Some(_)) = (some(table::METRICS_ADDRESS), some(table::HTTP_ENDPOINT)) {
            return Err("--metrics-address and --http-endpoint are both given; keep --http-endpoint".into());
        }
        let path = some(table::METRICS_PATH).unwrap_or_else(|| "/metrics".into());
        if !path.starts_with('/') {
            return Err(format!("--metrics-path {path} is no path; write --metrics-path=/metrics"));
        }
        let socket = text(table::CSI_ADDRESS);
        let bare = socket.strip_prefix("unix://").or_else(|| socket.strip_prefix("unix:")).unwrap_or(&socket);
        if !bare.starts_with('/') {
            return Err(format!("--csi-address {socket} is no path of a socket; write --csi-address=/run/csi/socket"));
        }
        let health = some(table::HTTP_ENDPOINT).is_some();
        let address = some(table::HTTP_ENDPOINT).or_else(|| some(table::METRICS_ADDRESS));
        let http = address.map(|address| Http { address, metrics_path: path, health });
        for (role, flag) in [
            (Role::Provisioner, table::WORKER_THREADS),
            (Role::Attacher, table::WORKER_THREADS),
            (Role::Resizer, table::WORKERS),
        ] {
            if roles.contains(&role) && flags.int(role, flag) < 1 {
                return Err(format!("--{} must be at least 1, or the {role} does nothing", flag.name()));
            }
        }
        let first_elected = roles.iter().copied().find(|role| role.lease("").is_some());
        let election = first_elected.filter(|role| flags.is(*role, table::LEADER_ELECTION));
        let election = election.map(|role| election_of(role, &flags, environment)).transpose()?;
        let registration = if roles.contains(&Role::Registrar) { Some(registration_of(&flags)?) } else { None };
        if roles.contains(&Role::Provisioner) {
            let given = flags.text(Role::Provisioner, table::PROVISIONING_INTENT);
            if !matches!(given, "journal" | "claim" | "memory") {
                return Err(format!("--provisioning-intent cannot be {given:?}; write journal, claim or memory"));
            }
        }
        for role in roles.iter().copied().filter(|role| role.lease("").is_some()) {
            let pauses = pace_of(role, &flags);
            if pauses.first > pauses.longest {
                return Err("--retry-interval-start is longer than --retry-interval-max; make it shorter".into());
            }
        }
        Ok(Settings {
            home: home_of(first_elected.unwrap_or(first), &flags, environment),
            identity: identity_of(&roles, &flags, environment)?,
            socket: bare.to_string(),
            http,
            cluster: cluster_of(&roles, &flags, environment),
            election,
            registration,
            health: health_of(&roles, &flags)?,
            migration: flags.migration()?,
            roles,
            flags,
        })
    }

    /// The deadline of a role's calls.
    pub fn timeout(&self, role: Role) -> Duration {
        self.flags.duration(role, if role == Role::Liveness { table::PROBE_TIMEOUT } else { table::TIMEOUT })
    }

    /// The pauses of a role after failures.
    pub fn pauses(&self, role: Role) -> BackOff {
        pace_of(role, &self.flags)
    }

    /// There is one provisioner per node.
    pub fn per_node(&self) -> bool {
        self.roles.contains(&Role::Provisioner) && self.flags.is(Role::Provisioner, table::NODE_DEPLOYMENT)
    }

    /// The registrar writes on the Node what nobody else writes.
    pub fn marks_node(&self) -> bool {
        self.roles.contains(&Role::Registrar) && self.flags.is(Role::Registrar, table::MARK_NODE)
    }

    /// The roles that work on the cluster's objects.
    pub fn controllers(&self) -> impl Iterator<Item = Role> {
        self.roles.iter().copied().filter(|role| role.lease("").is_some())
    }
}

/// The Go programs wait a second after the first failure, because they see nothing of what would end it. We are woken by
/// most of that, and wait so long only when told.
fn pace_of(role: Role, flags: &Flags) -> BackOff {
    let given = |flag: Flag<Duration>| {
        let millis = u64::try_from(flags.duration(role, flag).as_millis()).unwrap_or(u64::MAX);
        flags.is_given(flag).then_some(millis)
    };
    let usual = BackOff::default();
    let longest = given(table::RETRY_INTERVAL_MAX);
    let first = given(table::RETRY_INTERVAL_START).unwrap_or(usual.first.min(longest.unwrap_or(u64::MAX)));
    BackOff { first, longest: longest.unwrap_or(usual.longest.max(first)) }
}

/// The longest name of a node.
const LONGEST_NAME: usize = 253;

/// What the environment says of pod and node, where a flag needs it.
fn identity_of(roles: &BTreeSet<Role>, flags: &Flags, environment: &ProcessEnvironment) -> Result<Identity, String> {
    let variable = |name: &str| environment.variables.get(name).filter(|value| !value.is_empty()).cloned();
    let asks = |role: Role, flag: Flag<bool>| roles.contains(&role) && flags.is(role, flag);
    let (capacity, level) =
        (asks(Role::Provisioner, table::ENABLE_CAPACITY), flags.int(Role::Provisioner, table::CAPACITY_OWNERREF_LEVEL));
    let node_of = [(Role::Provisioner, table::NODE_DEPLOYMENT), (Role::Registrar, table::MARK_NODE)]
        .into_iter()
        .find(|(role, flag)| asks(*role, *flag));
    let identity = Identity {
        node: variable("NODE_NAME").unwrap_or_default(),
        namespace: variable("NAMESPACE")
            .or_else(|| variable("POD_NAMESPACE"))
            .or_else(|| environment.namespace.clone())
            .unwrap_or_default(),
        pod: variable("POD_NAME").unwrap_or_default(),
    };
    if let Some((_, flag)) = node_of.filter(|_| identity.node.is_empty()) {
        return Err(format!("--{} needs the node's name; set NODE_NAME in the environment", flag.name()));
    }
    if node_of.is_some() {
        crate::machine::check_name_of_node(&identity.node, LONGEST_NAME).map_err(|why| format!("NODE_NAME: {why}"))?;
    }
    if capacity && identity.namespace.is_empty() {
        return Err("--enable-capacity needs a namespace for its objects; set NAMESPACE in the environment".into());
    }
    if capacity && level >= 0 && identity.pod.is_empty() {
        return Err("--enable-capacity needs a pod that leads to the owner of its objects; set POD_NAME in the \
                    environment, or --capacity-ownerref-level=-1"
            .into());
    }
    if capacity && flags.duration(Role::Provisioner, table::CAPACITY_POLL_INTERVAL).is_zero() {
        return Err("--capacity-poll-interval cannot be 0; write --capacity-poll-interval=1m".into());
    }
    Ok(identity)
}

fn cluster_of(roles: &BTreeSet<Role>, flags: &Flags, environment: &ProcessEnvironment) -> Cluster {
    let role = roles.iter().copied().find(|role| role.lease("").is_some()).unwrap_or(Role::Provisioner);
    let some = |flag: Flag<Text>| Some(flags.text(role, flag).to_string()).filter(|value| !value.is_empty());
    let variable = environment.variables.get("KUBECONFIG").filter(|value| !value.is_empty()).cloned();
    let burst = u32::try_from(flags.int(role, table::KUBE_API_BURST)).unwrap_or(0);
    // The Go programs hold themselves to five requests a second by default; we only do so when told.
    let limited = flags.is_given(table::KUBE_API_QPS) || flags.is_given(table::KUBE_API_BURST);
    Cluster {
        kubeconfig: if roles.contains(&Role::Provisioner) {
            variable.or_else(|| some(table::KUBECONFIG))
        } else {
            some(table::KUBECONFIG)
        },
        master: some(table::MASTER),
        limit: limited.then(|| (flags.float(role, table::KUBE_API_QPS), burst)),
    }
}

fn election_of(role: Role, flags: &Flags, environment: &ProcessEnvironment) -> Result<Election, String> {
    let millis = |flag: Flag<Duration>| u64::try_from(flags.duration(role, flag).as_millis()).unwrap_or(u64::MAX);
    let config = LeaseConfig {
        identity: super::role::plain(&environment.host),
        duration: millis(table::LEADER_ELECTION_LEASE_DURATION),
        renew: millis(table::LEADER_ELECTION_RENEW_DEADLINE),
        retry: millis(table::LEADER_ELECTION_RETRY_PERIOD),
    };
    config.check().map_err(|why| format!("leader election cannot work so: {why}"))?;
    Ok(Election { labels: flags.labels(role), config })
}

/// Where our Leases are, those of leaders and the journal.
fn home_of(role: Role, flags: &Flags, environment: &ProcessEnvironment) -> String {
    let given = Some(flags.text(role, table::LEADER_ELECTION_NAMESPACE).to_string()).filter(|name| !name.is_empty());
    let pod = environment.variables.get("POD_NAMESPACE").filter(|name| !name.is_empty()).cloned();
    given.or(pod).or_else(|| environment.namespace.clone()).unwrap_or_else(|| "default".into())
}

fn registration_of(flags: &Flags) -> Result<Registration, String> {
    let text = |flag: Flag<Text>| flags.text(Role::Registrar, flag).to_string();
    let endpoint = text(table::KUBELET_REGISTRATION_PATH);
    // N8.
    if endpoint.is_empty() {
        return Err("--kubelet-registration-path is missing; give the driver's socket as kubelet sees it, such as \
                    /var/lib/kubelet/plugins/<driver>/csi.sock"
            .into());
    }
    let probe = text(table::MODE) == "kubelet-registration-probe";
    let requires_publish_pod = flags.is(Role::Registrar, table::REQUIRES_PUBLISH_POD);
    Ok(Registration { endpoint, folder: text(table::PLUGIN_REGISTRATION_PATH), probe, requires_publish_pod })
}

/// Where health is served besides the HTTP endpoint.
fn health_of(roles: &BTreeSet<Role>, flags: &Flags) -> Result<Option<String>, String> {
    let role = match (roles.contains(&Role::Liveness), roles.contains(&Role::Registrar)) {
        (true, _) => Role::Liveness,
        (false, true) => Role::Registrar,
        (false, false) => return Ok(None),
    };
    let both = flags.is_given(table::HEALTH_PORT) && flags.is_given(table::HTTP_ENDPOINT);
    if both {
        return Err("--health-port and --http-endpoint are both given; keep --http-endpoint".into());
    }
    if flags.is_given(table::HTTP_ENDPOINT) {
        return Ok(None);
    }
    let port = flags.text(role, table::HEALTH_PORT);
    match port.parse::<u16>() {
        Ok(0) => Ok(None),
        Ok(port) => Ok(Some(format!(":{port}"))),
        Err(_) => Err(format!("--health-port {port} is no port; write --health-port=9808")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::flags::parse;
    use super::*;

    fn settings(roles: &[Role], line: &str) -> Result<Settings, String> {
        let roles: BTreeSet<Role> = roles.iter().copied().collect();
        let arguments: Vec<String> = line.split_whitespace().map(String::from).collect();
        let flags = parse(&roles, &arguments)?;
        let environment =
            ProcessEnvironment { variables: BTreeMap::new(), host: "node_1".into(), namespace: Some("sa".into()) };
        Settings::new(roles, flags, &environment)
    }

    // C3, N8, A: contradictions are refused before anything is begun.
    #[test]
    fn contradictions_are_one_sentence() {
        let wrong = [
            (Role::Attacher, "--metrics-address=:1 --http-endpoint=:2", "--metrics-address and --http-endpoint"),
            (Role::Attacher, "--worker-threads=0", "--worker-threads must be at least 1"),
            (Role::Registrar, "", "--kubelet-registration-path is missing"),
            (
                Role::Registrar,
                "--kubelet-registration-path=/x --health-port=1 --http-endpoint=:2",
                "--health-port and --http-endpoint",
            ),
            (
                Role::Attacher,
                "--leader-election --leader-election-renew-deadline=20s",
                "must be shorter than the lease duration",
            ),
            (Role::Liveness, "--health-port=http", "--health-port http is no port"),
            (Role::Attacher, "--csi-address=csi.sock", "--csi-address csi.sock is no path of a socket"),
            (Role::Attacher, "--csi-address=", "is no path of a socket"),
            (Role::Provisioner, "--node-deployment", "set NODE_NAME"),
            (Role::Registrar, "--kubelet-registration-path=/x --mark-node", "set NODE_NAME"),
            (Role::Provisioner, "--enable-capacity", "set POD_NAME"),
            (
                Role::Provisioner,
                "--enable-capacity --capacity-ownerref-level=-1 --capacity-poll-interval=0",
                "cannot be 0",
            ),
            (Role::Attacher, "--retry-interval-start=10s --retry-interval-max=1s", "longer than --retry-interval-max"),
            (Role::Provisioner, "--provisioning-intent=paper", "write journal, claim or memory"),
            (
                Role::Resizer,
                "--feature-gates=CSIMigration=false --feature-gates=CSIMigrationAWS=true",
                "CSIMigrationAWS=true and CSIMigration=false contradict each other",
            ),
        ];
        for (role, line, words) in wrong {
            let sentence = settings(&[role], line).unwrap_err();
            assert!(sentence.contains(words), "{line}: {sentence}");
        }
        assert!(settings(&[], "").is_err());
    }

    // Sidecars 1.7.
    #[test]
    fn pauses_are_short_unless_longer_ones_are_asked_for() {
        let pauses = |line: &str| settings(&[Role::Attacher], line).unwrap().pauses(Role::Attacher);
        let of = |first, longest| BackOff { first, longest };
        assert_eq!(pauses(""), BackOff::default());
        assert_eq!(pauses("--retry-interval-start=2s --retry-interval-max=5m"), of(2_000, 300_000));
        assert_eq!(pauses("--retry-interval-start=2m"), of(120_000, 120_000));
        assert_eq!(pauses("--retry-interval-max=50ms"), of(50, 50));
    }

    // S4-1, S4-2, S4-3, S4-5: beside the gates of the Go programs, to every role that translates.
    #[test]
    fn gates_of_migration_are_read_beside_the_others() {
        use rules_translate::{Phase, Plugin};
        for role in [Role::Provisioner, Role::Attacher, Role::Resizer] {
            let phases = |line: &str| {
                let settings = settings(&[role], line).unwrap();
                [Plugin::AwsEbs, Plugin::GcePd].map(|plugin| settings.migration.phase(plugin))
            };
            assert_eq!(phases(""), [Phase::Complete; 2]);
            assert_eq!(phases("--feature-gates=Topology=true,CSIMigrationAWS=false"), [Phase::Off, Phase::Complete]);
            assert_eq!(phases("--feature-gates=CSIMigrationInTreeOff=false"), [Phase::On; 2]);
        }
    }

    #[test]
    fn the_api_is_not_throttled_unless_asked() {
        assert_eq!(settings(&[Role::Attacher], "").unwrap().cluster.limit, None);
        assert_eq!(settings(&[Role::Attacher], "--kube-api-qps=20").unwrap().cluster.limit, Some((20.0, 10)));
    }

    #[test]
    fn the_lease_is_where_the_pod_is_and_its_holder_named_like_the_host() {
        let settings =
            settings(&[Role::Attacher, Role::Registrar], "--leader-election --kubelet-registration-path=/x").unwrap();
        let election = settings.election.as_ref().unwrap();
        assert_eq!((settings.home.as_str(), election.config.identity.as_str()), ("sa", "node-1"));
        assert_eq!((election.config.duration, election.config.renew, election.config.retry), (15_000, 10_000, 5_000));
        assert_eq!(settings.controllers().collect::<Vec<_>>(), [Role::Attacher]);
        assert_eq!(settings.timeout(Role::Registrar), Duration::from_secs(1));
    }

    #[test]
    fn the_liveness_probe_answers_on_its_port_and_the_registrar_only_when_asked() {
        assert_eq!(settings(&[Role::Liveness], "").unwrap().health.as_deref(), Some(":9808"));
        assert_eq!(settings(&[Role::Liveness], "--http-endpoint=:1").unwrap().health, None);
        assert_eq!(settings(&[Role::Registrar], "--kubelet-registration-path=/x").unwrap().health, None);
    }
}
