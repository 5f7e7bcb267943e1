//! Both ends against each other, over real sockets.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Running, SOON, delete, info};
use csi::{Call, Code, Method, Response, v1};
use io_csi::{CsiClient, outcome};

#[tokio::test]
async fn an_answer_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let running = Running::at(dir.path().join("csi.sock")).await;
    let client = CsiClient::new();
    for socket in [running.socket().to_owned(), format!("unix://{}", running.socket())] {
        let Ok(Response::GetPluginInfo(answer)) = client.call(&socket, info(), SOON).await else { panic!("no answer") };
        assert_eq!(answer.name, "test.driver");
    }
}

// Reliability 70: every code the driver sends arrives as sent, and as the driver's.
#[tokio::test]
async fn a_status_of_the_driver_arrives_as_it_was_sent() {
    let dir = tempfile::tempdir().unwrap();
    let running = Running::at(dir.path().join("csi.sock")).await;
    let client = CsiClient::new();
    for code in Code::ALL.into_iter().filter(|code| *code != Code::Ok) {
        let status = client.call(running.socket(), delete(&(code as i32).to_string()), SOON).await.unwrap_err();
        assert_eq!((status.code, status.from_driver), (code, true));
        assert_eq!(status.message, "schön: 100% of «it»\n");
    }
    // A refusal that says OK must not read as success.
    let status = client.call(running.socket(), delete("0"), SOON).await.unwrap_err();
    assert_eq!((status.code, status.from_driver), (Code::Internal, true));
    let status = client.call(running.socket(), delete("mixed up"), SOON).await.unwrap_err();
    assert_eq!(status.code, Code::Internal);
    let status = client.call(running.socket(), delete("long"), SOON).await.unwrap_err();
    assert!(status.from_driver && status.message.ends_with('…'), "{}", status.message.len());
}

#[tokio::test]
async fn a_method_that_is_not_offered_is_unimplemented() {
    let dir = tempfile::tempdir().unwrap();
    let running = Running::at(dir.path().join("csi.sock")).await;
    let call = Call::NodeGetInfo(v1::NodeGetInfoRequest {});
    let status = CsiClient::new().call(running.socket(), call, SOON).await.unwrap_err();
    assert_eq!((status.code, status.from_driver), (Code::Unimplemented, true));
}

#[tokio::test]
async fn a_driver_that_is_not_there_is_told_in_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let client = CsiClient::new();
    let path = dir.path().join("csi.sock");
    let socket = path.to_str().unwrap();
    let status = client.call(socket, info(), SOON).await.unwrap_err();
    assert_eq!(status.message, format!("cannot reach the driver at {socket}: there is no such socket; is it running?"));
    assert!(!status.from_driver);

    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let status = client.call(socket, info(), SOON).await.unwrap_err();
    assert_eq!(status.message, format!("cannot reach the driver at {socket}: connection refused; is it running?"));
    assert!(!status.from_driver);

    let long = format!("/{}", "x".repeat(200));
    let status = client.call(&long, info(), SOON).await.unwrap_err();
    assert!(status.message.contains("107 bytes") && !status.from_driver, "{status}");
}

#[tokio::test]
async fn a_restarted_driver_answers_the_next_call() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csi.sock");
    let client = CsiClient::new();
    for _ in 0..5 {
        let running = Running::at(path.clone()).await;
        client.call(running.socket(), info(), SOON).await.unwrap();
        running.stop().await;
        client.call(path.to_str().unwrap(), info(), SOON).await.unwrap_err();
    }
    // Also without a failed call in between.
    for _ in 0..5 {
        let running = Running::at(path.clone()).await;
        client.call(running.socket(), info(), SOON).await.unwrap();
        running.stop().await;
    }
}

// Reliability 71.
#[tokio::test]
async fn a_call_ends_at_its_deadline_and_the_work_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let running = Running::at(dir.path().join("csi.sock")).await;
    let status = CsiClient::new().call(running.socket(), delete("wait"), Duration::from_millis(50)).await.unwrap_err();
    assert_eq!((status.code, status.from_driver), (Code::DeadlineExceeded, false));
    assert!(status.message.contains("did not answer DeleteVolume within 0.05 s"), "{status}");
    running.driver.begun.notified().await;
    running.driver.go_on.notify_one();
    running.driver.ended.notified().await;
}

#[tokio::test]
async fn a_caller_that_hangs_up_cancels_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let running = Running::at(dir.path().join("csi.sock")).await;
    let socket = running.socket().to_owned();
    let caller = tokio::spawn(async move { CsiClient::new().call(&socket, delete("wait"), SOON).await });
    running.driver.begun.notified().await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    running.driver.go_on.notify_one();
    running.driver.ended.notified().await;
}

#[tokio::test]
async fn stopping_waits_for_work_whose_caller_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let running = Running::at(dir.path().join("csi.sock")).await;
    let driver = running.driver.clone();
    CsiClient::new().call(running.socket(), delete("wait"), Duration::from_millis(50)).await.unwrap_err();
    driver.begun.notified().await;
    let mut stopping = Box::pin(running.begin_stop().finished());
    // It cannot end by itself: the only thing it waits for is what we hold back.
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut stopping).await.is_err());
    driver.go_on.notify_one();
    stopping.await.unwrap();
    driver.ended.notified().await;
}

// Reliability 121: a canary in every secret, a driver that shouts it, one that panics with it, and a lost connection.
#[tokio::test]
async fn no_secret_comes_out_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let running = Running::at(dir.path().join("csi.sock")).await;
    let client = CsiClient::new();
    let canary = "canary-8c1f7e2a";
    for id in ["echo secrets", "panic", "9", canary] {
        let call = Call::DeleteVolume(v1::DeleteVolumeRequest {
            volume_id: if id == canary { "9".into() } else { id.into() },
            secrets: [("token".to_owned(), canary.to_owned())].into(),
        });
        let gone = format!("{}x", running.socket());
        let socket = if id == canary { gone.as_str() } else { running.socket() };
        assert!(!format!("{call:?}").contains(canary));
        let status = client.call(socket, call, SOON).await.unwrap_err();
        let shown = format!("{status} {status:?} {:?}", outcome(Method::DeleteVolume, Err(status.clone())));
        assert!(!shown.contains(canary), "{shown}");
    }
}
