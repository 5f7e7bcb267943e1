//! The scenarios under `scripts`.

use prove_lab::{Lab, Scene, play_scripts};

use crate::NodeLifecycle;

#[test]
fn scripts() {
    play_scripts(env!("CARGO_MANIFEST_DIR"), "", || Scene::new(Lab::<NodeLifecycle>::new("n", ())));
}
