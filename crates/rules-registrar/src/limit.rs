//! How many volumes of a driver the node takes, asked again for drivers that want it (KL-25, KL-26).

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use api::{ObjectKey, Time};
use control::{Cache, Decision, Timestamp, Why};

use crate::Reason;
use crate::action::{Action, At};
use crate::local::{Local, PluginAtSocket, Socket};
use crate::view::SocketView;

/// The shortest period that the API takes. A server that let a shorter one through hurries nobody.
const SHORTEST_SECONDS: i64 = 10;
/// How CSI numbers `ResourceExhausted`.
const EXHAUSTED: i32 = 8;

/// What a driver's CSIDriver, and attachments that did not succeed, say about asking again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitWishes {
    /// How often the driver wants to be asked; `None` if it does not.
    pub period_millis: Option<u64>,
    /// Attachments of its volumes to this node that failed because the node is full: each by its uid and when that was.
    pub full: BTreeSet<FullAttachment>,
}

/// An attachment that failed because the node is full, by its uid, and when that was.
pub type FullAttachment = (String, Option<Time>);

/// What the driver at a socket was asked about its limit since it was registered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LimitAsked {
    /// When it was last asked.
    pub at: Timestamp,
    /// The failed attachments that were known then.
    pub full: BTreeSet<FullAttachment>,
}

/// What is known of a driver's wishes.
pub(crate) fn wishes(cache: &Cache, local: &Local, socket: &Socket) -> LimitWishes {
    let Some(name) = socket.progress.plugin().map(|plugin| plugin.name.as_str()) else { return LimitWishes::default() };
    let driver = cache.driver(&ObjectKey::cluster(name));
    let period = driver.and_then(|driver| driver.spec.node_allocatable_update_period_seconds);
    let Some(seconds) = period.filter(|seconds| *seconds > 0) else { return LimitWishes::default() };
    let failed = cache.attachments_by_node(&local.node).filter_map(|attachment| {
        let error = attachment.status.attach_error.as_ref().filter(|error| error.error_code == Some(EXHAUSTED))?;
        let ours = attachment.spec.attacher == name && !attachment.status.attached;
        ours.then(|| (attachment.metadata.uid.clone(), error.time.clone()))
    });
    let period_millis = u64::try_from(seconds.max(SHORTEST_SECONDS)).ok().map(|seconds| seconds.saturating_mul(1000));
    LimitWishes { period_millis, full: failed.collect() }
}

/// The next step for a registered driver, once nothing else is to be done: it is asked in its period, and at once after
/// an attachment failed for want of room.
pub(crate) fn decide(
    now: Timestamp,
    view: &SocketView,
    plugin: &PluginAtSocket,
    rest: Why<Reason>,
) -> Decision<Action, Reason> {
    let Some(period) = view.limit.period_millis else { return Decision::Rest(rest) };
    let asked = view.socket.limit_asked.as_ref();
    let news = asked.is_none_or(|asked| !view.limit.full.is_subset(&asked.full));
    let due = asked.map_or(now, |asked| asked.at.after_millis(period));
    if now < due && !news {
        return Decision::Wait(due, rest);
    }
    let text = format!("asking driver {} how many volumes the node takes now", plugin.name);
    let action = Action::AskLimit {
        at: At { path: view.path.clone(), incarnation: view.socket.incarnation },
        socket: plugin.socket(&view.path),
        asked: LimitAsked { at: now, full: view.limit.full.clone() },
    };
    Decision::Do(action, Why { settled: true, ..Why::waiting(Reason::LimitDue, text) })
}
