//! The scenarios under `scripts`.

use prove_lab::{Lab, Stage, play_scripts};

use crate::Binding;

#[test]
fn scripts() {
    play_scripts(env!("CARGO_MANIFEST_DIR"), "", || Stage::new(Lab::<Binding>::new("n", ())));
}
