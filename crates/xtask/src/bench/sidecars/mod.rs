//! The sidecars and the Go sidecars, measured in turn in one run on real kube-apiservers, beside a driver that does nothing.
//!
//! All objects of an operation are there before the program that is to do it starts, so that neither this process nor its
//! watches compete with it. The server's audit log says when its first request came and when its last write was done, and
//! counts its requests exactly.

pub(super) mod audit;
pub(super) mod contender;
mod intent;
mod measure;
pub(super) mod nothing;
pub(super) mod objects;
mod report;
mod round;
pub(super) mod stand;
pub(super) mod usage;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::figures::{self, Figures};
use contender::{Contender, Operation, Programs};
use round::{Lanes, Size};
use stand::Stand;

/// How much is measured.
pub struct Settings {
    binary: PathBuf,
    json: Option<PathBuf>,
    doc: Option<PathBuf>,
    rounds: usize,
    size: Size,
    /// The same for programs that hold themselves to a few requests a second.
    slow: Size,
    /// Volumes there are when memory is measured.
    kept: Vec<usize>,
    /// Claims an intent is written for, for each way and number at once.
    intents: usize,
    /// Whether that is measured at all.
    has_intents: bool,
    /// Contenders to measure.
    only: Vec<Contender>,
    /// Another build of ours to measure beside this one, for working on it.
    other: Option<PathBuf>,
}

impl Settings {
    /// From the command line; nothing if that is wrong.
    pub fn read(binary: &str, options: &[&str]) -> Option<Settings> {
        let mut settings = Settings {
            binary: binary.into(),
            json: None,
            doc: None,
            rounds: 6,
            size: Size { volumes: 1500, warm: 100, last: Operation::Delete, waits: true },
            slow: Size { volumes: 40, warm: 5, last: Operation::Delete, waits: true },
            kept: vec![2000],
            intents: 400,
            has_intents: true,
            only: Contender::ALL.into(),
            other: None,
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match *option {
                "--json" => settings.json = Some(options.next()?.into()),
                "--doc" => settings.doc = Some(options.next()?.into()),
                "--volumes" => settings.size.volumes = options.next()?.parse().ok()?,
                "--rounds" => settings.rounds = options.next()?.parse().ok()?,
                "--full" => settings.kept = vec![2000, 20_000],
                // For working on ours: what is measured against can be measured once.
                "--only" => {
                    let name = *options.next()?;
                    settings.has_intents = name == INTENT;
                    let wanted = |contender: &Contender| name.split('+').any(|part| contender.name().contains(part));
                    settings.only.retain(|contender| name != INTENT && wanted(contender));
                }
                "--beside" => settings.other = Some(options.next()?.into()),
                "--until" => {
                    settings.size.last = Operation::named(options.next()?)?;
                    settings.slow.last = settings.size.last;
                }
                "--fast" => settings.only.retain(|contender| *contender != Contender::GoDefault),
                "--quick" => {
                    settings.rounds = 1;
                    (settings.size.volumes, settings.size.warm) = (100, 10);
                    (settings.slow.volumes, settings.slow.warm) = (15, 1);
                    settings.kept = Vec::new();
                    settings.intents = 100;
                }
                _ => return None,
            }
        }
        if settings.other.is_none() {
            settings.only.retain(|contender| *contender != Contender::OursOther);
        }
        Some(settings)
    }
}

/// What `--only` calls the ways to write an intent down; they are no contender.
const INTENT: &str = "intent";
/// Rounds in which requests and processor time are counted, to the last event. They differ little; rates differ much, so that
/// those need more rounds.
const COUNTED: usize = 2;
/// Claims at once for which an intent is written.
const CROWDS: [usize; 3] = [1, 16, 100];

/// Measures everything and tells it.
pub fn run(settings: &Settings) -> io::Result<String> {
    let peer = |name: &str| prove_cluster::peer(name).map_err(io::Error::other);
    let programs = Programs {
        ours: settings.binary.clone(),
        other: settings.other.clone().unwrap_or_default(),
        provisioner: peer("csi-provisioner")?,
        attacher: peer("csi-attacher")?,
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
    // Its rate is a number in its flags: once is enough, and nobody has to wait for it in every round.
    let (slow, fast): (Vec<_>, Vec<_>) = settings.only.iter().partition(|who| **who == Contender::GoDefault);
    if !slow.is_empty() {
        tell(began, &format!("once: {}", Contender::GoDefault.name()));
        let mut lanes = Lanes::ready(&slow, &settings.slow, &programs, began).await?;
        lanes.round(0, &settings.slow, figures, began).await?;
    }
    if !fast.is_empty() {
        let mut lanes = Lanes::ready(&fast, &settings.size, &programs, began).await?;
        for number in 0..settings.rounds {
            tell(began, &format!("round {} of {}", number + 1, settings.rounds));
            let size = Size { waits: number < COUNTED, ..settings.size };
            lanes.round(number, &size, figures, began).await?;
        }
    }
    if settings.has_intents {
        intents(&Stand::start(&programs).await?, settings, figures, began).await?;
    }
    if !settings.only.is_empty() && !settings.kept.is_empty() {
        memories(&Stand::start(&programs).await?, settings, figures, began).await?;
    }
    tell(began, "done");
    Ok(())
}

/// Memory with more and more volumes there.
async fn memories(stand: &Stand, settings: &Settings, figures: &mut Figures, began: Instant) -> io::Result<()> {
    let mut there = 0;
    for &count in &settings.kept {
        tell(began, &format!("memory with {count} volumes"));
        let kube = stand.kube.clone();
        objects::for_each(there..count, |number| objects::in_use(kube.clone(), number)).await?;
        there = count;
        memory(stand, &format!("{count} volumes"), settings, figures).await?;
    }
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
    figures.add(report::SIZE, report::ATTACHER, megabytes(&programs.attacher)?);
    figures.add(report::SIZE, report::RESIZER, megabytes(&programs.resizer)?);
    Ok(())
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
        (Contender::GoLifted, Operation::Attach, report::ATTACHER),
        (Contender::GoLifted, Operation::Resize, report::RESIZER),
        (Contender::Ours, Operation::Provision, report::OURS),
    ];
    for (contender, operation, whose) in all {
        if !settings.only.contains(&contender) {
            continue;
        }
        let mut running = stand.run(contender, operation)?;
        let began = Instant::now();
        // Steady is: used no more processor time than a moment ago.
        let mut before = -1.0;
        while usage::processor(running.id())? > before + 20.0 || began.elapsed() < Duration::from_secs(5) {
            before = usage::processor(running.id())?;
            running.check()?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        figures.add(format!("resident memory, {when}, MB"), whose, usage::memory(running.id())?);
        running.stop()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[&str]) -> Settings {
        Settings::read("longshore", options).unwrap()
    }

    #[test]
    fn without_options_everything_is_measured() {
        let settings = read(&[]);
        assert_eq!(settings.only, Contender::ALL[..5]);
        assert!(settings.has_intents && settings.rounds.is_multiple_of(2));
        assert!(Settings::read("longshore", &["--no-such"]).is_none());
        assert!(Settings::read("longshore", &["--until", "no such"]).is_none());
    }

    #[test]
    fn a_life_is_cut_short_for_everybody() {
        let settings = read(&["--until", "attach"]);
        assert_eq!((settings.size.last, settings.slow.last), (Operation::Attach, Operation::Attach));
    }

    #[test]
    fn only_the_intent_is_the_ways_to_write_it_down_and_no_contender() {
        let settings = read(&["--quick", "--only", "intent"]);
        assert!(settings.has_intents && settings.only.is_empty());
    }

    #[test]
    fn only_a_contender_is_that_contender_alone() {
        assert_eq!(read(&["--only", "lifted+one role"]).only, [Contender::GoLifted, Contender::OursSingle]);
        assert_eq!(read(&["--only", "ours", "--beside", "b"]).only.last(), Some(&Contender::OursOther));
        let settings = read(&["--only", "no intent"]);
        assert_eq!(settings.only, [Contender::OursUpstream]);
        assert!(!settings.has_intents);
    }
}
