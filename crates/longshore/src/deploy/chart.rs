//! What of `deploy/` is written from here: the chart's rights and dashboard, and the base for kustomize. Whether the
//! rest of the chart says what `longshore deploy` says, a test with the real helm finds out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;

use super::rights::{self, Extras, Verbs};
use super::{monitoring, reference};
use crate::args::{Cli, Command};
use crate::sidecar::Role;

/// The parts of a sidecar that have rights.
const ROLES: [Role; 3] = [Role::Provisioner, Role::Attacher, Role::Resizer];
/// Nothing that somebody might ask for besides.
const NOTHING: Extras = Extras {
    capacity: false,
    mark_node: false,
    per_node: false,
    snapshots: false,
    other_namespaces: false,
    attributes_classes: false,
    topology: false,
};

/// What may be asked for, by the name the chart's plan has for it. Its `topology` is false for provisioners of their
/// own node.
fn asked() -> [(&'static str, Extras); 5] {
    [
        ("attributesClasses", Extras { attributes_classes: true, ..NOTHING }),
        ("capacity", Extras { capacity: true, ..NOTHING }),
        ("otherNamespaces", Extras { other_namespaces: true, ..NOTHING }),
        ("snapshots", Extras { snapshots: true, ..NOTHING }),
        ("topology", Extras { topology: true, ..NOTHING }),
    ]
}

/// The rights of a role: those it always has, and those with what is asked for.
fn by_use(role: Role) -> BTreeMap<&'static str, rights::Rights> {
    let of = |extras| rights::of(&[role].into(), extras);
    std::iter::once(("", of(NOTHING))).chain(asked().map(|(name, extras)| (name, of(extras)))).collect()
}

/// What the first has and the second has not.
fn beyond(more: &Verbs, less: &Verbs) -> Verbs {
    let mut rest = more.clone();
    for (resource, verbs) in &mut rest {
        verbs.retain(|verb| !less.get(resource).is_some_and(|had| had.contains(verb)));
    }
    rest.retain(|_, verbs| !verbs.is_empty());
    rest
}

fn template(
    name: &str,
    of: impl Fn(&rights::Rights) -> &Verbs,
    uses: &BTreeMap<&'static str, rights::Rights>,
) -> String {
    let mut text = format!("\n{{{{- define \"{name}\" }}}}\n");
    let usual = &uses[""];
    text.push_str(&super::rbac::rules(of(usual)));
    for (condition, rights) in uses.iter().filter(|(condition, _)| !condition.is_empty()) {
        let rules = super::rbac::rules(&beyond(of(rights), of(usual)));
        if !rules.is_empty() {
            let _ = write!(text, "{{{{- if .{condition} }}}}\n{rules}{{{{- end }}}}\n");
        }
    }
    text + "{{- end }}\n"
}

fn rights_template() -> String {
    let mut text = String::from(
        "{{/* What each role may do, computed from its rules: written by `make record`, never by hand. */}}\n",
    );
    for role in ROLES {
        let uses = by_use(role);
        text.push_str(&template(&format!("longshore.rights.{role}"), |rights| &rights.cluster, &uses));
        text.push_str(&template(&format!("longshore.rights.{role}.beside"), |rights| &rights.own_namespace, &uses));
    }
    let readers = ROLES.iter().filter(|role| by_use(**role)[""].secrets).map(|role| format!(" (has \"{role}\" .)"));
    let readers: String = readers.collect();
    let _ = write!(
        text,
        "\n{{{{- define \"longshore.rights.secrets\" }}}}{{{{ if or{readers} }}}}true{{{{ end }}}}{{{{- end }}}}\n"
    );
    text
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// The file is what is told here; with LONGSHORE_RECORD it becomes that.
fn assert_recorded(path: &str, text: &str) {
    let file = folder().join(path);
    if std::env::var_os("LONGSHORE_RECORD").is_some() {
        fs::write(&file, text).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == text, "deploy/{path} is old; `make record` writes it anew");
}

fn printed(words: &[&str]) -> String {
    let all = ["longshore", "deploy"].iter().chain(words);
    let Command::Deploy(args) = Cli::try_parse_from(all).unwrap().command else { panic!() };
    super::manifests(&if args.driver.reference_driver { reference(args.driver) } else { args.driver }).unwrap()
}

#[test]
fn the_charts_rights_are_those_of_the_rules() {
    assert_recorded("helm/longshore/templates/_rights.tpl", &rights_template());
}

/// So parts can be put together: whatever is asked for at once, nothing is missing and nothing is too much.
#[test]
fn rights_add_up() {
    for role in ROLES {
        let uses = by_use(role);
        for bits in 0..1_u32 << 6 {
            let on = |bit: u32| bits & 1 << bit != 0;
            let extras = Extras {
                attributes_classes: on(0),
                capacity: on(1),
                other_namespaces: on(2),
                snapshots: on(3),
                topology: on(4),
                per_node: on(5),
                mark_node: false,
            };
            let whole = rights::of(&[role].into(), extras);
            let mut sum = uses[""].clone();
            for (index, (name, _)) in asked().iter().enumerate() {
                if on(index as u32) && !(*name == "topology" && extras.per_node) {
                    sum.add(&uses[name]);
                }
            }
            assert_eq!((&sum.cluster, &sum.own_namespace), (&whole.cluster, &whole.own_namespace), "{role} {extras:?}");
            assert_eq!(uses[""].secrets, whole.secrets, "{role}");
        }
    }
}

#[test]
fn the_dashboard_of_the_chart_is_that_of_deploy() {
    let text = serde_json::to_string_pretty(&monitoring::dashboard("DRIVER")).unwrap();
    assert_recorded("helm/longshore/files/dashboard.json", &(text + "\n"));
}

#[test]
fn the_base_for_kustomize_is_what_deploy_prints() {
    assert_recorded("kustomize/driver.yaml", &printed(&["--reference-driver"]));
    let base = fs::read_to_string(folder().join("kustomize/kustomization.yaml")).unwrap();
    let base: serde_json::Value = serde_saphyr::from_str(&base).unwrap();
    assert_eq!(base["resources"], serde_json::json!(["driver.yaml"]));
}

#[test]
fn the_chart_is_of_this_version() {
    let chart = fs::read_to_string(folder().join("helm/longshore/Chart.yaml")).unwrap();
    let chart: serde_json::Value = serde_saphyr::from_str(&chart).unwrap();
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    let values = fs::read_to_string(folder().join("helm/longshore/values.yaml")).unwrap();
    let values: serde_json::Value = serde_saphyr::from_str(&values).unwrap();
    // One that is named there would stay behind in an upgrade with `--reuse-values`.
    assert_eq!(values["image"], "");
}

/// A flag that the chart has no value for is found here.
#[test]
fn every_flag_of_deploy_has_a_value_in_the_chart() {
    use clap::CommandFactory as _;
    let values = fs::read_to_string(folder().join("helm/longshore/values.yaml")).unwrap();
    let cli = Cli::command();
    let deploy = cli.find_subcommand("deploy").unwrap();
    let flags: Vec<&str> = deploy.get_arguments().filter_map(|argument| argument.get_long()).collect();
    assert!(flags.len() > 20, "{flags:?}");
    // Helm has a flag of its own for the namespace.
    for flag in flags.into_iter().filter(|flag| !matches!(*flag, "help" | "namespace")) {
        assert!(values.contains(&format!("--{flag}")), "values.yaml does not say which value is --{flag}");
    }
}
