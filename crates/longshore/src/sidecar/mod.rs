//! The sidecars of a driver, in one process: `longshore sidecar`, or called by the name of a program it replaces.

mod capacity;
pub mod controllers;
mod driver;
mod flags;
pub mod health;
mod help;
pub mod http;
mod liveness;
pub mod locals;
mod registrar;
mod role;
mod run;
pub mod settings;
pub mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

pub use flags::{boolean, duration as parse_duration, gates, owners, parse as parse_flags};
pub use locals::resizes;
pub use role::Role;
use settings::{ProcessEnvironment, Settings};

use crate::out;

/// Where a pod finds the namespace of its service account.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The role of the program this process was called as, if it is one that is replaced here.
pub fn called_as(program: &OsStr) -> Option<Role> {
    let name = Path::new(program).file_name()?.to_str()?;
    Role::ALL.into_iter().find(|role| role.program() == name)
}

/// `longshore sidecar …`: the roles are named by `--roles`, the rest are flags of those roles.
pub fn command(arguments: Vec<String>) -> ExitCode {
    match roles_of(arguments) {
        Ok((roles, rest)) => program(roles, &rest),
        Err(sentence) => {
            out::complain(&sentence);
            ExitCode::from(2)
        }
    }
}

/// Takes `--roles` out of the arguments.
fn roles_of(arguments: Vec<String>) -> Result<(BTreeSet<Role>, Vec<String>), String> {
    let (mut named, mut rest, mut all) = (None, Vec::new(), arguments.into_iter());
    while let Some(argument) = all.next() {
        match argument.trim_start_matches('-').split_once('=') {
            Some(("roles", value)) if argument.starts_with('-') => named = Some(value.to_string()),
            None if argument == "--roles" || argument == "-roles" => named = all.next(),
            Some(_) | None => rest.push(argument),
        }
    }
    let wants_words = rest.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h" | "-help" | "--flags"));
    let Some(named) = named else {
        return if wants_words {
            Ok((Role::ALL.into(), rest))
        } else {
            Err("--roles is missing; name what to do, such as --roles=provisioner,attacher,resizer".into())
        };
    };
    let roles = named.split(',').filter(|name| !name.is_empty()).map(|name| {
        let known: Vec<&str> = Role::ALL.iter().map(|role| role.name()).collect();
        Role::named(name).ok_or_else(|| format!("there is no role {name}; there are {}", known.join(", ")))
    });
    Ok((roles.collect::<Result<_, _>>()?, rest))
}

/// A process with these roles and these flags.
pub fn program(roles: BTreeSet<Role>, arguments: &[String]) -> ExitCode {
    let has = |names: &[&str]| arguments.iter().any(|argument| names.contains(&argument.as_str()));
    if has(&["--help", "-h", "-help"]) {
        let called = std::env::args_os().next().unwrap_or_default();
        let called = Path::new(&called).file_name().unwrap_or_default().to_string_lossy().into_owned();
        out::say(help::help(&roles, &called).trim_end());
        return ExitCode::SUCCESS;
    }
    if has(&["--flags"]) {
        out::say(help::document().trim_end());
        return ExitCode::SUCCESS;
    }
    let checked = flags::parse(&roles, arguments).and_then(|flags| {
        let environment = ProcessEnvironment {
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect::<BTreeMap<_, _>>(),
            host: crate::machine::host_name().map_err(|error| error.to_string())?,
            namespace: std::fs::read_to_string(NAMESPACE_FILE).ok().map(|name| name.trim().to_string()),
        };
        Settings::new(roles, flags, &environment)
    });
    let settings = match checked {
        Ok(settings) => settings,
        Err(sentence) => {
            out::complain(&sentence);
            return ExitCode::from(2);
        }
    };
    let first = settings.roles.first().copied().unwrap_or(Role::Provisioner);
    if settings.flags.is(first, table::VERSION) {
        out::say(&format!("{} {}", first.program(), env!("CARGO_PKG_VERSION")));
        return ExitCode::SUCCESS;
    }
    log(&settings, first);
    for warning in &settings.flags.warnings {
        tracing::warn!("{warning}");
    }
    match run::run(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out::complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn log(settings: &Settings, role: Role) {
    let level = match settings.flags.int(role, table::V) {
        ..=1 => tracing::Level::WARN,
        2..=4 => tracing::Level::INFO,
        5.. => tracing::Level::DEBUG,
    };
    out::log(level, settings.flags.text(role, table::LOGGING_FORMAT) == "json");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn roles_are_named_and_the_rest_is_left_for_them() {
        let (roles, rest) = roles_of(words("--csi-address=/s --roles attacher,csi-resizer -v 5")).unwrap();
        assert_eq!(roles, [Role::Attacher, Role::Resizer].into());
        assert_eq!(rest, ["--csi-address=/s", "-v", "5"]);
        assert_eq!(roles_of(words("--roles=attacher")).unwrap().0, [Role::Attacher].into());
        let unknown = roles_of(words("--roles=teapot")).unwrap_err();
        assert!(unknown.starts_with("there is no role teapot; there are provisioner,"), "{unknown}");
        assert!(roles_of(words("-v 5")).unwrap_err().starts_with("--roles is missing"));
    }

    #[test]
    fn a_link_with_the_name_of_a_go_program_is_that_program() {
        assert_eq!(called_as(OsStr::new("/usr/bin/csi-attacher")), Some(Role::Attacher));
        assert_eq!(called_as(OsStr::new("livenessprobe")), Some(Role::Liveness));
        assert_eq!(called_as(OsStr::new("/usr/bin/longshore")), None);
    }
}
