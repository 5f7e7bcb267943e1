use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use api::{Kind, Lease, PersistentVolume, PersistentVolumeClaim, Value, VolumeAttachment};
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{bytes, kinds, number};
use crate::{Error, LIST_META, Reader, STATUS, envelope, event, list, message};

fn read<T: DeserializeOwned>(kind: Kind, raw: &[u8]) -> Result<T, Error> {
    T::deserialize(Reader::answer(message(kind).unwrap(), raw))
}

fn volume(raw: &[u8]) -> Result<PersistentVolume, Error> {
    read(Kind::PersistentVolume, raw)
}

/// A map's entry.
fn entry(key: &str, value: &[u8]) -> Vec<u8> {
    [bytes(1, key.as_bytes()), bytes(2, value)].concat()
}

#[test]
fn what_go_writes_though_nobody_set_it_is_left_out() {
    let meta = [bytes(1, b"v"), bytes(2, b""), bytes(3, b""), bytes(5, b""), number(7, 0), bytes(8, b"")].concat();
    let csi = [bytes(1, b"d"), bytes(2, b"h"), number(3, 0), bytes(4, b"")].concat();
    let spec = [bytes(2, &bytes(22, &csi)), bytes(5, b""), bytes(6, b"")].concat();
    let status = [bytes(1, b""), bytes(2, b""), bytes(3, b"")].concat();
    let raw = [bytes(1, &meta), bytes(2, &spec), bytes(3, &status)].concat();
    let wanted = json!({ "metadata": { "name": "v" }, "spec": { "csi": { "driver": "d", "volumeHandle": "h" } } });
    assert_eq!(volume(&raw).unwrap(), serde_json::from_value(wanted).unwrap());
    let tree: Value = read(Kind::PersistentVolume, &raw).unwrap();
    assert_eq!(tree["metadata"], json!({ "name": "v" }));
    assert_eq!(tree["spec"], json!({ "csi": { "driver": "d", "volumeHandle": "h" } }));
}

#[test]
fn set_to_nothing_is_not_the_same_as_not_set() {
    let claim = |spec: &[u8]| read::<PersistentVolumeClaim>(Kind::PersistentVolumeClaim, &bytes(2, spec)).unwrap().spec;
    assert_eq!(claim(b"").storage_class_name, None);
    assert_eq!(claim(&bytes(5, b"")).storage_class_name.as_deref(), Some(""));
    assert_eq!(claim(&bytes(6, b"")).volume_mode, Some(api::VolumeMode::default()));
    // A name that is no pointer means nothing when it is empty.
    assert_eq!(claim(&bytes(3, b"")).volume_name, "");
    assert_eq!(claim(b"").selector, None);
    assert_eq!(claim(&bytes(4, b"")).selector, Some(api::LabelSelector::default()));
    let source = bytes(7, &[bytes(1, b""), bytes(2, b"k"), bytes(3, b"n")].concat());
    assert_eq!(claim(&source).data_source.unwrap().api_group.as_deref(), Some(""));
    let lease = read::<Lease>(Kind::Lease, &bytes(2, &[bytes(1, b""), number(2, 0), number(5, 0)].concat())).unwrap();
    assert_eq!(lease.spec.holder_identity.as_deref(), Some(""));
    assert_eq!((lease.spec.lease_duration_seconds, lease.spec.lease_transitions), (Some(0), Some(0)));
}

#[test]
fn lists_maps_quantities_and_parts_are_read() {
    let spec = [
        bytes(1, &entry("storage", &bytes(1, b"1Gi"))),
        bytes(1, &entry("other", &bytes(1, b"5"))),
        bytes(3, b"ReadWriteOnce"),
        bytes(3, b"ReadOnlyMany"),
        bytes(9, &bytes(1, &bytes(1, &bytes(1, &[bytes(1, b"zone"), bytes(2, b"In"), bytes(3, b"a")].concat())))),
    ]
    .concat();
    let meta = [bytes(11, &entry("a", b"")), bytes(14, b"f/g"), bytes(13, &[bytes(1, b"K"), number(6, 0)].concat())];
    let read = volume(&[bytes(1, &meta.concat()), bytes(2, &spec)].concat()).unwrap();
    let wanted = json!({
        "metadata": { "labels": { "a": "" }, "finalizers": ["f/g"], "ownerReferences": [{ "kind": "K", "controller": false }] },
        "spec": {
            "capacity": { "storage": "1Gi", "other": "5" }, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "nodeAffinity": { "required": { "nodeSelectorTerms": [
                { "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a"] }] },
            ] } },
        },
    });
    assert_eq!(read, serde_json::from_value(wanted).unwrap());
}

#[test]
fn times_and_negative_numbers_are_read() {
    let time = |seconds, nanos| [number(1, seconds), number(2, nanos)].concat();
    let spec = [bytes(3, &time(1_800_000_000, 1_002_999)), bytes(4, &time(1_800_000_001, 0))].concat();
    let meta = bytes(8, &time(1_800_000_000, 5));
    let lease = read::<Lease>(Kind::Lease, &[bytes(1, &meta), bytes(2, &spec)].concat()).unwrap();
    assert_eq!(lease.metadata.creation_timestamp.unwrap().0, "2027-01-15T08:00:00Z");
    assert_eq!(lease.spec.acquire_time.unwrap().0, "2027-01-15T08:00:00.001002Z");
    assert_eq!(lease.spec.renew_time.unwrap().0, "2027-01-15T08:00:01.000000Z");
    let error = bytes(3, &[bytes(2, b"no"), number(3, u64::MAX)].concat());
    let attachment = read::<VolumeAttachment>(Kind::VolumeAttachment, &bytes(3, &error)).unwrap();
    assert_eq!(attachment.status.attach_error.unwrap().error_code, Some(-1));
}

#[test]
fn a_field_nobody_reads_is_skipped_in_an_answer_and_refused_in_a_request() {
    let raw = [bytes(1, &bytes(1, b"v")), bytes(99, b"new"), number(98, 1)].concat();
    assert_eq!(volume(&raw).unwrap().metadata.name, "v");
    let strict = Value::deserialize(Reader::request(message(Kind::PersistentVolume).unwrap(), &raw));
    assert!(strict.unwrap_err().to_string().contains("no field with the number 99"));
}

#[test]
fn nothing_is_lost_in_silence() {
    let spec = |spec: &[u8]| volume(&bytes(2, spec)).map(|_| ()).unwrap_err().to_string();
    for (raw, said) in [
        // Of many that do not stand together a part would be lost.
        ([bytes(3, b"a"), bytes(6, b"c"), bytes(3, b"b")].concat(), "accessModes"),
        (
            [bytes(1, &entry("a", &bytes(1, b"1"))), bytes(6, b"c"), bytes(1, &entry("b", &bytes(1, b"1")))].concat(),
            "capacity",
        ),
        ([bytes(6, b"c"), bytes(6, b"d")].concat(), "storageClassName"),
        ([bytes(2, b""), bytes(2, b"")].concat(), "persistentVolumeSource stands there twice"),
        (number(6, 1), "storageClassName is of another type"),
        (number(3, 1), "accessModes is of another type"),
        (bytes(6, b"\xff"), "storageClassName is not UTF-8 text"),
        (bytes(2, &bytes(2, &number(3, 1 << 40))), "partition is too large a number"),
        (bytes(2, &bytes(22, &number(3, 2))), "readOnly is of another type"),
        (vec![0x31, 0, 0, 0, 0, 0, 0, 0, 0], "a type that no field has"),
        (vec![0x32, 0xff, 0xff, 0xff, 0xff, 0x0f], "longer than what holds it"),
        (vec![0x80], "ends in the middle of a field"),
    ] {
        let error = spec(&raw);
        assert!(error.contains(said), "{error} instead of {said}");
        // A tree, as a claim's selector is one, does not look for doubles itself.
        assert!(read::<Value>(Kind::PersistentVolume, &bytes(2, &raw)).is_err(), "{said}");
    }
    let late = bytes(1, &bytes(8, &number(1, u64::MAX)));
    assert!(volume(&late).unwrap_err().to_string().contains("creationTimestamp is no time"));
}

#[test]
fn lists_statuses_and_events_are_read() {
    let raw =
        [bytes(1, &[bytes(2, b"7"), bytes(3, b"more"), number(4, 9)].concat()), bytes(2, b"x"), bytes(2, b"")].concat();
    let (metadata, items) = list(&raw).unwrap();
    let metadata = Value::deserialize(Reader::answer(&LIST_META, metadata)).unwrap();
    assert_eq!(metadata, json!({ "resourceVersion": "7", "continue": "more", "remainingItemCount": 9 }));
    assert_eq!(items, [&b"x"[..], b""]);
    assert!(list(&bytes(3, b"")).is_err());
    let raw =
        [bytes(2, b"Failure"), bytes(3, b"gone"), bytes(4, b"Expired"), bytes(5, b"\x0a\0"), number(6, 410)].concat();
    let status = Value::deserialize(Reader::answer(&STATUS, &raw)).unwrap();
    assert_eq!(
        status,
        json!({ "status": "Failure", "message": "gone", "reason": "Expired", "details": {}, "code": 410 })
    );
    let raw = [bytes(1, b"ADDED"), bytes(2, &bytes(1, b"object"))].concat();
    assert_eq!(event(&raw).unwrap(), ("ADDED", &b"object"[..]));
    assert!(event(&number(2, 1)).is_err());
}

#[test]
fn bytes_cut_off_or_spoilt_anywhere_are_read_or_refused() {
    let csi = [bytes(1, b"d"), bytes(5, &entry("a", b"b")), bytes(6, &bytes(1, b"s")), number(3, 1)].concat();
    let spec = [bytes(1, &entry("storage", &bytes(1, b"1Gi"))), bytes(2, &bytes(22, &csi)), bytes(3, b"x")].concat();
    let whole = [bytes(1, &[bytes(1, b"v"), bytes(8, &number(1, 9))].concat()), bytes(2, &spec)].concat();
    assert!(volume(&whole).is_ok());
    for end in 0..whole.len() {
        let _ = volume(&whole[..end]);
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut spoilt = whole.clone();
            spoilt[at] ^= 1 << bit;
            let _ = volume(&spoilt);
        }
    }
}

#[test]
fn messages_in_messages_go_no_deeper_than_the_tables() {
    let mut deep = Vec::new();
    for _ in 0..1000 {
        deep = bytes(2, &deep);
    }
    // Far down it is an inlined source, whose second field has four fields of its own.
    assert!(volume(&deep).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = (envelope(&raw).is_ok(), list(&raw).is_ok(), event(&raw).is_ok());
        for kind in kinds() {
            let _ = read::<Value>(kind, &raw).is_ok();
        }
        let _ = volume(&raw).is_ok();
    }

    #[test]
    fn fields_of_any_kind_in_any_order_are_read_or_refused(
        fields in proptest::collection::vec((1u32..20, any::<bool>(), proptest::collection::vec(0u8..32, 0..12)), 0..12)
    ) {
        let raw: Vec<u8> = fields
            .iter()
            .flat_map(|(field, is_number, content)| {
                if *is_number { number(*field, content.len() as u64) } else { bytes(*field, content) }
            })
            .collect();
        for kind in kinds() {
            let _: Result<String, String> = read::<Value>(kind, &bytes(2, &raw)).map(|v| v.to_string()).map_err(|e| e.to_string());
        }
    }
}
