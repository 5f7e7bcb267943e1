//! What `longshore deploy` prints, on the real API server.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use prove_cluster::{PeerProcess, Scratch, eventually};
use serde_json::Value;

use super::plane::{Turn, turn};
use super::rights::write_kubeconfig;

const DRIVER: &str = "csi.example.com";
const CONTROLLERS: &str = "longshore-controllers";
const PATIENCE: Duration = Duration::from_secs(60);

fn printed(more: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_longshore"))
        .args(["deploy", "--driver-name", DRIVER, "--driver-image", "example/driver:1.2"])
        .args(["--driver-arg=--endpoint=$(CSI_ENDPOINT)", "--secret=default/key", "--pod-info", "--ephemeral"])
        .args(more)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn get(turn: &Turn, what: &[&str]) -> Value {
    let words = [&["get", "--namespace=kube-system", "--output=json"], what].concat();
    serde_json::from_str(&turn.plane.control.kubectl(&words).unwrap()).unwrap()
}

/// The API server takes it, strictly, and changes nothing of what it was given.
fn apply(turn: &Turn, text: &str) {
    let file = turn.plane.control.directory().join("deploy.yaml");
    std::fs::write(&file, text).unwrap();
    let control = &turn.plane.control;
    let file = format!("--filename={}", file.display());
    control.kubectl(&["apply", "--dry-run=server", "--validate=strict", &file]).unwrap();
    let again = control.kubectl(&["get", "csidrivers", DRIVER, "--ignore-not-found"]).unwrap();
    assert_eq!(again, "", "a dry run leaves nothing");
    control.kubectl(&["apply", "--validate=strict", &file]).unwrap();
    // What is stored is what was asked for: applied again, nothing changes.
    let same = control.kubectl(&["apply", &file]).unwrap();
    assert!(same.lines().all(|line| line.ends_with(" unchanged")), "{same}");
}

fn delete(turn: &Turn) {
    let file = format!("--filename={}", turn.plane.control.directory().join("deploy.yaml").display());
    turn.plane.control.kubectl(&["delete", "--wait=false", &file]).unwrap();
    turn.plane.control.kubectl(&["delete", "pod", "--all", "--namespace=kube-system", "--force"]).unwrap();
}

/// Waits until the controllers made the pods and the scheduler placed them, and returns them.
fn pods(turn: &Turn, number: usize) -> Vec<Value> {
    let found = eventually("the pods to be placed", PATIENCE, || {
        let list = get(turn, &["pods"]);
        let placed: Vec<Value> = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|pod| !pod["spec"]["nodeName"].is_null())
            .cloned()
            .collect();
        if placed.len() == number { Ok(placed) } else { Err(format!("{list:#}")) }
    });
    found.unwrap()
}

/// reliability 5.2: in every pod, only the driver on a node is privileged, and only the sidecar has a token.
fn assert_least_privilege(pod: &Value) {
    let on_node = pod["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet";
    assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    assert!(pod["spec"]["hostNetwork"].is_null() && pod["spec"]["hostPID"].is_null());
    for container in pod["spec"]["containers"].as_array().unwrap() {
        let (context, sidecar) = (&container["securityContext"], container["name"] == "longshore");
        assert_eq!(context["privileged"] == true, on_node && !sidecar, "{container:#}");
        let mounts = container["volumeMounts"].as_array().unwrap();
        let mounts_token = mounts.iter().any(|mount| mount["mountPath"].as_str().unwrap().contains("serviceaccount"));
        assert!(sidecar || !mounts_token, "{container:#}");
        let propagates = mounts.iter().any(|mount| mount["mountPropagation"] == "Bidirectional");
        assert_eq!(propagates, on_node && !sidecar, "{container:#}");
        if sidecar {
            assert_eq!(context["readOnlyRootFilesystem"], true);
            assert_eq!(context["allowPrivilegeEscalation"], false);
            assert_eq!(context["capabilities"]["drop"][0], "ALL");
            assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault");
            assert!(context["capabilities"]["add"].is_null());
        }
        // Each is asked after at the sidecar's port, and only about itself.
        let probe = &container["livenessProbe"]["httpGet"];
        assert_eq!(probe["path"], if sidecar { "/livez" } else { "/healthz" });
        assert_eq!(probe["port"], if sidecar { container["ports"][0]["name"].clone() } else { 9808.into() });
    }
}

/// The sidecar takes its arguments: it gets as far as telling its version.
fn assert_arguments_are_known(pod: &Value) {
    let containers = pod["spec"]["containers"].as_array().unwrap();
    let sidecar = containers.iter().find(|container| container["name"] == "longshore").unwrap();
    let arguments = sidecar["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let output = Command::new(env!("CARGO_BIN_EXE_longshore"))
        .args(arguments)
        .arg("--version")
        .env_clear()
        .envs([("POD_NAME", "p"), ("NAMESPACE", "n"), ("NODE_NAME", "n")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn kinds(turn: &Turn) -> Vec<String> {
    let kinds =
        "csidriver,storageclass,clusterrole,clusterrolebinding,role,rolebinding,serviceaccount,statefulset,daemonset";
    let printed = turn.plane.control.kubectl(&["get", kinds, "--namespace=kube-system", "--output=name"]).unwrap();
    let ours = |line: &&str| line.contains("csi-example-com") || line.contains(DRIVER);
    printed.lines().filter(ours).map(String::from).collect()
}

// S0-65 to S0-70.
#[test]
fn the_controller_set_and_the_node_set_are_taken_and_their_pods_placed() {
    let turn = turn();
    apply(&turn, &printed(&[]));
    assert_eq!(
        kinds(&turn),
        [
            "csidriver.storage.k8s.io/csi.example.com",
            "storageclass.storage.k8s.io/csi.example.com",
            "clusterrole.rbac.authorization.k8s.io/csi-example-com-controller",
            "clusterrolebinding.rbac.authorization.k8s.io/csi-example-com-controller",
            "role.rbac.authorization.k8s.io/csi-example-com-controller",
            "rolebinding.rbac.authorization.k8s.io/csi-example-com-controller",
            "serviceaccount/csi-example-com-controller",
            "serviceaccount/csi-example-com-node",
            "statefulset.apps/csi-example-com-controller",
            "daemonset.apps/csi-example-com-node",
        ]
    );
    let driver = get(&turn, &["csidriver", DRIVER]);
    assert_eq!((&driver["spec"]["attachRequired"], &driver["spec"]["podInfoOnMount"]), (&true.into(), &true.into()));
    for pod in pods(&turn, 2) {
        assert_least_privilege(&pod);
        assert_arguments_are_known(&pod);
    }
    delete(&turn);
    assert_eq!(kinds(&turn), Vec::<String>::new());
}

// S0-71.
#[test]
fn everything_in_one_set_elects_a_leader() {
    let turn = turn();
    apply(&turn, &printed(&["--all-in-one", "--attach-required=false", "--storage-class=", "--capacity"]));
    let all = kinds(&turn);
    assert!(!all.iter().any(|name| name.contains("statefulset") || name.contains("storageclass")), "{all:?}");
    let pods = pods(&turn, 1);
    assert_least_privilege(&pods[0]);
    assert_arguments_are_known(&pods[0]);
    let containers = pods[0]["spec"]["containers"].to_string();
    assert!(
        containers.contains("--leader-election")
            && containers.contains("--roles=provisioner,resizer,registrar,liveness")
    );
    delete(&turn);
    assert_eq!(kinds(&turn), Vec::<String>::new());
}

// P93, in the shape of S0-71: no leader, because each makes the volumes of its own node.
#[test]
fn every_node_makes_its_own_volumes() {
    let turn = turn();
    apply(&turn, &printed(&["--node-deployment", "--capacity", "--wait-for-consumer"]));
    let all = kinds(&turn);
    assert!(!all.iter().any(|name| name.contains("statefulset") || name.contains("-controller")), "{all:?}");
    assert_eq!(get(&turn, &["csidriver", DRIVER])["spec"]["attachRequired"], false);
    let pods = pods(&turn, 1);
    assert_least_privilege(&pods[0]);
    assert_arguments_are_known(&pods[0]);
    let containers = pods[0]["spec"]["containers"].as_array().unwrap();
    let sidecar = containers.iter().find(|container| container["name"] == "longshore").unwrap();
    let environment = sidecar["env"].to_string();
    assert!(environment.contains("NODE_NAME") && environment.contains("spec.nodeName"), "{environment}");
    let arguments = sidecar["args"].to_string();
    assert!(arguments.contains("--node-deployment") && arguments.contains("--roles=provisioner,registrar,liveness"));
    assert!(!arguments.contains("--leader-election"), "{arguments}");
    delete(&turn);
    assert_eq!(kinds(&turn), Vec::<String>::new());
}

/// The Deployment as it is printed: two pods, and a process with the arguments and the rights of one of them leads.
#[test]
fn the_controllers_are_taken_and_work_with_the_rights_they_come_with() {
    let turn = turn();
    let output = Command::new(env!("CARGO_BIN_EXE_longshore")).args(["deploy", "controllers"]).output().unwrap();
    apply(&turn, &String::from_utf8(output.stdout).unwrap());
    let pods = pods(&turn, 2);
    let spec = &pods[0]["spec"];
    assert_eq!(
        (&spec["automountServiceAccountToken"], &spec["serviceAccountName"]),
        (&false.into(), &CONTROLLERS.into())
    );
    let container = &spec["containers"][0];
    let context = &container["securityContext"];
    assert!(context["runAsNonRoot"] == true && context["readOnlyRootFilesystem"] == true, "{context}");
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/healthz");

    let scratch = Scratch::new("controllers").unwrap();
    let config = scratch.path().join("kubeconfig");
    write_kubeconfig(&turn.plane.control, "kube-system", CONTROLLERS, &config);
    let printed = container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_string());
    // The port of the pod is anybody's on this machine.
    let mut words: Vec<String> = printed.map(|word| word.replace(":9808", "127.0.0.1:0")).collect();
    words.push(format!("--kubeconfig={}", config.display()));
    let program = Path::new(env!("CARGO_BIN_EXE_longshore"));
    let mut process = PeerProcess::start(CONTROLLERS, program, &words, scratch.path()).unwrap();
    eventually("it to lead", PATIENCE, || {
        process.check().map_err(|error| error.to_string())?;
        let holder =
            ["get", "lease", CONTROLLERS, "--namespace=kube-system", "--output=jsonpath={.spec.holderIdentity}"];
        match turn.plane.control.kubectl(&holder) {
            Ok(holder) if !holder.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .unwrap();
    assert!(process.terminate(PATIENCE).unwrap().success());
    delete(&turn);
    turn.plane.control.kubectl(&["delete", "lease", CONTROLLERS, "--namespace=kube-system"]).unwrap();
    let left =
        ["get", "deployment,clusterrole,clusterrolebinding,role,rolebinding,serviceaccount", "--namespace=kube-system"];
    let left = turn.plane.control.kubectl(&[&left[..], &["--output=name"]].concat()).unwrap();
    assert!(!left.contains(CONTROLLERS), "{left}");
}
