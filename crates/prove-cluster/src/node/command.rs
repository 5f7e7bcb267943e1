//! Programs of this machine that are asked for one thing.

use crate::Error;
use std::process::{Command, Stdio};

/// What the program prints; if it says no, the error has its words.
pub(crate) fn run(program: &str, args: &[&str]) -> Result<String, Error> {
    let mut command = Command::new(program);
    let output = command.args(args).stdin(Stdio::null()).output().map_err(Error::io(format!("run {program}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Command { command: format!("{program} {}", args.join(" ")), stderr })
}
