use control::{Decision, Timestamp};

use crate::Reason;
use crate::action::Action;
use crate::memory::Memory;
use crate::view::View;

mod check;
mod contents;
mod ending;
mod grow;
mod mount;
mod orphan;
mod pod;
mod volume;

/// What to do about a volume or a pod.
pub fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
    match view {
        View::Volume(view) => volume::decide(now, view, memory),
        View::Pod(view) => pod::decide(now, view, memory),
        View::Check(view) => check::decide(now, view),
        View::Orphans(view) => orphan::all(now, view, memory),
        View::Orphan(view) => orphan::one(view, memory),
    }
}
