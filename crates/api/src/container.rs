//! What a container may say about its own life: hooks, probes, when it starts again.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::Value;
use crate::core_v1::part;

part! {
    /// What is done when a container has started and before it ends.
    Lifecycle { post_start: Option<Handler>, pre_stop: Option<Handler> }
}

part! {
    /// What is done at a container, by a hook or a probe. One of them is set.
    Handler {
        exec: Option<ExecAction>,
        http_get: Option<HttpGetAction>,
        tcp_socket: Option<TcpSocketAction>,
        sleep: Option<SleepAction>,
    }
}

part! {
    /// A look at a container, again and again.
    Probe {
        exec: Option<ExecAction>,
        http_get: Option<HttpGetAction>,
        tcp_socket: Option<TcpSocketAction>,
        initial_delay_seconds: i64,
        timeout_seconds: i64,
        period_seconds: i64,
        success_threshold: i64,
        failure_threshold: i64,
        termination_grace_period_seconds: Option<i64>,
    }
}

part! {
    /// A command in the container.
    ExecAction { command: Vec<String> }
}

part! {
    /// A request over HTTP.
    HttpGetAction { path: String, port: Value, host: String, scheme: String, http_headers: Vec<HttpHeader> }
}

part! {
    /// A header of a request.
    HttpHeader { name: String, value: String }
}

part! {
    /// A connection over TCP.
    TcpSocketAction { port: Value, host: String }
}

part! {
    /// A hook that does nothing for a while.
    SleepAction { seconds: i64 }
}

part! {
    /// A port that a container names.
    ContainerPort { name: String, container_port: i64 }
}

part! {
    /// A condition that others set and that a pod must have to be ready.
    ReadinessGate { condition_type: String }
}
