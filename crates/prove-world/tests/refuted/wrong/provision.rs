use control::{Decision, Timestamp};
use rules_provisioner::{Action, Local, Memory, Provisioner, Reason, View};

use super::Astray;

/// Relies on an intent that was found as on one of its own, which a note of an earlier incarnation may still take away.
pub struct Trusting;

impl Astray for Trusting {
    type Real = Provisioner;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        use control::Rules;
        Provisioner::decide(now, view, &Memory { owned: true, uid: uid(view), ..memory.clone() })
    }
}

fn uid(view: &View) -> String {
    match view {
        View::Claim(rules_provisioner::ClaimView::Ours(work)) => work.claim.metadata.uid.clone(),
        View::Volume(rules_provisioner::VolumeView::Ours { volume, .. }) => volume.metadata.uid.clone(),
        View::Claim(_) | View::Volume(_) => String::new(),
    }
}
