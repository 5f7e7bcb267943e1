//! The recorded answers of Kubernetes' own library are what it answers today.

use std::fs::File;
use std::process::Command;

use prove_cluster::peer;

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rules-translate/src/tests/golden.jsonl");

// reliability 130
#[test]
fn the_recorded_translations_are_those_of_the_pinned_library() {
    let mut recorder = Command::new(peer("record-translations").unwrap());
    let made = recorder.stdin(File::open(RECORD).unwrap()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (now, recorded) = (String::from_utf8(made.stdout).unwrap(), std::fs::read_to_string(RECORD).unwrap());
    assert_eq!(now.lines().count(), recorded.lines().count());
    for (now, recorded) in now.lines().zip(recorded.lines()) {
        assert_eq!(now, recorded, "record again with: make record-translations");
    }
}
