//! Chores by name: `xtask bench BINARY`, and `bench-load`, `bench-pods` and so on; `xtask image`.

use std::io;
use std::process::ExitCode;

use xtask::{bench, image};

const USAGE: &str = "usage: xtask bench BINARY [--quick] [--beside OTHER-BINARY]
       xtask bench-load BINARY
       xtask bench-process BINARY
       xtask bench-pods BINARY
       xtask bench-migrate BINARY
       xtask bench-driver BINARY [--quick] [--json FILE] [--doc FILE]
       xtask bench-sidecars BINARY [--quick] [--full] [--fast] [--only NAME] [--beside OTHER-BINARY] [--until OPERATION] [--volumes N] [--rounds N] [--json FILE] [--doc FILE]
       xtask bench-scale [--quick] [--volumes N] [--nodes N]
       xtask bench-controllers BINARY [--quick] [--full] [--no-growth] [--only NAME] [--claims N]
             [--pods N] [--rounds N] [--json FILE] [--doc FILE]
       xtask bench-translate [--quick] [--doc FILE]
       xtask image --binary linux/amd64=FILE [--binary linux/arm64=FILE] --out FOLDER [--libc linux/amd64=FILE]
             [--prefix PREFIX] [--date SECONDS] [--debian LIST] [--cache FOLDER]";

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done: io::Result<String> = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["bench", binary, ref options @ ..] => match bench::up::Settings::read(binary, options) {
            Some(settings) => bench::up::run(&settings),
            None => return usage(),
        },
        ["bench-load", binary] => bench::load::run(binary),
        ["bench-pods", binary] => bench::pods::run(binary),
        ["bench-migrate", binary] => bench::migrate::run(binary),
        ["bench-process", binary] => bench::process::run(binary),
        ["bench-driver", binary, ref options @ ..] => match bench::driver::Settings::read(binary, options) {
            Some(settings) => bench::driver::run(&settings),
            None => return usage(),
        },
        ["bench-sidecars", binary, ref options @ ..] => match bench::sidecars::Settings::read(binary, options) {
            Some(settings) => bench::sidecars::run(&settings),
            None => return usage(),
        },
        ["bench-scale", ref options @ ..] => match bench::scale::Settings::read(options) {
            Some(settings) => bench::scale::run(&settings),
            None => return usage(),
        },
        ["bench-controllers", binary, ref options @ ..] => match bench::controllers::Settings::read(binary, options) {
            Some(settings) => bench::controllers::run(&settings),
            None => return usage(),
        },
        ["bench-translate", ref options @ ..] => match bench::translate::Settings::read(options) {
            Some(settings) => bench::translate::run(&settings),
            None => return usage(),
        },
        ["image", ref options @ ..] => image::Settings::read(options).and_then(|settings| image::run(&settings)),
        _ => return usage(),
    };
    match done {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stderr, reason = "a program for people")]
fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
