//! A process alone in its test, because every panic in it counts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::sync::Arc;

use io_apiserver::{ApiServer, Config};
use io_kube::Kube;
use io_run::Manager;

// Tasks and threads that nobody waits for, of whatever crate: the health check names the place, not the words, which
// may quote a secret.
#[tokio::test]
async fn a_panic_anywhere_in_the_process_is_told_by_its_health() {
    let data = tempfile::tempdir().unwrap();
    let server = ApiServer::open(Config { data_dir: data.path().join("api"), ..Config::default() }).unwrap();
    let kube = Kube::in_process(server.service_as("system:longshore"));
    let manager = Manager::new(kube.clone(), kube, Arc::default(), None);
    assert_eq!(manager.health(), Ok(()));

    let _ = tokio::spawn(async { panic!("the word is canary") }).await;
    let told = manager.health().unwrap_err().to_string();
    assert!(told.starts_with("1 panics since the start: ") && told.contains("tests/panics.rs:"), "{told}");
    let _ = std::thread::spawn(|| panic!("the word is canary")).join();
    assert!(manager.health().unwrap_err().to_string().starts_with("2 panics since the start: "));

    let kept = manager.keep("the watch of mounts", async {});
    while !kept.is_finished() {
        tokio::task::yield_now().await;
    }
    let told = manager.health().unwrap_err().to_string();
    assert!(told.starts_with("1 tasks failed since the start: the watch of mounts has ended. 2 panics"), "{told}");
    assert!(!told.contains("canary"), "{told}");

    manager.stop().await;
    server.close();
}

// Tasks end with the process: that is no news.
#[tokio::test]
async fn what_ends_with_the_manager_is_not_told() {
    let data = tempfile::tempdir().unwrap();
    let server = ApiServer::open(Config { data_dir: data.path().join("api"), ..Config::default() }).unwrap();
    let kube = Kube::in_process(server.service_as("system:longshore"));
    let manager = Manager::new(kube.clone(), kube, Arc::default(), None);
    manager.stop().await;
    let kept = manager.keep("the watch of mounts", async {});
    while !kept.is_finished() {
        tokio::task::yield_now().await;
    }
    let told = manager.health();
    assert!(!told.is_err_and(|told| told.to_string().contains("ended")), "what ended was told");
    server.close();
}
