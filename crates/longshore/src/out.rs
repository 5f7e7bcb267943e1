//! Printing for people. A reader that has gone (`longshore up | head -1`) is no reason to stop.

use std::io::{IsTerminal, Write};

use tracing::Level;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use crate::commands::shell;

/// Crates of ours begin with one of these. What libraries have to say below a warning is of no use to operators.
const OURS: [&str; 3] = ["longshore", "io_", "prove_"];

/// Logs to standard error from now on: ours from this level up, others' warnings.
pub fn log(level: Level, json: bool) {
    let wanted = filter_fn(move |about| {
        let ours = OURS.iter().any(|prefix| about.target().starts_with(prefix));
        *about.level() <= if ours { level } else { level.min(Level::WARN) }
    });
    // Colours are for terminals; in a file they are noise.
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(false).with_ansi(std::io::stderr().is_terminal());
    let lines: Box<dyn Layer<Registry> + Send + Sync> = if json { Box::new(lines.json()) } else { Box::new(lines) };
    tracing_subscriber::registry().with(lines.with_filter(wanted)).init();
}

/// Prints to standard output, if somebody still reads it.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}

/// Prints to standard error, if somebody still reads it, under the name we were called by.
pub fn complain(text: &str) {
    let called = shell::called(std::env::args_os().next().as_deref());
    complain_as_it_is(&format!("{called}: {}\n", shell::as_called(text, called)));
}

/// Prints to standard error what says itself whose it is.
pub fn complain_as_it_is(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// An error and its causes, each told once, and what to do where that is known.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    let is_full = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::StorageFull;
    if error.chain().filter_map(|cause| cause.downcast_ref()).any(is_full) {
        text.push_str("; make room there and try again");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn a_cause_is_told_once_and_a_full_disk_says_what_to_do() {
        let full = Error::from_raw_os_error(28);
        let written = format!("cannot write the file: {full}");
        let told = sentence(&anyhow::Error::from(full).context(written).context("cannot start"));
        assert_eq!(
            told,
            "cannot start: cannot write the file: No space left on device (os error 28); make room there and try again"
        );
        let other =
            sentence(&anyhow::Error::from(Error::new(ErrorKind::NotFound, "no such thing")).context("cannot start"));
        assert_eq!(other, "cannot start: no such thing");
    }
}
