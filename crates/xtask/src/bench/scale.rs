//! A large cluster without a server: the objects are read as a watch reads them, page by page, into the cache that a
//! process has, and the controllers decide on it. So it is measured what a restart takes until the first decision and
//! until everything was looked at once, the memory, and what one event costs from then on.

mod life;
mod objects;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::time::{Duration, Instant};

use api::{Kind, Object, ObjectKey, Value};
use control::{Cache, Engine, Next, Rules, Timestamp};
use csi::ControllerRpc;
use rules_attachdetach::AttachDetach;
use rules_attacher::Attacher;
use rules_binding::Binding;
use rules_provisioner::Provisioner;
use serde_json::json;

use super::document;
use super::figures::table;
use super::sidecars::usage;
use objects::{attachment, claim, class, csi_node, driver, node, pod, volume};

const DRIVER: &str = "ebs.csi.example.com";
const CLASS: &str = "fast";
/// As many objects as a page of a list has.
const PAGE: usize = 250;
/// How often an event is played.
const TIMES: usize = 200;
/// What the list of every kind is as of.
const LISTED: u64 = 100_000_000;

/// How large the cluster is.
pub struct Settings {
    volumes: usize,
    nodes: usize,
}

impl Settings {
    /// From the command line; nothing if that is wrong.
    pub fn read(options: &[&str]) -> Option<Settings> {
        let mut settings = Settings { volumes: 150_000, nodes: 5_000 };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match *option {
                "--volumes" => settings.volumes = options.next()?.parse().ok()?,
                "--nodes" => settings.nodes = options.next()?.parse().ok().filter(|nodes| *nodes > 0)?,
                "--quick" => (settings.volumes, settings.nodes) = (5_000, 200),
                _ => return None,
            }
        }
        Some(settings)
    }
}

/// Measures and tells it.
pub fn run(settings: &Settings) -> io::Result<String> {
    let mut text = format!(
        "{}; {} volumes, each with its claim, attachment and pod, on {} nodes. A restart is told in processor \
         time, an event as it was.\n\n",
        document::machine(),
        settings.volumes,
        settings.nodes
    );
    // First, while the memory of this process is small.
    let lives = life::table()?;
    let (cache, decoded, kept) = fill(settings)?;
    let megabytes = usage::memory(std::process::id())?;
    let rows = [
        vec!["reading the lists: decoding, s".into(), seconds(decoded)],
        vec!["reading the lists: into the cache, s".into(), seconds(kept)],
        vec!["resident memory with all of it, MB".into(), format!("{megabytes:.0}")],
    ];
    let _ = writeln!(text, "{}", table(&["a restart", ""], &rows));
    let mut cache = cache;
    let attacher = rules_attacher::Local::new(DRIVER, [ControllerRpc::PublishUnpublishVolume]);
    let provisioner = rules_provisioner::Local::new(DRIVER);
    let mut crew = Crew {
        binding: Measured::start(rules_binding::Local::default(), &cache),
        attachdetach: Measured::start(Default::default(), &cache),
        attacher: Measured::start(attacher, &cache),
        provisioner: Measured::start(provisioner, &cache),
    };
    let head = ["", "every key found, s", "first decision, s", "all decided, s", "decisions", "to do", "µs each"];
    let _ = writeln!(text, "{}", table(&head, &crew.starts()));
    let mut rows = Vec::new();
    for event in Event::ALL {
        rows.push(crew.play(event, settings, &mut cache)?);
    }
    let _ = writeln!(
        text,
        "{}",
        table(&["an event", "into the cache, µs", "all controllers, µs", "the longest, ms", "keys woken"], &rows)
    );
    text.push_str(&lives);
    Ok(text)
}

/// Processor time of this thread, which is all there is: what others do on the machine meanwhile is not in it. The
/// kernel counts it a few milliseconds at a time, so it is no clock for what is shorter.
struct Clock(Duration);

impl Clock {
    fn now() -> Clock {
        let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanoseconds = said.split_whitespace().next().and_then(|word| word.parse().ok());
        Clock(Duration::from_nanos(nanoseconds.unwrap_or(0)))
    }

    fn elapsed(&self) -> Duration {
        Clock::now().0.saturating_sub(self.0)
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}

/// A cache with everything in it, and the time it took.
fn fill(settings: &Settings) -> io::Result<(Cache, Duration, Duration)> {
    let (mut cache, mut decoded, mut kept) = (Cache::default(), Duration::ZERO, Duration::ZERO);
    let nodes = settings.nodes;
    let each = settings.volumes.div_ceil(nodes);
    let volumes = settings.volumes;
    list(&mut cache, Kind::StorageClass, 1, &|_| class(1), (&mut decoded, &mut kept))?;
    list(&mut cache, Kind::CSIDriver, 1, &|_| driver(1), (&mut decoded, &mut kept))?;
    list(&mut cache, Kind::CSINode, nodes, &|number| csi_node(number, 1), (&mut decoded, &mut kept))?;
    list(&mut cache, Kind::Node, nodes, &|at| node(at, volumes, nodes, each, 1), (&mut decoded, &mut kept))?;
    list(&mut cache, Kind::PersistentVolume, volumes, &|at| volume(at, 1), (&mut decoded, &mut kept))?;
    list(&mut cache, Kind::PersistentVolumeClaim, volumes, &|at| claim(at, true, 1), (&mut decoded, &mut kept))?;
    list(&mut cache, Kind::VolumeAttachment, volumes, &|at| attachment(at, nodes, 1), (&mut decoded, &mut kept))?;
    list(&mut cache, Kind::Pod, volumes, &|at| pod(at, nodes, 1), (&mut decoded, &mut kept))?;
    for kind in Kind::ALL.into_iter().filter(|kind| !cache.is_synced(*kind)).collect::<Vec<_>>() {
        cache.replace(kind, LISTED, Vec::new());
    }
    Ok((cache, decoded, kept))
}

fn list(
    cache: &mut Cache,
    kind: Kind,
    count: usize,
    make: &dyn Fn(usize) -> Value,
    (decoded, kept): (&mut Duration, &mut Duration),
) -> io::Result<()> {
    let mut before: BTreeSet<ObjectKey> = BTreeSet::new();
    for first in (0..count).step_by(PAGE) {
        let bodies: Vec<String> = (first..count.min(first + PAGE)).map(|number| make(number).to_string()).collect();
        let began = Clock::now();
        let objects = bodies.iter().map(|body| read(kind, body)).collect::<io::Result<Vec<Object>>>()?;
        *decoded += began.elapsed();
        let began = Clock::now();
        if first + PAGE >= count {
            cache.replace_rest(kind, LISTED, objects, std::mem::take(&mut before));
        } else {
            before.extend(objects.iter().map(|object| object.meta().key()));
            cache.part(objects);
        }
        *kept += began.elapsed();
    }
    Ok(())
}

fn read(kind: Kind, body: &str) -> io::Result<Object> {
    Object::from_slice(kind, body.as_bytes())
        .map_err(|error| io::Error::other(format!("the benchmark made a {} that cannot be read: {error}", kind.name())))
}

/// A controller that has started, and how long that took.
struct Measured<R: Rules> {
    engine: Engine<R>,
    keys: Duration,
    first: Duration,
    all: Duration,
    decisions: usize,
    begun: usize,
}

impl<R: Rules> Measured<R> {
    fn start(local: R::Local, cache: &Cache) -> Measured<R> {
        let mut engine = Engine::<R>::new(local);
        let began = Clock::now();
        engine.wake_all(Timestamp(1), cache);
        let keys = began.elapsed();
        let mut measured = Measured { engine, keys, first: keys, all: keys, decisions: 0, begun: 0 };
        if measured.decide(cache) {
            measured.first = began.elapsed();
        }
        while measured.decide(cache) {}
        measured.all = began.elapsed();
        measured
    }

    /// Decides on the next key that is due.
    fn decide(&mut self, cache: &Cache) -> bool {
        match self.engine.next(Timestamp(1), cache) {
            Next::Idle(_) => return false,
            Next::Begin { .. } => self.begun += 1,
            Next::Rested { .. } | Next::Waiting { .. } => {}
        }
        self.decisions += 1;
        true
    }

    fn row(&self) -> Vec<String> {
        let each = (self.all.saturating_sub(self.keys)).as_secs_f64() * 1e6 / self.decisions.max(1) as f64;
        let (decisions, begun) = (self.decisions.to_string(), self.begun.to_string());
        let times = [self.keys, self.first, self.all].map(seconds);
        [R::NAME.to_string()].into_iter().chain(times).chain([decisions, begun, format!("{each:.1}")]).collect()
    }

    /// Takes in a change, and decides on all it woke.
    fn hear(&mut self, change: &control::Change, cache: &Cache) -> usize {
        let woken = self.engine.changed(Timestamp(1), change, cache);
        while self.decide(cache) {}
        woken
    }
}

/// The controllers that share the cache.
struct Crew {
    binding: Measured<Binding>,
    attachdetach: Measured<AttachDetach>,
    attacher: Measured<Attacher>,
    provisioner: Measured<Provisioner>,
}

/// What happens in a cluster.
#[derive(Clone, Copy)]
enum Event {
    NewClaim,
    Claim,
    Volume,
    FreeVolume,
    Attachment,
    Pod,
    Heartbeat,
    CsiNode,
    Class,
    Driver,
}

impl Event {
    const ALL: [Event; 10] = [
        Event::NewClaim,
        Event::Claim,
        Event::Volume,
        Event::FreeVolume,
        Event::Attachment,
        Event::Pod,
        Event::Heartbeat,
        Event::CsiNode,
        Event::Class,
        Event::Driver,
    ];

    fn name(self) -> &'static str {
        match self {
            Event::NewClaim => "a new claim",
            Event::Claim => "a bound claim changes",
            Event::Volume => "a bound volume changes",
            Event::FreeVolume => "a volume without a claim comes",
            Event::Attachment => "an attachment changes",
            Event::Pod => "a pod changes",
            Event::Heartbeat => "a node's heartbeat",
            Event::CsiNode => "a driver comes to a node",
            Event::Class => "a class changes",
            Event::Driver => "a CSIDriver changes",
        }
    }

    /// What concerns everything happens rarely, and takes long.
    fn times(self) -> usize {
        match self {
            Event::Class | Event::Driver => 3,
            _ => TIMES,
        }
    }

    fn object(self, time: usize, settings: &Settings) -> (Kind, Value) {
        let (volumes, nodes) = (settings.volumes, settings.nodes);
        let each = volumes.div_ceil(nodes);
        let (at, version) = (time * 7919 % volumes, 2 + time);
        match self {
            Event::NewClaim => (Kind::PersistentVolumeClaim, claim(volumes + time, false, version)),
            Event::Claim => (Kind::PersistentVolumeClaim, claim(at, true, version)),
            Event::Volume => (Kind::PersistentVolume, volume(at, version)),
            Event::FreeVolume => {
                let mut free = volume(volumes + time, version);
                free["spec"]["claimRef"] = Value::Null;
                free["status"]["phase"] = json!("Available");
                (Kind::PersistentVolume, free)
            }
            Event::Attachment => (Kind::VolumeAttachment, attachment(at, nodes, version)),
            Event::Pod => (Kind::Pod, pod(at, nodes, version)),
            Event::Heartbeat => (Kind::Node, node(time * 31 % nodes, volumes, nodes, each, version)),
            Event::CsiNode => (Kind::CSINode, csi_node(time * 31 % nodes, version)),
            Event::Class => (Kind::StorageClass, class(version)),
            Event::Driver => (Kind::CSIDriver, driver(version)),
        }
    }
}

impl Crew {
    fn starts(&self) -> Vec<Vec<String>> {
        vec![self.binding.row(), self.attachdetach.row(), self.attacher.row(), self.provisioner.row()]
    }

    fn play(&mut self, event: Event, settings: &Settings, cache: &mut Cache) -> io::Result<Vec<String>> {
        let (mut kept, mut decided, mut longest, mut woken) = (Duration::ZERO, Duration::ZERO, Duration::ZERO, 0);
        for time in 0..event.times() {
            let (kind, body) = event.object(time, settings);
            let object = read(kind, &body.to_string())?;
            let began = Instant::now();
            let change = cache.set(object);
            kept += began.elapsed();
            let Some(change) = change else { continue };
            let began = Instant::now();
            woken += self.binding.hear(&change, cache) + self.attachdetach.hear(&change, cache);
            woken += self.attacher.hear(&change, cache) + self.provisioner.hear(&change, cache);
            decided += began.elapsed();
            longest = longest.max(began.elapsed());
        }
        let each = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e6 / event.times() as f64);
        Ok(vec![
            event.name().into(),
            each(kept),
            each(decided),
            format!("{:.2}", longest.as_secs_f64() * 1e3),
            format!("{:.1}", woken as f64 / event.times() as f64),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A cluster in which something is to be done would measure that instead.
    #[test]
    fn a_cluster_at_rest_gives_nobody_anything_to_do() {
        let settings = Settings { volumes: 60, nodes: 4 };
        let (cache, ..) = fill(&settings).unwrap();
        assert_eq!(Measured::<Binding>::start(Default::default(), &cache).begun, 0);
        let attaching = Measured::<AttachDetach>::start(Default::default(), &cache);
        assert_eq!((attaching.begun, attaching.decisions >= 60), (0, true));
        let attacher = rules_attacher::Local::new(DRIVER, [ControllerRpc::PublishUnpublishVolume]);
        let attacher = Measured::<Attacher>::start(attacher, &cache);
        assert_eq!((attacher.begun, attacher.decisions >= 60), (0, true));
        let provisioner = Measured::<Provisioner>::start(rules_provisioner::Local::new(DRIVER), &cache);
        assert_eq!(provisioner.begun, 0);
    }
}
