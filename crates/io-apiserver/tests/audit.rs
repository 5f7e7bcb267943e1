//! H11: each request is told in the audit log, with who asked and how it ended, and without what was in it.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use axum::body::Body;
use common::call;
use http::Request;
use io_apiserver::{ApiServer, Config, Identity};
use serde_json::{Value, json};
use tower::ServiceExt;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn run(test: impl AsyncFnOnce(&ApiServer)) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let config = || Config { data_dir: dir.path().join("d"), audit_log: Some(path.clone()), ..Config::default() };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let server = ApiServer::open(config()).unwrap();
        test(&server).await;
        server.close();
    });
    lines(&path)
}

/// The thread that writes may be a moment behind.
fn lines(path: &Path) -> Vec<Value> {
    let mut before = usize::MAX;
    loop {
        let text = std::fs::read_to_string(path).unwrap();
        if text.len() == before {
            return text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        }
        before = text.len();
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
}

#[test]
fn h11_writes_are_told_with_who_and_what_and_never_a_body() {
    let told = run(async |server| {
        let admin = server.service_as("admin");
        let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "correct horse"}}).to_string();
        assert_eq!(call(&admin, "POST", SECRETS, &secret).await.0, 201);
        assert_eq!(call(&admin, "GET", &format!("{SECRETS}/s"), "").await.0, 200);
        let nobody = server.service_for(Identity::new("nobody", &[]));
        assert_eq!(call(&nobody, "DELETE", &format!("{SECRETS}/s"), "").await.0, 403);
        let as_nobody = Request::builder().method("DELETE").uri(format!("https://localhost{SECRETS}/s"));
        let as_nobody = as_nobody.header("impersonate-user", "nobody").header("user-agent", "a test");
        let answer = admin.oneshot(as_nobody.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 403);
        assert!(answer.headers().contains_key("audit-id"));
    });
    let said = |line: &Value| {
        let object = &line["objectRef"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let named = [&line["user"]["username"], &line["impersonatedUser"]["username"], &line["verb"], &object["name"]];
        (named.map(text).join(" "), line["responseStatus"]["code"].as_u64().unwrap())
    };
    let all: Vec<_> = told.iter().map(said).collect();
    let expected = [("admin  create ", 201), ("nobody  delete s", 403), ("admin nobody delete s", 403)];
    assert_eq!(all, expected.map(|(text, code)| (text.to_owned(), code)));
    assert_eq!(told[0]["objectRef"], json!({"resource": "secrets", "namespace": "default", "apiVersion": "v1"}));
    assert_eq!((&told[0]["kind"], &told[0]["level"]), (&json!("Event"), &json!("Metadata")));
    assert_eq!((&told[2]["userAgent"], &told[2]["requestURI"]), (&json!("a test"), &json!(format!("{SECRETS}/s"))));
    assert!(!format!("{told:?}").contains("horse"));
}

#[test]
fn h11_a_log_that_cannot_be_written_is_refused_at_start() {
    let dir = tempfile::tempdir().unwrap();
    let audit_log = Some(dir.path().join("not there/audit.log"));
    let opened = ApiServer::open(Config { data_dir: dir.path().join("d"), audit_log, ..Config::default() });
    let error = opened.map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("cannot open the audit log") && error.contains("not there/audit.log"), "{error}");
}
