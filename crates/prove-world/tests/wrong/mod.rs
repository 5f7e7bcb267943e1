//! The wrong rules: the real ones, led astray in one place each.

mod detach;
mod intent;

pub use detach::{CachedInUse, FreshReadOnly};
pub use intent::MemoryIntent;
