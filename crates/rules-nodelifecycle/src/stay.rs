//! For how long a pod may stay on a node with taints that end pods.

use api::{Taint, Time, Toleration};
use control::Timestamp;

use crate::Noticed;

/// What tolerations make of taints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay<'a> {
    Forever,
    /// Until then, because of this taint.
    Until(Timestamp, &'a Taint),
    /// This one is not tolerated at all.
    No(&'a Taint),
    /// This one is tolerated for a while that began at a moment nobody has written down.
    Unnoticed(&'a Taint),
}

/// The taint that leaves the least time decides. Each is tolerated by the first toleration that fits.
pub(crate) fn stay<'a>(
    now: Timestamp,
    taints: &'a [Taint],
    tolerations: &[Toleration],
    noticed: Option<&Noticed>,
) -> Stay<'a> {
    let mut soonest: Option<(Timestamp, &Taint)> = None;
    for taint in taints {
        let Some(toleration) = tolerations.iter().find(|toleration| toleration.tolerates(taint)) else {
            return Stay::No(taint);
        };
        let Some(seconds) = toleration.toleration_seconds else { continue };
        let noticed = noticed.filter(|noticed| noticed.taints == taints).map(|noticed| noticed.since);
        let added = taint.time_added.as_ref().and_then(Time::unix_millis).map(Timestamp);
        // A moment that is still to come is of a clock that is ahead of ours.
        let Some(since) = added.filter(|added| *added <= now).or(noticed) else { return Stay::Unnoticed(taint) };
        let until = since.after_millis(u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000));
        if soonest.is_none_or(|(soonest, _)| until < soonest) {
            soonest = Some((until, taint));
        }
    }
    soonest.map_or(Stay::Forever, |(until, taint)| Stay::Until(until, taint))
}
