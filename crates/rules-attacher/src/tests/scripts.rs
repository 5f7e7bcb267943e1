//! The scenarios under `scripts`: volume `v` of driver `d`, which is registered on nodes `a` and `b`.

use alloc::format;
use alloc::string::String;

use prove_lab::{Lab, Stage, play_scripts};

use crate::{Attacher, Listing, Local};

fn stage() -> Stage<Attacher> {
    let local = Local { driver: "d".into(), socket: "/csi.sock".into(), publishes: true, ..Local::default() };
    let mut lab = Lab::new("n", local);
    lab.make("volume v handle=h spec.csi.fsType=ext4 spec.csi.volumeAttributes.k=v");
    for node in ["a", "b"] {
        lab.make(&format!("node {node}"));
        let driver = format!(r#"{{"name":"d","nodeID":"id-{node}","topologyKeys":null}}"#);
        lab.make(&format!("csinode {node} spec.drivers=[{driver}]"));
    }
    let mut stage = Stage::new(lab);
    (stage.reborn, stage.command) = (reborn, command);
    stage
}

/// What the driver listed is forgotten; flags are not.
fn reborn(stage: &Stage<Attacher>) -> Local {
    Local { listing: Listing::default(), ..stage.lab.local().clone() }
}

fn command(stage: &mut Stage<Attacher>, words: &[&str]) -> Option<String> {
    match words {
        ["driver", "does", "not", "publish"] => stage.lab.update_local(|local| local.publishes = false),
        _ => return None,
    }
    Some(String::new())
}

#[test]
fn scripts() {
    play_scripts(env!("CARGO_MANIFEST_DIR"), "", stage);
}
