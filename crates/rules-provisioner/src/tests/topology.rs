use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, StorageClass, names};
use control::{Cache, Reason as _};
use csi::{Code, PluginService};
use serde_json::{Value, json};

use super::driver::Mood;
use super::world::{CLAIM, VOLUME, World};
use crate::topology::{requirement, spread};
use crate::{Intent, Local, Settings, Unfit};

const ZONE: &str = "topology.d/zone";
const RACK: &str = "topology.d/rack";

fn local(change: impl FnOnce(&mut Settings)) -> Local {
    let mut settings = Settings::default();
    change(&mut settings);
    let capabilities = Local::PLAIN.with(PluginService::VolumeAccessibilityConstraints.into());
    Local { capabilities, settings: settings.into(), ..Local::new("d") }
}

/// Nodes by name and labels, each with these topology keys of driver `d`.
fn cluster(nodes: &[(&str, &[(&str, &str)])], keys: &[&str]) -> Cache {
    let mut cache = Cache::default();
    let mut set = |kind, body: Value| {
        let mut body = body;
        body["metadata"]["resourceVersion"] = "1".into();
        cache.set(Object::from_json(kind, body).unwrap());
    };
    for (name, labels) in nodes {
        let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
        set(Kind::Node, json!({ "metadata": { "name": name, "labels": labels } }));
        let driver = json!({ "name": "d", "nodeID": name, "topologyKeys": keys });
        set(Kind::CSINode, json!({ "metadata": { "name": name }, "spec": { "drivers": [driver] } }));
    }
    cache
}

fn zones(names: &[&'static str]) -> Cache {
    let nodes: Vec<(String, [(&str, &str); 1])> =
        names.iter().enumerate().map(|(at, zone)| (format!("n{at}"), [(ZONE, *zone)])).collect();
    let nodes: Vec<(&str, &[(&str, &str)])> = nodes.iter().map(|(name, labels)| (name.as_str(), &labels[..])).collect();
    cluster(&nodes, &[ZONE])
}

fn class(allowed: Value) -> StorageClass {
    serde_json::from_value(json!({ "metadata": { "name": "fast" }, "allowedTopologies": allowed })).unwrap()
}

fn allow(expressions: &[(&str, &[&str])]) -> Value {
    let expression = |(key, values): &(&str, &[&str])| json!({ "key": key, "values": values });
    json!({ "matchLabelExpressions": expressions.iter().map(expression).collect::<Vec<_>>() })
}

type Places = Vec<String>;

/// Requisite and preferred, each place as `value` or `value/value` by key; or the reason there are none.
fn ask(
    claim: &str,
    node: Option<&str>,
    allowed: Value,
    cache: &Cache,
    local: &Local,
) -> Result<Option<(Places, Places)>, &'static str> {
    let show = |places: Vec<csi::v1::Topology>| -> Places {
        places.into_iter().map(|place| place.segments.into_values().collect::<Vec<_>>().join("/")).collect()
    };
    match requirement(claim, node, &class(allowed), cache, local) {
        Ok(found) => Ok(found.map(|found| found.to_csi()).map(|csi| (show(csi.requisite), show(csi.preferred)))),
        Err(Unfit::Reschedule(_)) => Err("Reschedule"),
        Err(Unfit::Obstacle(obstacle)) => Err(obstacle.code.name()),
    }
}

fn found(requisite: &[&str], preferred: &[&str]) -> Result<Option<(Places, Places)>, &'static str> {
    let places = |places: &[&str]| places.iter().map(ToString::to_string).collect();
    Ok(Some((places(requisite), places(preferred))))
}

// P35: delayed binding, strict: the node's place and no other. S0-28.
#[test]
fn strict_means_the_selected_node_alone() {
    let cache = zones(&["c", "a", "b"]);
    let strict = local(|settings| settings.strict_topology = true);
    assert_eq!(ask("x", Some("n0"), json!([]), &cache, &strict), found(&["c"], &["c"]));
    let allowed = json!([allow(&[(ZONE, &["b", "c"])])]);
    assert_eq!(ask("x", Some("n0"), allowed.clone(), &cache, &strict), found(&["c"], &["c"]));
    assert_eq!(ask("x", Some("n1"), allowed, &cache, &strict), Err("NodeNotAllowed"));
}

// P36, P41: delayed binding: every place of the cluster, once and in order, the node's first. Reliability 11.
#[test]
fn the_selected_nodes_place_is_preferred() {
    let cache = zones(&["c", "a", "b", "b", "a"]);
    assert_eq!(ask("x", Some("n2"), json!([]), &cache, &local(|_| {})), found(&["a", "b", "c"], &["b", "c", "a"]));
}

// P37: delayed binding with allowed topologies: those, whatever nodes there are, the node's first. S0-29.
#[test]
fn allowed_places_are_all_that_is_asked_for() {
    let cache = zones(&["c", "a", "b"]);
    let allowed = json!([allow(&[(ZONE, &["z", "b"])]), allow(&[(ZONE, &["b"])])]);
    assert_eq!(ask("x", Some("n2"), allowed.clone(), &cache, &local(|_| {})), found(&["b", "z"], &["b", "z"]));
    assert_eq!(ask("x", Some("n0"), allowed, &cache, &local(|_| {})), Err("NodeNotAllowed"));
}

// P38, P41: immediate binding with allowed topologies: every combination within a term, spread by the claim's name.
#[test]
fn allowed_places_are_multiplied_out_and_sorted() {
    let allowed = json!([allow(&[(ZONE, &["b", "a"]), (RACK, &["2", "1"])]), allow(&[(ZONE, &["c"])])]);
    // Fewer labels first; then by key and value: rack comes before zone.
    let sorted = ["c", "1/a", "1/b", "2/a", "2/b"];
    let preferred = ["2/a", "2/b", "c", "1/a", "1/b"]; // my-claim over five places: the fourth.
    assert_eq!(ask("my-claim", None, allowed, &zones(&[]), &local(|_| {})), found(&sorted, &preferred));
}

// P39: immediate binding: every place of the cluster, spread by the claim's name.
#[test]
fn immediate_binding_spreads_over_the_cluster() {
    let cache = zones(&["a", "b", "c", "d"]);
    let over = |claim| ask(claim, None, json!([]), &cache, &local(|_| {})).unwrap().unwrap().1[0].clone();
    assert_eq!([over("testset-1"), over("testset-2"), over("data-web-1")], ["a", "b", "c"]);
    assert_eq!(ask("x", None, json!([]), &zones(&[]), &local(|_| {})), Err("NoTopology"));
}

// P40, and sidecars 2.7 step 6.
#[test]
fn no_place_is_asked_for_where_none_matters() {
    let cache = zones(&["a"]);
    let off = local(|settings| settings.immediate_topology = false);
    assert_eq!(ask("x", None, json!([]), &cache, &off), Ok(None));
    assert_eq!(ask("x", None, json!([allow(&[(ZONE, &["z"])])]), &cache, &off), found(&["z"], &["z"]));
    assert_eq!(ask("x", None, json!([allow(&[])]), &cache, &local(|_| {})), Ok(None));
    let gate_off = local(|settings| settings.topology = false);
    assert_eq!(ask("x", Some("n0"), json!([]), &cache, &gate_off), Ok(None));
    let unable = Local { capabilities: Local::PLAIN, ..local(|_| {}) };
    assert_eq!(ask("x", Some("n0"), json!([]), &cache, &unable), Ok(None));
}

// P42: what is missing on the selected node is said, and no other node is asked for.
#[test]
fn a_selected_node_must_be_known_and_labelled() {
    let plain = local(|_| {});
    let unlabelled = cluster(&[("n0", &[]), ("n1", &[(ZONE, "a")])], &[ZONE]);
    assert_eq!(ask("x", Some("n0"), json!([]), &unlabelled, &plain), Err("LabelsMissing"));
    assert_eq!(ask("x", Some("n1"), json!([]), &unlabelled, &plain), found(&["a"], &["a"]));
    let keyless = cluster(&[("n0", &[(ZONE, "a")])], &[]);
    assert_eq!(ask("x", Some("n0"), json!([]), &keyless, &plain), Err("NoTopologyKeys"));
    assert_eq!(ask("x", None, json!([]), &keyless, &plain), Err("NoTopology"));
    let mut nodeless = zones(&["a"]);
    let node = nodeless.nodes().next().unwrap().clone();
    nodeless.remove(&Object::Node(node));
    assert_eq!(ask("x", Some("n0"), json!([]), &nodeless, &plain), Err("NodeMissing"));
    assert_eq!(ask("x", Some("gone"), json!([]), &nodeless, &plain), Err("Reschedule"));
}

// P35 to P44: the vectors of sidecars 8.
#[test]
fn claims_are_spread_as_kubernetes_spreads_them() {
    for (claim, over) in [
        ("data-web-0", [1, 0, 1, 0]),
        ("data-web-1", [0, 1, 2, 1]),
        ("logs-web-1", [0, 1, 2, 1]),
        ("data-web-2", [1, 2, 3, 2]),
        ("vol-my-db-3", [0, 1, 2, 1]),
        ("a-7", [1, 0, 1, 3]),
        ("my-claim", [0, 0, 0, 3]),
        ("x-4294967295", [0, 2, 2, 2]),
        ("x-4294967296", [0, 2, 2, 2]),
    ] {
        assert_eq!([2, 3, 4, 5].map(|places| spread(claim, places)), over, "{claim}");
    }
    assert_eq!([spread("testset-1", 4), spread("testset-2", 4)], [0, 1]);
}

/// Two zones, and a claim of delayed binding for which node `n0` is selected.
pub(super) fn placed(change: impl FnOnce(&mut Settings)) -> World {
    let mut world = World::new().able().with(change);
    world.driver.places = [[(ZONE.to_string(), "a".to_string())].into()].into();
    world.node("n0", &[(ZONE, "a")]);
    world.node("n1", &[(ZONE, "b")]);
    let late = json!({ "volumeBindingMode": "WaitForFirstConsumer" });
    let selected = json!({ "metadata": { "annotations": { names::SELECTED_NODE: "n0" } } });
    world.class("fast", "d", late).with_claim("data", selected)
}

fn selected(world: &World) -> Value {
    world.claim("data")["metadata"]["annotations"][names::SELECTED_NODE].clone()
}

// P45, reliability 11; S0-31: the place the driver names is where the volume can be used.
#[test]
fn the_volumes_place_is_recorded() {
    let mut world = placed(|_| {});
    world.run();
    let affinity = &world.volume(&world.pv_name())["spec"]["nodeAffinity"];
    let expression = json!({ "key": ZONE, "operator": "In", "values": ["a"] });
    let terms = json!([{ "matchExpressions": [expression] }]);
    assert_eq!(*affinity, json!({ "required": { "nodeSelectorTerms": terms } }));
    for (places, topology) in [(Vec::new(), true), ([BTreeMap::new()].into(), true), (world.driver.places, false)] {
        let mut world = placed(|settings| settings.topology = topology);
        world.driver.places = places;
        world.run();
        assert!(world.volume(&world.pv_name())["spec"]["nodeAffinity"].is_null());
    }
}

// P43: a node that no driver is registered on is given back to the scheduler.
#[test]
fn a_node_without_drivers_is_given_back() {
    for intent in [Intent::InJournal, Intent::OnClaim, Intent::InMemory] {
        let mut world = placed(|settings| settings.intent = intent);
        world.delete(Kind::CSINode, "n0");
        world.run();
        assert_eq!(world.log, ["Reschedule(n/data)"]);
        assert!(selected(&world).is_null());
        assert_eq!(world.why_claim(), "AwaitingNode");
    }
}

// P44, reliability 14, 69: the node goes while an attempt may be under way; the next one says the same.
#[test]
fn a_lost_node_does_not_change_the_arguments() {
    let written = [Intent::OnClaim, Intent::InJournal].into_iter().flat_map(|intent| [(intent, false), (intent, true)]);
    for (intent, restart) in written.chain([(Intent::InMemory, false)]) {
        let mut world = placed(|settings| settings.intent = intent);
        world.lose_answer = Some(usize::from(intent != Intent::InMemory));
        world.run_for(1 + usize::from(intent != Intent::InMemory));
        let asked = world.request().clone();
        world.delete(Kind::CSINode, "n0");
        world.delete(Kind::Node, "n0");
        if restart {
            world.restart();
        }
        world.run();
        assert!(*world.request() == asked);
        assert_eq!(asked.accessibility_requirements.unwrap().preferred[0].segments[ZONE], "a");
        assert!(world.get(VOLUME, &world.pv_name()).is_some(), "{intent:?}: {:?}", world.log);
    }
}

// A requirement too long to be written down is made anew from the nodes there are.
#[test]
fn a_very_long_requirement_is_not_written_down() {
    let mut world = placed(|_| {});
    world.run_for(1);
    let claim = world.cache.claim(&api::ObjectKey::new("n", "data")).unwrap().clone();
    let record = claim.metadata.annotation(names::PROVISIONING_TERMS).unwrap();
    let mut terms = crate::intent::recorded(&claim, record).unwrap().terms;
    assert!(terms.request.topology.is_some());
    let long = |at: usize| [(ZONE.to_string(), format!("a-zone-with-a-long-name-{at}"))].into();
    terms.request.topology = Some(crate::Requirement { requisite: (0..1_000).map(long).collect(), first: 7 });
    let record = crate::intent::record(&claim, &terms);
    assert!(record.len() < 1_000);
    world.patch(CLAIM, "data", json!({ "metadata": { "annotations": { names::PROVISIONING_TERMS: record } } }));
    world.restart();
    world.run();
    assert_eq!(world.request().accessibility_requirements.clone().unwrap().requisite.len(), 2);
    assert_eq!(world.why_claim(), "VolumeMade");
}

// P46: no room where the node is: the node is given back, and the intent withdrawn.
#[test]
fn no_room_means_another_node() {
    for (intent, last) in [
        (Intent::InJournal, "DropIntent(n/data)"),
        (Intent::OnClaim, "Reschedule(n/data)"),
        (Intent::InMemory, "Reschedule(n/data)"),
    ] {
        let mut world = placed(|settings| settings.intent = intent);
        world.driver.mood = Mood::Refusing(Code::ResourceExhausted, "full".into());
        world.run();
        assert_eq!(world.log.last().unwrap(), last);
        assert_eq!(world.log.iter().filter(|line| line.starts_with("Reschedule")).count(), 1);
        assert!(world.entries().is_empty());
        assert!(selected(&world).is_null());
        assert_eq!(world.claim("data")["metadata"]["finalizers"], json!([names::PVC_PROTECTION]));
        world.driver.mood = Mood::Well;
        world.patch(CLAIM, "data", json!({ "metadata": { "annotations": { names::SELECTED_NODE: "n1" } } }));
        world.run();
        let asked = world.request().accessibility_requirements.clone().unwrap();
        assert_eq!(asked.preferred[0].segments[ZONE], "b");
        assert_eq!(world.why_claim(), "VolumeMade");
    }
}

// P46: without a selected node, or where places do not matter, there is nothing to give back.
#[test]
fn no_room_anywhere_is_retried() {
    let mut world = World::asked();
    world.driver.mood = Mood::Refusing(Code::ResourceExhausted, "full".into());
    assert!(!world.run_for(10));
    assert!(world.log.iter().all(|line| !line.starts_with("Reschedule")), "{:?}", world.log);
    assert_eq!(world.why_claim(), "BackOff");
}

// Every dependency a decision read wakes its key: a node that gets its label, and one that gets its driver.
#[test]
fn a_label_that_was_missing_wakes_the_claim() {
    let mut world = placed(|_| {});
    world.patch(Kind::Node, "n0", json!({ "metadata": { "labels": { ZONE: null } } }));
    world.run();
    assert_eq!(world.why_claim(), "LabelsMissing");
    world.patch(Kind::Node, "n0", json!({ "metadata": { "labels": { ZONE: "a" } } }));
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
}

// What was refused is not repeated under terms that no longer hold.
#[test]
fn a_refused_request_is_made_anew_when_things_have_changed() {
    let mut world = placed(|_| {});
    world.driver.mood = Mood::Refusing(Code::Internal, "no".into());
    world.run_for(2);
    world.node("n2", &[(ZONE, "c")]);
    world.driver.mood = Mood::Well;
    world.run();
    assert_eq!(world.log[2], "DropIntent(n/data)");
    assert_eq!(world.request().accessibility_requirements.clone().unwrap().requisite.len(), 3);
}
