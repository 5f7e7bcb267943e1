//! One user of the driver: random lives of its own volumes and snapshots, one call at a time.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use csi::{Call, Code, Response, Status};

use crate::dice::Dice;
use crate::driver::Caller;
use crate::model::{Kind, Level, MIB, Origin, Snapshot, Volume};

const VOLUMES: usize = 4;
const SNAPSHOTS: usize = 2;
const SMALLEST: i64 = 24 * MIB;
const LARGEST: i64 = 64 * MIB;

/// How long "try again" may be the answer.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// A call, by what it works on: places in the client's lists.
#[derive(Clone, Debug)]
pub enum Step {
    Raise(usize),
    Lower(usize),
    Grow(usize, i64),
    GrowHere(usize),
    Take(usize),
    Drop(usize),
}

/// The driver went away before it answered.
pub struct Lost;

pub struct Client {
    name: String,
    root: std::path::PathBuf,
    dice: Dice,
    made: usize,
    pub volumes: Vec<Volume>,
    pub snapshots: Vec<Snapshot>,
    /// The one call whose answer was lost: it may have been done, in part or whole.
    pub pending: Option<Step>,
    /// Calls that were answered.
    pub answered: u64,
}

impl Client {
    pub fn new(number: u64, seed: u64, root: &Path) -> Client {
        Client {
            name: format!("c{number}"),
            root: root.to_owned(),
            dice: Dice::of(seed, number + 1),
            made: 0,
            volumes: Vec::new(),
            snapshots: Vec::new(),
            pending: None,
            answered: 0,
        }
    }

    /// Goes on until the driver is gone.
    pub fn live(&mut self, caller: &Caller, killed: &AtomicBool) {
        while !killed.load(Ordering::SeqCst) {
            if self.turn(caller).is_err() {
                // Only a kill may end a connection.
                for _ in 0..1000 {
                    if killed.load(Ordering::SeqCst) {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                panic!("{}: the driver broke off {:?} although nobody killed it", self.name, self.pending);
            }
        }
    }

    /// Brings the call whose answer was lost to an end: by repeating it, or by asking for the opposite.
    pub fn settle(&mut self, caller: &Caller) -> Result<(), Lost> {
        let Some(step) = self.pending.clone() else { return Ok(()) };
        let opposite = match &step {
            Step::Raise(at) => Some(Step::Lower(*at)),
            // What was deleted cannot be brought back with its data.
            Step::Lower(at) if self.volumes[*at].level > Level::Made => Some(Step::Raise(*at)),
            Step::Take(at) => Some(Step::Drop(*at)),
            Step::Lower(_) | Step::Grow(..) | Step::GrowHere(_) | Step::Drop(_) => None,
        };
        let raised = matches!(step, Step::Raise(_));
        match opposite {
            Some(opposite) if self.dice.once_in(2) => {
                if let Step::Raise(at) | Step::Lower(at) = opposite {
                    // From where the lost call was going.
                    let volume = &mut self.volumes[at];
                    volume.level = if raised { volume.level.above() } else { volume.level.below() };
                }
                self.pending = Some(opposite.clone());
                self.perform(caller, opposite)
            }
            Some(_) | None => self.perform(caller, step),
        }
    }

    /// Takes everything down again.
    pub fn finish(&mut self, caller: &Caller) -> Result<(), Lost> {
        self.settle(caller)?;
        for at in 0..self.volumes.len() {
            while self.volumes[at].level > Level::Gone {
                self.perform(caller, Step::Lower(at))?;
            }
        }
        for at in 0..self.snapshots.len() {
            self.perform(caller, Step::Drop(at))?;
        }
        self.forget();
        Ok(())
    }

    /// One random thing.
    fn turn(&mut self, caller: &Caller) -> Result<(), Lost> {
        self.settle(caller)?;
        self.forget();
        if self.volumes.is_empty() || (self.volumes.len() < VOLUMES && self.dice.once_in(4)) {
            let at = self.invent();
            return self.perform(caller, Step::Raise(at));
        }
        if !self.snapshots.is_empty() && self.dice.once_in(12) {
            let at = self.dice.place(self.snapshots.len());
            return self.perform(caller, Step::Drop(at));
        }
        let at = self.dice.place(self.volumes.len());
        self.turn_of(caller, at)
    }

    fn turn_of(&mut self, caller: &Caller, at: usize) -> Result<(), Lost> {
        let choice = self.dice.below(12);
        let volume = &self.volumes[at];
        let (size, level) = (volume.size, volume.level);
        match (level, choice) {
            (Level::Published, 0..=2) => {
                let content = self.dice.roll();
                volume.write(content).unwrap_or_else(|error| panic!("cannot write {}: {error}", volume.name));
                self.volumes[at].content = Some(content);
                Ok(())
            }
            (Level::Published, 3..=4) => {
                self.read(at);
                Ok(())
            }
            (Level::Published, 5..=8) => self.perform(caller, Step::Lower(at)),
            (_, 9) if self.snapshots.len() < SNAPSHOTS => {
                let taken = self.picture(at);
                self.perform(caller, Step::Take(taken))
            }
            (_, 10) if size < LARGEST => {
                self.perform(caller, Step::Grow(at, size + 4 * MIB))?;
                if level == Level::Published { self.perform(caller, Step::GrowHere(at)) } else { Ok(()) }
            }
            (Level::Gone | Level::Made | Level::Attached | Level::Staged, 7 | 8) => {
                self.perform(caller, Step::Lower(at))
            }
            (Level::Published, _) => Ok(()),
            (Level::Gone | Level::Made | Level::Attached | Level::Staged, _) => self.perform(caller, Step::Raise(at)),
        }
    }

    /// A volume that is to be made, from nothing, a snapshot or another volume.
    fn invent(&mut self) -> usize {
        self.made += 1;
        let name = format!("{}-v{}", self.name, self.made);
        let (kind, origin, size, content) = self.source();
        let (staging, target) = (self.root.join("stage").join(&name), self.root.join("pods").join(&name));
        let level = Level::Gone;
        self.volumes.push(Volume { name, kind, origin, level, size, first_size: size, content, staging, target });
        self.volumes.len() - 1
    }

    fn source(&mut self) -> (Kind, Origin, i64, Option<u64>) {
        if let Some(snapshot) = self.snapshots.first()
            && self.dice.once_in(2)
        {
            return (snapshot.kind, Origin::Snapshot(snapshot.name.clone()), snapshot.size, snapshot.content);
        }
        let source = self.volumes.iter().find(|one| one.level > Level::Gone);
        if let Some(source) = source
            && self.dice.once_in(4)
        {
            return (source.kind, Origin::Volume(source.name.clone()), source.size, source.content);
        }
        let kind = match self.dice.below(4) {
            0 => Kind::Directory,
            1 => Kind::Block,
            _ => Kind::Files,
        };
        (kind, Origin::Nothing, SMALLEST, None)
    }

    /// A snapshot that is to be taken.
    fn picture(&mut self, at: usize) -> usize {
        self.made += 1;
        let volume = &self.volumes[at];
        self.snapshots.push(Snapshot {
            name: format!("{}-s{}", self.name, self.made),
            source: volume.name.clone(),
            kind: volume.kind,
            size: volume.size,
            content: volume.content,
            there: false,
        });
        self.snapshots.len() - 1
    }

    /// Makes a call; what it changes is true once it is answered.
    fn perform(&mut self, caller: &Caller, step: Step) -> Result<(), Lost> {
        let call = match &step {
            Step::Raise(at) => self.volumes[*at].raise(),
            Step::Lower(at) => self.volumes[*at].lower(self.volumes[*at].level),
            Step::Grow(at, size) => self.volumes[*at].grow(*size),
            Step::GrowHere(at) => self.volumes[*at].grow_here(),
            Step::Take(at) => self.snapshots[*at].take(),
            Step::Drop(at) => self.snapshots[*at].drop(),
        };
        self.pending = Some(step.clone());
        self.ask(caller, call)?;
        self.pending = None;
        self.answered += 1;
        match step {
            Step::Raise(at) => {
                self.volumes[at].level = self.volumes[at].level.above();
                if self.volumes[at].level == Level::Published {
                    self.read(at);
                }
            }
            Step::Lower(at) => self.volumes[at].level = self.volumes[at].level.below(),
            Step::Grow(at, size) => self.volumes[at].size = size,
            Step::GrowHere(_) => {}
            Step::Take(at) => self.snapshots[at].there = true,
            Step::Drop(at) => self.snapshots[at].there = false,
        }
        Ok(())
    }

    /// The driver does what it is asked, or is gone: its users do not get into each other's way. "Try again" is an
    /// answer only while something of the driver's earlier life, such as a mkfs, still holds the device.
    fn ask(&self, caller: &Caller, call: Call) -> Result<Response, Lost> {
        let until = Instant::now() + TRY_AGAIN;
        loop {
            let status = match caller.call(call.clone()) {
                Ok(answer) => return Ok(answer),
                Err(Status { from_driver: false, .. }) => return Err(Lost),
                Err(status) => status,
            };
            match status.code {
                Code::Unavailable | Code::Aborted if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                // Some kernels let nobody grow a mounted ext4; the next staging grows it.
                Code::FailedPrecondition if status.message.contains("CAP_SYS_RESOURCE") => {
                    return Ok(Response::Probe(Default::default()));
                }
                code => {
                    let who = holders(&status.message);
                    panic!("{}: {call:?}: {code:?}: {}; held by: {who:?}", self.name, status.message)
                }
            }
        }
    }

    fn read(&self, at: usize) {
        if let Some(wrong) = self.volumes[at].wrong() {
            panic!("{wrong}");
        }
    }

    /// Drops from the lists what is gone. Never while a call is pending: it counts places in the lists.
    fn forget(&mut self) {
        self.volumes.retain(|volume| volume.level > Level::Gone);
        self.snapshots.retain(|snapshot| snapshot.there);
    }
}

/// Who has the loop device that a message names open or mounted, in any mount namespace: such a holder may be none of
/// ours.
fn holders(message: &str) -> Vec<String> {
    let Some((_, rest)) = message.split_once("/dev/loop") else { return Vec::new() };
    let device = format!("/dev/loop{}", rest.chars().take_while(char::is_ascii_digit).collect::<String>());
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()) {
        let Ok(name) = std::fs::read_to_string(process.join("comm")) else { continue };
        let files = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let open = files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|file| file == Path::new(&device));
        let mounts = std::fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
        let mounted = mounts.lines().any(|line| line.contains(&format!(" {device} ")));
        if open || mounted {
            found.push(format!("{} {} open={open} mounted={mounted}", process.display(), name.trim()));
        }
    }
    found
}
