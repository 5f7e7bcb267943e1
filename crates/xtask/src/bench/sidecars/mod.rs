//! The sidecars and the Go sidecars, measured in turn in one run on one real kube-apiserver, beside a driver that does
//! nothing.
//!
//! All objects of an operation are there before the program that is to do it starts, so that neither this process nor its
//! watches compete with it. The server's audit log says when its first request came and when its last write was done, and
//! counts its requests exactly.

mod audit;
mod contender;
mod intent;
mod nothing;
mod objects;
mod report;
mod stand;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use super::figures::Figures;
use contender::{Contender, Operation, Programs};
use stand::{Measured, Stand};

/// How much is measured.
pub struct Settings {
    binary: PathBuf,
    json: Option<PathBuf>,
    doc: Option<PathBuf>,
    rounds: usize,
    /// Volumes an operation is done with.
    volumes: usize,
    /// The same for programs that hold themselves to a few requests a second.
    slow_volumes: usize,
    /// Volumes there are when memory is measured.
    kept: Vec<usize>,
    /// Claims an intent is written for, for each way and number at once.
    intents: usize,
    /// Contenders to measure.
    only: Vec<Contender>,
}

impl Settings {
    /// From the command line; nothing if that is wrong.
    pub fn read(binary: &str, options: &[&str]) -> Option<Settings> {
        let mut settings = Settings {
            binary: binary.into(),
            json: None,
            doc: None,
            rounds: 3,
            volumes: 500,
            slow_volumes: 40,
            kept: vec![2000],
            intents: 400,
            only: Contender::ALL.into(),
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match *option {
                "--json" => settings.json = Some(options.next()?.into()),
                "--doc" => settings.doc = Some(options.next()?.into()),
                "--volumes" => settings.volumes = options.next()?.parse().ok()?,
                "--rounds" => settings.rounds = options.next()?.parse().ok()?,
                "--full" => settings.kept = vec![2000, 20_000],
                // For working on ours: what is measured against can be measured once.
                "--only" => {
                    let name = *options.next()?;
                    settings.only.retain(|contender| contender.name().contains(name));
                }
                "--fast" => settings.only.retain(|contender| *contender != Contender::GoDefault),
                "--quick" => {
                    settings.rounds = 1;
                    settings.volumes = 100;
                    settings.slow_volumes = 15;
                    settings.kept = Vec::new();
                    settings.intents = 100;
                }
                _ => return None,
            }
        }
        Some(settings)
    }
}

/// Claims at once for which an intent is written.
const CROWDS: [usize; 3] = [1, 16, 100];

/// Measures everything and tells it.
pub fn run(settings: &Settings) -> io::Result<String> {
    let peer = |name: &str| prove_cluster::peer(name).map_err(io::Error::other);
    let programs = Programs {
        ours: settings.binary.clone(),
        provisioner: peer("csi-provisioner")?,
        resizer: peer("csi-resizer")?,
    };
    let mut figures = Figures::default();
    sizes(&programs, &mut figures)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(all(settings, programs, &mut figures))?;
    report::write(settings, &figures)
}

async fn all(settings: &Settings, programs: Programs, figures: &mut Figures) -> io::Result<()> {
    let began = Instant::now();
    let mut stand = Stand::start(programs).await?;
    tell(began, "the control plane is ready");
    for round in 0..settings.rounds {
        let mut turn = settings.only.clone();
        if round % 2 == 1 {
            turn.reverse();
        }
        for contender in turn {
            // Its rate is a number in its flags: once is enough.
            if contender == Contender::GoDefault && round > 0 {
                continue;
            }
            tell(began, &format!("round {} of {}: {}", round + 1, settings.rounds, contender.name()));
            start(&mut stand, contender, figures).await?;
            lives(&mut stand, contender, settings, figures, began).await?;
        }
    }
    if settings.only.len() > 1 {
        intents(&stand, settings, figures, began).await?;
    }
    let mut there = 0;
    for &count in &settings.kept {
        tell(began, &format!("memory with {count} volumes"));
        let kube = stand.kube.clone();
        objects::for_each(there..count, |number| objects::in_use(kube.clone(), number)).await?;
        there = count;
        memory(&stand, &format!("{count} volumes"), settings, figures).await?;
    }
    tell(began, "done");
    Ok(())
}

#[allow(clippy::print_stderr, reason = "long work says where it is")]
fn tell(began: Instant, what: &str) {
    eprintln!("bench: {:>4.0} s  {what}", began.elapsed().as_secs_f64());
}

fn sizes(programs: &Programs, figures: &mut Figures) -> io::Result<()> {
    let megabytes = |path: &PathBuf| fs::metadata(path).map(|data| data.len() as f64 / f64::from(1 << 20));
    figures.add(report::SIZE, report::OURS, megabytes(&programs.ours)?);
    figures.add(report::SIZE, report::PROVISIONER, megabytes(&programs.provisioner)?);
    figures.add(report::SIZE, report::RESIZER, megabytes(&programs.resizer)?);
    Ok(())
}

/// From exec to the first call for the one claim that waits, and memory when nothing is left to do.
async fn start(stand: &mut Stand, contender: Contender, figures: &mut Figures) -> io::Result<()> {
    if contender == Contender::OursUpstream {
        return Ok(());
    }
    stand.prepare(Operation::Provision, 1).await?;
    stand.seen.take();
    let mut running = stand.run(contender, Operation::Provision)?;
    let until = Instant::now() + Duration::from_secs(60);
    let first = loop {
        if let Some(first) = stand.seen.first() {
            break first;
        }
        running.check()?;
        if Instant::now() > until {
            return Err(io::Error::other(format!("{} made no volume: {}", contender.name(), running.said())));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    let ready = first.duration_since(running.began).unwrap_or_default();
    figures.add(report::READY, contender.name(), ready.as_secs_f64() * 1000.0);
    tokio::time::sleep(Duration::from_secs(1)).await;
    figures.add(report::IDLE, contender.name(), running.memory()?);
    running.stop()?;
    stand.clear().await
}

/// Every operation with many volumes, in the order of their life.
async fn lives(
    stand: &mut Stand,
    contender: Contender,
    settings: &Settings,
    figures: &mut Figures,
    began: Instant,
) -> io::Result<()> {
    let volumes = if contender == Contender::GoDefault { settings.slow_volumes } else { settings.volumes };
    for operation in Operation::ALL.into_iter().filter(|operation| contender.can(*operation)) {
        stand.prepare(operation, volumes).await?;
        let measured = stand.measure(contender, operation, volumes).await?;
        let (rate, answer, at_once) = (measured.rate, measured.answer, measured.at_once);
        let name = operation.name();
        tell(began, &format!("    {name}: {rate:.1} a second, {answer:.1} ms a write, {at_once:.1} writes at once"));
        remember(operation, contender, &measured, figures);
    }
    stand.clear().await
}

fn remember(operation: Operation, contender: Contender, measured: &Measured, figures: &mut Figures) {
    let (what, who) = (operation.name(), contender.name());
    figures.add(report::rate(operation), who, measured.rate);
    figures.add(format!("{what}: writes"), who, measured.writes);
    figures.add(format!("{what}: reads"), who, measured.reads);
    figures.add(format!("{what}: events"), who, measured.events);
    figures.add(format!("{what}: calls"), who, measured.calls);
    figures.add(format!("{what}: processor, ms"), who, measured.processor);
    figures.add(format!("{what}: answer to a write, ms"), who, measured.answer);
    figures.add(format!("{what}: writes at once"), who, measured.at_once);
    for (sort, count) in &measured.requests {
        figures.add(format!("{what}: {sort}"), who, *count);
    }
}

/// Both ways to write an intent down, for one, some and many claims at once.
async fn intents(stand: &Stand, settings: &Settings, figures: &mut Figures, began: Instant) -> io::Result<()> {
    for at_once in CROWDS {
        tell(began, &format!("intents, {at_once} at once"));
        let claims = if at_once == 1 { settings.intents / 4 } else { settings.intents };
        for way in [report::ON_CLAIMS, report::IN_JOURNAL] {
            let cost = if way == report::ON_CLAIMS {
                intent::on_claims(&stand.kube, claims, at_once).await?
            } else {
                intent::in_journal(&stand.kube, claims, at_once).await?
            };
            figures.add(format!("intent, {at_once} at once: a second"), way, cost.rate);
            figures.add(format!("intent, {at_once} at once: ms, middle"), way, cost.middle);
            figures.add(format!("intent, {at_once} at once: ms, 99 of 100"), way, cost.most);
            figures.add(format!("intent, {at_once} at once: writes a volume"), way, cost.writes);
            figures.add(format!("intent, {at_once} at once: bytes a volume"), way, cost.bytes);
        }
        stand.clear().await?;
    }
    Ok(())
}

/// Resident memory of each program when it has seen everything and has nothing to do.
async fn memory(stand: &Stand, when: &str, settings: &Settings, figures: &mut Figures) -> io::Result<()> {
    let all = [
        (Contender::GoLifted, Operation::Provision, report::PROVISIONER),
        (Contender::GoLifted, Operation::Resize, report::RESIZER),
        (Contender::Ours, Operation::Provision, report::OURS),
    ];
    for (contender, operation, whose) in all {
        if !settings.only.contains(&contender) {
            continue;
        }
        let mut running = stand.run(contender, operation)?;
        let began = SystemTime::now();
        // Steady is: used no more processor time than a moment ago.
        let mut before = -1.0;
        while running.processor()? > before + 20.0 || began.elapsed().unwrap_or_default() < Duration::from_secs(5) {
            before = running.processor()?;
            running.check()?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        figures.add(format!("resident memory, {when}, MB"), whose, running.memory()?);
        running.stop()?;
    }
    Ok(())
}
