//! The laws, and nothing of the rules.
//!
//! A second opinion on every state and every effect: the checks look at the objects, at the driver and at the machines,
//! and do not know which controllers exist or how they decide. Each law is a [`Law`]; each way to break one is a
//! [`Violation`]. There is one file per group of laws, and each `check_*` function is one look at one group.
//!
//! A law that no planted wrong rule breaks would prove nothing: `tests/refuted` has one for every variant of [`Law`].

mod attach;
mod binding;
mod effects;
mod machine;
mod migrated;
mod node;
mod provision;
mod register;
mod sizes;
mod store;
mod violation;

use api::{InTreeSource, PersistentVolume};
use control::Effect;
use std::fmt;

use crate::world::World;
pub(crate) use effects::{check_effect, check_role};
pub(crate) use provision::{entries, note_question};
pub(crate) use register::{check_entries, entry as register_entry, uses as register_uses};
pub(crate) use store::{check_passage, check_write};
pub use violation::Violation;

macro_rules! laws {
    ($($(#[doc = $doc:literal])+ $law:ident $name:literal: $sentence:literal;)+) => {
        /// What must hold. The numbers are those of the reliability reference.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Law { $($(#[doc = $doc])+ $law),+ }

        impl Law {
            /// Every law there is.
            pub const ALL: &[Law] = &[$(Law::$law),+];

            /// A short name.
            pub fn name(self) -> &'static str {
                match self { $(Law::$law => $name),+ }
            }

            /// The law in words.
            pub fn sentence(self) -> &'static str {
                match self { $(Law::$law => $sentence),+ }
            }
        }
    };
}

laws! {
    /// Reliability 24 and 25.
    OneNode "one-node": "a single-node volume is on one node at a time";
    /// Reliability 26 and 29.
    MountedIsAttached "mounted-is-attached": "nothing is mounted that is not attached";
    /// Reliability 26.
    NoDetachWhileMounted "no-detach-while-mounted": "a volume is not detached while it is mounted";
    /// Reliability 30.
    MountedIsInUse "mounted-is-in-use": "what is mounted is reported in use";
    /// Reliability 45.
    MountedIsRecorded "mounted-is-recorded": "a record exists before the first node call and until the last";
    /// Reliability 39 and 40.
    StageOrder "stage-order": "unstage never precedes the last unpublish";
    /// Reliability 41 and 42.
    RunningHasVolumes "running-has-volumes": "a process runs only while its volumes are in place";
    /// Reliability 41 and 53.
    RightVolume "right-volume": "a process sees its own volume, as its pod asked for it, and never a bare directory";
    /// Reliability 44.
    OnePod "one-pod": "a volume that takes one pod is published for one at a time";
    /// Reliability 46.
    RecordsWhole "records-whole": "a record is whole, old or new, also after a loss of power";
    /// Reliability 48.
    UnreadableInUse "unreadable-in-use": "a volume whose record cannot be read is left alone and stays reported";
    /// What a driver alone may be told.
    SecretsKept "secrets-kept": "a secret is in no file and in no other object";
    /// Reliability 52.
    InlineOwn "inline-own": "a pod's own volume has the handle of the pod, and is published and nothing else";
    /// Reliability 54.
    GrowsInPlace "grows-in-place": "a filesystem is grown only where its record says that it is staged and published";
    /// Reliability 59.
    ControllerFirst "controller-first": "a filesystem is grown only after its volume has";
    /// S4-33: plugin and driver never serve one volume beside each other.
    OneServer "one-server": "a volume is attached by the driver only where no plugin serves or holds it";
    /// S4-32: what the seed leaves open, a node that leaves the plugin to a driver for which nobody attaches.
    GateObeyed "gate-obeyed": "no volume of a plugin is newly attached while the controllers have its gate off";
    /// Reliability 32.
    AttachedIsAttached "attached-is-attached": "an attachment that says attached is attached";
    /// Reliability 33.
    FinalizerAfterDetach "finalizer-after-detach": "an attachment's finalizer goes only after the driver has detached";
    /// Reliability 1 and 7.
    Accounted "accounted": "no volume exists that no object names and no intent records";
    /// Reliability 6.
    IntentFirst "intent-first": "the intent is recorded before the volume is created";
    /// Reliability 8.
    NoDeleteInUse "no-delete-in-use": "a volume is not deleted while it is attached or bound";
    /// Reliability 8, 105.
    KeptStays "kept-stays": "a volume that the user keeps before its deletion is decided is not deleted";
    /// Reliability 21.
    UsedClaimStays "used-claim-stays": "a claim stays while a pod uses it that was placed before its deletion";
    /// Reliability 4 and 16.
    OneToOne "one-to-one": "a volume has at most one claim and a claim at most one volume";
    /// Reliability 13: nothing is made for a claim that is gone.
    ForAClaim "for-a-claim": "a volume is created only for a claim that exists, or on an intent that will undo it";
    /// Reliability 12.
    SourceStays "source-stays": "what a volume is made from is not deleted while that is under way";
    /// Reliability 55: what objects say of a size is true, and no volume shrinks.
    SizesTrue "sizes-true": "a claim says no more than its volume, its volume no more than there is, and none shrinks";
    /// Reliability 56.
    NodeFirst "node-first": "a claim's size rises only after its filesystem has grown";
    /// Reliability 57.
    SizeOnRecord "size-on-record": "the size asked of the driver, and any that may still come, is on record in the claim";
    /// Reliability 58.
    NeverSmaller "never-smaller": "the driver is never asked for less than the volume has";
    /// Reliability 60.
    AttributesTrue "attributes-true": "attributes are named only when the driver has them, and on record before it is asked";
    /// Reliability 63.
    ListedAsRegistered "listed-as-registered": "a driver is told that it is registered only while CSINode lists it";
    /// Reliability 64.
    EntryStaysInUse "entry-stays-in-use": "a driver's entry stays in CSINode while volumes of it are in use";
    /// Reliability 65.
    OneRegistered "one-registered": "one driver of a name is registered on a node at a time";
    /// A node that lives is not called dead, and keeps its pods.
    SilentFirst "silent-first": "a node is called Unknown, and pods are taken from it, only after it fell silent";
    /// Reliability 37, 49, 115: rest.
    AsAsked "as-asked": "at rest the world is as asked";
    /// Reliability 114.
    SilentRestart "silent-restart": "a restart at rest changes nothing";
    /// A controller waits for no wake that never comes.
    NobodyOversleeps "nobody-oversleeps": "whoever has something to do is woken";
    /// Reliability 109 and 115.
    ComesToRest "comes-to-rest": "when user and faults stop, the world comes to rest";
    /// Reliability 85, 99.
    VersionsGrow "versions-grow": "versions only grow, and an object keeps its uid and its deletion";
    /// Reliability 86.
    StaleIsRefused "stale-is-refused": "a write on a stale version or a foreign uid is refused and changes nothing";
    /// Reliability 99.
    FinalizersHold "finalizers-hold": "an object stays while it has finalizers";
    /// The RBAC role printed for a controller is enough for all it does.
    WithinItsRole "within-its-role": "a controller does only what its role allows";
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}

/// What is decided on, at the moment it is decided.
pub(crate) fn check_decision(world: &World, actor: &str, effect: &Effect) -> Option<Violation> {
    migrated::check_decision(world, actor, effect).or_else(|| provision::check_kept(world, actor, effect))
}

/// The laws of every state.
pub(crate) fn check_state(world: &World) -> Option<Violation> {
    attach::check_one_node(world)
        .or_else(|| node::check_mounts(world))
        .or_else(|| node::check_processes(world))
        .or_else(|| machine::check_seen(world))
        .or_else(|| machine::check_one_pod(world))
        .or_else(|| machine::check_records(world))
        .or_else(|| attach::check_attachments(world))
        .or_else(|| provision::check_volumes(world))
        .or_else(|| binding::check_bindings(world))
        .or_else(|| sizes::check_sizes(world))
        .or_else(|| sizes::check_attributes(world))
        .or_else(|| register::check_one_registered(world))
}

/// The driver's id of a volume; empty if no driver made it. The worlds have in-tree volumes of one plugin, whose driver
/// calls them as it does.
pub(crate) fn handle(volume: &PersistentVolume) -> &str {
    match (&volume.spec.csi, volume.spec.in_tree.as_deref()) {
        (Some(csi), _) => &csi.volume_handle,
        (None, Some(InTreeSource::AwsElasticBlockStore(disk))) => &disk.volume_id,
        (None, _) => "",
    }
}
