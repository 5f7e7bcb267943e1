//! Each fact of a view, by the objects that make it true and those that almost do.

use alloc::format;

use api::{Kind, Object, Seen, Value, names};
use control::{Cache, Narrate, Outcome, Refusal, Reply, Rules, Secrets, Timestamp, Why};
use csi::{ControllerRpc, Response, v1};
use prove_lab::object;
use serde_json::json;

use super::world::{DRIVER, finalizer};
use crate::memory::still_to_undo;
use crate::{Action, Attach, Attacher, Detach, Key, Listed, Listing, Local, Memory, Reason, Side, View, VolumeUse};

fn local() -> Local {
    Local { list_every_millis: 60_000, ..Local::new(DRIVER, [ControllerRpc::PublishUnpublishVolume]) }
}

fn cache(objects: impl IntoIterator<Item = Object>) -> Cache {
    let mut cache = Cache::default();
    for one in objects {
        cache.set(one);
    }
    cache
}

/// An attachment of volume `v`, with this on top.
fn attachment(name: &str, node: &str, more: Value) -> Object {
    let spec = json!({ "attacher": DRIVER, "nodeName": node, "source": { "persistentVolumeName": "v" } });
    let annotations = json!({ names::ATTACHMENT_NODE_ID: format!("id-{node}") });
    let metadata = json!({ "name": name, "uid": name, "annotations": annotations });
    let mut body = json!({ "metadata": metadata, "spec": spec });
    rules_store::merge_patch(&mut body, &more);
    object(Kind::VolumeAttachment, body)
}

/// Volume `v` with this source and these finalizers.
fn volume(source: Value, finalizers: Value, deleting: bool) -> Object {
    let mut metadata = json!({ "name": "v", "finalizers": finalizers });
    if deleting {
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    let mut spec = json!({ "accessModes": ["ReadWriteOnce"] });
    rules_store::merge_patch(&mut spec, &source);
    object(Kind::PersistentVolume, json!({ "metadata": metadata, "spec": spec }))
}

fn csi() -> Value {
    json!({ "csi": { "driver": DRIVER, "volumeHandle": "h" } })
}

fn attach(name: &str, cache: &Cache, local: &Local) -> Attach {
    match Attacher::view(&Key::Attachment(name.into()), cache, local) {
        View::Attach(attach) => attach,
        other => panic!("{other:?}"),
    }
}

// Sidecars 3.5: only of an in-tree volume that is let go early may the finalizer be lost under an attachment, and only
// one that is attached and ours gives it back.
#[test]
fn a_volume_lost_its_finalizer_only_beneath_an_attachment_of_ours() {
    let in_tree = || volume(json!({ "awsElasticBlockStore": { "volumeID": "vol-1" } }), json!([]), false);
    let with = |volume: Object, marked: bool, attached: bool| {
        let finalizers = if marked { json!([finalizer()]) } else { json!([]) };
        let more = json!({ "metadata": { "finalizers": finalizers }, "status": { "attached": attached } });
        attach("va", &cache([volume, attachment("va", "a", more)]), &local()).unheld_volume.is_some()
    };
    assert!(with(in_tree(), true, true));
    assert!(!with(in_tree(), true, false));
    assert!(!with(in_tree(), false, true));
    assert!(!with(volume(csi(), json!([]), false), true, true), "a volume of a CSI driver keeps its own");
}

// Reliability 24: attachments that hold their volume themselves are rivals when they hold the same one.
#[test]
fn attachments_of_different_inline_volumes_are_no_rivals() {
    let inline = |name: &str, node: &str, handle: &str| {
        let spec = json!({ "accessModes": ["ReadWriteOnce"], "csi": { "driver": DRIVER, "volumeHandle": handle } });
        let source = json!({ "persistentVolumeName": null, "inlineVolumeSpec": spec });
        let attached = json!({ "attached": node == "b" });
        attachment(name, node, json!({ "spec": { "source": source }, "status": attached }))
    };
    let rival = |handle: &str| {
        attach("one", &cache([inline("one", "a", "h"), inline("two", "b", handle)]), &local()).rival.is_some()
    };
    assert!(rival("h"));
    assert!(!rival("another"));
}

// A14: what the driver lists without our finalizer is undone, unless another attachment wants it on that very node.
#[test]
fn a14_a_listed_volume_is_left_to_another_attachment_of_the_same_node() {
    let mut local = local();
    local.listing.whole = Some([("h".into(), "id-a".into())].into());
    let undone = |other_node: &str| {
        let deleting = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
        let other = attachment("other", other_node, json!({}));
        let cache = cache([volume(csi(), json!([]), false), attachment("va", "a", deleting), other]);
        match Attacher::view(&Key::Attachment("va".into()), &cache, &local) {
            View::Detach(Detach::Unmarked { .. }) => false,
            View::Detach(_) => true,
            other => panic!("{other:?}"),
        }
    };
    assert!(undone("b"));
    assert!(!undone("a"));
}

#[test]
fn only_a_provisioner_in_this_process_takes_our_finalizer_off_with_its_own() {
    let uses = |provisions: bool, deleting: bool, source: Value| {
        let local = Local { provisions, ..local() };
        let finalizers = json!([finalizer(), names::PROVISIONER_FINALIZER]);
        let cache = cache([volume(source, finalizers, deleting)]);
        match Attacher::view(&Key::Volume("v".into()), &cache, &local) {
            View::Volume(VolumeUse::Provisioners(_)) => "theirs",
            View::Volume(VolumeUse::Free { .. }) => "ours",
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(uses(true, true, csi()), "theirs");
    assert_eq!(uses(false, true, csi()), "ours");
    let in_tree = json!({ "awsElasticBlockStore": { "volumeID": "vol-1" } });
    assert_eq!(uses(true, false, in_tree), "ours", "it stays, and nothing is attached");
}

// Reliability 34: before anything is undone, the very attachment must be on its way out and ours.
#[test]
fn what_was_read_anew_is_undone_only_if_it_is_the_same_marked_and_going() {
    let Object::VolumeAttachment(seen) = attachment("va", "a", json!({})) else { panic!() };
    let seen = Seen::of::<api::VolumeAttachment>(&seen.metadata);
    let still = |more: Value, finalizer: &str| {
        let fresh = Outcome::Done(Reply::Object(attachment("va", "a", json!({ "metadata": more }))));
        still_to_undo(&fresh, &seen, finalizer)
    };
    let (going, ours) = ("2026-01-01T00:00:00Z", finalizer());
    assert!(still(json!({ "deletionTimestamp": going, "finalizers": [ours] }), &ours));
    assert!(still(json!({ "annotations": { names::ATTACHMENT_GIVES_WAY: "b" }, "finalizers": [ours] }), &ours));
    assert!(still(json!({ "deletionTimestamp": going }), ""), "the driver's list alone says that it is there");
    assert!(!still(json!({ "uid": "another", "deletionTimestamp": going, "finalizers": [ours] }), &ours));
    assert!(!still(json!({ "deletionTimestamp": going }), &ours));
    assert!(!still(json!({ "finalizers": [ours] }), &ours));
}

// S0-85: what was read for an earlier call is not used when the secret cannot be had any more.
#[test]
fn a_secret_that_cannot_be_read_is_not_replaced_by_what_was_read_before() {
    let memory = Memory { secrets: Some(("va".into(), Secrets::default())), ..Memory::default() };
    let secret = api::SecretReference { namespace: "n".into(), name: "s".into() };
    let read = Action::ReadSecret { attachment: "va".into(), side: Side::Attach, secret };
    let refused = Outcome::Refused(Refusal::Denied("no".into()));
    let after = Attacher::remember(Timestamp(0), memory, &read, &refused);
    assert!(after.secrets.is_none() && after.failure.is_some());
}

fn page(pairs: &[(&str, &str)], next: &str) -> Outcome {
    use v1::list_volumes_response::{Entry, VolumeStatus};
    let entries = pairs.iter().map(|(handle, node)| Entry {
        volume: Some(v1::Volume { volume_id: (*handle).into(), ..Default::default() }),
        status: Some(VolumeStatus { published_node_ids: [(*node).into()].into() }),
    });
    let page = v1::ListVolumesResponse { entries: entries.collect(), next_token: next.into() };
    Outcome::Done(Reply::Csi(Response::ListVolumes(page)))
}

fn list(token: &str) -> Action {
    Action::List { driver: DRIVER.into(), token: token.into(), max_entries: 0 }
}

// A14: the answer to a question of an earlier list is no page of this one.
#[test]
fn a14_a_late_page_is_not_taken_for_the_next() {
    let mut listing = Listing::default();
    listing.learn(&list(""), &page(&[("h", "id-a")], "2"));
    let mut late = listing.clone();
    late.learn(&list("9"), &page(&[("h", "id-b")], ""));
    assert_eq!(late, Listing::default(), "it begins anew");
    listing.learn(&list("2"), &page(&[("h", "id-b")], ""));
    let known = [("id-a", Listed::Published), ("id-b", Listed::Published), ("id-c", Listed::Unpublished)];
    known.into_iter().for_each(|(node, said)| assert_eq!(listing.says("h", node), said, "{node}"));
}

// A14: who agrees with the list is not woken.
#[test]
fn a14_a_list_wakes_those_it_does_not_agree_with() {
    let woken = |attached: bool, deleting: bool, listed: &[(&str, &str)]| {
        let mut more = json!({ "status": { "attached": attached } });
        if deleting {
            more["metadata"] = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
        }
        let cache = cache([volume(csi(), json!([]), false), attachment("va", "a", more)]);
        !Attacher::learn(&mut local(), &list(""), &page(listed, ""), &cache).is_empty()
    };
    let here = [("h", "id-a")];
    assert!(!woken(true, false, &here));
    assert!(woken(false, false, &here));
    assert!(woken(true, true, &here));
    assert!(woken(true, false, &[]));
    assert!(!woken(false, false, &[]));
}

#[test]
fn a_volume_that_another_node_lets_go_of_gets_longer_before_it_is_told() {
    assert_eq!(Attacher::patience(&Why::waiting(Reason::AttachedElsewhere, "")), 5_000);
    assert_eq!(Attacher::patience(&Why::waiting(Reason::VolumeMissing, "")), 2_000);
}
