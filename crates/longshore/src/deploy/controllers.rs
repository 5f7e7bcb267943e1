//! `longshore deploy controllers`: `longshore controllers` in a cluster, as two pods of which one works.

use std::collections::BTreeSet;

use clap::{Args, Parser as _};

use super::check::{self, quoted, scalar};
use super::workload::{self, PORT, TOKEN};
use super::{Images, NAMESPACE, monitoring, rbac, rights};
use crate::commands::controllers::{CLUSTER, ClusterController};
use crate::sidecar::health;

/// Flags of `longshore controllers` that the objects around it hang on, and what says them instead.
pub const DECIDED: [(&str, &str); 6] = [
    ("controllers", "use --controllers"),
    ("csi-address", "a driver is not in these pods, but beside a sidecar of its own"),
    ("http-endpoint", "leave it out"),
    ("kubeconfig", "leave it out"),
    ("leader-elect", "leave it out"),
    ("leader-elect-resource-namespace", "use --namespace"),
];

/// The controllers to deploy.
#[derive(Args, Clone)]
pub struct DeployControllers {
    /// Which of them, such as binding,attachdetach; * is all but nodelifecycle, -scheduler leaves that one out
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        allow_hyphen_values = true,
        default_value = "*,-scheduler"
    )]
    controllers: Vec<String>,
    /// A further argument of `longshore controllers`, such as --force-detach-after=5m (repeat for more)
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    args: Vec<String>,
    #[command(flatten)]
    images: Images,
    /// Where they and their Lease are; it must exist
    #[arg(long, short, value_name = "NAMESPACE", default_value = NAMESPACE)]
    namespace: String,
    /// Also print a ServiceMonitor, for the Prometheus operator
    #[arg(long)]
    monitoring: bool,
}

/// All objects, in an order in which they can be applied. An error is a sentence.
pub fn document(args: &DeployControllers) -> Result<String, String> {
    let chosen = ClusterController::named(&args.controllers)?;
    if chosen.is_empty() {
        return Err("--controllers names none; name what to run, such as --controllers=binding,attachdetach".into());
    }
    let namespace = check::label("--namespace", &args.namespace)?;
    let told = told(&chosen, &namespace, &args.args)?;
    let holder = rbac::Holder { account: CLUSTER.into(), namespace: namespace.clone(), driver: None };
    let rights = rights::Rights::default().with_controllers(&chosen);
    let mut objects = vec![
        rbac::document(&holder, &BTreeSet::new(), &rights, &[]),
        deployment(&namespace, &args.images.longshore()?, &told),
    ];
    objects.extend(args.monitoring.then(|| monitoring::scraped(CLUSTER, &namespace)));
    Ok(objects.join("---\n"))
}

/// The arguments of the container, which `longshore controllers` could begin with.
fn told(chosen: &BTreeSet<ClusterController>, namespace: &str, more: &[String]) -> Result<Vec<String>, String> {
    for given in more {
        let bare = given.trim_start_matches('-');
        let name = bare.split_once('=').map_or(bare, |(name, _)| name);
        if let Some((_, instead)) = DECIDED.iter().find(|(decided, _)| *decided == name) {
            return Err(format!("--arg {given}: --{name} is for longshore deploy to say; {instead}"));
        }
    }
    let names: Vec<&str> = chosen.iter().map(|one| one.name()).collect();
    let own = [
        "controllers".to_string(),
        format!("--controllers={}", names.join(",")),
        "--leader-elect".into(),
        format!("--leader-elect-resource-namespace={namespace}"),
        format!("--http-endpoint=:{PORT}"),
    ];
    let all: Vec<String> = own.into_iter().chain(more.iter().cloned()).collect();
    let words = std::iter::once("longshore").chain(all.iter().map(String::as_str));
    let crate::args::Command::Controllers(read) =
        crate::args::Cli::try_parse_from(words).map_err(|error| sentence(&error))?.command
    else {
        return Err("--arg is for arguments of longshore controllers alone".into());
    };
    read.check().map_err(|why| format!("--arg: {why}"))?;
    Ok(all)
}

/// What clap says in its first line.
fn sentence(error: &clap::Error) -> String {
    let all = error.to_string();
    let first = all.lines().next().unwrap_or_default();
    format!("--arg: {}", first.strip_prefix("error: ").unwrap_or(first))
}

fn deployment(namespace: &str, image: &str, told: &[String]) -> String {
    let labels = format!("app.kubernetes.io/name: {CLUSTER}, app.kubernetes.io/component: controllers");
    let container = format!(
        "- name: longshore\n  image: {}\n{}{}  resources: {{requests: {{cpu: 10m, memory: 32Mi}}}}\n  \
         securityContext:\n    \
         runAsUser: 65532\n    runAsNonRoot: true\n    readOnlyRootFilesystem: true\n    \
         allowPrivilegeEscalation: false\n    capabilities: {{drop: [ALL]}}\n    \
         seccompProfile: {{type: RuntimeDefault}}\n  \
         volumeMounts:\n  - {{name: token, mountPath: {TOKEN}, readOnly: true}}\n",
        quoted(image),
        workload::args(told),
        workload::probed(health::DRIVER),
    );
    let pod = format!(
        "serviceAccountName: {CLUSTER}\nautomountServiceAccountToken: false\n\
         priorityClassName: system-cluster-critical\nnodeSelector: {{kubernetes.io/os: linux}}\n\
         topologySpreadConstraints: # a node that dies takes one of them along\n\
         - maxSkew: 1\n  topologyKey: kubernetes.io/hostname\n  whenUnsatisfiable: ScheduleAnyway\n  \
         labelSelector: {{matchLabels: {{{labels}}}}}\n\
         containers:\n{container}volumes:\n{}",
        workload::token(""),
    );
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {CLUSTER}\n  namespace: {}\n  labels: {{{labels}}}\n\
         spec:\n  replicas: 2 # one works, the other has warm caches\n  selector:\n    matchLabels: {{{labels}}}\n  \
         template:\n    metadata:\n      labels: {{{labels}}}\n    spec:\n{}",
        scalar(namespace),
        workload::indented(6, &pod),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::args::{Cli, Command};

    fn printed(more: &[&str]) -> Result<Vec<Value>, String> {
        let words = ["longshore", "deploy", "controllers"];
        let Command::Deploy(args) = Cli::try_parse_from(words.iter().chain(more)).unwrap().command else { panic!() };
        let Some(crate::deploy::Part::Controllers(args)) = args.part else { panic!() };
        document(&args).map(|text| serde_saphyr::from_multiple(&text).unwrap())
    }

    fn of<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
        objects.iter().find(|object| object["kind"] == kind).unwrap()
    }

    #[test]
    fn two_stand_by_for_each_other_with_the_rights_of_those_chosen() {
        let objects =
            printed(&["--monitoring", "--namespace=storage", "--arg=--force-detach-after=5m", "--registry=r.example"])
                .unwrap();
        let deployment = &of(&objects, "Deployment")["spec"];
        assert_eq!(deployment["replicas"], 2);
        let pod = &deployment["template"];
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["image"], concat!("r.example/longshore:", env!("CARGO_PKG_VERSION")));
        let args: Vec<&str> = container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        assert_eq!(
            args,
            [
                "controllers",
                "--controllers=binding,attachdetach",
                "--leader-elect",
                "--leader-elect-resource-namespace=storage",
                "--http-endpoint=:9808",
                "--force-detach-after=5m",
            ]
        );
        assert_eq!(of(&objects, "ServiceMonitor")["spec"]["endpoints"][0]["port"], container["ports"][0]["name"]);
        let service = &of(&objects, "Service")["spec"]["selector"];
        assert_eq!(service["app.kubernetes.io/name"], pod["metadata"]["labels"]["app.kubernetes.io/name"]);
        // Pods are only ended by those who look after nodes.
        let rights = |objects: &[Value]| of(objects, "ClusterRole")["rules"].to_string();
        assert!(
            !rights(&objects).contains("coordination.k8s.io\"],\"resources\":[\"leases\"],\"verbs\":[\"get\",\"list")
        );
        assert_ne!(rights(&objects), rights(&printed(&["--controllers=*,nodelifecycle"]).unwrap()));
    }

    #[test]
    fn what_they_could_not_begin_with_is_one_sentence() {
        for (given, words) in [
            ("--arg=--leader-elect", "is for longshore deploy to say; leave it out"),
            ("--arg=--kubeconfig=/x", "is for longshore deploy to say; leave it out"),
            ("--arg=--tea", "--arg: unexpected argument '--tea' found"),
            ("--arg=--force-detach-after=soon", "--arg: invalid value 'soon'"),
            ("--arg=--feature-gates=Tea=true", "--arg: --feature-gates: there is no migration gate"),
            ("--arg=--leader-election-lease-duration=1s", "--arg: leader election cannot work so"),
            ("--controllers=teapot", "there is no controller teapot"),
            ("--controllers=-binding", "--controllers names none"),
        ] {
            let said = printed(&[given]).unwrap_err();
            assert!(said.contains(words) && !said.contains('\n'), "{said}");
        }
    }
}
