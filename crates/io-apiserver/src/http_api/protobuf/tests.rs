use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::encoding::{WireType, encode_key, encode_varint};
use serde_json::json;
use wire::MAGIC;

use super::*;

/// A field of bytes.
fn bytes(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut out);
    encode_varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

/// A field of a number.
fn number(number: u32, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(number, WireType::Varint, &mut out);
    encode_varint(value, &mut out);
    out
}

fn enveloped(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let of = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), bytes(1, &of), bytes(2, raw), bytes(3, b""), bytes(4, b"")].concat()
}

fn secret(more: &[u8]) -> Vec<u8> {
    let label = [bytes(1, b"app"), bytes(2, b"db")].concat();
    // As Go writes it: what is not set is there, and empty.
    let meta = [bytes(1, b"key"), bytes(2, b""), number(7, 0), bytes(8, b""), bytes(11, &label), bytes(14, b"a/b")];
    let data = [bytes(1, b"password"), bytes(2, b"hunter2\xff")].concat();
    let raw = [bytes(1, &meta.concat()), bytes(2, &data), bytes(3, b"Opaque"), more.to_vec()].concat();
    enveloped("v1", "Secret", &raw)
}

#[test]
fn an_object_becomes_the_json_of_the_same_object() {
    let read = object(&secret(&number(5, 0))).unwrap();
    let meta = json!({"name": "key", "labels": {"app": "db"}, "finalizers": ["a/b"]});
    let wanted = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "immutable": false,
        "data": {"password": STANDARD.encode(b"hunter2\xff")},
    });
    assert_eq!(read, wanted);
}

#[test]
fn numbers_times_and_lists_of_parts_are_read() {
    let minus = number(1, u64::MAX);
    let options = object(&enveloped("v1", "DeleteOptions", &minus)).unwrap();
    assert_eq!(options["gracePeriodSeconds"], -1);
    let meta = bytes(1, &bytes(8, &[number(1, 1_800_000_000), number(2, 5)].concat()));
    let rules = [bytes(2, &bytes(1, b"get")), bytes(2, &bytes(1, b"list"))].concat();
    let role = object(&enveloped("rbac.authorization.k8s.io/v1", "Role", &[meta, rules].concat())).unwrap();
    assert_eq!(role["metadata"]["creationTimestamp"], "2027-01-15T08:00:00Z");
    assert_eq!(role["rules"], json!([{"verbs": ["get"]}, {"verbs": ["list"]}]));
}

#[test]
fn what_is_not_known_is_refused_and_never_dropped() {
    // reliability 129
    for (body, said) in [
        (secret(&bytes(9, b"x")), "Secret has no field with the number 9"),
        (secret(&number(3, 1)), "Secret.type is of another type"),
        (secret(&bytes(3, b"Other")), "Secret.type stands there twice"),
        (secret(&number(5, 2)), "Secret.immutable is of another type"),
        (secret(&bytes(3, b"\xff")), "Secret.type is not UTF-8 text"),
        (secret(&[0x2d, 0, 0, 0, 0]), "a type that no field has"),
        (secret(&bytes(1, &bytes(8, &number(1, u64::MAX)))), "creationTimestamp is no time"),
        (secret(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), "longer than what holds it"),
        (b"k8s\0\x08\x01".to_vec(), "the envelope has no field with the number 1"),
        (b"{}".to_vec(), "does not begin with k8s"),
    ] {
        let refusal = object(&body).unwrap_err();
        assert_eq!(refusal.code(), 400);
        assert!(refusal.message().contains(said), "{} instead of {said}", refusal.message());
        assert!(!refusal.message().contains("hunter2"));
    }
    for (api_version, kind) in [("v1", "Service"), ("snapshot.storage.k8s.io/v1", "VolumeSnapshot")] {
        assert_eq!(object(&enveloped(api_version, kind, b"")).unwrap_err().code(), 415);
    }
    let packed = [MAGIC.to_vec(), bytes(3, b"gzip")].concat();
    assert_eq!(object(&packed).unwrap_err().code(), 400);
}

#[test]
fn a_body_cut_off_or_spoilt_anywhere_is_answered() {
    let whole = secret(&number(5, 1));
    for end in 0..whole.len() {
        // Cut between two fields it may still be an object, or one of no kind.
        if let Err(refusal) = object(&whole[..end]) {
            assert!(matches!(refusal.code(), 400 | 415), "{}", refusal.message());
        }
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut spoilt = whole.clone();
            spoilt[at] ^= 1 << bit;
            if let Err(refusal) = object(&spoilt) {
                assert!(!refusal.message().contains("hunter2"));
            }
        }
    }
}

#[test]
fn every_field_of_every_kind_is_written_as_it_is_read() {
    for kind in Kind::ALL {
        let mut full = wire::example(schema(kind));
        full["apiVersion"] = kind.api_version().into();
        full["kind"] = kind.name().into();
        match encode(&full) {
            Some(bytes) => assert_eq!(object(&bytes).unwrap(), full, "{kind}"),
            None => assert!(!kind.has_protobuf(), "{kind}"),
        }
    }
}

#[test]
fn an_empty_part_that_was_set_is_kept_and_one_that_go_writes_anyway_is_not() {
    let volume = [bytes(1, b"scratch"), bytes(2, &bytes(2, b""))].concat();
    let container = [bytes(1, b"c"), bytes(2, b"i"), bytes(8, b"")].concat();
    let spec = [bytes(1, &volume), bytes(2, &container)].concat();
    let raw = [bytes(1, &bytes(1, b"p")), bytes(2, &spec), bytes(3, &[bytes(1, b""), bytes(3, b"")].concat())].concat();
    let pod = object(&enveloped("v1", "Pod", &raw)).unwrap();
    assert_eq!(pod["spec"]["volumes"], json!([{"name": "scratch", "emptyDir": {}}]));
    assert_eq!(pod["spec"]["containers"], json!([{"name": "c", "image": "i"}]));
    assert_eq!(pod.get("status"), None);
}
