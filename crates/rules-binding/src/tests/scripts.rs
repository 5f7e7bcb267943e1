//! The scenarios under `scripts`.

use prove_lab::{Lab, Scene, play_scripts};

use crate::{Binding, Local};

#[test]
fn scripts() {
    play_scripts(env!("CARGO_MANIFEST_DIR"), "", || Scene::new(Lab::<Binding>::new("n", Local::default())));
}
