//! A driver under measurement: started fresh in a directory of its own, gone with everything afterwards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use csi::{Call, Response};
use io_csi::CsiClient;

/// A driver that has not answered by then never will.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Who made the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// `longshore driver`.
    Ours,
    /// The Go hostpath driver.
    Go,
}

/// Which kind of volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An ext4 filesystem in an image, ours alone.
    Ext4,
    /// A plain directory.
    Directory,
    /// A block device on an image.
    Block,
}

/// A driver and the kind of volumes it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contender {
    pub maker: Maker,
    pub kind: Kind,
}

impl Contender {
    /// All that are compared.
    pub const ALL: [Contender; 5] = [
        Contender { maker: Maker::Ours, kind: Kind::Ext4 },
        Contender { maker: Maker::Ours, kind: Kind::Directory },
        Contender { maker: Maker::Go, kind: Kind::Directory },
        Contender { maker: Maker::Ours, kind: Kind::Block },
        Contender { maker: Maker::Go, kind: Kind::Block },
    ];

    /// Its name in tables and in the JSON.
    pub fn name(self) -> &'static str {
        match (self.maker, self.kind) {
            (Maker::Ours, Kind::Ext4) => "ours, ext4",
            (Maker::Ours, Kind::Directory) => "ours, directory",
            (Maker::Ours, Kind::Block) => "ours, block",
            (Maker::Go, Kind::Ext4 | Kind::Directory) => "Go, directory",
            (Maker::Go, Kind::Block) => "Go, block",
        }
    }
}

/// Where the drivers' programs are.
pub(crate) struct Programs {
    /// `longshore`.
    pub ours: PathBuf,
    /// `hostpathplugin`.
    pub go: PathBuf,
}

/// A directory for one driver. It goes when it is no longer needed, with mounts and loop devices a failed run left.
pub(crate) struct Place {
    dir: PathBuf,
}

impl Place {
    /// A fresh one.
    pub fn new() -> io::Result<Place> {
        let dir = std::env::temp_dir().join(format!("longshore-bench-{}", std::process::id()));
        fs::create_dir_all(dir.join("state"))?;
        fs::create_dir_all(dir.join("stage"))?;
        fs::create_dir_all(dir.join("pods"))?;
        Ok(Place { dir })
    }

    /// Something in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The driver's socket.
    pub fn socket(&self) -> String {
        text(&self.path("csi.sock"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let here = text(&self.dir);
        for target in table.lines().rev().filter_map(|line| line.split(' ').nth(1)).filter(|at| at.starts_with(&here)) {
            let _ = Command::new("umount").arg(target).status();
        }
        for device in loops(&self.dir) {
            let _ = Command::new("losetup").arg("-d").arg(device).status();
        }
        let _ = Command::new("rm").args(["-rf", "--one-file-system"]).arg(&self.dir).status();
    }
}

/// The loop devices on files below a directory.
fn loops(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir("/sys/block") else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let ours = names.filter(|name| {
        let file = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).unwrap_or_default();
        Path::new(file.trim_end()).starts_with(dir)
    });
    ours.map(|name| format!("/dev/{name}")).collect()
}

/// A driver that runs. It is killed when it is dropped.
pub(crate) struct Running {
    process: Child,
    /// Milliseconds from exec until Probe said that it is ready.
    pub ready_after: f64,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Running {
    /// Starts a driver on what is in the place, below `wrapper` if there is one, and waits until it answers.
    pub fn start(programs: &Programs, maker: Maker, place: &Place, wrapper: &[String]) -> io::Result<Running> {
        let (program, arguments) = match maker {
            Maker::Ours => (&programs.ours, ours(place)),
            Maker::Go => (&programs.go, go(place)),
        };
        let mut line = wrapper.to_vec();
        line.push(text(program));
        line.extend(arguments);
        // A socket of an earlier start would be dialled before the new one is there.
        let _ = fs::remove_file(place.socket());
        let said = fs::File::create(place.path("log"))?;
        let began = Instant::now();
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).stdout(said.try_clone()?).stderr(said);
        let process =
            command.spawn().map_err(|error| io::Error::other(format!("cannot start {}: {error}", line[0])))?;
        let mut running = Running { process, ready_after: 0.0 };
        running.wait(place)?;
        running.ready_after = began.elapsed().as_secs_f64() * 1000.0;
        Ok(running)
    }

    fn wait(&mut self, place: &Place) -> io::Result<()> {
        let until = Instant::now() + READY_WITHIN;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let client = CsiClient::new();
            while Instant::now() < until {
                // Dialled only when it is there: a refused connection waits longer than this loop.
                let there = Path::new(&place.socket()).exists();
                if there
                    && let Ok(Response::Probe(probe)) =
                        client.call(&place.socket(), Call::Probe(Default::default()), READY_WITHIN).await
                    && probe.ready != Some(false)
                {
                    return Ok(());
                }
                if self.process.try_wait()?.is_some() {
                    break;
                }
                tokio::time::sleep(Duration::from_micros(250)).await;
            }
            let said = fs::read_to_string(place.path("log")).unwrap_or_default();
            Err(io::Error::other(format!("the driver did not become ready; it said: {said}")))
        })
    }

    /// Megabytes: resident, and of these anonymous and of files.
    pub fn memory(&self) -> io::Result<[f64; 3]> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes = line.and_then(|rest| rest.split_whitespace().next()).and_then(|kb| kb.parse::<f64>().ok());
            kilobytes.unwrap_or(f64::NAN) / 1024.0
        };
        Ok([field("VmRSS:"), field("RssAnon:"), field("RssFile:")])
    }
}

/// Neither driver attaches: that would be one more call for both.
fn ours(place: &Place) -> Vec<String> {
    let mut all: Vec<String> =
        ["driver", "--no-registration", "--node-id", "n1", "--without", "publish"].map(Into::into).into();
    all.extend(["--data-dir".into(), text(&place.path("data")), "--state-dir".into(), text(&place.path("state"))]);
    all.extend(["--endpoint".into(), format!("unix://{}", place.socket())]);
    all
}

fn go(place: &Place) -> Vec<String> {
    let state = format!("--statedir={}", text(&place.path("state")));
    vec![format!("--endpoint=unix://{}", place.socket()), state, "--nodeid=n1".into(), "--logtostderr=false".into()]
}

/// A path of ours as text.
pub fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
