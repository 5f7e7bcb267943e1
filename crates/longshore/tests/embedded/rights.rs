//! Each role under exactly the rights that `longshore deploy rbac` prints for it: nothing is missing, nothing is to spare.
//! And what is secret stays so.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::objects;
use crate::world::{ATTACHMENTS, DRIVER, NODE, VOLUMES, World, pod};
use crate::{backend, life};

/// A value that must never be seen anywhere but in its Secret, and the same as a Secret's data has it.
const CANARY: [&str; 2] = ["canary-7c1f0e55d2", "Y2FuYXJ5LTdjMWYwZTU1ZDI="];
const ROLES: [&str; 3] = ["provisioner", "attacher", "resizer"];

/// One thing that may be done or was: verb, group, resource.
type Deed = (String, String, String);

/// What `longshore deploy rbac` prints for a role, with a service account of its name in the test's namespace.
fn printed(world: &World, role: &str, more: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_longshore"))
        .args(["deploy", "rbac", "--roles", role, "--service-account", role, "--driver-name", DRIVER])
        .args(["--namespace", world.place, "--secret", &format!("{}/key", world.place)])
        .args(more)
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// A kubeconfig for a service account: the administrator's, with a token in place of the certificate.
fn kubeconfig(world: &World, account: &str) -> PathBuf {
    let path = format!("{}/{account}/token", world.path("serviceaccounts"));
    let answer: Value = serde_json::from_str(&world.api.ask("POST", &path, "application/json", "{}").unwrap()).unwrap();
    let token = answer["status"]["token"].as_str().unwrap();
    let admin = std::fs::read_to_string(world.kubeconfig()).unwrap();
    let lines = admin.lines().filter_map(|line| match line.trim().split_once(':') {
        Some(("client-certificate-data", _)) => Some(format!("    token: {token}")),
        Some(("client-key-data", _)) => None,
        _ => Some(line.to_string()),
    });
    let file = world.scratch.path().join(format!("{account}.kubeconfig"));
    std::fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    file
}

/// What the account asked for and the server granted, or refused.
fn asked(world: &World, account: &str, answer: &str) -> BTreeSet<Deed> {
    let start = format!("{answer} user=\"system:serviceaccount:{}:{account}\" ", world.place);
    let log = std::fs::read_to_string(world.scratch.path().join("up.log")).unwrap();
    let told = log.lines().filter_map(|line| line.split_once(&start).map(|(_, rest)| rest.to_string()));
    let word =
        |line: &str, key: &str| line.split(&format!("{key}=\"")).nth(1).unwrap().split('"').next().unwrap().to_string();
    told.map(|line| (word(&line, "verb"), word(&line, "group"), word(&line, "resource"))).collect()
}

/// What the roles of the account allow.
fn allowed(world: &World, account: &str) -> BTreeSet<Deed> {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let own = format!("{rbac}/namespaces/{}/roles/{account}", world.place);
    let mut all = BTreeSet::new();
    for path in [format!("{rbac}/clusterroles/{account}"), own.clone(), format!("{own}-secrets")] {
        for rule in world.api.get(&path).unwrap()["rules"].as_array().unwrap() {
            let word = |value: &Value| value.as_str().unwrap().to_string();
            for verb in rule["verbs"].as_array().unwrap() {
                all.insert((word(verb), word(&rule["apiGroups"][0]), word(&rule["resources"][0])));
            }
        }
    }
    all
}

/// Something goes wrong in every role, with the secret in hand, and users hear of it: more is asked for than the driver has,
/// and a volume it does not know.
fn fail(world: &World) {
    let (place, claims) = (world.place, world.path("persistentvolumeclaims"));
    world.api.apply(&objects::claim(place, "wrong", "").replace("16Mi", "900Ti"));
    world.wait_told("wrong", "the driver refused with");
    world.api.delete(&format!("{claims}/wrong"));

    world.api.apply(&objects::claim(place, "grows", ""));
    world.wait_bound(&["grows"]);
    world.api.patch(&format!("{claims}/grows"), json!({"spec": {"resources": {"requests": {"storage": "900Ti"}}}}));
    world.wait_told("grows", "the driver refused with");
    world.api.delete(&format!("{claims}/grows"));

    let secret = format!(", controllerPublishSecretRef: {{name: key, namespace: {place}}}");
    world.api.apply(&objects::volume("unknown", DRIVER, "no-such-handle", &secret));
    let claim = objects::claim(place, "unknown", "").replace("16Mi", "1Gi");
    let bound = "storageClassName: elsewhere\n  volumeName: unknown";
    world.api.apply(&claim.replace(&format!("storageClassName: {place}"), bound));
    world.api.apply(&pod(place, "unknown", NODE, &["unknown"], "sleep 1000"));
    world.wait("the attachment to say what is wrong", ATTACHMENTS, |all| {
        all.iter().any(|one| one["status"]["attachError"]["message"].to_string().contains("no such volume"))
    });
    world.api.delete(&world.path("pods/unknown"));
    world.api.delete(&format!("{claims}/unknown"));
    world.api.delete(&format!("{VOLUMES}/unknown"));
}

#[test]
fn every_role_has_the_rights_it_uses_and_no_others() {
    let mut world = World::new("rights", &objects::with_secrets("rights"));
    let place = world.place;
    let [canary, _] = CANARY;
    world.api.apply(&format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: key, namespace: {place}}}\nstringData: {{key: {canary}}}\n"
    ));
    for role in ROLES {
        // With everything that could be wanted of it.
        let gates: &[&str] =
            if role == "provisioner" { &["--feature-gates=CrossNamespaceVolumeDataSource=true"] } else { &[] };
        world.api.apply(&printed(&world, role, gates));
        let mut flags = vec![
            "--leader-election",
            "--leader-election-namespace=rights",
            "--leader-election-retry-period=1s",
            "-v=5",
        ];
        flags.extend(gates);
        let config = kubeconfig(&world, role);
        world.sidecar(role, &config, &flags);
    }
    fail(&world);

    world.api.apply(&objects::claim(place, "data", ""));
    world.api.apply(&pod(place, "user", NODE, &["data"], "sleep 1000"));
    world.wait("the volume to be attached", ATTACHMENTS, |all| all.iter().any(|one| one["status"]["attached"] == true));
    let taken = life::snapshot(&world, "moment", "data");
    let sources = [("restored", "VolumeSnapshot/moment"), ("clone", "PersistentVolumeClaim/data")];
    world.api.apply(&sources.map(|(name, source)| objects::claim(place, name, source)).concat());
    world.wait_bound(&["restored", "clone"]);
    life::grow(&world, "clone", "32Mi");
    life::drop_snapshot(&world, "moment", &taken);
    world.end();
    // Whoever ends gives the Lease up, and so has updated it however short its life was.
    world.terminate();

    for role in ROLES {
        assert_eq!(asked(&world, role, "refused"), BTreeSet::new(), "the {role} was refused");
        let granted = asked(&world, role, "granted");
        let mut spare: BTreeSet<Deed> = allowed(&world, role).difference(&granted).cloned().collect();
        // Words are counted on the event that says them already, when they are said again half a minute later.
        spare.remove(&("patch".into(), String::new(), "events".into()));
        if role == "provisioner" {
            // A claim is read only when its volume seems to have gone as soon as it was made.
            spare.remove(&("get".into(), String::new(), "persistentvolumeclaims".into()));
        }
        assert_eq!(spare, BTreeSet::new(), "the {role} has rights it did not use");
    }
    assert_canary_unseen(&world);
}

// C8; reliability 5.4.
fn assert_canary_unseen(world: &World) {
    let mut texts = world.logs();
    let everything = ["events", "leases", "persistentvolumeclaims", "pods"].map(|plural| {
        let path =
            if plural == "leases" { "/apis/coordination.k8s.io/v1/leases".into() } else { format!("/api/v1/{plural}") };
        world.api.ask("GET", &path, "", "").unwrap()
    });
    texts.extend(everything.into_iter().map(|text| ("the API".into(), text)));
    assert!(texts.len() > 8 && texts.iter().any(|(_, text)| text.contains("the driver refused with")));
    for (from, text) in texts {
        assert!(!CANARY.iter().any(|secret| text.contains(secret)), "a secret was told in {}", from.display());
    }
}

/// What is still to be had is published beside the provisioner's pod, which owns it (P86, P87, P90, P91).
#[test]
fn capacities_are_published_with_the_rights_printed_for_it() {
    let mut world = World::new("capacity", &[]);
    let place = world.place;
    world.api.apply(&printed(&world, "provisioner", &["--capacity"]));
    let config = kubeconfig(&world, "provisioner");
    world.api.apply(&objects::pod(place, "provisioner-0", "of-nobody").replace("spec:\n", "spec:\n  nodeName: n9\n"));
    world.pod = Some("provisioner-0");
    let flags = ["--enable-capacity", "--capacity-ownerref-level=0", "--capacity-for-immediate-binding"];
    world.sidecar("provisioner", &config, &[&flags[..], &["--capacity-poll-interval=1h"]].concat());
    let published = format!("/apis/storage.k8s.io/v1/namespaces/{place}/csistoragecapacities");
    let capacity = |all: &[&Value]| {
        let ours = all.iter().find(|one| one["storageClassName"] == place);
        ours.map(|one| one["capacity"].clone())
    };
    let before = world.wait("the capacity", &published, |all| capacity(all).is_some());
    let before = capacity(&before.iter().collect::<Vec<_>>());
    world.api.apply(&objects::claim(place, "data", ""));
    world.wait("the capacity after a volume", &published, |all| capacity(all).is_some() && capacity(all) != before);
    world.api.delete(&format!("/apis/storage.k8s.io/v1/storageclasses/{place}"));
    world.wait("the capacity of no class to go", &published, |all| capacity(all).is_none());

    assert_eq!(asked(&world, "provisioner", "refused"), BTreeSet::new());
    let granted = asked(&world, "provisioner", "granted");
    for deed in allowed(&world, "provisioner").into_iter().filter(|deed| deed.2 == "csistoragecapacities") {
        assert!(granted.contains(&deed), "{deed:?} is not used");
    }
    assert!(granted.contains(&("get".into(), String::new(), "pods".into())));
    world.api.delete(&world.path("pods/provisioner-0?gracePeriodSeconds=0"));
    world.end();
}

/// Rights taken away are missed: the list above would notice. The sentence names the right, and where it is to be had.
#[test]
fn a_right_taken_away_is_refused_and_named_in_an_event() {
    let mut world = World::new("fewer-rights", &[]);
    let all = printed(&world, "provisioner", &[]);
    let fewer =
        all.replace("resources: [persistentvolumes], verbs: [create, ", "resources: [persistentvolumes], verbs: [");
    assert_ne!(all, fewer);
    world.api.apply(&fewer);
    let config = kubeconfig(&world, "provisioner");
    world.sidecar("provisioner", &config, &[]);
    world.api.apply(&objects::claim(world.place, "data", ""));
    world.wait_told("data", "cannot create resource \"persistentvolumes\" in API group \"\" at the cluster scope");
    let refused = asked(&world, "provisioner", "refused");
    assert_eq!(refused, [("create".into(), String::new(), "persistentvolumes".into())].into());

    // Given back, it goes on, and the volume that was made is the one that is kept.
    world.api.apply(&all);
    world.wait_bound(&["data"]);
    assert_eq!(backend::contents(&world.socket()).0.len(), 1);
    world.end();
}

#[test]
fn a_role_without_any_right_says_so_in_one_sentence() {
    let mut world = World::new("no-rights", &[]);
    for role in ROLES {
        world.api.apply(&format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {role}, namespace: {}}}\n",
            world.place
        ));
        let config = kubeconfig(&world, role);
        let sidecar = world.sidecar(role, &config, &[]);
        prove_cluster::eventually("the sentence", std::time::Duration::from_secs(30), || {
            let log = world.log(sidecar);
            if log.lines().any(|line| line.contains("cannot list resource")) { Ok(()) } else { Err(log) }
        })
        .unwrap();
    }
}
