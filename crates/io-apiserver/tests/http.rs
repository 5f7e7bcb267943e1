//! The protocol: who may ask, what is refused and how, lists and their versions.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{Harbor, MAPS, call, call_as, config_map, open, revision};
use http_body_util::BodyExt;
use io_apiserver::{ApiServer, Identity};
use rcgen::{CertificateParams, DnType, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn run(test: impl AsyncFnOnce(ApiServer)) {
    let dir = tempfile::tempdir().unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let server = open(dir.path());
        test(server.clone()).await;
        server.close();
    });
}

/// A certificate for this name and group; signed by the authority of the server, or by a stranger.
fn certificate(authority: Option<&str>, user: &str, group: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.distinguished_name.push(DnType::CommonName, user);
    params.distinguished_name.push(DnType::OrganizationName, group);
    let signed = match authority {
        Some(pem) => {
            let (certificate, secret) = pem.split_at(pem.find("-----BEGIN PRIVATE KEY").unwrap());
            let issuer = Issuer::from_ca_cert_pem(certificate, KeyPair::from_pem(secret).unwrap()).unwrap();
            params.signed_by(&key, &issuer).unwrap()
        }
        None => params.self_signed(&key).unwrap(),
    };
    (signed.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).unwrap())
}

/// One request over TLS, with or without a certificate.
async fn ask(
    harbor: &Harbor,
    path: &str,
    identity: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> String {
    let kubeconfig = std::fs::read_to_string(harbor.kubeconfig()).unwrap();
    let line = kubeconfig.lines().find(|l| l.contains("certificate-authority-data")).unwrap();
    let authority = STANDARD.decode(line.split(": ").nth(1).unwrap()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&authority).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match identity {
        Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => builder.with_no_client_auth(),
    };
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", harbor.port)).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

#[test]
fn strangers_get_401_others_403_and_health_is_open() {
    // reliability 126
    let harbor = Harbor::start();
    let authority = std::fs::read_to_string(harbor.data().join("pki/client-ca.pem")).unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        for path in ["/healthz", "/livez", "/readyz", "/version"] {
            assert!(ask(&harbor, path, None).await.starts_with("HTTP/1.1 200"), "{path}");
        }
        for path in ["/api", "/api/v1/secrets", "/openapi/v3", "/longshore/hello", "/nowhere"] {
            let answer = ask(&harbor, path, None).await;
            assert!(answer.starts_with("HTTP/1.1 401") && answer.contains(r#""reason":"Unauthorized""#), "{answer}");
        }
        let stranger = certificate(None, "admin", "system:masters");
        assert!(ask(&harbor, "/api/v1/pods", Some(stranger)).await.starts_with("HTTP/1.1 401"));
        let guest = || Some(certificate(Some(&authority), "guest", "guests"));
        let answer = ask(&harbor, "/api/v1/secrets", guest()).await;
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains(r#""reason":"Forbidden""#), "{answer}");
        assert!(ask(&harbor, "/longshore/hello", guest()).await.starts_with("HTTP/1.1 403"));
        assert!(ask(&harbor, "/api", guest()).await.starts_with("HTTP/1.1 200"), "discovery is for all who are known");
        let master = certificate(Some(&authority), "root", "system:masters");
        assert!(ask(&harbor, "/api/v1/secrets", Some(master)).await.starts_with("HTTP/1.1 200"));
    });
}

#[test]
fn what_cannot_be_understood_is_refused_with_a_status() {
    // reliability 129
    run(async |server| {
        let service = server.service_as("test");
        let json = "application/json";
        let long = "x".repeat(4 << 20);
        for (method, path, media_type, body, code) in [
            ("POST", MAPS, json, "{not json", 400),
            ("POST", MAPS, json, "[]", 400),
            ("POST", MAPS, json, long.as_str(), 413),
            ("POST", MAPS, "application/cbor", "k8s", 415),
            ("POST", MAPS, PROTOBUF, "k8s", 400),
            ("POST", MAPS, PROTOBUF, "{}", 400),
            // A Foo, which nobody serves; a Secret where ConfigMaps are; a Secret that ends too early.
            ("POST", MAPS, PROTOBUF, "k8s\0\n\t\n\x02v1\x12\x03Foo", 415),
            ("POST", MAPS, PROTOBUF, "k8s\0\n\x0c\n\x02v1\x12\x06Secret", 400),
            ("POST", MAPS, PROTOBUF, "k8s\0\n\x0c\n\x02v1\x12\x06Secret\x12\x03\n\x09k", 400),
            ("PATCH", "/api/v1/namespaces/default/configmaps/x", json, "{}", 415),
            ("GET", "/api/v1/nonsense", json, "", 404),
            ("GET", "/nowhere", json, "", 404),
            ("GET", "/api/v1/namespaces/default/configmaps/none", json, "", 404),
            ("GET", "/api/v1/namespaces/default/configmaps/none/scale", json, "", 404),
            ("PUT", MAPS, json, "{}", 405),
            ("POST", "/api/v1/configmaps", json, "{}", 405),
            ("DELETE", "/version", json, "", 405),
            ("GET", "/api/v1/configmaps?limit=x", json, "", 400),
            ("GET", "/api/v1/configmaps?labelSelector=a%3D%3D%3Db", json, "", 400),
            ("GET", "/api/v1/configmaps?fieldSelector=spec.color%3Dred", json, "", 400),
            ("GET", "/api/v1/configmaps?continue=rubbish", json, "", 400),
            ("PATCH", "/api/v1/namespaces/default/configmaps/x", "application/apply-patch+yaml", "a: b", 400),
        ] {
            let (got, status) = call_as(&service, method, path, media_type, body).await;
            assert_eq!(got, code, "{method} {path}: {status}");
            assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)), "{method} {path}");
            // newuser G: kubectl debug reads on in it without looking.
            assert!(status["details"].is_object(), "{method} {path}: {status}");
        }
    });
}

#[test]
fn doubled_and_unknown_fields_follow_field_validation() {
    run(async |server| {
        let service = server.service_as("test");
        let doubled = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"},"data":{"a":"1","a":"2"}}"#;
        let (code, status) = call(&service, "POST", &format!("{MAPS}?fieldValidation=Strict"), doubled).await;
        assert_eq!(code, 400);
        assert!(status["message"].as_str().unwrap().contains(r#"duplicate field "data.a""#), "{status}");
        let request = http::Request::post(MAPS).header("content-type", "application/json");
        let response = service.clone().oneshot(request.body(Body::from(doubled)).unwrap()).await.unwrap();
        assert_eq!(response.status(), 201);
        assert_eq!(response.headers()["warning"], r#"299 - "duplicate field \"data.a\"""#);
        assert_eq!(call(&service, "POST", &format!("{MAPS}?fieldValidation=Maybe"), doubled).await.0, 400);
    });
}

#[test]
fn yaml_is_read_and_written() {
    run(async |server| {
        let service = server.service_as("test");
        let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\ndata: {a: \"1\"}\n";
        assert_eq!(call_as(&service, "POST", MAPS, "application/yaml", yaml).await.0, 201);
        assert_eq!(call_as(&service, "POST", MAPS, "application/yaml", "a: [").await.0, 400);
        let request = http::Request::get(format!("{MAPS}/y")).header("accept", "application/yaml");
        let response = service.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let text = response.into_body().collect().await.unwrap().to_bytes();
        assert!(
            std::str::from_utf8(&text).unwrap().contains("name: \"y\""),
            "readers of old YAML take a bare y for true"
        );
        let path = format!("{MAPS}/z?fieldManager=t");
        let apply = yaml.replace("name: y", "name: z");
        assert_eq!(call_as(&service, "PATCH", &path, "application/apply-patch+yaml", &apply).await.0, 201);
        assert_eq!(call_as(&service, "PATCH", &path, "application/apply-patch+yaml", &apply).await.0, 200);
    });
}

#[test]
fn the_pages_of_a_list_are_pages_of_one_state() {
    // reliability 90
    run(async |server| {
        let service = server.service_as("test");
        for number in 0..10 {
            call(&service, "POST", MAPS, &config_map(&format!("m{number}"), "x")).await;
        }
        let (_, first) = call(&service, "GET", &format!("{MAPS}?limit=4"), "").await;
        assert_eq!(first["metadata"]["remainingItemCount"], 7, "the certificate of each namespace is one of them");
        for name in ["m5", "m9"] {
            call(&service, "DELETE", &format!("{MAPS}/{name}"), "").await;
        }
        call(&service, "POST", MAPS, &config_map("m4-new", "x")).await;
        let (mut token, mut names) = (first["metadata"]["continue"].clone(), names(&first));
        while let Some(text) = token.as_str() {
            let (code, page) = call(&service, "GET", &format!("{MAPS}?limit=4&continue={text}"), "").await;
            assert_eq!(code, 200);
            assert_eq!(revision(&page), revision(&first), "one state has one version");
            names.extend(self::names(&page));
            token = page["metadata"]["continue"].clone();
        }
        let all = std::iter::once("kube-root-ca.crt".to_owned()).chain((0..10).map(|n| format!("m{n}")));
        assert_eq!(names, all.collect::<Vec<_>>());
        let other = first["metadata"]["continue"].as_str().unwrap();
        let (code, _) = call(&service, "GET", &format!("/api/v1/secrets?limit=4&continue={other}"), "").await;
        assert_eq!(code, 410, "a token is good for its own list only");
    });
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|i| i["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn lists_honour_the_version_they_are_asked_for() {
    // reliability 89
    run(async |server| {
        let service = server.service_as("test");
        let (_, a) = call(&service, "POST", MAPS, &config_map("a", "x")).await;
        let (_, b) = call(&service, "POST", MAPS, &config_map("b", "x")).await;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}).to_string();
        call(&service, "POST", "/api/v1/namespaces/default/secrets", &secret).await;
        let at = |version: u64, how: &str| format!("{MAPS}?resourceVersion={version}&resourceVersionMatch={how}");
        let now = server.revision();
        assert_eq!(call(&service, "GET", &at(revision(&a), "NotOlderThan"), "").await.0, 200);
        assert_eq!(call(&service, "GET", &at(revision(&b), "Exact"), "").await.0, 200, "nothing changed here since");
        assert_eq!(call(&service, "GET", &at(revision(&a), "Exact"), "").await.0, 410);
        assert_eq!(call(&service, "GET", &at(0, "Exact"), "").await.0, 400);
        let waits = async { call(&service, "GET", &at(now + 1, "NotOlderThan"), "").await };
        let write = async { call(&service, "POST", MAPS, &config_map("c", "x")).await };
        let ((code, list), _) = futures::join!(waits, write);
        assert_eq!(code, 200, "a reader waits a little for what is about to come");
        assert!(names(&list).contains(&"c".to_owned()));
        let (code, status) = call(&service, "GET", &at(now + 1000, "NotOlderThan"), "").await;
        assert_eq!((code, &status["details"]["causes"][0]["reason"]), (504, &json!("ResourceVersionTooLarge")));
    });
}

#[test]
fn stale_writes_conflict_dry_runs_change_nothing_and_collections_are_deleted_by_selector() {
    // reliability 86
    run(async |server| {
        let service = server.service_as("test");
        let (_, mut object) = call(&service, "POST", MAPS, &config_map("a", "x")).await;
        let path = format!("{MAPS}/a");
        let patch = json!({"metadata": {"labels": {"keep": "no"}}}).to_string();
        call_as(&service, "PATCH", &path, "application/merge-patch+json", &patch).await;
        object["data"]["text"] = json!("late");
        assert_eq!(call(&service, "PUT", &path, &object.to_string()).await.0, 409);
        let wrong = json!({"preconditions": {"uid": "another"}}).to_string();
        assert_eq!(call(&service, "DELETE", &path, &wrong).await.0, 409);
        let before = server.revision();
        assert_eq!(call(&service, "POST", &format!("{MAPS}?dryRun=All"), &config_map("dry", "x")).await.0, 201);
        assert_eq!(call(&service, "DELETE", &path, r#"{"dryRun":["All"]}"#).await.0, 200);
        assert_eq!(server.revision(), before);
        call(&service, "POST", MAPS, &config_map("b", "x")).await;
        assert_eq!(call(&service, "DELETE", &format!("{MAPS}?labelSelector=keep%3Dno"), "").await.0, 200);
        assert_eq!(names(&call(&service, "GET", MAPS, "").await.1), ["b", "kube-root-ca.crt"]);
    });
}

#[test]
fn the_in_process_service_carries_the_identity_it_is_given() {
    run(async |server| {
        let guest = server.service_for(Identity::new("guest", &["guests"]));
        assert_eq!(call(&guest, "GET", MAPS, "").await.0, 403);
        assert_eq!(call(&guest, "POST", MAPS, &config_map("a", "x")).await.0, 403);
        assert_eq!(call(&server.service_as("system:longshore"), "GET", MAPS, "").await.0, 200);
    });
}

#[test]
fn a_kubernetes_client_takes_the_service_in_place_of_a_connection() {
    use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
    run(async |server| {
        let client = kube::Client::new(server.service_as("system:longshore"), "default");
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let made: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "k"}, "data": {"a": "1"}})).unwrap();
        maps.create(&PostParams::default(), &made).await.unwrap();
        let patch = Patch::Merge(json!({"data": {"b": "2"}}));
        let patched = maps.patch("k", &PatchParams::default(), &patch).await.unwrap();
        assert_eq!(patched.data.unwrap().len(), 2);
        assert_eq!(maps.list(&ListParams::default().limit(1)).await.unwrap().items.len(), 1);
        maps.delete("k", &DeleteParams::default()).await.unwrap();
        assert!(maps.get_opt("k").await.unwrap().is_none());
        let pods: Api<Pod> = Api::all(client);
        assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
    });
}

#[test]
fn a_pod_is_bound_once_through_its_subresource() {
    run(async |server| {
        let service = server.service_as("test");
        let pods = "/api/v1/namespaces/default/pods";
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                         "spec": {"containers": [{"name": "c", "image": "i"}]}});
        assert_eq!(call(&service, "POST", pods, &pod.to_string()).await.0, 201);
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
                             "target": {"kind": "Node", "name": "n1"}});
        let path = format!("{pods}/p/binding");
        assert_eq!(call(&service, "POST", &path, &binding.to_string()).await.0, 201);
        assert_eq!(call(&service, "POST", &path, &binding.to_string()).await.0, 409);
        assert_eq!(call(&service, "GET", &format!("{pods}/p"), "").await.1["spec"]["nodeName"], "n1");
        assert_eq!(call(&service, "GET", &format!("{pods}/p/log"), "").await.0, 404, "no source of logs was given");
    });
}

#[test]
fn h5_what_is_stored_can_be_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let fields = |depth| format!(r#"{{"metadata":{{"name":"m{depth}","managedFields":[{}]}}}}"#, nested(depth));
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let server = open(dir.path());
        let service = server.service_as("test");
        for depth in [1, 90, 97, 98, 120] {
            let (code, answer) = call(&service, "POST", MAPS, &fields(depth)).await;
            assert!(matches!(code, 201 | 413), "{depth}: {answer}");
        }
        call(&service, "POST", MAPS, &config_map("big", &"x".repeat(1_500_000))).await;
        let path = format!("{MAPS}/m1");
        let mut value = json!([]);
        for _ in 0..60 {
            value = json!([value]);
        }
        let innermost = format!("/metadata/managedFields{}/0", "/0".repeat(60));
        let steps = json!([
            {"op": "add", "path": "/metadata/managedFields", "value": [value]},
            {"op": "copy", "from": "/metadata/managedFields", "path": innermost},
        ]);
        let (code, answer) = call_as(&service, "PATCH", &path, "application/json-patch+json", &steps.to_string()).await;
        assert!(matches!(code, 200 | 413), "{answer}");
        server.close();
        let again = open(dir.path());
        let (code, list) = call(&again.service_as("test"), "GET", MAPS, "").await;
        assert_eq!(code, 200);
        assert!(list["items"].as_array().unwrap().len() >= 2);
        again.close();
    });
}

#[test]
fn h2_one_patch_does_not_end_the_server() {
    run(async |server| {
        let service = server.service_as("test");
        call(&service, "POST", MAPS, &config_map("m", "x")).await;
        let doubling: Value = (0..40).map(|n| json!({"op": "copy", "from": "", "path": format!("/c{n}")})).collect();
        let path = |n: usize| "/a".repeat(n);
        let deep: Value = (1..1200).map(|n| json!({"op": "add", "path": path(n), "value": {}})).collect();
        for patch in [doubling, deep] {
            for dry in ["", "?dryRun=All"] {
                let path = format!("{MAPS}/m{dry}");
                let (code, status) =
                    call_as(&service, "PATCH", &path, "application/json-patch+json", &patch.to_string()).await;
                assert_eq!((code, &status["reason"]), (413, &json!("RequestEntityTooLarge")), "{status}");
            }
        }
        assert_eq!(call(&service, "GET", &format!("{MAPS}/m"), "").await.0, 200);
    });
}

#[test]
fn h4_long_bodies_do_not_keep_the_others_waiting() {
    run(async |server| {
        let service = server.service_as("test");
        let body = format!(
            r#"{{"metadata":{{"name":"x"}},"data":{{"{}":[{}]}}}}"#,
            "k".repeat(1_400_000),
            vec!["0"; 750_000].join(",")
        );
        let long = futures::future::join_all((0..4).map(|_| call(&service, "POST", MAPS, &body)));
        let mut longest = std::time::Duration::ZERO;
        let short = async {
            tokio::task::yield_now().await;
            loop {
                let began = std::time::Instant::now();
                assert_eq!(call(&service, "GET", "/api/v1/namespaces/default", "").await.0, 200);
                longest = longest.max(began.elapsed());
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let answers = tokio::select! {
            answers = long => answers,
            () = short => unreachable!("it asks for ever"),
        };
        assert!(answers.iter().all(|(code, _)| *code == 400), "{:?}", answers[0]);
        assert!(longest < std::time::Duration::from_millis(500), "{longest:?}");
    });
}

#[test]
fn kinds_and_parts_that_are_not_here_say_what_to_use_instead() {
    run(async |server| {
        let service = server.service_as("test");
        for (path, words, name) in [
            ("/apis/apps/v1/namespaces/default/deployments", "has no deployments: it runs Pods", Value::Null),
            ("/apis/apps/v1/namespaces/default/statefulsets/s", "has no statefulsets: it runs Pods", json!("s")),
            ("/apis/batch/v1/namespaces/default/cronjobs/c", "restartPolicy Never or OnFailure", json!("c")),
            ("/api/v1/namespaces/default/services", "has no services", Value::Null),
            ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "its kinds are fixed", Value::Null),
            ("/apis/example.com/v1/widgets/w", "the server could not find the requested resource", json!("w")),
            ("/api/v1/namespaces/default/pods/p/attach", "has no attach", Value::Null),
            ("/api/v1/namespaces/default/pods/p/portforward", "has no port-forward", Value::Null),
        ] {
            let (code, status) = call(&service, "GET", path, "").await;
            assert_eq!(
                (code, &status["reason"], &status["details"]["name"]),
                (404, &json!("NotFound"), &name),
                "{path}"
            );
            assert!(status["message"].as_str().unwrap().contains(words), "{path}: {status}");
        }
    });
}
