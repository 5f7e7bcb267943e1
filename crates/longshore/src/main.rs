//! The Longshore binary: arguments and wiring, nothing else.
//!
//! Which rules decide is in the `rules-*` crates, how things are done in the `io-*` crates. This crate knows both, and
//! decides nothing itself.

mod args;
mod collected;
mod commands;
mod deploy;
mod driver;
mod dump;
mod election;
mod exec;
mod explain;
mod gates;
mod layout;
mod logs;
mod machine;
#[cfg(test)]
mod metrics_told;
mod migrate;
mod mounts;
mod node;
mod out;
mod pod_dirs;
mod registered;
mod routes;
mod sanity;
mod sidecar;
mod sockets;
mod stats;
mod status;
mod translate;
mod up;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::{Cli, Command};
use crate::commands::shell;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if let Some(role) = arguments.next().as_deref().and_then(sidecar::called_as) {
        // Arguments that are no text are shown as they can be, and refused as flags that do not exist.
        let arguments: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
        return sidecar::program([role].into(), &arguments);
    }
    // The flags of the sidecars are a table of their own.
    if std::env::args_os().skip(1).take(2).eq(["help", "sidecar"]) {
        return sidecar::command(vec!["--help".into()]);
    }
    let called = shell::called(std::env::args_os().next().as_deref());
    let parsed = Cli::command().bin_name(called).try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            match (called, error.use_stderr()) {
                ("longshore", _) => drop(error.print()),
                (_, true) => out::complain_as_it_is(&shell::as_called(&error.render().to_string(), called)),
                (_, false) => out::say(shell::as_called(&error.render().to_string(), called).trim_end()),
            }
            // Help and version are not errors.
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    match run(cli.command) {
        Ok(code) => code,
        Err(error) => {
            out::complain(&out::sentence(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Up(args) => asynchronously(args.verbose, up::command(args)),
        Command::Down(args) => commands::down::command(&args).map(|()| ExitCode::SUCCESS),
        Command::Apiserver(args) => asynchronously(args.verbose, commands::apiserver::command(args)),
        Command::Controllers(args) => asynchronously(args.verbose, commands::controllers::command(args)),
        Command::Node(args) => asynchronously(args.verbose, commands::node::command(args)),
        Command::Driver(args) => asynchronously(args.verbose, driver::command(args)),
        Command::Status(args) => judging(status::command(args)),
        Command::Explain(args) => asynchronously(0, explain::command(args)),
        Command::Fields(args) => commands::fields::command(&args).map(|()| ExitCode::SUCCESS),
        Command::Prove(args) => prove(&args),
        Command::Sidecar { args } => Ok(sidecar::command(args)),
        Command::Deploy(args) => Ok(deploy::command(&args)),
        Command::Completions(args) => {
            shell::completions(&args);
            Ok(ExitCode::SUCCESS)
        }
        Command::Man(args) => shell::manual(&args).map(|()| ExitCode::SUCCESS),
        Command::Sanity(args) => judging(sanity::command(args)),
        Command::Migrate(args) => judging(migrate::command(args)),
        Command::Translate(args) => Ok(translate::command(&args)),
        // The shim is a small synchronous program: it forks, which a runtime with threads must not.
        Command::ProcessShim { args } => Ok(ExitCode::from(u8::try_from(io_host::shim_main(&args)).unwrap_or(1))),
    }
}

fn asynchronously(verbose: u8, command: impl Future<Output = Result<()>>) -> Result<ExitCode> {
    let level = match verbose {
        0 => tracing::Level::WARN,
        1 => tracing::Level::INFO,
        _ => tracing::Level::DEBUG,
    };
    out::log(level, false);
    raise_descriptors();
    // One thread decides and answers; disk and kernel work has threads of its own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(command);
    // Work on a hung filesystem must not keep the process from ending.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    outcome.map(|()| ExitCode::SUCCESS)
}

/// Connections, mounts and drivers take descriptors, and the usual limit of 1,024 is for programs of another time. A
/// limit that cannot be raised stays: who counts descriptors asks for it.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Judging has its own exit code, and nothing to log that is not in its report.
fn judging(command: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    outcome
}

fn prove(args: &args::Prove) -> Result<ExitCode> {
    if let Some(walks) = args.walks {
        return walk(&args.worlds, args.seed..args.seed.saturating_add(walks));
    }
    let all = prove_world::worlds().iter().map(|(scenario, _)| scenario.name.to_string());
    let names: Vec<String> = if args.worlds.is_empty() { all.collect() } else { args.worlds.clone() };
    let mut held = true;
    for name in &names {
        let report = prove_world::run(name, None)?;
        out::say(&report.to_string());
        held &= report.holds();
    }
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn walk(worlds: &[String], seeds: std::ops::Range<u64>) -> Result<ExitCode> {
    let all = prove_world::worlds().iter().map(|(scenario, _)| scenario).chain(prove_world::walked());
    let names: Vec<String> =
        if worlds.is_empty() { all.map(|scenario| scenario.name.to_string()).collect() } else { worlds.to_vec() };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let mut held = true;
    for name in &names {
        let walks = prove_world::wander_wide(prove_world::find(name)?, prove_world::WALKED, seeds.clone(), threads);
        out::say(&walks.to_string());
        held &= walks.broken.is_none();
    }
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
