//! The PersistentVolume that records what the driver made (sidecars 2.9). For a class of the in-tree plugin our driver has
//! taken over it is the one the plugin would have written.

use alloc::format;
use alloc::string::{String, ToString};

use api::{
    ClaimRef, CsiSource, Meta, NodeRequirement, NodeSelector, NodeSelectorTerm, Object, PersistentVolume,
    PersistentVolumeClaim, Quantity, ReclaimPolicy, SecretReference, VolumeNodeAffinity, VolumeSpec, Write, names,
};
use control::{Effect, Mode};
use csi::ControllerRpc;
use rules_translate::Plugin;

use crate::topology::Segments;
use crate::{InTree, Local, Made, Terms};

pub(crate) fn create(
    claim: &PersistentVolumeClaim,
    local: &Local,
    terms: &Terms,
    made: &Made,
    in_tree: Option<InTree>,
) -> Effect {
    let volume = PersistentVolume {
        metadata: metadata(local, terms).into(),
        spec: spec(claim, local, terms, made),
        ..PersistentVolume::default()
    };
    let volume = Object::from(match in_tree {
        Some(in_tree) => as_the_plugin_would(volume, in_tree, local),
        None => volume,
    });
    Effect::Write(Write::Create { target: volume.reference(), body: volume.to_json() })
}

/// S4-8, S4-9: the same volume the plugin would have recorded. If our driver made it, it has the mark that it is the
/// driver's now. That is what Kubernetes puts there as well, once it sees who provisioned it (S4-42).
fn as_the_plugin_would(volume: PersistentVolume, in_tree: InTree, local: &Local) -> PersistentVolume {
    // What cannot be translated never comes here: the driver's answer was looked at in that light.
    let mut volume = rules_translate::volume_to_in_tree(&volume).map_or(volume, |translated| translated.object);
    volume.metadata.annotations.insert(names::PROVISIONED_BY.into(), in_tree.plugin.name().into());
    if local.is_plugin() {
        of_the_plugin(&mut volume.metadata, in_tree.plugin);
    } else {
        volume.metadata.annotations.insert(names::MIGRATED_TO.into(), local.driver.to_string());
    }
    volume
}

/// PV-39: what kube-controller-manager says on what its plugin made. It has no secrets to tell.
fn of_the_plugin(metadata: &mut Meta, plugin: Plugin) {
    metadata.annotations.retain(|key, _| *key == names::PROVISIONED_BY);
    metadata.annotations.insert(names::BOUND_BY_CONTROLLER.into(), "yes".into());
    let stem = plugin.name().trim_start_matches("kubernetes.io/");
    metadata.annotations.insert(names::CREATED_BY.into(), format!("{stem}-dynamic-provisioner"));
}

/// Why what the driver made could not be recorded as the plugin would have done it.
pub(crate) fn why_not_in_tree(made: &Made, in_tree: InTree) -> Option<String> {
    let source = CsiSource {
        driver: in_tree.plugin.driver().into(),
        volume_handle: made.volume_id.clone(),
        volume_attributes: made.context.clone(),
        ..CsiSource::default()
    };
    let node_affinity = if in_tree.placed { affinity(&made.topology) } else { None };
    let spec = VolumeSpec { csi: Some(source), node_affinity, ..VolumeSpec::default() };
    match rules_translate::volume_to_in_tree(&PersistentVolume { spec, ..PersistentVolume::default() }) {
        Ok(translated) if translated.lost.iter().any(|lost| lost.field == "csi.volumeHandle") => {
            Some(format!("the driver does not say what {} calls the volume", in_tree.plugin))
        }
        Ok(_) => None,
        Err(error) => Some(format!("the driver made a volume that cannot be recorded: {error}")),
    }
}

fn metadata(local: &Local, terms: &Terms) -> Meta {
    let mut metadata = Meta::named(terms.request.name.as_str());
    // P31: present even if there is no secret, so that nobody has to ask the class later on.
    let (name, namespace) = parts(terms.secrets.provision.as_ref());
    metadata.annotations = [
        (names::PROVISIONED_BY.into(), local.driver.to_string()),
        (names::DELETION_SECRET_NAME.into(), name),
        (names::DELETION_SECRET_NAMESPACE.into(), namespace),
    ]
    .into();
    if let Some(secret) = &terms.secrets.controller_modify {
        metadata.annotations.insert(names::MODIFY_SECRET_NAME.into(), secret.name.clone()); // P32
        metadata.annotations.insert(names::MODIFY_SECRET_NAMESPACE.into(), secret.namespace.clone());
    }
    // What policy keeps needs no hold of ours; upstream puts it on and takes it off again.
    if terms.reclaim_policy == ReclaimPolicy::Delete {
        metadata.finalizers.push(local.finalizer().into());
    }
    metadata.finalizers.extend(attacher_finalizer(local));
    metadata
}

/// The finalizer of the attacher that works beside us, if there is one and it has something to do.
pub(crate) fn attacher_finalizer(local: &Local) -> Option<String> {
    (local.settings.attaches && local.can(ControllerRpc::PublishUnpublishVolume))
        .then(|| names::attacher_finalizer(&local.driver))
}

fn parts(secret: Option<&SecretReference>) -> (String, String) {
    secret.map(|secret| (secret.name.clone(), secret.namespace.clone())).unwrap_or_default()
}

fn spec(claim: &PersistentVolumeClaim, local: &Local, terms: &Terms, made: &Made) -> VolumeSpec {
    let request = &terms.request;
    // P20, P22: what the driver says, or what was asked when it does not say.
    let bytes = if made.capacity_bytes == 0 { request.required_bytes } else { made.capacity_bytes };
    VolumeSpec {
        capacity: [("storage".into(), Quantity::from_bytes(bytes))].into(),
        access_modes: claim.spec.access_modes.clone(),
        claim_ref: Some(ClaimRef::to(&claim.metadata).into()),
        persistent_volume_reclaim_policy: terms.reclaim_policy.clone(),
        storage_class_name: terms.class.clone(),
        mount_options: request.mount_options.clone(),
        volume_mode: Some(claim.volume_mode().clone()),
        volume_attributes_class_name: terms.attributes_class.clone(),
        node_affinity: if local.uses_topology() { affinity(&made.topology) } else { None },
        csi: Some(source(local, terms, made)),
        ..VolumeSpec::default()
    }
}

fn source(local: &Local, terms: &Terms, made: &Made) -> CsiSource {
    let (request, secrets) = (&terms.request, &terms.secrets);
    let mut volume_attributes = made.context.clone();
    if !local.settings.identity.is_empty() {
        // A driver that uses the same key has the last word.
        volume_attributes.entry(names::PROVISIONER_IDENTITY.into()).or_insert(local.settings.identity.clone());
    }
    CsiSource {
        driver: local.csi_name().into(),
        volume_handle: made.volume_id.clone(),
        read_only: local.settings.controller_publish_readonly && request.modes == [Mode::MultiNodeReader],
        fs_type: if request.block { String::new() } else { request.fs_type.clone() }, // P14
        volume_attributes,
        controller_publish_secret_ref: secrets.controller_publish.clone(),
        node_stage_secret_ref: secrets.node_stage.clone(),
        node_publish_secret_ref: secrets.node_publish.clone(),
        controller_expand_secret_ref: secrets.controller_expand.clone(),
        node_expand_secret_ref: secrets.node_expand.clone(),
    }
}

/// P45: one term per place, each label exactly. Places without labels say nothing, and a selector without terms would be
/// refused.
fn affinity(places: &[Segments]) -> Option<VolumeNodeAffinity> {
    let term = |place: &Segments| NodeSelectorTerm {
        match_expressions: place.iter().map(|(key, value)| NodeRequirement::is(key.as_str(), value.as_str())).collect(),
        ..NodeSelectorTerm::default()
    };
    let terms: alloc::vec::Vec<_> = places.iter().filter(|place| !place.is_empty()).map(term).collect();
    let required = (!terms.is_empty()).then_some(NodeSelector { node_selector_terms: terms })?;
    Some(VolumeNodeAffinity { required: Some(required) })
}
