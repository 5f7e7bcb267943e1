//! Printing for people. A reader that has gone (`longshore up | head -1`) is no reason to stop.

use std::io::Write;

/// Prints to standard output, if somebody still reads it.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}

/// Prints to standard error, if somebody still reads it.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "longshore: {text}");
}
