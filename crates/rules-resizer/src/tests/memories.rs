//! What one outcome leaves in memory.

use api::SecretReference;
use control::{Decision, Outcome, Reply, Rules, Timestamp};

use super::world::World;
use crate::{Action, Expansion, GrowFailure, GrowMemory, GrowthReport, Memory, Resizer, Work};

/// The write that records a size under way, as it is decided.
fn begin() -> Action {
    let mut world = World::new(Expansion::Controller);
    world.request("2Gi");
    world.sync();
    match world.look() {
        Decision::Do(begin @ Action::Begin(_), _) => begin,
        other => panic!("{}", other.why().text),
    }
}

// A claim is ours from a write that was answered until one that was not: it may arrive at any time.
#[test]
fn a_claim_is_ours_until_a_write_to_it_may_still_arrive() {
    let begin = begin();
    let uid = begin.claim();
    let read = Action::ReadSecret { claim: uid.into(), of: Work::Growing, secret: SecretReference::default() };
    let (done, lost) = (Outcome::Done(Reply::Nothing), Outcome::Unknown("lost".into()));
    for (owned, did, got, after) in [
        (false, &begin, &done, true),
        (true, &begin, &lost, false),
        (false, &begin, &lost, false),
        (true, &read, &lost, true),
        (false, &read, &lost, false),
        (true, &read, &done, true),
        (false, &read, &done, false),
    ] {
        let memory = Memory { uid: uid.into(), owned, ..Memory::default() };
        assert_eq!(Resizer::remember(Timestamp(1), memory, did, got).owned, after, "{owned}: {did:?}, {got:?}");
    }
}

#[test]
fn a_failure_is_forgotten_once_the_claim_tells_it() {
    let begin = begin();
    let Action::Begin(first) = &begin else { panic!() };
    let (claim, at) = (first.claim.clone(), first.at.clone());
    let report = Action::ReportGrowth(GrowthReport { claim, infeasible: false, message: "no".into(), at });
    let failure = Some(GrowFailure { size: 2 << 30, infeasible: false, message: "no".into() });
    for (got, forgotten) in [(Outcome::Done(Reply::Nothing), true), (Outcome::Unknown("lost".into()), false)] {
        let grow = GrowMemory { failure: failure.clone(), ..GrowMemory::default() };
        let memory = Memory { uid: begin.claim().into(), grow, ..Memory::default() };
        let after = Resizer::remember(Timestamp(1), memory, &report, &got);
        assert_eq!(after.grow.failure.is_none(), forgotten, "{got:?}");
    }
}
