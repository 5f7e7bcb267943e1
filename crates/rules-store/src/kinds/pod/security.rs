//! Pod Security Standards: what a pod may ask of the machine, by labels of its namespace.
//!
//! `pod-security.kubernetes.io/enforce` names the level; a namespace without that label has `baseline`, which lets
//! through what gives no power over the machine. `…/warn` names a level whose violations are told and not refused.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use api::Kind;
use serde_json::Value;

use crate::{Failure, Store, meta};

const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
const WARN: &str = "pod-security.kubernetes.io/warn";

/// Capabilities that may be added at level `baseline`.
const BASELINE_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Kernel settings that only change the pod's own namespaces.
const SAFE_SYSCTLS: [&str; 10] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_syncookies",
];
/// Volumes that a pod may have at level `restricted`.
const RESTRICTED_VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    /// The level a label names. One that nobody knows is the strictest, as Kubernetes has it.
    fn named(name: &str) -> Level {
        match name {
            "privileged" => Level::Privileged,
            "baseline" => Level::Baseline,
            _ => Level::Restricted,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        }
    }
}

/// Refuses a pod that its namespace does not allow; answers what is only warned of.
pub(super) fn admit(store: &Store, pod: &Value) -> Result<Vec<String>, Failure> {
    let namespace = meta::text(pod, "namespace");
    let label = |name: &str| {
        let home = store.get(Kind::Namespace, "", namespace)?;
        home.value.get("metadata")?.get("labels")?.get(name)?.as_str().map(String::from)
    };
    let enforced = label(ENFORCE).map_or(Level::Baseline, |name| Level::named(&name));
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let broken = violations(enforced, spec);
    if !broken.is_empty() {
        let message = format!(
            "violates PodSecurity \"{}:latest\": {}; whoever may change namespace {namespace} can allow it with the \
             label {ENFORCE}=privileged",
            enforced.name(),
            broken.join(", ")
        );
        return Err(Failure::Forbidden { kind: Kind::Pod, name: meta::text(pod, "name").into(), message });
    }
    let warned = label(WARN).map_or(Level::Privileged, |name| Level::named(&name));
    let broken = violations(warned, spec);
    let warning = format!("would violate PodSecurity \"{}:latest\": {}", warned.name(), broken.join(", "));
    Ok(if broken.is_empty() { Vec::new() } else { Vec::from([warning]) })
}

/// What a pod asks for beyond a level.
fn violations(level: Level, spec: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    if level >= Level::Baseline {
        baseline(spec, &mut broken);
    }
    if level >= Level::Restricted {
        restricted(spec, &mut broken);
    }
    broken
}

fn baseline(spec: &Value, broken: &mut Vec<String>) {
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        if spec[field] == true {
            broken.push(format!("host namespaces ({field}=true)"));
        }
    }
    for volume in list(&spec["volumes"]).filter(|volume| volume.get("hostPath").is_some()) {
        broken.push(format!("hostPath volumes (volume {})", volume["name"]));
    }
    let pod = &spec["securityContext"];
    for sysctl in list(&pod["sysctls"]).filter(|sysctl| !one_of(&sysctl["name"], &SAFE_SYSCTLS)) {
        broken.push(format!("forbidden sysctls ({})", sysctl["name"]));
    }
    contexts(pod, "pod", broken);
    for (name, container) in containers(spec) {
        let own = &container["securityContext"];
        if own["privileged"] == true {
            broken.push(format!("privileged ({name} must not set securityContext.privileged=true)"));
        }
        let added = list(&own["capabilities"]["add"]);
        for capability in added.filter(|added| !one_of(added, &BASELINE_CAPABILITIES)) {
            broken.push(format!("non-default capabilities ({name} must not add {capability})"));
        }
        if !own["procMount"].is_null() && own["procMount"] != "Default" {
            broken.push(format!("procMount ({name} must not set securityContext.procMount={})", own["procMount"]));
        }
        for port in list(&container["ports"]).filter(|port| port["hostPort"].as_i64().unwrap_or(0) != 0) {
            broken.push(format!("hostPort ({name} uses hostPort {})", port["hostPort"]));
        }
        contexts(own, &name, broken);
    }
}

/// What pod and container can both say.
fn contexts(context: &Value, whose: &str, broken: &mut Vec<String>) {
    for (field, word) in [("seccompProfile", "seccompProfile"), ("appArmorProfile", "forbidden AppArmor profile")] {
        if context[field]["type"] == "Unconfined" {
            broken.push(format!("{word} ({whose} must not set securityContext.{field}.type to \"Unconfined\")"));
        }
    }
    let labels = &context["seLinuxOptions"];
    let types = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
    let typed = labels["type"].as_str().is_some_and(|word| !types.contains(&word));
    let owned = ["user", "role"].iter().any(|field| labels[field].as_str().is_some_and(|word| !word.is_empty()));
    if typed || owned {
        broken.push(format!("seLinuxOptions ({whose} set forbidden securityContext.seLinuxOptions)"));
    }
}

fn restricted(spec: &Value, broken: &mut Vec<String>) {
    for volume in list(&spec["volumes"]) {
        let kinds = volume.as_object().into_iter().flat_map(|volume| volume.keys()).filter(|key| *key != "name");
        for kind in kinds.filter(|kind| !RESTRICTED_VOLUMES.contains(&kind.as_str())) {
            broken.push(format!(
                "restricted volume types (volume {} uses restricted volume type {kind:?})",
                volume["name"]
            ));
        }
    }
    let pod = &spec["securityContext"];
    if pod["runAsUser"] == 0 {
        broken.push("runAsUser=0 (pod must not set runAsUser=0)".to_string());
    }
    for (name, container) in containers(spec) {
        let own = &container["securityContext"];
        if own["allowPrivilegeEscalation"] != false {
            broken.push(format!(
                "allowPrivilegeEscalation != false ({name} must set securityContext.allowPrivilegeEscalation=false)"
            ));
        }
        let drops_all = list(&own["capabilities"]["drop"]).any(|capability| capability == "ALL");
        let adds_more = list(&own["capabilities"]["add"]).any(|capability| capability != "NET_BIND_SERVICE");
        if !drops_all || adds_more {
            broken.push(format!(
                "unrestricted capabilities ({name} must set securityContext.capabilities.drop=[\"ALL\"])"
            ));
        }
        let either = |field: &str| if own[field].is_null() { &pod[field] } else { &own[field] };
        if *either("runAsNonRoot") != true {
            broken.push(format!("runAsNonRoot != true (pod or {name} must set securityContext.runAsNonRoot=true)"));
        }
        if own["runAsUser"] == 0 {
            broken.push(format!("runAsUser=0 ({name} must not set runAsUser=0)"));
        }
        if !one_of(&either("seccompProfile")["type"], &["RuntimeDefault", "Localhost"]) {
            broken.push(format!(
                "seccompProfile (pod or {name} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
                 \"Localhost\")"
            ));
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn one_of(value: &Value, words: &[&str]) -> bool {
    value.as_str().is_some_and(|word| words.contains(&word))
}

/// All containers, with the words that name them.
fn containers(spec: &Value) -> impl Iterator<Item = (String, &Value)> {
    let kinds = ["initContainers", "containers", "ephemeralContainers"];
    kinds
        .into_iter()
        .flat_map(|kind| list(&spec[kind]))
        .map(|container| (format!("container {}", container["name"]), container))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn broken(level: Level, spec: Value) -> String {
        violations(level, &spec).join(", ")
    }

    #[test]
    fn an_ordinary_pod_is_within_the_baseline() {
        let spec = json!({ "containers": [{ "name": "c", "command": ["true"], "securityContext": {
            "capabilities": { "add": ["NET_BIND_SERVICE"] }, "runAsUser": 0 } }],
            "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "v" } }] });
        assert_eq!(broken(Level::Baseline, spec.clone()), "");
        assert_eq!(violations(Level::Restricted, &spec).len(), 5);
        assert_eq!(broken(Level::Privileged, json!({ "hostPID": true })), "");
    }

    #[test]
    fn the_baseline_names_each_way_to_the_machine() {
        let container = |context: Value| json!({ "containers": [{ "name": "c", "securityContext": context }] });
        for (spec, said) in [
            (json!({ "hostNetwork": true }), "host namespaces (hostNetwork=true)"),
            (json!({ "hostPID": true }), "host namespaces (hostPID=true)"),
            (json!({ "hostIPC": true }), "host namespaces (hostIPC=true)"),
            (json!({ "volumes": [{ "name": "v", "hostPath": { "path": "/" } }] }), "hostPath volumes (volume \"v\")"),
            (container(json!({ "privileged": true })), "securityContext.privileged=true"),
            (container(json!({ "capabilities": { "add": ["SYS_ADMIN"] } })), "must not add \"SYS_ADMIN\""),
            (container(json!({ "procMount": "Unmasked" })), "procMount"),
            (container(json!({ "seccompProfile": { "type": "Unconfined" } })), "seccompProfile"),
            (container(json!({ "appArmorProfile": { "type": "Unconfined" } })), "AppArmor"),
            (container(json!({ "seLinuxOptions": { "user": "root" } })), "seLinuxOptions"),
            (json!({ "securityContext": { "sysctls": [{ "name": "kernel.panic" }] } }), "forbidden sysctls"),
            (json!({ "initContainers": [{ "name": "i", "ports": [{ "hostPort": 80 }] }] }), "hostPort 80"),
        ] {
            let told = broken(Level::Baseline, spec);
            assert!(told.contains(said) && !told.contains(", "), "{told}");
        }
    }

    #[test]
    fn a_hardened_pod_is_within_the_restricted_level() {
        let profile = json!({ "type": "RuntimeDefault" });
        let hardened = json!({ "securityContext": { "runAsNonRoot": true, "seccompProfile": profile },
            "containers": [{ "name": "c", "securityContext": { "allowPrivilegeEscalation": false,
                "capabilities": { "drop": ["ALL"] } } }] });
        assert_eq!(broken(Level::Restricted, hardened.clone()), "");
        let mut weaker = hardened;
        weaker["volumes"] = json!([{ "name": "v", "nfs": {} }]);
        assert!(broken(Level::Restricted, weaker).contains("restricted volume type \"nfs\""));
        assert!(Level::named("no-such-level") == Level::Restricted);
    }
}
