//! The values of the chart that `longshore deploy` has no flag for, by the real helm; and what it refuses.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::chart::{CHART, DV, IV, OF_RELEASE, home, rendered};
use super::helm::helm;
use super::plane::turn;

/// Every value that decides something about how objects look, and none is as it is by default.
const EVERYTHING: &str = r#"
driver:
  name: csi.example.com
  image: example/driver:1.2
  env: [{name: REGION, value: eu}]
  volumes: [{name: settings, configMap: {name: settings}}]
  volumeMounts: [{name: settings, mountPath: /etc/driver}]
  securityContext: {seLinuxOptions: {type: spc_t}}
  resources: {limits: {memory: 64Mi}}
imagePullPolicy: Always
imagePullSecrets: [{name: registry}]
podAnnotations: {example.com/team: storage}
containers:
- {name: csi-snapshotter, image: snapshotter, args: [-v=5], volumeMounts: [{name: socket, mountPath: /csi}]}
sidecar:
  resources: {limits: {memory: 32Mi}}
  securityContext: {seLinuxOptions: {type: spc_t}}
storageClass:
  reclaimPolicy: Retain
  default: true
  annotations: {example.com/team: storage}
  parameters: {csi.storage.k8s.io/fstype: xfs, iops: "1600000", "on": "true", "a: b": "c\"d"}
  mountOptions: [noatime]
  allowedTopologies: [{matchLabelExpressions: [{key: example.com/zone, values: [a]}]}]
controller:
  nodeSelector: {example.com/control: "true"}
  tolerations: [{key: control, operator: Exists}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]
  priorityClassName: first
node:
  nodeSelector: {example.com/storage: "true"}
  tolerations: [{key: storage, operator: Exists}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: b, operator: Exists}]}]
  priorityClassName: second
controllers:
  enabled: true
  replicas: 3
  nodeSelector: {example.com/plane: "true"}
  tolerations: [{key: plane, operator: Exists}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: c, operator: Exists}]}]
  priorityClassName: third
  resources: {limits: {memory: 96Mi}}
networkPolicy:
  enabled: true
  from: [{namespaceSelector: {matchLabels: {name: monitoring}}}]
  egress: [{ports: [{port: 6443, protocol: TCP}]}]
podDisruptionBudget: {enabled: true}
dashboard: {enabled: true, labels: {board: "yes"}, namespace: default}
serviceMonitor: {enabled: true, labels: {release: kube-prometheus-stack}, interval: 30s}
"#;

/// A file of values.
fn file(name: &str, values: &str) -> PathBuf {
    std::fs::create_dir_all(home()).unwrap();
    let path = home().join(name);
    std::fs::write(&path, values).unwrap();
    path
}

fn with(name: &str, values: &str) -> Result<String, String> {
    let file = format!("--values={}", file(name, values).display());
    helm(&["template", "r", CHART, "--namespace=kube-system", &file], &home(), None)
}

fn objects(text: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    all.into_iter().filter(|object| !object.is_null()).collect()
}

fn of<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

/// The part of a set, a pod's template, with its name.
fn pods(objects: &[Value]) -> Vec<(&str, &Value)> {
    let sets = objects.iter().filter(|object| object["spec"]["template"].is_object());
    sets.map(|set| (set["metadata"]["name"].as_str().unwrap(), &set["spec"]["template"])).collect()
}

fn container<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    pod["spec"]["containers"].as_array().unwrap().iter().find(|container| container["name"] == name)
}

#[test]
fn pods_are_where_and_what_the_values_say() {
    let objects = objects(&with("pods.yaml", EVERYTHING).unwrap());
    let pods = pods(&objects);
    assert_eq!(pods.len(), 3);
    for (set, pod) in pods {
        let (label, key, class, own) = match set {
            "csi-example-com-controller" => ("example.com/control", "a", "first", "32Mi"),
            "csi-example-com-node" => ("example.com/storage", "b", "second", "32Mi"),
            _controllers => ("example.com/plane", "c", "third", "96Mi"),
        };
        let spec = &pod["spec"];
        // Helm adds a map to the one that is there by default.
        assert_eq!(spec["nodeSelector"], json!({ label: "true", "kubernetes.io/os": "linux" }), "{set}");
        assert_eq!(
            spec["tolerations"],
            json!([{ "key": label.split('/').next_back().unwrap(), "operator": "Exists" }])
        );
        let affinity = spec["affinity"]["nodeAffinity"].to_string();
        assert!(affinity.contains(&format!("\"key\":\"{key}\"")), "{set}: {affinity}");
        assert_eq!(spec["priorityClassName"], class);
        assert_eq!(spec["imagePullSecrets"], json!([{ "name": "registry" }]));
        assert_eq!(pod["metadata"]["annotations"], json!({ "example.com/team": "storage" }));
        let ours = container(pod, "longshore").unwrap();
        assert_eq!((&ours["imagePullPolicy"], &ours["resources"]["limits"]["memory"]), (&json!("Always"), &json!(own)));
        assert!(ours["livenessProbe"]["httpGet"]["port"] == ours["ports"][0]["name"], "{ours:#}");
        // Beside the sidecar that controls, and nowhere else.
        assert_eq!(container(pod, "csi-snapshotter").is_some(), set.ends_with("-controller"), "{set}");
        let Some(driver) = container(pod, "driver") else { continue };
        assert_eq!(driver["imagePullPolicy"], "Always");
        assert_eq!(driver["resources"]["limits"], json!({ "memory": "64Mi" }));
        let last = |list: &Value| list.as_array().unwrap().last().unwrap().clone();
        assert_eq!(last(&driver["env"]), json!({ "name": "REGION", "value": "eu" }));
        assert_eq!(last(&driver["volumeMounts"]), json!({ "name": "settings", "mountPath": "/etc/driver" }));
        assert!(
            spec["volumes"]
                .as_array()
                .unwrap()
                .contains(&json!({ "name": "settings", "configMap": { "name": "settings" } }))
        );
        // What stands there otherwise stays.
        for (one, kept) in
            [(driver, if set.ends_with("-node") { "privileged" } else { "seccompProfile" }), (ours, "capabilities")]
        {
            assert_eq!(one["securityContext"]["seLinuxOptions"], json!({ "type": "spc_t" }), "{set}");
            assert!(!one["securityContext"][kept].is_null(), "{set}: {}", one["securityContext"]);
        }
    }
    assert_eq!(of(&objects, "Deployment", "longshore-controllers")["spec"]["replicas"], 3);
}

#[test]
fn other_objects_are_what_the_values_say() {
    let objects = objects(&with("objects.yaml", EVERYTHING).unwrap());
    let class = of(&objects, "StorageClass", "csi.example.com");
    assert_eq!(class["reclaimPolicy"], "Retain");
    let told = json!({ "csi.storage.k8s.io/fstype": "xfs", "iops": "1600000", "on": "true", "a: b": "c\"d" });
    assert_eq!(class["parameters"], told);
    assert_eq!(class["mountOptions"], json!(["noatime"]));
    assert_eq!(class["allowedTopologies"][0]["matchLabelExpressions"][0]["key"], "example.com/zone");
    let notes = json!({ "example.com/team": "storage", "storageclass.kubernetes.io/is-default-class": "true" });
    assert_eq!(class["metadata"]["annotations"], notes);

    let policy = &of(&objects, "NetworkPolicy", "csi-example-com")["spec"];
    assert_eq!(policy["policyTypes"], json!(["Ingress", "Egress"]));
    assert_eq!(policy["egress"], json!([{ "ports": [{ "port": 6443, "protocol": "TCP" }] }]));
    assert_eq!(policy["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"]["name"], "monitoring");
    let selected = json!(["csi-example-com", "longshore-controllers"]);
    assert_eq!(policy["podSelector"]["matchExpressions"][0]["values"], selected);

    // One pod is kept where it is; of two, one.
    for (name, most) in [("csi-example-com-controller", 0), ("longshore-controllers", 1)] {
        assert_eq!(of(&objects, "PodDisruptionBudget", name)["spec"]["maxUnavailable"], most, "{name}");
    }
    for name in ["csi-example-com", "longshore-controllers"] {
        let monitor = of(&objects, "ServiceMonitor", name);
        assert_eq!(monitor["metadata"]["labels"]["release"], "kube-prometheus-stack");
        assert_eq!(monitor["spec"]["endpoints"][0]["interval"], "30s");
    }
    let board = &of(&objects, "ConfigMap", "csi-example-com-dashboard")["metadata"];
    assert_eq!((&board["namespace"], &board["labels"]["board"]), (&json!("default"), &json!("yes")));
    assert_eq!(board["labels"]["grafana_dashboard"], "1", "what stands there otherwise stays");
}

/// Whose they are, by the labels that tools for charts go by; selectors, which can never change, know nothing of it.
#[test]
fn every_object_says_of_which_release_it_is() {
    let objects = objects(&with("labels.yaml", EVERYTHING).unwrap());
    assert!(objects.len() > 15);
    for object in &objects {
        let labels = &object["metadata"]["labels"];
        assert!(OF_RELEASE.iter().all(|label| labels[label].is_string()), "{} {}", object["kind"], object["metadata"]);
        assert_eq!(labels["app.kubernetes.io/instance"], "r");
        let selector = object["spec"]["selector"].to_string();
        assert!(OF_RELEASE.iter().all(|label| !selector.contains(label)), "{selector}");
    }
}

/// The server takes all of it, to the last field; what it does not know yet is the kind of the Prometheus operator.
#[test]
fn what_the_values_say_is_taken_by_the_server() {
    let turn = turn();
    let values = EVERYTHING.replace("serviceMonitor: {enabled: true", "serviceMonitor: {enabled: false");
    let rendered = with("server.yaml", &values).unwrap();
    let path = turn.plane.control.directory().join("everything.yaml");
    std::fs::write(&path, rendered).unwrap();
    let file = format!("--filename={}", path.display());
    let said = turn.plane.control.kubectl(&["apply", "--dry-run=server", "--validate=strict", &file]).unwrap();
    assert!(said.contains("deployment.apps/longshore-controllers created (server dry run)"), "{said}");
}

#[test]
fn what_is_wrong_with_the_values_is_one_sentence() {
    let wrong = |values: &[&str]| rendered(values).unwrap_err();
    assert!(wrong(&["driver.image=x"]).contains("driver.name is empty; give the name"));
    assert!(wrong(&[DV]).contains("driver.image is empty; give the image"));
    assert!(wrong(&["layout=all-in-one"]).contains("leave layout empty"));
    assert!(
        wrong(&[DV, IV, "layout=node-deployment", "driver.attachRequired=true"]).contains("never leave their node")
    );
    assert!(wrong(&["storageClass.create=false", "storageClass.default=true"]).contains("needs a class"));
    assert!(wrong(&[DV, IV, "sidecar.roles={attacher}", "sidecar.capacity=true"]).contains("told by the provisioner"));
    assert!(wrong(&["driver.image=x"]).contains("registry finds without driver.image"));
    // What would do nothing.
    let nobody = "there is no controller beside the nodes' pods in this layout";
    assert!(wrong(&["controller.nodeSelector.a=b"]).contains(nobody));
    assert!(wrong(&[DV, IV, "layout=all-in-one", "controller.priorityClassName=a"]).contains(nobody));
    assert!(wrong(&["podDisruptionBudget.enabled=true"]).contains("a drain leaves pods of a DaemonSet alone"));
    rendered(&["podDisruptionBudget.enabled=true", "controllers.enabled=true"]).unwrap();
    // What the programs would refuse at their start.
    let gate = wrong(&["sidecar.featureGates.Tea=true"]);
    assert!(gate.contains("sidecar.featureGates knows no gate Tea"), "{gate}");
    let arg = |arg: &str| wrong(&[DV, IV, &format!("sidecar.args={{{arg}}}")]);
    assert!(arg("--tea=1").contains("there is no flag --tea; docs/flags.md lists them"));
    assert!(arg("--timeout").contains("--timeout needs a value; write --timeout=VALUE"));
    assert!(arg("timeout=1s").contains("timeout=1s is no flag"));
    assert!(arg("--enable-capacity").contains("--enable-capacity is for the chart to say"));
    let absent = wrong(&["sidecar.args={--workers=3}"]);
    assert!(absent.contains("--workers is a flag of the resizer, which is not among the roles here"), "{absent}");
    let theirs = wrong(&["controllers.enabled=true", "controllers.args={--kubeconfig=/x}"]);
    assert!(theirs.contains("--kubeconfig is for the chart to say"), "{theirs}");
    for folder in ["/var/../k", "/", "//", "var/k", "/a b"] {
        assert!(wrong(&[&format!("kubeletDir={folder}")]).contains("/kubeletDir"), "{folder}");
    }
    // A number would be told as 1.6e+06.
    assert!(wrong(&["storageClass.parameters.iops=1600000"]).contains("/storageClass/parameters/iops"));
    assert!(wrong(&["registry=https://registry.example"]).contains("/registry"));
    // The schema's words.
    assert!(wrong(&["driver.nam=x"]).contains("'nam' not allowed"));
    assert!(wrong(&["sidecar.roles={registrar}"]).contains("/sidecar/roles/0"));
    assert!(wrong(&["driver.name=Not A Name", IV]).contains("/driver/name"));
}

#[test]
fn slashes_at_the_end_of_kubelets_folder_do_not_matter() {
    assert_eq!(rendered(&["kubeletDir=/var/k//"]).unwrap(), rendered(&["kubeletDir=/var/k"]).unwrap());
}
