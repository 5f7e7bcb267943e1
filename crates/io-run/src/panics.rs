//! Tasks that panicked. The process goes on without them, and its health check says so.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

/// How many panics are kept in words; more are counted.
const KEPT: usize = 8;

/// The panics of a process so far.
#[derive(Default)]
pub struct Panics(Mutex<(usize, Vec<String>)>);

/// Tasks of the process have panicked, so that it should be started again when that suits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} panics since the start: {}", texts.join("; "))]
pub struct Panicked {
    /// All that there were, also those that are not told of.
    pub count: usize,
    /// What the first of them said.
    pub texts: Vec<String>,
}

impl Panics {
    /// Logs a panic and remembers it.
    pub fn tell(&self, text: String) {
        tracing::error!("{text}; report this as a defect");
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.0 += 1;
        if told.1.len() < KEPT {
            told.1.push(text);
        }
    }

    /// What a health check answers.
    pub fn health(&self) -> Result<(), Panicked> {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*told {
            (0, _) => Ok(()),
            (count, texts) => Err(Panicked { count: *count, texts: texts.clone() }),
        }
    }
}

/// What a panic said.
pub fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it said nothing")
}
