//! The chart as users come by it: the real helm, the chart of the version before, and what the README says to type.

use std::path::Path;
use std::process::Command;

use prove_cluster::peer;

/// The chart before the present one, as `make chart` packed it.
pub const BEFORE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/charts/longshore-0.1.0.tgz");
const ABOUT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/helm/longshore/Chart.yaml"));
const README: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"));

/// What `make chart` calls the present chart.
pub fn archive() -> String {
    let version = ABOUT.lines().find_map(|line| line.strip_prefix("version: ")).unwrap();
    format!("longshore-{version}.tgz")
}

/// A command of the README's, from its first words on. It names the present chart, if any.
pub fn of_readme(words: &str) -> String {
    let line = README.lines().find_map(|line| line.strip_prefix("$ ").filter(|command| command.starts_with(words)));
    let command = line.unwrap_or_else(|| panic!("the README has no command {words:?}")).to_string();
    assert!(!command.contains(".tgz") || command.contains(&archive()), "{command} is not of {}", archive());
    command
}

/// Runs helm, which keeps its files in `home`; without a kubeconfig it reaches no cluster.
pub fn helm(words: &[&str], home: &Path, kubeconfig: Option<&Path>) -> Result<String, String> {
    let mut command = Command::new(peer("helm").unwrap());
    say(as_user(command.args(words), home, kubeconfig))
}

/// Runs a command as a user types it, with the real helm.
pub fn typed(command: &str, home: &Path, kubeconfig: &Path) -> Result<String, String> {
    let script = format!("helm() {{ {} \"$@\"; }}; {command}", peer("helm").unwrap().display());
    say(as_user(Command::new("bash").args(["-euo", "pipefail", "-c", &script]), home, Some(kubeconfig)))
}

fn as_user<'a>(command: &'a mut Command, home: &Path, kubeconfig: Option<&Path>) -> &'a mut Command {
    command.env("HOME", home).env_remove("KUBECONFIG");
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(variable, home);
    }
    match kubeconfig {
        Some(file) => command.env("KUBECONFIG", file),
        None => command,
    }
}

fn say(command: &mut Command) -> Result<String, String> {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
