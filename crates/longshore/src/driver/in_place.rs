//! The reference driver in the place of an in-tree plugin: it answers under the name of the plugin's CSI driver, and
//! calls its volumes and nodes as that one would, so that in-tree objects can be tried with real mounts and no cloud.

use csi::{Call, Code, Response, Status};
use rules_driver::{Config, Feature};
use rules_translate::Plugin;

/// The project and the zone that all of its volumes and nodes are in.
const PROJECT: &str = "rehearsal";
const ZONE: &str = "here-one1-a";
/// Parameters of the plugin's classes that have no meaning for a disk of this machine.
const WITHOUT_MEANING: [&str; 2] = ["type", "replication-type"];
/// What the plugin never knew, so that its objects say nothing of it; and places, since one machine has but one.
const WITHOUT: [Feature; 9] = [
    Feature::List,
    Feature::Snapshots,
    Feature::Clone,
    Feature::Get,
    Feature::Health,
    Feature::Modify,
    Feature::Groups,
    Feature::Ephemeral,
    Feature::Topology,
];

/// The plugin that the driver can take the place of. An error is a sentence.
pub fn plugin(name: &str) -> Result<Plugin, String> {
    match Plugin::named(name) {
        Some(Plugin::GcePd) => Ok(Plugin::GcePd),
        Some(_) | None => Err(format!(
            "the reference driver takes the place of {} alone, whose volumes are disks that are called by a name",
            Plugin::GcePd
        )),
    }
}

/// The driver that has taken over the plugin.
pub fn config(plugin: Plugin, config: Config) -> Config {
    let mut without = config.without;
    without.extend(WITHOUT);
    // Never alone with its disks: the plugin, or its stand-in, may work on them too.
    let own = (config.node_id.clone(), config.zone.clone());
    let peers = config.peers.into_iter().chain([own]).map(|(node, zone)| (node_id(&node), zone)).collect();
    Config { name: plugin.driver().into(), node_id: node_id(&config.node_id), peers, without, ..config }
}

/// What the driver calls a node.
fn node_id(node: &str) -> String {
    format!("projects/{PROJECT}/zones/{ZONE}/instances/{node}")
}

/// What it calls a disk.
fn handle(disk: &str) -> String {
    format!("projects/{PROJECT}/zones/{ZONE}/disks/{disk}")
}

/// The disk in a handle, whatever project and place the handle names or leaves open.
fn disk(handle: &str) -> Result<&str, Status> {
    let parts: Vec<&str> = handle.split('/').collect();
    match parts[..] {
        ["projects", _, "zones" | "regions", _, "disks", disk] => Ok(disk),
        _ => Err(Status::from_driver(
            Code::NotFound,
            format!("there is no disk {handle:?}; they are called as {}", handle_form()),
        )),
    }
}

fn handle_form() -> &'static str {
    "projects/PROJECT/zones/ZONE/disks/NAME"
}

/// The request as the reference driver reads it.
pub fn asked(mut call: Call) -> Result<Call, Status> {
    if let Call::CreateVolume(request) = &mut call {
        request.parameters.retain(|key, _| !WITHOUT_MEANING.contains(&key.as_str()));
        return Ok(call);
    }
    let id = match &mut call {
        Call::DeleteVolume(request) => &mut request.volume_id,
        Call::ControllerPublishVolume(request) => &mut request.volume_id,
        Call::ControllerUnpublishVolume(request) => &mut request.volume_id,
        Call::ValidateVolumeCapabilities(request) => &mut request.volume_id,
        Call::ControllerExpandVolume(request) => &mut request.volume_id,
        Call::NodeStageVolume(request) => &mut request.volume_id,
        Call::NodeUnstageVolume(request) => &mut request.volume_id,
        Call::NodePublishVolume(request) => &mut request.volume_id,
        Call::NodeUnpublishVolume(request) => &mut request.volume_id,
        Call::NodeGetVolumeStats(request) => &mut request.volume_id,
        Call::NodeExpandVolume(request) => &mut request.volume_id,
        _about_no_volume => return Ok(call),
    };
    *id = disk(id)?.to_string();
    Ok(call)
}

/// The answer as the plugin's driver would give it.
pub fn answered(mut response: Response) -> Response {
    if let Response::CreateVolume(made) = &mut response
        && let Some(volume) = &mut made.volume
    {
        volume.volume_id = handle(&volume.volume_id);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use csi::v1;

    #[test]
    fn a_disk_is_the_same_whatever_its_handle_leaves_open() {
        for handle in [
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d1",
            "projects/UNSPECIFIED/regions/us-central1/disks/d1",
            &handle("d1"),
        ] {
            let call = Call::DeleteVolume(v1::DeleteVolumeRequest { volume_id: handle.into(), ..Default::default() });
            assert_eq!(asked(call).unwrap().volume(), "d1");
        }
        for foreign in ["d1", "", "projects/p/zones/z/disks/d1/more", "projects/p/disks/z/zones/d1"] {
            let call = Call::DeleteVolume(v1::DeleteVolumeRequest { volume_id: foreign.into(), ..Default::default() });
            assert_eq!(asked(call).unwrap_err().code, Code::NotFound, "{foreign}");
        }
    }

    // S4-13: what the driver made is found again by the handle that its translation and its attacher's repair give.
    #[test]
    fn handles_and_node_ids_have_the_shape_that_the_translation_reads() {
        let volume = v1::Volume { volume_id: "d1".into(), ..Default::default() };
        let made = Response::CreateVolume(v1::CreateVolumeResponse { volume: Some(volume) });
        let Response::CreateVolume(made) = answered(made) else { panic!() };
        let made = made.volume.unwrap().volume_id;
        let open = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d1";
        let repaired = rules_translate::repair_handle(Plugin::GcePd.driver(), open, &node_id("here")).unwrap();
        assert_eq!(repaired, made);
        assert!(rules_translate::same_volume(Plugin::GcePd.driver(), &made, open));
    }

    #[test]
    fn only_the_plugin_whose_shape_it_speaks_is_taken() {
        assert_eq!(plugin("kubernetes.io/gce-pd"), Ok(Plugin::GcePd));
        assert!(plugin("kubernetes.io/aws-ebs").unwrap_err().contains("kubernetes.io/gce-pd alone"));
    }
}
