//! Reads a PersistentVolume in JSON from standard input and prints it in its other form.
//!
//! `kubectl get pv NAME -o json | cargo run --package rules-translate --example volume`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::process::ExitCode;

use api::PersistentVolume;
use rules_translate::{volume_into_csi, volume_into_in_tree};

fn main() -> ExitCode {
    match translated() {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("volume: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn translated() -> Result<String, String> {
    let volume: PersistentVolume =
        serde_json::from_reader(std::io::stdin()).map_err(|error| format!("this is no PersistentVolume: {error}"))?;
    let made = if volume.spec.csi.is_some() { volume_into_in_tree(volume) } else { volume_into_csi(volume) };
    let made = made.map_err(|error| error.to_string())?;
    made.lost.iter().for_each(|lost| eprintln!("volume: {lost}"));
    serde_json::to_string_pretty(&made.object).map_err(|error| error.to_string())
}
