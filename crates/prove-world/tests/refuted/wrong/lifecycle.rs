use control::{Decision, Pulse, Rules, Timestamp};
use prove_world::worlds::node::evicted::Watchful;
use rules_nodelifecycle::{Action, Memory, NodeLifecycle, Reason, View};

use super::Astray;

/// Takes a Lease that the cache has not seen renewed for one that is not renewed.
pub struct TrustsWatch;

impl Astray for TrustsWatch {
    type Real = Watchful;
    type Local = ();

    fn real(local: &()) -> &() {
        local
    }

    fn decide(now: Timestamp, view: &(View, bool), memory: &Memory) -> Decision<Action, Reason> {
        match <Watchful as Rules>::decide(now, view, memory) {
            Decision::Do(Action::ReadLease { node, known }, why) => {
                let later =
                    |pulse: &Pulse| Pulse { read: pulse.read.after_millis(pulse.lease_millis), ..pulse.clone() };
                let unread = Memory { pulse: memory.pulse.as_ref().map(later), ..memory.clone() };
                match unread.pulse.as_ref().map(|pulse| pulse.read) {
                    Some(now) => NodeLifecycle::decide(now, &view.0, &unread),
                    None => Decision::Do(Action::ReadLease { node, known }, why),
                }
            }
            other => other,
        }
    }
}
