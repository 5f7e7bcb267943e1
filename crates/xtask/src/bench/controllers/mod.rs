//! `longshore controllers` with `longshore sidecar` beside kube-controller-manager with csi-provisioner and
//! csi-attacher, on real kube-apiservers: claims to Bound, pods that come, move and go, claims deleted to volumes gone.
//!
//! Every contender has a control plane of its own, and they take turns phase by phase, so that what the machine does
//! meanwhile is the same for all. The server's audit log counts requests exactly and says when each was answered.

mod phase;
mod report;
mod stand;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::figures::Figures;
use phase::{Claim, Measured};
use stand::{Contender, Crew, Programs, Stand};

/// How much is measured.
pub struct Settings {
    binary: PathBuf,
    json: Option<PathBuf>,
    doc: Option<PathBuf>,
    rounds: usize,
    size: Size,
    /// The same for programs that hold themselves to a few requests a second.
    slow: Size,
    only: Vec<Contender>,
    /// Claims there are when the cost of some more is measured, ours alone.
    grown: Vec<usize>,
}

/// How large a round is.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Claims that are made at once.
    pub claims: usize,
    /// Claims of those that pods use.
    pub pods: usize,
    /// Claims with which everything is done once before, without being told.
    pub warm: usize,
}

/// So many more claims are made when many are there already.
const MORE: usize = 100;

impl Settings {
    /// From the command line; nothing if that is wrong.
    pub fn read(binary: &str, options: &[&str]) -> Option<Settings> {
        let mut settings = Settings {
            binary: binary.into(),
            json: None,
            doc: None,
            rounds: 3,
            size: Size { claims: 500, pods: 100, warm: 20 },
            slow: Size { claims: 60, pods: 20, warm: 2 },
            only: Contender::ALL.into(),
            grown: vec![100, 1000, 5000],
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match *option {
                "--json" => settings.json = Some(options.next()?.into()),
                "--doc" => settings.doc = Some(options.next()?.into()),
                "--claims" => settings.size.claims = options.next()?.parse().ok()?,
                "--pods" => settings.size.pods = options.next()?.parse().ok()?,
                "--rounds" => settings.rounds = options.next()?.parse().ok()?,
                "--full" => settings.grown.push(20_000),
                "--no-growth" => settings.grown.clear(),
                "--only" => {
                    let name = *options.next()?;
                    settings.only.retain(|who| name.split('+').any(|part| who.name().contains(part)));
                }
                "--quick" => {
                    settings.rounds = 1;
                    settings.size = Size { claims: 100, pods: 30, warm: 5 };
                    settings.slow = Size { claims: 30, pods: 5, warm: 1 };
                    settings.grown.clear();
                }
                _ => return None,
            }
        }
        Some(settings)
    }
}

/// Measures everything and tells it.
pub fn run(settings: &Settings) -> io::Result<String> {
    let peer = |name: &str| prove_cluster::peer(name).map_err(io::Error::other);
    let programs = Programs {
        ours: settings.binary.clone(),
        manager: peer("kube-controller-manager")?,
        provisioner: peer("csi-provisioner")?,
        attacher: peer("csi-attacher")?,
    };
    let mut figures = Figures::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(all(settings, &programs, &mut figures))?;
    report::write(settings, &figures)
}

async fn all(settings: &Settings, programs: &Programs, figures: &mut Figures) -> io::Result<()> {
    let began = Instant::now();
    // Its rate is a number in its flags: once is enough, and nobody has to wait for it in every round.
    let (slow, fast): (Vec<_>, Vec<_>) = settings.only.iter().partition(|who| **who == Contender::GoDefault);
    for (contenders, size, rounds) in [(slow, settings.slow, 1), (fast, settings.size, settings.rounds)] {
        let mut lanes = Vec::new();
        for who in contenders.into_iter().filter(|_| rounds > 0) {
            lanes.push(Lane::ready(who, programs, size.warm).await?);
            tell(began, &format!("{} is ready", who.name()));
        }
        for number in 0..rounds {
            tell(began, &format!("round {} of {rounds}", number + 1));
            round(&mut lanes, number, size, figures, began).await?;
        }
        for lane in lanes {
            lane.crew.stop()?;
        }
    }
    if settings.only.contains(&Contender::Ours) && !settings.grown.is_empty() {
        growth(&settings.grown, programs, figures, began).await?;
    }
    tell(began, "done");
    Ok(())
}

/// A contender's control plane and its programs, which run all the time.
struct Lane {
    stand: Stand,
    crew: Crew,
    claims: Vec<Claim>,
}

impl Lane {
    async fn ready(who: Contender, programs: &Programs, warm: usize) -> io::Result<Lane> {
        let stand = Stand::start(who, programs).await?;
        let crew = stand.crew()?;
        let mut lane = Lane { stand, crew, claims: Vec::new() };
        for phase in Phase::ALL {
            lane.measure(phase, Size { claims: warm, pods: warm, warm }).await?;
        }
        phase::clear(&lane.stand.kube).await?;
        Ok(lane)
    }

    async fn measure(&mut self, phase: Phase, size: Size) -> io::Result<Measured> {
        let (stand, crew) = (&mut self.stand, &mut self.crew);
        let pods = size.pods.min(self.claims.len());
        match phase {
            Phase::Bind => {
                let names = (0..size.claims).map(|number| format!("claim-{number}")).collect();
                let (claims, measured) = phase::bind(stand, crew, names).await?;
                self.claims = claims;
                Ok(measured)
            }
            Phase::Attach => phase::attach(stand, crew, &self.claims[..pods]).await,
            Phase::Move => phase::transfer(stand, crew, &self.claims[..pods]).await,
            Phase::Detach => phase::detach(stand, crew, &self.claims[..pods]).await,
            Phase::Release => phase::release(stand, crew, std::mem::take(&mut self.claims)).await,
        }
    }
}

/// What is done with all claims, one phase after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Bind,
    Attach,
    Move,
    Detach,
    Release,
}

impl Phase {
    /// In the order of a volume's life.
    pub const ALL: [Phase; 5] = [Phase::Bind, Phase::Attach, Phase::Move, Phase::Detach, Phase::Release];

    /// Its name in tables and in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Bind => "claim to Bound",
            Phase::Attach => "pod to attached",
            Phase::Move => "pod moved to attached",
            Phase::Detach => "pod gone to detached",
            Phase::Release => "claim deleted to volume gone",
        }
    }
}

async fn round(lanes: &mut [Lane], number: usize, size: Size, figures: &mut Figures, began: Instant) -> io::Result<()> {
    for (index, phase) in Phase::ALL.into_iter().enumerate() {
        let mut turn: Vec<&mut Lane> = lanes.iter_mut().collect();
        if (number + index) % 2 == 1 {
            turn.reverse();
        }
        for lane in turn {
            let who = lane.stand.contender.name();
            let failed = |error| io::Error::other(format!("{who}, {}: {error}", phase.name()));
            let measured = lane.measure(phase, size).await.map_err(failed)?;
            tell(began, &line(phase, who, &measured));
            report::remember(phase, who, &measured, figures);
            if phase == Phase::Bind {
                let memory = lane.crew.memory()?;
                figures.add(report::MEMORY, who, memory.iter().sum());
                for (part, megabytes) in report::PROGRAMS.into_iter().zip(memory) {
                    figures.add(part, who, megabytes);
                }
            }
        }
    }
    Ok(())
}

fn line(phase: Phase, who: &str, measured: &Measured) -> String {
    format!(
        "    {:<28} {who:<17} {:>6.1} a second, p50 {:.0} ms, p99 {:.0} ms, {:.2} writes ({:.2} refused), \
         {:.2} ms of CPU",
        phase.name(),
        measured.rate,
        measured.middle,
        measured.most,
        measured.writes,
        measured.refused,
        measured.spent.program,
    )
}

/// What a hundred more claims cost when more and more are there.
async fn growth(grown: &[usize], programs: &Programs, figures: &mut Figures, began: Instant) -> io::Result<()> {
    let mut stand = Stand::start(Contender::Ours, programs).await?;
    let mut crew = stand.crew()?;
    let mut there = 0;
    for &count in grown {
        let fill: Vec<String> = (there..count.saturating_sub(MORE)).map(|number| format!("claim-{number}")).collect();
        if !fill.is_empty() {
            phase::bind(&mut stand, &mut crew, fill).await?;
            stand.rest(&crew).await?;
            tell(began, &format!("    {} claims are there", count.saturating_sub(MORE)));
        }
        let more = (count.saturating_sub(MORE).max(there)..count).map(|number| format!("claim-{number}")).collect();
        there = count;
        let (_, measured) = phase::bind(&mut stand, &mut crew, more).await?;
        tell(began, &line(Phase::Bind, &format!("the last of {count}"), &measured));
        tokio::time::sleep(Duration::from_secs(2)).await;
        let [controllers, sidecar] = crew.memory()?;
        for (what, figure) in [
            ("a second", measured.rate),
            ("p50, ms", measured.middle),
            ("p99, ms", measured.most),
            ("writes a claim", measured.writes),
            ("processor, programs, ms a claim", measured.spent.program),
            ("processor, kube-apiserver and etcd, ms a claim", measured.spent.server + measured.spent.store),
            ("controllers, MB", controllers),
            ("sidecar, MB", sidecar),
        ] {
            figures.add(what, &report::grown(count), figure);
        }
    }
    crew.stop()
}

#[allow(clippy::print_stderr, reason = "long work says where it is")]
fn tell(began: Instant, what: &str) {
    eprintln!("bench: {:>4.0} s  {what}", began.elapsed().as_secs_f64());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let settings = Settings::read("longshore", &["--quick", "--only", "ours+lifted", "--claims", "7"]).unwrap();
        assert_eq!(settings.only, [Contender::GoLifted, Contender::Ours]);
        assert_eq!((settings.rounds, settings.size.claims, settings.grown.len()), (1, 7, 0));
        assert!(Settings::read("longshore", &["--no-such"]).is_none());
        assert_eq!(Settings::read("longshore", &["--full"]).unwrap().grown.last(), Some(&20_000));
    }
}
