//! The scenarios under `scripts`: driver `d` with intents in its journal, Lease `longshore-journal-d`.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use api::names;
use prove_lab::{Lab, Stage, play_scripts};

use crate::{Abilities, Intent, Local, Provisioner, Settings};

fn stage() -> Stage<Provisioner> {
    let settings = Settings { intent: Intent::InJournal, namespace: "n".into(), ..Settings::default() };
    let mut stage = Stage::new(Lab::new("n", Local { settings: settings.into(), ..Local::new("d", "/csi.sock") }));
    (stage.reborn, stage.command) = (|stage: &Stage<Provisioner>| stage.lab.local().in_view(), command);
    stage
}

fn command(stage: &mut Stage<Provisioner>, words: &[&str]) -> Option<String> {
    match words {
        // A claim that binding has asked the driver to make a volume for.
        ["asked", name, fields @ ..] => stage.lab.make(&format!(
            "claim {name} class=fast @{}=d @{}=d {}",
            names::STORAGE_PROVISIONER,
            names::STORAGE_PROVISIONER_BETA,
            fields.join(" ")
        )),
        ["record", "intents", "on", "claims"] => stage.lab.update_local(|local| {
            let settings = Settings { intent: Intent::OnClaim, ..Settings::clone(&local.settings) };
            local.settings = Arc::new(settings);
        }),
        ["driver", "clones"] => {
            stage.lab.update_local(|local| local.abilities = Abilities { clones: true, ..Abilities::plain() });
        }
        _ => return None,
    }
    Some(String::new())
}

#[test]
fn scripts() {
    play_scripts(env!("CARGO_MANIFEST_DIR"), "", stage);
}
