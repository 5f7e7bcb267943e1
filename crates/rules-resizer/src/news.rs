//! What users are told, under the reasons they know from the Go resizer (sidecars 4.5).

use alloc::format;
use alloc::string::String;

use api::Quantity;
use control::{EventType, News, Why};

use crate::Reason;
use crate::action::{Action, Work};

const GROWTH_FAILED: &str = "VolumeResizeFailed";
const MODIFY_FAILED: &str = "VolumeModifyFailed";

/// What is told of an action.
pub(crate) fn news(act: &Action) -> News {
    let failed = match act.work() {
        Work::Growing => Some(GROWTH_FAILED),
        Work::Modifying => Some(MODIFY_FAILED),
    };
    let (begun, done) = match act {
        Action::Expand { size, .. } => (Some(("Resizing", format!("the driver is asked for {}", bytes(*size)))), None),
        Action::AwaitNode { .. } => (None, Some(("FileSystemResizeRequired", "the node does the rest".into()))),
        Action::Finish { size, .. } => {
            (None, Some(("VolumeResizeSuccessful", format!("the volume has {}", bytes(*size)))))
        }
        Action::Modify { class, .. } => {
            (Some(("VolumeModify", format!("the driver is asked for the attributes of class {class}"))), None)
        }
        Action::FinishModify { class, .. } => {
            (None, Some(("VolumeModifySuccessful", format!("the volume has the attributes of class {class}"))))
        }
        Action::CancelModify { .. } => {
            (None, Some(("VolumeModifyCanceled", "no other attributes are asked for".into())))
        }
        Action::ForgetBefore { .. }
        | Action::Adopt { .. }
        | Action::Begin(_)
        | Action::ReadSecret { .. }
        | Action::SetSize { .. }
        | Action::ReportGrowth(_)
        | Action::BeginModify { .. }
        | Action::Pend { .. }
        | Action::SetClass { .. }
        | Action::ReportModify(_) => (None, None),
    };
    News { begun, done, failed, ..News::default() }
}

fn bytes(size: i64) -> String {
    format!("{}", Quantity::from_bytes(size))
}

/// What is told while nothing is done: upstream complains about a class that is not there, and about a volume in use.
pub(crate) fn rest_event(why: &Why<Reason>) -> Option<(EventType, &'static str)> {
    match why.code {
        Reason::AttributesClassMissing => Some((EventType::Warning, MODIFY_FAILED)),
        Reason::VolumeInUse | Reason::VolumeUnusable | Reason::SizeUnreadable => {
            Some((EventType::Warning, GROWTH_FAILED))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use api::{Kind, ObjectRef, Seen};
    use control::Action as _;

    fn claim() -> Seen {
        let object = ObjectRef::namespaced(Kind::PersistentVolumeClaim, "n", "c");
        Seen { object, uid: "u".into(), version: "1".into() }
    }

    // Sidecars 4.4, 4.5: the reasons of the Go resizer.
    #[test]
    fn growing_and_modifying_are_told_under_the_reasons_users_know() {
        let done = |act: &Action| act.news().done.map(|(reason, _)| reason);
        let finish = Action::Finish { claim: claim(), size: 2 << 30, gone: Vec::new(), recovers: true };
        assert_eq!(finish.news().done, Some(("VolumeResizeSuccessful", "the volume has 2Gi".into())));
        assert_eq!(finish.news().failed, Some("VolumeResizeFailed"));
        let cancel = Action::CancelModify { claim: claim() };
        assert_eq!((done(&cancel), cancel.news().failed), (Some("VolumeModifyCanceled"), Some("VolumeModifyFailed")));
        let modified = Action::FinishModify { claim: claim(), class: "gold".into(), gone: Vec::new() };
        assert_eq!(done(&modified), Some("VolumeModifySuccessful"));
        let pend = Action::Pend { claim: claim(), target: String::new() };
        assert_eq!((pend.news().begun, pend.news().done), (None, None));
    }

    #[test]
    fn a_volume_in_use_and_a_missing_class_are_told_and_a_volume_as_it_should_be_is_not() {
        let reason = |code| rest_event(&Why::waiting(code, "")).map(|(_, reason)| reason);
        assert_eq!(reason(Reason::VolumeInUse), Some(GROWTH_FAILED));
        assert_eq!(reason(Reason::AttributesClassMissing), Some(MODIFY_FAILED));
        assert_eq!(reason(Reason::SizeAsRequested), None);
    }
}
