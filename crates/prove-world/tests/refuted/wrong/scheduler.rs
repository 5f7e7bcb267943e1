//! A scheduler that is done with a pod once it has a node.

use api::ObjectKey;
use control::{Cache, Rules};
use rules_scheduler::{Scheduler, View};

use super::Astray;

/// Names a node for the claims of pods that have none yet, and for no others.
pub struct DoneWhenPlaced;

impl Astray for DoneWhenPlaced {
    type Real = Scheduler;
    type Local = ();

    fn real(local: &()) -> &() {
        local
    }

    fn view(key: &ObjectKey, cache: &Cache, local: &()) -> View {
        match Scheduler::view(key, cache, local) {
            View::Owed { node, .. } => View::Placed(node),
            other => other,
        }
    }
}
