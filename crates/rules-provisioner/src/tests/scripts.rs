//! The scenarios under `scripts`: driver `d` with intents in its journal, Lease `longshore-journal-d`.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use api::names;
use csi::ControllerRpc;
use prove_lab::{Lab, Scene, play_scripts};

use crate::{Intent, Local, Provisioner, Settings};

fn scene() -> Scene<Provisioner> {
    let settings = Settings { intent: Intent::InJournal, namespace: "n".into(), ..Settings::default() };
    let mut scene = Scene::new(Lab::new("n", Local { settings: settings.into(), ..Local::new("d") }));
    (scene.reborn, scene.command) = (|scene: &Scene<Provisioner>| scene.lab.local().in_view(), command);
    scene
}

fn command(scene: &mut Scene<Provisioner>, words: &[&str]) -> Option<String> {
    match words {
        // A claim that binding has asked the driver to make a volume for.
        ["asked", name, fields @ ..] => scene.lab.make(&format!(
            "claim {name} class=fast @{}=d @{}=d {}",
            names::STORAGE_PROVISIONER,
            names::STORAGE_PROVISIONER_BETA,
            fields.join(" ")
        )),
        ["record", "intents", "on", "claims"] => scene.lab.update_local(|local| {
            let settings = Settings { intent: Intent::OnClaim, ..Settings::clone(&local.settings) };
            local.settings = Arc::new(settings);
        }),
        ["driver", "clones"] => {
            scene.lab.update_local(|local| local.capabilities.extend([ControllerRpc::CloneVolume]));
        }
        _ => return None,
    }
    Some(String::new())
}

#[test]
fn scripts() {
    play_scripts(env!("CARGO_MANIFEST_DIR"), "", scene);
}
