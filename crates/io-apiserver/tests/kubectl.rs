//! The unmodified kubectl against the server, over TLS.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader};

use common::Harbor;

const OBJECTS: &str = r#"
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: local.csi.longshore
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, labels: {app: db}}
spec:
  storageClassName: fast
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: main, image: busybox}
  volumes:
  - {name: v, persistentVolumeClaim: {claimName: data}}
"#;

fn with_objects() -> Harbor {
    let harbor = Harbor::start();
    let said = harbor.kubectl_with(&["apply", "-f", "-"], OBJECTS).fine();
    for line in [
        "storageclass.storage.k8s.io/fast created",
        "persistentvolumeclaim/data created",
        "node/n1 created",
        "pod/web created",
    ] {
        assert!(said.contains(line), "{said}");
    }
    harbor
}

#[test]
fn apply_twice_changes_nothing_and_apply_of_a_change_patches() {
    let harbor = with_objects();
    let again = harbor.kubectl_with(&["apply", "-f", "-"], OBJECTS).fine();
    assert_eq!(again.matches("unchanged").count(), 4, "{again}");
    let grown = harbor.kubectl_with(&["apply", "-f", "-"], &OBJECTS.replace("app: db", "app: web")).fine();
    assert!(grown.contains("persistentvolumeclaim/data configured"), "{grown}");
    let label = harbor.kubectl(&["get", "pvc", "data", "-o", "jsonpath={.metadata.labels.app}"]).fine();
    assert_eq!(label, "web");
    let applied = harbor.kubectl_with(&["apply", "--server-side", "--force-conflicts", "-f", "-"], OBJECTS).fine();
    assert_eq!(applied.matches("serverside-applied").count(), 4, "{applied}");
    harbor.kubectl_with(&["diff", "-f", "-"], OBJECTS).fine();
}

#[test]
fn get_prints_the_columns_people_know() {
    let harbor = with_objects();
    for (kind, columns, cells) in [
        ("pvc", &["NAME", "STATUS", "VOLUME", "CAPACITY", "STORAGECLASS", "AGE"][..], &["data", "Pending", "fast"][..]),
        ("sc", &["NAME", "PROVISIONER", "RECLAIMPOLICY", "VOLUMEBINDINGMODE"], &["fast", "local.csi.longshore"]),
        ("pods", &["NAME", "READY", "STATUS", "RESTARTS", "AGE"], &["web", "0/1", "Pending"]),
        ("nodes", &["NAME", "STATUS", "ROLES", "AGE", "VERSION"], &["n1"]),
        ("ns", &["NAME", "STATUS", "AGE"], &["default", "kube-system", "Active"]),
    ] {
        let said = harbor.kubectl(&["get", kind]).fine();
        let head = said.lines().next().unwrap();
        assert!(columns.iter().all(|column| head.contains(column)), "{said}");
        assert!(cells.iter().all(|cell| said.contains(cell)), "{said}");
    }
    let wide = harbor.kubectl(&["get", "pods", "-A", "-o", "wide"]).fine();
    assert!(wide.starts_with("NAMESPACE") && wide.contains("NODE"), "{wide}");
    let none = harbor.kubectl(&["get", "pods", "-l", "app=other"]);
    assert!(none.ok && none.err.contains("No resources found"), "{}", none.err);
}

#[test]
fn describe_and_explain_work() {
    let harbor = with_objects();
    let claim = harbor.kubectl(&["describe", "pvc", "data"]).fine();
    assert!(claim.contains("StorageClass:  fast") && claim.contains("Used By:       web"), "{claim}");
    let pod = harbor.kubectl(&["describe", "pod", "web"]).fine();
    assert!(pod.contains("ClaimName:   data"), "{pod}");
    harbor.kubectl(&["describe", "node", "n1"]).fine();
    harbor.kubectl(&["describe", "sc", "fast"]).fine();
    let explained = harbor.kubectl(&["explain", "pvc.spec.resources"]).fine();
    assert!(explained.contains("requests\t<map[string]Quantity>"), "{explained}");
}

#[test]
fn label_patch_and_wait_work() {
    let harbor = with_objects();
    harbor.kubectl(&["label", "pvc", "data", "tier=gold"]).fine();
    let test = r#"[{"op":"test","path":"/metadata/labels/tier","value":"gold"},{"op":"remove","path":"/metadata/labels/tier"}]"#;
    harbor.kubectl(&["patch", "pvc", "data", "--type=json", "-p", test]).fine();
    harbor.kubectl(&["patch", "pvc", "data", "--type=json", "-p", test]).complaint();
    let strategic = r#"{"spec":{"volumes":[{"name":"w","emptyDir":{}}]}}"#;
    let refused = harbor.kubectl(&["patch", "pod", "web", "-p", strategic]).complaint();
    assert!(refused.contains("Forbidden") || refused.contains("Invalid"), "volumes never change: {refused}");
    let waiting = harbor.start_kubectl(&["wait", "pvc/data", "--for=jsonpath={.status.phase}=Bound", "--timeout=20s"]);
    let bound = r#"{"status":{"phase":"Bound"}}"#;
    harbor.kubectl(&["patch", "pvc", "data", "--subresource=status", "--type=merge", "-p", bound]).fine();
    let waited = waiting.wait_with_output().unwrap();
    assert!(waited.status.success(), "{}", String::from_utf8_lossy(&waited.stderr));
}

#[test]
fn a_misspelt_field_is_refused_and_with_warn_only_told() {
    let harbor = with_objects();
    let misspelt = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, lables: {a: b}}\n";
    let complaint = harbor.kubectl_with(&["apply", "-f", "-"], misspelt).complaint();
    assert!(complaint.contains(r#"unknown field "metadata.lables""#), "{complaint}");
    let warned = harbor.kubectl_with(&["create", "--validate=warn", "-f", "-"], misspelt);
    assert!(warned.ok && warned.err.contains("Warning: unknown field"), "{}", warned.err);
    let list = |item: &str| format!("apiVersion: v1\nkind: List\nitems:\n- {}", item.trim_end().replace('\n', "\n  "));
    let complaint = harbor.kubectl_with(&["apply", "-f", "-"], &list(misspelt)).complaint();
    assert!(complaint.contains(r#"unknown field "metadata.lables""#), "in a list too: {complaint}");
    harbor.kubectl_with(&["apply", "-f", "-"], &list(&misspelt.replace("lables", "labels"))).fine();
    harbor.kubectl_with(&["apply", "-f", "-"], "kind: [Pod").complaint();
    let nothing = harbor.kubectl(&["get", "pvc", "nothing"]).complaint();
    assert!(nothing.contains(r#"persistentvolumeclaims "nothing" not found"#), "{nothing}");
}

#[test]
fn a_finalizer_holds_a_deleted_object() {
    // reliability 99
    let harbor = with_objects();
    let held = r#"{"metadata":{"finalizers":["example.com/hold"]}}"#;
    harbor.kubectl(&["patch", "pvc", "data", "--type=merge", "-p", held]).fine();
    let mut deleting = harbor.start_kubectl(&["delete", "pvc", "data", "--timeout=30s"]);
    let mut first = String::new();
    BufReader::new(deleting.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("deleted"), "{first}");
    let still = harbor.kubectl(&["get", "pvc", "data"]).fine();
    assert!(still.contains("Terminating"), "{still}");
    harbor.kubectl(&["patch", "pvc", "data", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]).fine();
    assert!(deleting.wait().unwrap().success(), "kubectl saw the object go");
    harbor.kubectl(&["get", "pvc", "data"]).complaint();
}

#[test]
fn get_watch_prints_changes_as_rows() {
    let harbor = with_objects();
    let mut watching = harbor.start_kubectl(&["get", "pvc", "-w"]);
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("NAME"));
    assert!(lines.next().unwrap().contains("Pending"));
    let bound = r#"{"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}}"#;
    harbor.kubectl(&["patch", "pvc", "data", "--subresource=status", "--type=merge", "-p", bound]).fine();
    let row = lines.next().unwrap();
    assert!(row.starts_with("data") && row.contains("Bound"), "{row}");
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[test]
fn logs_come_from_the_source_and_extra_routes_from_the_binary() {
    let harbor = with_objects();
    let logs = harbor.kubectl(&["logs", "web", "--tail=5"]).fine();
    assert_eq!(logs, "log of default/web container main tail Some(5) follow false\nsecond line\n");
    let followed = harbor.kubectl(&["logs", "-f", "web", "-c", "main"]).fine();
    assert!(followed.contains("follow true"), "{followed}");
    harbor.kubectl(&["logs", "web", "-c", "other"]).complaint();
    assert_eq!(harbor.kubectl(&["get", "--raw", "/longshore/hello"]).fine(), "hello from the binary");
}

#[test]
fn delete_all_replace_and_dry_run_work() {
    let harbor = with_objects();
    let dry = harbor.kubectl(&["delete", "pod", "web", "--dry-run=server"]).fine();
    assert!(dry.contains("server dry run"), "{dry}");
    harbor.kubectl(&["get", "pod", "web"]).fine();
    harbor.kubectl_with(&["replace", "-f", "-"], OBJECTS).fine();
    let deleted = harbor.kubectl(&["delete", "pod", "--all"]).fine();
    assert!(deleted.contains(r#"pod "web" deleted"#), "{deleted}");
    harbor.kubectl(&["cordon", "n1"]).fine();
    assert!(harbor.kubectl(&["get", "node"]).fine().contains("SchedulingDisabled"));
}

#[test]
fn long_lists_come_in_pages() {
    let harbor = Harbor::start();
    let mut objects = String::new();
    for number in 0..30 {
        objects.push_str(&format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{number}}}\n"));
    }
    harbor.kubectl_with(&["create", "-f", "-"], &objects).fine();
    let listed = harbor.kubectl(&["get", "cm", "--chunk-size=7", "-o", "name"]).fine();
    assert_eq!(listed.lines().count(), 31, "with the certificate of the namespace: {listed}");
}

#[test]
fn discovery_and_version_are_understood() {
    let harbor = Harbor::start();
    let version = harbor.kubectl(&["version"]).fine();
    assert!(version.contains("Server Version: v1.37.0+longshore"), "{version}");
    let resources = harbor.kubectl(&["api-resources"]).fine();
    assert!(resources.contains("persistentvolumeclaims    pvc"), "{resources}");
    assert!(harbor.kubectl(&["api-versions"]).fine().contains("storage.k8s.io/v1"));
}

#[test]
fn h6_kubectl_as_somebody_is_that_somebody() {
    let harbor = with_objects();
    harbor.kubectl(&["create", "sa", "bob"]).fine();
    let bob = "system:serviceaccount:default:bob";
    let no = harbor.kubectl(&["auth", "can-i", "delete", "pods", "--as", bob]);
    assert_eq!((no.ok, no.out.trim()), (false, "no"), "{}", no.err);
    assert_eq!(harbor.kubectl(&["auth", "can-i", "delete", "pods"]).fine().trim(), "yes");
    let refused = harbor.kubectl(&["delete", "pod", "web", "--as", bob]).complaint();
    assert!(refused.contains(r#"User "system:serviceaccount:default:bob" cannot delete resource "pods""#), "{refused}");
    let who = harbor.kubectl(&["auth", "whoami", "--as", bob]).fine();
    assert!(who.contains(bob) && who.contains("system:serviceaccounts:default"), "{who}");
    let list = harbor.kubectl(&["auth", "can-i", "--list"]).fine();
    assert!(list.contains("*.*"), "{list}");
}

#[test]
fn what_is_not_here_is_one_sentence_and_no_crash() {
    // newuser G
    let harbor = with_objects();
    let debug = harbor.kubectl(&["debug", "web", "--image=x"]).complaint();
    assert!(!debug.contains("panic") && debug.contains("ephemeral containers"), "{debug}");
    let made = harbor.kubectl(&["create", "deployment", "d", "--image=x"]).complaint();
    assert!(made.contains("has no deployments: it runs Pods"), "{made}");
    let bound = r#"{"spec":{"nodeName":"n1"},"status":{"phase":"Running"}}"#;
    harbor.kubectl(&["patch", "pod", "web", "--subresource=status", "--type=merge", "-p", bound]).fine();
    for (arguments, words) in [
        (&["exec", "web", "--", "ls"][..], "this server runs no containers"),
        (&["attach", "web"], "has no attach"),
        (&["port-forward", "web", "18080:80"], "has no port-forward"),
    ] {
        let told = harbor.kubectl(arguments).complaint();
        assert!(told.contains(words) && !told.contains("panic"), "{arguments:?}: {told}");
    }
}

#[test]
fn a_field_that_is_not_honoured_is_refused_or_told_as_kubectl_prints_it() {
    let harbor = Harbor::start();
    let pod = |spec: &str| format!("---\n{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{{spec}}}}}");
    let asked = "lifecycle: {stopSignal: SIGUSR1}, livenessProbe: {grpc: {port: 1}}";
    let probed = pod(&format!("containers: [{{name: c, image: host, {asked}}}]"));
    let said = harbor.kubectl_with(&["apply", "-f", "-"], &probed).complaint();
    assert!(said.starts_with("The Pod \"p\" is invalid: \n* spec.containers[0]."), "{said}");
    for refused in
        ["livenessProbe.grpc: Forbidden: the health service", "lifecycle.stopSignal: Forbidden: containers are"]
    {
        assert!(said.contains(&format!("\n* spec.containers[0].{refused}")), "{said}");
    }
    // The server's dry run says the same.
    let said = harbor.kubectl_with(&["apply", "--dry-run=server", "-f", "-"], &probed).complaint();
    assert!(said.contains("spec.containers[0].livenessProbe.grpc"), "{said}");
    let said = harbor.kubectl(&["run", "web", "--image=nginx"]);
    assert!(
        said.ok && said.err.starts_with("Warning: spec.containers[0].image: Longshore runs commands"),
        "{}",
        said.err
    );
    assert!(!harbor.kubectl(&["label", "pod", "web", "a=b"]).err.contains("Warning"), "only what is new is told");
    let map = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {a: b}}";
    harbor.kubectl_with(&["apply", "--server-side", "-f", "-"], map).fine();
    let said = harbor.kubectl_with(&["apply", "--server-side", "-f", "-"], &map.replace("a: b", "c: d"));
    assert!(said.ok && said.err.contains("Warning: server-side apply: nobody's fields are recorded"), "{}", said.err);
    let said = harbor.kubectl(&["delete", "configmap", "m", "--cascade=foreground"]);
    assert!(said.ok && !said.err.contains("Warning"), "{}", said.err);
    // What is said of a field is what it is described with.
    let said = harbor.kubectl(&["explain", "pod.spec"]).fine();
    assert!(said.contains("Not taken here: a pod never sees the processes of this machine"), "{said}");
    let said = harbor.kubectl(&["explain", "pvc.spec"]).fine();
    assert!(said.contains("The StorageClass that makes the volume") && !said.contains("<no description>"), "{said}");
}

#[test]
fn every_namespace_has_an_account_whose_token_works() {
    let harbor = Harbor::start();
    harbor.kubectl(&["create", "namespace", "team"]).fine();
    let all = || {
        harbor.kubectl(&["get", "sa", "-A", "--no-headers", "-o", "custom-columns=:metadata.namespace,:metadata.name"])
    };
    let names = |said: String| -> Vec<String> {
        said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join("/")).collect()
    };
    let of = ["default", "kube-node-lease", "kube-system", "team"].map(|name| format!("{name}/default"));
    assert_eq!(names(all().fine()), of);
    assert_eq!(harbor.kubectl(&["create", "token", "default", "-n", "team"]).fine().matches('.').count(), 2);
    let uid = || harbor.kubectl(&["get", "sa", "default", "-o", "jsonpath={.metadata.uid}"]).fine();
    let before = uid();
    harbor.kubectl(&["delete", "sa", "default"]).fine();
    assert_ne!(uid(), before, "a new one takes the place of the old");
    // A namespace goes with its account.
    harbor.kubectl(&["delete", "namespace", "team"]).fine();
    assert_eq!(names(all().fine()), of[..3]);
}

#[test]
fn kubectl_auth_whoami_tells_all_that_was_said_of_the_impersonated() {
    let harbor = Harbor::start();
    let said = harbor.kubectl(&["auth", "whoami", "--as", "x", "--as-uid", "y", "--as-group", "g"]).fine();
    for line in [&["Username", "x"], &["UID", "y"], &["Groups", "[g system:authenticated]"]] {
        let found = said.lines().any(|l| l.split_whitespace().collect::<Vec<_>>().join(" ") == line.join(" "));
        assert!(found, "{line:?} in {said}");
    }
}
