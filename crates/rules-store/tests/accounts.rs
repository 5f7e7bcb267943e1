//! What namespaces have from the beginning, and what pods get of their account.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod common;

use common::{Cluster, pod};
use rules_store::{Kind, root_certificates, root_certificates_after};
use serde_json::{Value, json};

const PLACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn certificate(cluster: &Cluster, namespace: &str) -> Value {
    let map = cluster.store.get(Kind::ConfigMap, namespace, "kube-root-ca.crt");
    map.map_or(Value::Null, |map| map.value["data"].clone())
}

// Whoever makes a namespace, changes the certificate in one or removes it: it is there, and it is this server's.
#[test]
fn every_namespace_has_the_certificate_of_this_server() {
    let mut cluster = Cluster::new();
    let ours = json!({ "ca.crt": "ours" });
    for request in root_certificates(&cluster.store, "ours") {
        cluster.send(request).unwrap();
    }
    assert_eq!(certificate(&cluster, "default"), ours);
    assert!(root_certificates(&cluster.store, "ours").is_empty(), "nothing is written twice");
    let path = "configmaps/default/kube-root-ca.crt";
    type Step = fn(&mut Cluster) -> rules_store::Applied;
    let steps: [(&str, Step); 3] = [
        ("default", |cluster| {
            let wrong = json!({ "data": { "ca.crt": "another", "more": "x" } });
            cluster.merge("configmaps/default/kube-root-ca.crt", wrong).unwrap()
        }),
        ("default", |cluster| cluster.delete("configmaps/default/kube-root-ca.crt").unwrap()),
        ("shop", |cluster| cluster.try_create("namespaces", json!({ "metadata": { "name": "shop" } })).unwrap()),
    ];
    for (namespace, step) in steps {
        let applied = step(&mut cluster);
        assert_ne!(certificate(&cluster, namespace), ours, "{path}");
        let requests = root_certificates_after(&cluster.store, &applied.changes, "ours");
        assert_eq!(requests.len(), 1);
        for request in requests {
            cluster.send(request).unwrap();
        }
        assert_eq!(certificate(&cluster, namespace), ours);
    }
    // A new certificate takes the place of the old one; other config maps are nobody's business.
    assert_eq!(root_certificates(&cluster.store, "newer").len(), 2);
    let other = cluster.try_create("configmaps", json!({ "metadata": { "name": "app" } })).unwrap();
    assert!(root_certificates_after(&cluster.store, &other.changes, "ours").is_empty());
}

// A pod finds its token where clients look for it if it says so, or if its account does and it does not say otherwise.
#[test]
fn a_pod_that_asks_for_it_finds_its_token() {
    let mut cluster = Cluster::new();
    cluster.create("serviceaccounts", json!({ "metadata": { "name": "yes" }, "automountServiceAccountToken": true }));
    cluster.create("serviceaccounts", json!({ "metadata": { "name": "silent" } }));
    for (at, (own, account, wanted)) in [
        (None, "default", false),
        (None, "silent", false),
        (None, "yes", true),
        (Some(false), "yes", false),
        (Some(true), "silent", true),
        (Some(true), "not-there-yet", true),
    ]
    .into_iter()
    .enumerate()
    {
        let mut body = pod(&format!("p{at}"));
        body["spec"]["serviceAccountName"] = json!(account);
        body["spec"]["automountServiceAccountToken"] = json!(own);
        let made = cluster.create("pods", body).value.clone();
        let mounts = made["spec"]["containers"][0]["volumeMounts"].as_array().cloned().unwrap_or_default();
        let mount = mounts.iter().find(|mount| mount["mountPath"] == PLACE);
        assert_eq!(mount.is_some(), wanted, "{own:?} {account}");
        let Some(mount) = mount else { continue };
        assert_eq!(mount["readOnly"], true);
        let volume = made["spec"]["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == mount["name"]);
        let sources = &volume.unwrap()["projected"]["sources"];
        assert!(mount["name"].as_str().unwrap().starts_with("kube-api-access-"));
        assert_eq!(sources[0]["serviceAccountToken"], json!({ "expirationSeconds": 3607, "path": "token" }));
        assert_eq!(sources[1]["configMap"]["items"], json!([{ "key": "ca.crt", "path": "ca.crt" }]));
        assert_eq!(sources[2]["downwardAPI"]["items"][0]["path"], "namespace");
    }
    // Whoever mounts something of their own there gets nothing over it.
    let mut body = pod("own");
    body["spec"]["automountServiceAccountToken"] = json!(true);
    body["spec"]["volumes"] = json!([{ "name": "mine", "emptyDir": {} }]);
    body["spec"]["containers"][0]["volumeMounts"] = json!([{ "name": "mine", "mountPath": PLACE }]);
    let made = cluster.create("pods", body).value.clone();
    assert_eq!(made["spec"]["volumes"].as_array().unwrap().len(), 1);
}

#[test]
fn a_token_that_names_no_time_is_good_for_an_hour() {
    let mut cluster = Cluster::new();
    let mut body = pod("p");
    body["spec"]["volumes"] =
        json!([{ "name": "data", "projected": { "sources": [{ "serviceAccountToken": { "path": "token" } }] } }]);
    let made = cluster.create("pods", body).value.clone();
    let token = &made["spec"]["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"];
    assert_eq!(token["expirationSeconds"], 3600);
}
