//! What the Go provisioner counts, ours counts too, under the same names and labels: dashboards stay as they are.

use std::collections::{BTreeMap, BTreeSet};

use super::trial::{Driver, Trial};
use super::{life, objects};

/// What is compared: what a provisioner tells of volumes and capacities.
const FAMILIES: [&str; 2] = ["controller_persistentvolume", "csistoragecapacities_"];

/// The lines of these families: names with the names of their labels, and the values of those that are told once.
fn told(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| FAMILIES.iter().any(|family| line.starts_with(family)));
    let told = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = name.split_once('{').unwrap_or((name, ""));
        let words = labels.trim_end_matches('}').split(',').filter_map(|label| label.split_once('='));
        let keys: BTreeSet<&str> = words.map(|(key, _)| key).collect();
        // When a series began is told by one of the two libraries only.
        (format!("{name} {keys:?}"), value.to_string())
    });
    told.filter(|(name, _)| !name.contains("_created")).collect()
}

/// A volume that comes and goes and one that cannot be, and what was told of that.
fn counted(trial: &Trial, port: u16) -> BTreeMap<String, String> {
    let place = trial.place;
    trial.apply(&objects::claim(place, "wrong", "").replace("16Mi", "900Ti"));
    let events = ["get", "events", "--output=jsonpath={.items[*].reason}"];
    trial.wait_until("the failure to be told", &events, |said| said.contains("ProvisioningFailed"));
    trial.apply(&objects::claim(place, "data", ""));
    trial.wait_bound(&["data"]);
    let capacity = ["get", "csistoragecapacity", "--output=name"];
    trial.wait_until("the capacity", &capacity, |said| !said.is_empty());
    life::end(trial);
    let deleted = "controller_persistentvolume_delete_total";
    let told_of = |text: &str| text.contains(&format!("{deleted}{{"));
    let text = prove_cluster::eventually("the deletion to be counted", std::time::Duration::from_secs(20), || {
        let text = trial.answer(port, "/metrics");
        if told_of(&text) { Ok(text) } else { Err(text) }
    });
    let told = told(&text.unwrap());
    trial.kubectl(&["delete", "events,csistoragecapacities", "--all"]).unwrap();
    told
}

// Sidecars 2.11, 2.13.
#[test]
fn volumes_and_capacities_are_counted_under_the_names_of_the_go_provisioner() {
    let mut trial = Trial::new("metrics", Driver::Ours, &[]);
    trial.pod = Some("provisioner-0");
    let flags = ["--enable-capacity", "--capacity-ownerref-level=-1", "--capacity-for-immediate-binding"];
    let port = prove_cluster::free_port().unwrap();
    let endpoint = format!("--http-endpoint=127.0.0.1:{port}");
    let go = trial.go("csi-provisioner", &[&flags[..], &[&endpoint]].concat());
    let theirs = counted(&trial, port);
    trial.kill(go);
    let port = prove_cluster::free_port().unwrap();
    let endpoint = format!("--http-endpoint=127.0.0.1:{port}");
    trial.ours("provisioner", None, &[&flags[..], &[&endpoint]].concat());
    let ours = counted(&trial, port);

    // A deletion that has to be tried again, as it happens now and then, brings a name of its own. And the Go program
    // may delete a volume twice, when it hears late of its own deletion; ours does it once.
    let certain = |name: &&String| !name.starts_with("controller_persistentvolume_delete_failed_total");
    let names = |told: &BTreeMap<String, String>| told.keys().filter(certain).cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&ours), names(&theirs));
    let once = |told: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        let certain = ["claim_provision_total", "claim_provision_duration_seconds_count", "desired_goal"];
        told.iter()
            .filter(|(name, _)| certain.iter().any(|part| name.contains(part)))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    assert_eq!(once(&ours), once(&theirs));
    let deleted = ours.iter().filter(|(name, _)| name.starts_with("controller_persistentvolume_delete_total"));
    assert_eq!(deleted.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["1"]);
    assert!(names(&ours).len() >= 10, "{ours:#?}");
}
