use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use control::{Decision, Why};

use super::{LetGo, SourceView};

pub(super) fn decide(view: &SourceView) -> Decision<LetGo> {
    let (object, finalizer, users) = match view {
        SourceView::Gone => return Decision::Rest(Why::settled("SourceGone", "it does not exist")),
        SourceView::Free => return Decision::Rest(Why::settled("SourceFree", "nothing of ours holds it")),
        SourceView::Standing => {
            return Decision::Rest(Why::settled("SourceHeld", "it was copied, and is let go when it is deleted"));
        }
        SourceView::Held { object, finalizer, users } => (object, *finalizer, users),
    };
    if !users.is_empty() {
        let users: Vec<_> = users.iter().map(ToString::to_string).collect();
        let text = format!("volumes are being made from it for claims {}", users.join(", "));
        return Decision::Rest(Why::waiting("SourceInUse", text));
    }
    let why = Why::waiting("LettingSourceGo", "no volume is being made from it any more");
    Decision::Do(LetGo { object: object.clone(), finalizer }, why)
}
