//! The fields of messages that have a rule, and the rule of each: required or not, how large, secret.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::v1;
use crate::v1::volume_capability::AccessType;
use crate::v1::volume_content_source::Type as Source;
use crate::v1::{CapacityRange, VolumeCapability, VolumeContentSource};

/// A field of a message, by the rule for it. CSI bounds strings to 128 bytes, node ids to 256 and maps to 4 KiB.
#[derive(Clone, Copy)]
pub enum Field<'a> {
    /// The required name of something to be created. It has no control characters.
    Name(&'a str),
    /// A required id.
    Id(&'a str),
    /// Required ids: at least one, and none of them empty.
    Ids(&'a [String]),
    /// An optional string of bounded size: an id, a token, a filesystem type.
    Text(&'a str),
    /// Optional strings, each of bounded size.
    Texts(&'a [String]),
    /// Optional strings that are bounded together, as a map is.
    Flags(&'a [String]),
    /// The required id of a node.
    NodeId(&'a str),
    /// The optional id of a node.
    OptionalNodeId(&'a str),
    /// Ids of nodes.
    NodeIds(&'a [String]),
    /// A required absolute path. The operating system bounds it.
    Path(&'a str),
    /// An optional path.
    OptionalPath(&'a str),
    /// A map of strings.
    Map(&'a BTreeMap<String, String>),
    /// A volume context, which may hold service account tokens.
    Context(&'a BTreeMap<String, String>),
    /// A map whose values nobody may print.
    Secrets(&'a BTreeMap<String, String>),
    /// A range of sizes, optional, but not impossible.
    Range(Option<&'a CapacityRange>),
    /// A required range of sizes.
    RequiredRange(Option<&'a CapacityRange>),
    /// A required volume capability.
    Capability(Option<&'a VolumeCapability>),
    /// An optional volume capability.
    OptionalCapability(Option<&'a VolumeCapability>),
    /// Required volume capabilities: at least one.
    Capabilities(&'a [VolumeCapability]),
    /// Optional volume capabilities.
    OptionalCapabilities(&'a [VolumeCapability]),
    /// What a volume is to be copied from: optional, but it names something.
    ContentSource(Option<&'a VolumeContentSource>),
    /// The length of a page, which is not negative.
    MaxEntries(i32),
    /// A message with fields of its own.
    Message(&'a dyn Fields),
}

/// A message that can list its fields.
pub trait Fields {
    /// Calls `visitor` with the name of each field that has a rule, in the order in which errors are to be reported.
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'static str, Field<'a>));
}

/// Messages in a field: one, none or many of them.
pub(crate) trait Messages {
    fn each<'a>(&'a self, visitor: &mut dyn FnMut(&'a dyn Fields));
}

impl<M: Fields> Messages for Option<M> {
    fn each<'a>(&'a self, visitor: &mut dyn FnMut(&'a dyn Fields)) {
        self.iter().for_each(|message| visitor(message));
    }
}

impl<M: Fields> Messages for Vec<M> {
    fn each<'a>(&'a self, visitor: &mut dyn FnMut(&'a dyn Fields)) {
        self.iter().for_each(|message| visitor(message));
    }
}

/// One function for each kind of field that the tables name.
pub(crate) mod kind {
    use super::*;

    type Visitor<'v, 'a> = &'v mut dyn FnMut(&'static str, Field<'a>);
    type Map = BTreeMap<String, String>;

    macro_rules! kinds {
        ($($kind:ident: $type:ty => $variant:ident($($of:ident)?);)*) => {
            $(
                #[allow(clippy::ptr_arg, reason = "the types are those of the generated messages")]
                pub fn $kind<'a>(name: &'static str, value: &'a $type, visitor: Visitor<'_, 'a>) {
                    visitor(name, Field::$variant(value$(.$of())?));
                }
            )*
        };
    }
    kinds! {
        name: String => Name();
        id: String => Id();
        ids: Vec<String> => Ids();
        text: String => Text();
        texts: Vec<String> => Texts();
        flags: Vec<String> => Flags();
        node_id: String => NodeId();
        optional_node_id: String => OptionalNodeId();
        node_ids: Vec<String> => NodeIds();
        path: String => Path();
        optional_path: String => OptionalPath();
        map: Map => Map();
        context: Map => Context();
        secrets: Map => Secrets();
        range: Option<CapacityRange> => Range(as_ref);
        required_range: Option<CapacityRange> => RequiredRange(as_ref);
        capability: Option<VolumeCapability> => Capability(as_ref);
        optional_capability: Option<VolumeCapability> => OptionalCapability(as_ref);
        capabilities: Vec<VolumeCapability> => Capabilities();
        optional_capabilities: Vec<VolumeCapability> => OptionalCapabilities();
        content_source: Option<VolumeContentSource> => ContentSource(as_ref);
    }

    pub fn max_entries<'a>(name: &'static str, value: &'a i32, visitor: Visitor<'_, 'a>) {
        visitor(name, Field::MaxEntries(*value));
    }

    pub fn message<'a>(name: &'static str, value: &'a impl Messages, visitor: Visitor<'_, 'a>) {
        value.each(&mut |message| visitor(name, Field::Message(message)));
    }
}

/// The messages that stand in fields of others.
macro_rules! inner_messages {
    ($($message:path { $($field:ident: $kind:ident),* })*) => {
        $(impl Fields for $message {
            fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'static str, Field<'a>)) {
                $(kind::$kind(stringify!($field), &self.$field, visitor);)*
            }
        })*
    };
}
inner_messages! {
    v1::volume_capability::MountVolume { fs_type: text, mount_flags: flags, volume_mount_group: text }
    v1::volume_content_source::SnapshotSource { snapshot_id: text }
    v1::volume_content_source::VolumeSource { volume_id: text }
    v1::Volume { volume_id: text, volume_context: map, content_source: content_source, accessible_topology: message }
    v1::Topology { segments: map }
    v1::TopologyRequirement { requisite: message, preferred: message }
    v1::Snapshot { snapshot_id: text, source_volume_id: text, group_snapshot_id: text, accessible_topology: message }
    v1::VolumeGroupSnapshot { group_snapshot_id: text, snapshots: message }
    v1::VolumeHealth { volume_id: text }
    v1::validate_volume_capabilities_response::Confirmed {
        volume_context: map, volume_capabilities: optional_capabilities, parameters: map, mutable_parameters: map
    }
    v1::list_volumes_response::Entry { volume: message, status: message }
    v1::list_volumes_response::VolumeStatus { published_node_ids: node_ids }
    v1::list_snapshots_response::Entry { snapshot: message }
    v1::controller_get_volume_response::VolumeStatus { published_node_ids: node_ids }
    v1::node_get_storage_health_response::StorageBackendHealth { volume_capability: optional_capability }
}

impl Fields for VolumeCapability {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'static str, Field<'a>)) {
        match &self.access_type {
            Some(AccessType::Mount(mount)) => mount.visit(visitor),
            Some(AccessType::Block(_)) | None => {}
        }
    }
}

impl Fields for VolumeContentSource {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'static str, Field<'a>)) {
        match &self.r#type {
            Some(Source::Snapshot(source)) => source.visit(visitor),
            Some(Source::Volume(source)) => source.visit(visitor),
            None => {}
        }
    }
}
