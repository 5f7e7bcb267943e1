//! What is left to do for a claim that is bound: to say whether it is used, and to ask for its growth.

use alloc::format;

use api::{Time, names};
use control::{Decision, Timestamp, Why};

use crate::{Action, ClaimFacts, ClaimUsage, Reason};

pub(super) fn claim(now: Timestamp, facts: &ClaimFacts, why: Why<Reason>) -> Decision<Action, Reason> {
    if let Some(usage) = usage(now, facts) {
        let text = if usage.used { "a pod uses the claim" } else { "no pod uses the claim" };
        let action = Action::TellUse { claim: facts.claim.clone(), usage };
        return Decision::Do(action, Why::waiting(Reason::TellingUse, text));
    }
    growth(facts).unwrap_or(Decision::Rest(why))
}

/// PV-57: what the claim is to say about its use and does not say yet. Only changes are written.
pub(super) fn usage(now: Timestamp, facts: &ClaimFacts) -> Option<ClaimUsage> {
    let used = facts.used?;
    let mut conditions = facts.claim.status.conditions.iter();
    let told = conditions.find(|condition| condition.r#type == names::UNUSED).map(|told| told.status.as_str());
    let usage = ClaimUsage { used, since: Time::from_unix_millis(now.0) };
    (told != Some(usage.unused())).then_some(usage)
}

/// EX-5, EX-6: the claim asks for more than it has. Growing is the work of the driver's resizer, if it has one, and of
/// the node.
fn growth(facts: &ClaimFacts) -> Option<Decision<Action, Reason>> {
    let claim = &facts.claim;
    let (wanted, has) = (claim.requested()?, claim.status.capacity.get("storage")?);
    if !matches!((wanted.bytes(), has.bytes()), (Ok(wanted), Ok(has)) if wanted > has) {
        return None;
    }
    // EX-7: the driver that has taken over a plugin waits to be named (S4-20). EX-8: any other does not.
    if let Some((driver, true)) = &facts.grown_by
        && claim.metadata.annotation(names::STORAGE_RESIZER) != Some(driver)
    {
        let text = format!("the claim asks for {wanted} and has {has}: asking {driver}");
        let action = Action::CallResizer { claim: claim.clone(), driver: driver.clone() };
        return Some(Decision::Do(action, Why::waiting(Reason::CallingResizer, text)));
    }
    let name = &claim.spec.volume_name;
    let driver = facts.grown_by.as_ref().map_or("its plugin", |(driver, _)| driver.as_str());
    let text = format!("the claim is bound to volume {name} and waits for {driver} to grow it from {has} to {wanted}");
    Some(Decision::Rest(Why::waiting(Reason::ExternalExpanding, text)))
}
