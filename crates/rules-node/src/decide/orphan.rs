//! What to do about directories of pods that are gone (KL-99).

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use control::{Decision, Timestamp, Why};

use crate::Reason;
use crate::action::Action;
use crate::memory::Memory;
use crate::orphans::{self, OrphanView, OrphansView, Removal};

/// A pod that the API has and this node's watch has not: it may be another node's, whose directory was copied here.
const ALIVE_MILLIS: u64 = 600_000;

/// Finds out whose pods are gone, and says how many directories stay.
pub fn all(now: Timestamp, view: &OrphansView, memory: &Memory) -> Decision<Action, Reason> {
    let alive = |uid: &String| memory.alive.get(uid).map(|at| at.after_millis(ALIVE_MILLIS)).filter(|at| now < *at);
    let uids: BTreeSet<String> = view.unsure.iter().filter(|uid| alive(uid).is_none()).cloned().collect();
    if !uids.is_empty() {
        let text = format!("found without a pod: {}", count(uids.len()));
        return Decision::Do(Action::ListPods { uids }, Why::waiting(Reason::PodNotSeen, text));
    }
    let told = match view.gone.iter().find(|(_, kept)| kept.is_some()).or(view.gone.iter().next()) {
        None => Why::settled(Reason::NotHere, "every pod's directory is accounted for"),
        Some((uid, kept)) => {
            let why = kept.as_deref().unwrap_or("it is being swept");
            let text =
                format!("left of pods that are gone: {}, such as that of pod {uid}: {why}", count(view.gone.len()));
            Why::waiting(Reason::OrphanedPods, text)
        }
    };
    match view.unsure.iter().filter_map(alive).min() {
        Some(until) => Decision::Wait(until, told),
        None => Decision::Rest(told),
    }
}

fn count(directories: usize) -> String {
    format!("{directories} director{}", if directories == 1 { "y" } else { "ies" })
}

/// The next step to sweep the directory of a pod that is gone.
pub fn one(view: &OrphanView, memory: &Memory) -> Decision<Action, Reason> {
    let Some(holds) = &view.holds else {
        let text = format!("nothing is to be removed of pod {}", view.uid);
        return Decision::Rest(Why::settled(Reason::NotHere, text));
    };
    if let Some(kept) = &view.kept {
        let text = format!("the directory of pod {}, which is gone, stays: {kept}", view.uid);
        return Decision::Rest(Why::waiting(Reason::OrphanKept, text));
    }
    let left = |path: &String| !memory.swept.contains(path);
    let removals = orphans::removals(holds).into_iter().map(|(path, how)| (format!("{}/{path}", view.dir), how));
    let action = match view.own_mounts.first() {
        Some(path) => Action::UnmountMemory { path: path.clone() },
        None => match removals.chain([(view.dir.clone(), Removal::Empty)]).find(|(path, _)| left(path)) {
            Some((path, Removal::Whole)) => Action::RemoveScratch { path },
            Some((path, Removal::File)) => Action::SweepFile { path },
            Some((path, Removal::Target)) => Action::SweepDevice { path },
            Some((path, Removal::Empty)) => Action::Sweep { path, must: true },
            None => {
                let text = format!("nothing is left of pod {}", view.uid);
                return Decision::Rest(Why::settled(Reason::NotHere, text));
            }
        },
    };
    let text = format!("pod {} is gone and its directory is still there", view.uid);
    Decision::Do(action, Why::waiting(Reason::DirectoriesNotRemoved, text))
}
