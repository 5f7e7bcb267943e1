//! Owners and what they own: what goes with whom, in one write.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod common;

use common::{Cluster, target};
use rules_store::*;
use serde_json::{Value, json};

fn map(name: &str, owners: &[&Value], blocks: bool) -> Value {
    let owners: Vec<Value> = owners
        .iter()
        .map(|owner| {
            json!({ "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks })
        })
        .collect();
    json!({ "metadata": { "name": name, "namespace": "default", "ownerReferences": owners } })
}

fn owner(cluster: &mut Cluster, name: &str) -> Value {
    let body = json!({ "metadata": { "name": name, "namespace": "default" } });
    cluster.create("configmaps", body).value.clone()
}

fn delete(cluster: &mut Cluster, path: &str, propagation: DeletePropagation) -> Applied {
    let request = Request::Delete {
        target: target(path),
        preconditions: Precondition::default(),
        grace_seconds: None,
        propagation,
        dry_run: false,
    };
    cluster.send(request).unwrap()
}

// PV-60: the claim goes with the pod, and what the claim owns with the claim, in the same write.
#[test]
fn dependents_go_in_the_write_that_takes_their_owner_away() {
    let mut cluster = Cluster::new();
    let top = owner(&mut cluster, "top");
    let middle = cluster.create("configmaps", map("middle", &[&top], false)).value.clone();
    cluster.create("configmaps", map("bottom", &[&middle], false));
    let applied = cluster.delete("configmaps/default/top").unwrap();
    let gone: Vec<&str> = applied.changes.iter().map(|change| &*change.object.key.name).collect();
    assert_eq!(gone, ["top", "middle", "bottom"]);
    assert!(applied.changes.iter().all(|change| change.event == EventType::Deleted));
}

#[test]
fn a_dependent_with_another_owner_stays_and_forgets_the_one_that_is_gone() {
    let mut cluster = Cluster::new();
    let (one, other) = (owner(&mut cluster, "one"), owner(&mut cluster, "other"));
    cluster.create("configmaps", map("shared", &[&one, &other], false));
    cluster.delete("configmaps/default/one").unwrap();
    let left = cluster.value("configmaps/default/shared")["metadata"]["ownerReferences"].clone();
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(left[0]["uid"], other["metadata"]["uid"]);
    cluster.delete("configmaps/default/other").unwrap();
    assert!(cluster.get("configmaps/default/shared").is_none());
}

// The uid counts, not the name.
#[test]
fn a_namesake_of_the_owner_owns_nothing() {
    let mut cluster = Cluster::new();
    let first = owner(&mut cluster, "o");
    delete(&mut cluster, "configmaps/default/o", DeletePropagation::Orphan);
    owner(&mut cluster, "o");
    // Made by somebody who did not know yet that the owner is gone: it goes at once.
    let applied = cluster.try_create("configmaps", map("late", &[&first], false)).unwrap();
    assert_eq!(applied.changes.len(), 2);
    assert!(cluster.get("configmaps/default/late").is_none());
}

#[test]
fn an_owner_of_a_kind_that_is_not_served_here_counts_as_there() {
    let mut cluster = Cluster::new();
    let foreign = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d", "uid": "u" } });
    cluster.create("configmaps", map("kept", &[&foreign], false));
    assert!(cluster.get("configmaps/default/kept").is_some());
}

#[test]
fn orphans_stay_and_forget_their_owner() {
    let mut cluster = Cluster::new();
    let top = owner(&mut cluster, "top");
    cluster.create("configmaps", map("kept", &[&top], true));
    delete(&mut cluster, "configmaps/default/top", DeletePropagation::Orphan);
    assert!(cluster.get("configmaps/default/top").is_none());
    assert!(cluster.value("configmaps/default/kept")["metadata"].get("ownerReferences").is_none());
}

#[test]
fn in_the_foreground_the_owner_waits_for_those_that_block_it() {
    for blocks in [true, false] {
        let mut cluster = Cluster::new();
        let top = owner(&mut cluster, "top");
        let mut held = map("held", &[&top], blocks);
        held["metadata"]["finalizers"] = json!(["example.com/held"]);
        cluster.create("configmaps", held);
        delete(&mut cluster, "configmaps/default/top", DeletePropagation::Foreground);
        assert_eq!(cluster.get("configmaps/default/top").is_some(), blocks);
        assert!(cluster.get("configmaps/default/held").unwrap().is_deleting());
        cluster.merge("configmaps/default/held", json!({ "metadata": { "finalizers": null } })).unwrap();
        assert!(cluster.get("configmaps/default/top").is_none());
        assert!(cluster.get("configmaps/default/held").is_none());
    }
}

#[test]
fn an_owner_held_by_a_finalizer_keeps_its_dependents_until_it_goes() {
    let mut cluster = Cluster::new();
    let body = json!({ "metadata": { "name": "top", "namespace": "default", "finalizers": ["example.com/held"] } });
    let top = cluster.create("configmaps", body).value.clone();
    cluster.create("configmaps", map("kept", &[&top], false));
    cluster.delete("configmaps/default/top").unwrap();
    assert!(!cluster.get("configmaps/default/kept").unwrap().is_deleting());
    cluster.merge("configmaps/default/top", json!({ "metadata": { "finalizers": null } })).unwrap();
    assert!(cluster.get("configmaps/default/kept").is_none());
}
