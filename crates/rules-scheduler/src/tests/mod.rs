//! Behaviour by objects in a cache, and the straight path against a real store.

mod nobody;
mod path;
mod place;
mod room;
mod scene;
mod scripts;
mod storage;
mod tables;
mod telling;
mod wakes;
