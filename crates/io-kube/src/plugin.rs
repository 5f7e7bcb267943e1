//! Credential plugins (`exec` in a kubeconfig): programs that print a token or a client certificate, valid for a while.

use std::process::Stdio;
use std::time::Duration;

use api::Time;
use kube::config::{ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;

/// A plugin that takes longer than this hangs, most likely because it prompts a person.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How much of a plugin's standard error goes into a message.
const LONGEST_COMPLAINT: usize = 200;

/// What a plugin printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ExecCredential {
    pub token: Option<String>,
    /// Certificate and key, as PEM.
    pub identity: Option<(String, String)>,
    /// When it expires, in milliseconds since 1970. Without, it is good until the server refuses it.
    pub expires: Option<u64>,
}

/// Why a plugin gave no credential. The messages quote what the plugin wrote to standard error, never what it wrote to
/// standard output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    /// The kubeconfig names no program.
    #[error("the user's exec names no command; write the credential plugin's path there")]
    NoCommand,
    /// The plugin wants a terminal.
    #[error(
        "the credential plugin {0} wants to ask a person, and there is nobody here; set its interactiveMode to Never"
    )]
    Interactive(String),
    /// The program cannot be started.
    #[error("the credential plugin {name} cannot be started: {reason}; {hint}")]
    NotStarted {
        name: String,
        /// The operating system's words.
        reason: String,
        /// The kubeconfig's `installHint`, or ours.
        hint: String,
    },
    /// The program did not end in time.
    #[error("the credential plugin {0} did not end within {seconds} seconds; run it by hand", seconds = TIMEOUT.as_secs())]
    TimedOut(String),
    /// The program failed.
    #[error("the credential plugin {name} failed with {status}{complaint}; run it by hand to see why")]
    Failed {
        name: String,
        /// Its exit status.
        status: String,
        /// The first line of its standard error, after a colon.
        complaint: String,
    },
    /// The program's output cannot be used.
    #[error("the credential plugin {name} {problem}")]
    Output {
        name: String,
        /// What is wrong with it.
        problem: OutputProblem,
    },
}

/// What is wrong with a plugin's output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutputProblem {
    /// It is not an `ExecCredential`.
    #[error("wrote no ExecCredential in JSON; run it by hand to see what it writes")]
    NotExecCredential,
    /// It is an `ExecCredential` of another version than this one.
    #[error("answers in another version than {0}; correct the apiVersion in the kubeconfig")]
    OtherVersion(String),
    /// It has no status.
    #[error("handed out nothing; log in with it first")]
    NoStatus,
    /// It has a certificate without a key, or a key without a certificate.
    #[error("handed out a certificate without its key or a key without its certificate; update it")]
    HalfOfAPair,
    /// It has neither a token nor a certificate.
    #[error("handed out neither a token nor a certificate; log in with it first")]
    Empty,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Output {
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

/// Runs the plugin.
pub(crate) async fn run(plugin: &ExecConfig) -> Result<ExecCredential, PluginError> {
    let name = plugin.command.clone().unwrap_or_default();
    if name.is_empty() {
        return Err(PluginError::NoCommand);
    }
    if plugin.interactive_mode == Some(ExecInteractiveMode::Always) {
        return Err(PluginError::Interactive(name));
    }
    let output = match tokio::time::timeout(TIMEOUT, command(plugin, &name).output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => {
            let hint = plugin.install_hint.as_deref().and_then(first_line);
            let hint = hint.unwrap_or("install it or correct its path".into());
            return Err(PluginError::NotStarted { name, reason: error.to_string(), hint });
        }
        Err(_) => return Err(PluginError::TimedOut(name)),
    };
    if !output.status.success() {
        let complaint = first_line(&String::from_utf8_lossy(&output.stderr)).map(|line| format!(": {line}"));
        let (status, complaint) = (output.status.to_string(), complaint.unwrap_or_default());
        return Err(PluginError::Failed { name, status, complaint });
    }
    parse(&output.stdout, plugin.api_version.as_deref()).map_err(|problem| PluginError::Output { name, problem })
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

fn parse(stdout: &[u8], version: Option<&str>) -> Result<ExecCredential, OutputProblem> {
    let output: Output = serde_json::from_slice(stdout).map_err(|_| OutputProblem::NotExecCredential)?;
    if output.kind != "ExecCredential" {
        return Err(OutputProblem::NotExecCredential);
    }
    if let Some(version) = version.filter(|version| *version != output.api_version) {
        return Err(OutputProblem::OtherVersion(version.into()));
    }
    let status = output.status.ok_or(OutputProblem::NoStatus)?;
    let expires = match status.expiration_timestamp {
        Some(text) => Some(Time(text).unix_millis().ok_or(OutputProblem::NotExecCredential)?),
        None => None,
    };
    let token = status.token.filter(|token| !token.is_empty());
    let identity = match (status.client_certificate_data, status.client_key_data) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => return Err(OutputProblem::HalfOfAPair),
    };
    if token.is_none() && identity.is_none() {
        return Err(OutputProblem::Empty);
    }
    Ok(ExecCredential { token, identity, expires })
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(LONGEST_COMPLAINT).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "client.authentication.k8s.io/v1";

    fn printed(status: serde_json::Value) -> Result<ExecCredential, OutputProblem> {
        let output = json!({ "apiVersion": V1, "kind": "ExecCredential", "status": status });
        parse(output.to_string().as_bytes(), Some(V1))
    }

    #[test]
    fn a_plugin_hands_out_a_token_or_a_certificate_with_its_key() {
        let handed = printed(json!({ "token": "t", "expirationTimestamp": "1970-01-01T00:00:02Z" })).unwrap();
        assert_eq!((handed.token.as_deref(), handed.expires), (Some("t"), Some(2_000)));
        let handed = printed(json!({ "clientCertificateData": "c", "clientKeyData": "k" })).unwrap();
        assert_eq!(handed.identity, Some(("c".into(), "k".into())));
    }

    #[test]
    fn nonsense_is_a_sentence_that_shows_nothing_of_it() {
        for status in [json!({}), json!({ "token": "" }), json!({ "clientKeyData": "s3cret" }), json!(null)] {
            let sentence = printed(status).map(|_| ()).unwrap_err().to_string();
            assert!(!sentence.contains("s3cret"), "{sentence}");
        }
        for text in ["", "s3cret", r#"{"kind":"Secret","apiVersion":"v1"}"#, r#"{"token":"s3cret"}"#] {
            let sentence = parse(text.as_bytes(), Some(V1)).map(|_| ()).unwrap_err().to_string();
            assert!(sentence.contains("ExecCredential") && !sentence.contains("s3cret"), "{sentence}");
        }
        let old = json!({ "apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential" }).to_string();
        let other = OutputProblem::OtherVersion(V1.into());
        assert_eq!(parse(old.as_bytes(), Some(V1)).map(|_| ()).unwrap_err(), other);
    }
}
