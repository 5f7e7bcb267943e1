//! Who is looked at after a change, and who is not.

use alloc::format;

use api::{Kind, Object, names};
use control::Cache;
use prove_lab::{check_wakes, object};
use serde_json::{Value, json};

use crate::{Binding, Local};

fn claim(name: &str, class: Value, volume: &str) -> Object {
    let metadata = json!({ "namespace": "n", "name": name, "uid": name });
    let spec = json!({ "storageClassName": class, "volumeName": volume });
    object(Kind::PersistentVolumeClaim, json!({ "metadata": metadata, "spec": spec }))
}

fn volume(name: &str, class: &str, holder: Option<&str>) -> Object {
    let holder = holder.map(|name| json!({ "namespace": "n", "name": name }));
    let spec = json!({ "storageClassName": class, "claimRef": holder });
    object(Kind::PersistentVolume, json!({ "metadata": { "name": name }, "spec": spec }))
}

fn class(name: &str, default: &str) -> Object {
    let annotations = json!({ names::DEFAULT_CLASS: default });
    object(Kind::StorageClass, json!({ "metadata": { "name": name, "annotations": annotations }, "provisioner": "d" }))
}

// PV-1, PV-3: each change, also that something is gone, names the keys it concerns. PV-4: a claim that goes wakes its
// volume, a volume that goes its claim. PV-56: so does a pod that comes, goes, or takes the place of a namesake.
#[test]
fn every_change_and_whom_it_wakes() {
    let mut cache = Cache::default();
    for one in [
        claim("wants-fast", json!("fast"), ""),
        claim("bound-fast", json!("fast"), "v-bound"),
        claim("wants-none", json!(""), ""),
        claim("says-nothing", Value::Null, ""),
        volume("v-bound", "fast", Some("bound-fast")),
        volume("v-for-wants-fast", "fast", Some("wants-fast")),
        volume("v-free", "fast", None),
    ] {
        cache.set(one);
    }
    let pod = |claim: &str| {
        let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": claim } }]);
        let metadata = json!({ "namespace": "n", "name": "p", "uid": format!("p-of-{claim}") });
        Some(object(Kind::Pod, json!({ "metadata": metadata, "spec": { "volumes": volumes } })))
    };
    let changes = [
        ("claim-without-a-volume", None, Some(claim("wants-fast", json!("fast"), ""))),
        ("claim-with-a-volume", None, Some(claim("bound-fast", json!("fast"), "v-bound"))),
        ("claim-gone", Some(claim("bound-fast", json!("fast"), "v-bound")), None),
        ("volume-gone", Some(volume("v-bound", "fast", Some("bound-fast"))), None),
        ("volume-bound", None, Some(volume("v-bound", "fast", Some("bound-fast")))),
        ("volume-reserved", None, Some(volume("v-for-wants-fast", "fast", Some("wants-fast")))),
        ("volume-free", None, Some(volume("v-free", "fast", None))),
        ("volume-free-of-no-class", None, Some(volume("v-new", "", None))),
        ("volume-free-of-another-class", None, Some(volume("v-new", "slow", None))),
        ("class", None, Some(class("fast", "false"))),
        ("class-that-is-default", None, Some(class("slow", "true"))),
        ("class-of-nobody", None, Some(class("slow", "false"))),
        ("pod", None, pod("wants-fast")),
        ("pod-gone", pod("wants-fast"), None),
        ("pod-in-the-place-of-another", pod("wants-none"), pod("wants-fast")),
        ("pod-of-a-missing-claim", None, pod("later")),
    ];
    check_wakes::<Binding>(env!("CARGO_MANIFEST_DIR"), &cache, &Local::default(), &changes);
}

// In a large cluster nearly every volume of a class belongs to somebody. A new claim looks at those that do not, and a
// volume that becomes free is told to the claims that wait.
#[test]
fn a_claim_costs_the_same_beside_a_thousand_bound_volumes() {
    let mut cache = Cache::default();
    for number in 0..1000 {
        let (name, of) = (format!("v-{number}"), format!("c-{number}"));
        cache.set(volume(&name, "fast", Some(&of)));
        cache.set(claim(&of, json!("fast"), &name));
    }
    cache.set(class("fast", "false"));
    cache.set(claim("new", json!("fast"), ""));
    let before = cache.looked_at();
    let key = crate::Key::Claim(api::ObjectKey::new("n", "new"));
    let view = <Binding as control::Rules>::view(&key, &cache, &Local::default());
    assert!(format!("{view:?}").contains("Provision"), "{view:?}");
    assert!(cache.looked_at() - before < 10, "{} objects looked at", cache.looked_at() - before);

    let before = cache.looked_at();
    let free = volume("v-new", "fast", None);
    let change = control::Change { before: None, after: Some(free) };
    let woken = <Binding as control::Rules>::wakes(&change, &cache, &Local::default());
    assert!(woken.contains(&key), "{woken:?}");
    assert!(cache.looked_at() - before < 10, "{} objects looked at", cache.looked_at() - before);
}
