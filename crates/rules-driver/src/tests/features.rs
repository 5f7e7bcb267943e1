//! What is offered, listed and told; directories; devices; one process for the controller and one for the node.

use super::*;
use crate::RecordKind;
use csi::{Capabilities, ControllerRpc, Method};

pub fn directory(name: &str) -> Call {
    as_directory(Call::CreateVolume(create_request(name, MIB, 0)))
}

/// The same call, for a directory.
pub fn as_directory(call: Call) -> Call {
    let Call::CreateVolume(mut request) = call else { panic!() };
    request.parameters = [("kind".to_string(), "directory".to_string())].into();
    Call::CreateVolume(request)
}

/// Snapshots, restored volumes, clones and groups, of a directory that is in use and beside an image.
pub fn directory_copies() -> Vec<Call> {
    let mut calls = snapshots::life();
    calls[0] = directory("v");
    for call in &mut calls[5..7] {
        *call = as_directory(call.clone());
    }
    calls
}

pub fn directory_life() -> Vec<Call> {
    let mut calls = life("v");
    calls[0] = directory("v");
    calls
}

fn as_device(call: Call, read_only: bool) -> Call {
    match call {
        Call::NodeStageVolume(r) => {
            Call::NodeStageVolume(v1::NodeStageVolumeRequest { volume_capability: Some(block()), ..r })
        }
        Call::NodePublishVolume(r) => Call::NodePublishVolume(v1::NodePublishVolumeRequest {
            volume_capability: Some(block()),
            readonly: read_only,
            ..r
        }),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_directory_is_shown_and_removed_with_all_in_it() {
    let mut driver = Driver::new();
    let before = driver.world.clone();
    driver.bring(&directory_life()[..4]);
    assert_eq!(driver.world.mounts[&target("p1")].source, "/state/directories/v");
    assert!(driver.world.images.is_empty() && driver.world.loops.is_empty());
    assert_eq!(driver.code(delete("v")), Code::FailedPrecondition);
    assert_eq!(driver.code(create("v")), Code::AlreadyExists, "an image is another thing");
    driver.bring(&directory_life()[4..]);
    driver.world.dirs.remove(STAGING);
    assert_eq!(driver.world, before);
    assert_eq!(driver.code(as_block_volume(directory("d"))), Code::InvalidArgument);
}

fn as_block_volume(call: Call) -> Call {
    let Call::CreateVolume(mut request) = call else { panic!() };
    request.volume_capabilities = vec![block()];
    Call::CreateVolume(request)
}

#[test]
fn a_device_is_published_as_a_file() {
    let mut driver = Driver::new();
    driver.bring(&[as_block_volume(create("v")), attach("v")]);
    let (on, at) = (as_device(stage("v"), false), |pod: &str, ro| as_device(publish("v", pod), ro));
    assert_eq!(driver.code(at("p1", false)), Code::FailedPrecondition, "not staged");
    driver.bring(&[on.clone(), on.clone(), at("p1", false), at("p1", false)]);
    assert!(driver.ops.is_empty());
    assert!(driver.world.filesystems().is_empty() && driver.world.places.contains(&target("p1")));
    for (call, code) in [
        // Reliability 76: the same target in another way.
        (at("p1", true), Code::AlreadyExists),
        (publish("v", "p1"), Code::FailedPrecondition),
        (at("p2", true), Code::FailedPrecondition),
        (stage("v"), Code::FailedPrecondition),
        (unstage("v", STAGING), Code::FailedPrecondition),
        (at("p2", false), Code::Ok),
        (on, Code::Ok),
        (unpublish("v", "p1"), Code::Ok),
        (unpublish("v", "p2"), Code::Ok),
        (at("p1", true), Code::Ok),
        (unpublish("v", "p1"), Code::Ok),
        (unstage("v", STAGING), Code::Ok),
        (unstage("v", STAGING), Code::Ok),
    ] {
        assert_eq!(driver.code(call.clone()), code, "{call:?}");
    }
    assert!(driver.world.places.is_empty() && driver.world.loops.is_empty());
    // A volume with a filesystem in use is not shown as a device.
    let mut driver = Driver::new();
    driver.bring(&[create("v"), attach("v"), stage("v")]);
    assert_eq!(driver.code(as_device(stage("v"), false)), Code::FailedPrecondition);
}

fn listed(driver: &mut Driver, max_entries: i32, token: &str) -> Result<(Vec<String>, String), Code> {
    let request = v1::ListVolumesRequest { max_entries, starting_token: token.into() };
    match driver.call(Call::ListVolumes(request)) {
        Ok(Response::ListVolumes(answer)) => {
            let ids = answer.entries.into_iter().map(|entry| entry.volume.unwrap().volume_id);
            Ok((ids.collect(), answer.next_token))
        }
        Ok(_) => panic!(),
        Err(status) => Err(status.code),
    }
}

// Reliability 80 and 3.1, ListVolumes.
#[test]
fn volumes_are_listed_page_by_page_without_gap_or_repetition() {
    let mut driver = Driver::new();
    let names: Vec<String> = (10..30).map(|n| format!("v{n}")).collect();
    driver.bring(&names.iter().map(|name| create(name)).collect::<Vec<_>>());
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let (page, next) = listed(&mut driver, 3, &token).unwrap();
        assert!(page.len() <= 3);
        found.extend(page);
        if next.is_empty() {
            break;
        }
        token = next;
        // The volume the token is named after goes, and another comes that was passed already.
        if found.len() == 6 {
            driver.bring(&[delete("v15"), create("v00")]);
        }
    }
    assert_eq!(found, names);
    for bad in ["invalid-token", "after:", "after:../x", "AFTER:v10", "v10", "\0"] {
        assert_eq!(listed(&mut driver, 0, bad), Err(Code::Aborted), "{bad:?}");
    }
    assert_eq!(listed(&mut driver, -1, ""), Err(Code::InvalidArgument));
    // One that was never acknowledged is not there; one whose deletion was not is.
    assert_eq!(driver.disturbed(create("w"), 0, Fault::Crash), None);
    assert_eq!(driver.disturbed(delete("v10"), 0, Fault::Crash), None);
    let all = listed(&mut driver, 0, "").unwrap().0;
    assert!(!all.contains(&"w".to_string()) && all.contains(&"v10".to_string()));
}

#[test]
fn one_volume_can_be_asked_for_and_says_where_it_is_attached() {
    let mut driver = Driver::new();
    driver.bring(&[create("v"), attach("v")]);
    let get = |id: &str| Call::ControllerGetVolume(v1::ControllerGetVolumeRequest { volume_id: id.into() });
    let Ok(Response::ControllerGetVolume(answer)) = driver.call(get("v")) else { panic!() };
    assert_eq!(answer.status.unwrap().published_node_ids, ["n1"]);
    let topology = &answer.volume.unwrap().accessible_topology[0];
    assert_eq!(topology.segments["topology.local.csi.longshore/node"], "n1");
    assert_eq!(driver.code(get("")), Code::InvalidArgument);
    assert_eq!(driver.code(get("unknown")), Code::NotFound);
}

#[test]
fn the_room_that_is_left_is_told_for_this_node_only() {
    let mut driver = Driver::new();
    driver.bring(&[Call::CreateVolume(create_request("v", 3 << 30, 0))]);
    let here = |node: &str| v1::Topology {
        segments: [("topology.local.csi.longshore/node".to_string(), node.to_string())].into(),
    };
    let mut ask = |accessible_topology: Option<v1::Topology>, capability: Option<VolumeCapability>| {
        let volume_capabilities = capability.into_iter().collect();
        let request = v1::GetCapacityRequest { accessible_topology, volume_capabilities, ..Default::default() };
        let Ok(Response::GetCapacity(answer)) = driver.call(Call::GetCapacity(request)) else { panic!() };
        answer.available_capacity
    };
    assert_eq!(ask(None, None), 1 << 30);
    assert_eq!(ask(Some(here("n1")), Some(writer())), 1 << 30);
    assert_eq!(ask(Some(here("n2")), None), 0);
    assert_eq!(ask(None, Some(mode(Mode::MultiNodeMultiWriter))), 0);

    // And a volume is made only where it is wanted.
    let mut wanted = create_request("w", 64 * MIB, 0);
    let topologies = |nodes: &[&str]| nodes.iter().map(|node| here(node)).collect();
    wanted.accessibility_requirements =
        Some(v1::TopologyRequirement { requisite: topologies(&["n2", "n3"]), preferred: vec![] });
    assert_eq!(driver.code(Call::CreateVolume(wanted.clone())), Code::ResourceExhausted);
    wanted.accessibility_requirements =
        Some(v1::TopologyRequirement { requisite: topologies(&["n2", "n1"]), preferred: vec![] });
    assert_eq!(driver.code(Call::CreateVolume(wanted)), Code::Ok);
}

#[test]
fn a_volume_that_lost_its_bytes_is_not_well() {
    let mut driver = Driver::new();
    driver.config.max_volumes_per_node = 0;
    driver.bring(&[create("v"), create("w"), create("x"), create("y")]);
    for id in ["v", "w", "x"] {
        driver.bring(&[attach(id), stage(id), unstage(id, STAGING)]);
    }
    let (v, w) = (driver.config.image_path("v"), driver.config.image_path("w"));
    driver.world.images.remove(&v);
    driver.world.images.get_mut(&w).unwrap().size = 1;
    // Not through the harness: its machine never loses anything.
    let mut ask = |call: Call| {
        let mut run = Run::new(call, NOW);
        loop {
            match run.step(&driver.config, &mut driver.facts) {
                Step::Answer(answer) => return answer,
                Step::Do(op) => match driver.world.perform(&op) {
                    Ok(reply) => {
                        run.did(&driver.config, &mut driver.facts, op, &reply);
                    }
                    Err(why) => assert_eq!(run.failed(&op, &why, Trouble::Other), None),
                },
            }
        }
    };
    let Ok(Response::ControllerListVolumeHealth(all)) = ask(Call::ControllerListVolumeHealth(Default::default()))
    else {
        panic!()
    };
    let told: Vec<_> = all
        .entries
        .iter()
        .map(|one| (one.volume_id.as_str(), one.health_statuses.first().map(|entry| entry.reason.as_str())))
        .collect();
    assert_eq!(told, [("v", Some("Missing")), ("w", Some("TooSmall")), ("x", None), ("y", None)]);
    let get = v1::ControllerGetVolumeHealthRequest { volume_id: "w".into(), ..Default::default() };
    let Ok(Response::ControllerGetVolumeHealth(one)) = ask(Call::ControllerGetVolumeHealth(get)) else { panic!() };
    assert_eq!(one.volume_health.unwrap().health_statuses.len(), 1);
    let Ok(Response::NodeGetStorageHealth(disk)) = ask(Call::NodeGetStorageHealth(Default::default())) else {
        panic!()
    };
    assert!(disk.backend_health.is_empty());
}

macro_rules! empty_calls {
    ($($service:ident.$name:ident($request:ty) -> $response:ty { $($columns:tt)* })*) => {
        /// Every method with an empty request.
        fn empty_calls() -> Vec<Call> {
            vec![$(Call::$name(Default::default())),*]
        }
    };
}
csi::for_each_method!(empty_calls);

// Without a feature the driver reports none of its capabilities and answers none of their methods.
#[test]
fn what_is_left_out_is_neither_told_nor_answered() {
    let answered = |config: &Config| -> BTreeSet<&str> {
        let mut driver = Driver::with(config.clone());
        let calls = empty_calls().into_iter();
        let there = calls.filter(|call| driver.code(call.clone()) != Code::Unimplemented);
        there.map(|call| call.method().name()).collect()
    };
    let reported = |config: &Config| -> Capabilities {
        let mut driver = Driver::with(config.clone());
        let answers = empty_calls().into_iter().map(|call| match driver.call(call) {
            Ok(Response::GetPluginCapabilities(answer)) => (&answer).into(),
            Ok(Response::ControllerGetCapabilities(answer)) => (&answer).into(),
            Ok(Response::GroupControllerGetCapabilities(answer)) => (&answer).into(),
            Ok(Response::NodeGetCapabilities(answer)) => (&answer).into(),
            _ => Capabilities::NONE,
        });
        answers.fold(Capabilities::NONE, Capabilities::union)
    };
    let (all, everything) = (answered(&config()), reported(&config()));
    assert_eq!(all.len(), crate::METHODS.len());
    for feature in Feature::ALL {
        let mut fewer: Capabilities = feature.capabilities().iter().copied().collect();
        if matches!(feature, Feature::Publish | Feature::List) {
            // It takes both to list the nodes a volume is published to.
            fewer.extend([ControllerRpc::ListVolumesPublishedNodes]);
        }
        let config = without(&[*feature]);
        assert_eq!(reported(&config), everything.difference(fewer), "{}", feature.name());
        let missing = all.difference(&answered(&config)).copied().collect::<Vec<_>>();
        let needy = Method::CSI.iter().filter(|method| method.capability().is_some_and(|one| fewer.has(one)));
        let mut expected: Vec<_> = needy.map(|method| method.name()).collect();
        expected.sort_unstable();
        assert_eq!(missing, expected, "{}", feature.name());
        let has_methods = !matches!(feature, Feature::Clone | Feature::Topology | Feature::Ephemeral);
        assert_eq!(!missing.is_empty(), has_methods, "{}", feature.name());
    }
    let of = |services| answered(&Config { services, ..config() });
    let (controller, node) = (of(Services::Controller), of(Services::Node));
    assert_eq!(controller.union(&node).count(), all.len());
    let both: Vec<_> = controller.intersection(&node).copied().collect();
    assert_eq!(both, ["GetPluginCapabilities", "GetPluginInfo", "Probe"]);
}

// Two processes share the state: each sees what the other wrote, and keeps what it has not written yet.
#[test]
fn a_controller_and_a_node_in_two_processes_agree() {
    let mut controller = Driver::with(Config { services: Services::Controller, ..config() });
    let mut node = Driver::with(Config { services: Services::Node, ..config() });
    for call in life("v") {
        let (at, other) = match call.method().name().starts_with("Node") {
            true => (&mut node, &mut controller),
            false => (&mut controller, &mut node),
        };
        at.restart();
        assert_eq!(at.code(call.clone()), Code::Ok, "{call:?}");
        other.world = at.world.clone();
    }
    let mut driver = Driver::new();
    assert_eq!(driver.disturbed(create("v"), 0, Fault::Fails), None);
    driver.facts.reload(RecordKind::Volume, "v.json", None).unwrap();
    assert_eq!(driver.facts.volumes().len(), 1, "a promise that is about to be written stands");
    driver.bring(&[create("v")]);
    let bytes = driver.world.files.values().next().unwrap().clone();
    driver.facts.reload(RecordKind::Volume, "v.json", None).unwrap();
    assert!(driver.facts.volumes().is_empty());
    assert_eq!(driver.facts.promised(), 0);
    driver.facts.reload(RecordKind::Volume, "v.json", Some(&bytes)).unwrap();
    assert_eq!((driver.facts.volumes().len(), driver.facts.promised()), (1, 64 << 20));
    assert!(driver.facts.reload(RecordKind::Volume, "v.json", Some(b"half")).is_err());
}

// Reliability 81: what only reads may share.
#[test]
fn many_volumes_can_be_made_from_one_snapshot_at_once() {
    let (a, b) = (crate::locks(&snapshots::restore("a", "s")), crate::locks(&snapshots::restore("b", "s")));
    let common = |a: &[csi::Lock], b: &[csi::Lock]| {
        a.iter().any(|one| b.iter().any(|other| one.key() == other.key() && !(one.shared && other.shared)))
    };
    assert!(!common(&a, &b));
    assert!(common(&a, &crate::locks(&snapshots::drop_snapshot("s"))));
    assert!(common(&crate::locks(&snapshots::copy("a", "v")), &crate::locks(&stage("v"))));
    assert!(common(&crate::locks(&snapshots::take_group(&["v", "w"], "g")), &crate::locks(&delete("w"))));
}

// Reliability 77: what is a record, and so on disk before an answer, is known by its directory.
#[test]
fn only_files_of_the_record_directories_are_records() {
    let config = super::config();
    let writes = |path: &str| config.is_on_record(&Op::WriteFile { path: path.into(), bytes: vec![] });
    for path in [config.record_path("v"), config.group_record_path("g"), "/state/snapshots/s.json".into()] {
        assert!(writes(&path) && config.is_on_record(&Op::RemoveFile { path: path.clone() }), "{path}");
        assert!(!config.is_on_record(&Op::MakeDir { path }), "a directory is no record");
    }
    assert!(!writes(&config.image_path("v")) && !writes("/state/volumes-of-another/v.json"));
    let mut driver = Driver::new();
    driver.bring(&[create("v")]);
    let there = vec!["v.json".into(), "w.json".into()];
    assert!(driver.facts.doubtful(RecordKind::Volume, there).iter().eq(["v.json", "w.json"]));
    assert!(driver.facts.doubtful(RecordKind::Volume, vec![]).iter().eq(["v.json"]), "gone is to be noticed");
}
