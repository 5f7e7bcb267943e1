//! The reference driver and the Go hostpath driver, measured in turn in one run.
//!
//! Both are called over their sockets by the same clients in this process, which shares the machine's cores with them.

mod contender;
mod kernel;
mod load;
mod report;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::figures::Figures;
use contender::{Contender, Maker, Place, Programs, Running};
use load::{Load, Part};

/// How much is measured.
pub struct Settings {
    binary: PathBuf,
    json: Option<PathBuf>,
    doc: Option<PathBuf>,
    rounds: usize,
    /// How long each load lasts.
    time: Duration,
    /// How many volumes there are when the cost of one more is measured.
    ours: Vec<usize>,
    /// The same for the Go driver, which writes all its state anew for each of them.
    go: Vec<usize>,
    /// The volume whose snapshot is taken.
    snapshot_bytes: i64,
}

impl Settings {
    /// From the command line; nothing if that is wrong.
    pub fn read(binary: &str, options: &[&str]) -> Option<Settings> {
        let mut settings = Settings {
            binary: binary.into(),
            json: None,
            doc: None,
            rounds: 3,
            time: Duration::from_secs(1),
            ours: vec![10, 100, 1000, 10_000],
            go: vec![10, 100, 1000],
            snapshot_bytes: 1 << 30,
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match *option {
                "--json" => settings.json = Some(options.next()?.into()),
                "--doc" => settings.doc = Some(options.next()?.into()),
                "--quick" => {
                    settings.rounds = 1;
                    settings.time = Duration::from_millis(300);
                    settings.ours = vec![10, 100, 1000];
                    settings.go = vec![10, 100];
                    settings.snapshot_bytes = 128 << 20;
                }
                _ => return None,
            }
        }
        Some(settings)
    }
}

/// The numbers of clients at once.
const CLIENTS: [usize; 2] = [1, 32];

/// Measures everything and tells it.
pub fn run(settings: &Settings) -> io::Result<String> {
    let go = prove_cluster::peer("hostpathplugin").map_err(io::Error::other)?;
    let programs = Programs { ours: settings.binary.clone(), go };
    let mut figures = Figures::default();
    let began = Instant::now();
    for round in 0..settings.rounds {
        let mut turn = Contender::ALL;
        if round % 2 == 1 {
            turn.reverse();
        }
        for contender in turn {
            tell(began, &format!("round {} of {}: {}", round + 1, settings.rounds, contender.name()));
            throughput(&programs, contender, settings, &mut figures)?;
            snapshot(&programs, contender, settings, &mut figures)?;
        }
    }
    for contender in [Contender::ALL[0], Contender::ALL[2]] {
        flatness(&programs, contender, settings, &mut figures, began)?;
    }
    for contender in Contender::ALL.into_iter().filter(|contender| contender.maker == Maker::Ours) {
        for part in [Part::Exist, Part::Use, Part::Life] {
            tell(began, &format!("the kernel's share: {}, {}", contender.name(), part.name()));
            if let Some(share) = kernel::share(&programs, contender, part, settings.time)? {
                report::add_share(&mut figures, contender, part, &share);
            }
        }
    }
    report::write(settings, &figures)
}

#[allow(clippy::print_stderr, reason = "long work says where it is")]
fn tell(began: Instant, what: &str) {
    eprintln!("bench: {:>4.0} s  {what}", began.elapsed().as_secs_f64());
}

/// What a figure of a load is called.
fn load_name(part: Part, clients: usize) -> String {
    format!("{}, {clients} {}", part.name(), if clients == 1 { "client" } else { "clients" })
}

fn throughput(programs: &Programs, contender: Contender, settings: &Settings, figures: &mut Figures) -> io::Result<()> {
    let place = Place::new()?;
    let running = Running::start(programs, contender.maker, &place, &[])?;
    let who = contender.name();
    figures.add("exec to ready, no volumes, ms", who, running.ready_after);
    // What a program takes at first is not yet settled when it answers.
    std::thread::sleep(Duration::from_millis(300));
    remember(figures, "idle", who, running.memory()?);
    for clients in CLIENTS {
        let load = Load::new(&place, contender, clients)?;
        for part in Part::ALL {
            let measured = load.repeat(part, settings.time)?;
            figures.add(load_name(part, clients), who, measured.per_second);
            if clients == 1 && part == Part::Life {
                for (call, took) in report::medians(measured.calls) {
                    figures.add(format!("{call}, ms"), who, took);
                }
            }
        }
    }
    Ok(())
}

fn remember(figures: &mut Figures, when: &str, who: &str, [resident, anonymous, file]: [f64; 3]) {
    figures.add(format!("resident memory, {when}, MB"), who, resident);
    figures.add(format!("of it anonymous, {when}, MB"), who, anonymous);
    figures.add(format!("of it files, {when}, MB"), who, file);
}

fn snapshot(programs: &Programs, contender: Contender, settings: &Settings, figures: &mut Figures) -> io::Result<()> {
    let place = Place::new()?;
    let _running = Running::start(programs, contender.maker, &place, &[])?;
    let filled = usize::try_from(settings.snapshot_bytes / 2).unwrap_or_default();
    let (taken, made) = Load::new(&place, contender, 1)?.snapshot(settings.snapshot_bytes, filled)?;
    figures.add(report::snapshot_name(settings.snapshot_bytes), contender.name(), taken);
    figures.add("volume from that snapshot, s", contender.name(), made);
    Ok(())
}

/// What one more volume costs when there are many.
fn flatness(
    programs: &Programs,
    contender: Contender,
    settings: &Settings,
    figures: &mut Figures,
    began: Instant,
) -> io::Result<()> {
    let counts = if contender.maker == Maker::Ours { &settings.ours } else { &settings.go };
    let place = Place::new()?;
    let mut running = Running::start(programs, contender.maker, &place, &[])?;
    let mut there = 0;
    for &count in counts {
        tell(began, &format!("{} with {count} volumes", contender.name()));
        Load::new(&place, contender, 32)?.fill(there, count)?;
        there = count;
        let load = Load::new(&place, contender, 1)?;
        for part in [Part::Exist, Part::Use, Part::Life] {
            let measured = load.repeat(part, settings.time)?;
            // Of each call the middle: what one more volume costs, whatever else the machine is doing.
            let cost = report::medians(measured.calls).values().sum();
            figures.add(report::at(part, count), contender.name(), cost);
        }
        remember(figures, &format!("{count} volumes"), contender.name(), running.memory()?);
        drop(running);
        running = Running::start(programs, contender.maker, &place, &[])?;
        figures.add(format!("exec to ready, {count} volumes, ms"), contender.name(), running.ready_after);
        std::thread::sleep(Duration::from_millis(300));
        remember(figures, &format!("{count} volumes, after a restart"), contender.name(), running.memory()?);
    }
    Ok(())
}
