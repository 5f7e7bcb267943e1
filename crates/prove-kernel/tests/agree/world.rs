//! Both machines side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::process::Command;

use control::host::{Failure, FailureKind, Machine, Mounted, Op, ProcessState, Reply};
use io_host::{Holder, Host};
use prove_kernel::Kernel;

/// One step: an operation, or something others do.
#[derive(Clone, Debug)]
pub enum Act {
    Op(Op),
    Writes(String),
    NamesAgain(String, String),
    Removes(String),
    Attaches(String),
    Holds(String, String),
    LetsGo(String),
}

pub struct World {
    dir: tempfile::TempDir,
    host: Host,
    pub model: Kernel,
    /// From the model's loop devices to the real ones.
    devices: BTreeMap<String, String>,
    held: BTreeMap<String, File>,
    log: Vec<String>,
    covered: Vec<(String, Option<FailureKind>)>,
}

/// A mount in words both machines use: where, what, how.
type Seen = (String, String, bool, bool);

/// The capability with which ext4 grows while it is mounted.
const CAP_SYS_RESOURCE: u64 = 1 << 24;

fn capable() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap() & CAP_SYS_RESOURCE != 0
}

impl World {
    pub fn new(shared: bool) -> World {
        let dir = tempfile::Builder::new().prefix("prove-kernel-").tempdir().unwrap();
        let host = Host::new(dir.path().join("processes")).unwrap();
        let mut model = Kernel::new(shared);
        if capable() {
            model = model.with_mounted_ext4_growth();
        }
        let mut world =
            World { dir, host, model, devices: BTreeMap::new(), held: BTreeMap::new(), log: vec![], covered: vec![] };
        let (processes, link) = (world.path("processes"), world.path("link"));
        world.model.perform(&Op::MakeDir { path: processes }).unwrap();
        std::os::unix::fs::symlink("a", &link).unwrap();
        world.model.user_links(&link, "a").unwrap();
        world
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Every operation, and why it was refused if it was.
    pub fn covered(&self) -> Vec<(String, Option<FailureKind>)> {
        self.covered.clone()
    }

    /// The model's devices that show a file now.
    pub fn attached(&mut self) -> Vec<String> {
        self.model.loops().unwrap().into_iter().map(|entry| entry.device).collect()
    }

    fn real_device(&self, device: &str) -> String {
        self.devices.get(device).cloned().unwrap_or_else(|| device.to_owned())
    }

    /// The operation with the names the real devices have.
    fn real(&self, op: &Op) -> Op {
        let mut op = op.clone();
        match &mut op {
            Op::SetReadAhead { device, .. }
            | Op::CheckFilesystem { device, .. }
            | Op::GrowFilesystem { device, .. }
            | Op::MakeFilesystem { device, .. }
            | Op::Mount { device, .. }
            | Op::BindDevice { device, .. } => *device = self.real_device(device),
            _ => {}
        }
        op
    }

    pub fn step(&mut self, act: Act) -> Result<(), String> {
        let (real, model) = match &act {
            Act::Op(op) => {
                let model = self.model.perform(op);
                let real = Machine::perform(&mut &self.host, &self.real(op));
                let name = format!("{op:?}").split('(').next().unwrap_or_default().to_owned();
                self.covered.push((name, real.as_ref().err().map(|failure| failure.kind)));
                if let (Ok(Reply::Device(real)), Ok(Reply::Device(model))) = (&real, &model) {
                    self.devices.insert(model.clone(), real.clone());
                }
                (self.told(op, real, true), self.told(op, model, false))
            }
            Act::Writes(path) => {
                (outcome(std::fs::write(path, "user")), outcome(self.model.user_writes(path, b"user")))
            }
            Act::NamesAgain(path, second) => {
                (outcome(std::fs::hard_link(path, second)), outcome(self.model.user_names_again(path, second)))
            }
            Act::Removes(path) => (outcome(std::fs::remove_file(path)), outcome(self.model.user_removes(path))),
            Act::Attaches(image) => {
                let output = Command::new("losetup").args(["-f", "--show", image]).output().unwrap();
                let real = String::from_utf8(output.stdout).unwrap().trim().to_owned();
                let model = self.model.user_attaches(image);
                if let Ok(model) = &model {
                    self.devices.insert(model.clone(), real);
                }
                (outcome(output.status.success().then_some(()).ok_or(())), outcome(model))
            }
            Act::Holds(name, path) => {
                let opened = File::open(path);
                let told = outcome(opened.as_ref());
                self.held.extend(opened.ok().map(|file| (name.clone(), file)));
                (told, outcome(self.model.user_holds(name, path)))
            }
            Act::LetsGo(name) => {
                self.held.remove(name);
                self.model.user_lets_go(name);
                (String::new(), String::new())
            }
        };
        self.log.push(format!("{}: {real}", said(&act)));
        self.agree("the answer", &real, &model)?;
        self.compare()
    }

    fn agree<T: PartialEq + std::fmt::Debug>(&self, what: &str, real: &T, model: &T) -> Result<(), String> {
        if real == model {
            return Ok(());
        }
        let base = self.path("");
        let log = self.log.join("\n").replace(&base, "");
        let differ = format!("kernel: {real:#?}\nmodel:  {model:#?}").replace(&base, "");
        Err(format!("{log}\n{what}:\n{differ}"))
    }

    /// An answer as far as both machines must agree on it: how full a filesystem is depends on how it keeps its books.
    fn told(&self, op: &Op, answer: Result<Reply, Failure>, real: bool) -> String {
        match answer {
            Ok(Reply::Done) => "done".into(),
            Ok(Reply::Usage(usage)) => {
                let whole = std::fs::metadata(op.works_on()).is_ok_and(|meta| meta.is_dir());
                if whole { "full somehow".into() } else { format!("{} bytes", usage.bytes) }
            }
            Ok(Reply::Device(device)) if real => self.model_device(&device),
            Ok(Reply::Device(device)) => device,
            Err(failure) => {
                format!("{:?}, {}", failure.kind, if failure.certain { "certainly" } else { "perhaps done" })
            }
        }
    }

    fn model_device(&self, real: &str) -> String {
        let attached: BTreeSet<String> = self.model.clone().loops().unwrap().into_iter().map(|l| l.device).collect();
        let same = self.devices.iter().find(|(model, known)| *known == real && attached.contains(*model));
        same.map_or_else(|| format!("unknown {real}"), |(model, _)| model.clone())
    }

    /// Everything there is to see.
    fn compare(&mut self) -> Result<(), String> {
        let (real, model) = (self.real_mounts(), self.model_mounts());
        self.agree("the mounts", &real, &model)?;
        let (real, model) = (self.real_loops(), self.model_loops());
        self.agree("the loop devices", &real, &model)?;
        let (real, model) = (processes(&mut &self.host), processes(&mut self.model));
        self.agree("the processes", &real, &model)?;
        let base = self.path("");
        let (mut real, mut model) = (BTreeMap::new(), BTreeMap::new());
        files(&mut &self.host, base.trim_end_matches('/'), &mut real);
        files(&mut self.model, base.trim_end_matches('/'), &mut model);
        self.agree("the files", &real, &model)
    }

    fn real_mounts(&self) -> Vec<Seen> {
        let all = io_host::mounts().unwrap();
        let base = self.path("");
        let base = base.trim_end_matches('/');
        let (ours, devices) = (Holder::of(base, &all).unwrap(), Holder::of("/dev", &all).unwrap());
        let here = all.iter().filter(|entry| entry.target.starts_with(base));
        let seen = here.map(|entry| {
            let what = match (devices.shown_by(entry), ours.shown_by(entry)) {
                (Some(device), _) => self.model_device(&device),
                (None, Some(path)) => path,
                (None, None) if entry.fstype == "tmpfs" => format!("tmpfs tmpfs {}", entry.root),
                (None, None) => format!("{} {} {}", self.model_device(&entry.source), entry.fstype, entry.root),
            };
            (entry.target.clone(), what, entry.read_only, entry.shared.is_some())
        });
        sorted(seen)
    }

    fn model_mounts(&mut self) -> Vec<Seen> {
        let base = self.path("");
        let all = self.model.mounts().unwrap();
        let here = all.into_iter().filter(|entry| entry.target.starts_with(base.trim_end_matches('/')));
        let seen = here.map(|entry: Mounted| {
            let what = match entry.fstype.as_str() {
                "rootfs" => entry.root,
                "devtmpfs" => format!("/dev{}", entry.root),
                fstype => format!("{} {fstype} {}", entry.source, entry.root),
            };
            (entry.target, what, entry.read_only, entry.shared)
        });
        sorted(seen)
    }

    fn real_loops(&self) -> Vec<(String, String, bool)> {
        let base = self.path("");
        let all = (&self.host).loops().unwrap().into_iter().filter(|entry| entry.image.starts_with(&base));
        sorted(all.map(|entry| (self.model_device(&entry.device), entry.image, entry.deleted)))
    }

    fn model_loops(&mut self) -> Vec<(String, String, bool)> {
        sorted(self.model.loops().unwrap().into_iter().map(|entry| (entry.device, entry.image, entry.deleted)))
    }
}

/// A step with all that matters in it.
fn said(act: &Act) -> String {
    match act {
        Act::Op(op @ Op::Mount { fstype, flags, read_only, .. }) => format!("{op:?} {fstype} {flags:?} ro {read_only}"),
        Act::Op(op @ (Op::Bind { read_only, .. } | Op::BindDevice { read_only, .. })) => {
            format!("{op:?} ro {read_only}")
        }
        Act::Op(op @ Op::GrowFilesystem { mounted_at, .. }) => format!("{op:?} {mounted_at:?}"),
        Act::Op(op @ Op::CopyTogether { copies }) => format!("{op:?} {copies:?}"),
        Act::Op(op) => format!("{op:?}"),
        other => format!("{other:?}"),
    }
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort();
    all
}

fn outcome<T, E>(answer: Result<T, E>) -> String {
    if answer.is_ok() { "done".into() } else { "refused".into() }
}

/// Every process and how it fares; when, is another matter.
fn processes(machine: &mut impl Machine) -> Vec<(String, String)> {
    let all = machine.processes().unwrap().into_iter();
    let fares = |state| match state {
        ProcessState::Running { .. } => "runs".to_owned(),
        ProcessState::Exited { code, .. } => format!("ended with {code}"),
        ProcessState::NotStarted(_) => "was not started".to_owned(),
        ProcessState::Lost => "is lost".to_owned(),
    };
    all.map(|(name, state)| (name, fares(state))).collect()
}

/// Every path with what is there: a directory, a device, a small file's bytes or a large one's size.
fn files(machine: &mut impl Machine, path: &str, found: &mut BTreeMap<String, String>) {
    if let Ok(names) = machine.list_dir(path) {
        found.insert(path.to_owned(), "directory".into());
        for name in names.into_iter().filter(|name| name != "processes" && !name.starts_with("..")) {
            files(machine, &format!("{path}/{name}"), found);
        }
        return;
    }
    let what = match machine.perform(&Op::Measure { path: path.to_owned() }) {
        Ok(Reply::Usage(usage)) if usage.bytes <= 4096 => match machine.read_file(path) {
            Ok(bytes) => format!("{:?}", bytes.unwrap_or_default()),
            Err(failure) => format!("{:?}", failure.kind),
        },
        Ok(Reply::Usage(usage)) => format!("{} bytes", usage.bytes),
        Ok(other) => format!("{other:?}"),
        Err(failure) => format!("{:?}", failure.kind),
    };
    found.insert(path.to_owned(), what);
}

impl Drop for World {
    fn drop(&mut self) {
        self.held.clear();
        for (name, _) in processes(&mut &self.host) {
            let _ = self.host.perform(&Op::StopProcess { name, grace_millis: 0 });
        }
        let base = self.path("");
        for _ in 0..4 {
            for entry in io_host::mounts_beneath(base.trim_end_matches('/')).unwrap().into_iter().rev() {
                let _ = Command::new("umount").arg(&entry.target).output();
            }
            for entry in io_host::loops().unwrap().into_iter().filter(|entry| entry.backing_path.starts_with(&base)) {
                let _ = Command::new("losetup").args(["-d", &entry.device]).output();
            }
        }
        let left = io_host::mounts_beneath(base.trim_end_matches('/')).unwrap();
        assert!(std::thread::panicking() || left.is_empty(), "left behind: {left:?}");
    }
}
