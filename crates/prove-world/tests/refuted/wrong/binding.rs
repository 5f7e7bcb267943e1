//! Binding controllers that give away what has an owner.

use control::{Decision, Rules, Timestamp, Why};
use rules_binding::{Action, Binding, BindingState, ClaimView, Local, Memory, Reason, View, VolumeOwner, VolumeView};

use super::Astray;

/// Calls a bound volume released.
pub struct ReleasesBound;

impl Astray for ReleasesBound {
    type Real = Binding;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        match view {
            View::Volume(VolumeView::Here(facts))
                if matches!(facts.holder, VolumeOwner::Bound(_))
                    && facts.volume.status.phase == api::VolumePhase::Bound =>
            {
                Decision::Do(
                    Action::MarkReleased(facts.volume.clone()),
                    Why::waiting(Reason::MarkingReleased, "taken for released"),
                )
            }
            _ => Binding::decide(now, view, memory),
        }
    }
}

/// Gives any claim without a volume one that has an owner.
pub struct BindsTwice;

impl Astray for BindsTwice {
    type Real = Binding;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        match view {
            View::Claim(ClaimView::Here(facts)) if matches!(facts.standing, BindingState::Unbound(_)) => {
                let action = Action::PointClaim { claim: facts.claim.clone(), volume: "data-volume".into() };
                Decision::Do(action, Why::waiting(Reason::BindingClaim, "taken for free"))
            }
            _ => Binding::decide(now, view, memory),
        }
    }
}

/// Takes the cached pods for all there are.
pub struct TrustsCachedPods;

impl Astray for TrustsCachedPods {
    type Real = Binding;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        match (Binding::decide(now, view, memory), view) {
            (Decision::Do(Action::LookForUsers { .. }, _), View::Claim(ClaimView::Here(facts))) => Decision::Do(
                Action::RemoveClaimFinalizer(facts.claim.clone()),
                Why::waiting(Reason::RemovingClaimFinalizer, "taken for unused"),
            ),
            (decision, _) => decision,
        }
    }
}
