//! Directories of pods of which nothing else is left: KL-99.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use api::Kind;
use control::{Decision, EventType, Narrate as _, Rules as _};
use prove_lab::Fault;
use serde_json::json;

use super::world::{ROOT, World};
use crate::{Key, Node, PodDir, is_listed};

const GONE: &str = "0a1b2c3d-0000-4000-8000-00000000000a";
const OTHER: &str = "0a1b2c3d-0000-4000-8000-00000000000b";

fn holding(paths: &[&str]) -> PodDir {
    // A path that ends with a slash is a directory.
    paths.iter().map(|path| (path.trim_end_matches('/').to_string(), path.ends_with('/'))).collect()
}

/// What is in a directory, on the pretend machine and in what its owner was told.
fn find(world: &mut World, uid: &str, paths: &[&str]) {
    let dir = format!("{ROOT}/pods/{uid}");
    world.machine.dirs.insert(dir.clone());
    for (path, is_dir) in holding(paths) {
        let path = format!("{dir}/{path}");
        match is_dir {
            true => drop(world.machine.dirs.insert(path)),
            false => drop(world.machine.files.insert(path, Vec::new())),
        }
    }
    world.update_local(|local| {
        local.pod_dirs.insert(uid.into(), holding(paths));
    });
}

fn left(world: &World, uid: &str) -> Vec<String> {
    let dir = format!("{ROOT}/pods/{uid}");
    let all = world.machine.dirs.iter().chain(world.machine.files.keys());
    all.filter(|path| path.starts_with(&dir)).cloned().collect()
}

const VOLUME: [&str; 3] = ["volumes/", "volumes/kubernetes.io~csi/", "volumes/kubernetes.io~csi/pv9/"];

// KL-99: the API is asked first; then the contents of its own volumes go, and of all else only what is empty.
#[test]
fn kl_99_the_directory_of_a_pod_that_is_gone_is_swept() {
    let mut world = World::new();
    let own = ["volumes/kubernetes.io~empty-dir/", "volume-subpaths/", "volume-subpaths/v/", "volume-subpaths/v/0"];
    find(&mut world, GONE, &[&VOLUME[..], &own].concat());
    world.machine.files.insert(format!("{ROOT}/pods/{GONE}/volumes/kubernetes.io~empty-dir/cache/big"), Vec::new());
    let did = world.settle();
    assert_eq!(did.first().map(String::as_str), Some("ListPods"), "{did:?}");
    assert_eq!(did.iter().filter(|one| *one == "RemoveScratch").count(), 1, "{did:?}");
    assert_eq!(left(&world, GONE), Vec::<String>::new());
    assert!(world.local().pod_dirs.is_empty() && world.local().gone.is_empty());
    assert!(Node::keys(&world.cache, world.local()).iter().all(|key| !matches!(key, Key::Orphans | Key::Orphan(_))));
}

// KL-99: a pod that exists is left alone, and so is one with a process or a record.
#[test]
fn kl_99_a_pod_that_exists_is_left_alone() {
    for remembered in ["object", "process", "record"] {
        let mut world = World::new();
        find(&mut world, GONE, &VOLUME);
        assert!(Node::keys(&world.cache, world.local()).contains(&Key::Orphans));
        if remembered == "object" {
            let metadata = json!({ "namespace": "ns", "name": "x", "uid": GONE });
            world.cache.set(prove_lab::object(Kind::Pod, json!({ "metadata": metadata, "spec": { "nodeName": "n" } })));
        }
        world.update_local(|local| match remembered {
            "object" => {}
            "process" => {
                let name = format!("{GONE}_ns_x_c_0");
                local.processes.insert(name, control::host::ProcessState::Running { since_millis: 1 });
            }
            _record => {
                let mut record = crate::Record::of("pv9", super::world::DRIVER, "h9", "n");
                record.publishes.insert(GONE.into(), crate::Publish::default());
                local.records.insert(record.unique_name(), record);
            }
        });
        let keys = Node::keys(&world.cache, world.local());
        assert!(!keys.contains(&Key::Orphans) && !keys.contains(&Key::Orphan(GONE.into())), "{remembered}");
    }
}

// KL-99: without an answer of the API nothing is known to be gone, and a pod of which it says that it exists is not.
#[test]
fn kl_99_nothing_goes_without_the_word_of_the_api() {
    let mut world = World::new();
    find(&mut world, GONE, &VOLUME);
    world.faults.insert("ListPods", Fault::RequestLost);
    world.step(&Key::Orphans);
    assert!(world.local().gone.is_empty() && world.decide(&Key::Orphan(GONE.into())).why().settled);
    let listed = crate::Action::ListPods { uids: [GONE.into(), OTHER.into()].into() };
    let pod = prove_lab::object(Kind::Pod, json!({ "metadata": { "namespace": "ns", "name": "x", "uid": GONE } }));
    let got = control::Outcome::Done(control::Reply::Objects(Vec::from([pod])));
    let memory = Node::remember(world.now, crate::Memory::default(), &listed, &got);
    let mut local = world.local().clone();
    Node::learn(&mut local, &listed, &got, &world.cache);
    assert_eq!(local.gone.iter().collect::<Vec<_>>(), [OTHER], "only the one the API has not");
    let decided = Node::decide(world.now, &Node::view(&Key::Orphans, &world.cache, &local), &memory);
    assert!(matches!(&decided, Decision::Wait(until, why) if *until > world.now && why.settled), "{decided:?}");
}

// KL-99: nothing is touched while something is mounted in it that is not a volume in memory; it is told, with a count.
#[test]
fn kl_99_a_mount_in_it_keeps_all_of_it() {
    let mut world = World::new();
    let target = format!("{ROOT}/pods/{GONE}/volumes/kubernetes.io~csi/pv9/mount");
    find(&mut world, GONE, &[&VOLUME[..], &["volumes/kubernetes.io~empty-dir/"]].concat());
    find(&mut world, OTHER, &VOLUME);
    world.update_local(|local| {
        local.mounts.insert(target.clone());
    });
    world.settle();
    assert_eq!(left(&world, GONE).len(), 5, "{:?}", left(&world, GONE));
    assert_eq!(left(&world, OTHER), Vec::<String>::new(), "the other one goes");
    let view = Node::view(&Key::Orphans, &world.cache, world.local());
    let decided = Node::decide(world.now, &view, &crate::Memory::default());
    let why = decided.why();
    assert!(why.text.contains("1 directory") && why.text.contains(&target), "{why}");
    assert_eq!(Node::rest_event(&Key::Orphans, why), Some((EventType::Warning, "OrphanedPods")));
    let targets = Node::event_targets(&Key::Orphans, &world.cache, world.local());
    assert_eq!(targets, [api::ObjectRef::cluster(Kind::Node, "n")]);
    world.update_local(|local| {
        local.mounts.remove(&target);
    });
    world.settle();
    assert_eq!(left(&world, GONE), Vec::<String>::new(), "it goes once nothing is mounted in it");
}

// KL-99: volumes in memory are taken down first.
#[test]
fn kl_99_volumes_in_memory_go_with_their_pod() {
    let mut world = World::new();
    let secret = format!("{ROOT}/pods/{GONE}/volumes/kubernetes.io~secret/s");
    find(&mut world, GONE, &["volumes/", "volumes/kubernetes.io~secret/"]);
    world.machine.memory.insert(secret.clone());
    world.update_local(|local| {
        local.mounts.insert(secret.clone());
    });
    assert_eq!(world.settle(), ["ListPods", "UnmountMemory", "RemoveScratch", "Sweep", "Sweep"]);
}

// KL-99: a plain file among the volumes blocks, and so do a record that cannot be read and what rmdir refuses.
#[test]
fn kl_99_what_nobody_can_account_for_stays() {
    let file = "volumes/kubernetes.io~nfs/share/data";
    let dirs = ["volumes/", "volumes/kubernetes.io~nfs/", "volumes/kubernetes.io~nfs/share/"];
    let mut world = World::new();
    find(&mut world, GONE, &[&dirs[..], &[file]].concat());
    world.settle();
    assert_eq!(left(&world, GONE).len(), 5);
    assert!(world.why(&Key::Orphan(GONE.into())).text.contains(file));

    let mut world = World::new();
    find(&mut world, GONE, &VOLUME);
    world.update_local(|local| {
        local.unreadable.insert("/r/torn".into());
    });
    world.settle();
    assert_eq!(left(&world, GONE).len(), 4, "a record that cannot be read may be about it");

    let mut world = World::new();
    find(&mut world, GONE, &VOLUME);
    world.machine.files.insert(format!("{ROOT}/pods/{GONE}/volumes/kubernetes.io~csi/pv9/mount/x"), Vec::new());
    world.step(&Key::Orphans);
    assert_eq!(world.step(&Key::Orphan(GONE.into())), Some("Sweep"));
    assert!(matches!(world.decide(&Key::Orphan(GONE.into())), Decision::Wait(..)), "refused, and tried again later");
    assert_eq!(left(&world, GONE).len(), 5);
}

// KL-99: what a kubelet kept beside the volumes goes whole; what has no uid for a name is nobody's to remove.
#[test]
fn kl_99_what_else_a_kubelet_left_goes_too() {
    let mut world = World::new();
    let kubelet = ["containers/", "containers/c/", "containers/c/12ab", "plugins/", "etc-hosts", "volumes/"];
    find(&mut world, GONE, &kubelet);
    find(&mut world, "backup", &["volumes/"]);
    let did = world.settle();
    assert_eq!(did, ["ListPods", "RemoveScratch", "SweepFile", "RemoveScratch", "Sweep", "Sweep"]);
    assert_eq!(left(&world, GONE), Vec::<String>::new());
    assert_eq!(left(&world, "backup").len(), 2);
    assert!(is_listed("volumes/kubernetes.io~csi") && !is_listed("volumes/kubernetes.io~empty-dir"));
}

// KL-99: what has no uid of a pod for a name is somebody else's.
#[test]
fn kl_99_only_what_is_called_by_a_uid_is_a_pods() {
    let hash = "0a1b2c3d".repeat(4);
    for (name, is_pods) in [
        (GONE, true),
        (hash.as_str(), true),
        (&hash[..31], false),
        (&GONE[..35], false),
        ("", false),
        ("abc", false),
        ("backup", false),
        ("gggggggggggggggggggggggggggggggg", false),
        ("0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d0a1b", false),
        ("0a1b2c3d0-000-4000-8000-00000000000a", false),
        ("0a1b2c3d-0000-4000-8000-00000000000g", false),
    ] {
        let world = World::bare((super::world::DRIVER, super::world::HANDLE));
        let found: Vec<String> = crate::unknown_pods([name.into()].into(), &world.cache, world.local()).collect();
        assert_eq!(found == [name], is_pods, "{name}");
    }
}

// KL-99: files go that a kubelet keeps beside the volumes, and empty targets of parts of volumes; no other file does.
#[test]
fn kl_99_each_thing_goes_in_its_own_way_or_not_at_all() {
    use crate::orphans::Removal::{Empty, File, Target, Whole};
    let holds = holding(&[
        "containers/",
        "containers/c",
        "etc-hosts",
        "note",
        "volume-subpaths/",
        "volume-subpaths/v",
        "volumes/",
        "volumes/kubernetes.io~empty-dir/",
        "volumes/kubernetes.io~nfs/",
        "volumes/kubernetes.io~nfs/data",
    ]);
    let removals = crate::orphans::removals(&holds);
    let removals: Vec<_> = removals.iter().map(|(path, how)| (path.as_str(), *how)).collect();
    assert_eq!(
        removals,
        [
            ("volume-subpaths/v", Target),
            ("volumes/kubernetes.io~empty-dir", Whole),
            ("volumes/kubernetes.io~nfs", Empty),
            ("containers", Whole),
            ("etc-hosts", File),
            ("volume-subpaths", Empty),
            ("volumes", Empty),
        ]
    );
}
