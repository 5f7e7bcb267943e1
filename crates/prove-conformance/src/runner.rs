use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::report::{CaseVerdict, Finished, SuiteReport};
use crate::{Case, CaseContext, Need, Problem, Suite};

/// Told as the run goes on.
pub enum Progress<'a> {
    /// A case begins: its name, how many began before it, of how many.
    Begins(&'a str, usize, usize),
    /// A case has ended.
    Ended(&'a str, &'a CaseVerdict),
}

/// A case that has not begun.
struct Waiting {
    number: usize,
    case: &'static Case,
    alone: bool,
}

impl Waiting {
    /// The driver is killed and started again in it.
    fn kills(&self) -> bool {
        self.case.needs.contains(&Need::Restart)
    }
}

/// Runs the cases, cleaning up after each. When `interrupted` ends, no further case begins, those under way are
/// stopped and cleaned up, and the report says so.
pub async fn run(
    suite: Arc<Suite>,
    cases: &[&'static Case],
    interrupted: impl Future<Output = ()>,
    mut progress: impl FnMut(Progress<'_>),
) -> SuiteReport {
    let began = Instant::now();
    let chosen: Vec<&'static Case> = cases.iter().copied().filter(|case| chosen(&suite, case.name)).collect();
    let total = chosen.len();
    let mut finished: Vec<Finished> = Vec::new();
    let mut waiting = Vec::new();
    for (number, case) in chosen.into_iter().enumerate() {
        match case.needs.iter().find_map(|need| suite.lacks(*need)) {
            Some(why) => {
                let verdict = CaseVerdict::Skipped(why);
                progress(Progress::Ended(case.name, &verdict));
                finished.push(Finished { case, number, verdict, took: Default::default() });
            }
            None => waiting.push(Waiting { number, case, alone: case.needs.contains(&Need::Alone) }),
        }
    }
    // Those that need the driver for themselves come last, and of them those that kill it: not every driver comes back.
    waiting.sort_by_key(|waiting| (waiting.alone, waiting.kills(), waiting.number));
    let mut waiting = VecDeque::from(waiting);
    let mut interrupted = std::pin::pin!(interrupted);
    let mut stopped = false;
    let mut running: JoinSet<(Finished, bool)> = JoinSet::new();
    let (stop, stopping) = watch::channel(false);
    let mut alone = false;
    loop {
        while let Some(next) = waiting.pop_front() {
            let room = running.is_empty() || (!alone && !next.alone && running.len() < suite.options.parallel);
            if !room {
                waiting.push_front(next);
                break;
            }
            let Waiting { number, case, alone: wants_alone } = next;
            if let Some(since) = suite.gone.get() {
                let verdict = CaseVerdict::Skipped(format!("the driver crashed in {since} and is gone"));
                progress(Progress::Ended(case.name, &verdict));
                finished.push(Finished { case, number, verdict, took: Default::default() });
                continue;
            }
            alone = wants_alone;
            progress(Progress::Begins(case.name, finished.len() + running.len(), total));
            let context = Arc::new(CaseContext::new(suite.clone(), number, case));
            let judged = judge(number, case, context, stopping.clone());
            let beside_others = !wants_alone && suite.options.parallel > 1;
            running.spawn(async move {
                let (done, crashed) = judged.await;
                (done, crashed && beside_others)
            });
        }
        tokio::select! {
            ended = running.join_next() => match ended {
                None => break,
                // Of cases side by side nobody knows which the driver did not survive: each is judged again by itself.
                Some(Ok((done, true))) if !stopped && suite.gone.get().is_none() => {
                    let before = waiting.iter().position(Waiting::kills).unwrap_or(waiting.len());
                    waiting.insert(before, Waiting { number: done.number, case: done.case, alone: true });
                }
                Some(Ok((done, _))) => {
                    progress(Progress::Ended(done.case.name, &done.verdict));
                    finished.push(done);
                }
                // `judge` never panics itself: the case runs in a task of its own.
                Some(Err(_)) => {}
            },
            () = &mut interrupted, if !stopped => {
                // Those under way end by themselves, and clean up as always.
                stopped = true;
                waiting.clear();
                let _ = stop.send(true);
            }
        }
    }
    for folder in [&suite.options.staging_dir, &suite.options.target_dir] {
        // Only if empty, and only if it is still there.
        let _ = std::fs::remove_dir(folder);
    }
    finished.sort_by_key(|done| done.number);
    SuiteReport {
        driver: suite.driver.name.clone(),
        version: suite.driver.vendor_version.clone(),
        endpoint: suite.options.endpoint.clone(),
        finished,
        took: began.elapsed(),
        interrupted: stopped,
    }
}

/// Runs one case and cleans up. Says too whether the driver went away meanwhile.
async fn judge(
    number: usize,
    case: &'static Case,
    context: Arc<CaseContext>,
    mut stopping: watch::Receiver<bool>,
) -> (Finished, bool) {
    let began = Instant::now();
    let revived = context.suite.revived.load(Ordering::SeqCst);
    // In a task of its own, so that a panic ends the case and not the run; aborted when this future is dropped.
    let mut task = JoinSet::new();
    task.spawn((case.run)(context.clone()));
    let limit = context.suite.options.case_timeout;
    let outcome = tokio::select! {
        ended = task.join_next() => match ended {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) | None => Err(Problem::Failed("the case itself panicked; report this as a defect".into())),
        },
        () = tokio::time::sleep(limit) => {
            Err(Problem::Failed(format!("the case did not end within {} s", limit.as_secs())))
        }
        Ok(_) = stopping.wait_for(|stopped| *stopped) => Err(Problem::Skipped("the run was interrupted".into())),
    };
    task.shutdown().await;
    let took = began.elapsed();
    // Another case that missed the driver at the same time may have started it again already.
    let gone = revive(&context.suite, case.name).await;
    let crashed = gone || context.suite.revived.load(Ordering::SeqCst) != revived;
    let left = context.clean_up().await;
    let outcome = match (outcome, crashed) {
        (Err(Problem::Failed(why)), true) => Err(Problem::Failed(format!("{why}; the driver crashed"))),
        (Ok(()) | Err(Problem::Skipped(_)), true) => Err(Problem::Failed("the driver crashed".into())),
        (outcome, false) => outcome,
    };
    let verdict = match outcome {
        Err(Problem::Failed(why)) => CaseVerdict::Failed(why),
        Err(Problem::Skipped(why)) => CaseVerdict::Skipped(why),
        Ok(()) if !left.is_empty() => CaseVerdict::Failed(format!("something was left behind: {}", left.join("; "))),
        Ok(()) => match context.warnings() {
            warnings if warnings.is_empty() => CaseVerdict::Passed,
            warnings => CaseVerdict::Warned(warnings.join("; ")),
        },
    };
    (Finished { case, number, verdict, took }, crashed)
}

/// Whether the driver is gone. It is started again if that can be done; otherwise the run has nobody left to judge.
async fn revive(suite: &Suite, case: &'static str) -> bool {
    if suite.is_there().await {
        return false;
    }
    // Cases that ran beside each other miss it together; it is started once.
    let _turn = suite.reviving.lock().await;
    if suite.is_there().await {
        return true;
    }
    suite.revived.fetch_add(1, Ordering::SeqCst);
    if suite.options.restart.is_none() || suite.restart().await.is_err() {
        suite.gone.get_or_init(|| case);
    }
    true
}

fn chosen(suite: &Suite, name: &str) -> bool {
    let options = &suite.options;
    (options.only.is_empty() || options.only.iter().any(|pattern| matches(pattern, name)))
        && !options.skip.iter().any(|pattern| matches(pattern, name))
}

/// A pattern matches anywhere in a name; `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let mut rest = name;
    pattern.split('*').all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_anywhere() {
        let name = "controller/create/no-name";
        for pattern in ["create", "controller/", "no-name", "controller/*/no", "*", ""] {
            assert!(matches(pattern, name), "{pattern}");
        }
        for pattern in ["delete", "no*create"] {
            assert!(!matches(pattern, name), "{pattern}");
        }
    }
}
