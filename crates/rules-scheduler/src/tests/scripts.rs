//! The scenarios under `scripts`.

use prove_lab::{Lab, Scene, play_scripts};

use crate::Scheduler;

#[test]
fn scripts() {
    play_scripts(env!("CARGO_MANIFEST_DIR"), "", || Scene::new(Lab::<Scheduler>::new("n", ())));
}
