//! How outcomes count in a row of failures.

use alloc::sync::Arc;

use api::{ObjectKey, PersistentVolume};
use control::{Action as _, Attempt, Outcome, Refusal, Reply};

use crate::Action;

// A read past the cache comes before every write that needs it: if it ended the row, a write that fails for ever would
// be tried without a pause.
#[test]
fn a_fresh_read_ends_no_row_of_failures() {
    let claim = Action::LookForClaim { volume: "v".into(), claim: ObjectKey::new("n", "c"), uid: "u".into() };
    let volume = Action::LookForVolume { volume: "v".into(), claim_uid: "u".into() };
    let write = Action::MarkReleased(Arc::new(PersistentVolume::default()));
    let done = Outcome::Done(Reply::Nothing);
    assert_eq!(
        [&claim, &volume, &write].map(|action| action.attempt(&done)),
        [Attempt::Neutral, Attempt::Neutral, Attempt::Succeeded]
    );
    let missing = Outcome::Refused(Refusal::NotFound);
    assert!([claim, volume].iter().all(|action| matches!(action.attempt(&missing), Attempt::Outrun(_))));
}
