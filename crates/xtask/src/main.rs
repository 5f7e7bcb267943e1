//! Chores by name: `xtask bench BINARY`.

use std::process::ExitCode;

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["bench", binary] => match xtask::bench::run(binary) {
            Ok(report) => {
                println!("{report}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("xtask: {error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: xtask bench BINARY");
            ExitCode::from(2)
        }
    }
}
