//! Whatever is sent is answered: with a status, within a time, without ending the process.
//!
//! Inputs are grown from examples by seeded dice, so a failing seed fails again: `LONGSHORE_FUZZ_SEED=7 make fuzz`.
//! `LONGSHORE_FUZZ_SECONDS` says how long each target runs.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use common::{call, open};
use http::Request;
use http_body_util::BodyExt;
use io_apiserver::Identity;
use serde_json::{Value, json};
use tower::ServiceExt;

/// The most one input may take, in a debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);
/// No answer to one small input is longer.
const LONGEST_ANSWER: usize = 8 << 20;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides.max(1) as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }

    /// Spoils bytes in a few places: flipped, repeated, cut, or with a piece of something else within.
    fn spoil(&mut self, mut bytes: Vec<u8>, pieces: &[&str]) -> Vec<u8> {
        for _ in 0..=self.roll(4) {
            let at = self.roll(bytes.len() + 1);
            match self.roll(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.roll(8),
                1 => bytes.truncate(at),
                2 => {
                    let end = (at + self.roll(40)).min(bytes.len());
                    let again = bytes[at..end].repeat(1 + self.roll(200));
                    bytes.splice(at..at, again);
                }
                3 if at < bytes.len() => drop(bytes.remove(at)),
                _ => drop(bytes.splice(at..at, self.pick(pieces).bytes()).collect::<Vec<_>>()),
            }
        }
        bytes
    }

    /// A value of any shape, with names that mean something somewhere.
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
        match self.roll(if depth == 0 { 5 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.roll(2) == 0),
            2 => json!(self.0),
            3 => json!(self.0 as i64 >> self.roll(63)),
            4 => json!(*self.pick(&TEXTS)),
            5 => (0..self.roll(4)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(
                (0..self.roll(4)).map(|_| ((*self.pick(&NAMES)).to_owned(), self.value(depth - 1))).collect(),
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

/// Sends inputs for a while; each is answered in time, and the server is well afterwards.
fn fuzz(target: &str, mut input: impl FnMut(&mut Dice) -> Input) {
    let number = |name: &str, usual: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    let seconds = number("LONGSHORE_FUZZ_SECONDS", 1);
    let seed = number("LONGSHORE_FUZZ_SEED", 0x10_5517_04e5);
    let mut dice = Dice(seed | 1);
    let dir = tempfile::tempdir().unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let server = open(dir.path());
        let (admin, nobody) = (server.service_as("admin"), server.service_for(Identity::new("nobody", &[])));
        for (path, body) in examples() {
            assert_eq!(call(&admin, "POST", path, &body.to_string()).await.0, 201);
        }
        let (end, mut count) = (Instant::now() + Duration::from_secs(seconds), 0);
        while Instant::now() < end {
            let input = input(&mut dice);
            let told = format!("{target}, seed {seed}, input {count}: {} {}", input.method, input.path);
            let service = if dice.roll(8) == 0 { &nobody } else { &admin };
            let began = Instant::now();
            if let Some(length) = send(service, input, &told).await {
                assert!(length < LONGEST_ANSWER, "{told}: an answer of {length} bytes");
            }
            assert!(began.elapsed() < PATIENCE, "{told}: {:?}", began.elapsed());
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
        if dice.roll(2) == 0 {
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
            frame.extend((0..dice.roll(64)).map(|_| u8::try_from(dice.roll(256)).unwrap()));
            bytes = frame;
        }
        let body = dice.spoil(bytes, &PIECES);
        let dry = if dice.roll(2) == 0 { "?dryRun=All" } else { "?fieldValidation=Strict" };
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
            for _ in 0..=dice.roll(60) {
                longer.push_str(dice.pick::<&str>(&PATHS));
                let path = if dice.roll(3) == 0 { longer.as_str() } else { dice.pick(&PATHS) };
                let (op, from) = (dice.pick(&operations), dice.pick(&PATHS));
                steps.push(json!({"op": op, "path": path, "from": from, "value": dice.value(3)}));
            }
            Value::Array(steps)
        } else {
            dice.value(6)
        };
        let mut body = patch.to_string().into_bytes();
        if dice.roll(4) == 0 {
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
        let mut path = if dice.roll(2) == 0 { format!("{CORE}/configmaps") } else { String::new() };
        for _ in 0..dice.roll(7) {
            path = format!("{path}/{}", dice.pick(&PARTS));
        }
        path.push('?');
        for _ in 0..dice.roll(6) {
            path.push_str(dice.pick::<&str>(&QUERIES));
            if dice.roll(2) == 0 {
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
        let headers = (0..=dice.roll(3)).map(|_| {
            let name = *dice.pick(&names);
            (name, dice.spoil(header.as_bytes().to_vec(), &pieces))
        });
        let headers = headers.collect();
        Input { method: "GET", path: format!("{CORE}/secrets"), media_type: "application/json", headers, body: vec![] }
    });
}
