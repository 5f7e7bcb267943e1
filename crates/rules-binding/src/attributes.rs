//! Keeps a VolumeAttributesClass while a claim or a volume has it (PV-58).
//!
//! Owns: the finalizer `kubernetes.io/vac-protection`. Writes: that finalizer. Only reads: classes, claims and volumes.
//!
//! It is a controller of its own because a cluster may not have the kind: then it waits for it, and binding does not.
//! A class is let go on the word of the cache, as upstream does it: nobody's data depends on it, and a claim that names
//! a class which is gone waits for one of that name.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use api::{
    Kind, ObjectKey, ObjectRef, Patch, PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass, Write, names,
};
use control::{Cache, Decision, Effect, Narrate, Outcome, Permission, Route, Rules, Timestamp, Why, routes};

type Woken<'a> = control::Woken<'a, AttributesProtection>;

/// The rules. A key is the name of a class.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttributesProtection;

/// A class, as far as keeping it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributesView {
    /// There is no such class.
    Gone,
    /// It is there.
    Here {
        class: Arc<VolumeAttributesClass>,
        /// If it is being deleted, one of the claims and volumes that have it or are to have it.
        user: Option<String>,
    },
}

/// The things this controller does.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum AttributesAction {
    /// Adds the finalizer to a class that was made without it.
    AddFinalizer(Arc<VolumeAttributesClass>),
    /// Removes it: nothing has the class.
    RemoveFinalizer(Arc<VolumeAttributesClass>),
}

control::reasons! {
    /// Why a VolumeAttributesClass is as it is.
    pub enum AttributesReason {
        /// The class does not exist.
        ClassGone,
        /// The class is kept while something has it.
        ClassKept,
        /// The class is being deleted and does not carry our finalizer.
        ClassBeingDeleted,
        /// The class is being deleted, and something has it.
        ClassInUse,
        /// The class is about to get the finalizer that keeps it while something has it.
        AddingClassFinalizer,
        /// The class is being deleted and nothing has it, so the finalizer goes.
        RemovingClassFinalizer,
    }
}

impl control::Action for AttributesAction {
    fn name(&self) -> &'static str {
        match self {
            AttributesAction::AddFinalizer(_) => "AddFinalizer",
            AttributesAction::RemoveFinalizer(_) => "RemoveFinalizer",
        }
    }

    fn effect(&self) -> Effect {
        let (class, patch) = match self {
            AttributesAction::AddFinalizer(class) => {
                (class, Patch::add_finalizer(&class.metadata, names::VAC_PROTECTION))
            }
            AttributesAction::RemoveFinalizer(class) => {
                (class, Patch::remove_finalizer(&class.metadata, names::VAC_PROTECTION))
            }
        };
        let target = ObjectRef::cluster(Kind::VolumeAttributesClass, class.metadata.name.as_str());
        Effect::Write(Write::Patch { target, subresource: None, patch })
    }

    fn permissions() -> &'static [Permission] {
        const PERMISSIONS: &[Permission] = &[Permission::new(Kind::VolumeAttributesClass, "", "patch")];
        PERMISSIONS
    }
}

impl fmt::Debug for AttributesAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (AttributesAction::AddFinalizer(class) | AttributesAction::RemoveFinalizer(class)) = self;
        write!(f, "{}({})", control::Action::name(self), class.metadata.name)
    }
}

impl Rules for AttributesProtection {
    const NAME: &'static str = "attributes";
    type Key = String;
    type Local = ();
    type View = AttributesView;
    type Action = AttributesAction;
    type Reason = AttributesReason;
    type Memory = ();

    const ROUTES: &'static [Route<Self>] = routes![
        VolumeAttributesClass => each(class_wakes),
        PersistentVolumeClaim => each(claim_wakes),
        PersistentVolume => each(volume_wakes),
    ];

    fn keys(cache: &Cache, _local: &()) -> Vec<String> {
        cache.attributes_classes().map(|class| class.metadata.name.clone()).collect()
    }

    fn view(name: &String, cache: &Cache, _local: &()) -> AttributesView {
        let Some(class) = cache.attributes_class(&ObjectKey::cluster(name.as_str())) else {
            return AttributesView::Gone;
        };
        // Deletions are rare: only then everything is looked at.
        let user = class.metadata.is_deleting().then(|| user(name, cache)).flatten();
        AttributesView::Here { class, user }
    }

    fn decide(_now: Timestamp, view: &AttributesView, _memory: &()) -> Decision<AttributesAction, AttributesReason> {
        let AttributesView::Here { class, user } = view else {
            return Decision::Rest(Why::settled(AttributesReason::ClassGone, "the class does not exist"));
        };
        let held = class.metadata.has_finalizer(names::VAC_PROTECTION);
        match (class.metadata.is_deleting(), held, user) {
            (false, true, _) => {
                Decision::Rest(Why::settled(AttributesReason::ClassKept, "the class is there to be used"))
            }
            (false, false, _) => Decision::Do(
                AttributesAction::AddFinalizer(class.clone()),
                Why::waiting(AttributesReason::AddingClassFinalizer, "adding the finalizer that keeps the class"),
            ),
            (true, true, None) => Decision::Do(
                AttributesAction::RemoveFinalizer(class.clone()),
                Why::waiting(AttributesReason::RemovingClassFinalizer, "the class is being deleted and nothing has it"),
            ),
            (true, true, Some(user)) => Decision::Rest(Why::waiting(
                AttributesReason::ClassInUse,
                format!("the class is being deleted once nothing has it any more, such as {user}"),
            )),
            (true, false, _) => {
                Decision::Rest(Why::settled(AttributesReason::ClassBeingDeleted, "the class is being deleted"))
            }
        }
    }

    fn remember(_now: Timestamp, _memory: (), _did: &AttributesAction, _got: &Outcome) {}

    fn learn(_local: &mut (), _did: &AttributesAction, _got: &Outcome, _cache: &Cache) -> Vec<String> {
        Vec::new()
    }

    fn object(name: &String) -> ObjectRef {
        ObjectRef::cluster(Kind::VolumeAttributesClass, name.as_str())
    }
}

impl Narrate for AttributesProtection {}

/// A volume or claim that has the class, is about to have it, or asks for it.
fn user(class: &str, cache: &Cache) -> Option<String> {
    let volume = cache.volumes().find(|volume| volume.spec.volume_attributes_class_name.as_deref() == Some(class));
    let claim = || cache.claims().find(|claim| named(claim).contains(class));
    match volume {
        Some(volume) => Some(format!("volume {}", volume.metadata.name)),
        None => claim().map(|claim| format!("claim {}", claim.metadata.key())),
    }
}

fn named(claim: &PersistentVolumeClaim) -> BTreeSet<&str> {
    let wanted = claim.spec.volume_attributes_class_name.as_deref();
    let current = claim.status.current_volume_attributes_class_name.as_deref();
    let target = claim.status.modify_volume_status.as_ref();
    let target = target.map(|status| status.target_volume_attributes_class_name.as_str());
    [wanted, current, target].into_iter().flatten().collect()
}

fn class_wakes(class: &VolumeAttributesClass, woken: &mut Woken<'_>) {
    woken.wake(class.metadata.name.clone());
}

fn claim_wakes(claim: &PersistentVolumeClaim, woken: &mut Woken<'_>) {
    named(claim).into_iter().for_each(|class| wake_if_going(class, woken));
}

fn volume_wakes(volume: &PersistentVolume, woken: &mut Woken<'_>) {
    volume.spec.volume_attributes_class_name.iter().for_each(|class| wake_if_going(class, woken));
}

/// Who uses a class that stays does not matter.
fn wake_if_going(class: &str, woken: &mut Woken<'_>) {
    let found = woken.cache.attributes_class(&ObjectKey::cluster(class));
    if found.is_some_and(|class| class.metadata.is_deleting()) {
        woken.wake(class.into());
    }
}
