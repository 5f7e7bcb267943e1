//! `--sidecar-arg`: what the sidecars are told in their own words. Each gets what it has a flag for, and nothing that
//! decides how the objects around it look.

use std::collections::{BTreeMap, BTreeSet};

use super::objects::Plan;
use super::workload::sidecar_args;
use crate::sidecar::settings::{ProcessEnvironment, Settings};
use crate::sidecar::{Role, owners, parse_flags};

/// Flags that the objects around the sidecar hang on, and what says them instead.
pub const DECIDED: [(&str, &str); 20] = [
    ("csi-address", ""),
    ("enable-capacity", "--capacity"),
    ("feature-gates", "--feature-gates"),
    ("flags", ""),
    ("health-port", ""),
    ("help", ""),
    ("http-endpoint", ""),
    ("kubeconfig", ""),
    ("kubelet-registration-path", "--kubelet-dir"),
    ("leader-election", ""),
    ("leader-election-namespace", "--namespace"),
    ("mark-node", ""),
    ("master", ""),
    ("metrics-address", ""),
    ("metrics-path", ""),
    ("mode", ""),
    ("node-deployment", "--node-deployment"),
    ("plugin-registration-path", ""),
    ("roles", "--roles"),
    ("version", ""),
];

/// The name of a flag in an argument such as `--timeout=5s`.
fn name(argument: &str) -> &str {
    let bare = argument.trim_start_matches('-');
    bare.split_once('=').map_or(bare, |(name, _)| name)
}

/// Those of the arguments that a sidecar with these roles has a flag for.
pub fn for_roles(given: &[String], roles: &BTreeSet<Role>) -> Vec<String> {
    let known = |argument: &&String| owners(name(argument)).iter().any(|role| roles.contains(role));
    given.iter().filter(known).cloned().collect()
}

/// Whether every sidecar could begin with what it is told. An error is a sentence.
pub fn check(plan: &Plan) -> Result<(), String> {
    let all: BTreeSet<Role> = plan.parts().iter().flat_map(|part| part.roles(plan)).collect();
    for given in &plan.sidecar_args {
        if let Some((name, instead)) = DECIDED.iter().find(|(decided, _)| *decided == name(given)) {
            let instead = if instead.is_empty() { "leave it out".into() } else { format!("use {instead}") };
            return Err(format!("--sidecar-arg {given}: --{name} is for longshore deploy to say; {instead}"));
        }
        parse_flags(&all, std::slice::from_ref(given)).map_err(|why| format!("--sidecar-arg {given}: {why}"))?;
    }
    for part in plan.parts() {
        let roles = part.roles(plan);
        let more = for_roles(&plan.sidecar_args, &roles);
        // Which roles these are is said apart.
        let told: Vec<String> = sidecar_args(plan, *part).into_iter().skip(1).chain(more).collect();
        let flags = parse_flags(&roles, &told)?;
        Settings::new(roles, flags, &pod()).map_err(|why| format!("--sidecar-arg: {why}"))?;
    }
    Ok(())
}

/// What a sidecar finds in its pod.
fn pod() -> ProcessEnvironment {
    let variables = ["NODE_NAME", "POD_NAME", "NAMESPACE"].map(|name| (name.to_string(), "x".to_string()));
    ProcessEnvironment { variables: BTreeMap::from(variables), host: "x".into(), namespace: Some("x".into()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};
    use crate::deploy;

    /// What is printed with these flags, or what is wrong with them.
    fn printed(more: &[&str]) -> Result<String, String> {
        let words = ["longshore", "deploy", "--driver-name=csi.example.com", "--driver-image=x"];
        let Command::Deploy(args) = Cli::try_parse_from(words.iter().chain(more)).unwrap().command else { panic!() };
        deploy::manifests(&args.driver)
    }

    /// The arguments of the sidecars, set by set.
    fn told(more: &[&str]) -> Vec<Vec<String>> {
        let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(&printed(more).unwrap()).unwrap();
        let sets = objects.iter().filter(|object| object["spec"]["template"].is_object());
        let of = |set: &serde_json::Value| {
            serde_json::from_value(set["spec"]["template"]["spec"]["containers"][1]["args"].clone()).unwrap()
        };
        sets.map(of).collect()
    }

    #[test]
    fn each_sidecar_is_told_what_it_has_a_flag_for() {
        let (usual, more) = (
            told(&[]),
            told(&["--sidecar-arg=-v=5", "--sidecar-arg=--extra-create-metadata", "--sidecar-arg=--probe-timeout=3s"]),
        );
        let beyond = |at: usize| more[at].iter().filter(|word| !usual[at].contains(word)).collect::<Vec<_>>();
        assert_eq!(beyond(0), ["-v=5", "--extra-create-metadata", "--probe-timeout=3s"]);
        assert_eq!(beyond(1), ["-v=5", "--probe-timeout=3s"]);
    }

    #[test]
    fn what_no_sidecar_could_begin_with_is_one_sentence() {
        for (given, sentence) in [
            ("--tea=1", "--sidecar-arg --tea=1: there is no flag --tea; --help lists them"),
            ("--timeout", "--sidecar-arg --timeout: --timeout needs a value; write --timeout=1m30s"),
            ("--workers=0", "--sidecar-arg: --workers must be at least 1, or the resizer does nothing"),
            (
                "--enable-capacity",
                "--sidecar-arg --enable-capacity: --enable-capacity is for longshore deploy to say; use --capacity",
            ),
            ("--roles=attacher", "--sidecar-arg --roles=attacher: --roles is for longshore deploy to say; use --roles"),
            ("-mark-node", "--sidecar-arg -mark-node: --mark-node is for longshore deploy to say; leave it out"),
        ] {
            assert_eq!(printed(&[&format!("--sidecar-arg={given}")]), Err(sentence.into()));
        }
        let absent = printed(&["--sidecar-arg=--workers=3", "--roles=attacher"]).unwrap_err();
        assert!(absent.contains("--workers is a flag of the resizer, which is not among the roles"), "{absent}");
    }

    // A name that is written wrongly here would let its flag through.
    #[test]
    fn what_is_decided_elsewhere_is_a_flag_of_somebody() {
        for (name, _) in DECIDED.iter().filter(|(name, _)| !matches!(*name, "flags" | "help" | "roles")) {
            assert!(!owners(name).is_empty(), "there is no --{name}");
        }
    }
}
