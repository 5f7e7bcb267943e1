//! The scenarios under `scripts`: volume `v` of driver `d`, which is registered on nodes `a` and `b`.

use alloc::format;
use alloc::string::String;

use csi::{Capabilities, ControllerRpc};

use prove_lab::{Lab, Scene, play_scripts};

use crate::{Attacher, Listing, Local};

fn scene() -> Scene<Attacher> {
    let local = Local::new("d", [ControllerRpc::PublishUnpublishVolume]);
    let mut lab = Lab::new("n", local);
    lab.make("volume v handle=h spec.csi.fsType=ext4 spec.csi.volumeAttributes.k=v");
    for node in ["a", "b"] {
        lab.make(&format!("node {node}"));
        let driver = format!(r#"{{"name":"d","nodeID":"id-{node}","topologyKeys":null}}"#);
        lab.make(&format!("csinode {node} spec.drivers=[{driver}]"));
    }
    let mut scene = Scene::new(lab);
    (scene.reborn, scene.command) = (reborn, command);
    scene
}

/// What the driver listed is forgotten; flags are not.
fn reborn(scene: &Scene<Attacher>) -> Local {
    Local { listing: Listing::default(), ..scene.lab.local().clone() }
}

fn command(scene: &mut Scene<Attacher>, words: &[&str]) -> Option<String> {
    match words {
        ["driver", "does", "not", "publish"] => scene.lab.update_local(|local| local.capabilities = Capabilities::NONE),
        _ => return None,
    }
    Some(String::new())
}

#[test]
fn scripts() {
    play_scripts(env!("CARGO_MANIFEST_DIR"), "", scene);
}
