//! What is written down with an intent, and read again.

use alloc::format;
use alloc::string::String;

use api::PersistentVolumeClaim;
use serde_json::json;

use super::request::{claim, class, good, local, under};
use crate::intent::{claim_in, key_in, record, record_for, recorded, source_in};
use crate::{ContentSource, RecentlyProvisioned, SourceKind, Terms};

/// As they are read again: the class's name is the claim's to tell.
fn plain() -> Terms {
    nameless(good(&[]))
}

fn nameless(terms: Terms) -> Terms {
    Terms { class: String::new(), ..terms }
}

fn comes_back(claim: &PersistentVolumeClaim, terms: &Terms) {
    for record in [record(claim, terms), record_for(claim, terms)] {
        assert_eq!(recorded(claim, &record).unwrap().terms, *terms, "{record}");
    }
}

// Reliability 14, 69.
#[test]
fn the_record_gives_back_the_same_terms() {
    let parameters = [
        ("csi.storage.k8s.io/fstype", "xfs"),
        ("type", "ssd"),
        ("csi.storage.k8s.io/secret-name", "s"),
        ("csi.storage.k8s.io/secret-namespace", "n"),
    ];
    let claim = claim(json!({}));
    comes_back(&claim, &nameless(good(&parameters)));
    assert_eq!(recorded(&claim, "{}"), None);
}

// What is left out because it is usual is not left out when it is not.
#[test]
fn what_is_unusual_is_written_down() {
    let many = claim(json!({ "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "volumeMode": "Block" }));
    let terms = under(&many, &class(&[]), &local(|settings| settings.volume_name_prefix = "vol".into()), &[]);
    let terms = Terms { reclaim_policy: "Retain".into(), ..nameless(terms.unwrap()) };
    assert_eq!(terms.request.name, "vol-u");
    comes_back(&many, &terms);
    let record = record_for(&many, &terms);
    assert_eq!(claim_in("u", &record).unwrap().spec.access_modes, many.spec.access_modes);
}

// The server writes every entry of the journal again with each of them, so that each byte counts many times.
#[test]
fn what_is_usual_is_left_out() {
    let mut plain = plain();
    plain.request.mount_options.clear();
    let claim = claim(json!({ "storageClassName": "fast", "volumeMode": "Filesystem" }));
    assert_eq!(record_for(&claim, &plain), r#"{"c":{"ns":"n","n":"c","k":"fast","s":"1Gi"},"u":"cu"}"#);
}

// A new version finds the journal of the one before it.
#[test]
fn what_an_earlier_version_wrote_is_read() {
    let (claim, mut terms) = (claim(json!({})), plain());
    let before = r#"{"claim":{"modes":["ReadWriteOnce"],"name":"c","namespace":"n","storage":"1Gi"},"class":"cu","mountOptions":["noatime"],"name":"pvc-u","reclaimPolicy":"Delete","source":{"handle":"h","kind":"Snapshot","name":"snap","namespace":"n"}}"#;
    let source =
        ContentSource { kind: SourceKind::Snapshot, namespace: "n".into(), name: "snap".into(), handle: "h".into() };
    terms.request.source = Some(source.clone());
    assert_eq!(recorded(&claim, before).unwrap().terms, terms);
    assert_eq!(key_in(before), Some(claim.metadata.key()));
    assert_eq!(source_in(before), Some(source));
    let now = record_for(&claim, &terms);
    assert_eq!(claim_in("u", before), claim_in("u", &now));
    assert_eq!((key_in(before), source_in(before)), (key_in(&now), source_in(&now)));
}

// What undoing needs is in the journal, so that it does not need the claim.
#[test]
fn a_claim_that_is_gone_is_described_well_enough_to_ask_for_the_same_volume() {
    for more in [json!({}), json!({ "volumeMode": "Block", "accessModes": ["ReadWriteMany", "ReadOnlyMany"] })] {
        let claim = claim(more);
        let record = record_for(&claim, &plain());
        let gone = claim_in(&claim.metadata.uid, &record).unwrap();
        assert!(gone.metadata.is_deleting());
        assert_eq!(gone.metadata.key(), claim.metadata.key());
        assert_eq!(recorded(&gone, &record), recorded(&claim, &record));
    }
    assert_eq!(claim_in("u", &record(&claim(json!({})), &plain())), None);
    assert_eq!((claim_in("u", "nonsense"), key_in("nonsense"), source_in("a source")), (None, None, None));
}

// Reliability 13, 105.
#[test]
fn the_oldest_of_what_was_recorded_lately_is_forgotten() {
    let mut recently_provisioned = RecentlyProvisioned::default();
    for number in (0..512).chain([0, 512]) {
        recently_provisioned.note(&format!("u{number}"));
    }
    assert!(!recently_provisioned.has("u1"));
    assert!((0..=512).filter(|number| *number != 1).all(|number| recently_provisioned.has(&format!("u{number}"))));
}
