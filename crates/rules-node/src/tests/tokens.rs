//! Tokens of service accounts for drivers, and for pods themselves.

use alloc::format;
use alloc::string::String;

use api::Value;
use csi::Call;
use csi::v1::NodePublishVolumeRequest;
use serde_json::json;

use super::world::World;

const KEY: &str = "csi.storage.k8s.io/serviceAccount.tokens";

fn published(world: &mut World) -> NodePublishVolumeRequest {
    let found = world.calls().into_iter().find_map(|call| match call {
        Call::NodePublishVolume(request) => Some(request),
        _other => None,
    });
    found.unwrap_or_else(|| panic!("{}", world.why(&World::volume_key())))
}

// KL-79: one token for each audience, of the pod's own account, in the context or in the secrets, and never kept.
#[test]
fn kl_79_a_driver_gets_the_tokens_it_asks_for() {
    for in_secrets in [false, true] {
        let mut world = World::new();
        let requests = json!([{ "audience": "vault", "expirationSeconds": 700 }, { "audience": "" }]);
        world.driver(json!({ "attachRequired": true, "tokenRequests": requests,
                             "serviceAccountTokenInSecrets": in_secrets, "requiresRepublish": true }));
        world.pod_with("a", json!({ "serviceAccountName": "robot" }));
        let request = published(&mut world);
        let (there, elsewhere) = match in_secrets {
            true => (&request.secrets, &request.volume_context),
            false => (&request.volume_context, &request.secrets),
        };
        assert!(!elsewhere.contains_key(KEY));
        let told: Value = serde_json::from_str(&there[KEY]).unwrap();
        let until = api::Time::from_unix_millis(world.now.0 + 700_000).0;
        assert_eq!(told["vault"]["token"], format!("token of robot for vault until {until}"));
        assert!(told[""]["token"].as_str().unwrap().starts_with("token of robot for  until "));
        assert_eq!(told["vault"]["expirationTimestamp"], until);
        for (key, memory, ..) in world.engine.remembered() {
            assert_eq!(memory.tokens, Default::default(), "{key}");
        }
        // KL-102: each time with fresh ones.
        world.pass(61_000);
        assert!(published(&mut world).volume_id == super::world::HANDLE);
        assert_eq!(world.log.iter().filter(|name| **name == "RequestToken").count(), 4);
    }
}

// Nothing of a token is printed.
#[test]
fn kl_79_no_token_is_printed() {
    let mut held = crate::HeldTokens::default();
    let secret = api::Secret::of_texts(&[("token", "canary"), ("expirationTimestamp", "soon")]);
    let got = control::Outcome::Done(control::Reply::Object(api::Object::Secret(alloc::sync::Arc::new(secret))));
    held.add("vault", &got);
    assert!(held.told().0[KEY].contains("canary"));
    assert!(!format!("{held:?} {:?} {got:?}", held.told()).contains("canary"));
}

// An account that is not there is waited for, with growing pauses, and nothing is mounted meanwhile.
#[test]
fn kl_79_nothing_is_published_without_a_token() {
    let mut world = World::new();
    world.driver(json!({ "attachRequired": true, "tokenRequests": [{ "audience": "vault" }] }));
    world.forbidden.insert(api::Kind::ServiceAccount);
    world.pod("a");
    assert!(world.calls().iter().all(|call| matches!(call, Call::NodeStageVolume(_))));
    assert_eq!(world.status("a")["phase"], "Pending");
    world.forbidden.clear();
    world.pass(200_000);
    published(&mut world);
}

/// A pod whose volume `v` shows tokens.
fn with_tokens(world: &mut World, sources: Value, more: Value) {
    let mut spec = json!({ "serviceAccountName": "robot",
        "volumes": [{ "name": "v", "projected": { "sources": sources } }] });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    world.pod_with("a", spec);
}

fn shown(world: &World, end: &str) -> Option<String> {
    let found = world.machine.files.iter().find(|(path, _)| path.ends_with(end));
    found.map(|(_, bytes)| String::from_utf8(bytes.clone()).unwrap())
}

fn asked(world: &World) -> usize {
    world.log.iter().filter(|name| **name == "AskToken").count()
}

// A projected token is one of the pod's own account for the audience that is named; it is in memory, told to nobody,
// and forgotten with the pod.
#[test]
fn a_volume_shows_the_tokens_it_names() {
    let mut world = World::new();
    let sources = json!([
        { "serviceAccountToken": { "audience": "vault", "expirationSeconds": 7200, "path": "in/vault" } },
        { "serviceAccountToken": { "path": "token" } },
    ]);
    with_tokens(&mut world, sources, json!({}));
    let start = world.now.0;
    world.settle();
    assert_eq!(world.status("a")["phase"], "Running", "{}", world.why(&World::pod_key("a")));
    let until = |seconds: u64| api::Time::from_unix_millis(start + seconds * 1000).0;
    assert_eq!(shown(&world, "/v/in/vault"), Some(format!("token of robot for vault until {}", until(7200))));
    assert_eq!(shown(&world, "/v/token"), Some(format!("token of robot for  until {}", until(3600))));
    assert!(world.machine.memory.iter().all(|path| path.ends_with("/volumes/kubernetes.io~projected/v")));
    assert_eq!(world.machine.memory.len(), 1);
    let printed = format!("{:?} {:?}", world.engine.memory(&World::pod_key("a")), world.log);
    assert!(!printed.contains("token of robot"), "{printed}");
    world.delete_pod("a");
    world.settle();
    assert!(world.machine.memory.is_empty() && shown(&world, "token").is_none());
    let kept = format!("{:?}", world.engine.memory(&World::pod_key("a")));
    assert!(!kept.contains("vault"), "{kept}");
}

// Four fifths of its life, or a day: then there is another one, and the volume shows it. Clocks that differ make nobody
// ask without end.
#[test]
fn a_token_is_replaced_before_it_is_worth_nothing() {
    for (seconds, due) in [(600_i64, 480_000), (3600, 2_880_000), (200_000, 86_400_000)] {
        let mut world = World::new();
        let token = json!({ "audience": "vault", "expirationSeconds": seconds, "path": "token" });
        with_tokens(&mut world, json!([{ "serviceAccountToken": token }]), json!({}));
        world.settle();
        let first = shown(&world, "/v/token").unwrap();
        world.after_millis(due - 1_000);
        assert_eq!((asked(&world), shown(&world, "/v/token")), (1, Some(first.clone())), "{seconds}");
        world.after_millis(2_000);
        assert_eq!(asked(&world), 2, "{seconds}");
        assert_ne!(shown(&world, "/v/token"), Some(first));
    }
    let got = |until: &str| {
        let secret = api::Secret::of_texts(&[("token", "t"), ("expirationTimestamp", until)]);
        control::Outcome::Done(control::Reply::Object(api::Object::Secret(alloc::sync::Arc::new(secret))))
    };
    let read = crate::TokenRead::after(control::Timestamp(5_000_000), &got("1970-01-01T00:00:01Z")).unwrap();
    assert_eq!(read.due, control::Timestamp(5_030_000));
    assert_eq!(crate::TokenRead::after(control::Timestamp(5_000_000), &got("soon")), None);
}

// The pod does not start without its token, and one that runs goes on with the last one it got.
#[test]
fn a_pod_waits_for_its_first_token_and_keeps_its_last() {
    let mut world = World::new();
    world.forbidden.insert(api::Kind::ServiceAccount);
    with_tokens(&mut world, json!([{ "serviceAccountToken": { "path": "token" } }]), json!({}));
    for _ in 0..20 {
        let _ = world.step(&World::pod_key("a"));
    }
    assert!(world.machine.processes.is_empty() && shown(&world, "/v/token").is_none());
    let action = crate::Action::AskToken {
        token: crate::PodToken { audience: String::new(), seconds: 3600 },
        wish: crate::PodToken { audience: String::new(), seconds: 3600 }.wish(&api::Pod::default()),
    };
    use control::Action as _;
    assert_eq!(action.news().failed, Some("FailedMount"));
    let none = control::Outcome::Refused(control::Refusal::NotFound);
    let told = "no token of service account /default could be had: it does not exist; create it";
    assert_eq!(action.attempt(&none).failure(), Some(told));
    world.forbidden.clear();
    world.after_millis(200_000);
    let first = shown(&world, "/v/token");
    assert!(first.is_some() && world.status("a")["phase"] == "Running");
    world.forbidden.insert(api::Kind::ServiceAccount);
    world.now = world.now.after_millis(3_600_000);
    for _ in 0..20 {
        let _ = world.step(&World::pod_key("a"));
    }
    assert_eq!((shown(&world, "/v/token"), &world.status("a")["phase"]), (first.clone(), &json!("Running")));
    world.forbidden.clear();
    world.after_millis(200_000);
    assert!(shown(&world, "/v/token").is_some_and(|token| Some(token) != first));
}

// As kubelet has it: the volume's mode, unless the pod says whose the file is to be.
#[test]
fn a_token_is_for_the_users_of_its_pod() {
    let container = |name: &str, user: Value| {
        json!({ "name": name, "image": "i", "command": ["/bin/true"], "securityContext": { "runAsUser": user },
                "volumeMounts": [{ "name": "v", "mountPath": "/data" }] })
    };
    let two = |first: Value, second: Value| json!([container("c", first), container("d", second)]);
    for (more, mode, user) in [
        (json!({}), 0o644, None),
        (json!({ "securityContext": { "fsGroup": 7 } }), 0o600, None),
        (json!({ "securityContext": { "runAsUser": 1000 } }), 0o600, Some(1000)),
        (json!({ "containers": two(json!(5), json!(5)) }), 0o600, Some(5)),
        (json!({ "containers": two(json!(5), json!(6)) }), 0o644, None),
        (json!({ "containers": two(json!(5), json!(null)) }), 0o644, None),
        (json!({ "containers": two(json!(5), json!(null)), "securityContext": { "runAsUser": 5 } }), 0o600, Some(5)),
    ] {
        let mut world = World::new();
        with_tokens(&mut world, json!([{ "serviceAccountToken": { "path": "token" } }]), more.clone());
        let files = loop {
            match world.decide(&World::pod_key("a")) {
                control::Decision::Do(crate::Action::ShowFiles { files, .. }, _) => break files,
                _other => assert!(world.step(&World::pod_key("a")).is_some(), "{}", world.why(&World::pod_key("a"))),
            }
        };
        assert_eq!((files["token"].mode, files["token"].user), (mode, user), "{more}");
    }
}
