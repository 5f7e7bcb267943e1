use alloc::string::String;

use api::{Kind, PatchBody, Precondition, Subresource, Write};
use serde_json::Value;

use crate::{PatchKind, meta};

/// What a request cannot find out for itself: clock, dice and sender.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Milliseconds after 1970.
    pub now_millis: u64,
    /// A uid nobody has used before. A request that creates nothing leaves it unused.
    pub new_uid: &'a str,
    pub actor: &'a str,
}

/// An existing or wanted object.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// What it is.
    pub kind: Kind,
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
}

impl Target {
    /// An object by its place.
    pub fn new(kind: Kind, namespace: impl Into<String>, name: impl Into<String>) -> Target {
        Target { kind, namespace: namespace.into(), name: name.into() }
    }
}

/// What happens to fields the kind does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped, and the sender is told.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

/// How a write is to be treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Answer as if it were done, and do nothing.
    pub dry_run: bool,
    /// What happens to unknown fields.
    pub field_validation: FieldValidation,
    /// The sender may change what is there and not make what is missing.
    pub only_existing: bool,
    /// Fields that are not honoured are refused or warned of ([`crate::fields()`]). Worlds that test what rules make of
    /// such fields leave it off.
    pub judged: bool,
}

/// One write to the store.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Make a new object.
    Create {
        /// What it is.
        kind: Kind,
        /// The namespace of the path; empty for cluster-scoped objects.
        namespace: String,
        /// The object; its `metadata` holds the name, or the prefix of one.
        body: Value,
        /// How to treat it.
        options: WriteOptions,
    },
    /// Replace an object, or its status.
    Update {
        target: Target,
        subresource: Option<Subresource>,
        /// The whole object as it should be.
        body: Value,
        /// How to treat it.
        options: WriteOptions,
    },
    /// Change parts of an object, or of its status.
    Patch {
        target: Target,
        subresource: Option<Subresource>,
        /// The language of the patch.
        kind: PatchKind,
        body: Value,
        /// How to treat it.
        options: WriteOptions,
    },
    /// Ask for an object's deletion.
    Delete {
        target: Target,
        /// What must still be true.
        preconditions: Precondition,
        /// How long a pod may take to end; `None` leaves the choice to the pod.
        grace_seconds: Option<i64>,
        /// What becomes of what it owns.
        propagation: DeletePropagation,
        /// Answer as if it were done, and do nothing.
        dry_run: bool,
    },
    /// Put a pod on a node: `pods/binding`.
    Bind {
        target: Target,
        /// Its uid, if the sender is sure.
        uid: Option<String>,
        node: String,
        /// Answer as if it were done, and do nothing.
        dry_run: bool,
    },
}

/// What becomes of what a deleted object owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletePropagation {
    /// It goes after its owner.
    #[default]
    Background,
    /// It goes first, as far as it says that it blocks its owner's deletion.
    Foreground,
    /// It stays, and forgets its owner.
    Orphan,
}

impl Request {
    /// A write of the rules as a request, for worlds that have no HTTP between the two.
    pub fn from_write(write: &Write) -> Request {
        let object = write.target();
        let target = Target::new(object.kind, object.key.namespace.as_str(), object.key.name.as_str());
        let options = WriteOptions::default();
        match write {
            Write::Create { body, .. } => {
                let mut body = body.clone();
                if !target.name.is_empty() {
                    meta::set_default(&mut body, "name", &target.name);
                }
                Request::Create { kind: target.kind, namespace: target.namespace, body, options }
            }
            Write::Patch { subresource, patch, .. } => {
                let kind = match patch.body {
                    PatchBody::Merge(_) => PatchKind::Merge,
                    PatchBody::Json(_) => PatchKind::Json,
                    PatchBody::Strategic(_) => PatchKind::Strategic,
                };
                Request::Patch { target, subresource: *subresource, kind, body: patch.to_json(), options }
            }
            Write::Delete { only_if, grace_seconds, .. } => Request::Delete {
                target,
                preconditions: only_if.clone(),
                grace_seconds: grace_seconds.map(i64::from),
                propagation: DeletePropagation::Background,
                dry_run: false,
            },
            Write::Note(note) => {
                let body = note.patch(None).to_json();
                Request::Patch { target, subresource: None, kind: PatchKind::Merge, body, options }
            }
            Write::Bind { uid, node, .. } => {
                Request::Bind { target, uid: Some(uid.clone()), node: node.clone(), dry_run: false }
            }
        }
    }

    pub(crate) fn dry_run(&self) -> bool {
        match self {
            Request::Create { options, .. } | Request::Update { options, .. } | Request::Patch { options, .. } => {
                options.dry_run
            }
            Request::Delete { dry_run, .. } | Request::Bind { dry_run, .. } => *dry_run,
        }
    }
}
