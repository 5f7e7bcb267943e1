//! Credential plugins: programs that a kubeconfig names, which hand out a token or a certificate for a while.

use std::process::Stdio;
use std::time::Duration;

use api::Time;
use kube::config::{ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;

/// A plugin that takes longer than this hangs, most likely because it asks a person something.
const PATIENCE: Duration = Duration::from_secs(60);
/// As much of what a plugin complains about as goes into a sentence.
const LONGEST_COMPLAINT: usize = 200;

/// What a plugin hands out.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Handed {
    pub token: Option<String>,
    /// Certificate and key, as PEM.
    pub identity: Option<(String, String)>,
    /// In milliseconds since 1970; as long as the server takes it, without.
    pub until: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    api_version: String,
    kind: String,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Runs the plugin. What goes wrong is a sentence, with what the plugin complained about but never with what it handed out.
pub(crate) async fn ask(plugin: &ExecConfig) -> Result<Handed, String> {
    let name = plugin.command.clone().unwrap_or_default();
    let sentence = |what: String| format!("the credential plugin {name} {what}");
    if name.is_empty() {
        return Err("the user's exec names no command; write the credential plugin's path there".into());
    }
    if plugin.interactive_mode == Some(ExecInteractiveMode::Always) {
        return Err(sentence(
            "wants to ask a person, and there is nobody here; set its interactiveMode to Never".into(),
        ));
    }
    let running = command(plugin, &name).output();
    let output = match tokio::time::timeout(PATIENCE, running).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => {
            let hint =
                plugin.install_hint.as_deref().and_then(first_line).unwrap_or("install it or correct its path".into());
            return Err(sentence(format!("cannot be started: {error}; {hint}")));
        }
        Err(_) => return Err(sentence(format!("did not end within {} seconds; run it by hand", PATIENCE.as_secs()))),
    };
    if !output.status.success() {
        let complaint = first_line(&String::from_utf8_lossy(&output.stderr)).map(|line| format!(": {line}"));
        let complaint = complaint.unwrap_or_default();
        return Err(sentence(format!("failed with {}{complaint}; run it by hand to see why", output.status)));
    }
    understood(&output.stdout, plugin.api_version.as_deref()).map_err(sentence)
}

fn command(plugin: &ExecConfig, name: &str) -> Command {
    let question = json!({
        "apiVersion": plugin.api_version, "kind": "ExecCredential",
        "spec": { "interactive": false, "cluster": plugin.cluster.as_ref().filter(|_| plugin.provide_cluster_info) },
    });
    let given = plugin.env.iter().flatten().filter_map(|pair| Some((pair.get("name")?, pair.get("value")?)));
    let mut command = Command::new(name);
    command.args(plugin.args.iter().flatten()).envs(given).env("KUBERNETES_EXEC_INFO", question.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

fn understood(said: &[u8], asked: Option<&str>) -> Result<Handed, String> {
    let nonsense = || "wrote no ExecCredential in JSON; run it by hand to see what it writes".to_string();
    let answer: Answer = serde_json::from_slice(said).map_err(|_| nonsense())?;
    if answer.kind != "ExecCredential" {
        return Err(nonsense());
    }
    if asked.is_some_and(|asked| asked != answer.api_version) {
        let asked = asked.unwrap_or_default();
        return Err(format!("answers in another version than {asked}; correct the apiVersion in the kubeconfig"));
    }
    let status = answer.status.ok_or("handed out nothing; log in with it first")?;
    let until = match status.expiration_timestamp {
        Some(text) => Some(Time(text).unix_millis().ok_or_else(nonsense)?),
        None => None,
    };
    let token = status.token.filter(|token| !token.is_empty());
    let identity = match (status.client_certificate_data, status.client_key_data) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err("handed out a certificate without its key or a key without its certificate; update it".into());
        }
    };
    if token.is_none() && identity.is_none() {
        return Err("handed out neither a token nor a certificate; log in with it first".into());
    }
    Ok(Handed { token, identity, until })
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(LONGEST_COMPLAINT).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "client.authentication.k8s.io/v1";

    fn said(status: serde_json::Value) -> Result<Handed, String> {
        let answer = json!({ "apiVersion": V1, "kind": "ExecCredential", "status": status });
        understood(answer.to_string().as_bytes(), Some(V1))
    }

    #[test]
    fn a_plugin_hands_out_a_token_or_a_certificate_with_its_key() {
        let handed = said(json!({ "token": "t", "expirationTimestamp": "1970-01-01T00:00:02Z" })).unwrap();
        assert_eq!((handed.token.as_deref(), handed.until), (Some("t"), Some(2_000)));
        let handed = said(json!({ "clientCertificateData": "c", "clientKeyData": "k" })).unwrap();
        assert_eq!(handed.identity, Some(("c".into(), "k".into())));
    }

    #[test]
    fn nonsense_is_a_sentence_that_shows_nothing_of_it() {
        for status in [json!({}), json!({ "token": "" }), json!({ "clientKeyData": "s3cret" }), json!(null)] {
            let sentence = said(status).map(|_| ()).unwrap_err();
            assert!(!sentence.contains("s3cret"), "{sentence}");
        }
        for text in ["", "s3cret", r#"{"kind":"Secret","apiVersion":"v1"}"#, r#"{"token":"s3cret"}"#] {
            let sentence = understood(text.as_bytes(), Some(V1)).map(|_| ()).unwrap_err();
            assert!(sentence.contains("ExecCredential") && !sentence.contains("s3cret"), "{sentence}");
        }
        let old = json!({ "apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential" }).to_string();
        assert!(understood(old.as_bytes(), Some(V1)).map(|_| ()).unwrap_err().contains("another version"));
    }
}
