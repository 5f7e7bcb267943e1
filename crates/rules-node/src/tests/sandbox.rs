//! `securityContext` and `resources` as sandboxes, case by case.

use alloc::string::String;

use api::Pod;
use control::Reason as _;
use control::host::{LinuxCapabilities, ProcessLimits, Sandbox};
use serde_json::{Value, json};

use crate::sandbox;
use crate::status::Blocked;

fn of(spec: Value, container: Value) -> Result<Sandbox, Blocked> {
    let mut spec = spec;
    let mut whole = json!({ "name": "c", "command": ["true"] });
    whole.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    spec["containers"] = json!([whole]);
    let pod: Pod = serde_json::from_value(json!({ "metadata": { "name": "web", "uid": "u" }, "spec": spec })).unwrap();
    sandbox::of(&pod, &pod.spec.containers[0])
}

fn plain() -> Sandbox {
    Sandbox { pod: "u".into(), hostname: "web".into(), ..Sandbox::default() }
}

fn refused(spec: Value, container: Value) -> (&'static str, String) {
    let blocked = of(spec, container).unwrap_err();
    assert!(!blocked.fatal);
    (blocked.reason.name(), blocked.message)
}

// H1: what a pod that asks for nothing gets.
#[test]
fn the_default_is_that_of_container_runtimes() {
    assert_eq!(of(json!({}), json!({})), Ok(plain()));
    assert!(plain().seccomp && plain().read_only_root && !plain().privileged);
    assert_eq!(plain().capabilities, LinuxCapabilities::DEFAULT);
}

#[test]
fn a_container_counts_before_its_pod() {
    let pod = json!({ "securityContext": {
        "runAsUser": 1000, "runAsGroup": 2000, "supplementalGroups": [3000], "fsGroup": 4000,
        "seccompProfile": { "type": "Unconfined" },
    } });
    let shared =
        Sandbox { user: 1000, group: Some(2000), supplemental_groups: [3000, 4000].into(), seccomp: false, ..plain() };
    assert_eq!(of(pod.clone(), json!({})), Ok(shared.clone()));
    let own = json!({ "securityContext": {
        "runAsUser": 0, "runAsGroup": 1, "seccompProfile": { "type": "RuntimeDefault" },
        "readOnlyRootFilesystem": false, "allowPrivilegeEscalation": false,
    } });
    let expected =
        Sandbox { user: 0, group: Some(1), seccomp: true, read_only_root: false, no_new_privileges: true, ..shared };
    assert_eq!(of(pod, own), Ok(expected));
}

#[test]
fn capabilities_are_dropped_and_then_added() {
    let capabilities = |asked: Value| of(json!({}), json!({ "securityContext": { "capabilities": asked } }));
    let named = |name| LinuxCapabilities::named(name).unwrap();
    let kept = |capabilities| Ok(Sandbox { capabilities, ..plain() });
    assert_eq!(capabilities(json!({ "drop": ["ALL"] })), kept(LinuxCapabilities::NONE));
    let bind = json!({ "drop": ["ALL"], "add": ["NET_BIND_SERVICE"] });
    assert_eq!(capabilities(bind), kept(named("NET_BIND_SERVICE")));
    let admin = LinuxCapabilities::DEFAULT.with(named("SYS_ADMIN"));
    assert_eq!(capabilities(json!({ "add": ["CAP_SYS_ADMIN"] })), kept(admin));
    let (reason, message) = refused(json!({}), json!({ "securityContext": { "capabilities": { "add": ["FLY"] } } }));
    assert_eq!(reason, "CreateContainerConfigError");
    assert!(message.contains("\"FLY\""), "{message}");
}

#[test]
fn what_contradicts_itself_does_not_run() {
    let context = |context: Value| refused(json!({}), json!({ "securityContext": context })).1;
    assert!(context(json!({ "runAsNonRoot": true })).contains("set runAsUser"));
    assert!(context(json!({ "runAsNonRoot": true, "runAsUser": 0 })).contains("would run as root"));
    assert!(context(json!({ "runAsUser": -1 })).contains("runAsUser -1"));
    assert!(context(json!({ "runAsUser": 4_294_967_295_u32 })).contains("no user"));
    assert!(context(json!({ "privileged": true, "allowPrivilegeEscalation": false })).contains("privileged"));
    let pod = json!({ "securityContext": { "runAsNonRoot": true } });
    assert!(of(pod.clone(), json!({ "securityContext": { "runAsUser": 7 } })).is_ok());
    assert!(of(pod, json!({ "securityContext": { "runAsNonRoot": false } })).is_ok());
}

// KL-87, KL-89, KL-90: no container gets a label, so no volume is wanted with one, and no two labels can differ.
#[test]
fn kl_87_a_container_that_asks_for_a_label_is_refused() {
    let label = json!({ "securityContext": { "seLinuxOptions": { "level": "s0:c1,c2" } } });
    for (pod, container) in [(label.clone(), json!({})), (json!({}), label)] {
        let (reason, message) = refused(pod, container);
        assert_eq!(reason, "SecurityContextNotSupported");
        assert!(message.contains("seLinuxOptions"), "{message}");
    }
}

#[test]
fn isolation_that_is_not_offered_is_refused_by_name() {
    let of_pod = |field: &str, value: Value| refused(json!({ field: value }), json!({}));
    let profile = json!({ "seccompProfile": { "type": "Localhost", "localhostProfile": "mine.json" } });
    for (field, value, named) in [
        ("hostPID", json!(true), "spec.hostPID"),
        ("shareProcessNamespace", json!(true), "spec.shareProcessNamespace"),
        ("hostUsers", json!(false), "spec.hostUsers"),
        ("securityContext", json!({ "sysctls": [{ "name": "a", "value": "b" }] }), "sysctls"),
        ("securityContext", profile, "seccompProfile"),
        ("securityContext", json!({ "seLinuxOptions": { "level": "s0" } }), "seLinuxOptions"),
        ("securityContext", json!({ "appArmorProfile": { "type": "Localhost" } }), "appArmorProfile"),
    ] {
        let (reason, message) = of_pod(field, value);
        assert_eq!(reason, "SecurityContextNotSupported");
        assert!(message.contains(named), "{message}");
    }
    let unmasked = refused(json!({}), json!({ "securityContext": { "procMount": "Unmasked" } })).1;
    assert!(unmasked.contains("procMount"), "{unmasked}");
}

#[test]
fn the_machines_network_and_ipc_are_had_where_asked_for() {
    let shared = of(json!({ "hostNetwork": true, "hostIPC": true }), json!({})).unwrap();
    assert_eq!((shared.host_network, shared.host_ipc, shared.hostname.as_str()), (true, true, ""));
    assert_eq!(of(json!({ "hostname": "other" }), json!({})).unwrap().hostname, "other");
}

#[test]
fn privileged_means_all() {
    let sandbox = of(json!({}), json!({ "securityContext": { "privileged": true } })).unwrap();
    assert_eq!((sandbox.privileged, sandbox.capabilities), (true, LinuxCapabilities::ALL));
}

#[test]
fn resources_become_limits() {
    let resources = |resources: Value| of(json!({}), json!({ "resources": resources })).map(|sandbox| sandbox.limits);
    let asked = json!({ "limits": { "memory": "64Mi", "cpu": "250m" }, "requests": { "cpu": "0.1" } });
    let expected = ProcessLimits { memory: Some(64 << 20), cpu_millis: Some(250), cpu_request_millis: Some(100) };
    assert_eq!(resources(asked), Ok(expected));
    assert_eq!(resources(json!({ "limits": { "memory": "0" } })), Ok(ProcessLimits::default()));
    assert!(resources(json!({ "limits": { "memory": "much" } })).is_err());
}
