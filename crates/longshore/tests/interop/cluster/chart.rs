//! The Helm chart, by the real helm: it says what `longshore deploy` says, and comes and goes on the real API server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::helm::{self, helm};
use super::plane::turn;

pub const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/helm/longshore");

pub fn home() -> PathBuf {
    std::env::temp_dir().join(format!("longshore-helm-{}", std::process::id()))
}

/// What the chart says with these values.
pub fn rendered(values: &[&str]) -> Result<String, String> {
    let set: Vec<String> = values.iter().map(|value| format!("--set={value}")).collect();
    let words: Vec<&str> = ["template", "r", CHART, "--namespace=kube-system"].into_iter().collect();
    helm(&words.into_iter().chain(set.iter().map(String::as_str)).collect::<Vec<_>>(), &home(), None)
}

/// What `longshore deploy` says.
pub fn printed(flags: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_longshore")).arg("deploy").args(flags).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Labels of every object of a chart.
pub const OF_RELEASE: [&str; 3] = ["app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart"];

/// Objects by what they are, and what they say however it is written.
pub fn meant(text: &str) -> BTreeMap<String, Value> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let mut found = BTreeMap::new();
    for mut object in objects.into_iter().filter(|object| !object.is_null()) {
        let name = format!("{} {} {}", object["kind"], object["metadata"]["namespace"], object["metadata"]["name"]);
        // Which release of which chart it is, only the chart can say.
        if let Some(labels) = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
            labels.retain(|label, _| !OF_RELEASE.contains(&label.as_str()));
            if labels.is_empty() {
                object["metadata"].as_object_mut().unwrap().remove("labels");
            }
        }
        if object["rules"].is_array() {
            object["rules"] = rights(&object["rules"]);
        }
        if let Some(board) = object["data"]["longshore.json"].as_str() {
            object["data"] = serde_json::from_str(board).unwrap();
        }
        assert!(found.insert(name.clone(), object).is_none(), "{name} is there twice");
    }
    found
}

/// Each right on its own, so that it does not matter which of them share a rule.
fn rights(rules: &Value) -> Value {
    let words = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_string()).collect()
    };
    let mut all = BTreeSet::new();
    for rule in rules.as_array().unwrap() {
        let names = if rule["resourceNames"].is_null() { vec!["*".into()] } else { words(&rule["resourceNames"]) };
        for group in words(&rule["apiGroups"]) {
            for resource in words(&rule["resources"]) {
                for name in &names {
                    for verb in words(&rule["verbs"]) {
                        all.insert(format!("{verb} {group}/{resource} {name}"));
                    }
                }
            }
        }
    }
    json!(all)
}

/// Flags, and the values that are to mean the same.
const SAME: [(&[&str], &[&str]); 15] = [
    (&["--reference-driver"], &[]),
    (
        &[
            "--reference-driver",
            "--roles=provisioner,resizer",
            "--monitoring",
            "--kubelet-dir=/var/k",
            "--default-class",
        ],
        &[
            "sidecar.roles={provisioner,resizer}",
            "serviceMonitor.enabled=true",
            "dashboard.enabled=true",
            "kubeletDir=/var/k",
            "storageClass.default=true",
        ],
    ),
    (
        &["--reference-driver", "--driver-image=r/d:2", "--driver-arg=--pool-bytes=5", "--image=r/l:2", "--name=disks"],
        &[
            "driver.name=local.csi.longshore",
            "driver.image=r/d:2",
            "driver.args={--pool-bytes=5}",
            "image=r/l:2",
            "name=disks",
        ],
    ),
    (&[D, I], &[DV, IV]),
    (
        &[
            D,
            I,
            "--driver-arg=--endpoint=$(CSI_ENDPOINT)",
            "--controller-arg=-c",
            "--node-arg=-n",
            "--secret=default/b",
            "--secret=default/a",
            "--secret=other/a",
        ],
        &[
            DV,
            IV,
            "driver.args={--endpoint=$(CSI_ENDPOINT)}",
            "driver.controllerArgs={-c}",
            "driver.nodeArgs={-n}",
            "sidecar.secrets[0].namespace=default",
            "sidecar.secrets[0].name=b",
            "sidecar.secrets[1].namespace=default",
            "sidecar.secrets[1].name=a",
            "sidecar.secrets[2].namespace=other",
            "sidecar.secrets[2].name=a",
        ],
    ),
    (
        &[D, I, "--all-in-one", "--controller-arg=-c", "--node-arg=-n", "--node-arg=-c", "--capacity", "--monitoring"],
        &[
            DV,
            IV,
            "layout=all-in-one",
            "driver.controllerArgs={-c}",
            "driver.nodeArgs={-n,-c}",
            "sidecar.capacity=true",
            "serviceMonitor.enabled=true",
            "dashboard.enabled=true",
        ],
    ),
    (
        &[D, I, "--node-deployment", "--wait-for-consumer", "--capacity", "--snapshots=false"],
        &[
            DV,
            IV,
            "layout=node-deployment",
            "storageClass.waitForConsumer=true",
            "sidecar.capacity=true",
            "driver.snapshots=false",
        ],
    ),
    (
        &[D, I, "--node-deployment", "--roles=provisioner,resizer", "--storage-class="],
        &[DV, IV, "layout=node-deployment", "sidecar.roles={provisioner,resizer}", "storageClass.create=false"],
    ),
    (
        &[
            D,
            I,
            "--attach-required=false",
            "--pod-info",
            "--ephemeral",
            "--fs-group-policy=None",
            "--storage-class=gold",
        ],
        &[
            DV,
            IV,
            "driver.attachRequired=false",
            "driver.podInfo=true",
            "driver.ephemeral=true",
            "driver.fsGroupPolicy=None",
            "storageClass.name=gold",
        ],
    ),
    (
        &[
            D,
            I,
            "--feature-gates=CrossNamespaceVolumeDataSource=true,Topology=false,VolumeAttributesClass=false",
            "--capacity",
        ],
        &[
            DV,
            IV,
            "sidecar.featureGates.CrossNamespaceVolumeDataSource=true",
            "sidecar.featureGates.Topology=false",
            "sidecar.featureGates.VolumeAttributesClass=false",
            "sidecar.capacity=true",
        ],
    ),
    (&[D, I, "--roles=attacher"], &[DV, IV, "sidecar.roles={attacher}"]),
    (
        &["--reference-driver", "--registry=registry.example:5000/storage/"],
        &["registry=registry.example:5000/storage/"],
    ),
    (
        &["--reference-driver", "--registry=registry.example", "--image=other/l:2"],
        &["global.imageRegistry=registry.example", "image=other/l:2"],
    ),
    (
        &[
            D,
            I,
            "--sidecar-arg=--retry-interval-max=1m",
            "--sidecar-arg=-v=5",
            "--sidecar-arg=--extra-create-metadata",
            "--sidecar-arg=--probe-timeout=2s",
        ],
        &[DV, IV, "sidecar.args={--retry-interval-max=1m,-v=5,--extra-create-metadata,--probe-timeout=2s}"],
    ),
    (
        &[D, I, "--roles=resizer,provisioner", "--secret=default/a"],
        &[
            DV,
            IV,
            "sidecar.roles={resizer,provisioner}",
            "sidecar.secrets[0].namespace=default",
            "sidecar.secrets[0].name=a",
        ],
    ),
];
pub const D: &str = "--driver-name=csi.example.com";
pub const I: &str = "--driver-image=example/driver:1.2";
pub const DV: &str = "driver.name=csi.example.com";
pub const IV: &str = "driver.image=example/driver:1.2";

#[test]
fn the_chart_says_what_deploy_says() {
    for (flags, values) in SAME {
        let (deployed, charted) = (meant(&printed(flags)), meant(&rendered(values).unwrap()));
        assert_eq!(
            charted.keys().collect::<Vec<_>>(),
            deployed.keys().collect::<Vec<_>>(),
            "other objects with {values:?}"
        );
        for (name, object) in &deployed {
            assert_eq!(&charted[name], object, "{name} with {values:?}");
        }
    }
}

/// `longshore controllers` besides: nothing of the driver is another.
#[test]
fn the_chart_has_the_controllers_that_deploy_prints() {
    for (flags, values) in [
        (&[][..], &[][..]),
        (
            &["--controllers=*,nodelifecycle", "--arg=--force-detach-after=5m", "--monitoring", "--registry=r.example"],
            &[
                "controllers.run={nodelifecycle,attachdetach,scheduler,binding}",
                "controllers.args={--force-detach-after=5m}",
                "serviceMonitor.enabled=true",
                "registry=r.example",
            ],
        ),
    ] {
        let without = meant(&rendered(values).unwrap());
        let mut with = meant(&rendered(&[&["controllers.enabled=true"], values].concat()).unwrap());
        for (name, object) in &without {
            assert_eq!(with.remove(name).as_ref(), Some(object), "{name} with {values:?}");
        }
        assert_eq!(with, meant(&printed(&[&["controllers"], flags].concat())), "with {values:?}");
    }
}

#[test]
fn helm_finds_nothing_to_say_about_the_chart() {
    helm(&["lint", "--strict", CHART], &home(), None).unwrap();
}

/// The chart before this one installed, upgraded to this one and to what it offers, back, and gone.
#[test]
fn the_chart_comes_changes_and_goes() {
    let turn = turn();
    let control = &turn.plane.control;
    let run = |words: &[&str]| {
        let all = [words, &["--namespace=kube-system"]].concat();
        helm(&all, &home(), Some(control.kubeconfig())).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    };
    let kinds = "csidriver,storageclass,clusterrole,clusterrolebinding,role,rolebinding,serviceaccount,statefulset,\
                 daemonset,networkpolicy,poddisruptionbudget,configmap";
    let ours = || -> Vec<String> {
        let all = control.kubectl(&["get", kinds, "--namespace=kube-system", "--output=name"]).unwrap();
        let named = |line: &&str| line.contains("csi-example-com") || line.contains("csi.example.com");
        all.lines().filter(named).map(String::from).collect()
    };
    let node = |path: &str| {
        let path = format!("--output=jsonpath={{{path}}}");
        control.kubectl(&["get", "daemonset/csi-example-com-node", "--namespace=kube-system", &path]).unwrap()
    };
    assert_eq!(ours(), [""; 0]);
    let set = [format!("--set={DV}"), format!("--set={IV}")];
    let notes = run(&["install", "r", helm::BEFORE, &set[0], &set[1]]);
    assert!(notes.contains("rollout status -n kube-system daemonset/csi-example-com-node"), "{notes}");
    let before = ours();
    assert!(before.iter().any(|name| name == "statefulset.apps/csi-example-com-controller"), "{before:?}");
    // The values of the release alone, then also what this chart did not know before.
    run(&["upgrade", "r", CHART, "--reuse-values"]);
    assert_eq!((ours(), node(".spec.updateStrategy.rollingUpdate.maxUnavailable").as_str()), (before.clone(), "1"));
    let options = [
        "--reset-then-reuse-values",
        "--set=networkPolicy.enabled=true",
        "--set=podDisruptionBudget.enabled=true",
        "--set=dashboard.enabled=true",
        "--set=networkPolicy.from[0].podSelector.matchLabels.a=b",
        "--set=driver.args={--more}",
        "--set=node.updateStrategy.rollingUpdate.maxUnavailable=10%",
    ];
    run(&[&["upgrade", "r", CHART][..], &options].concat());
    let more: Vec<String> = ours().into_iter().filter(|name| !before.contains(name)).collect();
    assert_eq!(
        more,
        [
            "networkpolicy.networking.k8s.io/csi-example-com",
            "poddisruptionbudget.policy/csi-example-com-controller",
            "configmap/csi-example-com-dashboard",
        ]
    );
    assert!(node("..args").contains("--more"));
    assert_eq!(node(".spec.updateStrategy.rollingUpdate.maxUnavailable"), "10%");
    // Back to what was there, and away.
    run(&["rollback", "r", "1"]);
    assert_eq!((ours(), node("..args").contains("--more")), (before, false));
    run(&["uninstall", "r", "--wait=watcher", "--timeout=60s"]);
    assert_eq!(ours(), [""; 0]);
}

/// Beside a driver of one's own, with helm or without, as the README says.
#[test]
fn what_the_readme_says_to_type_is_taken() {
    let turn = turn();
    let control = &turn.plane.control;
    let place = Path::new(env!("CARGO_BIN_EXE_longshore")).parent().unwrap().display();
    let run = |command: &str| {
        let command = format!("PATH={place}:$PATH; {}", command.replace(&helm::archive(), CHART));
        helm::typed(&command, &home(), control.kubeconfig()).unwrap_or_else(|error| panic!("{command}: {error}"))
    };
    let ours = || {
        let kinds = "csidriver,storageclass,clusterrole,serviceaccount,statefulset,daemonset";
        let all = control.kubectl(&["get", kinds, "--namespace=kube-system", "--output=name"]).unwrap();
        let named = |line: &&str| line.contains("my-csi-example") || line.contains("my.csi.example");
        all.lines().filter(named).map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(ours(), [""; 0]);
    run(&helm::of_readme("helm install mine"));
    let charted = ours();
    assert!(charted.len() > 5, "{charted:?}");
    run("helm uninstall mine --namespace kube-system --wait=watcher --timeout=60s");
    assert_eq!(ours(), [""; 0]);
    let deploy = helm::of_readme("longshore deploy");
    run(&deploy);
    assert_eq!(ours(), charted);
    run(&deploy.replace("kubectl apply", "kubectl delete"));
    assert_eq!(ours(), [""; 0]);
}
