use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{CSINode, Condition, CsiNodeDriver, Node, Precondition, Quantity, names};
use control::{Decision, Timestamp, Why};

use crate::Reason;
use crate::action::{Action, At, ready};
use crate::entry;
use crate::judge;
use crate::lease;
use crate::limit;
use crate::local::{MachineFacts, NodeInfo, PluginAtSocket, RegistrationProgress};
use crate::migrated;
use crate::view::{CsiNodeSide, NameRival, NodeObject, SelfView, SocketView, View};

/// How long a driver may be without a socket before the node's objects no longer name it: a restart takes less.
const ABSENCE_MILLIS: u64 = 30_000;
/// How long after it was turned away a driver is asked again who it is (KL-8): it may have been corrected.
const SECOND_CHANCE_MILLIS: u64 = 10_000;
/// How often the Node says again that it is ready. The Lease says it more often; kubelet does the same.
const HEARTBEAT_MILLIS: u64 = 300_000;

/// What to do about the node itself, its Lease or one of its sockets.
pub fn decide(now: Timestamp, view: &View) -> Decision<Action, Reason> {
    match view {
        View::SelfNode(view) => introduce(now, view),
        View::Socket(view) => converse(now, view),
        View::Lease(view) => lease::decide(now, view),
        View::NoSocket => Decision::Rest(Why::settled(Reason::SocketGone, "the socket is gone")),
    }
}

fn introduce(now: Timestamp, view: &SelfView) -> Decision<Action, Reason> {
    let name = &view.name;
    let Some(node) = &view.node else {
        let action = Action::CreateNode {
            name: name.clone(),
            incarnation: view.incarnation.clone(),
            at: now.to_time(),
            machine: view.machine.clone(),
        };
        return Decision::Do(action, Why::waiting(Reason::NodeMissing, format!("node {name} is not in the API yet")));
    };
    let only_if = Precondition::unchanged(&node.metadata);
    let (annotations, labels) = missing_marks(view, node);
    if !annotations.is_empty() || !labels.is_empty() {
        let why = Why::waiting(
            Reason::NodeNotIntroduced,
            format!("node {name} does not carry this incarnation of its agent yet"),
        );
        return Decision::Do(Action::DescribeNode { name: name.clone(), only_if, annotations, labels }, why);
    }
    let csi_node = match &view.csi_node {
        CsiNodeSide::Missing => {
            let action = Action::CreateCsiNode { name: name.clone(), node_uid: node.metadata.uid.clone() };
            let why = Why::waiting(Reason::CSINodeMissing, format!("CSINode {name} is not in the API yet"));
            return Decision::Do(action, why);
        }
        CsiNodeSide::Foreign(csi_node) => {
            let only_if = Precondition::unchanged(&csi_node.metadata);
            let text = format!("CSINode {name} belongs to an earlier node of that name and is made anew");
            return Decision::Do(
                Action::DeleteCsiNode { name: name.clone(), only_if },
                Why::waiting(Reason::CSINodeOfAnotherNode, text),
            );
        }
        CsiNodeSide::Ours(csi_node) => csi_node,
    };
    if let Some(list) = migrated::decide(now, view, node, csi_node) {
        return list;
    }
    // KL-24: only now.
    if let Some(why) = untold(now, view, node) {
        let held = node.status.conditions.iter().find(|held| held.r#type == "Ready" && held.status == "True");
        let since = held.and_then(|held| held.last_transition_time.clone());
        let conditions = with_ready(node, ready(&now.to_time(), since));
        let machine = view.machine.clone();
        return Decision::Do(Action::SetReady { name: name.clone(), only_if, conditions, machine }, why);
    }
    let forgotten = forget_absent(now, view, node, csi_node);
    let until = match forgotten {
        Some(Decision::Wait(until, _)) => Some(until),
        Some(decision) => return decision,
        None => None,
    };
    let beat = heartbeat(node).filter(|_| view.machine.is_some()).map(|last| last.after_millis(HEARTBEAT_MILLIS));
    let why = Why::settled(Reason::NodeReady, format!("node {name} is introduced and ready"));
    match until.into_iter().chain(beat).min() {
        Some(until) => Decision::Wait(until, why),
        None => Decision::Rest(why),
    }
}

/// The Node's conditions with another Ready one.
pub(crate) fn with_ready(node: &Node, ready: Condition) -> Vec<Condition> {
    let others = node.status.conditions.iter().filter(|condition| condition.r#type != "Ready");
    others.cloned().chain([ready]).collect()
}

/// KL-14, KL-17, KL-22: a driver without a socket is taken out of the node's objects, unless volumes of it are in use
/// (reliability 64) or it may only be starting again.
fn forget_absent(now: Timestamp, view: &SelfView, node: &Node, csi_node: &CSINode) -> Option<Decision<Action, Reason>> {
    let mut soonest: Option<Timestamp> = None;
    for (driver, since) in view.absent.iter().filter(|(driver, _)| !uses(node, driver)) {
        let until = since.after_millis(ABSENCE_MILLIS);
        if now < until {
            soonest = Some(soonest.map_or(until, |soonest| soonest.min(until)));
            continue;
        }
        let why = Why::waiting(Reason::DriverAbsent, format!("driver {driver} is gone from node {}", view.name));
        // Reliability 64: this write shows that the Node reports no volume in use, whatever the cache has missed.
        if let Ok(mut ids) = node_ids(node)
            && ids.remove(driver).is_some()
        {
            let annotations = [(names::NODE_ID.into(), (!ids.is_empty()).then(|| print_ids(ids)))].into();
            let only_if = Precondition::unchanged(&node.metadata);
            let name = view.name.clone();
            return Some(Decision::Do(
                Action::DescribeNode { name, only_if, annotations, labels: BTreeMap::new() },
                why,
            ));
        }
        if csi_node.spec.drivers.iter().any(|held| held.name == *driver) {
            let drivers = csi_node.spec.drivers.iter().filter(|held| held.name != *driver).cloned().collect();
            let only_if = Precondition::unchanged(&csi_node.metadata);
            return Some(Decision::Do(Action::SetDrivers { name: view.name.clone(), only_if, drivers }, why));
        }
    }
    let why = || Why::settled(Reason::DriverAbsent, "a driver has no socket; its entry stays for a moment");
    soonest.map(|until| Decision::Wait(until, why()))
}

/// What the Node's status does not say, or said too long ago.
fn untold(now: Timestamp, view: &SelfView, node: &Node) -> Option<Why<Reason>> {
    let name = &view.name;
    if !node.is_ready() {
        return Some(Why::waiting(Reason::NodeNotReady, format!("node {name} is not reported ready yet")));
    }
    let machine = view.machine.as_ref()?;
    if !describes(node, machine) {
        let text = format!("the status of node {name} does not say what the machine is");
        return Some(Why::waiting(Reason::MachineNotDescribed, text));
    }
    let stale = heartbeat(node).is_none_or(|last| last.after_millis(HEARTBEAT_MILLIS) <= now);
    stale.then(|| Why::settled(Reason::HeartbeatDue, format!("node {name} says again that it is ready")))
}

fn describes(node: &Node, machine: &MachineFacts) -> bool {
    let status = &node.status;
    status.node_info.as_deref() == Some(&machine.info)
        && status.addresses == machine.addresses
        && same_amounts(&status.capacity, &machine.capacity)
        && same_amounts(&status.allocatable, &machine.allocatable)
}

/// A server may write amounts in another way than it was told them.
fn same_amounts(told: &BTreeMap<String, Quantity>, wanted: &BTreeMap<String, Quantity>) -> bool {
    let value = |quantity: &Quantity| quantity.millis().ok();
    wanted.iter().all(|(name, wanted)| told.get(name).is_some_and(|told| value(told) == value(wanted)))
}

fn heartbeat(node: &Node) -> Option<Timestamp> {
    let ready = node.status.conditions.iter().find(|condition| condition.r#type == "Ready")?;
    ready.last_heartbeat_time.as_ref()?.unix_millis().map(Timestamp)
}

fn missing_marks(view: &SelfView, node: &Node) -> (BTreeMap<String, Option<String>>, BTreeMap<String, String>) {
    let mut annotations = BTreeMap::new();
    for (key, value) in
        [(names::AGENT_INCARNATION, view.incarnation.as_str()), (names::CONTROLLER_MANAGED_ATTACH, "true")]
    {
        if node.metadata.annotation(key) != Some(value) {
            annotations.insert(key.into(), Some(value.into()));
        }
    }
    let mut labels = BTreeMap::new();
    if !node.metadata.labels.contains_key(names::HOSTNAME_LABEL) {
        labels.insert(names::HOSTNAME_LABEL.into(), view.name.clone());
    }
    (annotations, labels)
}

fn converse(now: Timestamp, view: &SocketView) -> Decision<Action, Reason> {
    if let Some(problem) = problem(view) {
        return turn_away(now, view, problem);
    }
    let at = at(view);
    match &view.socket.progress {
        RegistrationProgress::Found => {
            let text = format!("asking the driver behind {} who it is", view.path);
            Decision::Do(Action::AskWho(at), Why::waiting(Reason::DriverUnknown, text))
        }
        RegistrationProgress::Introduced(plugin) if plugin.wants_pod.is_none() => {
            let text =
                format!("asking the driver behind {} what else there is to know about {}", view.path, plugin.name);
            Decision::Do(Action::AskOptions(at), Why::waiting(Reason::OptionsUnknown, text))
        }
        RegistrationProgress::Introduced(plugin) => {
            let text = format!("asking driver {} for its node id", plugin.name);
            Decision::Do(Action::AskPlace(at, plugin.socket(&view.path)), Why::waiting(Reason::NodeIdUnknown, text))
        }
        RegistrationProgress::Placed(plugin, _) => {
            let text = format!("asking driver {} what it can do", plugin.name);
            Decision::Do(
                Action::AskAbilities(at, plugin.socket(&view.path)),
                Why::waiting(Reason::AbilitiesUnknown, text),
            )
        }
        RegistrationProgress::Able(plugin, place, _) => match install(view, plugin, place) {
            Some(decision) => decision,
            None => {
                let text = format!("telling driver {} that it is registered", plugin.name);
                Decision::Do(Action::Welcome(at), Why::waiting(Reason::DriverNotTold, text))
            }
        },
        // Reliability 63: the objects stay as the driver said, whoever changes them.
        RegistrationProgress::Told(plugin, place, _) => install(view, plugin, place).unwrap_or_else(|| {
            let why = Why::settled(Reason::DriverRegistered, format!("driver {} is registered", plugin.name));
            limit::decide(now, view, plugin, why)
        }),
    }
}

pub(crate) fn at(view: &SocketView) -> At {
    At { path: view.path.clone(), incarnation: view.socket.incarnation }
}

/// Why the driver cannot be registered, as far as it is known.
fn problem(view: &SocketView) -> Option<String> {
    let plugin = view.socket.progress.plugin()?;
    if let Some(problem) = judge::plugin(plugin) {
        return Some(problem);
    }
    if let Some(NameRival::Keeps(rival)) = &view.rival {
        return Some(format!("the name {} belongs to the driver at {rival}; remove one of the two", plugin.name));
    }
    unfit(&plugin.name, view.socket.progress.place()?, &view.node)
}

/// What is wrong with what NodeGetInfo said, if anything.
fn unfit(driver: &str, place: &NodeInfo, node: &NodeObject) -> Option<String> {
    // KL-18: two drivers, or a driver and an administrator, disagree about where the node is.
    let collision = || match node {
        NodeObject::Ours(node) => collision(node, driver, place),
        NodeObject::NotYet => None,
    };
    judge::place(driver, place).or_else(|| judge::topology(driver, place)).or_else(collision)
}

/// Nothing that is known of a driver keeps it from being registered.
pub(crate) fn may_be_registered(progress: &RegistrationProgress, node: &NodeObject, csi_node: &CsiNodeSide) -> bool {
    let Some(plugin) = progress.plugin() else { return true };
    if judge::plugin(plugin).is_some() {
        return false;
    }
    let Some(place) = progress.place() else { return true };
    let displaced = match (node, csi_node) {
        (NodeObject::Ours(node), CsiNodeSide::Ours(csi_node)) => displaced(node, csi_node, plugin, place).is_some(),
        (_, _) => false,
    };
    !displaced && unfit(&plugin.name, place, node).is_none()
}

/// KL-21: the identity in an entry cannot be changed in place. Reliability 64: nor can the entry be taken away while
/// volumes are in use. Answers with the entry that is in the way.
fn displaced<'a>(
    node: &Node,
    csi_node: &'a CSINode,
    plugin: &PluginAtSocket,
    place: &NodeInfo,
) -> Option<&'a CsiNodeDriver> {
    let held = csi_node.spec.drivers.iter().find(|held| held.name == plugin.name)?;
    (!entry::same_identity(held, &entry::of(plugin, place)) && uses(node, &plugin.name)).then_some(held)
}

/// A label of the node that says something else than the driver.
pub(crate) fn collision(node: &Node, driver: &str, place: &NodeInfo) -> Option<String> {
    place.topology.iter().find_map(|(key, value)| {
        let label = node.metadata.labels.get(key).filter(|label| *label != value)?;
        Some(format!(
            "driver {driver} says {key} is {value}, but the node's label says {label}; correct one of the two"
        ))
    })
}

fn turn_away(now: Timestamp, view: &SocketView, problem: String) -> Decision<Action, Reason> {
    let why = Why::waiting(Reason::DriverTurnedAway, problem.clone());
    match &view.socket.turned_away {
        Some((told, at)) if *told == problem => {
            let until = at.after_millis(SECOND_CHANCE_MILLIS);
            if now < until { Decision::Wait(until, why) } else { Decision::Do(Action::AskWho(self::at(view)), why) }
        }
        Some(_) | None => Decision::Do(Action::TurnAway { at: at(view), problem, now }, why),
    }
}

/// The next write that makes the objects say what the driver said; `None` when they do.
fn install(view: &SocketView, plugin: &PluginAtSocket, place: &NodeInfo) -> Option<Decision<Action, Reason>> {
    let NodeObject::Ours(node) = &view.node else {
        let text = format!("driver {} waits for the node object to carry this incarnation of the agent", plugin.name);
        return Some(Decision::Rest(Why::waiting(Reason::NodeNotIntroduced, text)));
    };
    let CsiNodeSide::Ours(csi_node) = &view.csi_node else {
        let text = format!("driver {} waits for the CSINode object", plugin.name);
        return Some(Decision::Rest(Why::waiting(Reason::CSINodeMissing, text)));
    };
    let name = &plugin.name;
    if let Some(held) = displaced(node, csi_node, plugin, place) {
        let text = format!(
            "driver {name} now calls this node {}, but volumes are in use under {}; stop the pods that use them",
            place.node_id, held.node_id
        );
        return Some(Decision::Rest(Why::waiting(Reason::NodeIdChanged, text)));
    }
    // Reliability 65: nothing is written for a driver that does not have its name to itself.
    if let Some(NameRival::Leaves(rival)) = &view.rival {
        let text = format!("driver {name} waits until the one at {rival} has heard that it is not registered any more");
        return Some(Decision::Rest(Why::waiting(Reason::NameNotFree, text)));
    }
    if view.socket.holds.as_ref() != Some(name) {
        let text = format!("no other driver named {name} may be registered from now on");
        return Some(Decision::Do(Action::TakeName(at(view)), Why::waiting(Reason::NameFree, text)));
    }
    // KL-16: who reads the entry finds the labels of its topology on the Node.
    describe(node, name, place).or_else(|| entry::set(view, csi_node, plugin, place))
}

fn uses(node: &Node, driver: &str) -> bool {
    let prefix = names::unique_volume_name(driver, "");
    node.status.volumes_in_use.iter().flatten().any(|volume| volume.starts_with(&prefix))
}

/// What the annotation says that drivers call the node.
pub(crate) fn node_ids(node: &Node) -> Result<BTreeMap<String, String>, serde_json::Error> {
    serde_json::from_str(node.metadata.annotation(names::NODE_ID).unwrap_or("{}"))
}

fn print_ids(ids: BTreeMap<String, String>) -> String {
    let map: serde_json::Map<String, api::Value> = ids.into_iter().map(|(k, v)| (k, v.into())).collect();
    api::Value::Object(map).to_string()
}

/// KL-17 and KL-18: the annotation and the labels, in one write.
pub(crate) fn describe(node: &Node, driver: &str, place: &NodeInfo) -> Option<Decision<Action, Reason>> {
    let name = &node.metadata.name;
    let Ok(mut ids) = node_ids(node) else {
        let text = format!("annotation {} of node {name} is not a JSON object of strings; remove it", names::NODE_ID);
        return Some(Decision::Rest(Why::waiting(Reason::NodeIdAnnotationUnreadable, text)));
    };
    let mut annotations = BTreeMap::new();
    if ids.get(driver) != Some(&place.node_id) {
        ids.insert(driver.into(), place.node_id.clone());
        annotations.insert(names::NODE_ID.into(), Some(print_ids(ids)));
    }
    let missing = place.topology.iter().filter(|(key, _)| !node.metadata.labels.contains_key(*key));
    let labels: BTreeMap<String, String> = missing.map(|(key, value)| (key.clone(), value.clone())).collect();
    if annotations.is_empty() && labels.is_empty() {
        return None;
    }
    let only_if = Precondition::unchanged(&node.metadata);
    let why = Why::waiting(Reason::NodeIdNotAnnotated, format!("node {name} does not name driver {driver} yet"));
    Some(Decision::Do(Action::DescribeNode { name: name.clone(), only_if, annotations, labels }, why))
}
