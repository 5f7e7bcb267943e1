use super::*;

fn request(name: &str) -> v1::CreateVolumeRequest {
    v1::CreateVolumeRequest {
        name: name.into(),
        capacity_range: Some(v1::CapacityRange { required_bytes: 10, limit_bytes: 20 }),
        parameters: [("tier".to_string(), "fast".to_string())].into(),
        secrets: [("password".to_string(), "canary-5d1e".to_string())].into(),
        volume_capabilities: vec![v1::VolumeCapability::default()],
        ..Default::default()
    }
}

fn volume(id: &str) -> v1::Volume {
    v1::Volume { volume_id: id.into(), capacity_bytes: 15, ..Default::default() }
}

fn made(dir: &Path, name: &str) -> Ledger {
    let ledger = Ledger::open(dir).unwrap();
    assert!(matches!(ledger.begin(name, &request(name)).unwrap(), Finding::New));
    ledger.finish(name, volume(name)).unwrap();
    ledger
}

// Reliability 76 and 77.
#[test]
fn what_was_made_is_the_same_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    drop(made(dir.path(), "a"));
    let ledger = Ledger::open(dir.path()).unwrap();
    assert!(ledger.get("a") == Some(volume("a")));
    match ledger.begin("a", &request("a")).unwrap() {
        Finding::Same(found) => assert!(found == volume("a")),
        Finding::New | Finding::Incompatible(_) => panic!("the same request is not known again"),
    }
    ledger.forget("a").unwrap();
    drop(ledger);
    assert!(Ledger::open(dir.path()).unwrap().volumes().is_empty());
}

#[test]
fn what_was_begun_is_on_record_and_can_be_begun_again() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(dir.path()).unwrap();
    assert!(matches!(ledger.begin("a", &request("a")).unwrap(), Finding::New));
    drop(ledger);
    let ledger = Ledger::open(dir.path()).unwrap();
    assert!(ledger.get("a").is_none() && ledger.knows("a"));
    assert!(matches!(ledger.begin("a", &request("a")).unwrap(), Finding::New));
}

// Reliability 76: every argument that makes it another volume.
#[test]
fn a_request_that_differs_is_incompatible() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = made(dir.path(), "a");
    let range = |required_bytes, limit_bytes| Some(v1::CapacityRange { required_bytes, limit_bytes });
    let other: [(&str, v1::CreateVolumeRequest); 6] = [
        ("size", v1::CreateVolumeRequest { capacity_range: range(16, 0), ..request("a") }),
        ("size", v1::CreateVolumeRequest { capacity_range: range(1, 14), ..request("a") }),
        ("parameters", v1::CreateVolumeRequest { parameters: BTreeMap::new(), ..request("a") }),
        ("content", v1::CreateVolumeRequest { volume_content_source: Some(Default::default()), ..request("a") }),
        ("capabilities", v1::CreateVolumeRequest { volume_capabilities: vec![], ..request("a") }),
        ("name", request("b")),
    ];
    for (word, asked) in other {
        match ledger.begin("a", &asked).unwrap() {
            Finding::Incompatible(why) => assert!(why.contains(word), "{why}, not {word}"),
            Finding::New | Finding::Same(_) => panic!("{word} makes no difference"),
        }
    }
    // A size it has is the size that is asked for, however it is written.
    for range in [range(0, 0), range(15, 15), range(1, 0), None] {
        let asked = v1::CreateVolumeRequest { capacity_range: range, ..request("a") };
        assert!(matches!(ledger.begin("a", &asked).unwrap(), Finding::Same(_)));
    }
}

#[test]
fn a_volume_in_another_place_is_another_volume() {
    let place = |zone: &str| v1::Topology { segments: [("zone".to_string(), zone.to_string())].into() };
    assert!(reachable(&[place("a"), place("b")], &[place("b")]));
    assert!(!reachable(&[place("a")], &[place("b")]));
    assert!(reachable(&[], &[place("b")]) && reachable(&[place("a")], &[]));
}

// Reliability 77: the write that a power loss cut off, before and after it counted.
#[test]
fn a_file_is_old_or_new() {
    let dir = tempfile::tempdir().unwrap();
    drop(made(dir.path(), "a"));
    fs::write(dir.path().join("a.new"), b"half of someth").unwrap();
    fs::write(dir.path().join("b.new"), b"").unwrap();
    let ledger = Ledger::open(dir.path()).unwrap();
    assert_eq!(ledger.volumes().len(), 1);
    assert!(!dir.path().join("a.new").exists() && !dir.path().join("b.new").exists());
    drop(ledger);
    fs::write(dir.path().join("a"), b"\xff\xff").unwrap();
    let error = Ledger::open(dir.path()).err().unwrap().to_string();
    assert!(error.contains("the file a cannot be read"), "{error}");
}

// Reliability 121.
#[test]
fn no_secret_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    drop(made(dir.path(), "a"));
    for entry in fs::read_dir(dir.path()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(6).any(|six| six == b"canary"));
    }
}

#[test]
fn one_process_keeps_a_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let first = Ledger::open(dir.path()).unwrap();
    assert!(Ledger::open(dir.path()).err().unwrap().to_string().contains("in use by another process"));
    drop(first);
    Ledger::open(dir.path()).unwrap();
}

// Reliability 78.
#[test]
fn no_id_leads_out_of_the_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(dir.path().join("ledger")).unwrap();
    for id in ["../a", "/a", "a/b", "", ".", "..", "a\0", "a.new"] {
        assert!(ledger.begin(id, &request("a")).is_err(), "{id:?}");
        assert!(ledger.get(id).is_none());
        ledger.forget(id).unwrap();
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
