//! Each role under exactly the rights that `longshore deploy rbac` prints for it: nothing is missing, nothing is to spare.
//! And what is secret stays so.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use prove_cluster::ControlPlane;
use serde_json::Value;

use super::life;
use super::objects;
use super::trial::{Driver, Trial};

/// A value that must never be seen anywhere but in its Secret.
const CANARY: &str = "canary-7c1f0e55d2";

/// What is told when it does.
const REFUSED: &str = "the driver refused with";

/// One thing that may be done or was: verb, group, resource.
pub type Deed = (String, String, String);

/// What `longshore deploy rbac` prints for a role, with a service account of its name in the trial's namespace.
pub fn printed(trial: &Trial, role: &str, more: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_longshore"))
        .args(["deploy", "rbac", "--roles", role, "--service-account", role, "--driver-name", trial.driver])
        .args(["--namespace", trial.place, "--secret", &format!("{}/key", trial.place)])
        .args(more)
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// A kubeconfig for a service account.
fn kubeconfig(trial: &Trial, account: &str) -> PathBuf {
    let path = trial.stand.path(&format!("{account}.kubeconfig"));
    write_kubeconfig(&trial.plane().control, trial.place, account, &path);
    path
}

/// The administrator's kubeconfig, with a token of a service account.
pub fn write_kubeconfig(control: &ControlPlane, place: &str, account: &str, path: &Path) {
    let token = control.kubectl(&["create", "token", account, "--namespace", place]).unwrap();
    let admin = std::fs::read_to_string(control.kubeconfig()).unwrap();
    let theirs: Vec<String> = admin
        .lines()
        .map(|line| match line.split_once("token:") {
            Some((before, _)) => format!("{before}token: {}", token.trim()),
            None => line.to_string(),
        })
        .collect();
    std::fs::write(path, theirs.join("\n")).unwrap();
}

/// A claim is read only when its volume seems to have gone as soon as it was made: the news of the claim may be late.
fn rarely() -> Deed {
    ("get".into(), String::new(), "persistentvolumeclaims".into())
}

/// What the account asked for: what was granted, and what was refused.
pub fn asked(trial: &Trial, account: &str) -> (BTreeSet<Deed>, BTreeSet<Deed>) {
    asked_of(&trial.plane().audit(), trial.place, account)
}

/// The same, of an account in this namespace, as it was written down there.
pub fn asked_of(audit: &Path, place: &str, account: &str) -> (BTreeSet<Deed>, BTreeSet<Deed>) {
    let user = format!("system:serviceaccount:{place}:{account}");
    let text = std::fs::read_to_string(audit).unwrap();
    let (mut granted, mut refused) = (BTreeSet::new(), BTreeSet::new());
    // The last line may be half written.
    for event in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if event["user"]["username"] != user.as_str() || event["objectRef"].is_null() {
            continue;
        }
        let word = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let (object, verb) = (&event["objectRef"], word(&event["verb"]));
        let resource = match object["subresource"].as_str() {
            Some(part) => format!("{}/{part}", word(&object["resource"])),
            None => word(&object["resource"]),
        };
        let deed = (verb, word(&object["apiGroup"]), resource);
        if event["responseStatus"]["code"] == 403 {
            refused.insert(deed)
        } else {
            granted.insert(deed)
        };
    }
    (granted, refused)
}

/// What the roles of the account in the cluster allow.
fn allowed(trial: &Trial, account: &str) -> BTreeSet<Deed> {
    let secrets = format!("{account}-secrets");
    let roles = [["clusterrole", account], ["role", account], ["role", &*secrets]];
    allowed_by(&trial.plane().control, trial.place, &roles)
}

/// What these roles allow.
pub fn allowed_by(control: &ControlPlane, place: &str, roles: &[[&str; 2]]) -> BTreeSet<Deed> {
    let mut all = BTreeSet::new();
    for [kind, name] in roles {
        let role = control.kubectl(&["get", kind, name, "--namespace", place, "--output=json"]).unwrap();
        let role: Value = serde_json::from_str(&role).unwrap();
        for rule in role["rules"].as_array().unwrap() {
            let words = |key: &str| {
                let list = rule[key].as_array().unwrap().iter();
                list.map(|word| word.as_str().unwrap().to_string()).collect::<Vec<_>>()
            };
            for verb in words("verbs") {
                all.insert((verb, words("apiGroups")[0].clone(), words("resources")[0].clone()));
            }
        }
    }
    all
}

#[test]
fn every_role_has_the_rights_it_uses_and_no_others() {
    let mut trial = Trial::new("rights", Driver::Ours, &objects::with_secrets("rights"));
    let place = trial.place;
    trial.apply(&format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: key, namespace: {place}}}\nstringData: {{key: {CANARY}}}\n"
    ));
    let roles = ["provisioner", "attacher", "resizer"];
    let election = format!("--leader-election-namespace={place}");
    let mut ports = Vec::new();
    for role in roles {
        let port = prove_cluster::free_port().unwrap();
        let endpoint = format!("--http-endpoint=127.0.0.1:{port}");
        ports.push(port);
        // With everything that could be wanted of it.
        let gate = "--feature-gates=CrossNamespaceVolumeDataSource=true";
        trial.apply(&printed(&trial, role, &[gate]));
        let config = kubeconfig(&trial, role);
        let mut flags = vec!["--leader-election", &election, "--leader-election-retry-period=1s", "-v=5", &endpoint];
        if role == "provisioner" {
            flags.push(gate);
        }
        trial.ours(role, Some(&config), &flags);
    }
    fail(&trial);
    life::live(&mut trial);

    for role in roles {
        let (granted, refused) = asked(&trial, role);
        assert_eq!(refused, BTreeSet::new(), "the {role} was refused");
        let mut spare: BTreeSet<Deed> = allowed(&trial, role).difference(&granted).cloned().collect();
        // Words are counted on the event that says them already, when they are said again half a minute later.
        spare.remove(&("patch".into(), String::new(), "events".into()));
        if role == "provisioner" {
            spare.remove(&rarely());
        }
        assert_eq!(spare, BTreeSet::new(), "the {role} has rights it did not use");
    }
    assert_canary_unseen(&trial, &ports);
}

/// Something goes wrong in every role, with the secret in hand, and users hear of it: more is asked for than the driver has,
/// and a volume it does not know.
fn fail(trial: &Trial) {
    let (place, driver) = (trial.place, trial.driver);
    let heard = || {
        let events = ["get", "events", "--output=jsonpath={.items[*].message}"];
        trial.wait_until("an event about the failure", &events, |said| said.contains(REFUSED));
    };
    trial.apply(&objects::claim(place, "wrong", "").replace("16Mi", "900Ti"));
    heard();
    trial.kubectl(&["delete", "pvc,events", "--all"]).unwrap();

    trial.apply(&objects::claim(place, "grows", ""));
    trial.wait_bound(&["grows"]);
    let more = "--patch={\"spec\":{\"resources\":{\"requests\":{\"storage\":\"900Ti\"}}}}";
    trial.kubectl(&["patch", "pvc", "grows", more]).unwrap();
    heard();
    trial.kubectl(&["delete", "pvc", "grows"]).unwrap();

    trial.apply(&objects::volume("unknown", driver, "no-such-handle", ""));
    trial.apply(&objects::attachment("unknown", driver, "unknown", "n1"));
    let error = ["get", "volumeattachment", "unknown", "--output=jsonpath={.status.attachError.message}"];
    trial.wait_until("the attachment to say what is wrong", &error, |said| said.contains("no such volume"));
    trial.kubectl(&["delete", "volumeattachment/unknown", "pv/unknown"]).unwrap();
}

fn assert_canary_unseen(trial: &Trial, ports: &[u16]) {
    // As it is, and as a Secret's data has it.
    let coded = String::from_utf8(
        Command::new("sh").args(["-c", &format!("printf {CANARY} | base64")]).output().unwrap().stdout,
    );
    let coded = coded.unwrap().trim().to_string();
    let kinds = "pv,pvc,volumeattachment,events,storageclass,volumesnapshotcontent,lease,node,csinode";
    let mut texts = trial.logs();
    texts.push(("the API".into(), trial.kubectl(&["get", kinds, "--all-namespaces", "--output=yaml"]).unwrap()));
    for (port, path) in
        ports.iter().flat_map(|port| ["/metrics", "/healthz", "/healthz/leader-election"].map(|path| (port, path)))
    {
        texts.push((path.into(), trial.answer(*port, path)));
    }
    let counted = |text: &String| text.contains("csi_sidecar_operations_seconds_count{");
    assert_eq!(texts.iter().filter(|(_, text)| counted(text)).count(), ports.len());
    assert!(texts.len() > 4 && texts.iter().any(|(_, text)| text.contains(REFUSED)));
    for (from, text) in texts {
        assert!(!text.contains(CANARY) && !text.contains(&coded), "a secret was told in {}", from.display());
    }
}

/// What is still to be had is published beside the provisioner's pod, which owns it.
#[test]
fn capacities_are_published_with_the_rights_printed_for_it() {
    let mut trial = Trial::new("capacity", Driver::Ours, &[]);
    let place = trial.place;
    trial.apply(&printed(&trial, "provisioner", &["--capacity"]));
    let config = kubeconfig(&trial, "provisioner");
    trial.apply(&objects::pod(place, "provisioner-0", "of-nobody"));
    trial.pod = Some("provisioner-0");
    let flags = ["--enable-capacity", "--capacity-ownerref-level=0", "--capacity-for-immediate-binding"];
    trial.ours("provisioner", Some(&config), &[&flags[..], &["--capacity-poll-interval=1s"]].concat());
    // Other classes of the driver have theirs.
    let capacity = "--output=jsonpath={.items[?(@.storageClassName=='capacity')].capacity}";
    let capacity = ["get", "csistoragecapacity", capacity];
    let before = trial.wait_until("the capacity", &capacity, |said| !said.is_empty());
    trial.apply(&objects::claim(place, "data", ""));
    trial.wait_until("the capacity after a volume", &capacity, |said| !said.is_empty() && said != before);
    trial.kubectl(&["delete", "storageclass", place]).unwrap();
    trial.wait_until("the capacity of no class to go", &capacity, str::is_empty);

    let (granted, refused) = asked(&trial, "provisioner");
    assert_eq!(refused, BTreeSet::new());
    for deed in allowed(&trial, "provisioner").into_iter().filter(|deed| deed.2 == "csistoragecapacities") {
        assert!(granted.contains(&deed), "{deed:?} is not used");
    }
    assert!(granted.contains(&("get".into(), String::new(), "pods".into())));
    life::end(&trial);
}

/// Rights taken away are missed: the list above would notice.
#[test]
fn a_right_taken_away_is_refused_and_named_in_an_event() {
    let mut trial = Trial::new("fewer-rights", Driver::Ours, &[]);
    let all = printed(&trial, "provisioner", &[]);
    let fewer =
        all.replace("resources: [persistentvolumes], verbs: [create, ", "resources: [persistentvolumes], verbs: [");
    assert_ne!(all, fewer);
    trial.apply(&fewer);
    let config = kubeconfig(&trial, "provisioner");
    trial.ours("provisioner", Some(&config), &[]);
    trial.apply(&objects::claim(trial.place, "data", ""));
    let events = ["get", "events", "--output=jsonpath={.items[*].message}"];
    trial.wait_until("an event that says so", &events, |said| said.contains("cannot create resource"));
    let (_, refused) = asked(&trial, "provisioner");
    assert_eq!(refused, [("create".into(), String::new(), "persistentvolumes".into())].into());

    // Given back, it goes on, and the volume that was made is the one that is kept.
    trial.apply(&all);
    trial.wait_bound(&["data"]);
    assert_eq!(super::backend::contents(&trial.stand.socket).0.len(), 1);
    life::end(&trial);
}

/// A provisioner for its own node needs no lease and looks at no other node; without a use for grants it has no right to them.
#[test]
fn a_provisioner_on_every_node_has_the_rights_printed_for_it() {
    let mut trial = Trial::new("per-node", Driver::Ours, &[]);
    let place = trial.place;
    trial.apply(&printed(&trial, "provisioner", &["--node-deployment", "--capacity"]));
    let config = kubeconfig(&trial, "provisioner");
    trial.apply(&objects::pod(place, "provisioner-0", "of-nobody"));
    (trial.pod, trial.node) = (Some("provisioner-0"), Some("n1"));
    let flags =
        ["--node-deployment", "--enable-capacity", "--capacity-ownerref-level=0", "--capacity-for-immediate-binding"];
    trial.ours("provisioner", Some(&config), &flags);
    trial.apply(&objects::claim(place, "data", ""));
    trial.wait_bound(&["data"]);
    trial.wait_until("the capacity", &["get", "csistoragecapacity", "--output=name"], |said| !said.is_empty());
    life::end(&trial);

    let (_, refused) = asked(&trial, "provisioner");
    assert_eq!(refused, BTreeSet::new());
    let allowed = allowed(&trial, "provisioner");
    for needless in ["nodes", "csinodes", "referencegrants"] {
        assert!(allowed.iter().all(|deed| deed.2 != needless), "{needless}");
    }
}
