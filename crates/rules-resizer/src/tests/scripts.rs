//! The scenarios under `scripts`: claim `c` of 1Gi, bound to volume `v` of driver `d`, which grows and modifies
//! volumes.

use alloc::string::String;

use csi::ControllerRpc;
use prove_lab::{Lab, Scene, play_scripts};

use crate::{Local, Resizer};

fn scene() -> Scene<Resizer> {
    let local = Local::new("d", [ControllerRpc::ExpandVolume, ControllerRpc::ModifyVolume]);
    let mut lab = Lab::new("n", local);
    lab.make("class s provisioner=d expand=true");
    lab.make("claim c class=s volume=v");
    lab.make("volume v class=s handle=h spec.csi.fsType=ext4 claim=c policy=Delete");
    lab.change(r#"claim c status.phase=Bound status.capacity={"storage":"1Gi"} status.accessModes=["ReadWriteOnce"]"#);
    let mut scene = Scene::new(lab);
    scene.command = command;
    scene
}

fn command(scene: &mut Scene<Resizer>, words: &[&str]) -> Option<String> {
    match words {
        ["driver", "needs", "the", "node"] => scene.driver.needs_node = true,
        // What kubelet does when it is its turn.
        ["node", "resizes", "to", size] => {
            let status = alloc::format!(r#"status.capacity={{"storage":"{size}"}}"#);
            scene.lab.change(&alloc::format!(
                "claim c {status} status.allocatedResourceStatuses=null status.conditions=null"
            ));
        }
        _ => return None,
    }
    Some(String::new())
}

#[test]
fn scripts() {
    play_scripts(env!("CARGO_MANIFEST_DIR"), "", scene);
}
