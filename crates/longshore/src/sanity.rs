//! `longshore sanity`: what the user wrote becomes options, and what was found becomes text. The judging is in
//! `prove-conformance`.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use prove_conformance::{Progress, Restart, Suite, SuiteOptions};
use rules_translate::Plugin;

use crate::args::Output;

/// How long a restart command may take.
const RESTART_WITHIN: Duration = Duration::from_secs(60);

/// `longshore sanity`.
#[derive(Args, Clone)]
pub struct Sanity {
    /// The driver's socket, as unix:///path/csi.sock or /path/csi.sock
    #[arg(long, value_name = "SOCKET")]
    pub endpoint: String,
    /// The controller's socket, if it is another
    #[arg(long, value_name = "SOCKET")]
    pub controller_endpoint: Option<String>,
    /// A shell command that kills and starts the driver again; without it no restarts are judged
    #[arg(long, value_name = "COMMAND")]
    pub restart_command: Option<String>,
    /// Where volumes are staged [default: a new folder in the temporary directory]
    #[arg(long, value_name = "DIR")]
    pub staging_dir: Option<PathBuf>,
    /// Where volumes are published [default: a new folder in the temporary directory]
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,
    /// A JSON file of secrets: {"key": "value"} for all calls, or {"CreateVolume": {"key": "value"}} for one
    #[arg(long, value_name = "FILE")]
    pub secrets: Option<PathBuf>,
    /// Parameters for CreateVolume
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub parameters: Vec<String>,
    /// Mutable parameters the driver understands; without them no modification is judged
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub mutable_parameters: Vec<String>,
    /// Judge instead whether the driver serves what the in-tree plugin served (kubernetes.io/gce-pd, for example):
    /// classes, volumes and pods' own volumes of the plugin, translated; --parameters are then those of its classes
    #[arg(long, value_name = "PLUGIN", value_parser = plugin)]
    pub in_place_of: Option<Plugin>,
    /// Only cases whose name contains this; * stands for anything
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub only: Vec<String>,
    /// No cases whose name contains this; * stands for anything
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Write a JUnit report to this file as well
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// How to print
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: Output,
    /// How many cases run at the same time
    #[arg(long, value_name = "N", default_value = "1")]
    pub parallel: usize,
    /// The size of the volumes, such as 64Mi
    #[arg(long, value_name = "SIZE", default_value = "64Mi")]
    pub size: String,
    /// The longest one call may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30")]
    pub timeout: u64,
    /// List the cases and run none
    #[arg(long)]
    pub list: bool,
}

/// Judges, prints, and says by its code whether the driver holds.
pub async fn command(args: Sanity) -> Result<ExitCode> {
    let cases = match args.in_place_of {
        Some(plugin) => prove_conformance::cases::in_tree::of(plugin),
        None => prove_conformance::cases::all(),
    };
    if args.list {
        let lines: Vec<String> = cases.iter().map(|case| format!("{}: {}\n", case.name, case.why)).collect();
        print(&lines.concat());
        return Ok(ExitCode::SUCCESS);
    }
    let suite = Suite::meet(options(&args)?).await.map_err(|error| anyhow!(error))?;
    if let Some(plugin) = args.in_place_of.filter(|plugin| plugin.driver() != suite.driver.name) {
        let found = &suite.driver.name;
        bail!(
            "the driver that took over {plugin} is called {}; the one at the socket says that it is {found:?}",
            plugin.driver()
        );
    }
    let show = std::io::stderr().is_terminal();
    let report = prove_conformance::run(Arc::new(suite), &cases, interrupted(), |progress| {
        if show {
            tell(&progress);
        }
    })
    .await;
    if show {
        tell_nothing();
    }
    if let Some(file) = &args.junit {
        std::fs::write(file, report.junit()).with_context(|| format!("cannot write {}", file.display()))?;
    }
    match args.output {
        Output::Text => print(&report.text(std::io::stdout().is_terminal())),
        Output::Json => print(&format!("{}\n", serde_json::to_string_pretty(&report.json())?)),
    }
    Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn options(args: &Sanity) -> Result<SuiteOptions> {
    let scratch = std::env::temp_dir().join(format!("longshore-sanity-{}", std::process::id()));
    let size = api::Quantity(args.size.clone())
        .bytes()
        .ok()
        .filter(|size| *size > 0)
        .ok_or_else(|| anyhow!("{} is no size; write for example 64Mi or 1Gi", args.size))?;
    Ok(SuiteOptions {
        controller_endpoint: args.controller_endpoint.clone(),
        staging_dir: args.staging_dir.clone().unwrap_or_else(|| scratch.with_extension("staging")),
        target_dir: args.target_dir.clone().unwrap_or_else(|| scratch.with_extension("target")),
        in_place_of: args.in_place_of,
        restart: args.restart_command.clone().map(restart),
        secrets: secrets(args)?,
        parameters: pairs(&args.parameters)?,
        mutable_parameters: pairs(&args.mutable_parameters)?,
        size,
        parallel: args.parallel.max(1),
        call_timeout: Duration::from_secs(args.timeout.max(1)),
        only: args.only.clone(),
        skip: args.skip.clone(),
        root: std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0),
        ..SuiteOptions::new(args.endpoint.clone())
    })
}

fn plugin(name: &str) -> Result<Plugin, String> {
    let known = Plugin::ALL.map(Plugin::name).join(", ");
    Plugin::named(name).ok_or_else(|| format!("no CSI driver has taken over a plugin of this name; there are {known}"))
}

fn pairs(list: &[String]) -> Result<BTreeMap<String, String>> {
    list.iter()
        .map(|entry| match entry.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_string(), value.to_string())),
            Some(_) | None => bail!("{entry} is no parameter; write KEY=VALUE"),
        })
        .collect()
}

fn secrets(args: &Sanity) -> Result<BTreeMap<String, BTreeMap<String, String>>> {
    let Some(file) = &args.secrets else { return Ok(BTreeMap::new()) };
    // The parser's own words are left out: they may quote the file.
    let wrong =
        || anyhow!("{} holds no secrets; write a JSON object of strings, or one object a method", file.display());
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let serde_json::Value::Object(entries) = serde_json::from_str(&text).map_err(|_| wrong())? else {
        return Err(wrong());
    };
    let mut secrets: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (key, value) in entries {
        match value {
            serde_json::Value::String(value) => drop(secrets.entry(String::new()).or_default().insert(key, value)),
            serde_json::Value::Object(map) => {
                // csi-sanity calls them CreateVolumeSecret and so on.
                let method = key.trim_end_matches("Secret").to_string();
                for (key, value) in map {
                    let value = value.as_str().ok_or_else(wrong)?.to_string();
                    secrets.entry(method.clone()).or_default().insert(key, value);
                }
            }
            _ => return Err(wrong()),
        }
    }
    Ok(secrets)
}

fn restart(command: String) -> Restart {
    Arc::new(move || {
        let mut shell = tokio::process::Command::new("sh");
        // What the command leaves running must not hold our own output open.
        shell.arg("-c").arg(&command).stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        Box::pin(async move {
            match tokio::time::timeout(RESTART_WITHIN, shell.status()).await {
                Ok(Ok(status)) if status.success() => Ok(()),
                Ok(Ok(status)) => Err(format!("the restart command failed ({status})")),
                Ok(Err(error)) => Err(format!("the restart command cannot be run: {error}")),
                Err(_) => Err(format!("the restart command did not end within {} s", RESTART_WITHIN.as_secs())),
            }
        })
    })
}

async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut int), Ok(mut term)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = int.recv() => {}
        _ = term.recv() => {}
    }
}

/// One line that is written over and over.
fn tell(progress: &Progress<'_>) {
    if let Progress::Begins(name, before, total) = progress {
        let _ = write!(std::io::stderr(), "\r\x1b[K[{before}/{total}] {name}");
    }
}

fn tell_nothing() {
    let _ = write!(std::io::stderr(), "\r\x1b[K");
}

fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
