//! A machine on the model kernel, and the CSI driver that works on it.
//!
//! The kernel is `prove-kernel`'s, which does what a real one does. The driver is as lenient as that of
//! [`crate::truth`]: it binds whatever is at the staging path, mounted or not, and takes volumes from under
//! processes. It does each call as a row of operations on the same kernel, so that it can be killed between any two
//! of them, and keeps nothing of its own: a driver that starts anew finds all it knows in the kernel. A call whose
//! first operation is refused for certain is refused for good; whatever fails later leaves it open what was done,
//! and the driver says so.

mod driver;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use control::host::{Machine as _, Op, ProcessState};
use control::{Outcome, Refusal, Reply};
use csi::{Call, Code};
use prove_kernel::{Kernel, KernelFault};

use crate::canon::Piece;
use crate::cluster::NOW_MILLIS;
use crate::truth::{Size, driver_refusal};
use driver::{Stop, Work};

/// The directory everything of the agent is under.
pub(crate) const ROOT: &str = "/var/lib/longshore";
const IMAGES: &str = "/images";
const FSTYPE: &str = "ext4";

/// One machine of a world, with a pretend kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelMachine {
    kernel: Kernel,
    piece: Piece,
    /// Volumes that are raw devices.
    devices: BTreeSet<String>,
}

/// The kernel is hashed once per change and not once per look: see [`KernelMachine::piece`].
impl Hash for KernelMachine {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// What of a volume is seen at a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shown {
    /// The volume's id; empty if it is none.
    pub volume: String,
    /// It can only be read there.
    pub read_only: bool,
}

/// Numbers of the kernel are names and no counts of failures, which [`crate::canon`] would merge.
struct Wide<'a, H>(&'a mut H);

impl<H: Hasher> Hasher for Wide<'_, H> {
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_u8(&mut self, value: u8) {
        self.0.write_u8(value);
    }

    fn write_u32(&mut self, value: u32) {
        self.0.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.0.write_u64(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.0.write_usize(value);
    }
}

struct Widely<'a>(&'a Kernel);

impl Hash for Widely<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(&mut Wide(state));
    }
}

fn image(volume: &str) -> String {
    format!("{IMAGES}/{volume}.img")
}

impl KernelMachine {
    /// A machine with volumes of one size, of which some are raw devices. It grows filesystems that are mounted.
    pub(crate) fn new(volumes: &[&str], devices: &[&str], size: u64) -> KernelMachine {
        let mut kernel = Kernel::new(false).with_mounted_ext4_growth();
        let dirs = [IMAGES, ROOT].map(|path| Op::MakeDir { path: path.into() });
        let images = volumes.iter().map(|volume| Op::CreateImage { path: image(volume), size });
        for op in dirs.into_iter().chain(images) {
            if let Err(failure) = kernel.perform(&op) {
                unreachable!("an empty machine takes its first files: {failure}");
            }
        }
        let devices = devices.iter().map(|volume| (*volume).to_string()).collect();
        KernelMachine { piece: Piece::of(&Widely(&kernel)), kernel, devices }
    }

    /// What tells one machine from another.
    pub(crate) fn piece(&self) -> &Piece {
        &self.piece
    }

    fn changed(&mut self) {
        self.piece = Piece::of(&Widely(&self.kernel));
    }

    /// The machine does what its agent asks, or fails in this way.
    pub(crate) fn op(&mut self, op: &Op, fault: Option<KernelFault>) -> Outcome {
        if let Some(fault) = fault {
            self.kernel.break_at(op.works_on(), fault);
        }
        let done = self.kernel.perform(op);
        self.kernel.mend(op.works_on());
        self.changed();
        match done {
            Ok(reply) => Outcome::Done(Reply::Host(reply)),
            Err(failure) if failure.certain => Outcome::Refused(Refusal::Host(failure.why)),
            Err(failure) => Outcome::Unknown(failure.why),
        }
    }

    /// How the operation fails without an effect: no room, if it takes any, and otherwise somebody uses what it is
    /// about.
    pub(crate) fn refusal(&self, op: &Op) -> KernelFault {
        let full = self.clone().op(op, Some(KernelFault::NoSpace));
        if matches!(full, Outcome::Refused(_)) { KernelFault::NoSpace } else { KernelFault::Busy }
    }

    /// The driver does what it is asked, or only so many of its operations.
    pub(crate) fn call(&mut self, call: &Call, most: Option<usize>) -> Outcome {
        let mut work = Work { kernel: &mut self.kernel, left: most.unwrap_or(usize::MAX), done: 0 };
        let answer = work.answer(call);
        let done = work.done;
        self.changed();
        match answer {
            Ok(response) => Outcome::Done(Reply::Csi(response)),
            Err(Stop::Killed) => Outcome::Unknown("the driver died".into()),
            Err(Stop::Unknown(code)) => driver_refusal(call, code),
            Err(Stop::Failed(failure)) if failure.certain && done == 0 => {
                Outcome::Refused(Refusal::Driver(Code::Internal, failure.why))
            }
            Err(Stop::Failed(failure)) => Outcome::Unknown(failure.why),
        }
    }

    /// How many operations the driver needs for a call as things are.
    pub(crate) fn operations(&self, call: &Call) -> usize {
        let mut kernel = self.kernel.clone();
        let mut work = Work { kernel: &mut kernel, left: usize::MAX, done: 0 };
        let _ = work.answer(call);
        work.done
    }

    pub(crate) fn lose_power(&mut self) {
        self.kernel.lose_power();
        self.changed();
    }

    /// What is mounted under the agent's directory, and which volume it is.
    pub(crate) fn shown(&self) -> BTreeMap<String, Shown> {
        let loops = self.kernel.loop_table().into_iter();
        let images: BTreeMap<String, String> = loops.map(|one| (one.device, one.image)).collect();
        let mounts = self.kernel.mount_table().into_iter().filter(|mount| mount.target.starts_with(ROOT));
        let shown = mounts.map(|mount| {
            // A device is shown as the file that it is among the machine's devices.
            let device = if mount.fstype == "devtmpfs" { format!("/dev{}", mount.root) } else { mount.source };
            let volume = images.get(&device).map(|image| volume_of(image)).unwrap_or_default();
            (mount.target, Shown { volume, read_only: mount.read_only })
        });
        shown.collect()
    }

    /// Volumes whose image is attached to a device.
    pub(crate) fn attached(&self) -> BTreeSet<String> {
        self.kernel.loop_table().into_iter().map(|one| volume_of(&one.image)).collect()
    }

    pub(crate) fn is_device(&self, volume: &str) -> bool {
        self.devices.contains(volume)
    }

    /// Every record there is, by its path.
    pub(crate) fn records(&self) -> BTreeMap<String, Vec<u8>> {
        let volumes = rules_node::volumes_dir(ROOT);
        let mut found = BTreeMap::new();
        for driver in self.kernel.names_in(&volumes).unwrap_or_default() {
            for volume in self.kernel.names_in(&format!("{volumes}/{driver}")).unwrap_or_default() {
                let path = format!("{volumes}/{driver}/{volume}/{}", rules_node::RECORD_FILE);
                if let Ok(Some(bytes)) = self.kernel.bytes_of(&path) {
                    found.insert(path, bytes);
                }
            }
        }
        found
    }

    /// The same as they would be if power were lost now.
    pub(crate) fn durable_records(&self) -> BTreeMap<String, Vec<u8>> {
        let mut after = self.clone();
        after.kernel.lose_power();
        after.records()
    }

    /// How every process fares. The kernel is not told the time.
    pub(crate) fn process_states(&self) -> BTreeMap<String, ProcessState> {
        let since_millis = NOW_MILLIS;
        let told = |state: &ProcessState| match state {
            ProcessState::Running { .. } => ProcessState::Running { since_millis },
            ProcessState::Exited { code, out_of_memory, .. } => ProcessState::Exited {
                code: *code,
                since_millis,
                at_millis: since_millis,
                out_of_memory: *out_of_memory,
            },
            ProcessState::NotStarted(_) | ProcessState::Lost => state.clone(),
        };
        self.kernel.started().map(|(process, state)| (process.name.clone(), told(state))).collect()
    }

    /// What every process that runs sees of the agent's directory.
    pub(crate) fn seen(&self) -> BTreeMap<String, BTreeSet<String>> {
        let running = self.kernel.started().filter(|(_, state)| matches!(state, ProcessState::Running { .. }));
        let sources = running.map(|(process, _)| {
            let mounts = process.mounts.iter().map(|mount| mount.source.clone());
            let devices = process.devices.iter().map(|device| device.source.clone());
            (process.name.clone(), mounts.chain(devices).filter(|source| source.starts_with(ROOT)).collect())
        });
        sources.collect()
    }

    /// Directories and files under the agent's directory in which nothing of it is mounted.
    pub(crate) fn left(&self) -> Vec<String> {
        let mut open = vec![ROOT.to_string()];
        let mut found = Vec::new();
        while let Some(path) = open.pop() {
            for name in self.kernel.names_in(&path).unwrap_or_default() {
                let path = format!("{path}/{name}");
                found.push(path.clone());
                open.push(path);
            }
        }
        found
    }

    /// The names of the directories of pods.
    pub(crate) fn pods(&self) -> Vec<String> {
        self.kernel.names_in(&rules_node::pods_dir(ROOT)).unwrap_or_default()
    }

    /// What is in a pod's directory, by path from there, and whether it is a directory. What is mounted is not entered.
    pub(crate) fn pod_dir(&self, uid: &str) -> rules_node::PodDir {
        let top = format!("{}/{uid}", rules_node::pods_dir(ROOT));
        let mounts: BTreeSet<String> = self.kernel.mount_table().into_iter().map(|mount| mount.target).collect();
        let (mut found, mut open) = (rules_node::PodDir::new(), vec![(String::new(), 1)]);
        while let Some((inner, level)) = open.pop() {
            for name in self.kernel.names_in(&format!("{top}{inner}")).unwrap_or_default() {
                let path = format!("{inner}/{name}");
                let is_dir = self.kernel.names_in(&format!("{top}{path}")).is_ok();
                found.insert(path[1..].to_string(), is_dir);
                let mounted = mounts.contains(&format!("{top}{path}"));
                if is_dir && !mounted && level < rules_node::POD_DIR_DEPTH && rules_node::is_listed(&path[1..]) {
                    open.push((path, level + 1));
                }
            }
        }
        found
    }

    /// Volumes of pods' own that the driver has.
    pub(crate) fn inline_volumes(&self) -> BTreeSet<String> {
        let images = self.kernel.names_in(IMAGES).unwrap_or_default();
        images.iter().map(|image| volume_of(image)).filter(|volume| is_inline(volume)).collect()
    }

    /// How large a volume and its filesystem are. Without a filesystem nothing of it is too small.
    pub(crate) fn size(&self, volume: &str) -> Option<Size> {
        let (bytes, filesystem) = self.kernel.sizes_of(&image(volume))?;
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        Some(Size { volume: signed(bytes), filesystem: signed(filesystem.unwrap_or(bytes)) })
    }

    /// Somebody puts these bytes where a file is.
    pub(crate) fn spoil(&mut self, path: &str, bytes: &[u8]) {
        let _ = self.kernel.perform(&Op::WriteFile { path: path.into(), bytes: bytes.into() });
        self.changed();
    }
}

/// The volume is one of a pod's own, which is made and removed with its publishing.
pub(crate) fn is_inline(volume: &str) -> bool {
    volume.starts_with("csi-")
}

fn volume_of(image: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or_default();
    name.trim_end_matches(".img").to_string()
}
