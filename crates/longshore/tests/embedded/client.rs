//! A plain client of the API: objects are JSON, and waiting is watching.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::runtime::Runtime;

const PATIENCE: Duration = Duration::from_secs(60);
const JSON: &str = "application/json";

/// An answer that is no success: its code and its sentence.
pub type Refused = (u16, String);

pub struct Client {
    runtime: Runtime,
    client: kube::Client,
}

impl Client {
    pub fn new(kubeconfig: &Path) -> Client {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
            let options = KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
            kube::Client::try_from(config).unwrap()
        });
        Client { runtime, client }
    }

    /// One request and its whole answer.
    pub fn ask(&self, method: &str, path: &str, media: &str, body: &str) -> Result<String, Refused> {
        self.runtime.block_on(async {
            let request = Request::builder().method(method).uri(path).header("content-type", media);
            let answer = self.client.send(request.body(Body::from(body.as_bytes().to_vec())).unwrap()).await.unwrap();
            let code = answer.status();
            let bytes = answer.into_body().collect().await.unwrap().to_bytes();
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            if code.is_success() { Ok(text) } else { Err((code.as_u16(), text)) }
        })
    }

    pub fn get(&self, path: &str) -> Option<Value> {
        match self.ask("GET", path, JSON, "") {
            Ok(text) => Some(serde_json::from_str(&text).unwrap()),
            Err((404, _)) => None,
            Err(refused) => panic!("GET {path}: {refused:?}"),
        }
    }

    pub fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).unwrap_or_else(|| panic!("{path} is not served"));
        list["items"].as_array().unwrap().clone()
    }

    /// Every object of a text with several documents, made or brought up to date.
    pub fn apply(&self, documents: &str) {
        for document in documents.split("\n---\n").filter(|document| !document.trim().is_empty()) {
            let object: Value = serde_saphyr::from_str(document).unwrap();
            let path = format!("{}?fieldManager=test&force=true", path_of(&object));
            self.ask("PATCH", &path, "application/apply-patch+yaml", document).unwrap();
        }
    }

    /// Changes an object by a merge patch.
    pub fn patch(&self, path: &str, patch: Value) {
        self.ask("PATCH", path, "application/merge-patch+json", &patch.to_string()).unwrap();
    }

    /// Asks for the deletion of an object or a collection; what is gone already is as good.
    pub fn delete(&self, path: &str) {
        match self.ask("DELETE", path, JSON, "") {
            Ok(_) | Err((404, _)) => {}
            Err(refused) => panic!("DELETE {path}: {refused:?}"),
        }
    }

    /// Watches a collection until its objects are as wanted, and returns them. Each change is looked at as it comes, so
    /// that nothing that lasts only a moment is missed.
    pub fn watch(&self, collection: &str, wanted: impl Fn(&[&Value]) -> bool) -> Result<Vec<Value>, String> {
        let mut known = BTreeMap::new();
        let watched = async {
            loop {
                self.follow(collection, &mut known, &wanted).await?;
                if wanted(&known.values().collect::<Vec<_>>()) {
                    return Ok(());
                }
            }
        };
        let ended = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, watched).await });
        match ended {
            Ok(Ok(())) => Ok(known.into_values().collect()),
            Ok(Err(refused)) => Err(refused),
            Err(_late) => Err(format!("{:#}", Value::from_iter(known.into_values()))),
        }
    }

    /// One list and the changes after it, until the objects are as wanted or the server ends the watch.
    async fn follow(
        &self,
        collection: &str,
        known: &mut BTreeMap<String, Value>,
        wanted: impl Fn(&[&Value]) -> bool,
    ) -> Result<(), String> {
        let uri = format!(
            "{collection}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        );
        let request = Request::get(uri).body(Body::empty()).unwrap();
        let answer = self.client.send(request).await.map_err(|error| error.to_string())?;
        if answer.status() != StatusCode::OK {
            return Err(format!("{collection} cannot be watched: {}", answer.status()));
        }
        known.clear();
        let (mut body, mut text, mut complete) = (answer.into_body(), Vec::new(), false);
        while let Some(Ok(frame)) = body.frame().await {
            text.extend_from_slice(frame.data_ref().map(|data| data.as_ref()).unwrap_or_default());
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let event: Value = serde_json::from_slice(&text.drain(..=end).collect::<Vec<u8>>()).unwrap();
                complete |= event["type"] == "BOOKMARK";
                take(known, &event);
                if complete && wanted(&known.values().collect::<Vec<_>>()) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

fn take(known: &mut BTreeMap<String, Value>, event: &Value) {
    let object = &event["object"];
    let key = format!("{}/{}", object["metadata"]["namespace"], object["metadata"]["name"]);
    match event["type"].as_str().unwrap() {
        "ADDED" | "MODIFIED" => drop(known.insert(key, object.clone())),
        "DELETED" => drop(known.remove(&key)),
        "BOOKMARK" => {}
        other => panic!("the watch says {other}: {object}"),
    }
}

/// Where an object is.
fn path_of(object: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap().to_string();
    let kind = word(&object["kind"]).to_lowercase();
    let plural = if kind.ends_with("class") { format!("{kind}es") } else { format!("{kind}s") };
    let version = word(&object["apiVersion"]);
    let root = if version.contains('/') { "apis" } else { "api" };
    let namespace = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("namespaces/{namespace}/"),
        None => String::new(),
    };
    format!("/{root}/{version}/{namespace}{plural}/{}", word(&object["metadata"]["name"]))
}
