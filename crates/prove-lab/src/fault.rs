use control::{Effect, Outcome, Refusal};
use csi::Code;

/// What happens to an effect instead of its simply succeeding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It happens, and nobody hears of it.
    AnswerLost,
    /// It never arrives, and nobody knows.
    RequestLost,
    /// It arrives when [`Lab::land_late`](crate::Lab::land_late) says so, long after its answer was given up on.
    Late,
    /// It is refused, and certainly did not happen.
    Refused,
}

impl Fault {
    /// The refusal that whoever performs this kind of effect would give.
    pub(crate) fn refusal(effect: &Effect) -> Outcome {
        Outcome::Refused(match effect {
            Effect::Call { .. } => Refusal::Driver(Code::Internal, "told to fail".into()),
            Effect::Host(_) | Effect::Nothing => Refusal::Host("told to fail".into()),
            Effect::Read(_) | Effect::List { .. } | Effect::Token(_) | Effect::Write(_) => Refusal::Conflict,
        })
    }
}
