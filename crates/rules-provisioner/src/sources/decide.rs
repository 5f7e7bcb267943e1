use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use control::{Decision, Why};

use super::{RemoveSourceFinalizer, SourceReason, SourceView};

pub(super) fn decide(view: &SourceView) -> Decision<RemoveSourceFinalizer, SourceReason> {
    let (object, finalizer, users) = match view {
        SourceView::Gone => return Decision::Rest(Why::settled(SourceReason::SourceGone, "it does not exist")),
        SourceView::Free => {
            return Decision::Rest(Why::settled(SourceReason::NoFinalizer, "it does not carry our finalizer"));
        }
        SourceView::Standing => {
            return Decision::Rest(Why::settled(
                SourceReason::SourceStays,
                "it was copied, and keeps our finalizer until it is deleted",
            ));
        }
        SourceView::Held { object, finalizer, users } => (object, *finalizer, users),
    };
    if !users.is_empty() {
        let users: Vec<_> = users.iter().map(ToString::to_string).collect();
        let text = format!("volumes are being made from it for claims {}", users.join(", "));
        return Decision::Rest(Why::waiting(SourceReason::SourceInUse, text));
    }
    let why = Why::waiting(SourceReason::RemovingFinalizer, "no volume is being made from it any more");
    Decision::Do(RemoveSourceFinalizer { object: object.clone(), finalizer }, why)
}
