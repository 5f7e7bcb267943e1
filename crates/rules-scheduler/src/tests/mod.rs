//! Behaviour by objects in a cache, and the straight path against a real store.

mod path;
mod place;
mod scripts;
mod tables;
mod wakes;
