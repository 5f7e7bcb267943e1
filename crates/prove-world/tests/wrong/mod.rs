//! The wrong rules: the real ones, led astray in one place each.

mod detach;

pub use detach::{CachedInUse, FreshReadOnly};
