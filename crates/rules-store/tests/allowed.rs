//! What is let in, beside what is refused for the same field.
#![allow(clippy::unwrap_used)]

mod common;

use common::Cluster;
use rules_store::{Failure, PatchKind};
use serde_json::{Value, json};

fn refusal(got: Result<rules_store::Applied, Failure>) -> String {
    format!("{:?}", got.unwrap_err())
}

fn pod(name: &str, spec: Value) -> Value {
    let mut body = json!({
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "host", "command": ["true"] }] },
    });
    rules_store::merge_patch(&mut body, &json!({ "spec": spec }));
    body
}

fn labelled(label: &str, level: &str) -> Cluster {
    let mut cluster = Cluster::new();
    let labels = json!({ format!("pod-security.kubernetes.io/{label}"): level });
    cluster.patch("namespaces/default", PatchKind::Merge, json!({ "metadata": { "labels": labels } })).unwrap();
    cluster
}

// Pod Security Standards: a plain pod is within baseline and not within restricted; a refusal names the level.
#[test]
fn each_level_of_pod_security_lets_in_what_its_name_says() {
    let host = json!({ "hostNetwork": true });
    for (level, plain, with_host) in [
        ("privileged", true, true),
        ("baseline", true, false),
        ("restricted", false, false),
        ("unheard-of", false, false),
    ] {
        let mut cluster = labelled("enforce", level);
        let told = if level == "unheard-of" { "restricted" } else { level };
        for (name, spec, allowed) in [("plain", json!({}), plain), ("host", host.clone(), with_host)] {
            let got = cluster.try_create("pods", pod(name, spec));
            assert_eq!(got.is_ok(), allowed, "{name} in {level}");
            if let Err(failure) = got {
                let text = format!("{failure:?}");
                assert!(text.contains(&format!(r#"PodSecurity \"{told}:latest\""#)), "{text}");
            }
        }
    }
}

#[test]
fn a_level_that_is_only_warned_of_lets_the_pod_in_and_names_the_level() {
    let mut cluster = labelled("warn", "restricted");
    let applied = cluster.try_create("pods", pod("plain", json!({}))).unwrap();
    let warnings = format!("{:?}", applied.warnings);
    assert!(warnings.contains(r#"would violate PodSecurity \"restricted:latest\""#), "{warnings}");
}

#[test]
fn an_empty_selinux_user_is_none_and_a_named_one_is_beyond_baseline() {
    let options = |user: &str| json!({ "securityContext": { "seLinuxOptions": { "user": user } } });
    let mut cluster = Cluster::new();
    cluster.try_create("pods", pod("none", options(""))).unwrap();
    let refused = refusal(cluster.try_create("pods", pod("named", options("system_u"))));
    assert!(refused.contains("seLinuxOptions"), "{refused}");
}

// Restricted: all capabilities are dropped, and one alone may be added again.
#[test]
fn a_restricted_container_may_add_the_right_to_low_ports_alone() {
    let with = |capability: &str| {
        let context = json!({
            "allowPrivilegeEscalation": false, "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" },
            "capabilities": { "drop": ["ALL"], "add": [capability] },
        });
        let container = json!({ "name": "main", "image": "host", "command": ["true"], "securityContext": context });
        json!({ "containers": [container] })
    };
    let mut cluster = labelled("enforce", "restricted");
    cluster.try_create("pods", pod("ports", with("NET_BIND_SERVICE"))).unwrap();
    let refused = refusal(cluster.try_create("pods", pod("chown", with("CHOWN"))));
    assert!(refused.contains("unrestricted capabilities"), "{refused}");
}

// S1, S2: both modes of life are known, and no other.
#[test]
fn a_driver_serves_volumes_of_claims_and_of_pods() {
    let driver = |modes: Value| json!({ "metadata": { "name": "d" }, "spec": { "volumeLifecycleModes": modes } });
    let mut cluster = Cluster::new();
    cluster.try_create("csidrivers", driver(json!(["Persistent", "Ephemeral"]))).unwrap();
    let refused = refusal(Cluster::new().try_create("csidrivers", driver(json!(["Eternal"]))));
    assert!(refused.contains("Eternal"), "{refused}");
}

#[test]
fn a_local_volume_says_where_it_is() {
    let volume = |affinity: Value| {
        json!({
            "metadata": { "name": "v" },
            "spec": {
                "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "local": { "path": "/mnt/a" },
                "nodeAffinity": affinity,
            },
        })
    };
    let on = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": ["x"] });
    let affinity = json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [on] }] } });
    let mut cluster = Cluster::new();
    let refused = refusal(cluster.try_create("persistentvolumes", volume(Value::Null)));
    assert!(refused.contains("nodeAffinity"), "{refused}");
    cluster.try_create("persistentvolumes", volume(affinity)).unwrap();
}

#[test]
fn what_is_no_time_is_refused_by_name() {
    let lease = |time: &str| json!({ "metadata": { "name": "l" }, "spec": { "renewTime": time } });
    let mut cluster = Cluster::new();
    let refused = refusal(cluster.try_create("leases", lease("yesterday")));
    assert!(refused.contains("renewTime") && refused.contains("a time such as"), "{refused}");
    cluster.try_create("leases", lease("2027-01-15T08:00:00.000000Z")).unwrap();
}

#[test]
fn a_strategic_patch_is_an_object() {
    let mut cluster = Cluster::new();
    let refused = refusal(cluster.patch("namespaces/default", PatchKind::Strategic, json!(["no", "object"])));
    assert!(refused.contains("must be an object"), "{refused}");
}
