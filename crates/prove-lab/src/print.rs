//! How decisions, effects, outcomes and objects print in golden files: short, whole, and the same in every run.

use std::collections::BTreeMap;

use api::{ObjectRef, Patch, PatchBody, Precondition, Value, Write};
use control::host::Op;
use control::{Effect, Outcome, Reply, Why};
use csi::v1::volume_capability::{AccessType, access_mode};
use csi::v1::volume_content_source::Type as Source;
use csi::{Call, Field, Fields, v1};
use serde_json::json;

/// Hexadecimal digits from which on a word is a hash that nobody reads.
const HASH: usize = 32;

/// Code and text of a reason.
pub(crate) fn reason(why: &Why) -> String {
    format!("[{}] {why}", why.code)
}

/// One line that says all of an effect.
pub fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Read(target) => format!("read {}", object_ref(target)),
        Effect::Token(wish) => format!("token of {} for pod {}", wish.account, wish.pod),
        Effect::List { kind, namespace } => format!("list {} in {namespace}", kind.plural()),
        Effect::Write(write) => self::write(write),
        Effect::Call { to, call } => format!("call {to} {}", self::call(call)),
        Effect::Host(op) => host(op),
        Effect::Nothing => "nothing".into(),
    }
}

fn object_ref(target: &ObjectRef) -> String {
    format!("{} {}", target.kind.name(), target.key)
}

fn write(write: &Write) -> String {
    let target = object_ref(write.target());
    match write {
        Write::Create { body, .. } => {
            let mut body = body.clone();
            for path in ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"] {
                remove(&mut body, path);
            }
            format!("create {target} {body}")
        }
        Write::Patch { patch, .. } => {
            let part = write.subresource().map(|part| format!(" {part}")).unwrap_or_default();
            format!("patch {target}{part} {}", self::patch(patch))
        }
        Write::Delete { only_if, grace_seconds, .. } => {
            let grace = grace_seconds.map(|seconds| format!(" within {seconds}s")).unwrap_or_default();
            format!("delete {target}{grace} {}", belief(only_if))
        }
        Write::Bind { node, uid, .. } => format!("bind {target} ({uid}) to {node}"),
        Write::Note(note) => format!("note {target} {}", json!(note.annotations)),
    }
}

fn patch(patch: &Patch) -> String {
    let belief = belief(&patch.only_if);
    let bare = Patch { only_if: Precondition::default(), body: patch.body.clone() }.to_json();
    match patch.body {
        PatchBody::Merge(_) => format!("{belief} {bare}"),
        PatchBody::Strategic(_) => format!("{belief} strategic {bare}"),
        // What must be true is tested by the patch itself.
        PatchBody::Json(_) if patch.only_if == Precondition::default() => format!("json {bare}"),
        PatchBody::Json(_) => format!("{belief} json {bare}"),
    }
}

fn belief(only_if: &Precondition) -> &'static str {
    match (&only_if.uid, &only_if.resource_version) {
        (Some(_), Some(_)) => "if unchanged",
        (Some(_), None) => "if the same",
        (None, Some(_)) => "if at the version",
        (None, None) => "whatever it is",
    }
}

fn host(op: &Op) -> String {
    match op {
        Op::WriteFile { path, bytes } => format!("WriteFile {path} {}", String::from_utf8_lossy(bytes).trim_end()),
        op => format!("{op:?}"),
    }
}

/// A request with every field that is set. Of secrets only the names are printed.
pub fn call(call: &Call) -> String {
    let mut parts = vec![call.method().name().to_string()];
    fields(call, &mut parts);
    let flag = |name: &str, set: bool| set.then(|| name.to_string());
    parts.extend(match call {
        Call::ControllerPublishVolume(request) => flag("readonly", request.readonly),
        Call::NodePublishVolume(request) => flag("readonly", request.readonly),
        Call::NotifyRegistrationStatus(status) if status.plugin_registered => Some("registered".into()),
        Call::NotifyRegistrationStatus(status) => Some(format!("error={:?}", status.error)),
        _ => None,
    });
    parts.join(" ")
}

fn fields(message: &dyn Fields, parts: &mut Vec<String>) {
    message.visit(&mut |name, field| parts.extend(self::field(&field).map(|value| format!("{name}={value}"))));
}

fn field(field: &Field<'_>) -> Option<String> {
    match field {
        Field::Name(text)
        | Field::Id(text)
        | Field::Text(text)
        | Field::NodeId(text)
        | Field::OptionalNodeId(text)
        | Field::Path(text)
        | Field::OptionalPath(text) => (!text.is_empty()).then(|| (*text).to_string()),
        Field::Ids(list) | Field::Texts(list) | Field::Flags(list) | Field::NodeIds(list) => self::list(list),
        Field::Map(map) | Field::Context(map) => self::map(map),
        Field::Secrets(map) => self::list(&map.keys().cloned().collect::<Vec<_>>()),
        Field::Range(range) | Field::RequiredRange(range) => range.map(self::range),
        Field::Capability(one) | Field::OptionalCapability(one) => one.map(capability),
        Field::Capabilities(list) | Field::OptionalCapabilities(list) => {
            self::list(&list.iter().map(capability).collect::<Vec<_>>())
        }
        Field::ContentSource(source) => source.and_then(|source| source.r#type.as_ref()).map(|source| match source {
            Source::Snapshot(source) => format!("snapshot:{}", source.snapshot_id),
            Source::Volume(source) => format!("volume:{}", source.volume_id),
        }),
        Field::MaxEntries(most) => (*most > 0).then(|| most.to_string()),
        Field::Message(message) => {
            let mut parts = Vec::new();
            fields(*message, &mut parts);
            Some(format!("{{{}}}", parts.join(" ")))
        }
    }
}

fn list(list: &[String]) -> Option<String> {
    (!list.is_empty()).then(|| format!("[{}]", list.join(",")))
}

fn map(map: &BTreeMap<String, String>) -> Option<String> {
    (!map.is_empty()).then(|| json!(map).to_string())
}

fn range(range: &v1::CapacityRange) -> String {
    match range.limit_bytes {
        0 => range.required_bytes.to_string(),
        limit => format!("{}..{limit}", range.required_bytes),
    }
}

fn capability(capability: &v1::VolumeCapability) -> String {
    let mode = capability.access_mode.as_ref().and_then(|mode| access_mode::Mode::try_from(mode.mode).ok());
    let mode = mode.map_or("no access mode", |mode| mode.as_str_name());
    match &capability.access_type {
        None => format!("{mode}/nothing"),
        Some(AccessType::Block(_)) => format!("{mode}/block"),
        Some(AccessType::Mount(mount)) => {
            let mut parts = vec![format!("{mode}/mount")];
            parts.extend((!mount.fs_type.is_empty()).then(|| mount.fs_type.clone()));
            parts.extend(mount.mount_flags.iter().cloned());
            parts.extend((!mount.volume_mount_group.is_empty()).then(|| format!("gid:{}", mount.volume_mount_group)));
            parts.join(":")
        }
    }
}

/// The same line with long hashes cut short.
pub(crate) fn cut_hashes(line: &str) -> String {
    let is_hash = |word: &str| word.len() >= HASH && word.bytes().all(|b| b.is_ascii_hexdigit());
    let words = line.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric());
    let cut = words.map(|word| {
        let (bare, end) = word.split_at(word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len());
        if is_hash(bare) { format!("{}..{end}", &bare[..8]) } else { word.to_string() }
    });
    cut.collect()
}

/// How an effect ended, in a word or a clause.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(Reply::Gone) => "gone".into(),
        Outcome::Done(Reply::Objects(objects)) => {
            let names: Vec<&str> = objects.iter().map(|object| object.meta().name.as_str()).collect();
            format!("[{}]", names.join(", "))
        }
        Outcome::Done(_) => "done".into(),
        Outcome::Refused(refusal) => format!("refused: {refusal}"),
        Outcome::Unknown(text) => format!("unknown: {text}"),
    }
}

/// What matters of a stored object, one field a line: without what differs from run to run or says nothing.
pub(crate) fn stored(object: &Value) -> String {
    let mut object = object.clone();
    for path in ["apiVersion", "kind", "metadata/uid", "metadata/resourceVersion", "metadata/creationTimestamp"] {
        remove(&mut object, &format!("/{path}"));
    }
    for path in ["metadata/name", "metadata/namespace", "metadata/generation", "metadata/managedFields"] {
        remove(&mut object, &format!("/{path}"));
    }
    let mut lines = Vec::new();
    flatten("", &object, &mut lines);
    lines.join("\n")
}

fn flatten(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value.as_object() {
        Some(map) => {
            for (key, value) in map {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{key}"), value, lines);
            }
        }
        None => lines.push(format!("  {path}: {value}")),
    }
}

fn remove(object: &mut Value, path: &str) {
    let (parent, field) = path.rsplit_once('/').unwrap();
    if let Some(map) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
        map.remove(field);
        if map.is_empty() && !parent.is_empty() {
            remove(object, parent);
        }
    }
}
