//! Nothing acknowledged is lost, whatever happens to the process.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{MAPS, call, config_map, open, revision};
use io_apiserver::{ApiServer, Config, Error};

const CHILD: &str = "LONGSHORE_TEST_DIRECTORY";

fn run(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future);
}

/// Not a test of its own: the process that others of this file start and kill.
#[test]
fn child_that_writes() {
    let Ok(directory) = std::env::var(CHILD) else { return };
    run(async {
        let server = match ApiServer::open(Config { data_dir: directory.into(), ..Config::default() }) {
            Ok(server) => server,
            Err(error) => {
                println!("refused {error}");
                return;
            }
        };
        let service = server.service_as("test");
        let start = server.revision();
        let writers = (0..8).map(|writer| {
            let service = service.clone();
            async move {
                for number in 0..u64::MAX {
                    let name = format!("m-{start}-{writer}-{number}");
                    let (code, object) = call(&service, "POST", MAPS, &config_map(&name, "x")).await;
                    assert_eq!(code, 201);
                    println!("acked {name} {}", revision(&object));
                    if number % 3 == 0 {
                        let (code, _) = call(&service, "DELETE", &format!("{MAPS}/{name}"), "").await;
                        assert_eq!(code, 200);
                        println!("deleted {name} 0");
                    }
                }
            }
        });
        futures::future::join_all(writers).await;
    });
}

fn child(directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["child_that_writes", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

#[test]
fn acknowledged_writes_survive_kill_9_and_versions_go_on_rising() {
    // reliability 84, 85, 88
    let dir = tempfile::tempdir().unwrap();
    let (mut highest, mut expected) = (0_u64, std::collections::BTreeMap::new());
    for round in 0..4 {
        let mut child = child(dir.path());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        for line in lines.by_ref() {
            seen += note(&line.unwrap(), &mut expected, &mut highest);
            if seen >= 300 + 70 * round {
                break;
            }
        }
        assert!(seen >= 300, "the child did not write");
        child.kill().unwrap();
        // What it had said before the end counts too; a last line may be cut short.
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        let (_, whole) = rest.split_last().map_or((None, &rest[..]), |(last, whole)| (Some(last), whole));
        whole.iter().for_each(|line| {
            note(line, &mut expected, &mut highest);
        });
        child.wait().unwrap();
        run(check(dir.path(), &mut expected, &mut highest));
    }
}

fn note(line: &str, expected: &mut std::collections::BTreeMap<String, bool>, highest: &mut u64) -> usize {
    let mut words = line.split_whitespace();
    let (word, name) = (words.next(), words.next());
    match (word, name) {
        (Some("acked"), Some(name)) => {
            let revision: u64 = words.next().unwrap().parse().unwrap();
            *highest = (*highest).max(revision);
            // The acknowledgement of a delete is the only other thing that may be said about a name.
            expected.entry(name.to_owned()).or_insert(true);
            1
        }
        (Some("deleted"), Some(name)) => {
            expected.insert(name.to_owned(), false);
            0
        }
        (_, _) => 0,
    }
}

async fn check(directory: &Path, expected: &mut std::collections::BTreeMap<String, bool>, highest: &mut u64) {
    let server = open(directory);
    let service = server.service_as("test");
    assert!(server.revision() >= *highest, "the counter never falls");
    for (name, there) in expected.iter() {
        let (code, _) = call(&service, "GET", &format!("{MAPS}/{name}"), "").await;
        // The last acknowledged creations of each writer may have been deleted without our hearing of it.
        let deleted_unheard =
            *there && code == 404 && name.rsplit('-').next().unwrap().parse::<u64>().unwrap() % 3 == 0;
        assert!(code == if *there { 200 } else { 404 } || deleted_unheard, "{name}: {code}, expected there: {there}");
    }
    let (code, object) = call(&service, "POST", MAPS, &config_map(&format!("after-{}", server.revision()), "x")).await;
    assert_eq!(code, 201);
    assert!(revision(&object) > *highest);
    *highest = revision(&object);
    server.close();
}

#[test]
fn a_second_process_is_refused_with_one_sentence() {
    // reliability 103
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path());
    let mut child = child(dir.path());
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    let line = said.lines().find(|l| l.contains("refused")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("is in use by another process"), "{line}");
    server.close();
}

#[test]
fn closing_frees_the_directory_and_keeps_everything() {
    let dir = tempfile::tempdir().unwrap();
    run(async {
        let server = open(dir.path());
        let service = server.service_as("test");
        let (_, made) = call(&service, "POST", MAPS, &config_map("kept", "x")).await;
        let (_, gone) = call(&service, "POST", MAPS, &config_map("gone", "x")).await;
        call(&service, "DELETE", &format!("{MAPS}/gone"), "").await;
        server.close();
        assert_eq!(call(&service, "POST", MAPS, &config_map("late", "x")).await.0, 503);
        let again = open(dir.path());
        assert!(again.revision() > revision(&gone), "a deletion is a revision too");
        let (code, kept) = call(&again.service_as("test"), "GET", &format!("{MAPS}/kept"), "").await;
        assert_eq!((code, &kept), (200, &made), "byte for byte the same object");
    });
}

#[test]
fn other_formats_and_damage_are_refused_and_nothing_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).close();
    let format = dir.path().join("format");
    std::fs::write(&format, "2\n").unwrap();
    let refuse = || ApiServer::open(Config { data_dir: dir.path().to_owned(), ..Config::default() }).err().unwrap();
    let sentence = refuse().to_string();
    assert!(sentence.contains("has format 2") && sentence.contains("reads format 1"), "{sentence}");
    std::fs::write(&format, "1\n").unwrap();
    let database = dir.path().join("store.sqlite");
    let good = std::fs::read(&database).unwrap();
    for damage in [b"rubbish".to_vec(), good[..good.len() / 2].to_vec(), scrambled(&good)] {
        std::fs::write(&database, &damage).unwrap();
        let error = refuse();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        assert!(!error.to_string().contains('\n'));
    }
    std::fs::write(&database, &good).unwrap();
    open(dir.path()).close();
}

fn scrambled(good: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    bytes[100..].iter_mut().for_each(|b| *b ^= 0x5a);
    bytes
}

#[test]
fn a_full_disk_refuses_writes_cleanly_and_service_resumes() {
    // reliability 101
    let dir = tempfile::tempdir().unwrap();
    run(async {
        let config = Config { data_dir: dir.path().to_owned(), max_database_bytes: Some(1 << 20), ..Config::default() };
        let server = ApiServer::open(config).unwrap();
        let service = server.service_as("test");
        let big = "x".repeat(100_000);
        let mut stored = Vec::new();
        let refused = loop {
            let name = format!("big{}", stored.len());
            let (code, status) = call(&service, "POST", MAPS, &config_map(&name, &big)).await;
            match code {
                201 => stored.push(name),
                _ => break (code, status),
            }
            assert!(stored.len() < 50, "the limit is not honoured");
        };
        assert_eq!(refused.0, 507, "{}", refused.1);
        let before = server.revision();
        for name in &stored {
            assert_eq!(call(&service, "GET", &format!("{MAPS}/{name}"), "").await.0, 200);
        }
        assert_eq!(call(&service, "DELETE", &format!("{MAPS}/big0"), "").await.0, 200, "deletes still work");
        let mut tries = 0;
        // Free space is looked for now and then, not at every write.
        while call(&service, "POST", MAPS, &config_map("big0", &big)).await.0 != 201 {
            tries += 1;
            assert!(tries < 200, "service does not resume");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert!(server.revision() > before);
    });
}

#[test]
fn h5_what_nests_to_the_limit_is_read_back_and_what_nests_deeper_is_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    run(async {
        let server = open(dir.path());
        let service = server.service_as("test");
        let status = "status/containerStatuses/0/user/linux/supplementalGroups";
        let container = r#"{"name":"c","image":"host"}"#;
        let pod = format!(r#"{{"metadata":{{"name":"p"}},"spec":{{"containers":[{container}]}}}}"#);
        let pods = "/api/v1/namespaces/default/pods";
        assert_eq!(call(&service, "POST", pods, &pod).await.0, 201);
        // The way of old: a list that nobody looked into, nested by two operations of a patch.
        let deep = format!("{}{}", "[".repeat(80), "]".repeat(80));
        let user = r#"{"linux":{"uid":0,"gid":0,"supplementalGroups":[]}}"#;
        let first = format!(r#"{{"status":{{"containerStatuses":[{{"name":"c","user":{user}}}]}}}}"#);
        let path = format!("{pods}/p/status");
        assert_eq!(common::call_as(&service, "PATCH", &path, "application/merge-patch+json", &first).await.0, 200);
        let inner = "/0".repeat(79);
        let add = |path: String| format!(r#"{{"op":"add","path":"/{path}","value":{deep}}}"#);
        let patch = format!("[{},{}]", add(status.to_owned()), add(format!("{status}{inner}/-")));
        let (code, said) = common::call_as(&service, "PATCH", &path, "application/json-patch+json", &patch).await;
        assert!(code == 413 && said["message"].as_str().unwrap().contains("nests deeper"), "{code} {said}");
        // Within the depth of a patch, the schema refuses what is no number.
        let patch = format!("[{}]", add(status.to_owned()));
        let (code, said) = common::call_as(&service, "PATCH", &path, "application/json-patch+json", &patch).await;
        assert!(code == 400 && said["message"].as_str().unwrap().contains("must be a whole number"), "{code} {said}");
        server.close();
        let again = open(dir.path());
        assert_eq!(call(&again.service_as("test"), "GET", &format!("{pods}/p"), "").await.0, 200);
        again.close();
    });
}

// The clock of the server is the machine's, so the event is made old in its database.
#[test]
fn events_that_expired_go_with_the_next_write() {
    const EVENTS: &str = "/api/v1/namespaces/default/events";
    let dir = tempfile::tempdir().unwrap();
    let body = |name: &str| format!(r#"{{"metadata": {{"name": "{name}"}}, "involvedObject": {{}}}}"#);
    run(async {
        let server = open(dir.path());
        let service = server.service_as("test");
        for name in ["old", "new"] {
            assert_eq!(call(&service, "POST", EVENTS, &body(name)).await.0, 201);
        }
        server.close();
    });
    let connection = rusqlite::Connection::open(dir.path().join("store.sqlite")).unwrap();
    let value: Vec<u8> =
        connection.query_row("SELECT value FROM objects WHERE key LIKE '%event%/old'", (), |row| row.get(0)).unwrap();
    let mut event: serde_json::Value = serde_json::from_slice(&value).unwrap();
    event["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z".into();
    let changed = connection
        .execute("UPDATE objects SET value = ?1 WHERE key LIKE '%event%/old'", [event.to_string().into_bytes()])
        .unwrap();
    assert_eq!(changed, 1);
    drop(connection);
    run(async {
        let server = open(dir.path());
        let service = server.service_as("test");
        assert_eq!(call(&service, "GET", &format!("{EVENTS}/old"), "").await.0, 200);
        assert_eq!(call(&service, "POST", MAPS, &config_map("any", "x")).await.0, 201);
        assert_eq!(call(&service, "GET", &format!("{EVENTS}/old"), "").await.0, 404);
        assert_eq!(call(&service, "GET", &format!("{EVENTS}/new"), "").await.0, 200);
        server.close();
    });
}
