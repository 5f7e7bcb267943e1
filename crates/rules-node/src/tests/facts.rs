//! Each fact of a volume and of what a pod has of it, by what makes it true and what almost does.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use api::{Object, Value, names};
use control::Rules as _;
use csi::NodeRpc;
use csi::v1::volume_capability::AccessType;
use serde_json::json;

use super::plain::{
    RUNS, cache, claim, container, local, pod, pod_of, pod_view, process, publish, users, volume, volume_view,
};
use super::world::{World, unique};
use crate::{
    Action, DriverFacts, Key, Local, ManagedVolumes, Node, PodVolumeView, VolumeSpec, build, inline, managed_volumes,
    published_volumes,
};

fn mounts(volume: &str) -> Value {
    json!({ "volumeMounts": [{ "name": volume, "mountPath": "/v" }] })
}

#[test]
fn kl_31_a_claim_is_bound_if_claim_and_volume_both_say_so() {
    let of = |objects: Vec<Object>| {
        let found = build::volume_of_claim("ns", "data", &cache(objects));
        found.map(|volume| volume.metadata.name.clone())
    };
    let bound = || claim(json!({}));
    assert_eq!(of(vec![bound(), volume(json!({}))]), Ok("pv".into()));
    for (objects, said) in [
        (vec![volume(json!({}))], "claim data does not exist"),
        (vec![claim(json!({ "spec": { "volumeName": "" } }))], "claim data is not bound to a volume yet"),
        (vec![bound()], "volume pv of claim data does not exist"),
        (vec![bound(), volume(json!({ "spec": { "claimRef": null } }))], "volume pv is not bound to claim data"),
        // Of an earlier claim of the same name.
        (
            vec![bound(), volume(json!({ "spec": { "claimRef": { "uid": "earlier" } } }))],
            "volume pv is not bound to claim data",
        ),
    ] {
        assert_eq!(of(objects), Err(said.into()));
    }
}

/// Volume `pv` and the claim that is made from the template of a volume of pod `a`, owned by the pod of this uid.
fn made(volume_name: &str, owner: &str) -> Vec<Object> {
    let name = alloc::format!("a-{volume_name}");
    let owner = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "a", "uid": owner, "controller": true }]);
    vec![
        claim(json!({ "metadata": { "name": name, "ownerReferences": owner } })),
        volume(json!({ "spec": { "claimRef": { "name": name } } })),
    ]
}

fn template(name: &str) -> Value {
    json!({ "name": name, "ephemeral": { "volumeClaimTemplate": { "spec": {} } } })
}

#[test]
fn kl_31_a_volume_from_a_template_is_for_the_pod_it_was_made_for() {
    let pod = || pod(json!({ "spec": { "volumes": [template("v")] } }));
    for (objects, wanted_by, said) in [
        (made("v", "u"), vec!["u"], "volume pv is not mounted yet"),
        (made("v", "of-an-earlier-pod"), vec![], "claim a-v is there already and was not made for pod a"),
        (vec![], vec![], "claim a-v does not exist"),
    ] {
        let cache = cache(objects.into_iter().chain([pod()]));
        assert_eq!(users(&volume_view("d", "h", &cache, &local())), wanted_by, "{said}");
        assert_eq!(pod_view(&cache, &local()).volumes["v"], PodVolumeView::Waiting(said.into()));
    }
}

#[test]
fn kl_30_a_template_that_no_container_uses_is_not_mounted_beside_one_that_is_used() {
    let pod = pod(json!({ "spec": { "volumes": [template("v"), template("w")] } }));
    let cache = cache(made("w", "u").into_iter().chain([pod]));
    assert_eq!(users(&volume_view("d", "h", &cache, &local())), [""; 0]);
}

/// A handle of the form of those that pods' own volumes have.
fn of_pod() -> String {
    alloc::format!("csi-{}", "0a".repeat(32))
}

#[test]
fn kl_103_a_handle_tells_a_pods_own_volume() {
    assert!(inline::is_handle(&of_pod()));
    assert!(inline::is_handle(&names::inline_volume_handle("u", "v")));
    let short = &of_pod()[..of_pod().len() - 1];
    for other in ["", "h", "csi-", "csi-0a", short, &of_pod()[4..], &of_pod().replace("0a", "0g")] {
        assert!(!inline::is_handle(other), "{other}");
    }
}

#[test]
fn kl_103_a_volume_is_a_pods_own_by_its_handle_unless_an_object_has_that() {
    for (handle, known, ephemeral) in
        [(of_pod(), false, true), (of_pod(), true, false), ("h".into(), false, false), ("h".into(), true, false)]
    {
        let object = volume(json!({ "spec": { "csi": { "volumeHandle": handle } } }));
        let cache = cache(known.then_some(object));
        assert_eq!(volume_view("d", &handle, &cache, &local()).ephemeral, ephemeral, "{handle} {known}");
    }
}

#[test]
fn kl_103_each_of_a_pods_own_volumes_is_found_by_its_driver_and_handle() {
    let csi = |name: &str, driver: &str| json!({ "name": name, "csi": { "driver": driver } });
    let all = ["v", "w", "x"].map(|name| json!({ "name": name, "mountPath": name }));
    let pod = pod(json!({ "spec": { "volumes": [csi("v", "d"), csi("w", "d"), csi("x", "other")],
        "containers": [container("c", json!({ "volumeMounts": all }))] } }));
    let cache = cache([pod]);
    let find = |driver: &str, name: &str| {
        let found = inline::find(driver, &names::inline_volume_handle("u", name), &cache, &local());
        found.map(|(_, name)| name)
    };
    for (driver, name) in [("d", "v"), ("d", "w"), ("other", "x")] {
        assert_eq!(find(driver, name).as_deref(), Some(name));
    }
    assert_eq!((find("other", "w"), find("d", "x"), find("d", "y")), (None, None, None));
}

// KL-71, KL-103: what is published read-only nobody writes to, and a use that says so itself does not either.
#[test]
fn kl_71_a_volume_is_read_only_where_its_publish_or_its_use_is() {
    for (published, used) in [(false, false), (false, true), (true, false), (true, true)] {
        let wanted = |target: String| PodVolumeView::Ready { path: target, read_only: published || used };
        let own = pod(json!({ "spec": { "volumes": [{ "name": "v", "csi": { "driver": "d", "readOnly": used } }] } }));
        let mut here = local();
        publish(&mut here, "v", &names::inline_volume_handle("u", "v"), "u", published);
        let path = "/r/pods/u/volumes/kubernetes.io~csi/v/mount";
        assert_eq!(pod_view(&cache([own]), &here).volumes["v"], wanted(path.into()), "own {published} {used}");

        let uses = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "data", "readOnly": used } }]);
        let claiming = cache([pod(json!({ "spec": { "volumes": uses } })), claim(json!({})), volume(json!({}))]);
        let mut here = local();
        publish(&mut here, "pv", "h", "u", published);
        let path = "/r/pods/u/volumes/kubernetes.io~csi/pv/mount";
        assert_eq!(pod_view(&claiming, &here).volumes["v"], wanted(path.into()), "claim {published} {used}");
    }
}

// KL-82: what counts is how the volume was published, which the record says also after an upgrade.
#[test]
fn kl_82_what_was_published_read_only_is_given_to_no_group() {
    let grouped = pod(json!({ "spec": { "securityContext": { "fsGroup": 2000 } } }));
    let cache = cache([grouped, claim(json!({})), volume(json!({}))]);
    for read_only in [false, true] {
        let mut here = local();
        publish(&mut here, "pv", "h", "u", read_only);
        let change = volume_view("d", "h", &cache, &here).users["u"].group;
        assert_eq!(change.map(|change| change.group), (!read_only).then_some(2000));
        let said = "the files of volume pv are not given to group 2000 yet";
        let wanted = match read_only {
            true => {
                let path = "/r/pods/u/volumes/kubernetes.io~csi/pv/mount".into();
                PodVolumeView::Ready { path, read_only: true }
            }
            false => PodVolumeView::Waiting(said.into()),
        };
        assert_eq!(pod_view(&cache, &here).volumes["v"], wanted);
    }
}

// EX-15: a pod that runs keeps its volume while that grows; one that is to start waits, whoever else runs.
#[test]
fn ex_15_only_a_pod_that_has_not_started_waits_for_the_growth() {
    let growing = json!({ "capacity": { "storage": "1Gi" }, "allocatedResources": { "storage": "2Gi" },
        "allocatedResourceStatuses": { "storage": names::NODE_RESIZE_PENDING } });
    let grown = volume(json!({ "spec": { "capacity": { "storage": "2Gi" } } }));
    let cache = cache([pod(json!({})), claim(json!({ "status": growing })), grown]);
    for (running, waits) in [(None, true), (Some("other_ns_b_c_0"), true), (Some("u_ns_a_c_0"), false)] {
        let mut here = local();
        publish(&mut here, "pv", "h", "u", false);
        here.processes.extend(running.map(|name| (name.into(), RUNS)));
        let said = PodVolumeView::Waiting("the filesystem of volume pv is being grown".into());
        assert_eq!(pod_view(&cache, &here).volumes["v"] == said, waits, "{running:?}");
    }
}

#[test]
fn a_volume_in_memory_has_the_least_of_the_limits_that_say_something() {
    let (mi, limit) = (1 << 20, |limit: &str| json!({ "resources": { "limits": { "memory": limit } } }));
    for (own, of_container, bytes) in [
        (None, None, None),
        (Some("0"), None, None),
        (Some("1Mi"), None, Some(mi)),
        (None, Some("2Mi"), Some(2 * mi)),
        (Some("0"), Some("2Mi"), Some(2 * mi)),
        (Some("1Mi"), Some("2Mi"), Some(mi)),
        (Some("3Mi"), Some("2Mi"), Some(2 * mi)),
    ] {
        let mut one = container("c", mounts("v"));
        super::plain::merge(&mut one, &of_container.map_or(json!({}), limit));
        let empty = json!({ "name": "v", "emptyDir": { "medium": "Memory", "sizeLimit": own } });
        let cache = cache([pod(json!({ "spec": { "volumes": [empty], "containers": [one] } }))]);
        match &pod_view(&cache, &local()).volumes["v"] {
            PodVolumeView::Own(found) => {
                assert_eq!(found.memory.as_ref().unwrap().bytes, bytes, "{own:?} {of_container:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn kl_70_a_driver_says_which_ways_of_asking_it_takes() {
    let driver = |modes: &[&str]| {
        let body = json!({ "metadata": { "name": "d" }, "spec": { "volumeLifecycleModes": modes } });
        serde_json::from_value(body).unwrap()
    };
    for (modes, persistent, ephemeral) in [
        (&[] as &[&str], true, false),
        (&["Persistent"], true, false),
        (&["Ephemeral"], false, true),
        (&["Persistent", "Ephemeral"], true, true),
    ] {
        for (of_pod, taken) in [(false, persistent), (true, ephemeral)] {
            let asked = VolumeSpec { ephemeral: of_pod, ..VolumeSpec::default() }.by(Some(&driver(modes)));
            assert_eq!(asked.refused.is_none(), taken, "{modes:?} {of_pod}");
        }
    }
    assert_eq!(VolumeSpec::default().by(None).refused, None, "claims need no CSIDriver object");
}

#[test]
fn kl_71_the_filesystem_of_a_pods_own_volume_is_of_the_type_it_asks_for() {
    let pod = pod_of(json!({ "spec": { "volumes": [{ "name": "v", "csi": { "driver": "d", "fsType": "xfs" } }] } }));
    let source = &pod.spec.volumes[0];
    let spec = VolumeSpec::inline(&pod, source, source.csi.as_ref().unwrap(), None);
    let Some(AccessType::Mount(mount)) = spec.capability.to_csi().access_type else { panic!("a mount") };
    assert_eq!(mount.fs_type, "xfs");
}

#[test]
fn kl_104_only_pods_of_this_node_that_have_not_ended_want_volumes() {
    for (more, wanted) in [
        (json!({}), Some(1)),
        (json!({ "spec": { "nodeName": "other" } }), None),
        (json!({ "status": { "phase": "Succeeded" } }), None),
        (json!({ "status": { "phase": "Running" } }), Some(1)),
    ] {
        let cache = cache([pod(more.clone()), claim(json!({})), volume(json!({}))]);
        let counted = managed_volumes(&cache, &local());
        let expected = wanted.map(|wanted| ManagedVolumes { wanted, published: 0 });
        assert_eq!(counted.get("d").copied(), expected, "{more}");
    }
}

#[test]
fn kl_104_a_volume_is_told_of_by_what_its_pod_calls_it() {
    let both = json!([{ "name": "v", "mountPath": "/v" }, { "name": "w", "mountPath": "/w" }]);
    let containers = json!([container("c", json!({ "volumeMounts": both }))]);
    let claims = |name: &str| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } });
    let named = json!({ "name": "w", "persistentVolumeClaim": { "claimName": "data" } });
    let objects = [claim(json!({})), volume(json!({}))];
    for (volumes, objects) in [
        (json!([template("v"), template("w")]), made("w", "u")),
        (json!([{ "name": "v", "emptyDir": {} }, template("w")]), made("w", "u")),
        (json!([claims("v"), named]), objects.to_vec()),
    ] {
        let pod = pod(json!({ "spec": { "volumes": volumes, "containers": containers } }));
        let mut here = local();
        here.drivers.insert("d".into(), DriverFacts::new([NodeRpc::GetVolumeStats]));
        publish(&mut here, "pv", "h", "u", false);
        let told = published_volumes(&cache(objects.into_iter().chain([pod])), &here);
        let names: Vec<&str> = told.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["w"], "{volumes}");
    }
}

// KL-34: what goes of itself is a published mount that was still there; staging is simply done again.
#[test]
fn kl_34_only_a_published_mount_vanishes() {
    let (target, staging) = ("/r/pods/u/volumes/kubernetes.io~csi/pv/mount", "/r/staging");
    let gone = |path: &str, change: fn(&mut Local)| {
        let mut here = local();
        publish(&mut here, "pv", "h", "u", false);
        here.mounts.insert(staging.into());
        let before: BTreeSet<String> = [path.to_string()].into();
        change(&mut here);
        here.remounted(&before, &BTreeSet::new());
        here.vanished.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(gone(target, |_| {}), [target]);
    assert_eq!(gone(staging, |_| {}), [""; 0]);
    // Its driver unpublished it a moment ago, as it was told, and the record does not say so yet.
    assert_eq!(gone(target, |local| local.mounts.clear()), [""; 0]);
}

// KL-99: what is told of the directories of pods that are gone changes with each that goes.
#[test]
fn kl_99_sweeping_a_pods_directory_is_news_of_all_of_them() {
    let learned = |path: &str| {
        let mut here = local();
        here.pod_dirs.insert("gone".into(), crate::PodDir::new());
        let did = Action::Sweep { path: path.into(), must: true };
        let got = control::Outcome::Done(control::Reply::Nothing);
        Node::learn(&mut here, &did, &got, &cache([]))
    };
    assert_eq!(learned("/r/pods/gone"), [Key::Orphans]);
    for other in ["/r/pods/gone/volumes", "/r/pods/other", "/r/plugins/x"] {
        assert!(learned(other).is_empty(), "{other}");
    }
}

#[test]
fn a_volume_is_told_of_under_the_name_of_its_object() {
    let world = World::new();
    let about = Node::about(&Key::Volume(unique()), &world.cache, world.local());
    let said: Vec<String> = about.iter().map(|one| alloc::format!("{} {}", one.kind, one.key.name)).collect();
    assert_eq!(said, ["PersistentVolume pv1", "Node n"]);
}

#[test]
fn a_process_that_may_have_been_started_is_not_asked_how_it_is() {
    let probe = json!({ "startupProbe": { "exec": { "command": ["x"] } } });
    let cache = cache([pod(json!({ "spec": { "volumes": [], "containers": [container("c", probe)] } }))]);
    let pod = api::ObjectKey::new("ns", "a");
    let key = Key::Check(crate::CheckKey { pod, container: "c".into(), kind: crate::CheckKind::Startup });
    let decide = |local: &Local| {
        let view = Node::view(&key, &cache, local);
        Node::decide(control::Timestamp(60_000), &view, &crate::Memory::default())
    };
    let mut here = local();
    here.maybe_started.insert("u_ns_a_c_0".into());
    assert!(matches!(decide(&here), control::Decision::Rest(why) if why.settled));
    process(&mut here, "c", 0, RUNS);
    assert!(matches!(decide(&here), control::Decision::Do(Action::Check(_), _)));
}

#[test]
fn probes_are_those_of_containers_and_sidecars() {
    let probed = |name: &str, more: Value| {
        let mut one = container(name, json!({ "readinessProbe": { "exec": { "command": ["x"] } } }));
        super::plain::merge(&mut one, &more);
        one
    };
    let init = json!([probed("i", json!({})), probed("s", json!({ "restartPolicy": "Always" }))]);
    let spec = json!({ "volumes": [], "initContainers": init, "containers": [probed("c", json!({}))] });
    let cache = cache([pod(json!({ "spec": spec }))]);
    let mut here = local();
    ["i", "s", "c"].iter().for_each(|name| process(&mut here, name, 0, RUNS));
    let view = pod_view(&cache, &here);
    let ready = |seen: &crate::ContainerView| seen.ready;
    assert_eq!((ready(&view.init[0]), ready(&view.init[1])), (true, false), "no answer yet counts as not ready");
    assert!(!ready(&view.containers[0]));
}
