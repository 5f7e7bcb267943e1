//! Who may do what: nothing without a binding, and no more than its role says.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use rules_store::*;
use serde_json::{Value, json};

const ACCOUNT: &str = "system:serviceaccount:default:side";

fn may(cluster: &Cluster, user: &str, attributes: Attributes<'_>) -> bool {
    cluster.store.allows(Subject { name: user, groups: &["system:authenticated".to_string()] }, &attributes)
}

/// `verb group/resource[/subresource] namespace name`, with `-` for nothing.
fn attributes(text: &str) -> Attributes<'_> {
    let words: Vec<&str> = text.split(' ').map(|word| if word == "-" { "" } else { word }).collect();
    let [verb, what, namespace, name] = words[..] else { panic!("{text}") };
    let mut parts = what.split('/').map(|part| if part == "core" { "" } else { part });
    let (group, resource) = (parts.next().unwrap(), parts.next().unwrap());
    Attributes { verb, group, resource, subresource: parts.next().unwrap_or_default(), namespace, name, path: "" }
}

fn rule(groups: &[&str], resources: &[&str], names: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "resourceNames": names, "verbs": verbs })
}

fn bind(cluster: &mut Cluster, plural: &str, name: &str, role: &str, subject: Value) {
    let body =
        json!({ "metadata": { "name": name }, "roleRef": { "kind": role, "name": name }, "subjects": [subject] });
    cluster.create(plural, body);
}

fn account() -> Value {
    json!({ "kind": "ServiceAccount", "name": "side", "namespace": "default" })
}

#[test]
fn a_cluster_binding_gives_what_its_role_names_everywhere_and_nothing_else() {
    let mut cluster = Cluster::new();
    let rules = json!([
        rule(&["storage.k8s.io"], &["volumeattachments", "volumeattachments/status"], &[], &["get", "patch"]),
        rule(&[""], &["persistentvolumes"], &[], &["*"]),
        rule(&["*"], &["*/status"], &[], &["update"]),
    ]);
    cluster.create("clusterroles", json!({ "metadata": { "name": "side" }, "rules": rules }));
    assert!(
        !may(&cluster, ACCOUNT, attributes("get storage.k8s.io/volumeattachments - a")),
        "a role alone gives nothing"
    );
    bind(&mut cluster, "clusterrolebindings", "side", "ClusterRole", account());
    for yes in [
        "get storage.k8s.io/volumeattachments - a",
        "patch storage.k8s.io/volumeattachments/status - a",
        "deletecollection core/persistentvolumes - -",
        "update core/pods/status default p",
    ] {
        assert!(may(&cluster, ACCOUNT, attributes(yes)), "{yes}");
        assert!(!may(&cluster, "system:serviceaccount:other:side", attributes(yes)), "a namesake elsewhere: {yes}");
        assert!(!may(&cluster, "side", attributes(yes)), "a user of that name: {yes}");
    }
    for no in [
        "list storage.k8s.io/volumeattachments - -",
        "get core/volumeattachments - a",
        "get storage.k8s.io/csinodes - a",
        "get core/persistentvolumes/status - a",
        "update core/pods default p",
    ] {
        assert!(!may(&cluster, ACCOUNT, attributes(no)), "{no}");
    }
}

#[test]
fn a_binding_in_a_namespace_ends_at_its_border() {
    let mut cluster = Cluster::new();
    cluster.create("namespaces", json!({ "metadata": { "name": "other" } }));
    let rules = json!([rule(&["coordination.k8s.io"], &["leases"], &["mine"], &["get", "update"])]);
    for plural in ["roles", "clusterroles"] {
        cluster.create(plural, json!({ "metadata": { "name": plural }, "rules": rules }));
    }
    for (name, role) in [("roles", "Role"), ("clusterroles", "ClusterRole")] {
        let user = format!("by-{name}");
        bind(&mut cluster, "rolebindings", name, role, json!({ "kind": "User", "name": user }));
        assert!(may(&cluster, &user, attributes("get coordination.k8s.io/leases default mine")));
        for no in ["default theirs", "default -", "other mine", "- mine"] {
            assert!(!may(&cluster, &user, attributes(&format!("get coordination.k8s.io/leases {no}"))), "{role}: {no}");
        }
    }
}

#[test]
fn groups_and_paths_are_granted_too() {
    let mut cluster = Cluster::new();
    let rules = json!([{ "nonResourceURLs": ["/metrics", "/longshore/*"], "verbs": ["get"] }]);
    cluster.create("clusterroles", json!({ "metadata": { "name": "reader" }, "rules": rules }));
    let all = json!({ "kind": "Group", "name": "system:authenticated" });
    bind(&mut cluster, "clusterrolebindings", "reader", "ClusterRole", all);
    let path = |verb, path| Attributes { verb, path, ..Attributes::default() };
    assert!(may(&cluster, "anybody", path("get", "/metrics")));
    assert!(may(&cluster, "anybody", path("get", "/longshore/v1/explain")));
    assert!(!may(&cluster, "anybody", path("post", "/metrics")));
    assert!(!may(&cluster, "anybody", path("get", "/metrics/more")));
    assert!(!cluster.store.allows(Subject { name: "anybody", groups: &[] }, &path("get", "/metrics")));
}

#[test]
fn roles_and_bindings_that_mean_nothing_are_refused_with_the_field() {
    let mut cluster = Cluster::new();
    let named = |rest: Value| {
        let mut body = json!({ "metadata": { "name": "x:y" } });
        body.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        body
    };
    let of = json!({ "kind": "ClusterRole", "name": "r" });
    for (plural, body, field) in [
        ("roles", json!({ "rules": [{ "apiGroups": [""], "resources": ["pods"] }] }), "rules[0].verbs"),
        ("roles", json!({ "rules": [{ "verbs": ["get"], "resources": ["pods"] }] }), "rules[0].apiGroups"),
        ("roles", json!({ "rules": [{ "verbs": ["get"], "nonResourceURLs": ["/"] }] }), "rules[0].nonResourceURLs"),
        ("rolebindings", json!({ "subjects": [] }), "roleRef.name"),
        ("clusterrolebindings", json!({ "roleRef": { "kind": "Role", "name": "r" } }), "roleRef.kind"),
        ("rolebindings", json!({ "roleRef": of, "subjects": [{ "kind": "Robot", "name": "r" }] }), "subjects[0].kind"),
        (
            "rolebindings",
            json!({ "roleRef": of, "subjects": [{ "kind": "ServiceAccount", "name": "r" }] }),
            "subjects[0].namespace",
        ),
    ] {
        let said = cluster.try_create(plural, named(body)).unwrap_err().to_string();
        assert!(said.contains(field), "{plural}: {said}");
    }
    let made =
        cluster.create("rolebindings", named(json!({ "roleRef": of, "subjects": [{ "kind": "User", "name": "u" }] })));
    assert_eq!(made.value["subjects"][0]["apiGroup"], "rbac.authorization.k8s.io");
    let other = json!({ "roleRef": { "name": "other" } });
    assert!(cluster.merge("rolebindings/default/x:y", other).unwrap_err().to_string().contains("roleRef"));
}
