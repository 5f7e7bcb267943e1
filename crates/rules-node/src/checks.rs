//! Probes and hooks of containers: what each asks, how its answers count, and what follows for the container.

use alloc::string::String;
use alloc::vec::Vec;

use api::{Container, HttpGetAction, ObjectKey, Pod, Probe, TcpSocketAction, Value};
use control::Timestamp;
use control::host::Handler;

use crate::local::Local;

/// Which probe or hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckKind {
    /// The hook after the start.
    PostStart,
    /// Whether it has started.
    Startup,
    /// Whether it lives.
    Liveness,
    /// Whether it does its work.
    Readiness,
    /// The hook before the end.
    PreStop,
}

impl CheckKind {
    /// All of them.
    pub const ALL: [CheckKind; 5] =
        [CheckKind::PostStart, CheckKind::Startup, CheckKind::Liveness, CheckKind::Readiness, CheckKind::PreStop];

    /// As Kubernetes calls it.
    pub fn name(self) -> &'static str {
        match self {
            CheckKind::PostStart => "postStart hook",
            CheckKind::Startup => "startup probe",
            CheckKind::Liveness => "liveness probe",
            CheckKind::Readiness => "readiness probe",
            CheckKind::PreStop => "preStop hook",
        }
    }
}

/// A probe or hook of a container of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckKey {
    /// The pod it belongs to.
    pub pod: ObjectKey,
    /// The container it asks.
    pub container: String,
    /// Which of the container's.
    pub kind: CheckKind,
}

/// What is known of a probe or hook of one process. Lost with the agent, and found out again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checked {
    /// When the latest was begun, in milliseconds since 1970.
    pub at_millis: u64,
    /// Good answers in a row.
    pub good: i64,
    /// Bad ones in a row.
    pub bad: i64,
    /// What it says now; nothing before its answers count.
    pub passed: Option<bool>,
    /// The latest bad answer.
    pub why: String,
}

impl Checked {
    /// Counts an answer; a bad one is a clause.
    pub fn count(&mut self, at_millis: u64, limits: (i64, i64), answer: Result<(), String>) {
        self.at_millis = at_millis;
        match answer {
            Ok(()) => (self.good, self.bad) = (self.good.saturating_add(1), 0),
            Err(why) => (self.good, self.bad, self.why) = (0, self.bad.saturating_add(1), why),
        }
        let (enough, too_many) = limits;
        if self.good >= enough.max(1) {
            self.passed = Some(true);
        } else if self.bad >= too_many.max(1) {
            self.passed = Some(false);
        }
    }
}

/// How a probe or hook is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSpec {
    /// What is asked.
    pub handler: Result<Handler, String>,
    /// How long the answer may take.
    pub timeout_millis: u64,
    /// The pause before the first.
    pub delay_millis: u64,
    /// From one to the next.
    pub period_millis: u64,
    /// So many good answers in a row mean well, so many bad ones unwell.
    pub limits: (i64, i64),
    /// How long the process may take to end when it is unwell.
    pub grace_seconds: Option<i64>,
}

/// The probe or hook of a container, if it has one.
pub fn spec(pod: &Pod, container: &Container, kind: CheckKind) -> Option<CheckSpec> {
    let grace = pod.spec.termination_grace_period_seconds.unwrap_or(30);
    let hook = |hook: &Option<api::Handler>| {
        let hook = hook.as_ref()?;
        let handler = handler(container, hook.exec.as_ref(), hook.http_get.as_ref(), hook.tcp_socket.as_ref());
        let sleep = hook.sleep.as_ref().map(|sleep| Ok(Handler::Sleep { millis: millis(sleep.seconds, 0) }));
        Some(CheckSpec {
            handler: sleep.unwrap_or(handler),
            timeout_millis: millis(grace.max(1), 1),
            delay_millis: 0,
            period_millis: 0,
            limits: (1, 1),
            grace_seconds: None,
        })
    };
    match kind {
        CheckKind::PostStart => hook(&container.lifecycle.post_start),
        CheckKind::PreStop => hook(&container.lifecycle.pre_stop),
        CheckKind::Startup => probe(container, container.startup_probe.as_ref()?),
        CheckKind::Liveness => probe(container, container.liveness_probe.as_ref()?),
        CheckKind::Readiness => probe(container, container.readiness_probe.as_ref()?),
    }
}

fn millis(seconds: i64, least: i64) -> u64 {
    u64::try_from(seconds.max(least)).unwrap_or(0).saturating_mul(1000)
}

fn probe(container: &Container, probe: &Probe) -> Option<CheckSpec> {
    let or = |number: i64, default: i64| if number > 0 { number } else { default };
    Some(CheckSpec {
        handler: handler(container, probe.exec.as_ref(), probe.http_get.as_ref(), probe.tcp_socket.as_ref()),
        timeout_millis: millis(or(probe.timeout_seconds, 1), 1),
        delay_millis: millis(probe.initial_delay_seconds, 0),
        period_millis: millis(or(probe.period_seconds, 10), 1),
        limits: (or(probe.success_threshold, 1), or(probe.failure_threshold, 3)),
        grace_seconds: probe.termination_grace_period_seconds,
    })
}

fn handler(
    container: &Container,
    exec: Option<&api::ExecAction>,
    http: Option<&HttpGetAction>,
    tcp: Option<&TcpSocketAction>,
) -> Result<Handler, String> {
    match (exec, http, tcp) {
        (Some(exec), ..) => Ok(Handler::Exec { command: exec.command.clone() }),
        (None, Some(http), _) => Ok(Handler::HttpGet {
            host: http.host.clone(),
            port: port(container, &http.port)?,
            path: if http.path.is_empty() { "/".into() } else { http.path.clone() },
            headers: http.http_headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect(),
        }),
        (None, None, Some(tcp)) => Ok(Handler::TcpSocket { host: tcp.host.clone(), port: port(container, &tcp.port)? }),
        (None, None, None) => Err("it says nothing that is known here; use exec, httpGet or tcpSocket".into()),
    }
}

/// A port by number, or by the name the container gives it.
fn port(container: &Container, port: &Value) -> Result<u16, String> {
    let number = match port {
        Value::String(name) => {
            let named = container.ports.iter().find(|port| port.name == *name).map(|port| port.container_port);
            named.or_else(|| name.parse().ok())
        }
        other => other.as_i64(),
    };
    let number = number.and_then(|number| u16::try_from(number).ok()).filter(|number| *number > 0);
    number.ok_or_else(|| alloc::format!("container {} has no port {port}", container.name))
}

/// What probes and hooks say of a container's latest process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerHealth {
    /// It has started.
    pub started: bool,
    /// It does its work.
    pub ready: bool,
    /// It is to be ended and started again: what is wrong, and how long it may take.
    pub unwell: Option<(String, Option<i64>)>,
    /// Its hook before the end: whether it is over.
    pub pre_stop: Option<bool>,
}

/// Reads off what is known of a process. What a restarted agent does not know yet is as the status told it.
pub fn health(pod: &Pod, container: &Container, process: Option<(u32, &str)>, local: &Local) -> ContainerHealth {
    let has = |kind| spec(pod, container, kind);
    let known = |kind| process.and_then(|(_, name)| local.checks.get(&(name.into(), kind)));
    let told = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
    let mut told = told.filter(|told| told.name == container.name && told.state.running.is_some());
    let told = told.find(|told| process.is_some_and(|(restart, _)| told.restart_count == i64::from(restart)));
    let passed = |kind, told: bool| match (has(kind), known(kind).and_then(|known| known.passed)) {
        (None, _) => true,
        (Some(_), Some(passed)) => passed,
        (Some(_), None) => told,
    };
    let started = told.is_some_and(|told| told.started);
    let started = passed(CheckKind::PostStart, started) && passed(CheckKind::Startup, started);
    let unwell = [CheckKind::PostStart, CheckKind::Startup, CheckKind::Liveness].into_iter().find_map(|kind| {
        let (spec, known) = (has(kind)?, known(kind).filter(|known| known.passed == Some(false))?);
        Some((alloc::format!("its {} failed: {}", kind.name(), known.why), spec.grace_seconds))
    });
    ContainerHealth {
        started,
        ready: started && passed(CheckKind::Readiness, told.is_some_and(|told| told.ready)),
        unwell,
        pre_stop: has(CheckKind::PreStop).map(|_| known(CheckKind::PreStop).is_some()),
    }
}

/// The probes and hooks of a pod. Init containers have them only if they stay beside the containers.
pub fn keys(pod: &Pod) -> Vec<CheckKey> {
    let sidecars = pod.spec.init_containers.iter().filter(|container| container.is_sidecar());
    let all = sidecars.chain(&pod.spec.containers);
    let each = all.flat_map(|container| CheckKind::ALL.map(|kind| (container, kind)));
    let found = each.filter(|(container, kind)| spec(pod, container, *kind).is_some());
    found
        .map(|(container, kind)| CheckKey { pod: pod.metadata.key(), container: container.name.clone(), kind })
        .collect()
}

/// What a decision about a probe or hook looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckView {
    /// The probe or hook that is looked at.
    pub key: CheckKey,
    /// How it is done; none if the container does not have it (any more).
    pub spec: Option<CheckSpec>,
    /// The process that runs, and since when.
    pub process: Option<(String, Timestamp)>,
    /// What is known of it.
    pub last: Option<Checked>,
    /// The container has started, as far as others say.
    pub started: bool,
    /// The process is to end.
    pub ending: bool,
}
