//! A place to work in, which checks that nothing is left of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use control::host::{Op, Reply};
use io_host::{Host, HostError};

/// Says why nothing is tested when this is not root. The only gate.
pub fn require_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!(
            "NOT TESTED: mounts, loop devices and namespaces need root, and this is uid {}",
            rustix::process::geteuid()
        );
    }
    root
}

/// A directory of its own, and a host whose processes live in it.
pub struct Bench {
    dir: tempfile::TempDir,
    pub host: Host,
}

impl Bench {
    pub fn new() -> Bench {
        let dir = tempfile::Builder::new().prefix("io-host-").tempdir().unwrap();
        let host = Host::new(dir.path().join("processes")).unwrap();
        Bench { dir, host }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A path in the bench's directory.
    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Does an operation twice, since every one may be repeated, and answers the second answer.
    #[track_caller]
    pub fn twice(&self, op: Op) -> Reply {
        let first = self.host.perform(&op).unwrap_or_else(|error| panic!("{op:?}: {error}"));
        let second = self.host.perform(&op).unwrap_or_else(|error| panic!("again {op:?}: {error}"));
        assert_eq!(first, second, "{op:?}");
        second
    }

    /// An operation that is refused, for certain.
    #[track_caller]
    pub fn refused(&self, op: Op) -> HostError {
        let error = self.host.perform(&op).expect_err(&format!("{op:?} was done"));
        assert!(error.certain(), "{op:?}: {error}");
        error
    }

    pub fn make_dir(&self, name: &str) -> String {
        let path = self.path(name);
        self.twice(Op::MakeDir { path: path.clone() });
        path
    }

    /// An image, attached.
    pub fn attached(&self, name: &str) -> (String, String) {
        let image = self.path(name);
        self.twice(Op::CreateImage { path: image.clone(), size: 64 << 20 });
        let Reply::Device(device) = self.twice(Op::AttachLoop { image: image.clone() }) else { panic!("no device") };
        (image, device)
    }

    /// An image with ext4 on it, attached and mounted.
    pub fn mounted(&self, name: &str) -> Volume {
        let (image, device) = self.attached(&format!("{name}.img"));
        self.twice(Op::MakeFilesystem { device: device.clone(), fstype: "ext4".into() });
        let target = self.make_dir(name);
        self.twice(mount(&device, &target));
        Volume { image, device, target }
    }

    pub fn remove(&self, volume: &Volume) {
        self.twice(Op::Unmount { target: volume.target.clone() });
        self.twice(Op::DetachLoop { image: volume.image.clone() });
        self.twice(Op::RemoveDir { path: volume.target.clone() });
        self.twice(Op::RemoveFile { path: volume.image.clone() });
    }

    /// What is mounted or attached here still.
    fn leftovers(&self) -> Vec<String> {
        let mounts = io_host::mounts_beneath(self.dir().to_str().unwrap()).unwrap();
        let here = |path: &String| path.starts_with(self.dir().to_str().unwrap());
        let loops = io_host::loops().unwrap().into_iter().filter(|entry| here(&entry.backing_path));
        mounts.into_iter().map(|entry| entry.target).chain(loops.map(|entry| entry.device)).collect()
    }
}

/// An attached image and where it is mounted.
pub struct Volume {
    pub image: String,
    pub device: String,
    pub target: String,
}

pub fn mount(device: &str, target: &str) -> Op {
    let (device, target) = (device.into(), target.into());
    Op::Mount { device, target, fstype: "ext4".into(), flags: vec![], read_only: false }
}

/// Runs a program of the system as an outsider would.
#[track_caller]
pub fn outsider(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Drop for Bench {
    /// Reliability 117: mounts, loops and processes return to the baseline.
    fn drop(&mut self) {
        let running: Vec<String> = self.host.processes().unwrap_or_default().into_keys().collect();
        for name in running {
            let _ = self.host.perform(&Op::StopProcess { name, grace_millis: 0 });
        }
        let left = self.leftovers();
        for entry in io_host::mounts_beneath(self.dir().to_str().unwrap()).unwrap().into_iter().rev() {
            let _ = Command::new("umount").arg(&entry.target).status();
        }
        for device in left.iter().filter(|left| left.starts_with("/dev/")) {
            let _ = Command::new("losetup").args(["-d", device]).status();
        }
        if !std::thread::panicking() {
            assert!(left.is_empty(), "left behind: {left:?}");
        }
    }
}

/// The path as an owned path.
pub fn owned(path: &str) -> PathBuf {
    PathBuf::from(path)
}
