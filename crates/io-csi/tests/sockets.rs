//! The socket file itself.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use common::{Driver, METHODS, Running};

async fn refused(path: &std::path::Path) -> std::io::Error {
    match io_csi::serve(path, METHODS, Driver::default(), std::future::pending()).await {
        Ok(_) => panic!("served at {}", path.display()),
        Err(error) => error,
    }
}

// Reliability 122. The umask is the process's: no other test here makes files whose mode it looks at.
#[tokio::test]
async fn a_socket_is_private_whatever_the_umask() {
    let dir = tempfile::tempdir().unwrap();
    let old = rustix::process::umask(rustix::fs::Mode::empty());
    let running = Running::at(dir.path().join("a/b/csi.sock")).await;
    rustix::process::umask(old);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&running.path), 0o600);
    assert_eq!(mode(&dir.path().join("a")), 0o700);
    assert_eq!(mode(&dir.path().join("a/b")), 0o700);
}

#[tokio::test]
async fn a_socket_left_behind_is_replaced_and_removed_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csi.sock");
    drop(UnixListener::bind(&path).unwrap());
    let running = Running::at(path.clone()).await;
    io_csi::CsiClient::new().call(running.socket(), common::info(), common::SOON).await.unwrap();
    running.stop().await;
    assert_eq!(std::fs::symlink_metadata(&path).unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn the_socket_of_a_successor_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csi.sock");
    let first = Running::at(path.clone()).await;
    std::fs::remove_file(&path).unwrap();
    let second = Running::at(path.clone()).await;
    let inode = std::fs::metadata(&path).unwrap().ino();
    first.stop().await;
    assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode);
    second.stop().await;
    assert!(!path.exists());
}

/// As by a program that a killed driver was starting in its last moment.
#[tokio::test]
async fn a_socket_that_is_held_a_moment_longer_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csi.sock");
    let held = UnixListener::bind(&path).unwrap();
    let letting_go = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(held);
    });
    let running = Running::at(path.clone()).await;
    letting_go.join().unwrap();
    io_csi::CsiClient::new().call(running.socket(), common::info(), common::SOON).await.unwrap();
}

#[tokio::test]
async fn nothing_that_is_not_ours_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);

    std::fs::write(path("file"), "precious").unwrap();
    assert!(refused(&path("file")).await.to_string().contains("no socket is in the way"));
    assert_eq!(std::fs::read(path("file")).unwrap(), b"precious");

    drop(UnixListener::bind(path("stale")).unwrap());
    symlink(path("stale"), path("link")).unwrap();
    assert!(refused(&path("link")).await.to_string().contains("no socket is in the way"));
    symlink(path("nowhere"), path("dangling")).unwrap();
    assert!(refused(&path("dangling")).await.to_string().contains("no socket is in the way"));
    assert!(!path("nowhere").exists() && path("stale").exists());

    let running = Running::at(path("busy")).await;
    assert!(refused(&path("busy")).await.to_string().contains("another process serves there"));
    running.stop().await;

    assert_eq!(refused(&path(&"x".repeat(108))).await.kind(), ErrorKind::InvalidInput);
    assert_eq!(refused(std::path::Path::new("csi.sock")).await.kind(), ErrorKind::InvalidInput);
}
