use crate::{Local, ProcessName, Publish, Record};
use alloc::string::String;
use serde_json::{Value, json};

fn record() -> Record {
    let mut record = Record::of("pv1", "d.example", "h1", "n");
    record.staging_path = Some("/r/s".into());
    let publish = Publish { target: "/r/t".into(), pod_namespace: "ns".into(), pod_name: "a".into(), read_only: true };
    record.publishes.insert("uid".into(), publish);
    record
}

// 4.6, KL-62: the keys of Kubernetes, in alphabetical order of the fields we share, and a newline at the end.
#[test]
fn the_file_has_the_keys_kubernetes_uses() {
    let bytes = record().print();
    assert_eq!(bytes.last(), Some(&b'\n'));
    let json: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(json["volumeHandle"], "h1");
    assert_eq!(json["driverName"], "d.example");
    assert_eq!(json["specVolID"], "pv1");
    assert_eq!(json["nodeName"], "n");
    assert_eq!(json["volumeLifecycleMode"], "Persistent");
    assert_eq!(json["attachmentID"], json!(api::names::attachment_name("h1", "d.example", "n")));
    assert_eq!(Record::parse(&bytes), Ok(record()));
}

// Seed 004: whether a volume was migrated is in its record, and one written without the key was not.
#[test]
fn the_file_says_whether_the_volume_was_migrated() {
    let migrated = Record { migrated: true, ..record() };
    let mut json: Value = serde_json::from_slice(&migrated.print()).unwrap();
    assert_eq!(json["migratedVolume"], true);
    assert_eq!(Record::parse(&migrated.print()), Ok(migrated));
    json.as_object_mut().unwrap().remove("migratedVolume");
    assert_eq!(Record::parse(alloc::format!("{json}").as_bytes()), Ok(record()));
}

// Reliability 48.
// KL-63.
#[test]
fn what_is_no_record_is_an_error() {
    let mut newer: Value = serde_json::from_slice(&record().print()).unwrap();
    newer["version"] = 2.into();
    let mut nameless: Value = serde_json::from_slice(&record().print()).unwrap();
    nameless["volumeHandle"] = "".into();
    let torn = &record().print()[..40];
    for bytes in
        [b"".as_slice(), b"{}", b"null", torn, newer_bytes(&newer).as_bytes(), newer_bytes(&nameless).as_bytes()]
    {
        assert!(Record::parse(bytes).is_err(), "{}", String::from_utf8_lossy(bytes));
    }
}

fn newer_bytes(value: &Value) -> String {
    alloc::format!("{value}")
}

#[test]
fn process_names_are_read_back_and_never_too_long() {
    let name = ProcessName {
        pod: api::ObjectKey::new("ns", "a.b-c"),
        uid: "u-1".into(),
        container: "main".into(),
        restart: 3,
    };
    assert_eq!(name.print().unwrap(), "u-1_ns_a.b-c_main_3");
    assert_eq!(ProcessName::parse("u-1_ns_a.b-c_main_3"), Some(name.clone()));
    for foreign in ["", "a", "u_ns_a_main", "u_ns_a_main_x", "u_ns_a_main_1_2"] {
        assert_eq!(ProcessName::parse(foreign), None, "{foreign}");
    }
    let long = ProcessName { pod: api::ObjectKey::new("ns", "x".repeat(253)), ..name };
    assert_eq!(long.print(), None);
}

// Reliability 48: a record that is there and of no use stands for a volume in use, whatever is wrong with it.
#[test]
fn a_record_is_loaded_under_its_volume_or_named_by_its_path() {
    let mut local = Local::new("n", "life", "/r");
    let path = crate::Paths::of("/r", "d.example", "h1").record;
    assert!(path.starts_with(&crate::volumes_dir("/r")) && path.ends_with(crate::RECORD_FILE));
    assert_eq!(local.load_record(&path, Ok(record().print())), Ok(()));
    assert_eq!(local.records.get(&record().unique_name()), Some(&record()));
    assert!(local.unreadable.is_empty());
    let bad = local.load_record("/r/torn", Ok(b"{".to_vec())).unwrap_err();
    assert!(alloc::format!("{bad}").contains("restore it"), "{bad}");
    local.load_record("/r/gone-bad", Err("input/output error".into())).unwrap_err();
    assert_eq!(local.unreadable.iter().collect::<alloc::vec::Vec<_>>(), ["/r/gone-bad", "/r/torn"]);
    assert_eq!(local.records.len(), 1);
}
