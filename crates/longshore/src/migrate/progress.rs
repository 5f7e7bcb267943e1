//! How far reading has come, for somebody who looks.

use std::io::{IsTerminal, Write};

/// How many objects go by between two lines.
const EVERY: usize = 1_000;

/// A line on the terminal that is written over and over, and gone in the end; nothing where there is no terminal.
pub struct ReadProgress {
    shown: bool,
    next: usize,
    looked_at: bool,
}

impl ReadProgress {
    /// Nothing has been read.
    pub fn new() -> ReadProgress {
        ReadProgress { shown: false, next: EVERY, looked_at: std::io::stderr().is_terminal() }
    }

    /// So many objects have been read.
    pub fn tell(&mut self, objects: usize) {
        if !self.looked_at || objects < self.next {
            return;
        }
        self.next = objects + EVERY;
        self.shown = true;
        let _ = write!(std::io::stderr().lock(), "\rread {objects} objects");
    }
}

impl Drop for ReadProgress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}
