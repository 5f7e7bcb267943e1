//! The way back: a volume that nobody needs on a node.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{AttachedVolume, Seen};
use control::{Decision, Pulse, PulseVerdict, Timestamp, Why};

use crate::decide::{by_plugin, waiting};
use crate::force::{self, ForcePolicy};
use crate::{Action, Attachment, Memory, NodeFacts, Pair, Reason, Unwanted};

pub(crate) fn unwanted(now: Timestamp, pair: &Pair, reason: Unwanted, memory: &Memory) -> Decision<Action, Reason> {
    let staying: Vec<&Attachment> = pair.attachments.iter().filter(|attachment| !attachment.deleting).collect();
    match (&pair.node, staying.first()) {
        (Some(node), _) if node.in_use && may_force(pair, reason) => force(now, pair, node, memory),
        (Some(node), _) if pair.is_reported() && (staying.is_empty() || !node.in_use) => unreport(pair, node),
        (_, None) => nothing_to_ask_for(pair, reason),
        (None, Some(attachment)) => match memory.allows(None, attachment) {
            true => delete(pair, attachment),
            false => Decision::Do(
                Action::CheckNode { node: pair.key.node.clone(), attachments: pair.staying() },
                Why::waiting(Reason::CheckingNode, format!("making sure that node {} is gone", pair.key.node)),
            ),
        },
        // Time changes nothing about this (reliability 27): the node itself must say that it is done.
        (Some(node), Some(_)) if node.in_use => waiting(Reason::InUse, in_use(pair)),
        (Some(node), Some(attachment)) => match memory.allows(Some(node.seen.uid.as_str()), attachment) {
            true => delete(pair, attachment),
            false => Decision::Do(
                Action::Fence { node: node.seen.clone(), names: pair.names(), attachments: pair.staying() },
                Why::waiting(
                    Reason::Fencing,
                    format!("making sure that node {} does not use volume {}", pair.key.node, pair.key.volume),
                ),
            ),
        },
    }
}

fn in_use(pair: &Pair) -> String {
    let text = format!("waiting for node {} to stop using volume {}", pair.key.node, pair.key.volume);
    match &pair.force {
        ForcePolicy::Never(Some(problem)) => format!("{text}; {problem}"),
        ForcePolicy::Never(None) | ForcePolicy::OutOfService | ForcePolicy::After(_) | ForcePolicy::Everywhere(_) => {
            text
        }
    }
}

/// Somebody has said that volumes may be taken from this node, or from dead ones, and the pods that used this one are
/// gone or going. For whatever other reason it is not wanted here, a pod may use it still.
fn may_force(pair: &Pair, reason: Unwanted) -> bool {
    reason == Unwanted::NoPod && !matches!(pair.force, ForcePolicy::Never(_))
}

/// AD-16 to AD-21: the node's word is not waited for once it is dead, which its Lease must show.
fn force(now: Timestamp, pair: &Pair, node: &NodeFacts, memory: &Memory) -> Decision<Action, Reason> {
    let (volume, name) = (&pair.key.volume, &pair.key.node);
    let evidence = || force::evidence(&pair.force, memory.pulse.as_ref(), node.unheard);
    let beats = memory.pulse.as_ref().is_some_and(|pulse| pulse.beats);
    match Pulse::judge(now, pair.force.silence(), node.unheard, memory.pulse.as_ref()) {
        PulseVerdict::Look => Decision::Do(
            Action::ReadLease {
                node: name.clone(),
                known: memory.pulse.as_ref().and_then(|pulse| pulse.version.clone()),
            },
            Why::waiting(Reason::CheckingLease, format!("looking whether node {name} renews its Lease")),
        ),
        PulseVerdict::Later(then) if beats => Decision::Wait(
            then,
            Why::waiting(
                Reason::NodeLives,
                format!("volume {volume} is not taken from node {name}, which renews its Lease, so it lives"),
            ),
        ),
        PulseVerdict::Later(then) => Decision::Wait(
            then,
            Why::waiting(
                Reason::AwaitingLease,
                format!("volume {volume} is taken from node {name} unless it renews its Lease"),
            ),
        ),
        PulseVerdict::Dead => Decision::Do(
            Action::ForceRelease {
                node: node.seen.clone(),
                list: without(node, &pair.unique_name),
                used: node.used.iter().filter(|used| !pair.names().contains(used)).cloned().collect(),
                volume: volume.clone(),
                names: pair.names(),
                attachments: pair.staying(),
                out_of_service: pair.force == ForcePolicy::OutOfService,
                evidence: evidence(),
            },
            Why::waiting(
                Reason::ForcingDetach,
                format!("taking volume {volume} from node {name} without its word: {}", evidence()),
            ),
        ),
    }
}

fn without(node: &NodeFacts, unique_name: &str) -> Vec<AttachedVolume> {
    node.reported.iter().filter(|volume| volume.name != unique_name).cloned().collect()
}

fn nothing_to_ask_for(pair: &Pair, reason: Unwanted) -> Decision<Action, Reason> {
    let key = &pair.key;
    if let Some(leaving) = pair.attachments.first() {
        let (driver, attachment) = (&pair.driver, leaving.seen.name());
        let text = format!(
            "waiting for driver {driver} to detach volume {} from node {} ({attachment})",
            key.volume, key.node
        );
        return match &leaving.error {
            None => waiting(Reason::Detaching, text),
            Some(error) => waiting(Reason::DetachFailing, format!("{text}: {error}")),
        };
    }
    Decision::Rest(match reason {
        Unwanted::NoPod => {
            Why::settled(Reason::NotWanted, format!("no pod on node {} uses volume {}", key.node, key.volume))
        }
        Unwanted::NoAttachRequired => {
            Why::settled(Reason::NoAttachRequired, format!("driver {} needs no attachments", pair.driver))
        }
        Unwanted::NodeGone => Why::settled(Reason::NodeGone, format!("node {} does not exist", key.node)),
        Unwanted::ServedByPlugin(plugin) => by_plugin(key, plugin),
        Unwanted::VolumeGone => Why::settled(Reason::VolumeGone, format!("volume {} does not exist", key.volume)),
    })
}

pub(crate) fn unreport(pair: &Pair, node: &NodeFacts) -> Decision<Action, Reason> {
    Decision::Do(
        Action::Unreport {
            node: node.seen.clone(),
            list: without(node, &pair.unique_name),
            names: pair.names(),
            attachments: pair.staying(),
        },
        Why::waiting(
            Reason::TakingReportBack,
            format!("telling node {} that volume {} is not attached any more", pair.key.node, pair.key.volume),
        ),
    )
}

fn delete(pair: &Pair, attachment: &Attachment) -> Decision<Action, Reason> {
    Decision::Do(
        Action::Delete(attachment.seen.clone()),
        Why::waiting(
            Reason::Detaching,
            format!("asking for volume {} to be detached from node {}", pair.key.volume, pair.key.node),
        ),
    )
}

impl Pair {
    /// The attachments nobody has asked to delete.
    fn staying(&self) -> Vec<Seen> {
        self.attachments
            .iter()
            .filter(|attachment| !attachment.deleting)
            .map(|attachment| attachment.seen.clone())
            .collect()
    }
}

impl Memory {
    /// The proof held is about this node and this attachment in this very version.
    fn allows(&self, node: Option<&str>, attachment: &Attachment) -> bool {
        self.proof
            .as_ref()
            .is_some_and(|proof| proof.node.as_deref() == node && proof.attachments.contains(&attachment.seen))
    }
}
