//! What is decided on every shape of a view, as tables.

use alloc::string::String;
use alloc::vec;

use api::{Kind, ObjectRef, SecretReference, Seen, VolumeError};
use control::{Access, Capability, Mode, Rules, Secrets, Timestamp};
use prove_lab::{Choices, check_table, verdict};

use crate::{
    Attach, AttachObstacle, Attacher, CallFailure, Detach, Key, Listed, ListingView, Memory, PublishContext,
    PublishRequest, PublishTarget, RivalAttachment, Side, View, VolumeOnNode, VolumeUse,
};

const NOW: Timestamp = Timestamp(100_000);

fn seen(kind: Kind, name: &str) -> Seen {
    Seen { object: ObjectRef::cluster(kind, name), uid: "u".into(), version: "1".into() }
}

fn place() -> VolumeOnNode {
    VolumeOnNode { driver: "d".into(), handle: "h".into(), node_id: "id-a".into() }
}

fn request() -> PublishRequest {
    let access = Access::Mount { fs_type: String::new(), flags: vec![] };
    let capability = Capability { mode: Mode::SingleNodeWriter, access };
    PublishRequest { place: place(), capability, readonly: false, context: PublishContext::default() }
}

fn context(at: &str) -> PublishContext {
    PublishContext([("at".into(), at.into())].into())
}

fn obstacle(choices: &mut Choices) -> AttachObstacle {
    let text = || String::from("v");
    choices.one_of(
        "missing",
        &[
            ("volume", AttachObstacle::VolumeMissing(text())),
            ("volume-stays", AttachObstacle::VolumeLeaving(text())),
            ("volume-in-csi-terms", AttachObstacle::VolumeUnreadable(text())),
            ("node-id", AttachObstacle::NodeIdUnknown(text())),
        ],
    )
}

fn rival(choices: &mut Choices) -> Option<RivalAttachment> {
    let rival = |goes_first| Some(RivalAttachment { node: "b".into(), goes_first });
    choices.one_of("rival", &[("none", None), ("later", rival(false)), ("first", rival(true))])
}

fn error(choices: &mut Choices, told: &str) -> Option<VolumeError> {
    let error = |message: &str| Some(VolumeError { message: message.into(), ..VolumeError::default() });
    choices.one_of("status-tells", &[("nothing", None), ("this", error(told)), ("something-else", error("x"))])
}

fn secret(choices: &mut Choices, memory: &mut Memory) -> Option<SecretReference> {
    let reference = SecretReference { namespace: "n".into(), name: "s".into() };
    match choices.word("secret", &["none", "unread", "read", "read-for-another"]) {
        "none" => return None,
        "read" => memory.secrets = Some(("u".into(), Secrets::default())),
        "read-for-another" => memory.secrets = Some(("other".into(), Secrets::default())),
        _unread => {}
    }
    Some(reference)
}

/// How far undoing has come, as remembered.
fn undone(choices: &mut Choices, memory: &mut Memory) {
    match choices.word("undone", &["nothing", "rechecked", "rechecked-another", "unpublished", "unpublished-another"]) {
        "rechecked" => memory.checked = Some("u".into()),
        "rechecked-another" => memory.checked = Some("other".into()),
        "unpublished" => memory.unpublished = Some("u".into()),
        "unpublished-another" => memory.unpublished = Some("other".into()),
        _nothing => {}
    }
}

fn failed(choices: &mut Choices, memory: &mut Memory) {
    if choices.flag("failed") {
        let side = choices.one_of("failed-to", &[("attach", Side::Attach), ("detach", Side::Detach)]);
        memory.failure = Some(CallFailure { side, message: "failed".into(), code: Some(13) });
    }
}

fn published(choices: &mut Choices, memory: &mut Memory) {
    memory.published = choices.one_of(
        "published",
        &[
            ("no", None),
            ("yes", Some(("u".into(), context("a")))),
            ("yes-and-told-something-else", Some(("u".into(), context("b")))),
            ("another", Some(("other".into(), context("b")))),
        ],
    );
}

/// A target that cannot be published, and what the status says of it; `None` for one that can.
fn no_target(choices: &mut Choices) -> Option<(PublishTarget, Option<VolumeError>)> {
    match choices.word("target", &["Waiting", "Impossible", "Ready"]) {
        "Waiting" => {
            let obstacle = obstacle(choices);
            let told = verdict_text(&obstacle);
            Some((PublishTarget::Waiting(obstacle), error(choices, &told)))
        }
        "Impossible" => Some((PublishTarget::Impossible("never".into()), error(choices, "never"))),
        _ready => None,
    }
}

/// The words in which an obstacle is reported.
fn verdict_text(obstacle: &AttachObstacle) -> String {
    let detach =
        Detach::Stuck { attachment: seen(Kind::VolumeAttachment, "va"), obstacle: obstacle.clone(), error: None };
    let decision = Attacher::decide(NOW, &View::Detach(detach), &Memory::default());
    decision.why().text.replace("attachment va: ", "")
}

#[test]
fn every_shape_of_an_attachment_that_should_be() {
    check_table(env!("CARGO_MANIFEST_DIR"), "attach", |choices| {
        let mut memory = Memory::default();
        let attached = choices.flag("attached").then(|| context("a"));
        let listed = [("nowhere", Listed::Unknown), ("yes", Listed::Published), ("no", Listed::Unpublished)];
        let listed = choices.one_of("listed", &listed);
        let target = no_target(choices);
        let unheld_volume =
            choices.flag("volume-lost-finalizer").then(|| (seen(Kind::PersistentVolume, "v"), "f".into()));
        let error = target.is_none().then(|| {
            failed(choices, &mut memory);
            error(choices, "failed")
        });
        let (marked, gives_way) = (choices.flag("marked"), choices.flag("gives-way"));
        published(choices, &mut memory);
        let rival = rival(choices);
        let (target, error) = target.unwrap_or_else(|| {
            undone(choices, &mut memory);
            let unmarked_volume = choices.flag("unmarked-volume").then(|| seen(Kind::PersistentVolume, "v"));
            let recorded = choices.flag("recorded");
            let secret = secret(choices, &mut memory);
            (PublishTarget::Ready { unmarked_volume, recorded, request: request(), secret }, error.flatten())
        });
        let (attachment, node) = (seen(Kind::VolumeAttachment, "va"), "a".into());
        let attach =
            Attach { attachment, node, marked, gives_way, attached, listed, error, target, rival, unheld_volume };
        verdict(&Attacher::decide(NOW, &View::Attach(attach), &memory))
    });
}

#[test]
fn every_shape_of_an_attachment_that_should_go() {
    check_table(env!("CARGO_MANIFEST_DIR"), "detach", |choices| {
        let (mut memory, attachment) = (Memory::default(), seen(Kind::VolumeAttachment, "va"));
        let detach = match choices.word("detach", &["Unmarked", "Stuck", "Ready"]) {
            "Unmarked" => Detach::Unmarked { attachment, attached: choices.flag("attached") },
            "Stuck" => {
                let obstacle = obstacle(choices);
                let error = error(choices, &verdict_text(&obstacle));
                Detach::Stuck { attachment, obstacle, error }
            }
            _ready => {
                failed(choices, &mut memory);
                let error = error(choices, "failed");
                let marked = choices.flag("marked");
                undone(choices, &mut memory);
                let secret = secret(choices, &mut memory);
                Detach::Ready { attachment, place: place(), marked, secret, error }
            }
        };
        verdict(&Attacher::decide(NOW, &View::Detach(detach), &memory))
    });
}

fn volume_use(choices: &mut Choices) -> VolumeUse {
    let volume = || String::from("v");
    match choices.word("use", &["Unmarked", "Staying", "Provisioners", "Attached", "Free"]) {
        "Unmarked" => VolumeUse::Unmarked(volume()),
        "Staying" => VolumeUse::Staying(volume()),
        "Provisioners" => VolumeUse::Provisioners(volume()),
        "Attached" => VolumeUse::Attached { volume: volume(), attachment: "va".into() },
        _free => VolumeUse::Free {
            volume: seen(Kind::PersistentVolume, "v"),
            finalizer: "f".into(),
            leaving: choices.flag("leaving"),
        },
    }
}

fn listing(choices: &mut Choices, memory: &mut Memory) -> ListingView {
    if choices.flag("off") {
        return ListingView::Off;
    }
    memory.listed_at = choices.one_of("last", &[("never", Timestamp(0)), ("lately", NOW), ("long-ago", Timestamp(1))]);
    let token = choices.one_of("page", &[("first", String::new()), ("next", "2".into())]);
    ListingView::On { driver: "d".into(), token, max_entries: 0, every_millis: 60_000 }
}

#[test]
fn every_other_shape() {
    check_table(env!("CARGO_MANIFEST_DIR"), "others", |choices| {
        let mut memory = Memory::default();
        let view = match choices.word("view", &["Gone", "NotOurs", "Trivial", "Volume", "Listing"]) {
            "Gone" => View::Gone(choices.one_of(
                "key",
                &[
                    ("attachment", Key::Attachment("va".into())),
                    ("volume", Key::Volume("v".into())),
                    ("listing", Key::Listing("d".into())),
                ],
            )),
            "NotOurs" => View::NotOurs("va".into()),
            "Trivial" => {
                let unconfirmed = choices.flag("unconfirmed");
                View::Trivial { attachment: seen(Kind::VolumeAttachment, "va"), unconfirmed, rival: rival(choices) }
            }
            "Volume" => View::Volume(volume_use(choices)),
            _listing => View::Listing(listing(choices, &mut memory)),
        };
        verdict(&Attacher::decide(NOW, &view, &memory))
    });
}
