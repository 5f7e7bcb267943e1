//! Whatever is sent is answered: with a status, within a time, without ending the process.
//!
//! Inputs are grown from examples by seeded dice, so a failing seed fails again: `LONGSHORE_FUZZ_SEED=7 make fuzz`.
//! `LONGSHORE_FUZZ_SECONDS` says how long each target runs.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use common::{MAPS, call, call_as, config_map, open};
use http::Request;
use http_body_util::BodyExt;
use io_apiserver::{ApiServer, Config, Identity};
use prove_lab::Dice;
use rules_store::{Kind, schema};
use serde_json::{Value, json};
use tower::ServiceExt;

/// The most one input may take, in a debug build on a busy machine. What is quadratic takes minutes (H4).
const PATIENCE: Duration = Duration::from_secs(20);
/// No answer to one small input is longer.
const LONGEST_ANSWER: usize = 8 << 20;
/// The most memory that the whole process may ever have had, with all targets at once.
const MOST_MEMORY_KIB: u64 = 1 << 20;

fn check_memory(told: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    assert!(peak.unwrap_or(0_u64) < MOST_MEMORY_KIB, "{told}: the process has had {peak:?} KiB");
}

/// What dice are rolled for here.
trait Spoil {
    /// Spoils bytes in a few places: flipped, repeated, cut, or with a piece of something else within.
    fn spoil(&mut self, bytes: Vec<u8>, pieces: &[&str]) -> Vec<u8>;
    /// A value of any shape, with names that mean something somewhere.
    fn value(&mut self, depth: usize) -> Value;
}

impl Spoil for Dice {
    fn spoil(&mut self, mut bytes: Vec<u8>, pieces: &[&str]) -> Vec<u8> {
        for _ in 0..=self.index(4) {
            let at = self.index(bytes.len() + 1);
            match self.index(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.index(8),
                1 => bytes.truncate(at),
                2 => {
                    let end = (at + self.index(40)).min(bytes.len());
                    let again = bytes[at..end].repeat(1 + self.index(200));
                    bytes.splice(at..at, again);
                }
                3 if at < bytes.len() => drop(bytes.remove(at)),
                _ => drop(bytes.splice(at..at, self.pick(pieces).bytes()).collect::<Vec<_>>()),
            }
        }
        bytes
    }

    fn value(&mut self, depth: usize) -> Value {
        const NAMES: [&str; 12] = [
            "metadata",
            "name",
            "spec",
            "status",
            "labels",
            "containers",
            "$patch",
            "$retainKeys",
            "volumes",
            "a~1b",
            "",
            "finalizers",
        ];
        const TEXTS: [&str; 8] = ["", "x", "replace", "delete", "10Gi", "2027-01-15T08:00:00Z", "ü/\u{0}", "-1"];
        match self.index(if depth == 0 { 5 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.index(2) == 0),
            2 => json!(self.bits()),
            3 => json!(self.bits() as i64 >> self.index(63)),
            4 => json!(*self.pick(&TEXTS)),
            5 => (0..self.index(4)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(
                (0..self.index(4)).map(|_| ((*self.pick(&NAMES)).to_owned(), self.value(depth - 1))).collect(),
            ),
        }
    }
}

struct Input {
    method: &'static str,
    path: String,
    media_type: &'static str,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
}

/// How long each target runs, and the seed of its dice.
fn settings() -> (Duration, u64) {
    let number = |name: &str, usual: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    (Duration::from_secs(number("LONGSHORE_FUZZ_SECONDS", 1)), number("LONGSHORE_FUZZ_SEED", 0x10_5517_04e5))
}

/// Sends inputs for a while; each is answered in time, and the server is well afterwards.
fn fuzz(target: &str, mut input: impl FnMut(&mut Dice) -> Input) {
    let (time, seed) = settings();
    let mut dice = Dice::new(seed);
    let dir = tempfile::tempdir().unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let server = open(dir.path());
        let (admin, nobody) = (server.service_as("admin"), server.service_for(Identity::new("nobody", &[])));
        for (path, body) in examples() {
            assert_eq!(call(&admin, "POST", path, &body.to_string()).await.0, 201);
        }
        let (end, mut count) = (Instant::now() + time, 0);
        while Instant::now() < end {
            let input = input(&mut dice);
            let told = format!("{target}, seed {seed}, input {count}: {} {}", input.method, input.path);
            let service = if dice.index(8) == 0 { &nobody } else { &admin };
            let began = Instant::now();
            if let Some(length) = send(service, input, &told).await {
                assert!(length < LONGEST_ANSWER, "{told}: an answer of {length} bytes");
            }
            assert!(began.elapsed() < PATIENCE, "{told}: {:?}", began.elapsed());
            if count % 64 == 0 {
                check_memory(&told);
            }
            count += 1;
        }
        assert_eq!(call(&admin, "GET", "/api/v1/namespaces/default", "").await.0, 200, "{target}: not well afterwards");
        server.close();
        // What was let in can be read back.
        open(dir.path()).close();
        println!("{target}: {count} inputs");
    });
}

/// The length of the answer; `None` for what is no request at all.
async fn send(service: &Router, input: Input, told: &str) -> Option<usize> {
    let mut request = Request::builder().method(input.method).uri(&input.path).header("content-type", input.media_type);
    for (name, value) in input.headers {
        request = request.header(name, value);
    }
    let answer = service.clone().oneshot(request.body(Body::from(input.body)).ok()?).await.unwrap();
    let code = answer.status().as_u16();
    assert!(code != 500 && code != 503, "{told}: {code}");
    // Watches and logs go on: their beginning is enough.
    let body = tokio::time::timeout(Duration::from_millis(20), answer.into_body().collect()).await;
    body.ok().map(|body| body.unwrap().to_bytes().len())
}

const CORE: &str = "/api/v1/namespaces/default";

fn examples() -> [(&'static str, Value); 3] {
    let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}});
    let container = json!({"name": "main", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let pod = json!({"containers": [container], "volumes": [volume]});
    [
        ("/api/v1/namespaces/default/configmaps", json!({"metadata": {"name": "m"}, "data": {"k": "v"}})),
        ("/api/v1/namespaces/default/pods", json!({"metadata": {"name": "p"}, "spec": pod})),
        ("/api/v1/namespaces/default/persistentvolumeclaims", json!({"metadata": {"name": "c"}, "spec": claim})),
    ]
}

const PIECES: [&str; 14] =
    ["{", "[", "]", "}", "\"", ":", ",", "null", "1e999", "18446744073709551615", "\\u0000", "&a [*a]", "- ", "k8s\0"];

#[test]
fn bodies() {
    fuzz("bodies", |dice| {
        let (path, mut body) = dice.pick(&examples()).clone();
        body["metadata"] = json!({"generateName": "x-"});
        if dice.index(2) == 0 {
            let key = *dice.pick(&["spec", "metadata", "data", "status"]);
            body[key] = dice.value(5);
        }
        let media_type = *dice.pick(&["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"]);
        let mut bytes = body.to_string().into_bytes();
        if media_type.contains("protobuf") {
            let kind = dice.pick(&["ConfigMap", "Pod", "PersistentVolumeClaim"]);
            let mut frame = b"k8s\0\n".to_vec();
            frame.push(u8::try_from(kind.len() + 6).unwrap());
            frame.extend(b"\n\x02v1\x12");
            frame.push(u8::try_from(kind.len()).unwrap());
            frame.extend(kind.bytes());
            frame.extend(b"\x12\x20\n\x06\n\x01x\x12\x02x-\x12\x10");
            frame.extend((0..dice.index(64)).map(|_| u8::try_from(dice.index(256)).unwrap()));
            bytes = frame;
        }
        let body = dice.spoil(bytes, &PIECES);
        let dry = if dice.index(2) == 0 { "?dryRun=All" } else { "?fieldValidation=Strict" };
        Input { method: "POST", path: format!("{path}{dry}"), media_type, headers: vec![], body }
    });
}

#[test]
fn patches() {
    fuzz("patches", |dice| {
        const PATHS: [&str; 9] = [
            "",
            "/metadata",
            "/metadata/labels",
            "/spec",
            "/spec/volumes/0",
            "/spec/volumes/-",
            "/data/k",
            "/data",
            "/x",
        ];
        let media_type = *dice.pick(&[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/apply-patch+yaml",
        ]);
        let patch = if media_type.contains("json-patch") {
            let operations = ["add", "remove", "replace", "move", "copy", "copy", "test"];
            let mut longer = String::new();
            let mut steps = Vec::new();
            for _ in 0..=dice.index(60) {
                longer.push_str(dice.pick::<&str>(&PATHS));
                let path = if dice.index(3) == 0 { longer.as_str() } else { dice.pick(&PATHS) };
                let (op, from) = (dice.pick(&operations), dice.pick(&PATHS));
                steps.push(json!({"op": op, "path": path, "from": from, "value": dice.value(3)}));
            }
            Value::Array(steps)
        } else {
            dice.value(6)
        };
        let mut body = patch.to_string().into_bytes();
        if dice.index(4) == 0 {
            body = dice.spoil(body, &PIECES);
        }
        let object = dice.pick(&["configmaps/m", "pods/p", "pods/p/status", "persistentvolumeclaims/c"]);
        Input { method: "PATCH", path: format!("{CORE}/{object}?fieldManager=f"), media_type, headers: vec![], body }
    });
}

#[test]
fn paths_and_selectors() {
    fuzz("paths and selectors", |dice| {
        const PARTS: [&str; 16] = [
            "api",
            "apis",
            "v1",
            "namespaces",
            "default",
            "pods",
            "p",
            "log",
            "apps",
            "watch",
            "%2e%2e",
            "%00",
            "%",
            "..",
            "storage.k8s.io",
            "exec",
        ];
        const QUERIES: [&str; 14] = [
            "labelSelector=",
            "fieldSelector=",
            "limit=",
            "continue=",
            "resourceVersion=",
            "watch=1",
            "a%20in%20(b,c)",
            "metadata.name%3D",
            "%21x",
            "(((",
            "==",
            ",",
            "timeoutSeconds=1",
            "18446744073709551616",
        ];
        let mut path = if dice.index(2) == 0 { format!("{CORE}/configmaps") } else { String::new() };
        for _ in 0..dice.index(7) {
            path = format!("{path}/{}", dice.pick(&PARTS));
        }
        path.push('?');
        for _ in 0..dice.index(6) {
            path.push_str(dice.pick::<&str>(&QUERIES));
            if dice.index(2) == 0 {
                path.push('&');
            }
        }
        let method = *dice.pick(&["GET", "GET", "GET", "POST", "PUT", "OPTIONS", "BREW"]);
        Input { method, path, media_type: "application/json", headers: vec![], body: vec![] }
    });
}

#[test]
fn tokens_and_impersonation() {
    fuzz("tokens and impersonation", |dice| {
        let header = "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJ4IiwiYXVkIjpbIngiXX0.c2lnbmF0dXJl";
        let pieces = [".", "=", " ", "eyJhbGciOiJub25lIn0", "Bearer", "\u{7f}", "system:masters"];
        let names =
            ["authorization", "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-x"];
        let headers = (0..=dice.index(3)).map(|_| {
            let name = *dice.pick(&names);
            (name, dice.spoil(header.as_bytes().to_vec(), &pieces))
        });
        let headers = headers.collect();
        Input { method: "GET", path: format!("{CORE}/secrets"), media_type: "application/json", headers, body: vec![] }
    });
}

/// Objects of many shapes as protobuf, spoilt in the places that protobuf can be spoilt in: lengths, tags, numbers.
#[test]
fn protobuf_bodies() {
    let kinds = ["pods", "persistentvolumeclaims", "configmaps", "secrets", "persistentvolumes", "nodes", "namespaces"];
    let kinds: Vec<Kind> = kinds.iter().map(|plural| Kind::at_path("", "v1", plural).unwrap()).collect();
    fuzz("protobuf bodies", |dice| {
        let kind = *dice.pick(&kinds);
        let lean = examples().into_iter().find(|(path, _)| path.ends_with(kind.plural())).map(|(_, body)| body);
        let mut object = match lean {
            Some(lean) if dice.index(2) == 0 => lean,
            Some(_) | None => wire::example(schema(kind)),
        };
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.name());
        object["metadata"] = json!({"generateName": "x-", "labels": {"a": "b"}, "finalizers": ["a/b"]});
        let mut bytes = wire::encode_as(schema(kind), kind.api_version(), kind.name(), &object).unwrap();
        for _ in 0..dice.index(4) {
            let at = dice.index(bytes.len());
            let piece: &[u8] = dice.pick::<&[u8]>(&[
                b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                b"\xff\xff\xff\xff\x0f",
                b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
                b"\x0b\x0c",
                b"\x00",
                b"\x12\x12\x12\x12\x12\x12\x12\x12",
                b"\x0a\x7f",
            ]);
            if dice.index(2) == 0 {
                bytes.splice(at..at, piece.iter().copied());
            } else {
                let end = (at + piece.len()).min(bytes.len());
                bytes.splice(at..end, piece.iter().copied());
            }
        }
        let body = if dice.index(2) == 0 { dice.spoil(bytes, &PIECES) } else { bytes };
        let place = if kind.namespaced() { CORE } else { "/api/v1" };
        let dry = if dice.index(2) == 0 { "?dryRun=All" } else { "" };
        let path = format!("{place}/{}{dry}", kind.plural());
        Input { method: "POST", path, media_type: wire::TYPE, headers: vec![], body }
    });
}

/// A store's files with damage anywhere: it opens and serves, or says in one sentence why not.
#[test]
fn record_files() {
    let (time, seed) = settings();
    let mut dice = Dice::new(seed);
    let (good, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let server = open(good.path());
        let admin = server.service_as("admin");
        for (path, body) in examples() {
            assert_eq!(call(&admin, "POST", path, &body.to_string()).await.0, 201);
        }
        for number in 0..30 {
            let map = config_map(&format!("m{number}"), &"text ".repeat(number * 40));
            assert_eq!(call(&admin, "POST", MAPS, &map).await.0, 201);
        }
        // Taken while it runs, so that the log is there too.
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for name in ["store.sqlite", "store.sqlite-wal", "format"] {
            if let Ok(bytes) = std::fs::read(good.path().join(name)) {
                files.push((name.to_owned(), bytes));
            }
        }
        server.close();
        // Certificates are kept: making them takes most of a start.
        let kept = open(dir.path());
        kept.close();
        let (end, mut count, mut served) = (Instant::now() + time, 0, 0);
        while Instant::now() < end || count < 20 {
            let hit = dice.index(files.len() + 1).min(1);
            for (at, (name, bytes)) in files.iter().enumerate() {
                let mut bytes = bytes.clone();
                if at == hit || dice.index(8) == 0 {
                    bytes = if dice.index(2) == 0 { dice.spoil(bytes, &PIECES) } else { nudge(&mut dice, bytes) };
                }
                std::fs::write(dir.path().join(name), bytes).unwrap();
            }
            let told = format!("record files, seed {seed}, input {count}");
            let began = Instant::now();
            match ApiServer::open(Config { data_dir: dir.path().to_owned(), ..Config::default() }) {
                Ok(server) => {
                    served += 1;
                    work_on(&server.service_as("admin"), &told).await;
                    server.close();
                }
                Err(error) => {
                    let sentence = error.to_string();
                    assert!(!sentence.is_empty() && !sentence.contains('\n'), "{told}: {sentence}");
                }
            }
            assert!(began.elapsed() < 4 * PATIENCE, "{told}: {:?}", began.elapsed());
            check_memory(&told);
            count += 1;
        }
        println!("record files: {count} inputs, {served} of them served");
    });
}

/// Damage that leaves a text as long as it was: a digit, a letter, a bracket is another.
fn nudge(dice: &mut Dice, mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..=dice.index(6) {
        let at = dice.index(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte = *dice.pick(b"\x00\xff{}[]\":,019-xn");
        }
    }
    bytes
}

/// Every kind of request to whatever a damaged store holds; the answers may be anything but a failure of the server.
async fn work_on(admin: &Router, told: &str) {
    for plural in ["configmaps", "pods", "persistentvolumeclaims"] {
        let (code, list) = call(admin, "GET", &format!("{CORE}/{plural}"), "").await;
        assert_eq!(code, 200, "{told}");
        for item in list["items"].as_array().unwrap().iter().take(6) {
            let Some(name) = item["metadata"]["name"].as_str() else { continue };
            let path = format!("{CORE}/{plural}/{name}");
            if path.parse::<http::Uri>().is_err() {
                continue;
            }
            let patch = r#"{"metadata":{"labels":{"a":"b"}}}"#;
            for (method, path) in
                [("GET", path.clone()), ("PATCH", path.clone()), ("PATCH", format!("{path}/status")), ("DELETE", path)]
            {
                let body = if method == "PATCH" { patch } else { "" };
                let (code, said) = call_as(admin, method, &path, "application/merge-patch+json", body).await;
                assert!(code != 500 && code != 503, "{told}: {method} {path}: {said}");
            }
        }
    }
    assert_eq!(call(admin, "GET", "/api/v1/namespaces", "").await.0, 200, "{told}");
}
