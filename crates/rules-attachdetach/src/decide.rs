use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{AttachedVolume, ObjectKey};
use control::{Decision, Timestamp, Why};
use rules_translate::Plugin;

use crate::detach::{unreport, unwanted};
use crate::{Action, Attachment, HolderEvidence, Key, Memory, NodeFacts, Pair, Reason, Rival, Unwanted, View, Want};

pub(crate) fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
    match view {
        View::VolumeMissing { key, attachment: None } => {
            Decision::Rest(Why::settled(Reason::VolumeGone, format!("volume {} does not exist", key.volume)))
        }
        View::VolumeMissing { key, attachment: Some(attachment) } => Decision::Rest(Why::waiting(
            Reason::VolumeMissing,
            format!("volume {} of attachment {attachment} does not exist, so its handle is not known", key.volume),
        )),
        View::Known { key, by } => {
            let text = format!("what node {} reports as {} is cared for by way of {by}", key.node, key.volume);
            Decision::Rest(Why::settled(Reason::KnownOtherwise, text))
        }
        View::NotCsi(key) => {
            Decision::Rest(Why::settled(Reason::NotCsi, format!("volume {} has no CSI driver", key.volume)))
        }
        View::Unattachable { key, problem, wanted: true } => {
            waiting(Reason::Unattachable, format!("volume {} cannot be attached: {problem}", key.volume))
        }
        View::Unattachable { key, wanted: false, .. } => Decision::Rest(Why::settled(
            Reason::NotWanted,
            format!("no pod on node {} uses volume {}", key.node, key.volume),
        )),
        View::ServedByPlugin(key, plugin) => Decision::Rest(by_plugin(key, *plugin)),
        View::Pair(pair) => plan(now, pair, memory),
    }
}

fn plan(now: Timestamp, pair: &Pair, memory: &Memory) -> Decision<Action, Reason> {
    match (&pair.want, &pair.node) {
        (Want::Wanted(pod), Some(node)) => wanted(pair, node, pod, memory),
        (Want::Disputed(_, plugin), Some(node)) => disputed(pair, node, *plugin),
        (Want::Wanted(_) | Want::Disputed(..), None) => unwanted(now, pair, Unwanted::NodeGone, memory),
        (Want::Unwanted(reason), _) => unwanted(now, pair, *reason, memory),
    }
}

fn wanted(pair: &Pair, node: &NodeFacts, pod: &ObjectKey, memory: &Memory) -> Decision<Action, Reason> {
    let key = &pair.key;
    if let Some(leaving) = pair.attachments.iter().find(|attachment| attachment.deleting) {
        // A deletion cannot be taken back. Until it is through nobody may start using the volume here.
        return not_reported(pair, node, || {
            waiting(
                Reason::AttachmentLeaving,
                format!("waiting for attachment {} to be gone before making it anew", leaving.seen.name()),
            )
        });
    }
    // While a proof is held a deletion may be on its way. Adopting stops it and drops the proof.
    if let (Some(_), Some(attachment)) = (&memory.proof, pair.attachments.first()) {
        return adopt(attachment);
    }
    if node.held_by_plugin && !pair.is_reported() {
        return waiting(
            Reason::PluginHolds,
            format!(
                "node {} still uses volume {} by its in-tree plugin, which it leaves to driver {}: drain the node",
                key.node, key.volume, pair.driver
            ),
        );
    }
    let Some(proper) = pair.proper() else {
        return not_reported(pair, node, || create(pair, node, pod, memory));
    };
    if !proper.attached {
        return not_reported(pair, node, || not_attached(pair, proper));
    }
    if pair.is_reported() {
        return Decision::Rest(Why::settled(Reason::Attached, format!("{key} is attached and reported to the node")));
    }
    if let Some(rival) = &pair.rival {
        return Decision::Rest(exclusive(pair, rival));
    }
    match pair.attachments.iter().find(|attachment| !memory.safe.contains(&attachment.seen.uid)) {
        Some(stranger) => adopt(stranger),
        None => Decision::Do(
            Action::Report { node: node.seen.clone(), list: with(node, &pair.unique_name), volume: key.volume.clone() },
            Why::waiting(
                Reason::Reporting,
                format!("telling node {} that volume {} is attached", key.node, key.volume),
            ),
        ),
    }
}

/// S4-33: the plugin cares for the volume here. Whatever attaches it is not this controller.
pub(crate) fn by_plugin(key: &Key, plugin: Plugin) -> Why<Reason> {
    Why::settled(Reason::ServedByPlugin, format!("{plugin} serves volume {} on node {}", key.volume, key.node))
}

/// S4-32, the row of errors: nobody attaches the volume until the user decides. What is attached already stays.
fn disputed(pair: &Pair, node: &NodeFacts, plugin: Plugin) -> Decision<Action, Reason> {
    let (key, gate) = (&pair.key, plugin.gate());
    if pair.is_reported() && pair.proper().is_some_and(|proper| proper.attached && !proper.deleting) {
        return Decision::Rest(Why::settled(Reason::Attached, format!("{key} is attached and reported to the node")));
    }
    not_reported(pair, node, || {
        waiting(
            Reason::Disputed,
            format!(
                "nobody attaches volume {}: node {} leaves volumes of {plugin} to driver {}, and the controllers have \
                 {gate} off; switch it on for the controllers, or drain the node and switch it off there",
                key.volume, key.node, pair.driver
            ),
        )
    })
}

/// Takes a report back that should not be there, and goes on once it is not.
fn not_reported(
    pair: &Pair,
    node: &NodeFacts,
    then: impl FnOnce() -> Decision<Action, Reason>,
) -> Decision<Action, Reason> {
    match pair.is_reported() {
        true => unreport(pair, node),
        false => then(),
    }
}

fn create(pair: &Pair, node: &NodeFacts, pod: &ObjectKey, memory: &Memory) -> Decision<Action, Reason> {
    let key = &pair.key;
    if let Some(rival) = &pair.rival {
        return Decision::Rest(exclusive(pair, rival));
    }
    if !node.managed {
        return waiting(
            Reason::NodeNotManaged,
            format!("node {} does not leave its attachments to the controller", key.node),
        );
    }
    if let Some((plugin, user)) = pair.asks.as_ref().filter(|(_, user)| memory.asked_for.as_ref() != Some(user)) {
        // What the cache says may be older than the pod: the node may have been switched in between.
        return Decision::Do(
            Action::AskNode { node: key.node.clone(), plugin: *plugin, pod: user.clone() },
            Why::waiting(
                Reason::AskingNode,
                format!("making sure that node {} leaves volumes of {plugin} to driver {}", key.node, pair.driver),
            ),
        );
    }
    Decision::Do(
        Action::Create {
            attachment: pair.attachment_name.clone(),
            driver: pair.driver.clone(),
            source: pair.source.clone(),
            node: key.node.clone(),
        },
        Why::waiting(
            Reason::Attaching,
            format!("asking for volume {} to be attached to node {} for pod {pod}", key.volume, key.node),
        ),
    )
}

fn exclusive(pair: &Pair, rival: &Rival) -> Why<Reason> {
    let only = format!("volume {} may be on one node only", pair.key.volume);
    let (code, text) = match rival {
        Rival::Attachment { node, deleting: true, error: None } => {
            (Reason::DetachingElsewhere, format!("{only} and is still being detached from node {node}"))
        }
        Rival::Attachment { node, deleting: true, error: Some(error) } => {
            (Reason::DetachingElsewhere, format!("{only} and is not detached from node {node}: {error}"))
        }
        Rival::Attachment { node, deleting: false, .. } => {
            (Reason::AttachedElsewhere, format!("{only} and has an attachment to node {node}"))
        }
        Rival::Holder { node, holder: HolderEvidence::Reported } => {
            (Reason::ReportedElsewhere, format!("{only} and is reported as attached to node {node}"))
        }
        Rival::Holder { node, holder: HolderEvidence::InUse } => {
            (Reason::InUseElsewhere, format!("{only} and node {node} says it is in use there"))
        }
        Rival::Earlier { node } => {
            (Reason::WantedElsewhere, format!("{only} and node {node} waits for it as well and comes first"))
        }
    };
    match pair.rival_pods.join(", ") {
        nobody if nobody.is_empty() => Why::waiting(code, text),
        pods => Why::waiting(code, format!("{text} for these pods: {pods}")),
    }
}

fn not_attached(pair: &Pair, attachment: &Attachment) -> Decision<Action, Reason> {
    let (volume, node, driver) = (&pair.key.volume, &pair.key.node, &pair.driver);
    match &attachment.error {
        None if !pair.driver_known => waiting(
            Reason::WaitingForAttacher,
            format!(
                "waiting for driver {driver} to attach volume {volume} to node {node}; there is no CSIDriver {driver}: \
                 is the driver installed?"
            ),
        ),
        None => waiting(
            Reason::WaitingForAttacher,
            format!("waiting for driver {driver} to attach volume {volume} to node {node}"),
        ),
        Some(error) => waiting(
            Reason::AttachFailing,
            format!("waiting for driver {driver} to attach volume {volume} to node {node}: {error}"),
        ),
    }
}

fn adopt(attachment: &Attachment) -> Decision<Action, Reason> {
    Decision::Do(
        Action::Adopt(attachment.seen.clone()),
        Why::waiting(
            Reason::Adopting,
            format!("making sure that no earlier deletion of attachment {} can come through", attachment.seen.name()),
        ),
    )
}

fn with(node: &NodeFacts, unique_name: &str) -> Vec<AttachedVolume> {
    let mut list = node.reported.clone();
    list.push(AttachedVolume { name: unique_name.into(), ..AttachedVolume::default() });
    list
}

pub(crate) fn waiting(code: Reason, text: String) -> Decision<Action, Reason> {
    Decision::Rest(Why::waiting(code, text))
}
