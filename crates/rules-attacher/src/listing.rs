use alloc::collections::BTreeSet;
use alloc::string::String;

use control::{Outcome, Reply};
use csi::{Response, v1};

use crate::action::VolumeOnNode;
use crate::build::listed_handle;
use crate::{Action, Listed};

/// What the driver lists as published: pairs of volume and node, as it knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Listing {
    /// The last whole list, with what has been published and unpublished since.
    pub whole: Option<BTreeSet<(String, String)>>,
    /// The pages of the next one, so far.
    pub pages: BTreeSet<(String, String)>,
    /// The next page to ask for; empty for the first.
    pub token: String,
}

impl Listing {
    /// What is said about a volume on a node.
    pub fn says(&self, handle: &str, node_id: &str) -> Listed {
        match &self.whole {
            None => Listed::Unknown,
            Some(pairs) if pairs.contains(&(handle.into(), node_id.into())) => Listed::Published,
            Some(_) => Listed::Unpublished,
        }
    }

    /// What an action's outcome says about it. Our own calls count at once, in the list and in the one being made.
    pub fn learn(&mut self, did: &Action, got: &Outcome) {
        match (did, got) {
            (Action::Publish { request, .. }, Outcome::Done(_)) => self.note(&request.place, true),
            (Action::Unpublish { place, .. }, Outcome::Done(_)) => self.note(place, false),
            (Action::List { token, .. }, Outcome::Done(Reply::Csi(Response::ListVolumes(page))))
                if *token == self.token =>
            {
                self.page(page);
            }
            // A list that was not answered, or changed under way, is begun anew.
            (Action::List { .. }, Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_)) => {
                self.token.clear();
                self.pages.clear();
            }
            (
                Action::AddVolumeFinalizer { .. }
                | Action::AddAttachmentFinalizer { .. }
                | Action::ReadSecret { .. }
                | Action::Publish { .. }
                | Action::Confirm { .. }
                | Action::ReportError { .. }
                | Action::GiveWay(_)
                | Action::Recheck { .. }
                | Action::Unpublish { .. }
                | Action::RemoveAttachmentFinalizer { .. }
                | Action::RemoveVolumeFinalizer { .. }
                | Action::Detached(_),
                Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_),
            ) => {}
        }
    }

    fn note(&mut self, place: &VolumeOnNode, published: bool) {
        let Listing { whole, pages, token } = self;
        let under_way = (!token.is_empty()).then_some(pages);
        for pairs in whole.iter_mut().chain(under_way) {
            let handle = listed_handle(&place.driver, &place.handle, &place.node_id).into_owned();
            let pair = (handle, place.node_id.clone());
            if published {
                pairs.insert(pair)
            } else {
                pairs.remove(&pair)
            };
        }
    }

    fn page(&mut self, page: &v1::ListVolumesResponse) {
        for entry in &page.entries {
            let (Some(volume), Some(status)) = (&entry.volume, &entry.status) else { continue };
            let nodes = status.published_node_ids.iter();
            self.pages.extend(nodes.map(|node| (volume.volume_id.clone(), node.clone())));
        }
        self.token = page.next_token.clone();
        if self.token.is_empty() {
            self.whole = Some(core::mem::take(&mut self.pages));
        }
    }
}
