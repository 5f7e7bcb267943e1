use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use api::{Kind, Meta, SecretReference, names};
use control::{Action as _, Reason as _};
use serde_json::{Value, json};

use super::driver::id_of;
use super::world::{VOLUME, World};
use crate::secrets::secrets;
use crate::{Action, SecretRefs};

const NAME: &str = "csi.storage.k8s.io/provisioner-secret-name";
const NAMESPACE: &str = "csi.storage.k8s.io/provisioner-secret-namespace";
const DEFAULT_NAME: &str = "csi.storage.k8s.io/secret-name";
const DEFAULT_NAMESPACE: &str = "csi.storage.k8s.io/secret-namespace";

fn of(parameters: &[(&str, &str)]) -> Result<SecretRefs, &'static str> {
    let parameters: BTreeMap<String, String> =
        parameters.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let mut claim = Meta::in_namespace("ns", "claim");
    claim.annotations.insert("team".into(), "blue".into());
    secrets(&parameters, "pvc-1", &claim).map_err(|obstacle| obstacle.code.name())
}

fn provision(name: &str, namespace: &str) -> Result<Option<String>, &'static str> {
    let secret = of(&[(NAME, name), (NAMESPACE, namespace)])?.provision;
    Ok(secret.map(|secret| format!("{}/{}", secret.namespace, secret.name)))
}

// P23, P24: both halves, and neither empty.
#[test]
fn a_secret_needs_a_name_and_a_namespace() {
    assert_eq!(of(&[(NAME, "s")]), Err("IncompleteSecret"));
    assert_eq!(of(&[(NAMESPACE, "n")]), Err("IncompleteSecret"));
    assert_eq!(provision("", "n"), Err("EmptySecret"));
    assert_eq!(provision("s", ""), Err("EmptySecret"));
    assert_eq!(of(&[]), Ok(SecretRefs::default()));
}

// P25: the oldest names work, but not beside their successors; a mixed pair is taken.
#[test]
fn the_oldest_names_work_on_their_own() {
    let (old_name, old_namespace) = ("csiProvisionerSecretName", "csiProvisionerSecretNamespace");
    let found = Some(SecretReference { name: "s".into(), namespace: "n".into() });
    assert_eq!(of(&[(old_name, "s"), (old_namespace, "n")]).unwrap().provision, found);
    assert_eq!(of(&[(old_name, "s"), (NAMESPACE, "n")]).unwrap().provision, found);
    assert_eq!(of(&[(old_name, "s"), (NAME, "s"), (NAMESPACE, "n")]), Err("TwoSecrets"));
    let rest = [
        ("csiControllerPublishSecretName", "a"),
        ("csiControllerPublishSecretNamespace", "n"),
        ("csiNodeStageSecretName", "b"),
        ("csiNodeStageSecretNamespace", "n"),
        ("csiNodePublishSecretName", "c"),
        ("csiNodePublishSecretNamespace", "n"),
    ];
    let refs = of(&rest).unwrap();
    let names = [refs.controller_publish, refs.node_stage, refs.node_publish].map(|secret| secret.unwrap().name);
    assert_eq!(names, ["a", "b", "c"]);
}

// P26: one pair for all, overridden pair by pair.
#[test]
fn the_default_secret_is_for_every_purpose_that_has_none() {
    let refs = of(&[(DEFAULT_NAME, "all"), (DEFAULT_NAMESPACE, "n"), (NAME, "mine"), (NAMESPACE, "n")]).unwrap();
    let all = [
        &refs.controller_publish,
        &refs.node_stage,
        &refs.node_publish,
        &refs.controller_expand,
        &refs.node_expand,
        &refs.controller_modify,
    ];
    assert!(all.iter().all(|secret| secret.as_ref().is_some_and(|secret| secret.name == "all")));
    assert_eq!(refs.provision.unwrap().name, "mine");
}

// P27, P28: what each half may refer to, in either notation, and what a shell would leave.
#[test]
fn templates_are_filled_in_as_a_shell_would() {
    let there = |text: &str| Ok(Some(String::from(text)));
    assert_eq!(provision("${pvc.name}-${pv.name}", "${pvc.namespace}"), there("ns/claim-pvc-1"));
    assert_eq!(provision("x-${pvc.annotations['team']}", "n"), there("n/x-blue"));
    assert_eq!(provision("a${b", "n"), there("n/ab"));
    assert_eq!(provision("a${}b", "n"), there("n/ab"));
    assert_eq!(provision("s", "${pvc.name}"), Err("UnknownToken"));
    assert_eq!(provision("s", "${pvc.annotations['team']}"), Err("UnknownToken"));
    for unknown in ["${pvc.uid}", "$pvc", "${pvc.annotations['other']}", "$$", "$1"] {
        assert_eq!(provision(unknown, "n"), Err("UnknownToken"), "{unknown}");
    }
    assert_eq!(provision("cost-$", "n"), Err("BadSecretName")); // The dollar stays.
}

// P29, P30: what comes out must be a namespace and a name.
#[test]
fn what_comes_out_must_be_a_name() {
    assert_eq!(provision("s", "Not.A.Label"), Err("BadSecretNamespace"));
    assert_eq!(provision("s", "dotted.name"), Err("BadSecretNamespace"));
    assert_eq!(provision("under_score", "n"), Err("BadSecretName"));
    assert_eq!(provision("dotted.name", "n"), Ok(Some("n/dotted.name".into())));
}

const CANARY: &str = "canary-value";

/// A class that wants secret `s` for making volumes and another one for changing them.
pub(super) fn with_secrets() -> World {
    let parameters = json!({
        NAME: "s", NAMESPACE: "n",
        "csi.storage.k8s.io/controller-modify-secret-name": "m",
        "csi.storage.k8s.io/controller-modify-secret-namespace": "n",
        "csi.storage.k8s.io/node-expand-secret-name": "e",
        "csi.storage.k8s.io/node-expand-secret-namespace": "n",
        "csiNodeStageSecretName": "old", "csiNodeStageSecretNamespace": "n",
    });
    World::new().class("fast", "d", json!({ "parameters": parameters })).with_claim("data", json!({}))
}

pub(super) fn add_secret(world: &mut World, name: &str) {
    world.create(Kind::Secret, json!({ "metadata": { "name": name }, "stringData": { "key": CANARY } }));
}

// P31, P32, reliability 14: read just before the call, sent along, and recorded by name alone.
#[test]
fn secrets_are_read_sent_and_never_recorded() {
    let mut world = with_secrets();
    world.run_for(3);
    assert!(world.why(&world.key()).text.contains("secret n/s does not exist"));
    assert!(world.driver.volumes.is_empty());
    add_secret(&mut world, "s");
    world.run();
    assert_eq!(world.request().secrets["key"], CANARY);
    assert_eq!(
        world.request().parameters.keys().collect::<alloc::vec::Vec<_>>(),
        ["csiNodeStageSecretName", "csiNodeStageSecretNamespace"]
    );
    let volume = world.volume(&world.pv_name());
    let annotations = &volume["metadata"]["annotations"];
    assert_eq!(
        (&annotations[names::DELETION_SECRET_NAME], &annotations[names::MODIFY_SECRET_NAME]),
        (&json!("s"), &json!("m"))
    );
    assert_eq!(volume["spec"]["csi"]["nodeExpandSecretRef"], json!({ "name": "e", "namespace": "n" }));
    assert_eq!(volume["spec"]["csi"]["nodeStageSecretRef"], json!({ "name": "old", "namespace": "n" }));
    assert!(volume["spec"]["csi"]["controllerPublishSecretRef"].is_null());
    assert!(!format!("{volume} {} {:?}", world.claim("data"), world.log).contains(CANARY));
}

// P32: nothing is said of a secret nobody named.
#[test]
fn no_secret_leaves_empty_annotations_for_deletion_and_none_for_changes() {
    let mut world = World::asked();
    world.run();
    let annotations = world.volume(&world.pv_name())["metadata"]["annotations"].clone();
    assert_eq!(
        (&annotations[names::DELETION_SECRET_NAME], &annotations[names::DELETION_SECRET_NAMESPACE]),
        (&json!(""), &json!(""))
    );
    assert!(annotations[names::MODIFY_SECRET_NAME].is_null());
}

/// A volume with secrets, released.
fn released(annotated: bool, there: bool) -> World {
    let mut world = with_secrets();
    add_secret(&mut world, "s");
    world.run();
    let name = world.pv_name();
    if !annotated {
        let gone = json!({ names::DELETION_SECRET_NAME: null, names::DELETION_SECRET_NAMESPACE: null });
        world.patch(VOLUME, &name, json!({ "metadata": { "annotations": gone } }));
    }
    if !there {
        world.delete(Kind::Secret, "s");
    }
    world.delete_claim();
    world.run_to_the_end();
    assert!(world.is_empty(), "{:?}", world.log);
    world
}

fn deleted_with(world: &World) -> Value {
    let secrets = world.driver.deleted_with.iter().next().unwrap();
    assert!(secrets.0.starts_with(&id_of("pvc-")));
    json!(secrets.1)
}

// P31, P34: by the annotations, or by the class where there are none.
#[test]
fn deletion_uses_the_secret_the_volume_or_its_class_names() {
    assert_eq!(deleted_with(&released(true, true)), json!({ "key": CANARY }));
    assert_eq!(deleted_with(&released(false, true)), json!({ "key": CANARY }));
}

// P33: a secret that is gone does not keep a volume for ever.
#[test]
fn deletion_goes_on_without_a_secret_that_is_gone() {
    assert_eq!(deleted_with(&released(true, false)), json!({}));
}

// Secrets never reach a log: what is printed of an action holds none.
#[test]
fn an_action_prints_no_secret() {
    let secrets = control::Secrets([("key".into(), CANARY.into())].into());
    let (uid, volume_id) = ("u".into(), "v".into());
    let action = Action::DeleteVolume { uid, driver: "d".into(), volume_id, secrets, undo: false };
    assert!(!format!("{action:?} {:?}", action.effect()).contains(CANARY));
    let memory =
        crate::Memory { secrets: Some(control::Secrets([("key".into(), CANARY.into())].into())), ..Default::default() };
    assert!(!format!("{memory:?}").contains(CANARY));
}
