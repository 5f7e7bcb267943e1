use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use api::{
    CSIStorageCapacity, Kind, LabelSelector, Meta, Object, ObjectRef, OwnerReference, Patch, Precondition, Quantity,
    Value, Write,
};
use control::{Effect, Permission};
use csi::Call;
use csi::v1::{GetCapacityRequest, Topology};
use serde_json::json;

use super::index::labels;
use crate::{Local, Segments};

/// The things this controller does.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum CapacityAction {
    /// Ask the driver what there is.
    Ask {
        /// The driver's name.
        driver: Arc<str>,
        /// The class's parameters, all of them.
        parameters: BTreeMap<String, String>,
        segments: Segments,
    },
    /// Say it for the first time.
    Publish {
        /// The driver and where to say it.
        local: Local,
        class: String,
        segments: Segments,
        /// How much there is.
        available: i64,
        /// The largest volume.
        largest: Option<i64>,
    },
    /// Say something new.
    Update {
        object: Arc<CSIStorageCapacity>,
        /// To whom it belongs.
        owner: Option<OwnerReference>,
        /// How much there is.
        available: i64,
        /// The largest volume.
        largest: Option<i64>,
    },
    /// Say nothing any more.
    Withdraw(Arc<CSIStorageCapacity>),
}

impl control::Action for CapacityAction {
    fn name(&self) -> &'static str {
        match self {
            CapacityAction::Ask { .. } => "AskCapacity",
            CapacityAction::Publish { .. } => "PublishCapacity",
            CapacityAction::Update { .. } => "UpdateCapacity",
            CapacityAction::Withdraw(_) => "WithdrawCapacity",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            CapacityAction::Ask { driver, parameters, segments } => {
                let place = (!segments.is_empty()).then(|| Topology { segments: segments.clone() });
                let request = GetCapacityRequest {
                    parameters: parameters.clone(),
                    accessible_topology: place,
                    ..GetCapacityRequest::default()
                };
                Effect::call_driver(&**driver, Call::GetCapacity(request))
            }
            CapacityAction::Publish { local, class, segments, available, largest } => {
                publish(local, class, segments, *available, *largest)
            }
            CapacityAction::Update { object, owner, available, largest } => {
                update(object, owner.as_ref(), *available, *largest)
            }
            CapacityAction::Withdraw(object) => Effect::Write(Write::Delete {
                target: target(object),
                only_if: Precondition::same(&object.metadata),
                grace_seconds: None,
            }),
        }
    }

    fn permissions() -> &'static [Permission] {
        const PERMISSIONS: &[Permission] = &[
            Permission::new(Kind::CSIStorageCapacity, "", "create"),
            Permission::new(Kind::CSIStorageCapacity, "", "patch"),
            Permission::new(Kind::CSIStorageCapacity, "", "delete"),
        ];
        PERMISSIONS
    }
}

fn target(object: &CSIStorageCapacity) -> ObjectRef {
    ObjectRef { kind: Kind::CSIStorageCapacity, key: object.metadata.key() }
}

fn publish(local: &Local, class: &str, segments: &Segments, available: i64, largest: Option<i64>) -> Effect {
    let (namespace, owner) = match &local.settings.capacity {
        Some(settings) => (settings.namespace.as_str(), settings.owner.clone()),
        None => ("", None),
    };
    let (labels, name) = (labels(local), super::index::name(class, segments, local));
    let object = Object::from(CSIStorageCapacity {
        metadata: Meta { labels, owner_references: owner.into_iter().collect(), ..Meta::in_namespace(namespace, name) },
        node_topology: Some(LabelSelector { match_labels: segments.clone(), ..LabelSelector::default() }),
        storage_class_name: class.into(),
        capacity: Some(Quantity::from_bytes(available)),
        maximum_volume_size: largest.map(Quantity::from_bytes),
    });
    Effect::Write(Write::Create { target: object.reference(), body: with_topology(object.to_json(), segments) })
}

/// An empty selector means everywhere, no selector nowhere: it is written even if it says nothing.
fn with_topology(mut body: Value, segments: &Segments) -> Value {
    if segments.is_empty() {
        body["nodeTopology"] = json!({});
    }
    body
}

fn update(object: &CSIStorageCapacity, owner: Option<&OwnerReference>, available: i64, largest: Option<i64>) -> Effect {
    let mut body = json!({
        "capacity": Quantity::from_bytes(available),
        "maximumVolumeSize": largest.map(Quantity::from_bytes),
    });
    if let Some(owner) = owner.filter(|owner| !object.metadata.owner_references.contains(owner)) {
        body["metadata"] = json!({ "ownerReferences": [owner] });
    }
    let patch = Patch::merge(Precondition::unchanged(&object.metadata), body);
    Effect::Write(Write::Patch { target: target(object), subresource: None, patch })
}

impl fmt::Debug for CapacityAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = control::Action::name(self);
        match self {
            CapacityAction::Ask { segments, .. } => write!(f, "{name}({segments:?})"),
            CapacityAction::Publish { class, segments, .. } => write!(f, "{name}({class} in {segments:?})"),
            CapacityAction::Update { object, .. } | CapacityAction::Withdraw(object) => {
                write!(f, "{name}({})", object.metadata.name)
            }
        }
    }
}
