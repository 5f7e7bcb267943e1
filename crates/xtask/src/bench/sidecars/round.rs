//! Rounds: every contender on a control plane of its own, and operation by operation one right after the other, so that what
//! the machine does meanwhile, and what is in the server from before, is the same for all.

use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use super::contender::{Contender, Operation, Programs};
use super::figures::Figures;
use super::measure::{Measured, measure};
use super::stand::Stand;
use super::{report, tell, usage};

/// How large a round is.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Volumes an operation is done with.
    pub volumes: usize,
    /// Volumes with which everything is done once before, without being told: a server that has never done something is
    /// slower at it.
    pub warm: usize,
    /// Where a volume's life is cut short.
    pub last: Operation,
    /// Whether what comes after the last volume is waited for, such as events, and counted. Without that there is time for
    /// many more rounds.
    pub waits: bool,
}

impl Size {
    fn operations(&self) -> impl Iterator<Item = Operation> {
        Operation::ALL.into_iter().filter(|operation| *operation <= self.last)
    }
}

/// A contender and its control plane.
struct Lane {
    contender: Contender,
    stand: Stand,
}

/// Everybody who is measured, ready to begin.
pub struct Lanes(Vec<Lane>);

impl Lanes {
    /// Starts a control plane for each, and does everything once without telling.
    pub async fn ready(
        contenders: &[Contender],
        size: &Size,
        programs: &Programs,
        began: Instant,
    ) -> io::Result<Lanes> {
        let mut lanes = Vec::new();
        for &contender in contenders {
            lanes.push(Lane { contender, stand: Stand::start(programs).await? });
        }
        tell(began, "    the control planes are ready");
        for lane in &mut lanes {
            warm_up(lane, size).await?;
        }
        tell(began, "    all are warm");
        Ok(Lanes(lanes))
    }

    /// Measures everything once for each, and leaves nothing behind. The number of the round decides who goes first.
    pub async fn round(&mut self, number: usize, size: &Size, figures: &mut Figures, began: Instant) -> io::Result<()> {
        // What was compiled or copied before goes to the disk now, and not while etcd waits for it.
        Command::new("sync").status()?;
        for lane in self.0.iter_mut().filter(|_| size.waits) {
            start(lane, figures).await?;
        }
        for (index, operation) in size.operations().enumerate() {
            let mut turn: Vec<&mut Lane> = self.0.iter_mut().filter(|lane| lane.contender.can(operation)).collect();
            if is_reversed(number, index) {
                turn.reverse();
            }
            for lane in &mut turn {
                lane.stand.prepare(operation, size.volumes).await?;
            }
            for lane in turn {
                lane.stand.rest().await?;
                let measured = measure(&mut lane.stand, lane.contender, operation, size).await?;
                tell(began, &line(operation, lane.contender, &measured));
                figures.add(report::rate(operation), lane.contender.name(), measured.rate);
                if size.waits {
                    remember(operation, lane.contender, &measured, figures);
                }
            }
        }
        for lane in &self.0 {
            lane.stand.clear().await?;
        }
        Ok(())
    }
}

/// Who is first with an operation is last with the next one, and with the same one in the next round.
fn is_reversed(round: usize, operation: usize) -> bool {
    (round + operation) % 2 == 1
}

/// From exec to the first call for the one claim that waits, and memory when nothing is left to do.
async fn start(lane: &mut Lane, figures: &mut Figures) -> io::Result<()> {
    let (stand, contender) = (&mut lane.stand, lane.contender);
    if contender == Contender::OursUpstream {
        return Ok(());
    }
    stand.prepare(Operation::Provision, 1).await?;
    stand.rest().await?;
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
    figures.add(report::IDLE, contender.name(), usage::memory(running.id())?);
    running.stop()?;
    stand.clear().await
}

/// Everything once with a few volumes.
async fn warm_up(lane: &mut Lane, size: &Size) -> io::Result<()> {
    for operation in size.operations().filter(|operation| lane.contender.can(*operation)) {
        let few = Size { volumes: size.warm, waits: false, ..*size };
        lane.stand.prepare(operation, few.volumes).await?;
        measure(&mut lane.stand, lane.contender, operation, &few).await?;
    }
    lane.stand.clear().await
}

fn line(operation: Operation, contender: Contender, measured: &Measured) -> String {
    let (name, who, spent) = (operation.name(), contender.name(), measured.spent);
    format!(
        "    {name:<9} {who:<17} {:>6.1} a second, {:.1} ms a write, {:.1} writes at once; CPU ms a volume: {:.2} + {:.2} server + {:.2} etcd",
        measured.rate, measured.answer, measured.at_once, spent.program, spent.server, spent.store,
    )
}

fn remember(operation: Operation, contender: Contender, measured: &Measured, figures: &mut Figures) {
    let (what, who, spent) = (operation.name(), contender.name(), measured.spent);
    figures.add(format!("{what}: writes"), who, measured.writes);
    figures.add(format!("{what}: reads"), who, measured.reads);
    figures.add(format!("{what}: events"), who, measured.events);
    figures.add(format!("{what}: calls"), who, measured.calls);
    for (part, spent) in report::PARTS.into_iter().zip([spent.program, spent.server, spent.store, spent.together()]) {
        figures.add(report::processor(operation, part), who, spent);
    }
    figures.add(format!("{what}: answer to a write, ms"), who, measured.answer);
    figures.add(format!("{what}: writes at once"), who, measured.at_once);
    for (sort, count) in &measured.requests {
        figures.add(format!("{what}: {sort}"), who, *count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_every_contender_first_as_often_as_last() {
        for operation in 0..Operation::ALL.len() {
            let reversed = (0..6).filter(|round| is_reversed(*round, operation)).count();
            assert_eq!(reversed, 3);
        }
    }
}
