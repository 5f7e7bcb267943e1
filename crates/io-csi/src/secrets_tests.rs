use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::limits::Limits;
use crate::limits::tests::{chunk, messages};
use crate::{Answers, CsiClient, Driver, Observation, Observe, outcome, wire};
use csi::{Code, Method, Response, Status, v1};

#[test]
fn secrets_and_tokens_are_covered_and_the_rest_is_kept() {
    let token = "eyJhbGciOiJSUzI1NiIsImtpZCI6Ik";
    let call = Call::NodePublishVolume(v1::NodePublishVolumeRequest {
        secrets: [("user", "admin"), ("password", "admin-hunter2"), ("short", "a")]
            .map(|(k, v)| (k.into(), v.into()))
            .into(),
        volume_context: [(TOKENS.into(), format!(r#"{{"vault":{{"token":"{token}"}}}}"#))].into(),
        ..Default::default()
    });
    let text = format!("login of admin with admin-hunter2 and {token} failed");
    assert_eq!(Secrets::of(&call).cover(text), "login of [secret] with [secret] and [secret] failed");
}

const CANARY: &str = "canary-8c1f7e2a";

/// A call of every method that carries secrets, as the wire format says, with a canary in them.
fn calls() -> Vec<Call> {
    let proto = include_str!("../../csi/proto/csi.proto");
    let all = messages();
    let mut calls = Vec::new();
    for method in Method::ALL {
        let Some(fields) = all.get(&format!("{}Request", method.name())) else { continue };
        let Some(secrets) = fields.iter().find(|field| field.name == "secrets") else { continue };
        let entry = [chunk(1, b"password"), chunk(2, CANARY.as_bytes())].concat();
        calls.push(wire::decode_call(*method, &chunk(secrets.number, &entry)).unwrap());
    }
    // Two messages belong to a service we do not speak.
    assert_eq!(calls.len() + 2, proto.matches("csi_secret) = true").count());
    calls
}

#[test]
fn every_secret_field_of_the_wire_format_is_known() {
    let with_secrets: Vec<Method> = calls().iter().map(Call::method).collect();
    for method in Method::ALL {
        let call = wire::decode_call(*method, &[]).unwrap();
        assert_eq!(call.secrets().is_some(), with_secrets.contains(method), "{}", method.name());
    }
}

/// Says all it was told.
struct Loud;

impl Answers for Loud {
    async fn answer(&self, call: Call) -> Result<Response, Status> {
        let secrets: Vec<String> = call.secrets().into_iter().flat_map(|map| map.values().cloned()).collect();
        assert!(!secrets.is_empty() || call.secrets().is_none(), "the canary did not arrive");
        Err(Status::from_driver(Code::Internal, format!("login with {} failed", secrets.join(","))))
    }
}

#[derive(Default)]
struct Log(Mutex<String>);

impl Observe for Log {
    fn observed(&self, call: &Observation<'_>) {
        self.0.lock().unwrap().push_str(&format!("{call:?}\n"));
    }
}

// Reliability 121: whatever can be printed of a call of any method, whoever refuses it and wherever it fails.
#[tokio::test]
async fn no_secret_of_any_method_comes_out_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csi.sock");
    let socket = path.to_str().unwrap();
    let gone = format!("{socket}.gone");
    let _server = crate::serve(&path, Method::ALL, Loud, std::future::pending()).await.unwrap();
    let log = Arc::new(Log::default());
    let client = Arc::new(CsiClient::new().observed_by(log.clone()));
    let narrow = Limits { map: 1, ..Limits::SPEC };
    let tight = Driver::new(client.clone(), socket).with_limits(narrow);
    let careful = Driver::new(client.clone(), socket);
    let soon = Duration::from_secs(20);
    let mut loud = 0;
    for call in calls() {
        let method = call.method();
        assert!(!format!("{call:?}").contains(CANARY), "{}", method.name());
        let answers = [
            client.call(socket, call.clone(), soon).await,
            client.call(&gone, call.clone(), Duration::from_millis(20)).await,
            tight.call(call.clone(), soon).await,
            careful.call(call, soon).await,
        ];
        for answer in answers {
            let status = answer.as_ref().err().unwrap().clone();
            loud += usize::from(status.message.contains("login with [secret] failed"));
            let shown = format!("{status} {status:?} {answer:?} {:?}", outcome(method, answer.clone()));
            assert!(!shown.contains(CANARY), "{shown}");
        }
    }
    assert!(loud >= calls().len(), "the driver was not heard");
    assert!(!log.0.lock().unwrap().contains(CANARY));
    assert!(log.0.lock().unwrap().lines().count() > calls().len());
}
