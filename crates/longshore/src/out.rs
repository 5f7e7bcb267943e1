//! Printing for people. A reader that has gone (`longshore up | head -1`) is no reason to stop.

use std::io::{IsTerminal, Write};

use tracing::Level;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

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

/// Prints to standard error, if somebody still reads it.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "longshore: {text}");
}
