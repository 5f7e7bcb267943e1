//! Service accounts, their tokens, and what roles let them do.
#![allow(clippy::unwrap_used)]

mod common;

use axum::Router;
use axum::body::Body;
use common::{call, open};
use http::Request;
use http_body_util::BodyExt;
use io_apiserver::{ApiServer, CallerLimits, Config, Identity};
use serde_json::{Value, json};
use tower::ServiceExt;

const CORE: &str = "/api/v1/namespaces/default";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// The server as its administrator and as somebody who has proved nothing sees it.
fn run(test: impl AsyncFnOnce(Router, Router)) {
    let dir = tempfile::tempdir().unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let server: ApiServer = open(dir.path());
        test(server.service_as("admin"), server.service_for(Identity::new("nobody", &[]))).await;
        server.close();
    });
}

async fn made(admin: &Router, path: &str, body: Value) -> Value {
    let (code, answer) = call(admin, "POST", path, &body.to_string()).await;
    assert_eq!(code, 201, "{answer}");
    answer
}

async fn token(admin: &Router, account: &str, spec: Value) -> String {
    let answer = made(admin, &format!("{CORE}/serviceaccounts/{account}/token"), json!({ "spec": spec })).await;
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// One request with these credentials.
async fn with(service: &Router, credentials: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("authorization", credentials);
    let request = request.header("content-type", "application/json").body(Body::from(body.to_owned())).unwrap();
    let answer = service.clone().oneshot(request).await.unwrap();
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap())
}

/// The account `side` may get and list the secret `key` in its namespace, and make config maps called `key`.
async fn prepare(admin: &Router) {
    made(admin, &format!("{CORE}/serviceaccounts"), json!({"metadata": {"name": "side"}})).await;
    let rule = |resource: &str, verbs: &[&str]| json!({"apiGroups": [""], "resources": [resource], "resourceNames": ["key"], "verbs": verbs});
    let rules = [rule("secrets", &["get", "list", "deletecollection"]), rule("configmaps", &["create"])];
    made(admin, &format!("{RBAC}/namespaces/default/roles"), json!({"metadata": {"name": "r"}, "rules": rules})).await;
    let binding = json!({
        "metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "side", "namespace": "default"}],
    });
    made(admin, &format!("{RBAC}/namespaces/default/rolebindings"), binding).await;
    for name in ["key", "other"] {
        made(admin, &format!("{CORE}/secrets"), json!({"metadata": {"name": name}})).await;
    }
}

#[test]
fn a_token_is_its_account_until_the_account_goes() {
    // reliability 126
    run(async |admin, nobody| {
        prepare(&admin).await;
        let bearer = format!("Bearer {}", token(&admin, "side", json!({})).await);
        let key = format!("{CORE}/secrets/key");
        assert_eq!(with(&nobody, &bearer, "GET", &key, "").await.0, 200);
        let elsewhere = token(&admin, "side", json!({"audiences": ["vault"]})).await;
        for wrong in ["Bearer ", "Bearer x.y.z", "Basic YTpi", &bearer[7..], &format!("Bearer {elsewhere}")] {
            assert_eq!(with(&nobody, wrong, "GET", &key, "").await.0, 401, "{wrong}");
        }
        call(&admin, "DELETE", &format!("{CORE}/serviceaccounts/side"), "").await;
        assert_eq!(with(&nobody, &bearer, "GET", &key, "").await.0, 401);
        made(&admin, &format!("{CORE}/serviceaccounts"), json!({"metadata": {"name": "side"}})).await;
        assert_eq!(with(&nobody, &bearer, "GET", &key, "").await.0, 401, "another account of the same name");
    });
}

#[test]
fn tokens_are_made_for_accounts_that_exist_and_for_times_that_make_sense() {
    run(async |admin, nobody| {
        prepare(&admin).await;
        let path = |name: &str| format!("{CORE}/serviceaccounts/{name}/token");
        for (name, spec, code) in [
            ("none", json!({}), 404),
            ("side", json!({"expirationSeconds": 599}), 400),
            ("side", json!({"expirationSeconds": i64::MAX}), 400),
            ("side", json!({"boundObjectRef": {"kind": "Secret", "name": "key"}}), 400),
            ("side", json!({"boundObjectRef": {"kind": "Pod", "name": "p"}}), 404),
        ] {
            let answer = call(&admin, "POST", &path(name), &json!({ "spec": spec }).to_string()).await;
            assert_eq!(answer.0, code, "{}", answer.1);
        }
        assert_eq!(call(&admin, "GET", &path("side"), "").await.0, 405);
        // Whoever may do little cannot make itself a token of somebody who may do more.
        let bearer = format!("Bearer {}", token(&admin, "side", json!({})).await);
        assert_eq!(with(&nobody, &bearer, "POST", &path("side"), "{}").await.0, 403);
    });
}

// KL-79: a token for a pod is of the pod's own account, and dies with the pod.
#[test]
fn kl_79_a_token_bound_to_a_pod_dies_with_it() {
    run(async |admin, nobody| {
        prepare(&admin).await;
        let pod = |account: &str| {
            json!({"metadata": {"name": "p"}, "spec": {"serviceAccountName": account,
                "containers": [{"name": "c", "image": "host"}]}})
        };
        made(&admin, &format!("{CORE}/pods"), pod("side")).await;
        let bound = |uid: &str| json!({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": uid}});
        let path = format!("{CORE}/serviceaccounts/side/token");
        let wrong = call(&admin, "POST", &path, &json!({ "spec": bound("another") }).to_string()).await;
        assert_eq!(wrong.0, 409, "{}", wrong.1);
        let bearer = format!("Bearer {}", token(&admin, "side", bound("")).await);
        let key = format!("{CORE}/secrets/key");
        assert_eq!(with(&nobody, &bearer, "GET", &key, "").await.0, 200);
        call(&admin, "DELETE", &format!("{CORE}/pods/p"), r#"{"gracePeriodSeconds": 0}"#).await;
        assert_eq!(with(&nobody, &bearer, "GET", &key, "").await.0, 401, "the pod is gone");
        made(&admin, &format!("{CORE}/pods"), pod("side")).await;
        assert_eq!(with(&nobody, &bearer, "GET", &key, "").await.0, 401, "another pod of the same name");
        call(&admin, "DELETE", &format!("{CORE}/pods/p"), r#"{"gracePeriodSeconds": 0}"#).await;
        made(&admin, &format!("{CORE}/pods"), pod("other")).await;
        let wrong = call(&admin, "POST", &path, &json!({ "spec": bound("") }).to_string()).await;
        assert_eq!(wrong.0, 400, "{}", wrong.1);
    });
}

#[test]
fn a_right_by_name_holds_for_that_name_alone() {
    run(async |admin, nobody| {
        prepare(&admin).await;
        let bearer = format!("Bearer {}", token(&admin, "side", json!({})).await);
        let secrets = format!("{CORE}/secrets");
        for (method, query, code) in [
            ("GET", "/key", 200),
            ("GET", "/other", 403),
            ("GET", "", 403),
            // A list of the one that is named is no more than that one.
            ("GET", "?fieldSelector=metadata.name%3Dkey", 200),
            ("GET", "?fieldSelector=metadata.name%3Dother", 403),
            ("GET", "?fieldSelector=metadata.name%21%3Dother", 403),
            ("DELETE", "?fieldSelector=metadata.name%3Dother", 403),
            ("DELETE", "", 403),
        ] {
            let (got, answer) = with(&nobody, &bearer, method, &format!("{secrets}{query}"), "").await;
            assert_eq!(got, code, "{method} {query}: {answer}");
        }
        // What is made has no name before it is made, whatever the query pretends.
        let maps = format!("{CORE}/configmaps?fieldSelector=metadata.name%3Dkey");
        let (code, _) = with(&nobody, &bearer, "POST", &maps, r#"{"metadata":{"name":"another"}}"#).await;
        assert_eq!(code, 403);
    });
}

#[test]
fn everybody_may_ask_what_they_may_do() {
    run(async |admin, nobody| {
        prepare(&admin).await;
        let bearer = format!("Bearer {}", token(&admin, "side", json!({})).await);
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        for (of, allowed) in [
            (json!({"verb": "get", "resource": "secrets", "name": "key", "namespace": "default"}), true),
            (json!({"verb": "get", "resource": "secrets", "namespace": "default"}), false),
            (json!({"verb": "get", "resource": "secrets", "name": "key"}), false),
        ] {
            let review = json!({"spec": {"resourceAttributes": of}}).to_string();
            let (code, answer) = with(&nobody, &bearer, "POST", path, &review).await;
            assert_eq!((code, &answer["status"]["allowed"]), (201, &json!(allowed)), "{review}");
            assert_eq!(call(&admin, "POST", path, &review).await.1["status"]["allowed"], true);
        }
        assert_eq!(call(&nobody, "POST", path, "{}").await.0, 400);
        assert_eq!(call(&nobody, "GET", path, "").await.0, 405);
    });
}

/// One request with these headers.
async fn headed(service: &Router, headers: &[(&str, &str)], method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = service.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap())
}

const ACCOUNT: &str = "system:serviceaccount:default:side";

#[test]
fn h6_impersonation_acts_as_the_impersonated_or_not_at_all() {
    run(async |admin, _| {
        prepare(&admin).await;
        let (key, other) = (format!("{CORE}/secrets/key"), format!("{CORE}/secrets/other"));
        let as_account = [("impersonate-user", ACCOUNT)];
        assert_eq!(headed(&admin, &as_account, "GET", &key, "").await.0, 200);
        let (code, status) = headed(&admin, &as_account, "GET", &other, "").await;
        assert_eq!(code, 403, "{status}");
        assert!(status["message"].as_str().unwrap().contains(&format!("User \"{ACCOUNT}\" cannot get")), "{status}");
        let eve = [("impersonate-user", "eve")];
        assert_eq!(headed(&admin, &eve, "DELETE", &key, "").await.0, 403, "the administrator's rights stay behind");
        let masters = [("impersonate-user", "eve"), ("impersonate-group", "system:masters")];
        assert_eq!(headed(&admin, &masters, "GET", &other, "").await.0, 200);
        for headers in [&[("impersonate-group", "x")][..], &[("impersonate-uid", "1")], &[("impersonate-extra-a", "b")]]
        {
            assert_eq!(headed(&admin, headers, "GET", &key, "").await.0, 400, "{headers:?}");
        }
        let odd = [("impersonate-user", "eve"), ("impersonate-colour", "red")];
        assert_eq!(headed(&admin, &odd, "GET", &key, "").await.0, 400);
        let review = json!({"spec": {"resourceAttributes": {"verb": "delete", "resource": "pods"}}}).to_string();
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let (_, answer) = headed(&admin, &as_account, "POST", path, &review).await;
        assert_eq!(answer["status"]["allowed"], false);
        let (code, me) =
            headed(&admin, &as_account, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}").await;
        assert_eq!((code, &me["status"]["userInfo"]["username"]), (201, &json!(ACCOUNT)));
        assert_eq!(
            me["status"]["userInfo"]["groups"],
            json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
        );
        assert!(me["status"]["userInfo"].get("uid").is_none() && me["status"]["userInfo"].get("extra").is_none());
        // What is said besides is carried on, several values of one key included; kubectl escapes keys.
        let more = [
            ("impersonate-user", "eve"),
            ("impersonate-uid", "u-7"),
            ("impersonate-extra-example.com%2fscope", "a"),
            ("impersonate-extra-example.com%2fscope", "b"),
        ];
        let (_, me) = headed(&admin, &more, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}").await;
        let told = json!({"username": "eve", "uid": "u-7", "groups": ["system:authenticated"],
            "extra": {"example.com/scope": ["a", "b"]}});
        assert_eq!(me["status"]["userInfo"], told);
        let twice = [("impersonate-user", "eve"), ("impersonate-uid", "1"), ("impersonate-uid", "2")];
        assert_eq!(headed(&admin, &twice, "GET", &key, "").await.0, 400);
        let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
        let (_, rules) = headed(&admin, &as_account, "POST", path, r#"{"spec":{"namespace":"default"}}"#).await;
        assert_eq!(rules["status"]["resourceRules"].as_array().unwrap().len(), 2, "{rules}");
    });
}

#[test]
fn h6_impersonation_needs_the_right_for_each_part() {
    run(async |admin, _| {
        prepare(&admin).await;
        let rule = |group: &str, resource: &str, names: &[&str]| {
            let verbs = ["impersonate"];
            json!({"apiGroups": [group], "resources": [resource], "verbs": verbs, "resourceNames": names})
        };
        let rules = [
            rule("", "users", &["eve"]),
            rule("", "groups", &["people"]),
            rule("authentication.k8s.io", "userextras/why", &["x"]),
        ];
        made(&admin, &format!("{RBAC}/clusterroles"), json!({"metadata": {"name": "as"}, "rules": rules})).await;
        let subject = json!({"kind": "ServiceAccount", "name": "side", "namespace": "default"});
        let role = json!({"kind": "ClusterRole", "name": "as"});
        let binding = json!({"metadata": {"name": "as"}, "roleRef": role, "subjects": [subject]});
        made(&admin, &format!("{RBAC}/clusterrolebindings"), binding).await;
        let bearer = format!("Bearer {}", token(&admin, "side", json!({})).await);
        let me = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let (user, group) = (("impersonate-user", "eve"), ("impersonate-group", "people"));
        for (more, code) in [
            (&[user][..], 201),
            (&[user, group], 201),
            (&[user, group, ("impersonate-extra-why", "x")], 201),
            (&[user, ("impersonate-extra-why", "y")], 403),
            (&[user, ("impersonate-group", "system:masters")], 403),
            (&[user, ("impersonate-uid", "7")], 403),
            (&[("impersonate-user", "bob")], 403),
            (&[("impersonate-user", "system:serviceaccount:default:other")], 403),
        ] {
            let mut headers = vec![("authorization", bearer.as_str())];
            headers.extend(more);
            let (got, answer) = headed(&admin, &headers, "POST", me, "{}").await;
            assert_eq!(got, code, "{more:?}: {answer}");
        }
        let headers = [("authorization", bearer.as_str()), ("impersonate-user", "bob")];
        let (_, status) = headed(&admin, &headers, "POST", me, "{}").await;
        let told = format!(
            "users \"bob\" is forbidden: User \"{ACCOUNT}\" cannot impersonate resource \"users\" in API group \"\" at \
             the cluster scope"
        );
        assert_eq!(status["message"], json!(told));
    });
}

#[test]
fn h7_an_apply_that_creates_needs_the_right_to_create() {
    run(async |admin, nobody| {
        prepare(&admin).await;
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}]);
        let role = format!("{RBAC}/namespaces/default/roles/r");
        let patch = json!({ "rules": rules }).to_string();
        common::call_as(&admin, "PATCH", &role, "application/merge-patch+json", &patch).await;
        let bearer = format!("Bearer {}", token(&admin, "side", json!({})).await);
        let path = format!("{CORE}/configmaps/made?fieldManager=t");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/apply-patch+yaml")];
        let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"made"},"data":{"a":"b"}}"#;
        let (code, status) = headed(&nobody, &headers, "PATCH", &path, body).await;
        assert_eq!(code, 403, "{status}");
        assert!(status["message"].as_str().unwrap().contains("cannot create resource \"configmaps\""), "{status}");
        made(&admin, &format!("{CORE}/configmaps"), json!({"metadata": {"name": "made"}})).await;
        assert_eq!(headed(&nobody, &headers, "PATCH", &path, body).await.0, 200);
    });
}

#[test]
fn h11_a_watch_ends_with_the_rights_it_began_with() {
    let dir = tempfile::tempdir().unwrap();
    let limits = CallerLimits { judge_again: std::time::Duration::from_millis(100), ..CallerLimits::default() };
    let config = Config { data_dir: dir.path().to_owned(), limits, ..Config::default() };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let server = ApiServer::open(config).unwrap();
        let (admin, nobody) = (server.service_as("admin"), server.service_for(Identity::new("nobody", &[])));
        prepare(&admin).await;
        let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["watch"]}]);
        let role = format!("{RBAC}/namespaces/default/roles/r");
        let patch = json!({ "rules": rules }).to_string();
        common::call_as(&admin, "PATCH", &role, "application/merge-patch+json", &patch).await;
        let bearer = format!("Bearer {}", token(&admin, "side", json!({})).await);
        let watch = async || {
            let uri = format!("{CORE}/secrets?watch=1");
            let request = Request::builder().uri(uri).header("authorization", &bearer).body(Body::empty()).unwrap();
            let answer = nobody.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), 200);
            let end = tokio::time::timeout(std::time::Duration::from_secs(10), answer.into_body().collect());
            let bytes = end.await.expect("the watch does not end").unwrap().to_bytes();
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        let take = async |path: String| {
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            assert_eq!(call(&admin, "DELETE", &path, "").await.0, 200);
        };
        let binding = format!("{RBAC}/namespaces/default/rolebindings/b");
        let (seen, kept) = (watch(), call(&admin, "GET", &binding, ""));
        let kept = kept.await.1;
        let (said, ()) = futures::join!(seen, take(binding.clone()));
        assert!(
            said.contains("ADDED") && said.contains(r#""type":"ERROR""#) && said.contains("cannot watch"),
            "{said}"
        );
        let mut again = kept;
        again["metadata"] = json!({"name": "b"});
        made(&admin, &format!("{RBAC}/namespaces/default/rolebindings"), again).await;
        let (said, ()) = futures::join!(watch(), take(format!("{CORE}/serviceaccounts/side")));
        assert!(said.contains(r#""type":"ERROR""#) && said.contains("Unauthorized"), "{said}");
        server.close();
    });
}
