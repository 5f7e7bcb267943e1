//! The Go provisioner and ours take over from each other in the middle of a batch, killed with no warning each time.

use std::time::{Duration, Instant};

use super::trial::{Driver, Trial};
use super::{backend, life, objects};

const BATCH: usize = 40;
const PATIENCE: Duration = Duration::from_secs(60);

/// Both hold the same Lease, which a killed holder leaves behind until it runs out.
const ELECTION: [&str; 4] = [
    "--leader-election",
    "--leader-election-lease-duration=3s",
    "--leader-election-renew-deadline=2s",
    "--leader-election-retry-period=500ms",
];

/// Both work on few claims at once, so that there is a middle to be killed in.
const AT_ONCE: usize = 2;

/// Waits until the driver has at least, or at most, so many volumes.
fn wait_for(trial: &Trial, what: &str, wanted: impl Fn(usize) -> bool) {
    let until = Instant::now() + PATIENCE;
    loop {
        let held = backend::contents(&trial.stand.socket).0.len();
        if wanted(held) {
            return;
        }
        assert!(Instant::now() < until, "waited for {what} in vain; the driver has {held} volumes");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn flags(place: &str) -> Vec<String> {
    let namespace = format!("--leader-election-namespace={place}");
    ELECTION.iter().map(|flag| flag.to_string()).chain([namespace, format!("--worker-threads={AT_ONCE}")]).collect()
}

fn go(trial: &mut Trial) -> usize {
    let flags = flags(trial.place);
    trial.go("csi-provisioner", &flags.iter().map(String::as_str).collect::<Vec<_>>())
}

fn ours(trial: &mut Trial) -> usize {
    let flags = flags(trial.place);
    trial.ours("provisioner", None, &flags.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Kills it with work left to do.
fn kill_in_the_middle(trial: &mut Trial, sidecar: usize) {
    trial.kill(sidecar);
    let held = backend::contents(&trial.stand.socket).0.len();
    assert!(0 < held && held < BATCH, "killed too late: the driver has {held} volumes");
}

// C6; reliability 1, 6, 7: across owners of the work, no volume is lost and none is left over.
#[test]
fn the_go_provisioner_and_ours_take_over_from_each_other_in_the_middle_of_a_batch() {
    let mut trial = Trial::new("takeover", Driver::Go, &[]);
    let place = trial.place;
    let claims: Vec<String> = (0..BATCH).map(|number| format!("claim-{number}")).collect();
    let objects: String = claims.iter().map(|name| objects::claim(place, name, "")).collect();

    trial.apply(&objects);
    let first = go(&mut trial);
    wait_for(&trial, "the Go provisioner to begin", |held| held >= BATCH / 4);
    kill_in_the_middle(&mut trial, first);
    let second = ours(&mut trial);
    wait_for(&trial, "ours to go on", |held| held >= BATCH / 2);
    kill_in_the_middle(&mut trial, second);
    let third = go(&mut trial);
    trial.wait_bound(&claims.iter().map(String::as_str).collect::<Vec<_>>());
    let (volumes, _) = backend::contents(&trial.stand.socket);
    assert_eq!((volumes.len(), trial.volumes().len()), (BATCH, BATCH));
    // What ours was about when it was killed is in its journal, and nothing of it on the claims.
    let finalizers = trial.kubectl(&["get", "pvc", "--output=jsonpath={.items[*].metadata.finalizers}"]).unwrap();
    assert!(!finalizers.contains(api::names::PROVISIONING_INTENT), "{finalizers}");

    // The Go provisioner knows nothing of that; ours, back again, clears it up.
    trial.kubectl(&["delete", "pvc", "--all", "--wait=false"]).unwrap();
    wait_for(&trial, "the Go provisioner to delete", |held| held <= 3 * BATCH / 4);
    kill_in_the_middle(&mut trial, third);
    let fourth = ours(&mut trial);
    wait_for(&trial, "ours to delete", |held| held <= BATCH / 2);
    kill_in_the_middle(&mut trial, fourth);
    let fifth = go(&mut trial);
    wait_for(&trial, "the Go provisioner to go on", |held| held <= BATCH / 4);
    kill_in_the_middle(&mut trial, fifth);
    ours(&mut trial);
    life::end(&trial);
    assert_eq!(journal(&trial), 0);
}

// Reliability 1, 7: a claim can be deleted while nobody works, and what was made for it is undone by whoever comes next.
#[test]
fn what_a_killed_provisioner_made_for_claims_deleted_meanwhile_is_undone_by_the_next() {
    let mut trial = Trial::new("undone", Driver::Go, &[]);
    let place = trial.place;
    let objects: String = (0..BATCH).map(|number| objects::claim(place, &format!("claim-{number}"), "")).collect();
    trial.apply(&objects);
    let first = ours(&mut trial);
    wait_for(&trial, "ours to begin", |held| held >= BATCH / 4);
    kill_in_the_middle(&mut trial, first);
    trial.kubectl(&["delete", "pvc", "--all", "--wait=true", "--timeout=60s"]).unwrap();
    ours(&mut trial);
    life::end(&trial);
    assert_eq!(journal(&trial), 0);
}

/// How many intents the journal tells of.
fn journal(trial: &Trial) -> usize {
    let leases = ["get", "leases", "--output=jsonpath={.items[*].metadata.annotations}"];
    trial.kubectl(&leases).unwrap().matches(api::names::JOURNAL_ENTRY).count()
}
