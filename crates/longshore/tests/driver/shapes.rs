//! The four lifecycles and the four deployment shapes.

use csi::v1;
use csi::{Call, Code, Response};

use crate::bench::{Bench, Volume, writer};

fn write_and_read(volume: &Volume) {
    std::fs::write(volume.file("file"), "kept").unwrap();
    assert_eq!(std::fs::read_to_string(volume.file("file")).unwrap(), "kept");
}

/// Lifecycle: create, attach, stage, publish and back. Shape: central controller and node in two processes.
#[test]
fn attached_and_staged_with_a_central_controller() {
    let Some(bench) = Bench::new() else { return };
    let (controller, mut node) = (bench.start("c", &["--controller-only"]), bench.start("n", &["--node-only"]));
    let volume = Volume::new(&bench, "v", writer(""));
    controller.all(&[volume.made()]);
    assert_eq!(node.code(volume.staged()), Code::FailedPrecondition, "not attached yet");
    controller.all(&[volume.attached()]);
    node.all(&[volume.staged(), volume.published()]);
    write_and_read(&volume);
    assert_eq!(controller.code(volume.deleted()), Code::FailedPrecondition);
    assert_eq!(controller.code(volume.detached()), Code::FailedPrecondition);
    assert_eq!(controller.code(volume.staged()), Code::Unimplemented);
    assert_eq!(node.code(volume.made()), Code::Unimplemented);
    node.kill_and_restart();
    node.all(&[volume.staged(), volume.published(), volume.unpublished(), volume.unstaged()]);
    controller.all(&[volume.detached(), volume.deleted()]);
}

/// Lifecycle: create, stage, publish and back. Shape: headless, controller and node in two processes.
#[test]
fn staged_headless_in_two_processes() {
    let Some(bench) = Bench::new() else { return };
    let flags = |which| ["--without", "publish", which];
    let (controller, node) = (bench.start("c", &flags("--controller-only")), bench.start("n", &flags("--node-only")));
    let volume = Volume::new(&bench, "v", writer("xfs"));
    controller.all(&[volume.made()]);
    assert_eq!(controller.code(volume.attached()), Code::Unimplemented);
    node.all(&[volume.staged(), volume.published()]);
    write_and_read(&volume);
    assert_eq!(controller.code(volume.deleted()), Code::FailedPrecondition);
    node.all(&[volume.unpublished(), volume.unstaged()]);
    controller.all(&[volume.deleted()]);
}

/// Lifecycle: create, publish and back. Shape: headless, one process.
#[test]
fn published_without_staging_headless_in_one_process() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.start("d", &["--without", "publish,stage"]);
    let volume = Volume::new(&bench, "v", writer(""));
    let second = Volume { target: bench.path("pods/second"), ..volume.clone() };
    driver.all(&[volume.made(), volume.published(), second.published()]);
    write_and_read(&volume);
    assert_eq!(std::fs::read_to_string(second.file("file")).unwrap(), "kept");
    driver.kill_and_restart();
    driver.all(&[volume.unpublished()]);
    assert_eq!(driver.code(volume.deleted()), Code::FailedPrecondition);
    driver.all(&[second.unpublished(), volume.published()]);
    assert_eq!(std::fs::read_to_string(volume.file("file")).unwrap(), "kept");
    driver.all(&[volume.unpublished(), volume.deleted()]);
}

/// Lifecycle: published only, made and gone with the pod. Shape: node alone, no controller anywhere.
#[test]
fn a_node_alone_serves_volumes_of_pods() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.start("d", &["--no-controller"]);
    let volume = Volume::new(&bench, "csi-of-a-pod", writer(""));
    let mut request = v1::NodePublishVolumeRequest { staging_target_path: String::new(), ..volume.publish() };
    request.volume_context.insert("csi.storage.k8s.io/ephemeral".into(), "true".into());
    request.volume_context.insert("size".into(), "32Mi".into());
    let inline = Call::NodePublishVolume(request);
    driver.all(std::slice::from_ref(&inline));
    write_and_read(&volume);
    driver.kill_and_restart();
    driver.all(&[inline]);
    assert_eq!(std::fs::read_to_string(volume.file("file")).unwrap(), "kept");
    driver.all(&[volume.unpublished()]);
    assert!(!std::path::Path::new(&volume.target).exists());
    assert_eq!(std::fs::read_dir(bench.path("state/images")).unwrap().count(), 0);
    assert_eq!(driver.code(volume.made()), Code::Unimplemented);
}

/// Lifecycle: a volume somebody else made beforehand, known by its id alone.
#[test]
fn a_volume_made_beforehand_is_used_by_its_id() {
    let Some(bench) = Bench::new() else { return };
    let volume = Volume::new(&bench, "made-before", writer(""));
    {
        let maker = bench.start("maker", &["--controller-only"]);
        maker.all(&[volume.made()]);
    }
    let driver = bench.start("d", &[]);
    let validate = Call::ValidateVolumeCapabilities(v1::ValidateVolumeCapabilitiesRequest {
        volume_id: volume.id.into(),
        volume_capabilities: vec![writer("")],
        ..Default::default()
    });
    let Ok(Response::ValidateVolumeCapabilities(answer)) = driver.call(validate) else { panic!("not validated") };
    assert!(answer.confirmed.is_some());
    driver.all(&[volume.attached(), volume.staged(), volume.published()]);
    write_and_read(&volume);
    driver.all(&[volume.unpublished(), volume.unstaged(), volume.detached(), volume.deleted()]);
}

/// Reliability 79: while another volume's record cannot be read, nothing is claimed about any.
#[test]
fn a_record_nobody_can_read_stops_the_start_with_a_sentence() {
    let Some(bench) = Bench::new() else { return };
    {
        bench.start("d", &[]);
    }
    std::fs::write(bench.path("state/volumes/bad.json"), "half").unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_longshore"))
        .args(["driver", "--data-dir", &bench.path("data"), "--state-dir", &bench.path("state")])
        .args(["--endpoint", &bench.path("x.sock"), "--no-registration"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("bad.json") && said.contains("restore it"), "{said}");
}

/// What the driver says when it starts: nothing before it can be called, and nothing at all if it cannot be.
#[test]
fn it_says_that_it_is_there_when_it_is() {
    let Some(bench) = Bench::new() else { return };
    let start = |socket: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_longshore"));
        command.args(["driver", "--data-dir", &bench.path("data"), "--state-dir", &bench.path("state")]);
        command.args(["--endpoint", &bench.path(socket), "--no-registration"]).stdout(std::process::Stdio::piped());
        command.stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut driver = start("x.sock");
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(driver.stdout.as_mut().unwrap()), &mut line).unwrap();
    assert!(line.contains("x.sock"), "{line}");
    let called = std::os::unix::net::UnixStream::connect(bench.path("x.sock"));
    // The state is in use: this one never listens.
    let second = start("y.sock").wait_with_output().unwrap();
    let _ = driver.kill();
    let _ = driver.wait();
    assert!(called.is_ok(), "{called:?}");
    assert_eq!((second.status.code(), String::from_utf8_lossy(&second.stdout).as_ref()), (Some(1), ""));
}

/// Reliability 6: mounted where nobody sees it, a volume is an empty directory to its user. Told so, the driver looks first.
#[test]
fn where_mounts_are_not_shared_it_refuses_to_start_if_they_have_to_be() {
    let Some(bench) = Bench::new() else { return };
    let start = |propagation: &str, shared_dir: &str| {
        let mut command = std::process::Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/own-mounts.sh"));
        command.args([propagation, "timeout", "3", env!("CARGO_BIN_EXE_longshore")]);
        command.args(["driver", "--data-dir", &bench.path("data"), "--state-dir", &bench.path("state")]);
        command.args(["--endpoint", &bench.path("x.sock"), "--no-registration", "--shared-dir", shared_dir]);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let pods = bench.path("");
    let (code, said) = start("private", &pods);
    assert!(code == Some(1) && said.contains("--make-shared"), "{code:?} {said}");
    // It runs until it is ended.
    let (code, said) = start("shared", &pods);
    assert!(code == Some(124) || code == Some(0), "{code:?} {said}");
    let (code, said) = start("shared", &bench.path("none"));
    assert!(code == Some(1) && said.contains("none"), "{code:?} {said}");
}
