//! What of `deploy/` is written from here: the chart's rights and dashboard, and the base for kustomize. Whether the
//! rest of the chart says what `longshore deploy` says, a test with the real helm finds out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use rules_translate::Plugin;

use super::passed::DECIDED;
use super::rights::{self, Extras, Verbs};
use super::{Part, controllers, monitoring, reference};
use crate::args::{Cli, Command};
use crate::commands::controllers::ClusterController;
use crate::sidecar::{Role, table};

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
    for one in ClusterController::ALL {
        let rights = rights::Rights::default().with_controllers(&[one].into());
        let (name, rules) = (one.name(), super::rbac::rules(&rights.cluster));
        assert!(rights.own_namespace.is_empty() && !rights.secrets, "{name} has rights that the chart does not grant");
        let _ = write!(text, "\n{{{{- define \"longshore.rights.controllers.{name}\" }}}}\n{rules}{{{{- end }}}}\n");
    }
    let readers = ROLES.iter().filter(|role| by_use(**role)[""].secrets).map(|role| format!(" (has \"{role}\" .)"));
    let readers: String = readers.collect();
    let _ = write!(
        text,
        "\n{{{{- define \"longshore.rights.secrets\" }}}}{{{{ if or{readers} }}}}true{{{{ end }}}}{{{{- end }}}}\n"
    );
    text
}

/// The flags of the sidecars, each with who has it and what it wants; and those that the chart says itself.
fn flags_template() -> String {
    let known: BTreeMap<&str, serde_json::Value> = table::FLAGS
        .iter()
        .filter(|flag| DECIDED.iter().all(|(decided, _)| *decided != flag.name))
        .map(|flag| {
            let roles: Vec<&str> = flag.defaults.iter().map(|(role, _)| role.name()).collect();
            (flag.name, serde_json::json!({ "roles": roles, "value": flag.kind != table::Kind::Bool }))
        })
        .collect();
    let lines: Vec<String> = known.iter().map(|(name, said)| format!("  \"{name}\": {said}")).collect();
    let names = |decided: &[(&str, &str)]| serde_json::json!(decided.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let gates: Vec<String> = gates().into_iter().map(|gate| format!("  \"{gate}\"")).collect();
    format!(
        "{{{{/* The flags of `longshore sidecar`, from its table: written by `make record`, never by hand. */}}}}\n\n\
         {{{{- define \"longshore.flags\" -}}}}\n{{\n{}\n}}\n{{{{- end -}}}}\n\n\
         {{{{- define \"longshore.flags.decided\" -}}}}\n{}\n{{{{- end -}}}}\n\n\
         {{{{- define \"longshore.controllers.decided\" -}}}}\n{}\n{{{{- end -}}}}\n\n\
         {{{{- define \"longshore.gates\" -}}}}\n[\n{}\n]\n{{{{- end -}}}}\n",
        lines.join(",\n"),
        names(&DECIDED),
        names(&controllers::DECIDED),
        gates.join(",\n"),
    )
}

/// The gates that a sidecar takes.
fn gates() -> BTreeSet<String> {
    let known = |name: &String| crate::sidecar::gates(&format!("{name}=true")).is_ok();
    let of_plugin = |plugin: Plugin| {
        let stem = plugin.gate().strip_prefix("CSIMigration").unwrap();
        [plugin.gate().to_string(), format!("{}Complete", plugin.gate()), format!("InTreePlugin{stem}Unregister")]
    };
    let migration: Vec<String> = Plugin::ALL.into_iter().flat_map(of_plugin).collect();
    assert!(migration.iter().all(known), "{migration:?}");
    // The table has lines for several gates at once, too.
    migration.into_iter().chain(table::GATES.iter().map(|(name, _)| name.to_string()).filter(known)).collect()
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
    match args.part {
        Some(Part::Controllers(args)) => controllers::document(&args).unwrap(),
        Some(Part::Rbac(_)) => panic!("rights alone are not in the chart"),
        None if args.driver.reference_driver => super::manifests(&reference(args.driver).unwrap()).unwrap(),
        None => super::manifests(&args.driver).unwrap(),
    }
}

#[test]
fn the_charts_rights_are_those_of_the_rules() {
    assert_recorded("helm/longshore/templates/_rights.tpl", &rights_template());
}

#[test]
fn the_charts_flags_are_those_of_the_sidecars() {
    assert_recorded("helm/longshore/templates/_flags.tpl", &flags_template());
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
    assert_recorded("kustomize/controllers/controllers.yaml", &printed(&["controllers"]));
    for (file, resource) in [("", "driver.yaml"), ("controllers/", "controllers.yaml")] {
        let base = fs::read_to_string(folder().join(format!("kustomize/{file}kustomization.yaml"))).unwrap();
        let base: serde_json::Value = serde_saphyr::from_str(&base).unwrap();
        assert_eq!(base["resources"], serde_json::json!([resource]));
    }
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
    let controllers = deploy.find_subcommand("controllers").unwrap();
    let all = deploy.get_arguments().chain(controllers.get_arguments());
    let flags: Vec<&str> = all.filter_map(|argument| argument.get_long()).collect();
    assert!(flags.len() > 20, "{flags:?}");
    // Helm has a flag of its own for the namespace.
    for flag in flags.into_iter().filter(|flag| !matches!(*flag, "help" | "namespace")) {
        assert!(values.contains(&format!("--{flag}")), "values.yaml does not say which value is --{flag}");
    }
}
