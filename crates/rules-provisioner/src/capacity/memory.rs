use control::{Outcome, Reply, Timestamp};
use csi::Response;

use super::CapacityAction;

/// A hint kept between decisions: what the driver said, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CapacityMemory {
    /// What the driver said last.
    pub said: Option<Said>,
}

/// What a driver said about room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Said {
    pub at: Timestamp,
    /// How much there is.
    pub available: i64,
    /// The largest volume, if there is such a limit.
    pub largest: Option<i64>,
    /// How often it had said the same before.
    pub times: u32,
}

impl CapacityMemory {
    pub(super) fn after(self, now: Timestamp, did: &CapacityAction, got: &Outcome) -> CapacityMemory {
        match did {
            CapacityAction::Ask { .. } => match got {
                Outcome::Done(Reply::Csi(Response::GetCapacity(answer))) => {
                    let (available, largest) = (answer.available_capacity, answer.maximum_volume_size);
                    let same = self.said.filter(|said| (said.available, said.largest) == (available, largest));
                    let times = same.map_or(0, |said| said.times.saturating_add(1));
                    CapacityMemory { said: Some(Said { at: now, available, largest, times }) }
                }
                Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_) => self,
            },
            CapacityAction::Publish { .. } | CapacityAction::Update { .. } | CapacityAction::Withdraw(_) => self,
        }
    }
}
